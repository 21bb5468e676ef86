"""A score of several models on the same images: values, intervals, paired differences, sample sizes.

Every value is a mean over images of what each contributes, the ratio of two such means, or to first order
such a mean. So intervals and tests have closed forms, and a model's own do not depend on other models.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from statistics import fmean, stdev
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.display.text import Cell
from robustgen.lab.scores.results import ModelScores
from robustgen.metrics import images_needed
from robustgen.metrics.bootstrap import correct_holm, images_needed_at_border
from robustgen.metrics.classification import Floats
from robustgen.metrics.intervals import (
    difference_interval,
    margin_chance,
    mean_interval,
    paired_chances,
    ratio_interval,
    seed_variance,
    stratified_interval,
    studentised_interval,
)

MEAN: Final = "mean"
"""The name of a score's mean, in addition to those of the operations."""
FEW_IMAGES: Final = 20
"""Number of images below which intervals of means hold roughly."""
SIGNIFICANT: Final = 0.05
"""Probability by chance below which a difference is significant."""
WILSON: Final = "Wilson's; of means, with the effective number of images"
RATIO: Final = "Student's of the logarithm of the paired ratio"
BOOTSTRAP_T: Final = "bootstrap-t of the paired ratio"
STRATIFIED: Final = "normal, with pseudo-counts in each class (Agresti and Caffo)"
"""Names of the methods of intervals, for exports."""
_CONSTANT: Final = 1e-9
_FEWEST_REPLICATES: Final = 100


class Interval(NamedTuple):
    """The ends of a 95 % interval."""

    low: float
    high: float


class Contribution(NamedTuple):
    """Shares of the images in a value, which is their mean.

    Attributes
    ----------
    images : ndarray of shape (images,), float64
    least, most : float
        The smallest and the largest possible contribution.
    is_exact : bool
        Whether nothing is left to chance, as in a model's scores divided by themselves.
    seeds : ndarray of shape (2,)
        `seed_variance` of a model of several seeds.
    """

    images: Floats
    least: float
    most: float
    is_exact: bool = False
    seeds: Floats = np.zeros(2)


class Unit(NamedTuple):
    """Factor and decimals of a score in print, and 1 if the highest is the best, -1 if the lowest is."""

    factor: float = 100
    digits: int = 1
    sense: int = -1


class PublishedScore(NamedTuple):
    """The published mean of a score of a model, and its values by operation."""

    model: str
    mean: float | None
    values: Mapping[str, float] = {}


@dataclass(frozen=True)
class Difference:
    """Paired difference of the means of a measure between two models, on the same images.

    Attributes
    ----------
    model, other : str
    measure : str
    value : float
    interval : Interval
    p : float
        Probability of so large a difference by chance, corrected by Holm's method for the number of models.
    method, test : str
        Names of the methods of the interval and of `p`.
    """

    model: str
    other: str
    measure: str
    value: float
    interval: Interval
    p: float = 1.0
    method: str = "Newcombe's of single variants, Student's of means"
    test: str = "exact sign-flip test (McNemar's) while few images differ, Student's paired test of more"


