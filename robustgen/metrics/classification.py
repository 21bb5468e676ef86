"""From logits to predictions, probabilities and top-1 errors."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import Classes, Floats, blocks, labels_of, logits_of


def top_classes(logits: ArrayLike, count: int = 5) -> Classes:
    """Return the classes of the largest logits, best first; of equal logits the lower class comes first.

    Parameters
    ----------
    logits : array_like, (..., classes), any real dtype
        Scores of the classes; minus infinity excludes a class.
    count : int
        Length of the lists.

    Returns
    -------
    ndarray, (..., count), intp
        ``[..., 0]`` are the top-1 predictions.

    Raises
    ------
    ArgumentError
        The logits contain NaN or infinity, or fewer than `count` classes.
    """
    array = logits_of(logits)
    if not 1 <= count <= array.shape[-1]:
        raise ArgumentError(f"cannot take the top {count} of {array.shape[-1]} classes")
    rows = array.reshape(-1, array.shape[-1])
    best = np.empty((len(rows), count), np.intp)
    for block in blocks(*rows.shape):
        best[block] = _largest(rows[block], count)
    return best.reshape(*array.shape[:-1], count)


def _largest(rows: NDArray[Any], count: int) -> Classes:
    """Return the `count` largest columns of each row; the first of equal ones, unlike argpartition."""
    best = np.empty((len(rows), count), np.intp)
    # Raises classes at minus infinity above those removed below.
    left, every = np.maximum(rows, np.finfo(rows.dtype).min), np.arange(len(rows))
    for rank in range(count):
        best[:, rank] = left.argmax(axis=1)
        left[every, best[:, rank]] = -np.inf
    return best


def softmax(logits: ArrayLike) -> Floats:
    """Return the probabilities of the classes.

    Parameters
    ----------
    logits : array_like, (..., classes), any real dtype

    Returns
    -------
    ndarray, (..., classes), float64

    Raises
    ------
    ArgumentError
        The logits contain NaN or infinity.
    """
    probabilities: Floats = special.softmax(logits_of(logits).astype(np.float64, copy=False), axis=-1)
    return probabilities


def confidences(logits: ArrayLike) -> Floats:
    """Return the maximum softmax probabilities; [M] section 4, [N] section 4.

    Parameters
    ----------
    logits : array_like, (images, classes), any real dtype

    Returns
    -------
    ndarray, (images,), float64

    Raises
    ------
    ArgumentError
        The logits contain NaN or infinity, or have another shape.
    """
    array = logits_of(logits, "images classes")
    return np.concatenate([softmax(array[block]).max(axis=1) for block in blocks(*array.shape)])


def top1_mistakes(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.bool_]:
    """Return which images are classified wrongly.

    Parameters
    ----------
    logits : array_like, (images, classes), any real dtype
    labels : array_like, (images,), integer
        True classes.

    Returns
    -------
    ndarray, (images,), bool

    Raises
    ------
    ArgumentError
        The logits contain NaN or infinity, a label is out of range, or a shape is wrong.
    """
    array = logits_of(logits, "images classes")
    wrong: NDArray[np.bool_] = array.argmax(axis=1) != labels_of(labels, *array.shape)
    return wrong


def top1_error(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of wrongly classified images, E of [C] section 4.2; see `top1_mistakes`."""
    return float(top1_mistakes(logits, labels).mean())
