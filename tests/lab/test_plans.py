"""The table of kinds of set."""

from robustgen.files.registry import SETS, load_row
from robustgen.pixels.imaging.cleaning import CLEANINGS
from robustgen.sets.dataset.recipes import Recipe
from robustgen.settings.config import Choices
from tests.cli.test_help import COMMANDS


def list_derived(cls):
    return {cls}.union(*map(list_derived, cls.__subclasses__()))


def test_every_kind_of_set_has_a_command_settings_and_a_planner():
    for row in SETS.values():
        assert callable(load_row(f"robustgen.{row.planner}"))
        assert issubclass(load_row(f"robustgen.{row.choices}"), Choices) and row.command in COMMANDS
    built_in = {each for each in list_derived(Recipe) if each.__module__.startswith("robustgen.")}
    titles = {each.title for each in built_in if isinstance(getattr(each, "title", None), str)}
    assert titles | {each.title for each in CLEANINGS.values()} == SETS.keys()
