"""The help of commands: two examples at the end of each, which can be given as they stand."""

import ast
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import robustgen
from robustgen.cli import main
from robustgen.files import wings
from robustgen.sets.formats import FORMATS
from robustgen.settings.fields import list_flags
from tests.helpers import cli, put_photo


def list_commands(group, before=""):
    """Return the commands of a group and of its groups, by the words that call them."""
    found = {}
    for name in group.list_commands(None):
        command = group.get_command(click.Context(group), name)
        found[before + name] = command
        if isinstance(command, click.Group):
            found |= list_commands(command, f"{before}{name} ")
    return found


COMMANDS = list_commands(main)


def list_examples(name):
    """Return the examples of a command, each as one line."""
    return re.sub(r" \\\n *", " ", COMMANDS[name].examples).splitlines()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_two_examples_that_can_be_given_as_they_stand(name):
    assert len(set(list_examples(name))) == 2
    for example in list_examples(name):
        program, *words = shlex.split(example)
        own = name.split()
        assert program == "robustgen" and words[: len(own)] == own
        COMMANDS[name].make_context(name, words[len(own) :])


def test_help_ends_with_them():
    *_, first, second = cli("make-c", "--help").stdout.splitlines()
    assert [first.strip(), second.strip()] == list_examples("make-c")


# Flags of other programs that messages name.
OTHERS = {
    *("--disable-pip-version-check", "--no-deps", "--only-binary", "--dest", "--force-reinstall", "--quiet"),
    *("--head", "--parsable", "--wait", "--wrap", "--array", "--python", "--target", "--with"),
}
# Modules, or rooms, to the commands that print their messages; the longest name counts.
_OF_SETS = "make-c make-p"
_OF_SOURCES = f"{_OF_SETS} config calibrate preview evaluate"
SPEAKERS = {
    "": " ".join(name.replace(" ", "_") for name in COMMANDS),
    "commands": _OF_SETS,
    "pixels/benchmarks": f"{_OF_SETS} evaluate preview calibrate",
    "cli/app": "",
    "cli/rows": _OF_SETS,
    "cli/calibrate": "calibrate",
    "cli/finished": "compare",
    "cli/evaluate": "evaluate",
    "cli/execution": f"{_OF_SETS} run",
    "cli/warm": "fetch",
    "cli/preview": "preview",
    "cli/score": "score",
    "cli/flags": "",
    "cli/make": _OF_SETS,
    "sets/dataset": f"{_OF_SETS} run",
    # evaluate has no --split, only --set split=NAME.
    # calibrate and preview have no --subset, only --set subset=PATTERN.
    "sets/dataset/selection": f"{_OF_SETS} config",
    "sets/sources/places": f"{_OF_SETS} config evaluate",
    "sets/dataset/layouts": _OF_SETS,
    "sets/dataset/mirror": _OF_SETS,
    "sets/dataset/plan": _OF_SETS,
    "sets/dataset/planning": _OF_SETS,
    "sets/ingredients": f"{_OF_SETS} evaluate preview calibrate",
    "display/charts": "score",
    "lab/evaluation": "predict evaluate",
    "lab/evaluation/detection": "evaluate",
    "lab/evaluation/detection/reading": "score-detection",
    "lab/evaluation/predictions": "score score-ood",
    "lab/evaluation/store": "predict evaluate",
    "sets/executors": f"{_OF_SETS} run",
    "sets/executors/jobs": f"{_OF_SETS} evaluate run",
    "sets/executors/slurm": "make-c run",
    "files/registry": "list",
    "files/set_files": f"{_OF_SETS} run",
    "sets/formats": _OF_SETS,
    "pixels/imaging/third_party": "make-c evaluate preview calibrate warm",
    "plugins": "",
    "lab/inspection/calibrate_text": "calibrate",
    "lab/inspection/matching": "calibrate",
    "lab/inspection/strengths": "calibrate",
    "lab/inspection/compare": "compare",
    "lab/inspection/preview": "preview",
    "lab/inspection/report": "report",
    "lab/inspection/verify": "verify",
    "lab/inspection/verify_contents": "verify",
    "lab/models": "predict evaluate",
    "lab/models/base": "predict evaluate",
    "lab/scores": "score evaluate",
    "lab/scores/detection": "score-detection",
    "lab/scores/answers": "score-answers",
    "lab/scores/answer_files": "score-answers",
    "lab/scores/answer_rules": "score-answers",
    "lab/scores/result_grid": "score-segmentation score-answers",
    "lab/scores/palettes": "score-segmentation",
    "lab/scores/segmentation": "score-segmentation",
    "lab/scores/scoreboard": "score",
    "lab/scores/text_forms": "score",
    "lab/scores/gates": "score",
    "lab/scores/score_charts": "score",
    "lab/scores/score_page": "score",
    "settings": _OF_SOURCES,
    "settings/inspecting": "preview",
    "settings/models": "evaluate",
    "sets/sources": _OF_SOURCES,
    "sets/sources/labels": f"{_OF_SOURCES} list",
    "sets/sources/trees": f"{_OF_SOURCES} list",
}


