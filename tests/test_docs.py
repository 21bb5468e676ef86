"""The documents: links lead somewhere, commands can be given as they stand, the reference is current."""

import importlib
import importlib.util
import re
import shlex
import sys
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
import yaml

from robustgen.cli import main

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


def commands(text):
    """The words of each call of robustgen in the console and shell blocks of `text`."""
    for language, block in BLOCK.findall(text):
        lines = block.replace("\\\n", " ").splitlines()
        if language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
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
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


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
def test_commands_can_be_given_as_they_stand(page, words):
    if words[0] in ("--help", "-h", "--version"):
        return
    assert words[0] in main.commands, f"{page}: robustgen {' '.join(words)}"
    try:
        main.commands[words[0]].make_context(words[0], words[1:])
    except click.exceptions.Exit as done:  # --help
        assert done.exit_code == 0
    except click.UsageError as error:
        pytest.fail(f"{page}: robustgen {' '.join(words)}: {error.format_message()}")


def test_wrong_commands_would_be_found():
    block = (
        "$ robustgen make-c --corruption fog  # no such flag\nmade\n$ (cd a && robustgen verify b) | less\n"
    )
    text = f"```console\n{block}```\n"
    assert [*commands(text)] == [["make-c", "--corruption", "fog"], ["verify", "b"]]
    with pytest.raises(click.UsageError):
        main.commands["make-c"].make_context("make-c", ["--corruption", "fog"])


def script(name):
    """A module of scripts/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def test_the_python_reference_has_every_public_name():
    for page in sorted((ROOT / "docs" / "api").glob("robustgen*.md")):
        paths = re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        public = vars(importlib.import_module(page.stem)).get("__all__", ())
        assert {*public} - {"__version__"} <= {path.rpartition(".")[2] for path in paths}, page.name
        for path in paths:
            assert page.stem == path or find(path) is not None, f"{page.name}: {path}"


def find(path):
    """The object at a dotted path, its module imported."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name, None)


def test_the_site_names_every_page():
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = set(re.findall(r"[\w./-]+\.md", str(site["nav"])))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert named == pages | {"gallery.md"}


def test_the_config_reference_is_current():
    reference = script("docs_reference")
    written = (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")
    assert written == reference.page(), "run .venv/bin/python scripts/docs_reference.py"
