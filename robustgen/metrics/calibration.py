"""Confidence: calibration, detection of anomalies, and means of values that arrive in chunks."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError
from robustgen.metrics.classification import (
    Floats,
    array_of,
    bounded,
    class_set,
    confidences,
    distributions,
    flags_of,
    labels_of,
    logits_of,
    top1_error,
)

__all__ = [
    "CALIBRATION_BIN", "DetectionRates", "RunningMean", "anomaly_scores", "aupr", "brier_score",
    "brier_scores", "detection_rates", "imagenet_a_accuracy", "imagenet_o_aupr", "rms_calibration_error",
]  # fmt: skip

# --- calibration of a model's confidence -----------------------------------------------------------

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

    Examples
    --------
    >>> from robustgen.metrics import rms_calibration_error
    >>> rms_calibration_error([0.9] * 10, [True] * 8 + [False] * 2)
    0.1
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

    Examples
    --------
    >>> from robustgen.metrics import brier_scores
    >>> brier_scores([[1, 0], [0.5, 0.5]], [0, 0])
    array([0. , 0.5])
    """
    rows = distributions(probabilities, "images classes")
    rows[np.arange(len(rows)), labels_of(labels, *rows.shape)] -= 1
    scores: Floats = np.einsum("ij,ij->i", rows, rows)
    return scores


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of `brier_scores`; same arguments.

    Parameters
    ----------
    probabilities : array_like, (images, classes), float
    labels : array_like, (images,), integer
        True classes.

    Examples
    --------
    >>> from robustgen.metrics import brier_score
    >>> brier_score([[1, 0], [0.5, 0.5]], [0, 0])
    0.25
    """
    return float(brier_scores(probabilities, labels).mean())


# --- ImageNet-A, ImageNet-O and OpenOOD ------------------------------------------------------------


def imagenet_a_accuracy(logits: ArrayLike, labels: ArrayLike, classes: ArrayLike) -> float:
    """Return the top-1 accuracy restricted to some of the model's classes; [N] section 4.

    Parameters
    ----------
    logits : array_like, (images, model classes), any real dtype
    labels : array_like, (images,), integer
        True classes, numbered in the order of the model's outputs.
    classes : array_like, (n,), integer
        The outputs that may be predicted: the 200 of ImageNet-A.

    Raises
    ------
    ArgumentError
        The logits contain NaN or infinity, a shape is wrong, or a label is not among `classes`.

    Examples
    --------
    >>> from robustgen.metrics import imagenet_a_accuracy
    >>> imagenet_a_accuracy([[1, 5, 2], [3, 4, 0]], [2, 0], classes=[0, 2])
    1.0
    """
    array = logits_of(logits, "images classes")
    true, chosen = labels_of(labels, *array.shape), class_set(classes, array.shape[1])
    if not np.isin(true, chosen).all():
        raise ArgumentError("labels must be among the classes, numbered in the order of the model's outputs")
    return 1 - top1_error(array[:, chosen], np.searchsorted(chosen, true))


def anomaly_scores(logits: ArrayLike, classes: ArrayLike | None = None) -> Floats:
    """Return negative maximum softmax probabilities; [N] section 4.

    Parameters
    ----------
    logits : array_like, (images, model classes), any real dtype
    classes : array_like, (n,), integer, optional
        The outputs in the softmax; default all.

    Returns
    -------
    ndarray, (images,), float64

    Raises
    ------
    ArgumentError
        The logits contain NaN or infinity, or a class is out of range.

    Examples
    --------
    >>> from robustgen.metrics import anomaly_scores
    >>> anomaly_scores([[9, 0], [1, 1]]).round(2)
    array([-1. , -0.5])
    """
    array = logits_of(logits, "images classes")
    return -confidences(array if classes is None else array[:, class_set(classes, array.shape[1])])


def aupr(scores: ArrayLike, positives: ArrayLike) -> float:
    """Return the area under the precision-recall curve: the sum of precision times the step in recall.

    Images of equal score are added to the curve together, whatever their order.

    Parameters
    ----------
    scores : array_like, (images,), float
        High for positives.
    positives : array_like, (images,), bool

    Raises
    ------
    ArgumentError
        A score is NaN, the lengths differ or there is no positive.

    Examples
    --------
    >>> from robustgen.metrics import aupr
    >>> aupr([0.9, 0.8, 0.1], [True, False, True])
    0.8333333333333333
    """
    values = array_of(scores, "scores", "fiu", "images")
    if np.isnan(values).any():
        raise ArgumentError("scores contain NaN")
    truth = flags_of(positives, "positives", len(values))
    if not truth.any():
        raise ArgumentError("no positives: there is no precision-recall curve")
    order = np.argsort(values, kind="stable")[::-1]
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(order) - 1)
    found = truth[order].cumsum()[ends]
    return float((np.diff(found, prepend=0) * found / (ends + 1)).sum() / found[-1])


def imagenet_o_aupr(
    usual_logits: ArrayLike, anomalous_logits: ArrayLike, classes: ArrayLike | None = None
) -> float:
    """Return the AUPR of `anomaly_scores` with the anomalies as positives; [N] section 4.

    Parameters
    ----------
    usual_logits : array_like, (images, classes), any real dtype
        On the ImageNet validation images of the 200 classes of ImageNet-O.
    anomalous_logits : array_like, (other images, classes), any real dtype
        On ImageNet-O.
    classes : array_like, (n,), integer, optional
        As in `anomaly_scores`.

    Raises
    ------
    ArgumentError
        As in `anomaly_scores`.

    Examples
    --------
    >>> from robustgen.metrics import imagenet_o_aupr
    >>> imagenet_o_aupr([[9, 0], [0, 9]], [[1, 1], [0, 1]])
    1.0
    """
    usual, anomalous = anomaly_scores(usual_logits, classes), anomaly_scores(anomalous_logits, classes)
    return aupr(np.concatenate([usual, anomalous]), np.arange(len(usual) + len(anomalous)) >= len(usual))


class DetectionRates(NamedTuple):
    """Measures of the separation of unknown classes (OOD) from known ones (ID) by confidence, as fractions.

    Attributes
    ----------
    fpr95 : float
        Share of ID images flagged at the threshold that flags 95 % of OOD images.
    auroc : float
        Area under the receiver operating characteristic.
    aupr_in, aupr_out : float
        Area under the precision-recall curve, with ID or with OOD images as positives.

    Examples
    --------
    >>> from robustgen.metrics import DetectionRates
    >>> rates = DetectionRates(fpr95=0.5, auroc=0.75, aupr_in=0.8, aupr_out=0.7)
    >>> rates.auroc
    0.75
    """

    fpr95: float
    auroc: float
    aupr_in: float
    aupr_out: float


def detection_rates(id_confidence: ArrayLike, ood_confidence: ArrayLike) -> DetectionRates:
    """Return the rates of OpenOOD v1.5 (Zhang et al. 2023), from scikit-learn's definitions of the curves.

    Areas use the trapezoid rule, also for precision over recall; so `aupr_out` is not `aupr`.

    Parameters
    ----------
    id_confidence : array_like, (images,), float
        High for images of known classes.
    ood_confidence : array_like, (other images,), float

    Raises
    ------
    ArgumentError
        A confidence is NaN, or there is none.

    Examples
    --------
    >>> from robustgen.metrics import detection_rates
    >>> detection_rates(id_confidence=[0.9, 0.8, 0.4], ood_confidence=[0.5, 0.1]).auroc
    0.8333333333333334
    """
    known = array_of(id_confidence, "id_confidence", "fiu", "images").astype(np.float64)
    unknown = array_of(ood_confidence, "ood_confidence", "fiu", "images").astype(np.float64)
    values = np.concatenate([known, unknown])
    if np.isnan(values).any():
        raise ArgumentError("confidences contain NaN")
    is_ood = np.arange(len(values)) >= len(known)
    hits, misses = _cumulate(-values, is_ood)
    # As in scikit-learn, thresholds in the middle of a straight part of the curve are dropped.
    corners = np.append(True, np.diff(hits, 2).astype(bool) | np.diff(misses, 2).astype(bool))
    kept = np.append(corners, True)[-len(hits) :]
    found, flagged = (np.append(0, each[kept]) / each[-1] for each in (hits, misses))
    return DetectionRates(
        float(flagged[np.argmax(found >= 0.95)]),
        float(np.trapezoid(found, flagged)),
        _precision_area(*_cumulate(values, ~is_ood)),
        _precision_area(hits, misses),
    )


def _cumulate(scores: Floats, positives: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count positives and negatives at or above each distinct score, from the highest down."""
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    hits = positives[order].cumsum()[ends]
    return hits, ends + 1 - hits


