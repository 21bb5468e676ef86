"""Scores of a model on the benchmarks: what the papers define, with the baselines they print.

Errors and probabilities are fractions, never per cent. Classes count from zero.
The papers are cited as

    [C]  Hendrycks and Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and
         Perturbations, ICLR 2019
    [D]  its draft of 2018, with ImageNet-D and AUDE
    [M]  Hendrycks et al., AugMix, ICLR 2020
    [N]  Hendrycks et al., Natural Adversarial Examples, 2021

Data sets that do not fit into memory are scored chunk by chunk: the functions named in the plural return
one value per image or sequence, and `RunningMean` averages these. A whole run over frame sequences needs
of the logits only what `top_classes` keeps of them::

    flips, distances = RunningMean(), RunningMean()
    for logits in chunks:                          # (sequences, frames, classes)
        best = top_classes(logits)
        flips.update(sequence_flips(best[..., 0], noise=False))
        distances.update(sequence_top5_distances(best, noise=False))
    flip_rate("tilt", flips.mean), standardised_top5_distance("tilt", distances.mean)

A score that is divided by a baseline and one that is not never share a name: the latter are called
`unnormalised_...`, or flip *probability* as opposed to flip *rate*.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError

Floats: TypeAlias = NDArray[np.float64]
Classes: TypeAlias = NDArray[np.intp]
_Value = TypeVar("_Value")

COMMON_CORRUPTIONS: Final = (
    *("gaussian_noise", "shot_noise", "impulse_noise"),
    *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness"),
    *("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
)
"""The fifteen corruptions of mCE, in the order of [C] Table 1."""
EXTRA_CORRUPTIONS: Final = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
"""The four corruptions for validation, which no mean includes; [C] appendix B."""
COMMON_PERTURBATIONS: Final = (
    *("gaussian_noise", "shot_noise", "motion_blur", "zoom_blur", "snow", "brightness"),
    *("translate", "rotate", "tilt", "scale"),
)
"""The ten perturbations of mFR and mT5D, in the order of [C] Table 3."""
EXTRA_PERTURBATIONS: Final = ("speckle_noise", "gaussian_blur", "spatter", "shear")
"""The four perturbations for validation, which no mean includes; [C] appendix E."""
NOISE_PERTURBATIONS: Final = ("gaussian_noise", "shot_noise", "speckle_noise")
"""The perturbations whose frames are compared with the first, clean one; [C] section 4.2."""
SEVERITIES: Final = 5
"""Severities of each corruption; [C] section 4.1."""
LARGEST_TOP5_DISTANCE: Final = 15
"""Top-5 distance of two lists that share no class: 5 + 4 + 3 + 2 + 1."""
CALIBRATION_BIN: Final = 100
"""Predictions in a bin of the RMS calibration error; [M] appendix E."""

ALEXNET_CLEAN_ERROR: Final = 0.435
"""Top-1 error of AlexNet on clean ImageNet; [C] Table 1."""
ALEXNET_ERROR: Final[Mapping[str, float]] = MappingProxyType(
    {
        "gaussian_noise": 0.886,
        "shot_noise": 0.894,
        "impulse_noise": 0.923,
        "defocus_blur": 0.820,
        "glass_blur": 0.826,
        "motion_blur": 0.786,
        "zoom_blur": 0.798,
        "snow": 0.867,
        "frost": 0.827,
        "fog": 0.819,
        "brightness": 0.565,
        "contrast": 0.853,
        "elastic_transform": 0.646,
        "pixelate": 0.718,
        "jpeg_compression": 0.607,
        "speckle_noise": 0.845,
        "gaussian_blur": 0.787,
        "spatter": 0.718,
        "saturate": 0.658,
    }
)
"""Top-1 error of AlexNet on ImageNet-C, mean over the five severities; [C] appendix D."""
ALEXNET_FLIP_PROBABILITY: Final[Mapping[str, float]] = MappingProxyType(
    {
        "gaussian_noise": 0.2365,
        "shot_noise": 0.3006,
        "motion_blur": 0.0930,
        "zoom_blur": 0.0594,
        "snow": 0.1193,
        "brightness": 0.0489,
        "translate": 0.1101,
        "rotate": 0.1310,
        "tilt": 0.0705,
        "scale": 0.2353,
        "speckle_noise": 0.1865,
        "gaussian_blur": 0.0278,
        "spatter": 0.0505,
        "shear": 0.1066,
    }
)
"""Flip probability of AlexNet on ImageNet-P, at difficulty 1; [C] appendix E."""
ALEXNET_TOP5_DISTANCE: Final[Mapping[str, float]] = MappingProxyType(
    {
        "gaussian_noise": 4.77,
        "shot_noise": 5.76,
        "motion_blur": 1.93,
        "zoom_blur": 1.34,
        "snow": 2.42,
        "brightness": 1.19,
        "translate": 2.63,
        "rotate": 2.95,
        "tilt": 1.75,
        "scale": 4.48,
        "speckle_noise": 3.89,
        "gaussian_blur": 0.70,
        "spatter": 1.26,
        "shear": 2.48,
    }
)
"""Unnormalised top-5 distance of AlexNet on ImageNet-P, at difficulty 1; [C] appendix E."""

_BLOCK_ELEMENTS = 1 << 18


# Checks of what callers pass


def _array(value: ArrayLike, name: str, kinds: str, axes: str) -> NDArray[Any]:
    """`value` as an array of a dtype kind among `kinds` and one axis per word of `axes` ("..." for any)."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} cannot be made an array: {error}") from error
    if array.dtype.kind not in kinds:
        wanted = "numbers" if "f" in kinds else "truth values" if "b" in kinds else "integers"
        raise ArgumentError(f"{name} must hold {wanted}, not {array.dtype}")
    if not _fits(array.shape, axes.split()):
        shape = ", ".join(axes.split())
        raise ArgumentError(f"{name} must have the shape ({shape}), none of them 0, not {array.shape}")
    return array


