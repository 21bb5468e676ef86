"""The tables of sets."""

from robustgen.files.registry import load_row
from robustgen.sets.dataset.recipes import Recipe
from robustgen.sets.dataset.rows import BENCHMARK_SETS
from robustgen.settings.config import Choices
from tests.cli.test_help import COMMANDS


def list_derived(cls):
    return {cls}.union(*map(list_derived, cls.__subclasses__()))


def check_rows(sets, package, more=()):
    """Hold the rows of sets to the recipes in a package, some of which have several titles."""
    for row in sets.values():
        assert callable(load_row(row.planner))
        assert issubclass(load_row(row.choices), Choices) and row.command in COMMANDS
    recipes = {each for each in list_derived(Recipe) if each.__module__.startswith(package)}
    titles = {each.title for each in recipes if isinstance(getattr(each, "title", None), str)}
    assert titles | {*more} == sets.keys()


def test_every_set_has_a_command_settings_and_a_planner():
    check_rows(BENCHMARK_SETS, "robustgen.sets.")
