"""`robustgen calibrate --for-size`: constants for image sizes that have no published ones.

The search aims at the MS-SSIM that the published constants give at 224 pixels. It varies one number. First
the number moves all constants of a corruption together, as the authors moved them from one published size to
the next. If they moved nothing, or that does not reach the target, it moves towards the neighbouring
severities. No corruption needs special code.

A trajectory gives the constants of a corruption as functions of that number; the published tables decide it.
"""

import dataclasses
import math
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.display import progress
from robustgen.errors import ConfigError, ImageError
from robustgen.lab.inspection.strengths import (
    check_any,
    draw_sample,
    open_calibration,
    read_pixels,
    warn_of_losses,
)
from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS
from robustgen.pixels.benchmarks.editions import nearest_scale, prepare
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.benchmarks.parameters import USUAL_RANGE, find_ranges, move_number
from robustgen.pixels.benchmarks.registry import SCALES, SMALLEST_SIDE, Operation
from robustgen.pixels.imaging.decode import Loss
from robustgen.pixels.imaging.geometry import centre_crop, resize_shorter
from robustgen.pixels.imaging.kernels import exact
from robustgen.pixels.imaging.similarity import Reference, scales_for
from robustgen.sets.dataset.plan import Making
from robustgen.sets.dataset.recipes import CorruptionRecipe
from robustgen.settings.config import Config

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
    row_type = type(next(iter(ALL_CORRUPTIONS[name].table.values()))[0])
    names = [each.name for each in dataclasses.fields(row_type) if each.type is float]
    ranges = find_ranges(row_type)
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
    """Return the trajectory towards the neighbouring severities; None if those have other parameters."""
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


TOLERANCE: Final = 0.005
# A greater miss is never put down to chance.
MOST_SLACK: Final = 0.01
LARGEST_SIZE: Final = 1024
_STEPS: Final = 8


class Gap(NamedTuple):
    """Deviation of the mean MS-SSIM from the target, and the part due to chance; NaN without a value."""

    miss: float
    slack: float

    @property
    def closed(self) -> bool:
        """Return whether the target is reached."""
        return abs(self.miss) <= self.slack

    @property
    def size(self) -> float:
        """Return the size of the deviation, infinite without a value."""
        return abs(self.miss) if self.miss == self.miss else float("inf")


@dataclass(frozen=True)
class Match:
    """Constants for another size.

    Attributes
    ----------
    variant : Variant
    constants : dict
    target : float
        Mean MS-SSIM at 224 pixels with the published constants.
    gap : Gap
        Deviation from the target at the other size.
    way : str
        How the constants were found.
    """

    variant: Variant
    constants: Constants
    target: float
    gap: Gap
    way: str

    @property
    def reached(self) -> float:
        """Return the mean MS-SSIM at the other size."""
        return self.target + self.gap.miss


@dataclass(frozen=True)
class Proposal:
    """Constants for images of `size` x `size` pixels, and how they were found.

    `enlarged` of the `images` were too small for the size.
    """

    dataset: str
    size: int
    images: int
    enlarged: int
    seed: int
    matches: tuple[Match, ...]
    failures: dict[str, str]

    @property
    def scales(self) -> int:
        """Return the number of MS-SSIM scales: as many as fit into both sizes."""
        return scales_for(min(self.size, PUBLISHED_SIZE))


def search(gap: Callable[[float], Gap], places: Sequence[float]) -> tuple[float, Gap]:
    """Return the place where the gap is closed, or nearly so, and the gap there."""
    return _choose_best([*_try_places(gap, places).items()])


def _try_places(gap: Callable[[float], Gap], places: Sequence[float]) -> dict[float, Gap]:
    """Return the gaps at all places that were tried, in order.

    The search ends when one place is good enough, or when two neighbours are on both sides of the target; it
    then bisects between them.
    """
    known: dict[float, Gap] = {}
    for place in places:
        known[place] = gap(place)
        if known[place].closed:
            break
        # Two neighbouring places with the target between them.
        pairs = pairwise(sorted(known))
        if span := next(((a, b) for a, b in pairs if known[a].miss * known[b].miss < 0), None):
            _bisect(gap, known, *span)
            break
    return known


