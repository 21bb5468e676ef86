"""Recipes: the commands that make the corrupted copy of a well-known set, rows of ``recipes.json``."""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from robustgen.files.text_files import parse_json


class SetRecipe(NamedTuple):
    """A row of ``recipes.json``.

    Attributes
    ----------
    name : str
    command : str
        Without ``robustgen``.
    split : str
        The images that the command takes.
    kept : str
        What the copies repeat unchanged.
    loader : str
        The usual loader, which opens the folder of a variant.
    compared : str
        Published numbers with which results may be compared; "" if there are none.
    differs : str
        What is not as in the original or published set; "" if nothing is.
    severities : str
        As of ``--severities``.
    """

    name: str
    command: str
    split: str
    kept: str
    loader: str
    compared: str = ""
    differs: str = ""
    severities: str = "1-5"


@cache
def list_recipes() -> tuple[SetRecipe, ...]:
    """Return all rows."""
    rows = parse_json(files(__package__).joinpath("recipes.json").read_text())
    return tuple(SetRecipe(**row) for row in rows)
