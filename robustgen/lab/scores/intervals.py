"""Uncertainty of a report's numbers: bootstrap intervals, paired differences of models, sample sizes.

Every value of a table is linear in the errors of the variants or the flips of the perturbations. So these are
resampled, and the measures are applied to samples in the same way as to images. The draws are seeded: equal
predictions give equal intervals.

If all images contribute the same to a value, for instance because a model is wrong on all of them, samples do
not differ, and say nothing about other images. Then the interval is Wilson's for a share of 0 or 1, scaled to
the range of the value.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.lab.scores.measures import Measure
from robustgen.lab.scores.results import ModelScores
from robustgen.metrics import bootstrap_means, images_needed, percentile_interval
from robustgen.metrics.bootstrap import (
    NORMAL_QUANTILE,
    border_width,
    correct_holm,
    images_needed_at_border,
)
from robustgen.metrics.classification import Floats
from robustgen.metrics.corruption_errors import LARGEST
from robustgen.pixels.benchmarks.kinds import CLEAN

MEAN: Final = "mean"
"""The column of a measure's mean, in addition to those of the operations."""
# Replicates of equal images differ only by rounding.
_CONSTANT: Final = 1e-9


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
    """

    model: str
    other: str
    measure: str
    value: float
    interval: Interval
    p: float = 1.0


def _resample(columns: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return the means of bootstrap samples in place of the values of images."""
    if not columns:
        return {}
    means = bootstrap_means(np.stack([*columns.values()], axis=1))
    return dict(zip(columns, means.T, strict=True))


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


