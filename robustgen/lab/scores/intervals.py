"""Uncertainty of a report's numbers: intervals, paired differences of models, sample sizes.

Every value of a table is a mean over images of what each contributes, or the ratio of two such means. So
intervals and tests have closed forms, and a model's own do not depend on other models.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.lab.scores.measures import Measure
from robustgen.lab.scores.results import ModelScores
from robustgen.metrics import images_needed
from robustgen.metrics.bootstrap import correct_holm, images_needed_at_border
from robustgen.metrics.classification import Floats
from robustgen.metrics.corruption_errors import LARGEST
from robustgen.metrics.intervals import (
    difference_interval,
    margin_chance,
    mean_interval,
    paired_chances,
    ratio_interval,
    studentised_interval,
)
from robustgen.pixels.benchmarks.kinds import CLEAN

MEAN: Final = "mean"
"""The column of a measure's mean, in addition to those of the operations."""
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


class Column(NamedTuple):
    """Value of a model: a measure's of an operation, its mean, or the error of a variant (measure "")."""

    measure: str
    name: str


class Interval(NamedTuple):
    """The ends of a 95 % interval."""

    low: float
    high: float


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


def _take_extremes(model: ModelScores) -> ModelScores:
    """Return the scores with the extreme values of images in place of the images."""

    def take(names: Iterable[str], most: float) -> dict[str, Floats]:
        # Relative scores are smallest where the clean error is largest.
        return {name: np.array([0, 1, 1, 0] if name == CLEAN else [0, most, 0, most]) for name in names}

    return replace(
        model,
        mistakes=take(model.mistakes, 1),
        flips=take(model.flips, LARGEST["flip_probabilities"]),
        distances=take(model.distances, LARGEST["top5_distances"]),
    )


class _Values(NamedTuple):
    """Contributions of the images to a value, (images,), with the smallest and the largest contribution."""

    images: Floats
    least: float
    most: float


