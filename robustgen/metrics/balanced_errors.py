"""MedMNIST-C: balanced errors of a model, raw and relative to AlexNet's.

Di Salvo, Doerrich and Ledig, "MedMNIST-C" (2024), and its code.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import array_of, bounded, labels_of, number
from robustgen.metrics.formulas import baseline_value, check_positive, mean_over

CLEAN = "clean"


@lru_cache(maxsize=1)
def _read() -> dict[str, dict[str, float]]:
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
    known = _read()
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
