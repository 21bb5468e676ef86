"""Uncertainty of a report's numbers: bootstrap intervals, paired differences of models, sample sizes.

Every value of a table is linear in the errors of the variants or the flips of the perturbations. So these are
resampled, and the measures are applied to samples in the same way as to images. The draws are seeded: equal
predictions give equal intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.metrics import bootstrap_means, images_needed, percentile_interval
from robustgen.metrics.checks import Floats
from robustgen.scores.measures import Measure
from robustgen.scores.results import ModelScores

MEAN: Final = "mean"
"""The column of a measure's mean, in addition to those of the operations."""


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
    """Paired difference of the means of a measure between two models, on the same images."""

    model: str
    other: str
    measure: str
    value: float
    interval: Interval


def _resample(columns: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return the means of bootstrap samples in place of the values of images."""
    if not columns:
        return {}
    means = bootstrap_means(np.stack([*columns.values()], axis=1))
    return dict(zip(columns, means.T, strict=True))


class Resampling:
    """Bootstrap replicates of all values of several models, on the same draws of their images.

    Parameters
    ----------
    models : sequence of ModelScores
        On the same images.
    measures : mapping of Measure to sequence of str
        And the operations in its mean.
    """

    def __init__(self, models: Sequence[ModelScores], measures: Mapping[Measure, Sequence[str]]) -> None:
        self._models, self._measures = models, measures
        self._replicates = [
            self._columns(index, model.reduce(_resample)) for index, model in enumerate(models)
        ]
        self._intervals: list[dict[Column, Interval]] = []
        for columns in self._replicates:
            low, high = percentile_interval(np.stack([*columns.values()], axis=1))
            pairs = zip(columns, low.tolist(), high.tolist(), strict=True)
            self._intervals.append({column: Interval(*ends) for column, *ends in pairs})

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

    def pairs(self, measure: Measure) -> NDArray[np.float64] | None:
        """Return the intervals of the differences between the means of all models: (models, models, 2).

        None if the measure has no mean.
        """
        if not self._measures[measure]:
            return None
        rows = np.stack([columns[Column(measure.key, MEAN)] for columns in self._replicates], axis=1)
        found = np.zeros((len(self._models), len(self._models), 2))
        for index in range(len(self._models)):
            found[index] = np.stack(percentile_interval(rows[:, index, None] - rows), axis=1)
        return found

    def operation_difference(self, measure: Measure, name: str) -> Interval | None:
        """Return the interval of the second model's value minus the first's; None if one is missing."""
        columns = [each.get(Column(measure.key, name)) for each in self._replicates[:2]]
        if len(columns) < 2 or columns[0] is None or columns[1] is None:
            return None
        low, high = percentile_interval(columns[1] - columns[0])
        return Interval(float(low), float(high))

    def differences(self) -> list[Difference]:
        """Return the differences of the means of all other models from those of the first."""
        first, found = self._models[0], []
        for measure, averaged in self._measures.items():
            for index, own in enumerate(self._models[1:] if averaged else [], 1):
                column = Column(measure.key, MEAN)
                low, high = percentile_interval(self._replicates[index][column] - self._replicates[0][column])
                value = measure.average(own, averaged) - measure.average(first, averaged)
                interval = Interval(float(low), float(high))
                found.append(Difference(own.model, first.model, measure.key, value, interval))
        return found


def plan_images(model: ModelScores, measure: Measure, averaged: Sequence[str], half_width: float) -> int:
    """Return how many images determine the mean of a measure to plus or minus `half_width`."""
    rows = np.mean([measure.contributions(model, name) for name in averaged], axis=0)
    return images_needed(rows, half_width)