def _precision_area(hits: NDArray[np.int64], misses: NDArray[np.int64]) -> float:
    precision, recall = hits / (hits + misses), hits / hits[-1]
    return float(np.trapezoid(np.append(1, precision), np.append(0, recall)))


# --- means of values that arrive in chunks ---------------------------------------------------------


@dataclass
class RunningMean:
    """Mean of values that arrive in chunks, or in several processes.

    Attributes
    ----------
    total : float
        Sum of all values so far.
    count : int
        Number of values so far.

    Examples
    --------
    >>> from robustgen.metrics import RunningMean
    >>> mean = RunningMean()
    >>> mean.update([0, 1])
    >>> mean.update([1, 1])
    >>> mean.mean
    0.75
    """

    total: float = 0.0
    count: int = 0

    def update(self, values: ArrayLike) -> None:
        """Add one chunk.

        Parameters
        ----------
        values : array_like, any shape, bool, integer or float
            One finite value per image or sequence.

        Raises
        ------
        ArgumentError
            A value is not a finite number.
        """
        array = array_of(values, "values", "fiub", "...")
        total = float(array.sum(dtype=np.float64))
        if not np.isfinite(total):
            raise ArgumentError("values contain NaN or infinity")
        self.total, self.count = self.total + total, self.count + array.size

    def __add__(self, other: "RunningMean") -> "RunningMean":
        """Return the mean over the values of both."""
        return RunningMean(self.total + other.total, self.count + other.count)

    @property
    def mean(self) -> float:
        """Return the mean of all values so far; raise ArgumentError if there are none."""
        if self.count == 0:
            raise ArgumentError("nothing was added to this mean")
        return self.total / self.count