def list_messages(path):
    """Yield the texts of a module that are no docstrings; an f-string is one text, with N for each value."""
    tree = ast.parse(path.read_text("utf-8"))
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "N" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def flags_of(name):
    return {flag for each in COMMANDS[name].params for flag in (*each.opts, *each.secondary_opts)}


def find_strange_flags(speakers, modules):
    """Flags in the messages of `modules` that the commands which print them do not have.

    A flag of another command follows its name: "predict --save".
    """
    root, unknown = Path(robustgen.__file__).parent, set()
    words = re.compile(rf"(?:(?<![\w-])({'|'.join(COMMANDS)}) )?(?<![\w-])(--[a-z][a-z-]*[a-z])")
    for path in modules:
        module = path.relative_to(root).with_suffix("").as_posix().removesuffix("/__init__")
        speaker = max(
            (each for each in speakers if f"{module}/".startswith(f"{each}/" * bool(each))), key=len
        )
        printed = [each.replace("_", " ") for each in speakers[speaker].split()]
        for text in list_messages(path):
            for other, flag in words.findall(text):
                lacking = [name for name in ([other] if other else printed) if flag not in flags_of(name)]
                if flag not in OTHERS | {"--help", "--help-all"} and lacking:
                    unknown.add(f"{module}: {flag}, not of {', '.join(lacking)}")
    return sorted(unknown)


def list_modules(*wings):
    """The modules of the package, or of some of its wings."""
    root = Path(robustgen.__file__).parent
    return [each for each in root.rglob("*.py") if not wings or each.relative_to(root).parts[0] in wings]


def test_messages_name_only_flags_of_the_commands_that_print_them():
    own = [each for each in list_modules() if each not in list_modules(*wings.OWN)]
    assert find_strange_flags(SPEAKERS, own) == []


# --- sentences -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_do_what_the_defaults_do_not(name):
    help_all = cli(*name.split(), "--help-all").stdout
    defaults = dict(
        re.findall(r"^  (--[a-z-]+)\b[^;]*?; default\s+([^\s:;]+?)[.:;]?\s", help_all, re.M | re.S)
    )
    for example in list_examples(name):
        for flag, value in re.findall(r"(--[a-z-]+) ([^-\s]\S*)", example):
            assert defaults.get(flag) != value, example


# Where a command has a default of its own.
OWN_DEFAULTS = {
    **{("preview", key): {"none", "folder"} for key in ("edition", "perturbations", "difficulty")},
    **{("evaluate", key): {"none"} for key in ("perturbations", "difficulty")},
    ("stream", "severities"): {"5"},
    ("stream measure", "grid"): {"0"},
}


@pytest.mark.parametrize("name", COMMANDS)
def test_defaults_in_the_help_are_those_of_the_models(name):
    callback = COMMANDS[name].callback
    models = inspect.get_annotations(inspect.unwrap(callback)) if callback else {}
    for option in COMMANDS[name].params:
        model, _, key = option.name.partition("__")
        fields = {key: field for key, field, _ in list_flags(models[model])} if model in models else {}
        default = fields[key].get_default() if key in fields else None
        shown = re.search(r"default ([^\s;,]+?)\.?(?=[\s;,]|$)", getattr(option, "help", None) or "")
        if shown and isinstance(default, str | int | float) and not isinstance(default, bool):
            # Sets are named after their benchmark.
            usual = {str(default), str(default).replace("{kind}", name.removeprefix("make-"))}
            assert shown[1] in OWN_DEFAULTS.get((name, key), usual), f"{name} --{key}"


def test_a_preview_has_the_defaults_that_its_help_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image = put_photo(tmp_path / "cat" / "a.png", 300, 400)
    sheets = [
        cli("preview", image, "--corruptions", "contrast", *flags, "--output", f"{number}.png")
        and Path(f"{number}.png").read_bytes()
        for number, flags in enumerate([(), ("--edition", "imagenet"), ("--edition", "folder")])
    ]
    assert sheets[0] == sheets[1] != sheets[2]


def test_help_marks_required_flags_and_cuts_no_summary():
    assert re.search(
        r"--output DIR +Folder or URL; one subfolder per model. Required.", cli("predict", "--help").stdout
    )
    assert "score [OPTIONS] PREDICTIONS..." in cli("score", "--help").stdout
    for name, command in COMMANDS.items():
        if isinstance(command, click.Group):
            assert "..." not in cli(*name.split(), "--help").stdout.partition("Commands:")[2]


def test_help_lists_values_and_no_page_of_the_docs():
    for name in COMMANDS:
        assert not re.search(r"\bdocs/|\.md\b", cli(*name.split(), "--help").stdout), name
    told = " ".join(cli("make-c", "--help").stdout.split())
    assert all(
        re.search(rf"\b{each}\b", told.partition("formats): ")[2].partition("default")[0]) for each in FORMATS
    )


