"""Opening the ingredients of a set: what its corruptions need beside the images."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from robustgen.pixels.benchmarks.ingredients import IngredientSpec, OpenedIngredient
from robustgen.sets.ingredients.depth import open_depth
from robustgen.sets.ingredients.tiles import open_tiles

OPENERS: Final[Mapping[str, Callable[[IngredientSpec], OpenedIngredient]]] = MappingProxyType(
    {"tiles": open_tiles, "depth": open_depth}
)
"""Functions that open built-in ingredients by reading sources; other ingredients open themselves."""
