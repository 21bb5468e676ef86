"""Semantic segmentation: counts of pixels by class, and mean intersection over union.

Kamann and Rother, Benchmarking the Robustness of Semantic Segmentation Models, CVPR 2020, use 1 - mIoU as the
error: CD, mCD and rCD are CE, mCE and Relative CE of it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError
from robustgen.metrics.classification import Floats, array_of

IGNORED = 255
"""Label of pixels to ignore, as in Cityscapes and Pascal VOC."""


def count_pixels(
    truth: ArrayLike, predicted: ArrayLike, classes: int, ignored: int = IGNORED
) -> NDArray[np.int64]:
    """Count the pixels of each class: correct ones, those with this truth, and those with this prediction.

    Parameters
    ----------
    truth, predicted : array_like, (height, width), integer
        Labels 0 .. classes - 1. Pixels whose truth is `ignored` do not count; pixels whose prediction is
        `ignored` are wrong.
    classes : int
    ignored : int

    Returns
    -------
    ndarray, (3, classes), int64
        The counts of several images can be added.

    Raises
    ------
    ArgumentError
        The shapes differ, or there is another label.
    """
    true = array_of(truth, "labels", "iu", "height width")
    guess = array_of(predicted, "labels", "iu", "height width")
    if true.shape != guess.shape:
        raise ArgumentError(f"labels of {_size(guess)} pixels, where the truth has {_size(true)}")
    counted = true != ignored
    true, guess = true[counted].astype(np.intp), guess[counted].astype(np.intp)
    for name, labels in (("the truth has", true), ("it has", guess[guess != ignored])):
        if labels.size and (labels.min() < 0 or labels.max() >= classes):
            wrong = labels.min() if labels.min() < 0 else labels.max()
            raise ArgumentError(f"{name} label {wrong}, where {classes} classes and {ignored} are expected")
    known = guess[guess != ignored]
    columns = (true[true == guess], true, known)
    return np.stack([np.bincount(labels, minlength=classes) for labels in columns])


def _size(labels: NDArray[Any]) -> str:
    height, width = labels.shape
    return f"{width} x {height}"


def intersections_over_union(counts: ArrayLike) -> Floats:
    """Return the intersection over union of each class, from `count_pixels`; NaN for absent classes.

    Parameters
    ----------
    counts : array_like, (..., 3, classes), integer

    Returns
    -------
    ndarray, (..., classes), float64
    """
    right, has, taken = np.moveaxis(np.asarray(counts, np.float64), -2, 0)
    union = has + taken - right
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(union > 0, right / union, np.nan)
    return found


def mean_intersection_over_union(counts: ArrayLike) -> Floats:
    """Return the mean of `intersections_over_union` over the classes that occur."""
    found = intersections_over_union(counts)
    there = np.isfinite(found)
    means: Floats = np.where(there, found, 0).sum(axis=-1) / np.maximum(there.sum(axis=-1), 1)
    return means
