"""Uncertainty of a mean over images: the bootstrap, and the number of images for a given precision."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError
from robustgen.metrics.classification import Floats, array_of

__all__ = ["bootstrap_means", "draw_weights", "images_needed", "percentile_interval"]

REPLICATES: Final = 1000
"""Number of resamples, the usual one for intervals of 95 %."""
LEVEL: Final = 0.95
"""Share of the replicates inside an interval."""
NORMAL_QUANTILE: Final = 1.959963984540054
"""Half the width of the central 95 % of the normal distribution, in standard deviations."""

_MOST_ROOT: Final = 1e9


def bootstrap_means(values: ArrayLike, *, replicates: int = REPLICATES, seed: int = 0) -> Floats:
    """Return means of columns over images drawn with replacement; Efron and Tibshirani 1993, chapter 6.

    All columns, and all calls with the same seed and number of images, share their draws, so that
    differences between replicates of two models are paired.

    Parameters
    ----------
    values : array_like, (images, columns), bool, integer or float
        The values of each image.
    replicates : int
    seed : int

    Returns
    -------
    ndarray, (replicates, columns), float64

    Raises
    ------
    ArgumentError
        The values have another shape, are not finite numbers, or there is no replicate.

    Examples
    --------
    >>> from robustgen.metrics import bootstrap_means
    >>> wrong = [[True, False], [False, False], [True, True]]  # three images, two models
    >>> bootstrap_means(wrong, replicates=1000).std(axis=0).round(2)
    array([0.28, 0.27])
    """
    rows = array_of(values, "values", "fiub", "images columns")
    rows = rows.astype(np.float64, copy=False)
    if not np.isfinite(rows).all():
        raise ArgumentError("values contain NaN or infinity")
    if replicates < 1:
        raise ArgumentError(f"replicates must be 1 or more, not {replicates}")
    rng, count = np.random.default_rng(seed), len(rows)
    means = np.empty((replicates, rows.shape[1]))
    for row in means:
        times = np.bincount(rng.integers(0, count, count, np.int32), minlength=count)
        # A product of matrices would keep all cores busy, most of them waiting.
        np.einsum("i,ic->c", times, rows, out=row)
    return means / count


def draw_weights(images: int, replicates: int, seed: int = 0) -> NDArray[np.int64]:
    """Return how often each bootstrap sample contains each image, for scores that are not means over images.

    Parameters
    ----------
    images : int
        Number of images.
    replicates : int
        Number of bootstrap samples.
    seed : int

    Returns
    -------
    ndarray, (replicates, images), int64

    Raises
    ------
    ArgumentError
        `replicates` is negative.

    Examples
    --------
    >>> from robustgen.metrics import draw_weights
    >>> draw_weights(images=4, replicates=2)
    array([[0, 1, 2, 1],
           [3, 1, 0, 0]])
    """
    if replicates < 0:
        raise ArgumentError(f"replicates must be 0 or more, not {replicates}")
    rng = np.random.default_rng(seed)
    rows = [np.bincount(rng.integers(0, images, images), minlength=images) for _ in range(replicates)]
    return np.array(rows, np.int64).reshape(replicates, images)


def percentile_interval(replicates: ArrayLike, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of the central part of bootstrap replicates, column by column.

    Parameters
    ----------
    replicates : array_like, (replicates, ...), float
    level : float
        Share of the replicates in the interval.

    Returns
    -------
    low, high : ndarray, (...), float64

    Examples
    --------
    >>> from robustgen.metrics import bootstrap_means, percentile_interval
    >>> low, high = percentile_interval(bootstrap_means([[0], [1], [0], [1]]))
    >>> low, high
    (array([0.]), array([1.]))
    """
    rows = array_of(replicates, "replicates", "f", "replicates ...")
    low, high = np.quantile(rows, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def border_width(images: int) -> float:
    """Return the width of Wilson's 95 % interval for a share of 0 or 1 of so many images; Wilson 1927.

    Where no image differs from the others, bootstrap samples do not differ either.
    """
    return NORMAL_QUANTILE**2 / (images + NORMAL_QUANTILE**2)


def correct_holm(p: Sequence[float]) -> list[float]:
    """Return `p` of several tests, corrected by Holm's step-down method for their number; Holm 1979."""
    order = np.argsort(p, kind="stable")
    scaled = np.asarray(p, np.float64)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected.tolist()


def images_needed(values: ArrayLike, half_width: float) -> int:
    """Return how many images make the 95 % interval of a mean no wider than twice `half_width`.

    Uses the normal approximation: (1.96 s / half_width) squared, for the standard deviation s of the values.

    Parameters
    ----------
    values : array_like, (images,), float
        Values of a sample of at least two images.
    half_width : float
        In the unit of the values.

    Raises
    ------
    ArgumentError
        There are fewer than two values, or the width is not positive or too small for any sample.

    Examples
    --------
    >>> from robustgen.metrics import images_needed
    >>> images_needed([0, 1, 0, 1], half_width=0.01)
    12805
    """
    sample = array_of(values, "values", "fiub", "images").astype(np.float64)
    if len(sample) < 2:
        raise ArgumentError("planning needs predictions on at least two images")
    if not half_width > 0:
        raise ArgumentError(f"half_width must be positive, not {half_width}")
    return _count_images(NORMAL_QUANTILE * float(sample.std(ddof=1)) / half_width)


def images_needed_at_border(half_width: float) -> int:
    """Return how many images make Wilson's 95 % interval of a share of 0 or 1 so narrow."""
    return _count_images(NORMAL_QUANTILE * math.sqrt(max(0.0, 0.5 / half_width - 1)))


def _count_images(root: float) -> int:
    if root > _MOST_ROOT:
        raise ArgumentError(f"so narrow an interval needs more than {_MOST_ROOT**2:g} images")
    return max(2, math.ceil(root**2))
