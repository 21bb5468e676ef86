"""The documents: links lead somewhere, and commands can be given as they stand."""

import inspect
import re
import shlex
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
import yaml

from robustgen.cli import flags, main
from robustgen.errors import ConfigError

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name(page):
    return page.relative_to(ROOT).as_posix()


def prose(page):
    """The page without its blocks of code, whose brackets are no links."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def links(page):
    text = re.sub(r"`[^`]*`", "", prose(page))
    found = re.findall(r"\]\(([^)\s]+)[^)]*\)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors(page):
    """What the headings of a page are called in links, as GitHub has it."""
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


# What is on the reader's machine only: files, the variables of a SLURM array, families of the guides.
ABSENT = r"cannot be read|No such file|SLURM_ARRAY_TASK_ID|unknown corruption '(shades|lamps)"
# The commands of the plug-ins in the guides, which other tests give.
OF_PLUG_INS = ("make-negatives",)


def read(path):
    return path.read_text(encoding="utf-8")


def commands(text):
    """The words of each call of robustgen in the console and shell blocks of `text`."""
    for language, block in BLOCK.findall(text):
        lines = block.replace("\\\n", " ").splitlines()
        if language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ") and "<TAB>" not in line]
        elif language not in ("bash", "sh"):
            continue
        for line in lines:
            words = split(line)
            starts = [i for i, word in enumerate(words) if word.rpartition("/")[2] == "robustgen"]
            for start in starts:
                rest = words[start + 1 :]
                ends = [i for i, word in enumerate(rest) if set(word) <= set("();<>|&")]
                yield rest[: min(ends, default=len(rest))]


def split(line):
    """Words of a line of shell, operators by themselves, without the comment; every variable is 1."""
    words = shlex.shlex(re.sub(r"\$\w+", "1", line), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    return [*words]


def parse(words):
    """Parse a command and check the values of its flags; raises click's errors and robustgen's."""
    command = main.get_command(click.Context(main), words[0])
    assert command, f"no command {words[0]}"
    while isinstance(command, click.Group) and [*words[1:2]] in [[name] for name in command.commands]:
        command, words = command.commands[words[1]], words[1:]
    given = command.make_context(words[0], words[1:]).params
    for argument, model in inspect.get_annotations(inspect.unwrap(command.callback)).items():
        if argument != "return":
            flags._load(model, argument, given, set(), demo=True)


CALLS = [(name(page), words) for page in PAGES for words in commands(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_pictures_lead_somewhere(page):
    for link in links(page):
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)}: {link}"
        assert target.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(target), f"{name(page)}: {link}"


def test_the_index_names_every_page():
    for index in (ROOT / "docs" / "README.md", ROOT / "docs" / "api" / "README.md"):
        pages = {page.relative_to(index.parent).as_posix() for page in index.parent.rglob("*.md")}
        assert not {page for page in pages if not page.startswith("api/")} - {index.name} - set(links(index))


def test_the_first_page_is_short():
    """Three minutes of reading."""
    assert len((ROOT / "README.md").read_bytes()) < 6500


def test_the_block_for_a_checkout_has_the_commands_of_the_makefile_and_their_minutes():
    (block,) = (text for _, text in BLOCK.findall(read(ROOT / "README.md")) if "make demo" in text)
    assert [*re.findall(r"^\$ make (\S+)", block, re.MULTILINE)] == ["demo", "test"]
    makefile = read(ROOT / "Makefile")
    for page in PAGES:
        named = {*re.findall(r"^\$ (?:\S+=\S+ )?make ([a-z-]+)", read(page), re.MULTILINE)}
        assert named <= {*re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)}, page
    contributing = read(ROOT / "CONTRIBUTING.md")
    for text, start in ((block, "$ make test "), (contributing, "$ make test "), (makefile, "test:")):
        (line,) = (each for each in text.splitlines() if each.startswith(start))
        assert "six minutes" in line


def test_the_architecture_names_files_that_are_there():
    text = (ROOT / "docs" / "background" / "architecture.md").read_text(encoding="utf-8")
    examples = {*re.findall(r"this is\s`([\w/.]+)`", text)}
    paths = {*re.findall(r"`([\w/.]+\.(?:py|md))`", text)} - examples
    assert len(paths) > 15
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "robustgen" / path).exists(), path


def test_the_documents_are_full_of_commands():
    assert len(CALLS) > 40
    assert {words[0] for _, words in CALLS} >= {"make-c", "make-p", "verify", "list", "report"}


@pytest.mark.parametrize(
    ("page", "words"), CALLS, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_commands_can_be_given_as_they_stand(page, words, monkeypatch):
    for variable in re.findall(r"\$\{(\w+)\}", "".join(map(read, sorted((ROOT / "configs").iterdir())))):
        monkeypatch.setenv(variable, "source")
    if words[0] in ("--help", "-h", "--version", *OF_PLUG_INS):
        return
    try:
        parse(words)
    except click.exceptions.Exit as done:  # --help
        assert done.exit_code == 0
    except click.UsageError as error:
        pytest.fail(f"{page}: robustgen {' '.join(words)}: {error.format_message()}")
    except ConfigError as error:
        if not re.search(ABSENT, str(error)):
            pytest.fail(f"{page}: robustgen {' '.join(words)}: {error}")


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["make-c", "--corruption", "fog"], "No such option"),
        (["make-c", "--format", "webdatset"], "webdataset"),
        (["make-p", "--set", "video.presett=fast"], "preset"),
        (["predict", "out", "--model", "a.onnx", "--batch-size", "many"], "--batch-size"),
        (["score-ood", "--id", "a.npz"], "--ood is missing"),
    ],
)
def test_wrong_commands_would_be_found(command, problem):
    with pytest.raises((click.UsageError, ConfigError)) as caught:
        parse(command)
    assert problem in getattr(caught.value, "format_message", caught.value.__str__)()
    assert not re.search(ABSENT, str(caught.value))


def test_pages_import_only_what_is_public():
    public = {path.stem for path in (ROOT / "docs" / "api").glob("robustgen*.md")}
    assert public == {"robustgen"} | {
        f"robustgen.{name}" for name in ("plugins", "metrics", "torch", "compat.imagecorruptions", "errors")
    }
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests" / "plugin").glob("*.py")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        # Guides show modules of the package itself, and lines of such modules.
        text = re.sub(
            r"this is\s`robustgen/.*?```python.*?```|This is the import:.*?```.*?```",
            "",
            text,
            flags=re.DOTALL,
        )
        found = {*re.findall(r"^ *from (robustgen[\w.]*) import", text, re.MULTILINE)}
        assert found <= public, f"{page}: {found - public}"


def test_the_site_names_every_page():
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = set(re.findall(r"[\w./-]+\.md", str(site["nav"])))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert named == pages | {"gallery.md"}
