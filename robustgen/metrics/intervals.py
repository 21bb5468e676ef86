"""Intervals of 95 % and tests of means over images, differences between models, and scores that are no means.

Each image gives one value, in which all its corruptions and severities are combined, so that images are the
unit: mistakes on the same image are not independent.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from robustgen.metrics.bootstrap import LEVEL, NORMAL_QUANTILE, bootstrap_means, border_width
from robustgen.metrics.classification import Floats

_Ends = tuple[Floats, Floats]
Seeds = Floats | tuple[float, float]
"""What seeds add to variances: an array for `seed_variance`."""
# Values that are equal but for rounding.
_EQUAL: Final = 1e-9
_NO_SEEDS: Final = (0.0, 0.0)
# Differing images up to which all signs are tried; from then on, Student's test is as good.
_FEW_DIFFERENCES: Final = 12


def student_quantile(images: int) -> float:
    """Return half the width of the central 95 % of Student's t for the mean of so many images."""
    return float(special.stdtrit(max(1, images - 1), (1 + LEVEL) / 2))


def seed_variance(values: ArrayLike) -> Floats:
    """Return what the seeds of a model add to the variance of its mean over images.

    Seeds and images are crossed random effects: beside the variance over images of the means over seeds, the
    mean has (MS_seed - MS_residual) / (seeds x images), or nothing if that is negative (Searle, Casella and
    McCulloch 1992). The degrees of freedom of the sum are Satterthwaite's (1946).

    Parameters
    ----------
    values : array_like, (seeds, images, ...), float

    Returns
    -------
    ndarray, (2, ...), float64
        The variance, and the sum of the squares of its parts, each divided by its degrees of freedom.

    Examples
    --------
    >>> from robustgen.metrics.intervals import seed_variance
    >>> seed_variance([[0, 0, 1, 1], [0, 1, 1, 1]])[0].round(4)
    array(0.)
    """
    rows = np.asarray(values, np.float64)
    seeds, images = rows.shape[:2]
    means = rows.mean(axis=1, keepdims=True)
    residuals = rows - means - rows.mean(axis=0) + means.mean(axis=0)
    # Both are mean squares, divided by the number of values.
    freedom = (seeds - 1) * max(1, images - 1)
    seed = means[:, 0].var(axis=0, ddof=1) / seeds
    residual = np.square(residuals).sum(axis=(0, 1)) / freedom / (seeds * images)
    squares = seed**2 / (seeds - 1) + residual**2 / freedom
    return np.array([np.maximum(0, seed - residual), squares])


def _add_seeds(
    variance: ArrayLike, images: int, seeds: Seeds, width: ArrayLike = 1.0
) -> tuple[Floats, Floats]:
    """Return the variance of means over images with that of seeds, and its degrees of freedom.

    The unit of `seeds` is divided by `width`.
    """
    own, scale = np.asarray(variance, np.float64), np.square(width)
    more, squares = np.asarray(seeds[0]) / scale, np.asarray(seeds[1]) / scale**2
    freedom = np.full(own.shape, max(1, images - 1), np.float64)
    total = own + more
    np.divide(total**2, own**2 / freedom + squares, out=freedom, where=squares > 0)
    return total, freedom


def _find_half(variance: ArrayLike, images: int, seeds: Seeds, width: ArrayLike = 1.0) -> Floats:
    """Return half the width of Student's interval of means over images, and seeds."""
    total, freedom = _add_seeds(variance, images, seeds, width)
    half: Floats = special.stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(total)
    return half


def wilson_interval(share: ArrayLike, count: ArrayLike, quantile: ArrayLike = NORMAL_QUANTILE) -> _Ends:
    """Return the ends of Wilson's interval of a proportion; Wilson 1927.

    Parameters
    ----------
    share : array_like, (...), float
        From 0 to 1.
    count : array_like, (...), float
        Number of images, or their effective number.
    quantile : array_like, (...), float
        Half the width of the interval, in standard deviations.

    Returns
    -------
    low, high : ndarray, (...), float64

    Examples
    --------
    >>> from robustgen.metrics.intervals import wilson_interval
    >>> [round(float(end), 3) for end in wilson_interval(0, 20)]
    [0.0, 0.161]
    """
    mean, size, squared = np.asarray(share, np.float64), np.asarray(count), np.square(quantile)
    centre = (mean + squared / size / 2) / (1 + squared / size)
    spread = mean * (1 - mean) / size + squared / size**2 / 4
    half = np.sqrt(squared * np.maximum(spread, 0)) / (1 + squared / size)
    return np.clip(np.minimum(centre - half, mean), 0, 1), np.clip(np.maximum(centre + half, mean), 0, 1)