@dataclass(frozen=True, eq=False)
class Score:
    """A score of all models: their values of each operation, and the means of these.

    Attributes
    ----------
    key, head : str
        Name in JSON, CSV and conditions, and heading of the mean.
    unit : Unit
    names : tuple of str
        The operations in the mean, which all models have; empty if values have no mean.
    values : tuple of dict
        For each model, its values by operation; empty if there is only a mean.
    means : tuple of float or None
        The mean of each model.
    contribute : callable
        What the images of the model with an index contribute to an operation, or to `MEAN`.
    replicates : int
        Bootstrap samples of what is resampled; 0 for no intervals.
    title, symbol : str
        Title of its table, and heading of the values of a single model.
    group, base : str
        The other family of corruptions that it belongs to, and the model that normalises it; or empty.
    method : str
        Name of the method of its intervals.
    published : tuple of PublishedScore
        Published values, by model or human.
    on_demand : bool
        Whether published values are shown only if a comparison is asked for.
    labels : sequence of ndarray
        True classes of the images of each model, (images,), if errors are balanced.
    deviations : dict of int to dict
        For each model with seeds, the standard deviations over these of its values and of `MEAN`.
    """

    key: str
    head: str
    unit: Unit
    names: tuple[str, ...]
    values: tuple[Mapping[str, float], ...]
    means: tuple[float | None, ...]
    contribute: Callable[[int, str], Contribution]
    replicates: int = 0
    title: str = ""
    symbol: str = ""
    group: str = ""
    base: str = ""
    method: str = WILSON
    published: tuple[PublishedScore, ...] = ()
    on_demand: bool = False
    labels: Sequence[NDArray[Any] | None] = ()
    deviations: Mapping[int, Mapping[str, float]] = field(default_factory=dict)

    @property
    def full_key(self) -> str:
        """Return the key with the family before it."""
        return f"{self.group}.{self.key}" if self.group else self.key

    @property
    def has_mean(self) -> bool:
        """Return whether some model has a mean."""
        return any(mean is not None for mean in self.means)

    def value(self, index: int, name: str = MEAN) -> float | None:
        """Return a value of the model with index `index`, or its mean; None if it has none."""
        return self.means[index] if name == MEAN else self.values[index].get(name)

    def interval(self, index: int, name: str = MEAN) -> Interval | None:
        """Return the interval of a value; None if it has none."""
        return self.intervals[index].get(name)

    def cell(self, index: int, name: str = MEAN, *, with_ends: bool = True) -> Cell:
        """Return a value for a table."""
        return self.cell_of(self.value(index, name), self.interval(index, name) if with_ends else None)

    def cell_of(self, value: float | None, ends: Interval | None = None) -> Cell:
        """Return a value in the unit of the score for a table."""
        return Cell(value, ends, f".{self.unit.digits}f", self.unit.factor, self.unit.sense)

    def statistics(self, index: int) -> dict[str, dict[str, Any]]:
        """Return the values of a model with its mean, their deviations over seeds, and ends of intervals."""
        found = {"value": {**self.values[index], MEAN: self.means[index]}}
        if index in self.deviations:
            found["seed_deviation"] = {**self.deviations[index]}
        for place, end in enumerate(Interval._fields if self.replicates else ()):
            found[end] = {name: ends[place] for name, ends in self.intervals[index].items()}
        return found

    def rank(self) -> list[int]:
        """Return the indices of the models from the best mean to the worst, then those without one."""
        return sorted(
            range(len(self.means)),
            key=lambda i: (self.means[i] is None, -self.unit.sense * (self.means[i] or 0)),
        )

    # --- seeds

    def join(self, places: Sequence[Sequence[int]]) -> "Score":
        """Return the score of models of which each has seeds with some indices: means over these."""

        def average(own: Sequence[int], name: str) -> tuple[float, float] | None:
            found = [value for index in own if (value := self.value(index, name)) is not None]
            return (fmean(found), stdev(found) if len(own) > 1 else 0) if len(found) == len(own) else None

        def combine(index: int, name: str) -> Contribution:
            parts = [self.contribute(place, name) for place in places[index]]
            if len(parts) == 1:
                return parts[0]
            rows, weights = np.stack([each.images for each in parts]), np.ones(1)
            if self.method == STRATIFIED and (truth := self.labels[places[index][0]]) is not None:
                _, at, counts = np.unique(truth, return_inverse=True, return_counts=True)
                weights = len(truth) / len(counts) / counts[at]
            least, most = min(each.least for each in parts), max(each.most for each in parts)
            is_exact = all(each.is_exact for each in parts)
            return Contribution(rows.mean(axis=0), least, most, is_exact, seed_variance(rows * weights))

        whole = cache(lambda index: combine(index, MEAN))
        rows = [
            {n: each for n in (*self.values[own[0]], MEAN) if (each := average(own, n))} for own in places
        ]
        return replace(
            self,
            values=tuple({name: value for name, (value, _) in row.items() if name != MEAN} for row in rows),
            means=tuple(row[MEAN][0] if MEAN in row else None for row in rows),
            contribute=lambda index, name: whole(index) if name == MEAN else combine(index, name),
            labels=[self.labels[own[0]] for own in places] if self.labels else (),
            deviations={
                index: {name: each for name, (_, each) in rows[index].items()}
                for index, own in enumerate(places)
                if len(own) > 1
            },
        )

    # --- intervals

    @cached_property
    def intervals(self) -> tuple[dict[str, Interval], ...]:
        """Return for each model the intervals of its values and of `MEAN`."""
        return tuple(self._find_intervals(i) if self.replicates else {} for i in range(len(self.means)))

    def _find_intervals(self, index: int) -> dict[str, Interval]:
        names = [*self.values[index], *[MEAN] * (self.means[index] is not None)]
        if not names:
            return {}
        parts = [self.contribute(index, name) for name in names]
        rows = np.stack([each.images for each in parts], axis=1)
        least, most = np.transpose([each[1:3] for each in parts])
        seeds = np.transpose([each.seeds for each in parts])
        differ = np.ptp(rows, axis=0) > _CONSTANT
        if parts[0].is_exact:
            low = high = rows.mean(axis=0)
        elif self.method == STRATIFIED:
            truth = self.labels[index]
            assert truth is not None
            pairs = [stratified_interval(each.images, truth, *each[1:3], each.seeds) for each in parts]
            low, high = np.transpose(pairs)
        else:
            low, high = mean_interval(rows, least, most, seeds)
            if self.method in (RATIO, BOOTSTRAP_T) and differ.any():
                centre = rows[:, differ].mean(axis=0)
                moved, own = rows[:, differ] - centre, seeds[:, differ]
                low[differ], high[differ] = (
                    ratio_interval(centre, moved, own)
                    if self.method == RATIO
                    else studentised_interval(centre, moved, self.replicates, seeds=own)
                )
        ends = zip(names, low.tolist(), high.tolist(), strict=True)
        return {name: Interval(*pair) for name, *pair in ends}

    # --- differences

    def difference(self, index: int, other: int, name: str = MEAN) -> Interval:
        """Return the interval of a model's value minus another's, on the same images."""
        own, base = self.contribute(index, name), self.contribute(other, name)
        seeds = own.seeds + base.seeds
        return Interval(*difference_interval(base.images, own.images, own.least, own.most, seeds))

    def margin(self, index: int, other: int, name: str, least: float) -> float:
        """Return the probability by chance that a value is more than `least` above another model's."""
        own, base = self.contribute(index, name), self.contribute(other, name)
        return margin_chance(base.images, own.images, least, own.least, own.most, own.seeds + base.seeds)

    def smallest_chance(self, index: int, name: str, least: float, images: int) -> float:
        """Return the smallest probability that `margin` can return for so many images."""
        _, low, high, *_ = self.contribute(index, name)
        if least >= high - low:
            return 1.0
        return margin_chance(np.full(images, low), np.full(images, high), least, low, high)

    @property
    def can_compare(self) -> bool:
        """Return whether the differences of the means of models have intervals and tests."""
        means = len(self.means) > 1 and None not in self.means
        return means and self.replicates > 0 and self.method != STRATIFIED

    @cached_property
    def pairs(self) -> NDArray[np.float64]:
        """Return the intervals of the differences between the means of all models: (models, models, 2)."""
        count = len(self.means)
        found = np.zeros((count, count, 2))
        for index in range(count):
            for other in range(index):
                low, high = self.difference(index, other)
                found[index, other], found[other, index] = (low, high), (-high, -low)
        return found

    @cached_property
    def chances(self) -> list[list[float]]:
        """Return for each model the probabilities by chance of the differences of all models from it.

        They are corrected by Holm's method for the number of other models.
        """
        count = len(self.means)
        parts = [self.contribute(index, MEAN) for index in range(count)]
        rows, seeds = (
            np.stack(each, axis=1) for each in zip(*((p.images, p.seeds) for p in parts), strict=True)
        )
        raw = np.ones((count, count))
        for index in range(1, count):
            raw[index, :index] = raw[:index, index] = paired_chances(
                rows[:, :index], rows[:, index], seeds[:, :index] + seeds[:, [index]]
            )
        found = []
        for index in range(count):
            others = [other for other in range(count) if other != index]
            own = dict(zip(others, correct_holm(raw[index, others].tolist()), strict=True))
            found.append([own.get(other, 1.0) for other in range(count)])
        return found

    def list_differences(self, models: Sequence[ModelScores]) -> list[Difference]:
        """Return the differences of the means of all other models from those of the first."""
        if not self.can_compare:
            return []
        first, *others = ((model.model, mean or 0) for model, mean in zip(models, self.means, strict=True))
        return [
            Difference(name, first[0], self.key, mean - first[1], self.difference(at, 0), self.chances[0][at])
            for at, (name, mean) in enumerate(others, 1)
        ]

    def plan_images(self, index: int, half_width: float) -> int:
        """Return how many images determine the mean of a model to plus or minus `half_width`."""
        images, least, most, *_ = self.contribute(index, MEAN)
        if np.ptp(images) < _CONSTANT:
            return images_needed_at_border(half_width / (most - least))
        return images_needed(images, half_width)


