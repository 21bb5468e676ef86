"""Scores of classes, of images and of pixels: predictions, probabilities, errors, segmentation."""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.kinds import IMAGENET_C, IMAGENET_P

__all__ = [
    "COMMON_CORRUPTIONS", "COMMON_PERTURBATIONS", "EXTRA_CORRUPTIONS", "EXTRA_PERTURBATIONS",
    "NOISE_PERTURBATIONS", "SEVERITIES", "confidences", "count_pixels", "intersections_over_union",
    "jensen_shannon", "mean_intersection_over_union", "softmax", "top1_error", "top1_mistakes", "top_classes",
]  # fmt: skip

# --- validation of arguments: arrays of the right dtype, shape and range, or an ArgumentError ------

Floats: TypeAlias = NDArray[np.float64]


Classes: TypeAlias = NDArray[np.intp]


def array_of(value: ArrayLike, name: str, types: str, axes: str) -> NDArray[Any]:
    """Return `value` as an array.

    `types` has the letters of NumPy for the allowed types, and `axes` a word per axis ("..." for any).
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} cannot be converted to an array: {error}") from error
    if array.dtype.kind not in types:
        wanted = "numbers" if "f" in types else "truth values" if "b" in types else "integers"
        raise ArgumentError(f"{name} must contain {wanted}, not {array.dtype}")
    if not _fits(array.shape, axes.split()):
        shape = ", ".join(axes.split())
        raise ArgumentError(f"{name} must have the shape ({shape}), none of them 0, not {array.shape}")
    return array


def _fits(shape: tuple[int, ...], axes: list[str]) -> bool:
    enough = len(shape) >= len(axes) - 1 if "..." in axes else len(shape) == len(axes)
    return enough and 0 not in shape


def logits_of(value: ArrayLike, axes: str = "... classes") -> NDArray[Any]:
    """Return `value` as floating-point logits; minus infinity excludes a class, NaN and infinity raise."""
    array = array_of(value, "logits", "fiu", axes)
    if not np.isfinite(array.max(axis=-1)).all():
        raise ArgumentError("logits contain NaN or infinity")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def labels_of(value: ArrayLike, images: int, classes: int) -> Classes:
    """Return `value` as true classes, (images,), each in 0 .. classes - 1."""
    labels = array_of(value, "labels", "iu", "images")
    if len(labels) != images:
        raise ArgumentError(f"{len(labels)} labels for {images} images")
    if labels.min() < 0 or labels.max() >= classes:
        raise ArgumentError(f"labels must be 0 to {classes - 1}, not {labels.min()} to {labels.max()}")
    return labels.astype(np.intp)


def class_set(value: ArrayLike, classes: int) -> Classes:
    """Return `value` in ascending order, which breaks ties between logits."""
    chosen = np.sort(array_of(value, "classes", "iu", "classes"))
    if chosen[0] < 0 or chosen[-1] >= classes or (chosen[1:] == chosen[:-1]).any():
        raise ArgumentError(f"classes must be distinct indices from 0 to {classes - 1}")
    return chosen.astype(np.intp)


def bounded(value: ArrayLike, name: str, axes: str, most: float = 1.0) -> Floats:
    """Return `value` as float64 numbers from 0 to `most`."""
    array = array_of(value, name, "fiu", axes).astype(np.float64)
    if not (array.min() >= 0 and array.max() <= most):
        hint = " (fractions, not per cent)" if most == 1 else ""
        raise ArgumentError(f"{name} must be 0 to {most:g}{hint}, not {array.min():g} to {array.max():g}")
    return array


def number(value: float, name: str, most: float = 1.0) -> float:
    """Return `value` as one number from 0 to `most`."""
    return float(bounded([value], name, "number", most)[0])


def distributions(value: ArrayLike, axes: str = "... classes") -> Floats:
    """Return `value` as probabilities that sum to 1 over the last axis."""
    rows = bounded(value, "probabilities", axes)
    # Wide enough for float16 outputs, narrow enough to catch logits.
    if np.abs(rows.sum(axis=-1) - 1).max() > 0.01:
        raise ArgumentError("probabilities must sum to 1 over the classes (use softmax on logits)")
    return rows


def flags_of(value: ArrayLike, name: str, count: int) -> NDArray[np.bool_]:
    """Return `value` as `count` truth values."""
    flags = array_of(value, name, "biu", "images")
    if len(flags) != count:
        raise ArgumentError(f"{name} has {len(flags)} entries where {count} are needed")
    if flags.min() < 0 or flags.max() > 1:
        raise ArgumentError(f"{name} must be true or false, 1 or 0")
    return flags.astype(np.bool_)


BLOCK_ELEMENTS = 1 << 18


def blocks(rows: int, row_elements: int) -> Iterator[slice]:
    """Yield slices of `rows` whose elements fit into the cache."""
    step = max(1, BLOCK_ELEMENTS // row_elements)
    return (slice(start, start + step) for start in range(0, rows, step))


# --- the operations of the benchmarks, in the order of the papers' tables --------------------------

COMMON_CORRUPTIONS: Final = IMAGENET_C.common
"""The fifteen corruptions of mCE, in the order of [C] Table 1."""
EXTRA_CORRUPTIONS: Final = IMAGENET_C.extra
"""The four corruptions for validation, which no mean includes; [C] appendix B."""
COMMON_PERTURBATIONS: Final = IMAGENET_P.common
"""The ten perturbations of mFR and mT5D, in the order of [C] Table 3."""
EXTRA_PERTURBATIONS: Final = IMAGENET_P.extra
"""The four perturbations for validation, which no mean includes; [C] appendix E."""
NOISE_PERTURBATIONS: Final = IMAGENET_P.noises
"""The perturbations whose frames are compared with the first, clean one; [C] section 4.2."""
SEVERITIES: Final = len(IMAGENET_C.levels)
"""Severities of each corruption; [C] section 4.1."""


# --- from logits to predictions, probabilities and top-1 errors ------------------------------------


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

    Examples
    --------
    >>> from robustgen.metrics import top_classes
    >>> top_classes([[0.1, 0.7, 0.2]], count=2)
    array([[1, 2]])
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

    Examples
    --------
    >>> from robustgen.metrics import softmax
    >>> softmax([0, 0, 0, 0])
    array([0.25, 0.25, 0.25, 0.25])
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

    Examples
    --------
    >>> from robustgen.metrics import confidences
    >>> confidences([[2, 2], [9, 0]]).round(2)
    array([0.5, 1. ])
    """
    array = logits_of(logits, "images classes")
    return np.concatenate([softmax(array[block]).max(axis=1) for block in blocks(*array.shape)])


