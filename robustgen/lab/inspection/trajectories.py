"""The constants of a corruption as functions of one number, derived from the published tables.

One trajectory moves all constants together, as the authors moved them from one published image size to the
next; another moves them towards the neighbouring severities. `matching` searches for the number that fits.
"""

import dataclasses
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS
from robustgen.pixels.benchmarks.editions import nearest_scale
from robustgen.pixels.benchmarks.parameters import USUAL_RANGE, find_ranges, move_number
from robustgen.pixels.benchmarks.registry import SCALES, Operation
from robustgen.pixels.imaging.kernels import exact

PUBLISHED_SIZE: Final = 224
# Range of the search beyond the guess, in multiples of the distance from the published size to the guess.
_OUTWARDS: Final = (2, -1, 4, -3, 8, -7)
# Powers of two, the factors for a single constant.
_FACTORS: Final = (0.0, 0.02, -0.02, 0.05, -0.05, 0.12, -0.12, 0.3, -0.3, 0.7, -0.7, 1.2, -1.2, 2.0, -2.0)
_SEVERITIES_AWAY: Final = (0.0, 0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.0, -2.0)

Constants = dict[str, float]


@dataclass(frozen=True)
class Trajectory:
    """Constants as a function of one number.

    Attributes
    ----------
    way : str
        Meaning of the number.
    at : callable
        Function of the number that returns the constants.
    places : tuple of float
        The numbers to try, the most likely first.
    """

    way: str
    at: Callable[[float], Constants]
    places: tuple[float, ...]


def select_numbers(parameters: Any) -> Constants:
    """Return the fields of a parameter object that are constants: its numbers."""
    fields = dataclasses.asdict(parameters).items()
    return {name: value for name, value in fields if isinstance(value, (int, float))}


def list_trajectories(name: str, level: int, size: int) -> list[Trajectory]:
    """Return the trajectories for one corruption and severity for images of `size` pixels."""
    operation = ALL_CORRUPTIONS[name]
    found = (_vary_by_size(operation, level, size), _vary_by_severity(operation, level, size))
    return [each for each in found if each]


def vary_one_constant(name: str, constants: Constants) -> list[Trajectory]:
    """Yield for each constant that is not a whole number a trajectory of this constant alone, by factors.

    Whole numbers jump; varying another constant can close the remaining gap.
    """
    kind = type(next(iter(ALL_CORRUPTIONS[name].table.values()))[0])
    names = [each.name for each in dataclasses.fields(kind) if each.type is float]
    ranges = find_ranges(kind)
    return [_vary(constants, each, ranges.get(each, USUAL_RANGE)) for each in names if constants[each] > 0]


def _vary(constants: Constants, name: str, limits: tuple[float, float]) -> Trajectory:
    def at(place: float) -> Constants:
        moved = float(f"{constants[name] * 2**place:.4g}")
        return constants | {name: min(max(moved, limits[0]), limits[1])}

    return Trajectory(f"{name} alone", at, _FACTORS)


def _sides(operation: Operation) -> list[int]:
    """Return the sizes that `operation` has constants for."""
    return [each for each in operation.table if isinstance(each, int)]


def _vary_by_size(operation: Operation, level: int, size: int) -> Trajectory | None:
    """Return the trajectory between published sizes; None if they have the same constants."""
    sides = _sides(operation)
    if len(sides) < 2:
        return None
    low, high = _neighbours(size, sides)
    first, last = (operation.parameters(level, scale) for scale in (low, high))
    if first == last:
        return None
    guess = float(exact.log(size / low) / exact.log(high / low))
    # From 224 pixels on, the published constants come first: they may match unchanged.
    start = (0.0, guess) if low == PUBLISHED_SIZE else (guess, 0.0, 1.0)
    places = start + tuple(factor * guess for factor in _OUTWARDS)
    return Trajectory(f"sizes {low} to {high}", lambda place: interpolate(first, last, place), places)


def _vary_by_severity(operation: Operation, level: int, size: int) -> Trajectory | None:
    """Return the trajectory towards the neighbouring severities; None if those are of another kind."""
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
    """Return the `known` sizes on both sides of `size`; beyond them, and from 224 on, the nearest two."""
    ordered = sorted(known)
    index = min(max(bisect_right(ordered, size) - 1, 0), len(ordered) - 2)
    return ordered[index], ordered[index + 1]


def _find_alike(rows: Sequence[Any], level: int) -> tuple[int, int]:
    """Return the first and last severity around `level` whose zeros are in the same places.

    A constant of zero switches something off, such as mud in spatter, so there is nothing in between.
    """

    def zeros(each: int) -> list[str]:
        return [name for name, value in select_numbers(rows[each - 1]).items() if not value]

    first = last = level
    while first > 1 and zeros(first - 1) == zeros(level):
        first -= 1
    while last < len(rows) and zeros(last + 1) == zeros(level):
        last += 1
    return first, last


def interpolate(low: Any, high: Any, fraction: float) -> Constants:
    """Return constants between the parameter objects `low` (fraction 0) and `high` (fraction 1), and beyond.

    Positive numbers use equal factors, others equal steps; floats keep four digits; whole numbers are rounded
    and stay at least 1 if they were.
    """
    whole = {field.name for field in dataclasses.fields(low) if field.type is int}
    ends, ranges = (select_numbers(low), select_numbers(high)), find_ranges(low)
    moved = {name: move_number(ends[0][name], ends[1][name], fraction) for name in ends[0]}
    for name, value in moved.items():
        least = int(min(ends[0][name], ends[1][name]) >= 1)
        moved[name] = max(round(value), least) if name in whole else float(f"{value:.4g}")
    limits = {name: ranges.get(name, USUAL_RANGE) for name in moved}
    return {name: min(max(value, limits[name][0]), limits[name][1]) for name, value in moved.items()}
