"""Scores of corruptions: ImageNet-C, MedMNIST-C, LAION-C and RoboDepth, and AlexNet's values."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError
from robustgen.metrics.classification import (
    COMMON_CORRUPTIONS,
    SEVERITIES,
    Classes,
    Floats,
    array_of,
    bounded,
    distributions,
    labels_of,
    number,
)
from robustgen.pixels.benchmarks.kinds import CLEAN

__all__ = [
    "ALEXNET_CLEAN_ERROR", "ALEXNET_ERROR", "ALEXNET_FLIP_PROBABILITY", "ALEXNET_TOP5_DISTANCE",
    "alexnet_balanced_errors", "area_under_distortion_error", "areas_under_distortion_error",
    "balanced_corruption_error", "balanced_error", "corruption_error", "corruption_errors",
    "depth_corruption_error", "depth_estimation_error", "list_superclasses",
    "mean_area_under_distortion_error", "mean_balanced_corruption_error", "mean_corruption_error",
    "mean_relative_balanced_corruption_error", "multi_label_balanced_error", "published_accuracies",
    "relative_balanced_corruption_error", "relative_corruption_error", "relative_corruption_errors",
    "relative_mean_corruption_error", "resilience_rate", "superclass_accuracy", "superclass_labels",
    "superclass_predictions", "superclass_probabilities", "unnormalised_corruption_error",
    "unnormalised_corruption_errors", "unnormalised_mean_corruption_error",
]  # fmt: skip

# --- formulas: weighted sums of errors, flips or distances, divided by a baseline's ----------------

# A weighted sum is linear. So one formula gives the score of a model from its mean errors, each image's share
# in that score from its mistakes, and bootstrap replicates from the errors of samples.

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


# --- AlexNet's published values, which normalise scores --------------------------------------------


def read_published(name: str) -> dict[str, Any]:
    """Return a table of published values: title, source, terms, images, and a list of models."""
    text = (files("robustgen.metrics") / "published" / f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


_ALEXNET: Final = read_published("alexnet")["models"][0]

ALEXNET_CLEAN_ERROR: Final[float] = _ALEXNET["clean_error"]
"""Top-1 error of AlexNet on clean ImageNet; [C] Table 1."""
ALEXNET_ERROR: Final[Mapping[str, float]] = MappingProxyType(_ALEXNET["errors"])
"""Top-1 error of AlexNet on ImageNet-C, mean over the five severities; [C] appendix D."""
ALEXNET_FLIP_PROBABILITY: Final[Mapping[str, float]] = MappingProxyType(_ALEXNET["flip_probabilities"])
"""Flip probability of AlexNet on ImageNet-P, at difficulty 1; [C] appendix E."""
ALEXNET_TOP5_DISTANCE: Final[Mapping[str, float]] = MappingProxyType(_ALEXNET["top5_distances"])
"""Unnormalised top-5 distance of AlexNet on ImageNet-P, at difficulty 1; [C] appendix E."""


# --- ImageNet-C: errors over severities and corruptions, raw and divided by a baseline's -----------

# `errors` are top-1 errors at severities 1 to 5, (5,), as fractions. `mistakes`, (5, images), are whether
# each image is classified wrongly at each severity, or errors of samples, one per column. Functions in the
# plural return the share of each image in the score of the same name, which is the mean of these shares.
# `baseline` maps corruptions to five errors of another model, or to their mean. Wrong shapes, errors that are
# not fractions, and baselines without a positive value raise ArgumentError.


def unnormalised_corruption_error(errors: ArrayLike, *, severities: int = SEVERITIES) -> float:
    """Return the mean error over the severities of one corruption, uCE of [M] section 4.

    A mean over a number of `severities` other than five is not uCE.

    Parameters
    ----------
    errors : array_like, (severities,), float
        Top-1 errors of the corruption by severity, fractions.
    severities : int
        Number of severities of each corruption.

    Examples
    --------
    >>> from robustgen.metrics import unnormalised_corruption_error
    >>> unnormalised_corruption_error([0.1, 0.2, 0.3, 0.4, 0.5])
    0.3
    """
    return float(ERROR.combine(level_values(errors, "errors", severities)))


def unnormalised_corruption_errors(mistakes: ArrayLike, *, severities: int = SEVERITIES) -> Floats:
    """Return the share of each image in `unnormalised_corruption_error`, (images,).

    Parameters
    ----------
    mistakes : array_like, (severities, images), bool
        Whether the model is wrong, such as `top1_mistakes`.
    severities : int
        Number of severities of each corruption.

    Examples
    --------
    >>> from robustgen.metrics import unnormalised_corruption_errors
    >>> wrong = [[False, True]] * 4 + [[True, True]]  # five severities, two images
    >>> unnormalised_corruption_errors(wrong)
    array([0.2, 1. ])
    """
    return ERROR.combine(_mistakes(mistakes, severities))


def corruption_error(
    corruption: str, errors: ArrayLike, baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> float:
    """Return the error summed over the severities, divided by that of the baseline: CE of [C] section 4.2.

    Parameters
    ----------
    corruption : str
    errors : array_like, (severities,), float
        Top-1 errors of the corruption by severity, fractions.
    baseline : mapping of str to array_like, optional
        Errors of another model by corruption: one for each severity, or their mean. Default those of AlexNet.

    Examples
    --------
    >>> from robustgen.metrics import corruption_error
    >>> round(corruption_error("fog", [0.3, 0.4, 0.5, 0.6, 0.7]), 4)  # over that of AlexNet
    0.6105
    >>> corruption_error("fog", [0.4, 0.5, 0.6, 0.7, 0.8], baseline={"fog": 0.6})
    1.0
    """
    return float(CORRUPTION_ERROR.combine(level_values(errors, "errors"))) / CORRUPTION_ERROR.divisor(
        corruption, baseline
    )


def corruption_errors(
    corruption: str, mistakes: ArrayLike, baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> Floats:
    """Return the share of each image in `corruption_error`, (images,).

    Parameters
    ----------
    corruption : str
    mistakes : array_like, (severities, images), bool
        Whether the model is wrong, such as `top1_mistakes`.
    baseline : mapping of str to array_like, optional
        Errors of another model by corruption: one for each severity, or their mean. Default those of AlexNet.

    Examples
    --------
    >>> from robustgen.metrics import corruption_errors
    >>> wrong = [[False, True]] * 4 + [[True, True]]  # five severities, two images
    >>> corruption_errors("fog", wrong).round(3)
    array([0.244, 1.221])
    """
    return CORRUPTION_ERROR.combine(_mistakes(mistakes)) / CORRUPTION_ERROR.divisor(corruption, baseline)


def relative_corruption_error(
    corruption: str,
    errors: ArrayLike,
    clean_error: float,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> float:
    """Return the error beyond the clean one, divided by that of the baseline: Relative CE of [C] section 4.2.

    Parameters
    ----------
    corruption : str
    errors : array_like, (severities,), float
        Top-1 errors of the corruption by severity, fractions.
    clean_error : float
        Top-1 error on the clean images, a fraction.
    baseline : mapping of str to array_like, optional
        Errors of another model by corruption: one for each severity, or their mean. Default those of AlexNet.
    baseline_clean_error : float, optional
        Clean error of the baseline, below its error on each corruption; required except for AlexNet.

    Examples
    --------
    >>> from robustgen.metrics import relative_corruption_error
    >>> round(relative_corruption_error("fog", [0.3, 0.4, 0.5, 0.6, 0.7], clean_error=0.25), 4)
    0.651
    """
    of_baseline = RELATIVE_CORRUPTION_ERROR.divisor(
        corruption, baseline, _baseline_clean(baseline, baseline_clean_error)
    )
    decline = RELATIVE_CORRUPTION_ERROR.combine(
        level_values(errors, "errors"), number(clean_error, "clean_error")
    )
    return float(decline) / of_baseline


def relative_corruption_errors(
    corruption: str,
    mistakes: ArrayLike,
    clean_mistakes: ArrayLike,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> Floats:
    """Return the share of each image in `relative_corruption_error`, (images,).

    Parameters
    ----------
    corruption : str
    mistakes : array_like, (severities, images), bool
        Whether the model is wrong, such as `top1_mistakes`.
    clean_mistakes : array_like, (images,), bool
        The same on the clean images.
    baseline : mapping of str to array_like, optional
        Errors of another model by corruption: one for each severity, or their mean. Default those of AlexNet.
    baseline_clean_error : float, optional
        Clean error of the baseline, below its error on each corruption; required except for AlexNet.

    Examples
    --------
    >>> from robustgen.metrics import relative_corruption_errors
    >>> wrong = [[False, True]] * 4 + [[True, True]]  # five severities, two images
    >>> relative_corruption_errors("fog", wrong, clean_mistakes=[False, True]).round(3)
    array([0.521, 0.   ])
    """
    of_baseline = RELATIVE_CORRUPTION_ERROR.divisor(
        corruption, baseline, _baseline_clean(baseline, baseline_clean_error)
    )
    clean = array_of(clean_mistakes, "clean_mistakes", "bf", "images")
    return RELATIVE_CORRUPTION_ERROR.combine(_mistakes(mistakes), clean) / of_baseline


def area_under_distortion_error(clean_error: float, errors: ArrayLike) -> float:
    """Return the area under error against severity 0 to 5, over 5, by the trapezoid rule: [D] section 3.2.

    Severity 0 are the clean images, with the top-1 error `clean_error`.

    Parameters
    ----------
    clean_error : float
        Top-1 error on the clean images, a fraction.
    errors : array_like, (severities,), float
        Top-1 errors of the corruption by severity, fractions.

    Examples
    --------
    >>> from robustgen.metrics import area_under_distortion_error
    >>> area_under_distortion_error(0.0, [0.25, 0.25, 0.5, 0.5, 1.0])
    0.4
    """
    return float(AREA.combine(level_values(errors, "errors"), number(clean_error, "clean_error")))


def areas_under_distortion_error(clean_mistakes: ArrayLike, mistakes: ArrayLike) -> Floats:
    """Return the share of each image in `area_under_distortion_error`, (images,).

    Parameters
    ----------
    clean_mistakes : array_like, (images,), bool
        The same on the clean images.
    mistakes : array_like, (severities, images), bool
        Whether the model is wrong, such as `top1_mistakes`.

    Examples
    --------
    >>> from robustgen.metrics import areas_under_distortion_error
    >>> wrong = [[False, True]] * 4 + [[True, True]]  # five severities, two images
    >>> areas_under_distortion_error([False, False], wrong)
    array([0.1, 0.9])
    """
    clean = array_of(clean_mistakes, "clean_mistakes", "bf", "images")
    return AREA.combine(array_of(mistakes, "mistakes", "bf", "severities images"), clean)


def mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    names: Sequence[str] = COMMON_CORRUPTIONS,
) -> float:
    """Return the mean CE over the 15 common corruptions: mCE of [C] section 4.2.

    All of `names` must be in `errors`; over other corruptions than these it is not mCE.

    Parameters
    ----------
    errors : mapping of str to array_like, (severities,), float
        Top-1 errors by corruption, fractions.
    baseline : mapping of str to array_like, optional
        Errors of another model by corruption: one for each severity, or their mean. Default those of AlexNet.
    names : sequence of str
        Corruptions over which the mean is taken.

    Examples
    --------
    >>> from robustgen.metrics import ALEXNET_ERROR, mean_corruption_error
    >>> half = {name: [error / 2] * 5 for name, error in ALEXNET_ERROR.items()}
    >>> mean_corruption_error(half)
    0.5
    """
    return mean_over(names, errors, lambda name, value: corruption_error(name, value, baseline))


def unnormalised_mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    names: Sequence[str] = COMMON_CORRUPTIONS,
    *,
    severities: int = SEVERITIES,
) -> float:
    """Return the mean error over corruptions and severities: the score of CIFAR-C, [M] section 4.

    It is not comparable with a published mCE.

    Parameters
    ----------
    errors : mapping of str to array_like, (severities,), float
        Top-1 errors by corruption, fractions.
    names : sequence of str
        Corruptions over which the mean is taken.
    severities : int
        Number of severities of each corruption.

    Examples
    --------
    >>> from robustgen.metrics import unnormalised_mean_corruption_error
    >>> errors = {"fog": [0.1, 0.2, 0.3, 0.4, 0.5], "snow": [0.2, 0.3, 0.4, 0.5, 0.6]}
    >>> unnormalised_mean_corruption_error(errors, names=["fog", "snow"])
    0.35
    """
    return mean_over(
        names, errors, lambda _, value: unnormalised_corruption_error(value, severities=severities)
    )


def relative_mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    clean_error: float,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
    names: Sequence[str] = COMMON_CORRUPTIONS,
) -> float:
    """Return the mean Relative CE over the 15 common corruptions: Relative mCE of [C] section 4.2.

    Parameters
    ----------
    errors : mapping of str to array_like, (severities,), float
        Top-1 errors by corruption, fractions.
    clean_error : float
        Top-1 error on the clean images, a fraction.
    baseline : mapping of str to array_like, optional
        Errors of another model by corruption: one for each severity, or their mean. Default those of AlexNet.
    baseline_clean_error : float, optional
        Clean error of the baseline, below its error on each corruption; required except for AlexNet.
    names : sequence of str
        Corruptions over which the mean is taken.

    Examples
    --------
    >>> from robustgen.metrics import ALEXNET_CLEAN_ERROR, ALEXNET_ERROR, relative_mean_corruption_error
    >>> alexnet = {name: [error] * 5 for name, error in ALEXNET_ERROR.items()}
    >>> round(relative_mean_corruption_error(alexnet, ALEXNET_CLEAN_ERROR), 9)
    1.0
    """

    def score(name: str, value: ArrayLike) -> float:
        return relative_corruption_error(name, value, clean_error, baseline, baseline_clean_error)

    return mean_over(names, errors, score)


def mean_area_under_distortion_error(
    clean_error: float, errors: Mapping[str, ArrayLike], names: Sequence[str] = COMMON_CORRUPTIONS
) -> float:
    """Return the mean AUDE over the 15 common corruptions: mAUDE of [D] section 3.2.

    Parameters
    ----------
    clean_error : float
        Top-1 error on the clean images, a fraction.
    errors : mapping of str to array_like, (severities,), float
        Top-1 errors by corruption, fractions.
    names : sequence of str
        Corruptions over which the mean is taken.

    Examples
    --------
    >>> from robustgen.metrics import mean_area_under_distortion_error
    >>> errors = {"fog": [0.2, 0.3, 0.4, 0.5, 0.6], "snow": [0.4, 0.5, 0.6, 0.7, 0.8]}
    >>> round(mean_area_under_distortion_error(0.1, errors, names=["fog", "snow"]), 4)
    0.44
    """
    return mean_over(names, errors, lambda _, value: area_under_distortion_error(clean_error, value))


def _mistakes(value: ArrayLike, severities: int = SEVERITIES) -> ArrayLike:
    wrong = array_of(value, "mistakes", "bf", "severities images")
    if len(wrong) != severities:
        raise ArgumentError(f"mistakes must be given for all {severities} severities, not {len(wrong)}")
    return wrong


def _baseline_clean(baseline: Mapping[str, ArrayLike], given: float | None) -> float:
    if given is not None:
        return number(given, "baseline_clean_error")
    # AlexNet's clean error with another model's errors would give a plausible wrong number.
    if baseline is not ALEXNET_ERROR:
        raise ArgumentError("a baseline other than AlexNet needs its own baseline_clean_error")
    return ALEXNET_CLEAN_ERROR


# --- MedMNIST-C: balanced errors of a model, raw and relative to AlexNet's -------------------------

# Di Salvo, Doerrich and Ledig, "MedMNIST-C" (2024), and its code.


@lru_cache(maxsize=1)
def _read_medmnist_errors() -> dict[str, dict[str, float]]:
    content: dict[str, dict[str, float]] = json.loads(
        Path(__file__).with_name("medmnist_c.json").read_text("utf-8")
    )
    return content


def alexnet_balanced_errors(data_set: str) -> Mapping[str, float]:
    """Return AlexNet's balanced errors on a data set of MedMNIST-C; those on its clean images are "clean".

    Parameters
    ----------
    data_set : str
        For instance ``"pathmnist"``.

    Raises
    ------
    ArgumentError
        The data set does not exist.

    Examples
    --------
    >>> from robustgen.metrics import alexnet_balanced_errors
    >>> round(alexnet_balanced_errors("pathmnist")["clean"], 4)
    0.0884
    """
    known = _read_medmnist_errors()
    if data_set not in known:
        raise ArgumentError(f"unknown data set {data_set!r} (known: {', '.join(known)})")
    return dict(known[data_set])


def balanced_error(predictions: ArrayLike, labels: ArrayLike) -> float:
    """Return one minus the mean recall of the classes that occur.

    Parameters
    ----------
    predictions : array_like, (images,), int
        The predicted class; for a binary set, whether the score of class 1 is above 0.5.
    labels : array_like, (images,), int

    Raises
    ------
    ArgumentError
        The arrays do not match.

    Examples
    --------
    >>> from robustgen.metrics import balanced_error
    >>> balanced_error([0, 0, 0, 1], labels=[0, 0, 1, 1])
    0.25
    """
    found = array_of(predictions, "predictions", "iub", "images")
    largest = int(np.max(array_of(labels, "labels", "iub", "images")))
    truth = labels_of(np.asarray(labels).astype(np.int64), len(found), largest + 1)
    return 1 - float(np.mean([np.mean(found[truth == each] == each) for each in np.unique(truth)]))


def balance_mistakes(mistakes: ArrayLike, labels: ArrayLike) -> float:
    """Return the balanced error of classification mistakes: the mean over the classes that occur.

    Parameters
    ----------
    mistakes : array_like, (images,), bool
    labels : array_like, (images,), int
    """
    truth = np.asarray(labels)
    counts = np.bincount(truth)
    wrong = np.bincount(truth, weights=np.asarray(mistakes, np.float64))
    return float(np.mean(wrong[counts > 0] / counts[counts > 0]))


def multi_label_balanced_error(scores: ArrayLike, labels: ArrayLike, thresholds: ArrayLike = 0.5) -> float:
    """Return the mean over labels of the balanced error of each label, for ChestMNIST.

    Parameters
    ----------
    scores : array_like, (images, labels), float
        Probabilities.
    labels : array_like, (images, labels), 0 or 1
    thresholds : float, or array_like, (labels,)
        A label is predicted if its score is above its threshold.

    Raises
    ------
    ArgumentError
        The arrays do not match.

    Examples
    --------
    >>> from robustgen.metrics import multi_label_balanced_error
    >>> scores, labels = [[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]]
    >>> multi_label_balanced_error(scores, labels)
    0.25
    """
    values = bounded(scores, "scores", "images labels")
    truth: NDArray[np.int64] = array_of(labels, "labels", "iub", "images labels").astype(np.int64)
    limits = np.asarray(thresholds, np.float64)
    if truth.shape != values.shape or limits.shape not in ((), values.shape[1:]):
        raise ArgumentError(f"labels {truth.shape}, thresholds {limits.shape}, but scores {values.shape}")
    found = (values > limits).astype(np.int64)
    return float(np.mean([balanced_error(found[:, each], truth[:, each]) for each in range(truth.shape[1])]))


def balanced_corruption_error(corruption: str, errors: ArrayLike, baseline: Mapping[str, float]) -> float:
    """Return BE of one corruption: the mean error over its severities, divided by the baseline's.

    Parameters
    ----------
    corruption : str
    errors : array_like, (severities,), float
        Balanced errors.
    baseline : mapping of str to float
        Mean errors by corruption, such as those of `alexnet_balanced_errors`.

    Examples
    --------
    >>> from robustgen.metrics import alexnet_balanced_errors, balanced_corruption_error
    >>> baseline = alexnet_balanced_errors("pathmnist")
    >>> round(balanced_corruption_error("pixelate", [0.1, 0.2, 0.3, 0.4, 0.5], baseline), 4)
    1.4331
    """
    mean = float(bounded(errors, "errors", "severities").mean())
    return mean / check_positive(number(baseline_value(baseline, corruption), corruption), corruption)


def relative_balanced_corruption_error(
    corruption: str, errors: ArrayLike, clean_error: float, baseline: Mapping[str, float]
) -> float:
    """Return rBE of one corruption: the loss from clean to corrupted images, divided by the baseline's.

    The baseline has a negative loss on contrast_up and gamma_corr_up of PneumoniaMNIST, so their rBE has the
    wrong sign. This comes from the published baseline.

    Parameters
    ----------
    corruption : str
    errors : array_like, (severities,), float
        Balanced errors of the corruption.
    clean_error : float
        Balanced error on the clean images.
    baseline : mapping of str to float
        Mean errors by corruption and of `clean`, such as those of `alexnet_balanced_errors`.

    Examples
    --------
    >>> from robustgen.metrics import relative_balanced_corruption_error
    >>> relative_balanced_corruption_error("fog", [0.25, 0.75], 0.25, {"fog": 0.75, "clean": 0.25})
    0.5
    """
    lost = float(bounded(errors, "errors", "severities").mean()) - number(clean_error, "clean_error")
    of_baseline = baseline_value(baseline, corruption) - baseline_value(baseline, CLEAN)
    return lost / check_positive(of_baseline, corruption)


def mean_balanced_corruption_error(
    names: Sequence[str], errors: Mapping[str, ArrayLike], baseline: Mapping[str, float]
) -> float:
    """Return BE: the mean over the corruptions `names` of `balanced_corruption_error`.

    Parameters
    ----------
    names : sequence of str
        Corruptions over which the mean is taken.
    errors : mapping of str to array_like, (severities,), float
        Balanced errors by corruption.
    baseline : mapping of str to float
        Mean errors by corruption and of `clean`, such as those of `alexnet_balanced_errors`.

    Examples
    --------
    >>> from robustgen.metrics import mean_balanced_corruption_error
    >>> errors, baseline = {"fog": [0.2, 0.4], "snow": [0.1, 0.3]}, {"fog": 0.6, "snow": 0.4}
    >>> mean_balanced_corruption_error(["fog", "snow"], errors, baseline)
    0.5
    """
    return mean_over(names, errors, lambda name, each: balanced_corruption_error(name, each, baseline))


def mean_relative_balanced_corruption_error(
    names: Sequence[str], errors: Mapping[str, ArrayLike], clean_error: float, baseline: Mapping[str, float]
) -> float:
    """Return rBE: the mean over the corruptions `names` of `relative_balanced_corruption_error`.

    Parameters
    ----------
    names : sequence of str
        Corruptions over which the mean is taken.
    errors : mapping of str to array_like, (severities,), float
        Balanced errors by corruption.
    clean_error : float
        Balanced error on the clean images.
    baseline : mapping of str to float
        Mean errors by corruption and of `clean`, such as those of `alexnet_balanced_errors`.

    Examples
    --------
    >>> from robustgen.metrics import mean_relative_balanced_corruption_error
    >>> errors, baseline = {"fog": [0.25, 0.75]}, {"fog": 0.75, "clean": 0.25}
    >>> mean_relative_balanced_corruption_error(["fog"], errors, 0.25, baseline)
    0.5
    """

    def score(name: str, each: ArrayLike) -> float:
        return relative_balanced_corruption_error(name, each, clean_error, baseline)

    return mean_over(names, errors, score)


# --- LAION-C: sixteen superclasses of ImageNet's classes, and the accuracy on them -----------------

# Li et al., "LAION-C" (ICML 2025), and its code.

IMAGENET_CLASSES: Final = 1000


@lru_cache(maxsize=1)
def _read_superclasses() -> Mapping[str, Any]:
    content: dict[str, Any] = json.loads(Path(__file__).with_name("laion_c.json").read_text("utf-8"))
    return MappingProxyType(content)


def list_superclasses() -> Mapping[str, tuple[int, ...]]:
    """Return the 16 superclasses, ordered by their first class: name to indices of ImageNet's classes.

    Examples
    --------
    >>> from robustgen.metrics import list_superclasses
    >>> len(list_superclasses()), [*list_superclasses()][:3]
    (16, ['fish', 'bird', 'snakes'])
    """
    return {name: tuple(indices) for name, indices in _read_superclasses()["superclasses"].items()}


def published_accuracies() -> Mapping[str, float]:
    """Return published mean accuracies in %, by model or human, over LAION-C's distortions and severities.

    Examples
    --------
    >>> from robustgen.metrics import published_accuracies
    >>> published_accuracies()["best human"]
    55.2
    """
    return dict(_read_superclasses()["average_accuracy"])


def superclass_labels(labels: ArrayLike) -> Classes:
    """Return the superclass of each class of ImageNet, -1 for classes without one.

    Parameters
    ----------
    labels : array_like, (images,), int
        0 to 999, in the order of the WordNet ids.

    Examples
    --------
    >>> from robustgen.metrics import superclass_labels
    >>> superclass_labels([0, 152, 281, 404])  # the last one is in none
    array([ 0,  3,  4, -1])
    """
    superclasses = np.full(IMAGENET_CLASSES, -1, np.intp)
    for index, classes in enumerate(list_superclasses().values()):
        superclasses[list(classes)] = index
    return superclasses[labels_of(labels, np.size(labels), IMAGENET_CLASSES)]


def superclass_probabilities(probabilities: ArrayLike) -> Floats:
    """Return the mean probability of the classes of each superclass.

    Parameters
    ----------
    probabilities : array_like, (..., 1000), float
        Softmax over the classes of ImageNet, in the order of their WordNet ids.

    Returns
    -------
    ndarray, (..., 16), float64

    Raises
    ------
    ArgumentError
        The rows are not distributions over 1000 classes.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.metrics import superclass_probabilities
    >>> superclass_probabilities(np.full((2, 1000), 0.001)).shape
    (2, 16)
    """
    rows = distributions(probabilities)
    if rows.shape[-1] != IMAGENET_CLASSES:
        raise ArgumentError(f"superclasses need {IMAGENET_CLASSES} classes, not {rows.shape[-1]}")
    return np.stack([rows[..., list(each)].mean(axis=-1) for each in list_superclasses().values()], axis=-1)


def superclass_predictions(probabilities: ArrayLike) -> Classes:
    """Return the most probable superclass, the first of equal ones; see `superclass_probabilities`.

    Parameters
    ----------
    probabilities : array_like, (..., 1000), float
        Probabilities of the classes of ImageNet.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.metrics import list_superclasses, superclass_predictions
    >>> boat = list_superclasses()["boat"][0]
    >>> superclass_predictions(np.eye(1000)[boat])
    array(13)
    """
    return np.asarray(superclass_probabilities(probabilities).argmax(axis=-1), np.intp)


def superclass_accuracy(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of images whose most probable superclass is the right one.

    Parameters
    ----------
    probabilities : array_like, (images, 1000), float
    labels : array_like, (images,), int
        True superclasses, 0 to 15 in the order of `list_superclasses`.

    Raises
    ------
    ArgumentError
        As in `superclass_probabilities`, or the labels do not match.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.metrics import superclass_accuracy, superclass_labels
    >>> dogs = [152, 153]
    >>> superclass_accuracy(np.eye(1000)[dogs], superclass_labels(dogs))
    1.0
    """
    predictions = superclass_predictions(probabilities)
    if predictions.ndim != 1:
        raise ArgumentError("probabilities must have the shape (images, classes)")
    return float(np.mean(predictions == labels_of(labels, len(predictions), len(list_superclasses()))))