def mean_interval(
    values: ArrayLike, least: ArrayLike = 0.0, most: ArrayLike = 1.0, seeds: Seeds = _NO_SEEDS
) -> _Ends:
    """Return the ends of the intervals of means over images.

    Values of two kinds, right and wrong, are a proportion: Wilson's interval. Others have Wilson's with the
    effective number of images and Student's quantile; Korn and Graubard 1998.

    Parameters
    ----------
    values : array_like, (images, columns), float
    least, most : array_like, (columns,) or scalar
        The smallest and the largest possible value of an image.
    seeds : array_like, (2,) or (2, columns), float
        `seed_variance` of values that are means over seeds.

    Returns
    -------
    low, high : ndarray, (columns,), float64
    """
    least, most = np.asarray(least, np.float64), np.asarray(most, np.float64)
    shares = (np.asarray(values, np.float64) - least) / (most - least)
    images, mean = len(shares), np.clip(shares.mean(axis=0), 0, 1)
    is_proportion = (np.minimum(abs(shares), abs(1 - shares)) < _EQUAL).all(axis=0)
    variance = np.square(shares - mean).sum(axis=0) / max(1, images - 1) / images
    variance, freedom = _add_seeds(variance, images, seeds, most - least)
    quantile = special.stdtrit(freedom, (1 + LEVEL) / 2)
    differ = ~is_proportion & (variance > _EQUAL**2) & (mean > 0) & (mean < 1)
    effective = np.full(mean.shape, float(images))
    np.divide(mean * (1 - mean), variance, out=effective, where=differ)
    low, high = wilson_interval(mean, effective, np.where(is_proportion, NORMAL_QUANTILE, quantile))
    return least + (most - least) * low, least + (most - least) * high


def clustered_interval(values: ArrayLike, clusters: ArrayLike) -> tuple[float, float]:
    """Return the interval of a mean over values, of which those of a cluster are drawn together.

    That of `mean_interval` over clusters, such as the images of several predictions each.

    Parameters
    ----------
    values : array_like, (values,), float
        From 0 to 1.
    clusters : array_like, (values,)
        The cluster of each value.
    """
    low, high = mean_interval(share_among_clusters(values, clusters)[:, None])
    return float(low[0]), float(high[0])


def share_among_clusters(values: ArrayLike, clusters: ArrayLike, centre: float | None = None) -> Floats:
    """Return a value for each cluster; their mean is that of all values, also if clusters differ in size.

    Parameters
    ----------
    values : array_like, (values,), float
    clusters : array_like, (values,)
        The cluster of each value.
    centre : float, optional
        Value that changes nothing. By default the mean, from which intervals measure deviations; with 0, the
        results are sums in the unit of the values, which are equal wherever two models answer alike.

    Returns
    -------
    ndarray, (clusters,), float64
    """
    shares = np.asarray(values, np.float64)
    _, places, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    start = float(shares.mean()) if centre is None else centre
    own: Floats = start + (np.bincount(places, shares) - start * sizes) / sizes.mean()
    return own


