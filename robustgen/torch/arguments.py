"""What the data sets are given, checked: whole numbers, arms and qualities."""

from numbers import Integral
from typing import Any, Literal

from robustgen.benchmark import CLEAN, CLEAN_ARM, Arm
from robustgen.editions import get_edition
from robustgen.errors import ArgumentError, ArgumentTypeError
from robustgen.generation.recipes import BenchmarkRecipe

Quality = int | Literal["published"] | None
"""Of JPEG files: 1 to 95, that of `make-c` for an edition, or None for no JPEG."""

_PUBLISHED = 85


def check_natural(name: str, value: Any) -> int:
    """`value` as an int.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        It is not from 0 to 2**64 - 1.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 0 <= int(value) < 2**64:
        raise ArgumentError(f"{name} must be from 0 to 2**64 - 1, not {value}")
    return int(value)


def find_arm(recipe: BenchmarkRecipe, name: str, level: Any) -> Arm:
    """The arm of the operation `name` at `level`; ``"clean"`` goes with level 0.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        There is no such operation, or it has no such level, or nothing at the scale of the edition.
    """
    benchmark = recipe.benchmark
    if name == CLEAN and benchmark.has_clean:
        if level != 0:
            raise ArgumentError(f"{benchmark.level} of clean images must be 0, not {level!r}")
        return CLEAN_ARM
    operation = recipe.get_operation(name)
    operation.parameters(level, get_edition(recipe.edition).scale or next(iter(operation.table)))
    # 3.0 is 3, from which another random stream would be made.
    return benchmark.arm(name, operation.check_level(level))


def resolve_quality(jpeg: Quality, edition: str) -> int | None:
    """The quality of the JPEG files that images go through, or None.

    Raises
    ------
    ArgumentError
        `jpeg` is no quality.
    """
    if jpeg == "published":
        return _PUBLISHED if get_edition(edition).format == "jpeg" else None
    if jpeg is None or (isinstance(jpeg, Integral) and not isinstance(jpeg, bool) and 1 <= jpeg <= 95):
        return jpeg
    raise ArgumentError(f"jpeg must be a quality from 1 to 95, 'published' or None, not {jpeg!r}")