def log_odds(logits: ArrayLike) -> Floats:
    """Return the logarithm of the odds of the maximum softmax probabilities, which order images as these do.

    Probabilities near 1, all of which are 1 in floating point, differ in their odds. Values are rounded to
    ten significant digits, so that predictions which are equal but for rounding tie.

    Parameters
    ----------
    logits : array_like, (images, classes), any real dtype
        Of at least two classes.

    Returns
    -------
    ndarray, (images,), float64

    Examples
    --------
    >>> from robustgen.metrics.classification import log_odds
    >>> log_odds([[2, 2], [90, 0]])
    array([ 0., 90.])
    """
    array = logits_of(logits, "images classes")
    found = []
    for block in blocks(*array.shape):
        rows = np.sort(array[block].astype(np.float64), axis=1)
        found.append(rows[:, -1] - special.logsumexp(rows[:, :-1], axis=1))
    return round_digits(np.concatenate(found))


def round_digits(values: Floats, digits: int = 10) -> Floats:
    """Return numbers with so many significant digits."""
    sizes = np.where(values == 0, 1.0, abs(values))
    scale = 10.0 ** (digits - 1 - np.floor(np.log10(sizes)))
    rounded: Floats = np.round(values * scale) / scale
    return rounded


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

    Examples
    --------
    >>> from robustgen.metrics import top1_mistakes
    >>> top1_mistakes([[2, 1], [0, 3], [1, 0]], labels=[0, 1, 1])
    array([False, False,  True])
    """
    array = logits_of(logits, "images classes")
    wrong: NDArray[np.bool_] = array.argmax(axis=1) != labels_of(labels, *array.shape)
    return wrong


def top1_error(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of wrongly classified images, E of [C] section 4.2; see `top1_mistakes`.

    Parameters
    ----------
    logits : array_like, (images, classes), float
        Scores of the classes.
    labels : array_like, (images,), integer
        True classes.

    Examples
    --------
    >>> from robustgen.metrics import top1_error
    >>> top1_error([[2, 1], [0, 3], [1, 0], [3, 1]], labels=[0, 1, 1, 0])
    0.25
    """
    return float(top1_mistakes(logits, labels).mean())