# --- RoboDepth: errors of depth estimation over severities, and the resilience of a model ----------

# Kong et al., "RoboDepth" (NeurIPS 2023). All values are fractions.


def depth_estimation_error(relative_error: float, accuracy: float) -> float:
    """Return DEE of the absolute relative error and of the share of pixels within a factor of 1.25 (d1).

    Parameters
    ----------
    relative_error : float
        Absolute relative error.
    accuracy : float
        Share of pixels within the factor, a fraction.

    Examples
    --------
    >>> from robustgen.metrics import depth_estimation_error
    >>> depth_estimation_error(relative_error=0.25, accuracy=0.75)
    0.25
    """
    return (number(relative_error, "relative_error", np.inf) - number(accuracy, "accuracy") + 1) / 2


def depth_corruption_error(errors: ArrayLike, baseline: ArrayLike) -> float:
    """Return CE of one corruption: the sum of DEE over its severities, divided by the baseline's.

    Parameters
    ----------
    errors : array_like, (severities,), float
        DEE by severity, as of `depth_estimation_error`.
    baseline : array_like, (severities,), float
        Those of another model.

    Examples
    --------
    >>> from robustgen.metrics import depth_corruption_error
    >>> depth_corruption_error([0.25, 0.5], baseline=[0.5, 0.5])
    0.75
    """
    own = bounded(errors, "errors", "severities", np.inf)
    others = bounded(baseline, "baseline", "severities", np.inf)
    if own.shape != others.shape:
        raise ArgumentError(f"errors at {len(own)} severities, the baseline's at {len(others)}")
    return float(own.sum() / check_positive(float(others.sum()), "the corruption"))


def resilience_rate(errors: ArrayLike, clean_error: float) -> float:
    """Return RR of one corruption: the mean over severities of 1 - DEE, divided by that of clean images.

    Parameters
    ----------
    errors : array_like, (severities,), float
        DEE by severity, as of `depth_estimation_error`.
    clean_error : float
        DEE on the clean images.

    Examples
    --------
    >>> from robustgen.metrics import resilience_rate
    >>> resilience_rate([0.25, 0.5], clean_error=0.0)
    0.625
    """
    own = bounded(errors, "errors", "severities", np.inf)
    left = 1 - number(clean_error, "clean_error", np.inf)
    return float((1 - own).mean() / check_positive(left, "clean images"))
