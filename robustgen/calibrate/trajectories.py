"""The constants of a corruption as functions of one number, made from nothing but the published tables.

One trajectory moves all constants together as the authors moved them from one published image size to the
next; another moves them towards the neighbouring severities. `matching` looks for the number that fits.
"""

import dataclasses
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from robustgen.corruptions import ALL_CORRUPTIONS
from robustgen.editions import nearest_scale
from robustgen.imaging.kernels import exact
from robustgen.parameters import find_ranges, move_number
from robustgen.registry import SCALES, Operation

PUBLISHED_SIZE: Final = 224
# How far to look beyond the guess, in multiples of the way from the published size to it.
_OUTWARDS: Final = (2, -1, 4, -3, 8, -7)
# Powers of two by which one constant alone is moved.
_FACTORS: Final = (0.0, 0.02, -0.02, 0.05, -0.05, 0.12, -0.12, 0.3, -0.3, 0.7, -0.7, 1.2, -1.2, 2.0, -2.0)
_SEVERITIES_AWAY: Final = (0.0, 0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.0, -2.0)
_ANY: Final = (0.0, math.inf)

Constants = dict[str, float]


@dataclass(frozen=True)
class Trajectory:
    """Constants that depend on one number.

    Attributes
    ----------
    way : str
        What the number stands for.
    at : callable
        Number to constants.
    places : tuple of float
        The numbers to try, the most likely first.
    """

    way: str
    at: Callable[[float], Constants]
    places: tuple[float, ...]


def select_numbers(parameters: Any) -> Constants:
    """Return the constants among the fields of a parameter object: its numbers."""
    fields = dataclasses.asdict(parameters).items()
    return {name: value for name, value in fields if isinstance(value, (int, float))}


def list_trajectories(name: str, level: int, size: int) -> list[Trajectory]:
    """Return the ways to change the constants of one corruption and severity for images of `size` pixels."""
    operation = ALL_CORRUPTIONS[name]
    found = (_vary_by_size(operation, level, size), _vary_by_severity(operation, level, size))
    return [each for each in found if each]


def vary_one_constant(name: str, constants: Constants) -> list[Trajectory]:
    """For each constant that is no whole number: it alone, moved by factors, the others as in `constants`.

    Whole numbers jump; what they leave open, another constant can close.
    """
    kind = type(next(iter(ALL_CORRUPTIONS[name].table.values()))[0])
    names = [each.name for each in dataclasses.fields(kind) if each.type is float]
    ranges = find_ranges(kind)
    return [_vary(constants, each, ranges.get(each, _ANY)) for each in names if constants[each] > 0]


def _vary(constants: Constants, name: str, limits: tuple[float, float]) -> Trajectory:
    def at(place: float) -> Constants:
        moved = float(f"{constants[name] * 2**place:.4g}")
        return constants | {name: min(max(moved, limits[0]), limits[1])}

    return Trajectory(f"{name} alone", at, _FACTORS)


def _sides(operation: Operation) -> list[int]:
    """Return the sizes that `operation` has constants for."""
    return [each for each in operation.table if isinstance(each, int)]


def _vary_by_size(operation: Operation, level: int, size: int) -> Trajectory | None:
    """Return the way from one published size to the next; None where these have the same constants."""
    sides = _sides(operation)
    if len(sides) < 2:
        return None
    low, high = _neighbours(size, sides)
    first, last = (operation.parameters(level, scale) for scale in (low, high))
    if first == last:
        return None
    guess = float(exact.log(size / low) / exact.log(high / low))
    # From 224 pixels on, the published constants come first: they may match as they are.
    start = (0.0, guess) if low == PUBLISHED_SIZE else (guess, 0.0, 1.0)
    places = start + tuple(factor * guess for factor in _OUTWARDS)
    return Trajectory(f"sizes {low} to {high}", lambda place: interpolate(first, last, place), places)


def _vary_by_severity(operation: Operation, level: int, size: int) -> Trajectory | None:
    """Towards the neighbouring severities; None where these are of another sort."""
    scale = nearest_scale(size, [each for each in _sides(operation) if each <= PUBLISHED_SIZE])
    rows = [operation.parameters(each, scale) for each in operation.levels]
    first, last = _find_alike(rows, level)
    if first == last:
        return None
    places = tuple(level + away for away in _SEVERITIES_AWAY)
    kin = rows[first - 1 : last]

    def at(place: float) -> Constants:
        left = min(max(math.floor(place - first), 0), len(kin) - 2)
        return interpolate(kin[left], kin[left + 1], place - first - left)

    return Trajectory("severities", at, places)


def _neighbours(size: int, known: Iterable[int] = SCALES) -> tuple[int, int]:
    """Return the `known` sizes on both sides of `size`, or the two nearest; from 224 on always the two
    largest.
    """
    ordered = sorted(known)
    place = min(max(bisect_right(ordered, size) - 1, 0), len(ordered) - 2)
    return ordered[place], ordered[place + 1]


def _find_alike(rows: Sequence[Any], level: int) -> tuple[int, int]:
    """Return the first and last severity of those around `level` that have their zeros in the same places.

    A constant that is zero switches something off, as mud in spatter: there is nothing in between.
    """

    def zeros(each: int) -> list[str]:
        return [name for name, value in select_numbers(rows[each - 1]).items() if not value]

    first = last = level
    while first > 1 and zeros(first - 1) == zeros(level):
        first -= 1
    while last < len(rows) and zeros(last + 1) == zeros(level):
        last += 1
    return first, last


def interpolate(low: Any, high: Any, place: float) -> Constants:
    """Constants on the way from the parameter object `low` (place 0) to `high` (place 1), and beyond.

    Positive numbers move by equal factors, others by equal steps; floats keep four digits, whole numbers are
    rounded and stay at least 1 if they were.
    """
    whole = {field.name for field in dataclasses.fields(low) if field.type is int}
    ends, ranges = (select_numbers(low), select_numbers(high)), find_ranges(low)
    moved = {name: move_number(ends[0][name], ends[1][name], place) for name in ends[0]}
    for name, value in moved.items():
        least = int(min(ends[0][name], ends[1][name]) >= 1)
        moved[name] = max(round(value), least) if name in whole else float(f"{value:.4g}")
    limits = {name: ranges.get(name, _ANY) for name in moved}
    return {name: min(max(value, limits[name][0]), limits[name][1]) for name, value in moved.items()}