def _choose_best(found: Sequence[tuple[Any, Gap]]) -> tuple[Any, Gap]:
    """Return the best; one tried later must be better by more than the tolerance, or close to the target."""
    best = found[0]
    for each in found[1:]:
        near = each[1].size <= MOST_SLACK < best[1].size
        if each[1].closed or near or each[1].size < best[1].size - TOLERANCE:
            best = each
    return best


def _bisect(gap: Callable[[float], Gap], known: dict[float, Gap], low: float, high: float) -> None:
    for _ in range(_STEPS):
        middle = (low + high) / 2
        known[middle] = gap(middle)
        if known[middle].closed:
            return
        low, high = (middle, high) if known[middle].miss * known[low].miss > 0 else (low, middle)


@dataclass(frozen=True)
class Bench:
    """Images at both sizes, on which constants are measured.

    Attributes
    ----------
    keys : tuple of str
    small, large : tuple of Reference
        The images at 224 pixels and at the other size.
    size : int
    enlarged : int
        Number of images that were too small for it.
    seed : int
    overrides : mapping
        Overrides of the config; only the photographs are used.
    """

    keys: tuple[str, ...]
    small: tuple[Reference, ...]
    large: tuple[Reference, ...]
    size: int
    enlarged: int
    seed: int
    overrides: Any

    def match(self, variant: Variant) -> Match:
        """Return the constants that come nearest to the value of the published ones at 224 pixels."""
        target = self._values(variant, {}, self.small)
        found: list[tuple[Match, Gap]] = []
        for trajectory in list_trajectories(variant.name, int(variant.level), self.size):
            found += self._try(variant, target, trajectory)
            if found[-1][1].closed:
                return found[-1][0]
        nearest, gap = _choose_best(found)
        # Also the best ones on the other side of the target.
        others = sorted((e for e in found if e[1].miss * gap.miss < 0), key=lambda each: each[1].size)
        for start in (nearest, *(match for match, _ in others[:1])):
            for trajectory in vary_one_constant(variant.name, start.constants):
                found += self._try(variant, target, trajectory)
                if found[-1][1].closed:
                    return found[-1][0]
        best: Match = _choose_best(found)[0]
        return best

    def _try(
        self, variant: Variant, target: NDArray[np.float64], trajectory: Trajectory
    ) -> list[tuple[Match, Gap]]:
        """Return all results along `trajectory`; the last one closes the gap, if any does."""
        tried = _try_places(lambda place: self._gap(variant, trajectory.at(place), target), trajectory.places)
        published = select_numbers(ALL_CORRUPTIONS[variant.name].parameters(variant.level, PUBLISHED_SIZE))
        found = list[tuple[Match, Gap]]()
        for place, gap in tried.items():
            constants = trajectory.at(place)
            way = "as published" if constants == published else trajectory.way
            found.append((Match(variant, constants, float(target.mean()), gap, way), gap))
        return found

    def measure(self, variant: Variant, constants: Constants) -> Match:
        """Return the result of `constants`."""
        target = self._values(variant, {}, self.small)
        return Match(variant, constants, float(target.mean()), self._gap(variant, constants, target), "given")

    def _gap(self, variant: Variant, constants: Constants, target: NDArray[np.float64]) -> Gap:
        try:
            misses = self._values(variant, constants, self.large) - target
        except (ArithmeticError, ValueError):  # The corruption cannot use them.
            return Gap(float("nan"), TOLERANCE)
        # Other sizes mean other draws: a difference within chance is no reason to change constants.
        is_random = len(misses) > 1 and ALL_CORRUPTIONS[variant.name].random
        chance = misses.std(ddof=1) / np.sqrt(len(misses)) if is_random else 0
        return Gap(float(misses.mean()), min(max(TOLERANCE, float(chance)), MOST_SLACK))

    def _values(
        self, variant: Variant, constants: Constants, references: Sequence[Reference]
    ) -> NDArray[np.float64]:
        """Return the MS-SSIM of each image with `constants`, or with the published ones if there are none.

        An image has the same random stream at both sizes, to reduce the influence of chance.
        """
        own = self.overrides.get(variant.name, {}).get(variant.level, {})
        kept = {name: value for name, value in own.items() if not isinstance(value, (int, float))}
        overrides = {variant.name: {variant.level: kept | constants}}
        recipe = CorruptionRecipe("imagenet", self.seed, None, overrides)
        pairs = zip(self.keys, references, strict=True)
        return np.array(
            [each.similarity(recipe.make(variant, key, each.image)).ms_ssim for key, each in pairs]
        )


