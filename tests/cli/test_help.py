"""The help of commands: two examples at the end of each, which can be given as they stand."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import robustgen
from robustgen.cli import main
from tests.helpers import cli


def list_commands(group, before=""):
    """Return the commands of a group and of its groups, by the words that call them."""
    found = {}
    for name in group.list_commands(None):
        command = group.get_command(None, name)
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


# Flags of other programs that messages and comments name.
OTHERS = {
    *("--disable-pip-version-check", "--no-deps", "--only-binary", "--dest", "--force-reinstall", "--quiet"),
    *("--head", "--parsable", "--wait", "--flag", "--no", "--array", "--wrap"),
}


def test_messages_name_only_flags_that_exist():
    shown = [each for command in COMMANDS.values() for each in command.params]
    known = {flag for each in shown for flag in (*each.opts, *each.secondary_opts)}
    known |= {"--help", "--help-all", "--version"} | OTHERS
    unknown = {
        f"{path.name}: {flag}"
        for path in Path(robustgen.__file__).parent.rglob("*.py")
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", path.read_text("utf-8"))
        if flag not in known
    }
    assert unknown == set()


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
    has_more = any(each.name == "help_all" for each in COMMANDS[name].params)
    assert count_flags(name, "--help-all" if has_more else "--help") <= 40


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