def _fits(shape: tuple[int, ...], axes: list[str]) -> bool:
    enough = len(shape) >= len(axes) - 1 if "..." in axes else len(shape) == len(axes)
    return enough and 0 not in shape


def _logits(value: ArrayLike, axes: str = "... classes") -> NDArray[Any]:
    """`value` as floating-point logits; minus infinity rules a class out, NaN and other infinities raise."""
    array = _array(value, "logits", "fiu", axes)
    if not np.isfinite(array.max(axis=-1)).all():
        raise ArgumentError("logits hold NaN or infinity")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _labels(value: ArrayLike, images: int, classes: int) -> Classes:
    labels = _array(value, "labels", "iu", "images")
    if len(labels) != images:
        raise ArgumentError(f"{len(labels)} labels for {images} images")
    if labels.min() < 0 or labels.max() >= classes:
        raise ArgumentError(f"labels must lie in 0 .. {classes - 1}, not {labels.min()} .. {labels.max()}")
    return labels.astype(np.intp)


def _class_set(value: ArrayLike, classes: int) -> Classes:
    """`value` in ascending order, which is the order that breaks ties between logits."""
    chosen = np.sort(_array(value, "classes", "iu", "classes"))
    if chosen[0] < 0 or chosen[-1] >= classes or (chosen[1:] == chosen[:-1]).any():
        raise ArgumentError(f"classes must be distinct indices in 0 .. {classes - 1}")
    return chosen.astype(np.intp)


def _bounded(value: ArrayLike, name: str, axes: str, most: float = 1.0) -> Floats:
    array = _array(value, name, "fiu", axes).astype(np.float64)
    if not (array.min() >= 0 and array.max() <= most):
        hint = " (fractions, not per cent)" if most == 1 else ""
        raise ArgumentError(f"{name} must lie in 0 .. {most:g}{hint}, not {array.min():g} .. {array.max():g}")
    return array


def _number(value: float, name: str, most: float = 1.0) -> float:
    return float(_bounded([value], name, "number", most)[0])


def _severity_errors(value: ArrayLike, name: str = "errors") -> Floats:
    errors = _bounded(value, name, "severities")
    if len(errors) != SEVERITIES:
        raise ArgumentError(f"{name} must be given for all {SEVERITIES} severities, not {len(errors)}")
    return errors


def _distributions(value: ArrayLike, axes: str = "... classes") -> Floats:
    rows = _bounded(value, "probabilities", axes)
    # Wide enough for float16 outputs, narrow enough to catch logits.
    if np.abs(rows.sum(axis=-1) - 1).max() > 0.01:
        raise ArgumentError("probabilities must sum to 1 over the classes (use softmax on logits)")
    return rows


def _flags(value: ArrayLike, name: str, count: int) -> NDArray[np.bool_]:
    flags = _array(value, name, "biu", "images")
    if len(flags) != count:
        raise ArgumentError(f"{name} has {len(flags)} entries where {count} are needed")
    if flags.min() < 0 or flags.max() > 1:
        raise ArgumentError(f"{name} must be true or false, 1 or 0")
    return flags.astype(np.bool_)