class Resampling:
    """Bootstrap replicates of all values of several models, on the same draws of their images.

    Parameters
    ----------
    models : sequence of ModelScores
        On the same images.
    measures : mapping of Measure to sequence of str
        And the operations in its mean.

    Attributes
    ----------
    at_border : bool
        Whether all images agree on the clean error or a mean of some model, so that its interval is Wilson's.
    """

    def __init__(self, models: Sequence[ModelScores], measures: Mapping[Measure, Sequence[str]]) -> None:
        self._models, self._measures = models, measures
        self._replicates = [
            self._columns(index, model.reduce(_resample)) for index, model in enumerate(models)
        ]
        bounds = self._find_bounds()
        self._ranges = {column: highest - lowest for column, (lowest, highest) in bounds.items()}
        self._border = border_width(models[0].count)
        self._intervals = [self._find_intervals(columns, bounds) for columns in self._replicates]
        averages = [
            rows
            for columns in self._replicates
            for column, rows in columns.items()
            if column.name in (CLEAN, MEAN)
        ]
        self.at_border = any(np.ptp(rows) < _CONSTANT for rows in averages)

    def _find_bounds(self) -> dict[Column, tuple[float, float]]:
        """Return the smallest and the largest possible value of every column."""
        bounds: dict[Column, tuple[float, float]] = {}
        for index, model in enumerate(self._models):
            columns = self._columns(index, _take_extremes(model))
            bounds |= {column: (float(each.min()), float(each.max())) for column, each in columns.items()}
        return bounds

    def _find_intervals(
        self, columns: dict[Column, Floats], bounds: dict[Column, tuple[float, float]]
    ) -> dict[Column, Interval]:
        """Return the interval of every column of a model, within its bounds."""
        ranges = np.array([self._ranges[column] for column in columns])
        low, high = self._find_ends(np.stack([*columns.values()], axis=1), ranges)
        lowest, highest = np.transpose([bounds[column] for column in columns])
        low, high = np.maximum(low, lowest), np.minimum(high, highest)
        return {
            column: Interval(*ends)
            for column, *ends in zip(columns, low.tolist(), high.tolist(), strict=True)
        }

    def _find_ends(self, replicates: Floats, ranges: float | Floats) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of values or differences from their replicates (replicates, ...).

        `ranges` are the differences between the largest and the smallest possible values, (...).
        """
        low, high = percentile_interval(replicates)
        half = np.where(high - low < _CONSTANT, self._border * np.asarray(ranges), 0)
        return low - half, high + half

    def _columns(self, index: int, samples: ModelScores) -> dict[Column, Floats]:
        """Return the replicates of every value of a model, computed as if samples were images."""
        columns: dict[Column, Floats] = {
            Column("", folder): errors for folder, errors in samples.mistakes.items()
        }
        for measure, averaged in self._measures.items():
            own = {name: measure.contributions(samples, name) for name in measure.values[index]}
            columns |= {Column(measure.key, name): each for name, each in own.items()}
            if averaged:
                columns[Column(measure.key, MEAN)] = np.mean([own[name] for name in averaged], axis=0)
        return columns

    def interval(self, index: int, measure: str, name: str) -> Interval | None:
        """Return the interval of a value of the model with index `index`; None if it has none."""
        return self._intervals[index].get(Column(measure, name))

    def errors(self, index: int) -> dict[str, Floats]:
        """Return the errors of the samples of a model by folder of a variant."""
        return {column.name: each for column, each in self._replicates[index].items() if not column.measure}

    def mean_interval(self, index: int, folders: Sequence[str]) -> Interval:
        """Return the interval of a model's mean error on some variants."""
        columns = self._replicates[index]
        rows = np.mean([columns[Column("", folder)] for folder in folders], axis=0)
        low, high = self._find_ends(rows, 1.0)
        return Interval(max(0.0, float(low)), min(1.0, float(high)))

    def pairs(self, measure: Measure) -> NDArray[np.float64] | None:
        """Return the intervals of the differences between the means of all models: (models, models, 2).

        None if the measure has no mean.
        """
        if not self._measures[measure]:
            return None
        column = Column(measure.key, MEAN)
        rows = np.stack([columns[column] for columns in self._replicates], axis=1)
        found = np.zeros((len(self._models), len(self._models), 2))
        for index in range(len(self._models)):
            found[index] = np.stack(
                self._find_ends(rows[:, index, None] - rows, self._ranges[column]), axis=1
            )
            found[index, index] = 0
        return found

    def chances(self, measure: Measure) -> list[list[float]]:
        """Return for each model the probabilities of the differences of all models from it by chance.

        They are those of the normal distribution, corrected by Holm's method for the number of other models.
        """
        column, count = Column(measure.key, MEAN), len(self._models)
        means = [measure.average(model, self._measures[measure]) for model in self._models]
        found = []
        for reference in range(count):
            others = [index for index in range(count) if index != reference]
            raw = [
                self._chance(
                    column, self._replicates[i], self._replicates[reference], means[i] - means[reference]
                )
                for i in others
            ]
            own = dict(zip(others, correct_holm(raw), strict=True))
            found.append([own.get(index, 1.0) for index in range(count)])
        return found

    def _chance(self, column: Column, own: Mapping[Column, Floats], other: Any, value: float) -> float:
        """Return the probability that chance explains a difference between the values of two models."""
        rows = own[column] - other[column]
        spread = float(rows.std(ddof=1))
        if np.ptp(rows) < _CONSTANT:
            spread = self._border * self._ranges[column] / NORMAL_QUANTILE
        return math.erfc(abs(value) / spread / math.sqrt(2)) if spread else float(value == 0)

    def drop(
        self, index: int, other: int, column: Column, value: float, least: float
    ) -> tuple[Interval, float]:
        """Return the interval of a paired difference, and the chance of one so far above `least`."""
        own, base = self._replicates[index], self._replicates[other]
        low, high = self._find_ends(own[column] - base[column], self._ranges[column])
        chance = self._chance(column, own, base, value - least) if value > least else 1.0
        return Interval(float(low), float(high)), chance

    def operation_difference(self, measure: Measure, name: str) -> Interval | None:
        """Return the interval of the second model's value minus the first's; None if one is missing."""
        column = Column(measure.key, name)
        columns = [each.get(column) for each in self._replicates[:2]]
        if len(columns) < 2 or columns[0] is None or columns[1] is None:
            return None
        low, high = self._find_ends(columns[1] - columns[0], self._ranges[column])
        return Interval(float(low), float(high))

    def differences(self) -> list[Difference]:
        """Return the differences of the means of all other models from those of the first."""
        first, found = self._models[0], []
        for measure, averaged in self._measures.items():
            chances = self.chances(measure)[0] if averaged else []
            for index, own in enumerate(self._models[1:] if averaged else [], 1):
                column = Column(measure.key, MEAN)
                rows = self._replicates[index][column] - self._replicates[0][column]
                low, high = self._find_ends(rows, self._ranges[column])
                value = measure.average(own, averaged) - measure.average(first, averaged)
                interval = Interval(float(low), float(high))
                found.append(Difference(own.model, first.model, measure.key, value, interval, chances[index]))
        return found


def find_interval(value: float, samples: Any, images: int, most: float = 1.0, least: float = 0.0) -> Interval:
    """Return the interval of a value from `least` to `most` by bootstrap samples; Wilson's if none differs.

    Values that are not means over images, such as average precision, are higher or lower in samples of few
    images, which repeat some. Their mean is therefore moved to the value.
    """
    rows = np.asarray(samples, np.float64)
    low, high = percentile_interval(rows - rows.mean() + value)
    half = border_width(images) * (most - least) if np.ptp(rows) < _CONSTANT else 0
    return Interval(max(least, float(low) - half), min(most, float(high) + half))


def plan_images(model: ModelScores, measure: Measure, averaged: Sequence[str], half_width: float) -> int:
    """Return how many images determine the mean of a measure to plus or minus `half_width`."""
    rows = np.mean([measure.contributions(model, name) for name in averaged], axis=0)
    if np.ptp(rows) < _CONSTANT:
        ends = np.mean([measure.contributions(_take_extremes(model), name) for name in averaged], axis=0)
        return images_needed_at_border(half_width / float(np.ptp(ends)))
    return images_needed(rows, half_width)