def stratified_interval(
    values: ArrayLike, labels: ArrayLike, least: float = 0.0, most: float = 1.0, seeds: Seeds = _NO_SEEDS
) -> tuple[float, float]:
    """Return the interval of the mean over classes of the means over their images.

    A class whose few images are all right is not one without errors: each class is given a share of a right
    and of a wrong answer (Agresti and Caffo 2000), a smaller one the more classes there are. Values that
    vary less than right and wrong do count as more images (Korn and Graubard 1998). Wilson's interval with
    the same variance is added, for means near the ends.

    Parameters
    ----------
    values : array_like, (images,), float
    labels : array_like, (images,), int
    least, most : float
        The smallest and the largest possible value of an image.
    seeds : array_like, (2,), float
        As in `mean_interval`.
    """
    rows, truth, width = np.asarray(values, np.float64), np.asarray(labels), most - least
    _, places, counts = np.unique(truth, return_inverse=True, return_counts=True)
    shares = np.clip((rows - least) / width, 0, 1)
    means = np.bincount(places, shares) / counts
    classes, images = len(counts), len(shares)
    within, widest = np.square(shares - means[places]).sum(), (counts * means * (1 - means)).sum()
    design = 1.0
    if within > _EQUAL and images > classes:
        design = min(1.0, within / widest * images / (images - classes))
    sizes, given = counts / design, 1 / math.sqrt(classes)
    moved = (sizes * means + given) / (sizes + 2 * given)
    variance = float((moved * (1 - moved) / (sizes + 2 * given)).sum()) / classes**2
    total, freedom = _add_seeds(variance, images, seeds, width)
    quantile = NORMAL_QUANTILE * special.stdtrit(freedom, (1 + LEVEL) / 2) / student_quantile(images)
    centre, half = float(moved.mean()), float(quantile * np.sqrt(total))
    low, high = wilson_interval(means.mean(), centre * (1 - centre) / total, quantile)
    return (
        least + width * max(0.0, min(centre - half, float(low))),
        least + width * min(1.0, max(centre + half, float(high))),
    )


def ratio_interval(values: ArrayLike, influences: ArrayLike, seeds: Seeds = _NO_SEEDS) -> _Ends:
    """Return Student's intervals of the logarithms of positive ratios of means over the same images.

    They cover better than those of the ratios, whose distribution is skewed; Katz et al. 1978.

    Parameters
    ----------
    values : array_like, (columns,), float
        Above 0.
    influences : array_like, (images, columns), float
        First-order share of each image in the deviation of the ratio from its true value; their mean is 0.
    seeds : array_like, (2,) or (2, columns), float
        As in `mean_interval`.
    """
    centre, rows = np.asarray(values, np.float64), np.asarray(influences, np.float64)
    half = _find_half(rows.var(axis=0, ddof=1) / len(rows), len(rows), seeds) / centre
    return centre * np.exp(-half), centre * np.exp(half)


