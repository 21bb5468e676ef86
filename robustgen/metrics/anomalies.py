"""ImageNet-A and ImageNet-O: accuracy among some classes, and detection of anomalies by confidence."""

import numpy as np
from numpy.typing import ArrayLike

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import Floats, array_of, class_set, flags_of, labels_of, logits_of
from robustgen.metrics.classification import confidences, top1_error


def imagenet_a_accuracy(logits: ArrayLike, labels: ArrayLike, classes: ArrayLike) -> float:
    """Top-1 accuracy among some of the model's classes; [N] section 4.

    Parameters
    ----------
    logits : array_like, (images, model classes), any real dtype
    labels : array_like, (images,), integer
        True classes, numbered as the model's outputs.
    classes : array_like, (n,), integer
        The outputs that may be predicted: the 200 of ImageNet-A.

    Raises
    ------
    ArgumentError
        If the logits hold NaN or infinity, a shape is wrong or a label is not among `classes`.
    """
    array = logits_of(logits, "images classes")
    true, chosen = labels_of(labels, *array.shape), class_set(classes, array.shape[1])
    if not np.isin(true, chosen).all():
        raise ArgumentError("labels must be among the classes, numbered as the model's outputs")
    return 1 - top1_error(array[:, chosen], np.searchsorted(chosen, true))


def anomaly_scores(logits: ArrayLike, classes: ArrayLike | None = None) -> Floats:
    """Negative maximum softmax probabilities; [N] section 4.

    Parameters
    ----------
    logits : array_like, (images, model classes), any real dtype
    classes : array_like, (n,), integer, optional
        The outputs that enter the softmax; all where not given.

    Returns
    -------
    ndarray, (images,), float64

    Raises
    ------
    ArgumentError
        If the logits hold NaN or infinity, or a class is out of range.
    """
    array = logits_of(logits, "images classes")
    return -confidences(array if classes is None else array[:, class_set(classes, array.shape[1])])


def aupr(scores: ArrayLike, positives: ArrayLike) -> float:
    """Area under the precision-recall curve as average precision: sum of precision times step in recall.

    Images of equal score enter the curve together, whatever their order.

    Parameters
    ----------
    scores : array_like, (images,), float
        High for positives.
    positives : array_like, (images,), bool

    Raises
    ------
    ArgumentError
        If a score is NaN, the lengths differ or there is no positive.
    """
    values = array_of(scores, "scores", "fiu", "images")
    if np.isnan(values).any():
        raise ArgumentError("scores hold NaN")
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
    """AUPR of `anomaly_scores` with the anomalies as positives; [N] section 4.

    Parameters
    ----------
    usual_logits : array_like, (images, classes), any real dtype
        On the ImageNet validation images of the 200 classes of ImageNet-O.
    anomalous_logits : array_like, (other images, classes), any real dtype
        On ImageNet-O.
    classes : array_like, (n,), integer, optional
        As for `anomaly_scores`.

    Raises
    ------
    ArgumentError
        As `anomaly_scores`.
    """
    usual, anomalous = anomaly_scores(usual_logits, classes), anomaly_scores(anomalous_logits, classes)
    return aupr(np.concatenate([usual, anomalous]), np.arange(len(usual) + len(anomalous)) >= len(usual))
