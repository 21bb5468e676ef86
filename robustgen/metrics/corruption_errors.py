"""Scores of corruptions: ImageNet-C, MedMNIST-C, LAION-C and RoboDepth, and AlexNet's values."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

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
from robustgen.metrics.formulas import (
    AREA,
    CORRUPTION_ERROR,
    ERROR,
    RELATIVE_CORRUPTION_ERROR,
    baseline_value,
    check_positive,
    level_values,
    mean_over,
)

# --- alexNet's published values, which normalise scores --------------------------------------------


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
    """
    return float(ERROR.combine(level_values(errors, "errors", severities)))


def unnormalised_corruption_errors(mistakes: ArrayLike, *, severities: int = SEVERITIES) -> Floats:
    """Return the share of each image in `unnormalised_corruption_error`, (images,)."""
    return ERROR.combine(_mistakes(mistakes, severities))


def corruption_error(
    corruption: str, errors: ArrayLike, baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> float:
    """Return the error summed over the severities, divided by that of the baseline: CE of [C] section 4.2."""
    return float(CORRUPTION_ERROR.combine(level_values(errors, "errors"))) / CORRUPTION_ERROR.divisor(
        corruption, baseline
    )


def corruption_errors(
    corruption: str, mistakes: ArrayLike, baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> Floats:
    """Return the share of each image in `corruption_error`, (images,)."""
    return CORRUPTION_ERROR.combine(_mistakes(mistakes)) / CORRUPTION_ERROR.divisor(corruption, baseline)


def relative_corruption_error(
    corruption: str,
    errors: ArrayLike,
    clean_error: float,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> float:
    """Return the error beyond the clean one, divided by that of the baseline: Relative CE of [C] section 4.2.

    `clean_error` is the top-1 error on the clean images, a fraction. `baseline_clean_error` is that of the
    baseline, required except for AlexNet. It must be below the baseline's error on the corruption.
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

    `clean_mistakes`, (images,), are the mistakes on the clean images.
    """
    of_baseline = RELATIVE_CORRUPTION_ERROR.divisor(
        corruption, baseline, _baseline_clean(baseline, baseline_clean_error)
    )
    clean = array_of(clean_mistakes, "clean_mistakes", "bf", "images")
    return RELATIVE_CORRUPTION_ERROR.combine(_mistakes(mistakes), clean) / of_baseline


def area_under_distortion_error(clean_error: float, errors: ArrayLike) -> float:
    """Return the area under error against severity 0 to 5, over 5, by the trapezoid rule: [D] section 3.2.

    Severity 0 are the clean images, with the top-1 error `clean_error`.
    """
    return float(AREA.combine(level_values(errors, "errors"), number(clean_error, "clean_error")))


def areas_under_distortion_error(clean_mistakes: ArrayLike, mistakes: ArrayLike) -> Floats:
    """Return the share of each image in `area_under_distortion_error`, (images,)."""
    clean = array_of(clean_mistakes, "clean_mistakes", "bf", "images")
    return AREA.combine(array_of(mistakes, "mistakes", "bf", "severities images"), clean)


def mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    names: Sequence[str] = COMMON_CORRUPTIONS,
) -> float:
    """Return the mean CE over the 15 common corruptions: mCE of [C] section 4.2.

    All of `names` must be in `errors`; over other corruptions than these it is not mCE.
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
    """Return the mean Relative CE over the 15 common corruptions: Relative mCE of [C] section 4.2."""

    def score(name: str, value: ArrayLike) -> float:
        return relative_corruption_error(name, value, clean_error, baseline, baseline_clean_error)

    return mean_over(names, errors, score)


def mean_area_under_distortion_error(
    clean_error: float, errors: Mapping[str, ArrayLike], names: Sequence[str] = COMMON_CORRUPTIONS
) -> float:
    """Return the mean AUDE over the 15 common corruptions: mAUDE of [D] section 3.2."""
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


# --- medMNIST-C: balanced errors of a model, raw and relative to AlexNet's -------------------------

# Di Salvo, Doerrich and Ledig, "MedMNIST-C" (2024), and its code.

CLEAN = "clean"


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
    """
    values = bounded(scores, "scores", "images labels")
    truth: NDArray[np.int64] = array_of(labels, "labels", "iub", "images labels").astype(np.int64)
    limits = np.asarray(thresholds, np.float64)
    if truth.shape != values.shape or limits.shape not in ((), values.shape[1:]):
        raise ArgumentError(
            f"labels {truth.shape} and thresholds {limits.shape} do not match scores {values.shape}"
        )
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
    """
    mean = float(bounded(errors, "errors", "severities").mean())
    return mean / check_positive(number(baseline_value(baseline, corruption), corruption), corruption)


def relative_balanced_corruption_error(
    corruption: str, errors: ArrayLike, clean_error: float, baseline: Mapping[str, float]
) -> float:
    """Return rBE of one corruption: the loss from clean to corrupted images, divided by the baseline's.

    The baseline has a negative loss on contrast_up and gamma_corr_up of PneumoniaMNIST, so their rBE has the
    wrong sign. This comes from the published baseline.
    """
    lost = float(bounded(errors, "errors", "severities").mean()) - number(clean_error, "clean_error")
    of_baseline = baseline_value(baseline, corruption) - baseline_value(baseline, CLEAN)
    return lost / check_positive(of_baseline, corruption)


def mean_balanced_corruption_error(
    names: Sequence[str], errors: Mapping[str, ArrayLike], baseline: Mapping[str, float]
) -> float:
    """Return BE: the mean over the corruptions `names` of `balanced_corruption_error`."""
    return mean_over(names, errors, lambda name, each: balanced_corruption_error(name, each, baseline))


def mean_relative_balanced_corruption_error(
    names: Sequence[str], errors: Mapping[str, ArrayLike], clean_error: float, baseline: Mapping[str, float]
) -> float:
    """Return rBE: the mean over the corruptions `names` of `relative_balanced_corruption_error`."""

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
    """Return the 16 superclasses, ordered by their first class: name to indices of ImageNet's classes."""
    return {name: tuple(indices) for name, indices in _read_superclasses()["superclasses"].items()}


def published_accuracies() -> Mapping[str, float]:
    """Return published mean accuracies in %, by model or human, over LAION-C's distortions and severities."""
    return dict(_read_superclasses()["average_accuracy"])


def superclass_labels(labels: ArrayLike) -> Classes:
    """Return the superclass of each class of ImageNet, -1 for classes without one.

    Parameters
    ----------
    labels : array_like, (images,), int
        0 to 999, in the order of the WordNet ids.
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
    """
    rows = distributions(probabilities)
    if rows.shape[-1] != IMAGENET_CLASSES:
        raise ArgumentError(f"superclasses need {IMAGENET_CLASSES} classes, not {rows.shape[-1]}")
    return np.stack([rows[..., list(each)].mean(axis=-1) for each in list_superclasses().values()], axis=-1)


def superclass_predictions(probabilities: ArrayLike) -> Classes:
    """Return the most probable superclass, the first of equal ones; see `superclass_probabilities`."""
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
    """
    predictions = superclass_predictions(probabilities)
    if predictions.ndim != 1:
        raise ArgumentError("probabilities must have the shape (images, classes)")
    return float(np.mean(predictions == labels_of(labels, len(predictions), len(list_superclasses()))))


# --- roboDepth: errors of depth estimation over severities, and the resilience of a model ----------

# Kong et al., "RoboDepth" (NeurIPS 2023). All values are fractions.


def depth_estimation_error(relative_error: float, accuracy: float) -> float:
    """Return DEE of the absolute relative error and of the share of pixels within a factor of 1.25 (d1)."""
    return (number(relative_error, "relative_error", np.inf) - number(accuracy, "accuracy") + 1) / 2


def depth_corruption_error(errors: ArrayLike, baseline: ArrayLike) -> float:
    """Return CE of one corruption: the sum of DEE over its severities, divided by the baseline's."""
    own = bounded(errors, "errors", "severities", np.inf)
    others = bounded(baseline, "baseline", "severities", np.inf)
    if own.shape != others.shape:
        raise ArgumentError(f"errors at {len(own)} severities, the baseline's at {len(others)}")
    return float(own.sum() / check_positive(float(others.sum()), "the corruption"))


def resilience_rate(errors: ArrayLike, clean_error: float) -> float:
    """Return RR of one corruption: the mean over severities of 1 - DEE, divided by that of clean images."""
    own = bounded(errors, "errors", "severities", np.inf)
    left = 1 - number(clean_error, "clean_error", np.inf)
    return float((1 - own).mean() / check_positive(left, "clean images"))
