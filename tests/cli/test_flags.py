"""Flags of the commands: which parts of a config a command takes, and options that are given twice."""

from typing import Annotated

import click
import pytest

from robustgen.cli.flags import takes
from robustgen.settings.config import Choices
from robustgen.settings.fields import Flag, Group, Part
from robustgen.settings.loading import keys_of
from tests.cli.test_help import COMMANDS
from tests.helpers import cli, cli_error, words


def test_a_command_has_the_flags_of_the_parts_that_it_names():
    @takes(parts=[Part.SELECTION], also=["jobs"], choices=Choices)
    def count(choices):
        pass

    flags = {option for each in count.__click_params__ for option in each.opts}
    assert flags == {"--set", "--limit", "--sample", "--subset", "--seed", "--jobs"}


def test_set_accepts_the_keys_of_all_parts():
    @click.command()
    @takes(parts=[Part.SELECTION], choices=Choices)
    def count(choices):
        return choices

    given = count.main(["--set", "labels_are_classes=true", "--set", "jobs=2"], standalone_mode=False)
    assert (given.labels_are_classes, given.jobs) == (True, 2)
    option = next(each for each in count.params if "--set" in each.opts)
    assert {*option.keys} == {*keys_of(Choices)}


def test_a_flag_of_choices_needs_a_part():
    with pytest.raises(TypeError, match=r"Lacking\.share"):

        class Lacking(Choices):
            share: Annotated[float, Flag(Group.CONTENT, "X")] = 1.0


# --- given twice ---------------------------------------------------------------------------------

# Each is taken: a list grows, or a later value overrides an earlier one by design.
TAKEN_TWICE = {
    *("--set", "--with", "--model", "--output", "--margin", "--fail-if", "--type", "--id", "--ood"),
    *("--classes", "--preprocessing", "--group", "--style", "--licence"),
    *(
        "--corruptions",
        "--severities",
        "--perturbations",
        "--difficulty",
        "--chart-models",
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_second_value_of_an_option_is_dropped(name):
    for each in COMMANDS[name].params:
        if not isinstance(each, click.Option) or each.is_eager:
            continue
        spelled = max(each.opts, key=len)
        if each.multiple:
            assert spelled in TAKEN_TWICE
            continue
        value = [] if each.is_flag else ["1"]
        assert cli_error(*name.split(), spelled, *value, spelled, *value).startswith(
            f"{spelled} is given twice"
        )


def test_second_values_of_lists_are_added():
    given = cli("config", "--severities", "1", "--corruptions", "fog", "--severities", "3,2").stdout
    assert "severities: [1, 2, 3]" in given


@pytest.mark.parametrize(
    "given",
    [
        "make-c --source x --no-clean --clean",
        "make-c --source x --set seed=1 --set seed=2",
        "make-c --source x --with frost=a --with frost=b",
        "make-c --source x --with depth=a,scale=1,scale=2",
        "make-c --dataset demo --on slurm:partition=a,partition=b",
        "compare a b --margin psnr=1 --margin psnr=2",
    ],
)
def test_no_second_value_of_a_key_is_dropped(given):
    assert "given twice" in cli_error(*words(given))