# Flags whose texts differ between commands, and what all of these say: only defaults and scope differ.
MEANINGS = {
    "--allow-failures": "Exit with status 0",
    "--annotations": "COCO annotations",
    "--baseline": "Baseline",
    "--batch-size": "Images per batch",
    "--classes": "Class folders in the order",
    "--clean-results": "clean (images|pictures)",
    "--compare-with": "Compare with",
    "--corruptions": "Names|these corruptions|As for make-c",
    "--difficulty": "[Dd]ifficult",
    "--edition": "Preparation",
    "--fail-if": "Condition that ends the command with status 1",
    "--format": "[Ff]orm|Lines",
    "--frames": "[Nn]umber of .*frames",
    "--images": "[Ii]mages",
    "--jobs": "(processes|hreads|Processes); default all",
    "--labels": "Table of labels",
    "--labels-are-classes": "as names of your own classes",
    "--limit": "Use only the first N",
    "--model": "[Mm]odel",
    "--name": "Name",
    "--output": "[Oo]utput|[Ff]older|[Ff]ile|[Pp]age",
    "--overwrite": "Start over|Remove|Replace",
    "--partial": "incomplete|only one of the two",
    "--perturbations": "Names|these",
    "--predicted-set": "set that was predicted|corrupted set",
    "--quality": "Quality of",
    "--replicates": "Bootstrap samples",
    "--results": "result|predicted",
    "--seed": "Seed",
    "--severities": "1 to 5|[Ss]everities",
    "--source": "[Ss]ource",
    "--target": "Target accuracy in %",
}
FORMS = {
    *("--clean-results", "--difficulty", "--edition", "--format", "--output", "--severities"),
}


def test_a_flag_means_one_thing():
    """Flags of one name have one meaning, and values of one form, whatever the command."""
    texts, forms = {}, {}
    for command in COMMANDS.values():
        for each in command.params:
            if isinstance(each, click.Option):
                flag = max(each.opts, key=len)
                texts.setdefault(flag, set()).add(each.help)
                forms.setdefault(flag, set()).add((each.metavar or "").removesuffix("|all"))
    differing = {flag: each for flag, each in texts.items() if len(each) > 1}
    assert differing.keys() <= MEANINGS.keys()
    assert {flag for flag, each in forms.items() if len(each) > 1} <= FORMS
    for flag, each in differing.items():
        assert all(re.search(MEANINGS[flag], text) for text in each), (flag, each)


def test_errors_are_red_where_colour_is_shown(monkeypatch):
    def told(*args):
        return CliRunner().invoke(main, args, color=True).stderr

    assert told("score", "nowhere").startswith("\x1b[31mError: ") and "\x1b[31mNo such" in told(
        "score", "--x"
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in told("score", "nowhere") + told("score", "--x")


# --- the front -----------------------------------------------------------------------------------


def count_flags(name, flag):
    """Return the number of flags that the help of a command shows, without those for help itself."""
    shown = re.findall(r"^  (-.*?)(?:  |$)", cli(*name.split(), flag).stdout, re.MULTILINE)
    return len([each for each in shown if "--help" not in each])


def test_make_c_shows_few_flags_in_named_groups():
    assert count_flags("make-c", "--help") <= 18
    assert count_flags("make-c", "--help-all") <= 33
    titles = re.findall(r"^(\w.*):$", cli("make-c", "--help").stdout, re.MULTILINE)
    assert titles == ["Source", "Content", "Output", "Running", "Help", "Examples"]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_has_more_than_forty_flags(name):
    # evaluate reads images and clips as make-c does, and opens models as predict does.
    most = 44 if name == "evaluate" else 40
    assert count_flags(name, "--help-all") <= most


def test_no_help_loads_a_heavy_library():
    calls = [["--help"], *([*name.split(), flag] for name in COMMANDS for flag in ("--help", "--help-all"))]
    program = (
        "import sys, contextlib, io; from robustgen.cli import main\n"
        f"for call in {calls}:\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        "        with contextlib.suppress(SystemExit): main(call)\n"
        "heavy = {'numpy', 'numba', 'cv2', 'scipy', 'PIL', 'av', 'skimage', 'joblib'}\n"
        "print(heavy & sys.modules.keys())"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--help", [each.help.splitlines()[0] for name, each in COMMANDS.items() if " " not in name]),
        ("make-", ["make-c", "make-p"]),
        ("make-c --form", ["plain,--format"]),
        ("make-c --corruptions fog,gla", ["plain,fog,glass_blur"]),
        ("score --format ", ["plain,table", "plain,latex"]),
        ("evaluate --labels pla", ["file,pla"]),
        ("verify pla", ["file,pla"]),
    ],
)
def test_help_and_completion_build_no_model(words, shown):
    check_without_models(words, shown)


def check_without_models(words, shown):
    """Hold help and completion of `words` to what they show, without pydantic."""
    variables = {
        "_ROBUSTGEN_COMPLETE": "bash_complete",
        "COMP_WORDS": f"robustgen {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    program = (
        "import sys, atexit; from robustgen.cli import main\n"
        "atexit.register(lambda: print('pydantic' in sys.modules))\n"
        f"main({[words]}, prog_name='robustgen')"
    )
    environment = {**os.environ, **(variables if words != "--help" else {})}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert found.stdout.endswith("False\n")
    assert all(each in found.stdout for each in shown)
