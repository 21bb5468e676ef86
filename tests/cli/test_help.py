"""The help of commands: two examples at the end of each, which can be given as they stand."""

import re
import shlex

import click
import pytest

from robustgen.cli import main
from tests.helpers import cli


def list_commands(group, before=""):
    """Return the commands of a group and of its groups, by the words that call them."""
    found = {}
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if command.callback is not None and before + name != "preprocess":
            found[before + name] = command
        if isinstance(command, click.Group):
            found |= list_commands(command, f"{before}{name} ")
    return found


COMMANDS = list_commands(main)


def list_examples(name):
    """Return the examples of a command, each as one line."""
    return re.sub(r" \\\n *", " ", COMMANDS[name].examples).splitlines()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_two_examples(name):
    assert len(set(list_examples(name))) == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_can_be_given_as_they_stand(name):
    for example in list_examples(name):
        program, *words = shlex.split(example)
        own = name.split()
        assert program == "robustgen" and words[: len(own)] == own
        COMMANDS[name].make_context(name, words[len(own) :])


def test_help_ends_with_them():
    *_, first, second = cli("make-c", "--help").stdout.splitlines()
    assert [first.strip(), second.strip()] == list_examples("make-c")