# --- divergences of distributions over the classes -------------------------------------------------


def jensen_shannon(*rows: ArrayLike) -> Floats:
    """Return the mean Kullback-Leibler divergence, in nats, of distributions from their mean; [M] eq. 2.

    Parameters
    ----------
    *rows : array_like, (..., classes), float
        Two or more distributions of one shape; in AugMix three, for an image and two augmented copies.

    Returns
    -------
    ndarray, (...), float64
        0 (all equal) to the logarithm of their number.

    Raises
    ------
    ArgumentError
        There are fewer than two, the shapes differ, or a row is not a distribution.

    Examples
    --------
    >>> from robustgen.metrics import jensen_shannon
    >>> jensen_shannon([[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]]).round(3)
    array([0.693, 0.   ])
    """
    arrays = [distributions(each) for each in rows]
    if len(arrays) < 2 or len({each.shape for each in arrays}) > 1:
        raise ArgumentError("at least two distributions of one shape are needed")
    # The term of a probability of 0 is 0, whatever the logarithm.
    logarithms = [np.log(np.where(each > 0, each, 1)) for each in arrays]
    divergence: Floats = divergence_from_mean(arrays, logarithms, np.finfo(np.float64).tiny, np)
    return divergence


def divergence_from_mean(
    probabilities: Sequence[Any], log_probabilities: Sequence[Any], least: float, library: ModuleType
) -> Any:
    """Return the mean Kullback-Leibler divergence of distributions from their mean, for arrays or tensors.

    Parameters
    ----------
    probabilities, log_probabilities : sequence of tensors or arrays, (..., classes)
    least : float
        Lower limit of the mean distribution before its logarithm.
    library : module
        Module of their type: numpy or torch.

    Returns
    -------
    tensor or array, (...)
    """
    log_mean = library.log(library.clip(sum(probabilities) / len(probabilities), least, 1.0))
    pairs = zip(probabilities, log_probabilities, strict=True)
    return sum((p * (log_p - log_mean)).sum(-1) for p, log_p in pairs) / len(probabilities)


# --- semantic segmentation: counts of pixels by class, and mean intersection over union ------------

# Kamann and Rother, Benchmarking the Robustness of Semantic Segmentation Models, CVPR 2020, use 1 - mIoU as
# the error: CD, mCD and rCD are CE, mCE and Relative CE of it.

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

    Examples
    --------
    >>> from robustgen.metrics import count_pixels
    >>> count_pixels([[0, 0, 1, 255]], [[0, 1, 1, 1]], classes=2)
    array([[1, 1],
           [2, 1],
           [1, 2]])
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

    Examples
    --------
    >>> from robustgen.metrics import count_pixels, intersections_over_union
    >>> intersections_over_union(count_pixels([[0, 0, 1]], [[0, 1, 1]], classes=3))
    array([0.5, 0.5, nan])
    """
    right, has, taken = np.moveaxis(np.asarray(counts, np.float64), -2, 0)
    union = has + taken - right
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(union > 0, right / union, np.nan)
    return found


def mean_intersection_over_union(counts: ArrayLike) -> Floats:
    """Return the mean of `intersections_over_union` over the classes that occur.

    Parameters
    ----------
    counts : array_like, (..., 3, classes), integer
        As returned by `count_pixels`.

    Examples
    --------
    >>> from robustgen.metrics import count_pixels, mean_intersection_over_union
    >>> float(mean_intersection_over_union(count_pixels([[0, 0, 1]], [[0, 1, 1]], classes=3)))
    0.5
    """
    found = intersections_over_union(counts)
    there = np.isfinite(found)
    means: Floats = np.where(there, found, 0).sum(axis=-1) / np.maximum(there.sum(axis=-1), 1)
    return means