@dataclass(frozen=True)
class ScoreGroup:
    """The scores of the benchmark, or of another family of corruptions.

    Attributes
    ----------
    name, title : str
        Name of the family, empty for the benchmark.
    scores : tuple of Score
        The first has the values of the operations.
    panels : mapping of str to tuple of str
        The operations in the means that all models have, by category.
    levels : tuple of float
        The severities that errors are averaged over.
    lacking : str
        What the means lack, in brackets; empty if nothing.
    notes : tuple of str
        Reasons why some scores are missing.
    """

    name: str
    title: str
    scores: tuple[Score, ...]
    panels: Mapping[str, tuple[str, ...]]
    levels: tuple[float, ...]
    lacking: str = ""
    notes: tuple[str, ...] = ()


def error_interval(model: ModelScores, folders: Sequence[str]) -> Interval:
    """Return the interval of a model's mean error on some variants."""
    runs = np.stack([np.mean([run.mistakes[n] for n in folders], axis=0) for run in model.runs])
    seeds = seed_variance(runs) if model.seeds else np.zeros(2)
    low, high = mean_interval(runs.mean(axis=0)[:, None], seeds=seeds)
    return Interval(float(low[0]), float(high[0]))


def warn_of_few(replicates: int) -> list[str]:
    """Return a warning about so few bootstrap samples that the ends of intervals are left to chance."""
    few = 0 < replicates < _FEWEST_REPLICATES
    return [f"{replicates} bootstrap samples are few: intervals vary by chance; take 1000"] * few