def _blocks(rows: int, row_elements: int) -> Iterator[slice]:
    """Slices over `rows` whose elements fit into cache."""
    step = max(1, _BLOCK_ELEMENTS // row_elements)
    return (slice(start, start + step) for start in range(0, rows, step))


# Means over chunks


@dataclass
class RunningMean:
    """Mean of values that arrive in chunks, or in several processes.

    Attributes
    ----------
    total : float
        Sum of all values so far.
    count : int
        Number of values so far.
    """

    total: float = 0.0
    count: int = 0

    def update(self, values: ArrayLike) -> None:
        """Take in one chunk.

        Parameters
        ----------
        values : array_like, any shape, bool, integer or float
            One finite value per image or sequence.

        Raises
        ------
        ArgumentError
            If a value is not a finite number.
        """
        array = _array(values, "values", "fiub", "...")
        total = float(array.sum(dtype=np.float64))
        if not np.isfinite(total):
            raise ArgumentError("values hold NaN or infinity")
        self.total, self.count = self.total + total, self.count + array.size

    def __add__(self, other: "RunningMean") -> "RunningMean":
        """Mean over the values of both."""
        return RunningMean(self.total + other.total, self.count + other.count)

    @property
    def mean(self) -> float:
        """Mean of all values so far; raises ArgumentError where there are none."""
        if self.count == 0:
            raise ArgumentError("nothing was added to this mean")
        return self.total / self.count


# Predictions


def top_classes(logits: ArrayLike, count: int = 5) -> Classes:
    """Classes of the largest logits, best first; of equal logits the lower class comes first.

    Parameters
    ----------
    logits : array_like, (..., classes), any real dtype
        Scores of the classes; minus infinity rules a class out.
    count : int
        Length of the lists.

    Returns
    -------
    ndarray, (..., count), intp
        ``[..., 0]`` are the top-1 predictions.

    Raises
    ------
    ArgumentError
        If the logits hold NaN or infinity, or fewer than `count` classes.
    """
    array = _logits(logits)
    if not 1 <= count <= array.shape[-1]:
        raise ArgumentError(f"cannot take the top {count} of {array.shape[-1]} classes")
    rows = array.reshape(-1, array.shape[-1])
    best = np.empty((len(rows), count), np.intp)
    for block in _blocks(*rows.shape):
        best[block] = _largest(rows[block], count)
    return best.reshape(*array.shape[:-1], count)


def _largest(rows: NDArray[Any], count: int) -> Classes:
    """The `count` largest columns of each row; argmax takes the first of equals, unlike argpartition."""
    best = np.empty((len(rows), count), np.intp)
    # Lifts classes already at minus infinity above those struck out below.
    left, every = np.maximum(rows, np.finfo(rows.dtype).min), np.arange(len(rows))
    for rank in range(count):
        best[:, rank] = left.argmax(axis=1)
        left[every, best[:, rank]] = -np.inf
    return best


def softmax(logits: ArrayLike) -> Floats:
    """Probabilities of the classes.

    Parameters
    ----------
    logits : array_like, (..., classes), any real dtype

    Returns
    -------
    ndarray, (..., classes), float64

    Raises
    ------
    ArgumentError
        If the logits hold NaN or infinity.
    """
    array = _logits(logits)
    powers: Floats = np.subtract(array, array.max(axis=-1, keepdims=True), dtype=np.float64)
    np.exp(powers, out=powers)
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers


def confidences(logits: ArrayLike) -> Floats:
    """Maximum softmax probabilities; [M] section 4, [N] section 4.

    Parameters
    ----------
    logits : array_like, (images, classes), any real dtype

    Returns
    -------
    ndarray, (images,), float64

    Raises
    ------
    ArgumentError
        If the logits hold NaN or infinity, or have another shape.
    """
    array = _logits(logits, "images classes")
    return np.concatenate([softmax(array[block]).max(axis=1) for block in _blocks(*array.shape)])


def top1_mistakes(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.bool_]:
    """Which images are classified wrongly.

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
        If the logits hold NaN or infinity, a label is out of range or a shape is wrong.
    """
    array = _logits(logits, "images classes")
    wrong: NDArray[np.bool_] = array.argmax(axis=1) != _labels(labels, *array.shape)
    return wrong


def top1_error(logits: ArrayLike, labels: ArrayLike) -> float:
    """Share of images classified wrongly, E of [C] section 4.2; arguments as for `top1_mistakes`."""
    return float(top1_mistakes(logits, labels).mean())


# ImageNet-C


def unnormalised_corruption_error(errors: ArrayLike) -> float:
    """Mean error over the severities of one corruption, uCE of [M] section 4.

    Parameters
    ----------
    errors : array_like, (5,), float
        Top-1 errors at severities 1 to 5, as fractions.

    Raises
    ------
    ArgumentError
        If there are not five, or one is not a fraction.
    """
    return float(_severity_errors(errors).mean())


def corruption_error(
    corruption: str, errors: ArrayLike, baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> float:
    """Error summed over the severities, divided by that of the baseline: CE of [C] section 4.2.

    Parameters
    ----------
    corruption : str
        Name under which the baseline is looked up.
    errors : array_like, (5,), float
        Top-1 errors at severities 1 to 5, as fractions.
    baseline : mapping of str to float or array_like, (5,)
        For each corruption the errors of another model, or their mean.

    Raises
    ------
    ArgumentError
        If there are not five errors, one is not a fraction, or the baseline has no positive value.
    """
    return unnormalised_corruption_error(errors) / _baseline_error(baseline, corruption)


def relative_corruption_error(
    corruption: str,
    errors: ArrayLike,
    clean_error: float,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> float:
    """Error beyond the clean one, divided by that of the baseline: Relative CE of [C] section 4.2.

    Parameters
    ----------
    corruption, errors, baseline
        As for `corruption_error`.
    clean_error : float
        Top-1 error on the clean images, a fraction.
    baseline_clean_error : float, optional
        The same of the baseline; only AlexNet's needs not be given.

    Raises
    ------
    ArgumentError
        As `corruption_error`; also if the baseline's clean error is unknown or not below the others.
    """
    decline = unnormalised_corruption_error(errors) - _number(clean_error, "clean_error")
    clean = _baseline_clean(baseline, baseline_clean_error)
    of_baseline = _baseline_error(baseline, corruption) - clean
    if of_baseline <= 0:
        raise ArgumentError(f"the baseline's error on {corruption} does not exceed its clean error")
    return decline / of_baseline


def area_under_distortion_error(clean_error: float, errors: ArrayLike) -> float:
    """Area under error against severity 0 to 5, over 5, by the trapezoid rule: AUDE of [D] section 3.2.

    Parameters
    ----------
    clean_error : float
        Top-1 error on the clean images, which are severity 0.
    errors : array_like, (5,), float
        Top-1 errors at severities 1 to 5, as fractions.

    Raises
    ------
    ArgumentError
        If there are not five errors, or one is not a fraction.
    """
    curve = np.concatenate([[_number(clean_error, "clean_error")], _severity_errors(errors)])
    return float((curve[:-1] + curve[1:]).mean() / 2)


def mean_corruption_error(
    errors: Mapping[str, ArrayLike], baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> float:
    """Mean CE over the fifteen common corruptions: mCE of [C] section 4.2.

    Parameters
    ----------
    errors : mapping of str to array_like, (5,), float
        For each corruption the top-1 errors at severities 1 to 5. Others than the fifteen are ignored.
    baseline : mapping of str to float or array_like, (5,)
        As for `corruption_error`.

    Raises
    ------
    ArgumentError
        If one of the fifteen is missing; also as `corruption_error`.
    """
    return _mean(COMMON_CORRUPTIONS, errors, lambda name, value: corruption_error(name, value, baseline))


def unnormalised_mean_corruption_error(errors: Mapping[str, ArrayLike]) -> float:
    """Mean error over fifteen corruptions and five severities: the score of CIFAR-C, [M] section 4.

    Not to be compared with a published mCE. Arguments and errors as for `mean_corruption_error`.
    """
    return _mean(COMMON_CORRUPTIONS, errors, lambda _, value: unnormalised_corruption_error(value))


def relative_mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    clean_error: float,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> float:
    """Mean Relative CE over the fifteen common corruptions: Relative mCE of [C] section 4.2.

    Arguments and errors as for `mean_corruption_error` and `relative_corruption_error`.
    """

    def score(name: str, value: ArrayLike) -> float:
        return relative_corruption_error(name, value, clean_error, baseline, baseline_clean_error)

    return _mean(COMMON_CORRUPTIONS, errors, score)


def mean_area_under_distortion_error(clean_error: float, errors: Mapping[str, ArrayLike]) -> float:
    """Mean AUDE over the fifteen common corruptions: mAUDE of [D] section 3.2.

    Arguments and errors as for `mean_corruption_error` and `area_under_distortion_error`.
    """
    return _mean(COMMON_CORRUPTIONS, errors, lambda _, value: area_under_distortion_error(clean_error, value))


def summarise_corruptions(
    errors: Mapping[str, ArrayLike],
    clean_error: float | None = None,
    baseline: Mapping[str, ArrayLike] | None = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> dict[str, float]:
    """All means that the given errors allow, by the names of the functions that compute them.

    Parameters
    ----------
    errors, baseline, baseline_clean_error
        As for `relative_mean_corruption_error`; without a baseline there are only unnormalised means.
    clean_error : float, optional
        Without it there are neither Relative mCE nor mAUDE.

    Raises
    ------
    ArgumentError
        As the functions that the result names.
    """
    scores = {"unnormalised_mean_corruption_error": unnormalised_mean_corruption_error(errors)}
    if baseline is not None:
        scores["mean_corruption_error"] = mean_corruption_error(errors, baseline)
    if baseline is not None and clean_error is not None:
        relative = relative_mean_corruption_error(errors, clean_error, baseline, baseline_clean_error)
        scores["relative_mean_corruption_error"] = relative
    if clean_error is not None:
        scores["mean_area_under_distortion_error"] = mean_area_under_distortion_error(clean_error, errors)
    return scores


def _mean(names: Sequence[str], values: Mapping[str, _Value], score: Callable[[str, _Value], float]) -> float:
    missing = [name for name in names if name not in values]
    if missing:
        raise ArgumentError(f"a mean over {len(names)} needs them all; missing: {', '.join(missing)}")
    return fmean(score(name, values[name]) for name in names)


def _baseline_value(baseline: Mapping[str, _Value], name: str) -> _Value:
    if name not in baseline:
        raise ArgumentError(f"the baseline has no value for {name!r}; it has: {', '.join(baseline)}")
    return baseline[name]


def _positive(value: float, name: str) -> float:
    if value == 0:
        raise ArgumentError(f"the baseline of {name} is 0; nothing can be divided by it")
    return value


def _baseline_error(baseline: Mapping[str, ArrayLike], corruption: str) -> float:
    value = np.asarray(_baseline_value(baseline, corruption))
    errors = _severity_errors(value if value.ndim else [value] * SEVERITIES, f"the baseline of {corruption}")
    return _positive(float(errors.mean()), corruption)


def _baseline_clean(baseline: Mapping[str, ArrayLike], given: float | None) -> float:
    if given is not None:
        return _number(given, "baseline_clean_error")
    # AlexNet's clean error under another model's errors would give a plausible wrong number.
    if baseline is not ALEXNET_ERROR:
        raise ArgumentError("a baseline other than AlexNet needs its own baseline_clean_error")
    return ALEXNET_CLEAN_ERROR


# ImageNet-P


def _pairs(frames: NDArray[Any], noise: bool, difficulty: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Frames (sequences, frames, ...) that are compared, as two arrays that broadcast; [C] section 4.2.

    All pairs `difficulty` apart are those of `difficulty` interleaved chains. The noises' own sequences
    grow harder instead, so their pairs stay the same ([C] appendix C).
    """
    if difficulty < 1:
        raise ArgumentError(f"difficulty must be 1 or more, not {difficulty}")
    step = 1 if noise else difficulty
    if frames.shape[1] <= step:
        raise ArgumentError(f"sequences of {frames.shape[1]} frames have no two frames {step} apart")
    return frames[:, :1] if noise else frames[:, :-step], frames[:, step:]


def sequence_flips(predictions: ArrayLike, *, noise: bool, difficulty: int = 1) -> Floats:
    """Share of the frame pairs of each sequence between which the prediction changes.

    Parameters
    ----------
    predictions : array_like, (sequences, frames), integer
        Top-1 predictions, ``top_classes(logits, 1)[..., 0]``.
    noise : bool
        Whether frames are compared with the first one, as for `NOISE_PERTURBATIONS`, not the previous.
    difficulty : int
        Distance of the frames compared; without effect on noises.

    Returns
    -------
    ndarray, (sequences,), float64

    Raises
    ------
    ArgumentError
        If the predictions have another shape or dtype, or too few frames.
    """
    frames = _array(predictions, "predictions", "iu", "sequences frames")
    before, after = _pairs(frames, noise, difficulty)
    flips: Floats = (before != after).mean(axis=1)
    return flips


def flip_probability(predictions: ArrayLike, *, noise: bool, difficulty: int = 1) -> float:
    """Mean of `sequence_flips`: FP of [C] section 4.2; arguments as there."""
    return float(sequence_flips(predictions, noise=noise, difficulty=difficulty).mean())


def top5_distance(before: ArrayLike, after: ArrayLike) -> NDArray[np.intp]:
    """Distance d of pairs of top-5 lists; [C] section 4.2 and appendix C.

    The inner sum is |k - min(sigma(k), 6)|: a class outside the other list counts as sixth, so that no rank
    below the fifth is ever needed.

    Parameters
    ----------
    before, after : array_like, (..., 5), integer
        Classes, best first, as from `top_classes`; broadcast against each other.

    Returns
    -------
    ndarray, (...), intp
        0 (same list) to 15 (no class in common).

    Raises
    ------
    ArgumentError
        If a list does not have five classes, or the shapes do not fit each other.
    """
    first, second = _top5(before), _top5(after)
    try:
        same = first[..., :, None] == second[..., None, :]
    except ValueError as error:
        raise ArgumentError(f"top-5 lists of shapes {first.shape} and {second.shape} do not fit") from error
    sigma = 6 - same @ np.arange(5, 0, -1)
    distance: NDArray[np.intp] = np.abs(sigma - np.arange(1, 6)).sum(axis=-1)
    return distance


def _top5(value: ArrayLike, axes: str = "... 5") -> NDArray[Any]:
    lists = _array(value, "top-5 lists", "iu", axes)
    if lists.shape[-1] != 5:
        raise ArgumentError(f"top-5 lists must hold five classes, not {lists.shape[-1]}")
    return lists


def sequence_top5_distances(top5: ArrayLike, *, noise: bool, difficulty: int = 1) -> Floats:
    """Mean `top5_distance` over the frame pairs of each sequence.

    Parameters
    ----------
    top5 : array_like, (sequences, frames, 5), integer
        Classes, best first: ``top_classes(logits)``.
    noise, difficulty
        As for `sequence_flips`.

    Returns
    -------
    ndarray, (sequences,), float64

    Raises
    ------
    ArgumentError
        If the lists have another shape or dtype, or too few frames.
    """
    pairs = _pairs(_top5(top5, "sequences frames 5"), noise, difficulty)
    distances: Floats = top5_distance(*pairs).mean(axis=1)
    return distances


def unnormalised_top5_distance(top5: ArrayLike, *, noise: bool, difficulty: int = 1) -> float:
    """Mean of `sequence_top5_distances`: uT5D of [C] section 4.2; arguments as there."""
    return float(sequence_top5_distances(top5, noise=noise, difficulty=difficulty).mean())


def zipf_distance(before: ArrayLike, after: ArrayLike) -> Floats:
    """Distance of pairs of rankings in which rank i weighs 1/i; [C] appendix C.

    Sum over i of w_i |w_i - w_sigma(i)|, where w_i = 1/i and sigma(i) is the rank in `after` of the class
    that `before` ranks i-th.

    Parameters
    ----------
    before, after : array_like, (..., classes), any real dtype
        Logits; they broadcast against each other. Of equal logits the lower class ranks first.

    Returns
    -------
    ndarray, (...), float64

    Raises
    ------
    ArgumentError
        If the logits hold NaN or infinity, or the shapes do not fit each other.
    """
    first, second = _logits(before), _logits(after)
    if first.shape[-1] != second.shape[-1]:
        raise ArgumentError(f"logits of {first.shape[-1]} and of {second.shape[-1]} classes do not compare")
    return _zipf(_rank_weights(first), _rank_weights(second))


def _rank_weights(logits: NDArray[Any]) -> Floats:
    """1 / rank of each class, for logits (..., classes)."""
    order = np.argsort(-logits, axis=-1, kind="stable")
    weights = np.empty(logits.shape)
    np.put_along_axis(weights, order, 1 / np.arange(1.0, logits.shape[-1] + 1), axis=-1)
    return weights


def _zipf(first: Floats, second: Floats) -> Floats:
    """Zipf distance from the weights that each class has in either ranking."""
    try:
        distance: Floats = (first * np.abs(first - second)).sum(axis=-1)
    except ValueError as error:
        raise ArgumentError(f"rankings of shapes {first.shape} and {second.shape} do not fit") from error
    return distance


def sequence_zipf_distances(logits: ArrayLike, *, noise: bool, difficulty: int = 1) -> Floats:
    """Mean `zipf_distance` over the frame pairs of each sequence.

    Parameters
    ----------
    logits : array_like, (sequences, frames, classes), any real dtype
    noise, difficulty
        As for `sequence_flips`.

    Returns
    -------
    ndarray, (sequences,), float64

    Raises
    ------
    ArgumentError
        If the logits hold NaN or infinity, have another shape, or too few frames.
    """
    array = _logits(logits, "sequences frames classes")
    means = np.empty(len(array))
    for block in _blocks(len(array), array[0].size):
        pairs = _pairs(_rank_weights(array[block]), noise, difficulty)
        means[block] = _zipf(*pairs).mean(axis=1)
    return means


def unnormalised_zipf_distance(logits: ArrayLike, *, noise: bool, difficulty: int = 1) -> float:
    """Mean of `sequence_zipf_distances`, the variant of uT5D in [C] appendix C; arguments as there."""
    return float(sequence_zipf_distances(logits, noise=noise, difficulty=difficulty).mean())


def flip_rate(
    perturbation: str, probability: float, baseline: Mapping[str, float] = ALEXNET_FLIP_PROBABILITY
) -> float:
    """Flip probability divided by that of the baseline: FR of [C] section 4.2.

    Parameters
    ----------
    perturbation : str
        Name under which the baseline is looked up.
    probability : float
        Flip probability of the model, a fraction.
    baseline : mapping of str to float
        Flip probability of another model for each perturbation.

    Raises
    ------
    ArgumentError
        If a probability is not a fraction, or the baseline has no positive value.
    """
    return _ratio(perturbation, probability, baseline, 1)


def standardised_top5_distance(
    perturbation: str, distance: float, baseline: Mapping[str, float] = ALEXNET_TOP5_DISTANCE
) -> float:
    """Unnormalised top-5 distance divided by that of the baseline: T5D of [C] section 4.2.

    Parameters
    ----------
    perturbation : str
        Name under which the baseline is looked up.
    distance : float
        uT5D of the model, 0 to 15.
    baseline : mapping of str to float
        uT5D of another model for each perturbation.

    Raises
    ------
    ArgumentError
        If a distance is out of range, or the baseline has no positive value.
    """
    return _ratio(perturbation, distance, baseline, LARGEST_TOP5_DISTANCE)


def _ratio(name: str, value: float, baseline: Mapping[str, float], most: float) -> float:
    of_baseline = _number(_baseline_value(baseline, name), f"the baseline of {name}", most)
    return _number(value, f"the value of {name}", most) / _positive(of_baseline, name)


def mean_flip_rate(
    probabilities: Mapping[str, float], baseline: Mapping[str, float] = ALEXNET_FLIP_PROBABILITY
) -> float:
    """Mean flip rate over the ten common perturbations: mFR of [C] section 4.2.

    Parameters
    ----------
    probabilities : mapping of str to float
        Flip probability of the model for each perturbation. Others than the ten are ignored.
    baseline : mapping of str to float
        As for `flip_rate`.

    Raises
    ------
    ArgumentError
        If one of the ten is missing; also as `flip_rate`.
    """
    return _mean(COMMON_PERTURBATIONS, probabilities, lambda name, value: flip_rate(name, value, baseline))


def mean_flip_probability(probabilities: Mapping[str, float]) -> float:
    """Mean flip probability over the ten common perturbations, unnormalised: mFP of [M] section 4.

    Arguments and errors as for `mean_flip_rate`.
    """
    return _mean(COMMON_PERTURBATIONS, probabilities, lambda name, value: _number(value, name))


def mean_top5_distance(
    distances: Mapping[str, float], baseline: Mapping[str, float] = ALEXNET_TOP5_DISTANCE
) -> float:
    """Mean T5D over the ten common perturbations: mT5D of [C] section 4.2.

    Parameters
    ----------
    distances : mapping of str to float
        uT5D of the model for each perturbation. Others than the ten are ignored.
    baseline : mapping of str to float
        As for `standardised_top5_distance`.

    Raises
    ------
    ArgumentError
        If one of the ten is missing; also as `standardised_top5_distance`.
    """
    return _mean(
        COMMON_PERTURBATIONS,
        distances,
        lambda name, value: standardised_top5_distance(name, value, baseline),
    )


def unnormalised_mean_top5_distance(distances: Mapping[str, float]) -> float:
    """Mean uT5D over the ten common perturbations; arguments and errors as for `mean_top5_distance`."""
    return _mean(
        COMMON_PERTURBATIONS, distances, lambda name, value: _number(value, name, LARGEST_TOP5_DISTANCE)
    )


def summarise_perturbations(
    probabilities: Mapping[str, float],
    distances: Mapping[str, float] | None = None,
    baseline: Mapping[str, float] | None = ALEXNET_FLIP_PROBABILITY,
    distance_baseline: Mapping[str, float] | None = ALEXNET_TOP5_DISTANCE,
) -> dict[str, float]:
    """All means that the given values allow, by the names of the functions that compute them.

    Parameters
    ----------
    probabilities, distances
        As for `mean_flip_rate` and `mean_top5_distance`.
    baseline, distance_baseline
        Likewise; without one there is only the unnormalised mean.

    Raises
    ------
    ArgumentError
        As the functions that the result names.
    """
    scores = {"mean_flip_probability": mean_flip_probability(probabilities)}
    if baseline is not None:
        scores["mean_flip_rate"] = mean_flip_rate(probabilities, baseline)
    if distances is not None:
        scores["unnormalised_mean_top5_distance"] = unnormalised_mean_top5_distance(distances)
    if distances is not None and distance_baseline is not None:
        scores["mean_top5_distance"] = mean_top5_distance(distances, distance_baseline)
    return scores


# Calibration, ImageNet-A, ImageNet-O, consistency


def rms_calibration_error(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Root of the size-weighted mean squared gap between confidence and accuracy per bin; [M] appendix E.

    Bins hold 100 predictions in order of confidence; the last one also holds the remainder. Equal
    confidences keep the order in which they were given.

    Parameters
    ----------
    confidence : array_like, (images,), float
        As from `confidences`.
    correct : array_like, (images,), bool
        Whether the prediction is right: ``~top1_mistakes(logits, labels)``.

    Raises
    ------
    ArgumentError
        If a confidence is not a fraction or the lengths differ.
    """
    certain = _bounded(confidence, "confidence", "images")
    right = _flags(correct, "correct", len(certain))
    order = np.argsort(certain, kind="stable")
    starts = np.arange(max(1, len(order) // CALIBRATION_BIN)) * CALIBRATION_BIN
    gaps = np.add.reduceat(certain[order] - right[order], starts)
    sizes = np.diff(starts, append=len(order))
    return float(np.sqrt((gaps**2 / sizes).sum() / len(order)))


def brier_scores(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """Squared distances of the probability vectors to one-hot; [M] appendix E.

    Parameters
    ----------
    probabilities : array_like, (images, classes), float
        As from `softmax`.
    labels : array_like, (images,), integer
        True classes.

    Returns
    -------
    ndarray, (images,), float64

    Raises
    ------
    ArgumentError
        If a row is no distribution, a label is out of range or a shape is wrong.
    """
    rows = _distributions(probabilities, "images classes")
    rows[np.arange(len(rows)), _labels(labels, *rows.shape)] -= 1
    scores: Floats = np.einsum("ij,ij->i", rows, rows)
    return scores


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean of `brier_scores`; arguments as there."""
    return float(brier_scores(probabilities, labels).mean())


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
    array = _logits(logits, "images classes")
    true, chosen = _labels(labels, *array.shape), _class_set(classes, array.shape[1])
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
    array = _logits(logits, "images classes")
    return -confidences(array if classes is None else array[:, _class_set(classes, array.shape[1])])


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
    values = _array(scores, "scores", "fiu", "images")
    if np.isnan(values).any():
        raise ArgumentError("scores hold NaN")
    truth = _flags(positives, "positives", len(values))
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


def jensen_shannon(*distributions: ArrayLike) -> Floats:
    """Mean Kullback-Leibler divergence, in nats, of distributions from their mean; [M] section 3, equation 2.

    Parameters
    ----------
    *distributions : array_like, (..., classes), float
        Two or more of one shape; in AugMix three, of an image and two augmented copies.

    Returns
    -------
    ndarray, (...), float64
        0 (all equal) to the logarithm of their number.

    Raises
    ------
    ArgumentError
        If there are fewer than two, the shapes differ or a row is no distribution.
    """
    rows = [_distributions(each) for each in distributions]
    if len(rows) < 2 or len({each.shape for each in rows}) > 1:
        raise ArgumentError("at least two distributions of one shape are needed")
    mixture = np.mean(rows, axis=0)
    divergence: Floats = np.mean([_divergence(each, mixture) for each in rows], axis=0)
    return divergence


def _divergence(rows: Floats, mixture: Floats) -> Floats:
    # Where a row is 0 its term is 0, whatever the logarithm; the mixture is 0 only there.
    ratio = np.divide(rows, mixture, out=np.ones_like(rows), where=rows > 0)
    divergence: Floats = (rows * np.log(ratio)).sum(axis=-1)
    return divergence
