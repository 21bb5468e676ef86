"""The benchmarks' scores in one table: weighted sums of errors, flips or distances, divided by a baseline's.

A weighted sum is linear. So one formula gives the score of a model from its mean errors, each image's share
in that score from its mistakes, and bootstrap replicates from the errors of samples.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from robustgen.errors import ArgumentError
from robustgen.metrics.classification import SEVERITIES, Floats, bounded

Quantity = Literal["errors", "flip_probabilities", "top5_distances"]
_Value = TypeVar("_Value")

LARGEST: Final[Mapping[str, int]] = {"errors": 1, "flip_probabilities": 1, "top5_distances": 15}
"""Largest possible value of each quantity; 15 is the distance of two lists without a common class."""


@dataclass(frozen=True)
class Formula:
    """A score of one operation, and its format.

    Attributes
    ----------
    key : str
        Name in CSV and JSON.
    title : str
        Title of its table, in which ``{}`` is the baseline or the severities.
    symbol, mean : str
        Symbols of a value, and of the mean over the benchmark's operations.
    quantity : {"errors", "flip_probabilities", "top5_distances"}
    clean, last : float
        Weights added to the mean over severities: of the clean error, and of the last severity, the latter
        divided by the number of severities.
    normalised : bool
        Whether the sum is divided by the baseline's.
    any_severities : bool
        Whether it is defined for severities other than all five.
    factor, digits
        Factor and decimals in print.
    """

    key: str
    title: str
    symbol: str
    mean: str
    quantity: Quantity
    clean: Callable[[int], float] | None = None
    last: float = 0
    normalised: bool = False
    any_severities: bool = False
    factor: float = 100
    digits: int = 1

    def combine(self, values: ArrayLike, clean: ArrayLike | None = None) -> Floats:
        """Return the weighted sum over the first axis.

        Parameters
        ----------
        values : array_like, (severities, ...)
            Errors at each severity, or the single value of a sequence: of a model, of images or of samples.
        clean : array_like, (...), optional
            The same for the clean images.
        """
        rows = np.asarray(values, np.float64)
        total: Floats = rows.mean(axis=0) + self.last * rows[-1] / len(rows)
        if self.clean is not None:
            total = total + self.clean(len(rows)) * np.asarray(clean, np.float64)
        return total

    def divisor(self, name: str, baseline: Mapping[str, Any], clean: float | None = None) -> float:
        """Return the weighted sum of the baseline's values for `name`; 1 without normalisation.

        Raises
        ------
        ArgumentError
            The baseline lacks the value, or the value cannot be a divisor.
        """
        if not self.normalised:
            return 1.0
        given = np.asarray(baseline_value(baseline, name))
        levels = SEVERITIES if given.ndim else 1
        rows = level_values(np.atleast_1d(given), f"the baseline of {name}", levels, LARGEST[self.quantity])
        found = float(self.combine(rows, clean))
        if found <= 0 and self.clean is not None:
            raise ArgumentError(f"the baseline's error on {name} does not exceed its clean error")
        return check_positive(found, name)


def level_values(value: ArrayLike, name: str, severities: int = SEVERITIES, most: float = 1.0) -> Floats:
    """Return `value` as one number from 0 to `most` for each of the severities."""
    values = bounded(value, name, "severities", most)
    if len(values) != severities:
        raise ArgumentError(f"{name} must be given for all {severities} severities, not {len(values)}")
    return values


def baseline_value(baseline: Mapping[str, _Value], name: str) -> _Value:
    """Return the value of `name`; raise an ArgumentError with the known names if there is none."""
    if name not in baseline:
        raise ArgumentError(f"the baseline has no value for {name!r}; it has: {', '.join(baseline)}")
    return baseline[name]


def check_positive(value: float, name: str) -> float:
    """Return `value`, a divisor; raise an ArgumentError if it is 0."""
    if value == 0:
        raise ArgumentError(f"the baseline of {name} is 0; nothing can be divided by it")
    return value


def mean_over(
    names: Sequence[str], values: Mapping[str, _Value], score: Callable[[str, _Value], float]
) -> float:
    """Return the mean of `score` over the operations `names`, all of which must have `values`."""
    if not names:
        raise ArgumentError("a mean needs at least one operation")
    missing = [name for name in names if name not in values]
    if missing:
        raise ArgumentError(f"a mean over {len(names)} needs them all; missing: {', '.join(missing)}")
    return fmean(score(name, values[name]) for name in names)


CORRUPTION_ERROR: Final = Formula(
    "corruption_error", "Corruption error (CE) in %, normalised by {}", "CE", "mCE", "errors", normalised=True
)
ERROR: Final = Formula(
    "error",
    "Top-1 error in %, mean over {}, unnormalised",
    "Error",
    "Mean error",
    "errors",
    any_severities=True,
)
RELATIVE_CORRUPTION_ERROR: Final = Formula(
    "relative_corruption_error",
    "Relative corruption error in %, normalised by {}",
    "Rel. CE",
    "Rel. mCE",
    "errors",
    clean=lambda _: -1.0,
    normalised=True,
)
# The trapezoid rule over severities 0 to n: either end has half the weight.
AREA: Final = Formula(
    "area_under_distortion_error",
    "Area under the error curve (AUDE) in %, unnormalised",
    "AUDE",
    "mAUDE",
    "errors",
    clean=lambda severities: 0.5 / severities,
    last=-0.5,
)
FLIP_RATE: Final = Formula(
    "flip_rate", "Flip rate (FR) in %, normalised by {}", "FR", "mFR", "flip_probabilities", normalised=True
)
FLIP_PROBABILITY: Final = Formula(
    "flip_probability", "Flip probability (FP) in %, unnormalised", "FP", "mFP", "flip_probabilities"
)
TOP5_RATIO: Final = Formula(
    "standardised_top5_distance",
    "Top-5 distance (T5D) in %, normalised by {}",
    "T5D",
    "mT5D",
    "top5_distances",
    normalised=True,
)
TOP5_DISTANCE: Final = Formula(
    "top5_distance",
    "Top-5 distance (uT5D), 0 to 15, unnormalised",
    "uT5D",
    "muT5D",
    "top5_distances",
    factor=1,
    digits=2,
)
FORMULAS: Final = (
    *(CORRUPTION_ERROR, ERROR, RELATIVE_CORRUPTION_ERROR, AREA),
    *(FLIP_RATE, FLIP_PROBABILITY, TOP5_RATIO, TOP5_DISTANCE),
)
"""All scores, in the order of the tables."""
