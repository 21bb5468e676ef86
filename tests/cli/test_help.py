"""The help of commands: two examples at the end of each, which can be given as they stand."""

import shlex

import click
import pytest

from robustgen.cli import main
from robustgen.cli.examples import EXAMPLES
from tests.helpers import cli

COMMANDS = {
    name: command
    for group in (main, *(each for each in main.commands.values() if isinstance(each, click.Group)))
    for name, command in group.commands.items()
    if not isinstance(command, click.Group)
}


def test_every_command_has_two_examples():
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(len(set(examples)) == 2 for examples in EXAMPLES.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_can_be_given_as_they_stand(name):
    for example in EXAMPLES[name]:
        program, *words = shlex.split(example)
        assert program == "robustgen" and name in words[:2]
        COMMANDS[name].make_context(name, words[words.index(name) + 1 :])


def test_help_ends_with_them():
    *_, first, second = cli("make-c", "--help").stdout.splitlines()
    assert (first.strip(), second.strip()) == EXAMPLES["make-c"]