def propose_constants(config: Config, size: int, sample: int = 20) -> Proposal:
    """Return constants for images of `size` x `size` pixels that are as strong as the published ones at 224.

    Parameters
    ----------
    config : Config
        Defines the images, the corruptions, the severities and the seed.
    size : int
    sample : int
        Number of images to measure.

    Raises
    ------
    RobustgenError
        As in `measure_strengths`; or the size is out of range, or has published constants.
    """
    if size in SCALES or not SMALLEST_SIDE <= size <= LARGEST_SIZE:
        known = ", ".join(map(str, sorted(SCALES)))
        allowed = f"{SMALLEST_SIDE} to {LARGEST_SIZE}; {known} have published constants"
        raise ConfigError(f"--for-size {size}: must be from {allowed}")
    making = open_calibration(config)
    if finer := [each.level for each in making.variants if each.level != int(each.level)]:
        raise ConfigError(f"--severities {finer[0]}: --for-size proposes constants only for whole severities")
    return _propose(making, config, size, sample, Bench.match)


def remeasure_constants(
    config: Config, size: int, constants: Mapping[str, Mapping[str, Mapping[str, float]]], sample: int = 20
) -> Proposal:
    """Return the results of `constants` (corruption to severity to constants) at `size`."""

    def measure(bench: Bench, variant: Variant) -> Match:
        return bench.measure(variant, dict(constants[variant.name][str(variant.level)]))

    return _propose(open_calibration(config), config, size, sample, measure)


def _propose(
    making: Making, config: Config, size: int, sample: int, match: Callable[[Bench, Variant], Match]
) -> Proposal:
    """Return the results of `match` for all variants, with a progress bar on a terminal."""
    bench, failures = _bench(making, config.seed, size, sample)
    check_any(bench.keys, making, failures)
    pool = ThreadPoolExecutor(config.jobs or os.cpu_count() or 1)
    try:
        found = pool.map(partial(match, bench), making.variants)
        matches = tuple(progress.track(found, len(making.variants), "severity"))
    finally:
        pool.shutdown(cancel_futures=True)
    counts = len(bench.keys), bench.enlarged
    return Proposal(config.name_dataset(), size, *counts, config.seed, matches, failures)


def _bench(making: Making, seed: int, size: int, sample: int) -> tuple[Bench, dict[str, str]]:
    """Return the sampled images at both sizes, and the reasons why others cannot be used."""
    found, failures = dict[str, tuple[Reference, Reference]](), dict[str, str]()
    losses = dict[str, Loss | None]()
    enlarged, shorter = 0, round(size * 256 / PUBLISHED_SIZE)
    scales = scales_for(min(size, PUBLISHED_SIZE))
    keys = draw_sample(making.keys, seed, sample)
    for key, read in zip(keys, read_pixels(making, keys, losses), strict=True):
        try:
            (source,) = read()
            found[key] = (
                Reference(prepare(source, "imagenet"), scales),
                # Cropped like the edition imagenet, which crops 224 out of 256.
                Reference(centre_crop(resize_shorter(source, shorter), size, size), scales),
            )
            enlarged += min(source.shape[:2]) < shorter
        except ImageError as error:
            failures[key] = str(error)
    warn_of_losses(losses)
    small, large = (tuple(each[i] for each in found.values()) for i in (0, 1))
    recipe = making.recipe
    assert isinstance(recipe, CorruptionRecipe)
    return Bench(tuple(found), small, large, size, enlarged, seed, recipe.overrides), failures
