"""Calibration of a model's confidence."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from robustgen.metrics.checks import Floats, bounded, distributions, flags_of, labels_of

CALIBRATION_BIN: Final = 100
"""Number of predictions in a bin of the RMS calibration error; [M] appendix E."""


def rms_calibration_error(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the root of the size-weighted mean squared gap between confidence and accuracy; [M] appendix E.

    Bins contain 100 predictions in order of confidence; the last one also contains the remainder. Equal
    confidences keep their given order.

    Parameters
    ----------
    confidence : array_like, (images,), float
        As returned by `confidences`.
    correct : array_like, (images,), bool
        Whether the prediction is right: ``~top1_mistakes(logits, labels)``.

    Raises
    ------
    ArgumentError
        A confidence is not a fraction, or the lengths differ.
    """
    certain = bounded(confidence, "confidence", "images")
    right = flags_of(correct, "correct", len(certain))
    order = np.argsort(certain, kind="stable")
    starts = np.arange(max(1, len(order) // CALIBRATION_BIN)) * CALIBRATION_BIN
    gaps = np.add.reduceat(certain[order] - right[order], starts)
    sizes = np.diff(starts, append=len(order))
    return float(np.sqrt((gaps**2 / sizes).sum() / len(order)))


def brier_scores(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """Return squared distances of the probability vectors from one-hot vectors; [M] appendix E.

    Parameters
    ----------
    probabilities : array_like, (images, classes), float
        As returned by `softmax`.
    labels : array_like, (images,), integer
        True classes.

    Returns
    -------
    ndarray, (images,), float64

    Raises
    ------
    ArgumentError
        A row is not a distribution, a label is out of range, or a shape is wrong.
    """
    rows = distributions(probabilities, "images classes")
    rows[np.arange(len(rows)), labels_of(labels, *rows.shape)] -= 1
    scores: Floats = np.einsum("ij,ij->i", rows, rows)
    return scores


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of `brier_scores`; same arguments."""
    return float(brier_scores(probabilities, labels).mean())