class Uncertainty:
    """Intervals and tests of all values of several models on the same images.

    Parameters
    ----------
    models : sequence of ModelScores
    measures : mapping of Measure to sequence of str
        And the operations in its mean.
    replicates : int
        Bootstrap samples for ratios of two models' scores.
    """

    def __init__(
        self, models: Sequence[ModelScores], measures: Mapping[Measure, Sequence[str]], replicates: int
    ) -> None:
        self._models, self.replicates, self.images = models, replicates, models[0].count
        self._measures = {measure.key: (measure, names) for measure, names in measures.items()}
        self._extremes = [*map(_take_extremes, models)]
        self._intervals = [self._find_intervals(index) for index in range(len(models))]

    def _find_intervals(self, index: int) -> dict[Column, Interval]:
        """Return the intervals of all values of a model."""
        model, found = self._models[index], dict[Column, Interval]()
        if model.mistakes:
            ends = mean_interval(np.stack([*model.mistakes.values()], axis=1))
            found |= _name_ends([Column("", folder) for folder in model.mistakes], *ends)
        for key, (measure, averaged) in self._measures.items():
            names = [*measure.values[index], *[MEAN] * bool(averaged)]
            if names:
                values = [self._values(index, Column(key, name)) for name in names]
                columns = [Column(key, name) for name in names]
                rows = np.stack([each.images for each in values], axis=1)
                low, high = mean_interval(rows, *np.transpose([each[1:] for each in values]))
                if measure.is_ratio:
                    low, high = self._find_ratios(index, measure, rows, low, high)
                found |= _name_ends(columns, low, high)
        return found

    def _find_ratios(
        self, index: int, measure: Measure, rows: Floats, low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """Return the intervals of scores divided by those of a baseline's predictions for the same images."""
        differ = np.ptp(rows, axis=0) > _CONSTANT
        if measure.is_own(self._models[index]):
            # Divided by itself, nothing is left to chance.
            return rows.mean(axis=0), rows.mean(axis=0)
        if differ.any():
            values = rows[:, differ].mean(axis=0)
            influences = rows[:, differ] - values
            if measure.formula.clean:
                low[differ], high[differ] = studentised_interval(values, influences, self.replicates)
            else:
                low[differ], high[differ] = ratio_interval(values, influences)
        return low, high

    def _values(self, index: int, column: Column) -> _Values:
        """Return what the images of a model contribute to a value."""
        if not column.measure:
            mistakes = self._models[index].mistakes[column.name]
            return _Values(np.asarray(mistakes, np.float64), 0.0, 1.0)
        measure, averaged = self._measures[column.measure]
        if column.name == MEAN:
            return self._average(index, measure, tuple(averaged))
        return self._combine(index, measure, [column.name])

    @cache  # noqa: B019 - as long as the report
    def _average(self, index: int, measure: Measure, averaged: tuple[str, ...]) -> _Values:
        """Return what the images contribute to a mean, which its interval and all differences need."""
        return self._combine(index, measure, averaged)

    def _combine(self, index: int, measure: Measure, names: Sequence[str]) -> _Values:
        """Return what the images of a model contribute to the mean of some operations."""
        contribute = measure.influences if measure.is_ratio else measure.contributions
        images = [contribute(self._models[index], name) for name in names]
        ends = np.mean([measure.contributions(self._extremes[index], name) for name in names], axis=0)
        return _Values(np.mean(images, axis=0), float(ends.min()), float(ends.max()))

    def interval(self, index: int, measure: str, name: str) -> Interval | None:
        """Return the interval of a value of the model with index `index`; None if it has none."""
        return self._intervals[index].get(Column(measure, name))

    def mean_interval(self, index: int, folders: Sequence[str]) -> Interval:
        """Return the interval of a model's mean error on some variants."""
        rows = np.mean([self._models[index].mistakes[folder] for folder in folders], axis=0)
        low, high = mean_interval(rows[:, None])
        return Interval(float(low[0]), float(high[0]))

    def method(self, measure: Measure) -> str:
        """Return the name of the method of a measure's intervals."""
        return WILSON if not measure.is_ratio else BOOTSTRAP_T if measure.formula.clean else RATIO

    # --- differences

    def difference(self, index: int, other: int, column: Column) -> Interval:
        """Return the interval of a model's value minus another's, on the same images."""
        own, base = self._values(index, column), self._values(other, column)
        return Interval(*difference_interval(base.images, own.images, *own[1:]))

    def margin(self, index: int, other: int, column: Column, least: float) -> float:
        """Return the probability by chance that a value is more than `least` above another model's."""
        own, base = self._values(index, column), self._values(other, column)
        return margin_chance(base.images, own.images, least, *own[1:])

    def smallest_chance(self, index: int, column: Column, least: float, images: int) -> float:
        """Return the smallest probability that `margin` can return for so many images."""
        _, low, high = self._values(index, column)
        if least >= high - low:
            return 1.0
        return margin_chance(np.full(images, low), np.full(images, high), least, low, high)

    def pairs(self, measure: Measure) -> NDArray[np.float64] | None:
        """Return the intervals of the differences between the means of all models: (models, models, 2).

        None if the measure has no mean.
        """
        if not self._measures[measure.key][1]:
            return None
        column, count = Column(measure.key, MEAN), len(self._models)
        values = [self._values(index, column) for index in range(count)]
        found = np.zeros((count, count, 2))
        for index in range(count):
            for other in range(index):
                own, base = values[index], values[other]
                low, high = difference_interval(base.images, own.images, *own[1:])
                found[index, other], found[other, index] = (low, high), (-high, -low)
        return found

    @cache  # noqa: B019 - as long as the report
    def chances(self, measure: Measure) -> list[list[float]]:
        """Return for each model the probabilities by chance of the differences of all models from it.

        They are corrected by Holm's method for the number of other models.
        """
        column, count = Column(measure.key, MEAN), len(self._models)
        rows = np.stack([self._values(index, column).images for index in range(count)], axis=1)
        raw = np.ones((count, count))
        for index in range(1, count):
            raw[index, :index] = raw[:index, index] = paired_chances(rows[:, :index], rows[:, index])
        found = []
        for index in range(count):
            others = [other for other in range(count) if other != index]
            own = dict(zip(others, correct_holm(raw[index, others].tolist()), strict=True))
            found.append([own.get(other, 1.0) for other in range(count)])
        return found

    def operation_difference(self, measure: Measure, name: str) -> Interval | None:
        """Return the interval of the second model's value minus the first's; None if one is missing."""
        column = Column(measure.key, name)
        return self.difference(1, 0, column) if all(column in own for own in self._intervals[:2]) else None

    def differences(self) -> list[Difference]:
        """Return the differences of the means of all other models from those of the first."""
        first, found = self._models[0], []
        for measure, averaged in self._measures.values():
            if not averaged or len(self._models) == 1:
                continue
            chances = self.chances(measure)[0]
            for index, own in enumerate(self._models[1:], 1):
                value = measure.average(own, averaged) - measure.average(first, averaged)
                interval = self.difference(index, 0, Column(measure.key, MEAN))
                found.append(Difference(own.model, first.model, measure.key, value, interval, chances[index]))
        return found


def _name_ends(columns: Sequence[Column], low: Floats, high: Floats) -> dict[Column, Interval]:
    pairs = zip(columns, low.tolist(), high.tolist(), strict=True)
    return {column: Interval(*ends) for column, *ends in pairs}


def warn_of_few(replicates: int) -> list[str]:
    """Return a warning about so few bootstrap samples that the ends of intervals are left to chance."""
    few = 0 < replicates < _FEWEST_REPLICATES
    return [f"{replicates} bootstrap samples are few: intervals vary by chance; take 1000"] * few


def plan_images(model: ModelScores, measure: Measure, averaged: Sequence[str], half_width: float) -> int:
    """Return how many images determine the mean of a measure to plus or minus `half_width`."""
    rows = np.mean([measure.contributions(model, name) for name in averaged], axis=0)
    if np.ptp(rows) < _CONSTANT:
        ends = np.mean([measure.contributions(_take_extremes(model), name) for name in averaged], axis=0)
        return images_needed_at_border(half_width / float(np.ptp(ends)))
    return images_needed(rows, half_width)
