"""Validation of the arguments of data sets: whole numbers, variants and qualities."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any, Literal

from robustgen.errors import ArgumentError, ArgumentTypeError
from robustgen.pixels.benchmarks.corruptions import expand_families
from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import CLEAN, CLEAN_VARIANT, IMAGENET_C, USUAL_SCALE, Variant
from robustgen.sets.dataset.recipes import BenchmarkRecipe

Quality = int | Literal["published"] | None
"""Quality of JPEG files: 1 to 95, "published" for that of the edition, or None for no JPEG."""


def check_natural(name: str, value: Any) -> int:
    """Return `value` as an int.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        The value is not from 0 to 2**64 - 1.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 0 <= int(value) < 2**64:
        raise ArgumentError(f"{name} must be from 0 to 2**64 - 1, not {value}")
    return int(value)


def expand_groups(names: Iterable[str], scale: int | None) -> tuple[str, ...]:
    """Return `names` with groups and families replaced by their members, as in ``--corruptions``.

    Parameters
    ----------
    names : iterable of str
        Corruptions, ``"common"``, ``"extra"``, ``"all"``, and families such as ``"c-bar"``, ``"c-bar:all"``.
    scale : int or None
        Scale that members of a family must have constants for; None for the usual 224.
    """
    groups = {"common": IMAGENET_C.common, "extra": IMAGENET_C.extra, "all": IMAGENET_C.names}
    found = expand_families([*names], (scale or USUAL_SCALE,))
    return tuple(dict.fromkeys(name for each in found for name in groups.get(each, (each,))))


def find_variant(recipe: BenchmarkRecipe, name: str, level: Any) -> Variant:
    """Return the variant of the operation `name` at `level`; ``"clean"`` goes with level 0.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        The operation or level does not exist, or has no constants for the edition.
    """
    benchmark = recipe.benchmark
    if name == CLEAN and benchmark.has_clean:
        if level != 0:
            raise ArgumentError(f"{benchmark.level} of clean images must be 0, not {level!r}")
        return CLEAN_VARIANT
    operation = recipe.get_operation(name)
    scale = get_edition(recipe.edition).fixed_scale(operation.table)
    operation.parameters(level, scale or next(iter(operation.table)))
    # 3.0 becomes 3, because it would seed another random stream.
    return benchmark.variant(name, operation.check_level(level))


def resolve_quality(jpeg: Quality, edition: str) -> int | None:
    """Return the quality of the JPEG files that images pass through, or None.

    Raises
    ------
    ArgumentError
        `jpeg` is not a quality.
    """
    if jpeg == "published":
        row = get_edition(edition)
        return row.quality if row.format == "jpeg" else None
    if jpeg is None or (isinstance(jpeg, Integral) and not isinstance(jpeg, bool) and 1 <= jpeg <= 95):
        return jpeg
    raise ArgumentError(f"jpeg must be a quality from 1 to 95, 'published' or None, not {jpeg!r}")
