"""ImageNet-A, ImageNet-O and OpenOOD: accuracy on some classes, and anomaly detection by confidence."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import Floats, array_of, class_set, flags_of, labels_of, logits_of
from robustgen.metrics.classification import confidences, top1_error


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