def studentised_interval(
    values: ArrayLike, influences: ArrayLike, replicates: int, seed: int = 0, seeds: Seeds = _NO_SEEDS
) -> _Ends:
    """Return the bootstrap-t intervals of scores that are no means, such as ratios; Efron 1981.

    Parameters
    ----------
    values : array_like, (columns,), float
    influences : array_like, (images, columns), float
        First-order share of each image in the deviation of the score from its true value; their mean is 0.
    replicates, seed : int
        Of the bootstrap.
    seeds : array_like, (2,) or (2, columns), float
        As in `mean_interval`; the intervals of the bootstrap become wider as Student's do.
    """
    rows, centre = np.asarray(influences, np.float64), np.asarray(values, np.float64)
    images = len(rows)
    drawn = bootstrap_means(np.concatenate([rows, rows**2], axis=1), replicates=replicates, seed=seed)
    means, squares = np.split(drawn, 2, axis=1)
    spreads = np.sqrt(np.maximum(squares - means**2, 0))
    own = rows.std(axis=0)
    # Samples of one image, many times, have no spread, and say nothing.
    scaled = np.divide(means, spreads, out=np.full(means.shape, np.nan), where=spreads > _EQUAL * own)
    with np.errstate(all="ignore"):
        low, high = np.nanquantile(scaled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    widest = student_quantile(images) / math.sqrt(max(1, images - 1))
    low, high = (np.where(np.isnan(each), sign * widest, each) for each, sign in ((low, -1), (high, 1)))
    variance = own**2 / max(1, images - 1)
    own *= _find_half(variance, images, seeds) / _find_half(variance, images, _NO_SEEDS)
    return centre - np.maximum(high, 0) * own, centre - np.minimum(low, 0) * own


def newcombe_interval(first: ArrayLike, second: ArrayLike) -> tuple[float, float]:
    """Return the interval of the second share minus the first, on the same images; Newcombe 1998, method 10.

    Parameters
    ----------
    first, second : array_like, (images,), bool
    """
    one, other = np.asarray(first, bool), np.asarray(second, bool)
    count, shares = len(one), (float(np.mean(one)), float(np.mean(other)))
    (low, own_low), (high, own_high) = (np.array(each).tolist() for each in wilson_interval(shares, count))
    both, only = int((one & other).sum()), (int((one & ~other).sum()), int((other & ~one).sum()))
    neither = count - both - sum(only)
    scale = math.sqrt((both + only[0]) * (neither + only[1]) * (both + only[1]) * (neither + only[0]))
    excess = float(both * neither - only[0] * only[1])
    if excess > 0:
        # Newcombe's correction for continuity.
        excess = max(0.0, excess - count / 2)
    phi = excess / scale if scale else 0.0
    difference = shares[1] - shares[0]
    below, above = (shares[1] - own_low, high - shares[0]), (own_high - shares[1], shares[0] - low)
    ends = [math.sqrt(max(0.0, a * a - 2 * phi * a * b + b * b)) for a, b in (below, above)]
    return max(-1.0, difference - ends[0]), min(1.0, difference + ends[1])


def difference_interval(
    first: ArrayLike, second: ArrayLike, least: float, most: float, seeds: Seeds = _NO_SEEDS
) -> tuple[float, float]:
    """Return the interval of the second mean minus the first, on the same images.

    Proportions have Newcombe's interval, means Student's, cut at the largest possible difference. Where all
    images differ by the same amount, as those of equal models do, as many others may differ as Wilson's
    interval allows when none of so many does.

    Parameters
    ----------
    first, second : array_like, (images,), float
    least, most : float
        The smallest and the largest possible value of an image.
    seeds : array_like, (2,), float
        The sum of the `seed_variance` of both.
    """
    one, other, width = np.asarray(first, np.float64), np.asarray(second, np.float64), most - least
    if _are_shares(one, other, least, most):
        low, high = newcombe_interval(*((each - least) / width > 0.5 for each in (one, other)))
        return low * width, high * width
    change = other - one
    mean = float(change.mean())
    if np.ptp(change) < _EQUAL and not np.any(seeds):
        others = border_width(len(change))
        return mean - others * (width + mean), mean + others * (width - mean)
    half = float(_find_half(change.var(ddof=1) / len(change), len(change), seeds))
    return max(-width, mean - half), min(width, mean + half)


def paired_chances(values: ArrayLike, reference: ArrayLike, seeds: Seeds = _NO_SEEDS) -> Floats:
    """Return the two-sided probability by chance of the difference of each column's mean from a reference.

    While few images differ, or all by the same amount, all signs of the differences are equally probable by
    chance: the exact sign-flip test, which is McNemar's for a single variant; Fisher 1935, McNemar 1947.
    Otherwise it is Student's paired test.

    Parameters
    ----------
    values : array_like, (images, columns), float
    reference : array_like, (images,), float
    seeds : array_like, (2,) or (2, columns), float
        The sum of the `seed_variance` of both; where seeds differ, the test is Student's.

    Returns
    -------
    ndarray, (columns,), float64
    """
    changes = np.asarray(values, np.float64) - np.asarray(reference, np.float64)[:, None]
    images, sizes = len(changes), abs(changes)
    is_there = sizes > _EQUAL
    counts, means = is_there.sum(axis=0), changes.mean(axis=0)
    smallest = np.where(is_there, sizes, np.inf).min(axis=0, initial=np.inf)
    are_alike = sizes.max(axis=0, initial=0) - smallest < _EQUAL
    total, freedom = _add_seeds(changes.var(axis=0, ddof=int(images > 1)) / images, images, seeds)
    scaled = np.divide(abs(means), np.sqrt(total), out=np.zeros(means.shape), where=total > 0)
    found: Floats = 2 * special.stdtr(freedom, -scaled)
    is_exact = (are_alike | (counts <= _FEW_DIFFERENCES)) & (np.asarray(seeds[0]) == 0)
    for column in np.flatnonzero(is_exact):
        found[column] = _flip_signs(changes[is_there[:, column], column], bool(are_alike[column]))
    return found


def _flip_signs(changes: Floats, are_alike: bool) -> float:
    """Return the share of all signs that make a sum as large."""
    count = len(changes)
    if not count:
        return 1.0
    if are_alike:
        fewer = int(min((changes > 0).sum(), (changes < 0).sum()))
        return min(1.0, 2 * float(special.bdtr(fewer, count, 0.5)))
    sums = np.zeros(1)
    for change in changes:
        sums = np.concatenate([sums + change, sums - change])
    return float(np.mean(abs(sums) >= abs(changes.sum()) * (1 - _EQUAL)))


def margin_chance(
    first: ArrayLike, second: ArrayLike, margin: float, least: float, most: float, seeds: Seeds = _NO_SEEDS
) -> float:
    """Return the two-sided probability by chance that the second mean is no longer `margin` above the first.

    Proportions have Tango's score test; Tango 1998. The differences of others are shifted by the margin. No
    difference is more certain with a margin than without one, where the test is exact.

    Parameters
    ----------
    first, second : array_like, (images,), float
    margin : float
        0 or more, in the unit of the values.
    least, most : float
        The smallest and the largest possible value of an image.
    seeds : array_like, (2,), float
        As in `difference_interval`.
    """
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    exact = float(paired_chances(other[:, None], one, seeds)[0])
    if not _are_shares(one, other, least, most):
        return max(exact, float(paired_chances((other - margin)[:, None], one, seeds)[0]))
    count, delta = len(one), margin / (most - least)
    more, less = int((other - one > _EQUAL).sum()), int((one - other > _EQUAL).sum())
    half = -more - less + (2 * count - more + less) * delta
    root = math.sqrt(max(0.0, half * half + 8 * count * less * delta * (1 - delta)))
    spread = (root - half) / 2 + count * delta * (1 - delta)
    scaled = (more - less - count * delta) / math.sqrt(spread) if spread > 0 else 0.0
    return max(exact, math.erfc(abs(scaled) / math.sqrt(2)))


def logit_interval(values: ArrayLike, samples: ArrayLike, images: int, border: ArrayLike) -> _Ends:
    """Return the intervals of rates from 0 to 1 by the standard errors of their bootstrap samples.

    They are symmetric on the logit scale, as DeLong's of an AUROC are there (Pepe 2003, section 5.2), and
    Wilson's where no sample differs.

    Parameters
    ----------
    values : array_like, (columns,), float
    samples : array_like, (samples, columns), float
    images : int
        The smaller number of images of both kinds.
    border : array_like, (columns,), float
        Half of the smallest step of each rate: how near to 0 and 1 it counts.
    """
    value, rows = np.asarray(values, np.float64), np.asarray(samples, np.float64)
    moved = [special.logit(np.clip(each, border, 1 - np.asarray(border))) for each in (value, rows)]
    spread = moved[1].std(axis=0, ddof=1 if len(rows) > 1 else 0) * math.sqrt(images / max(1, images - 1))
    half = student_quantile(images) * spread
    low, high = special.expit(moved[0] - half), special.expit(moved[0] + half)
    widest = border_width(images)
    # Rates at the border differ too little in samples of few images.
    low = np.where((value > 0.5) & (spread < _EQUAL) | (value >= 1), np.minimum(low, value - widest), low)
    high = np.where((value < 0.5) & (spread < _EQUAL) | (value <= 0), np.maximum(high, value + widest), high)
    return np.clip(np.minimum(low, value), 0, 1), np.clip(np.maximum(high, value), 0, 1)


def jackknife_interval(
    value: float, left: ArrayLike, images: int, least: float = 0.0, most: float = 1.0
) -> tuple[float, float]:
    """Return the interval of a score by its values without one image, or one group of images, each.

    Student's quantile with the jackknife's standard error (Efron and Tibshirani 1993, chapter 11), or
    Wilson's width where no image matters.

    Parameters
    ----------
    value : float
    left : array_like, (groups,), float
        The score without each group.
    images : int
    least, most : float
        Bounds of the score.
    """
    rows = np.asarray(left, np.float64)
    error = math.sqrt((len(rows) - 1) / len(rows) * float(np.square(rows - rows.mean()).sum()))
    half = student_quantile(len(rows)) * error
    if error < _EQUAL:
        half = border_width(images) * (most - least)
    return max(least, value - half), min(most, value + half)


def _are_shares(first: Floats, second: Floats, least: float, most: float) -> bool:
    """Return whether all values are the smallest or the largest possible one."""
    values = np.concatenate([first, second])
    return bool((np.minimum(abs(values - least), abs(values - most)) < _EQUAL * (most - least)).all())
