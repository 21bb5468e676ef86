"""The help of commands: two examples at the end of each, which can be given as they stand."""

import shlex

import click
import pytest

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
