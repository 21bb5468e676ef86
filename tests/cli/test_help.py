"""The help of commands: two examples at the end of each, which can be given as they stand."""

import re
import shlex
from pathlib import Path

import click
import pytest

import robustgen
from robustgen.cli import main
from robustgen.cli.examples import EXAMPLES
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


def test_every_command_has_two_examples():
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(len(set(examples)) == 2 for examples in EXAMPLES.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_can_be_given_as_they_stand(name):
    for example in EXAMPLES[name]:
        program, *words = shlex.split(example)
        own = name.split()
        assert program == "robustgen" and words[: len(own)] == own
        COMMANDS[name].make_context(name, words[len(own) :])


def test_help_ends_with_them():
    *_, first, second = cli("make-c", "--help").stdout.splitlines()
    assert (first.strip(), second.strip()) == EXAMPLES["make-c"]


# Flags of other programs that messages and comments name.
OTHERS = {
    *("--disable-pip-version-check", "--no-deps", "--only-binary", "--dest", "--force-reinstall", "--quiet"),
    *("--head", "--parsable", "--wait", "--flag", "--no", "--array", "--wrap"),
}


def test_messages_name_only_flags_that_exist():
    known = {flag for command in COMMANDS.values() for each in command.params for flag in each.opts}
    known |= {
        flag for command in COMMANDS.values() for each in command.params for flag in each.secondary_opts
    }
    known |= {"--help", "--help-all", "--version"} | OTHERS
    unknown = {
        f"{path.name}: {flag}"
        for path in Path(robustgen.__file__).parent.rglob("*.py")
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", path.read_text("utf-8"))
        if flag not in known
    }
    assert unknown == set()
