"""ImageNet-P: changes of the prediction, and of the ranking of the classes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError
from robustgen.metrics.classification import COMMON_PERTURBATIONS, Floats, array_of, blocks, logits_of, number
from robustgen.metrics.corruption_errors import (
    ALEXNET_FLIP_PROBABILITY,
    ALEXNET_TOP5_DISTANCE,
    FLIP_RATE,
    LARGEST,
    TOP5_RATIO,
    mean_over,
)

__all__ = [
    "LARGEST_TOP5_DISTANCE", "flip_probability", "flip_rate", "mean_flip_probability", "mean_flip_rate",
    "mean_top5_distance", "sequence_flips", "sequence_top5_distances", "sequence_zipf_distances",
    "standardised_top5_distance", "top5_distance", "unnormalised_mean_top5_distance",
    "unnormalised_top5_distance", "unnormalised_zipf_distance", "zipf_distance",
]  # fmt: skip

# --- ImageNet-P: changes of the prediction along a sequence ----------------------------------------


def frame_pairs(frames: NDArray[Any], noise: bool, difficulty: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the frames (sequences, frames, ...) to compare, as two arrays; [C] section 4.2.

    The pairs are all frames `difficulty` apart. The noises' own sequences get harder instead, so their pairs
    stay the same ([C] appendix C).
    """
    if difficulty < 1:
        raise ArgumentError(f"difficulty must be 1 or more, not {difficulty}")
    step = 1 if noise else difficulty
    if frames.shape[1] <= step:
        raise ArgumentError(f"sequences of {frames.shape[1]} frames have no two frames {step} apart")
    return frames[:, :1] if noise else frames[:, :-step], frames[:, step:]


def sequence_flips(predictions: ArrayLike, *, noise: bool, difficulty: int = 1) -> Floats:
    """Return the share of each sequence's frame pairs with different predictions.

    Parameters
    ----------
    predictions : array_like, (sequences, frames), integer
        Top-1 predictions, ``top_classes(logits, 1)[..., 0]``.
    noise : bool
        Whether frames are compared with the first one, as for `NOISE_PERTURBATIONS`, not with the previous
        one.
    difficulty : int
        Distance of the compared frames; ignored for noises.

    Returns
    -------
    ndarray, (sequences,), float64

    Raises
    ------
    ArgumentError
        The predictions have another shape or dtype, or too few frames.

    Examples
    --------
    >>> from robustgen.metrics import sequence_flips
    >>> sequence_flips([[3, 3, 3, 3, 7], [1, 2, 1, 2, 1]], noise=False)
    array([0.25, 1.  ])
    >>> sequence_flips([[3, 3, 3, 3, 7], [1, 2, 1, 2, 1]], noise=True)
    array([0.25, 0.5 ])
    """
    frames = array_of(predictions, "predictions", "iu", "sequences frames")
    before, after = frame_pairs(frames, noise, difficulty)
    flips: Floats = (before != after).mean(axis=1)
    return flips


def flip_probability(predictions: ArrayLike, *, noise: bool, difficulty: int = 1) -> float:
    """Return the mean of `sequence_flips`: FP of [C] section 4.2; same arguments.

    Parameters
    ----------
    predictions : array_like, (sequences, frames), integer
        Top-1 predictions.
    noise : bool
        Whether frames are compared with the first one, as for `NOISE_PERTURBATIONS`, not with the previous
        one.
    difficulty : int
        Distance of the compared frames; ignored for noises.

    Examples
    --------
    >>> from robustgen.metrics import flip_probability
    >>> flip_probability([[3, 3, 3, 3, 7], [1, 2, 1, 2, 1]], noise=False)
    0.625
    """
    return float(sequence_flips(predictions, noise=noise, difficulty=difficulty).mean())


def flip_rate(
    perturbation: str, probability: float, baseline: Mapping[str, float] = ALEXNET_FLIP_PROBABILITY
) -> float:
    """Return the flip probability divided by that of the baseline: FR of [C] section 4.2.

    Parameters
    ----------
    perturbation : str
    probability : float
        Flip probability of the model, a fraction.
    baseline : mapping of str to float, optional
        Flip probabilities of another model by perturbation. Default those of AlexNet.

    Raises
    ------
    ArgumentError
        The probability is no fraction, or the baseline has no positive value.

    Examples
    --------
    >>> from robustgen.metrics import flip_rate
    >>> round(flip_rate("tilt", 0.05), 4)  # over that of AlexNet
    0.7092
    """
    own = number(probability, f"the value of {perturbation}")
    return own / FLIP_RATE.divisor(perturbation, baseline)


def mean_flip_rate(
    probabilities: Mapping[str, float],
    baseline: Mapping[str, float] = ALEXNET_FLIP_PROBABILITY,
    names: Sequence[str] = COMMON_PERTURBATIONS,
) -> float:
    """Return the mean flip rate over the ten common perturbations: mFR of [C] section 4.2.

    All of `names` must be in `probabilities`; over others than the ten it is not mFR.

    Parameters
    ----------
    probabilities : mapping of str to float
        Flip probabilities by perturbation, fractions.
    baseline : mapping of str to float, optional
        Flip probabilities of another model by perturbation. Default those of AlexNet.
    names : sequence of str
        Perturbations over which the mean is taken.

    Examples
    --------
    >>> from robustgen.metrics import ALEXNET_FLIP_PROBABILITY, mean_flip_rate
    >>> half = {name: value / 2 for name, value in ALEXNET_FLIP_PROBABILITY.items()}
    >>> mean_flip_rate(half)
    0.5
    """
    return mean_over(names, probabilities, lambda name, value: flip_rate(name, value, baseline))


def mean_flip_probability(
    probabilities: Mapping[str, float], names: Sequence[str] = COMMON_PERTURBATIONS
) -> float:
    """Return the mean flip probability over the ten common perturbations: mFP of [M] section 4.

    Parameters
    ----------
    probabilities : mapping of str to float
        Flip probabilities by perturbation, fractions.
    names : sequence of str
        Perturbations over which the mean is taken.

    Examples
    --------
    >>> from robustgen.metrics import mean_flip_probability
    >>> mean_flip_probability({"tilt": 0.1, "snow": 0.3}, names=["tilt", "snow"])
    0.2
    """
    return mean_over(names, probabilities, lambda name, value: number(value, name))


# --- ImageNet-P: changes of the ranking of the classes along a sequence ----------------------------

LARGEST_TOP5_DISTANCE: Final = LARGEST["top5_distances"]
"""Top-5 distance of two lists without a common class: 5 + 4 + 3 + 2 + 1."""


def top5_distance(before: ArrayLike, after: ArrayLike) -> NDArray[np.intp]:
    """Return the distance d of pairs of top-5 lists; [C] section 4.2 and appendix C.

    The inner sum is |k - min(sigma(k), 6)|: a class that the other list does not contain counts as sixth, so
    ranks below the fifth are never needed.

    Parameters
    ----------
    before, after : array_like, (..., 5), integer
        Classes, best first, as returned by `top_classes`; broadcast against each other.

    Returns
    -------
    ndarray, (...), intp
        0 (same list) to 15 (no class in common).

    Raises
    ------
    ArgumentError
        A list does not have five classes, or the shapes do not match.

    Examples
    --------
    >>> from robustgen.metrics import top5_distance
    >>> top5_distance([1, 2, 3, 4, 5], [[2, 1, 3, 4, 5], [6, 7, 8, 9, 0]])
    array([ 2, 15])
    """
    first, second = _top5(before), _top5(after)
    try:
        same = first[..., :, None] == second[..., None, :]
    except ValueError as error:
        raise ArgumentError(f"top-5 lists of shapes {first.shape} and {second.shape} do not match") from error
    sigma = 6 - same @ np.arange(5, 0, -1)
    distance: NDArray[np.intp] = np.abs(sigma - np.arange(1, 6)).sum(axis=-1)
    return distance


def _top5(value: ArrayLike, axes: str = "... 5") -> NDArray[Any]:
    lists = array_of(value, "top-5 lists", "iu", axes)
    if lists.shape[-1] != 5:
        raise ArgumentError(f"top-5 lists must contain five classes, not {lists.shape[-1]}")
    return lists


def sequence_top5_distances(top5: ArrayLike, *, noise: bool, difficulty: int = 1) -> Floats:
    """Return the mean `top5_distance` over the frame pairs of each sequence.

    Parameters
    ----------
    top5 : array_like, (sequences, frames, 5), integer
        Classes, best first: ``top_classes(logits)``.
    noise, difficulty
        As in `sequence_flips`.

    Returns
    -------
    ndarray, (sequences,), float64

    Raises
    ------
    ArgumentError
        The lists have another shape or dtype, or too few frames.

    Examples
    --------
    >>> from robustgen.metrics import sequence_top5_distances
    >>> sequence_top5_distances([[[1, 2, 3, 4, 5], [2, 1, 3, 4, 5], [2, 1, 3, 4, 5]]], noise=False)
    array([1.])
    """
    pairs = frame_pairs(_top5(top5, "sequences frames 5"), noise, difficulty)
    distances: Floats = top5_distance(*pairs).mean(axis=1)
    return distances


def unnormalised_top5_distance(top5: ArrayLike, *, noise: bool, difficulty: int = 1) -> float:
    """Return the mean of `sequence_top5_distances`: uT5D of [C] section 4.2; same arguments.

    Parameters
    ----------
    top5 : array_like, (sequences, frames, 5), integer
        The five most probable classes, the first first: ``top_classes(logits, 5)``.
    noise : bool
        Whether frames are compared with the first one, as for `NOISE_PERTURBATIONS`, not with the previous
        one.
    difficulty : int
        Distance of the compared frames; ignored for noises.

    Examples
    --------
    >>> from robustgen.metrics import unnormalised_top5_distance
    >>> unnormalised_top5_distance([[[1, 2, 3, 4, 5], [2, 1, 3, 4, 5]]], noise=False)
    2.0
    """
    return float(sequence_top5_distances(top5, noise=noise, difficulty=difficulty).mean())


def zipf_distance(before: ArrayLike, after: ArrayLike) -> Floats:
    """Return the distance of pairs of rankings in which rank i has the weight 1/i; [C] appendix C.

    The distance is the sum over i of w_i |w_i - w_sigma(i)|, where w_i = 1/i and sigma(i) is the rank in
    `after` of the class with rank i in `before`.

    Parameters
    ----------
    before, after : array_like, (..., classes), any real dtype
        Logits, broadcast against each other. Of equal logits the lower class ranks first.

    Returns
    -------
    ndarray, (...), float64

    Raises
    ------
    ArgumentError
        The logits contain NaN or infinity, or the shapes do not match.

    Examples
    --------
    >>> from robustgen.metrics import zipf_distance
    >>> zipf_distance([3, 2, 1], [[3, 2, 1], [2, 3, 1]])
    array([0.  , 0.75])
    """
    first, second = logits_of(before), logits_of(after)
    if first.shape[-1] != second.shape[-1]:
        raise ArgumentError(f"logits of {first.shape[-1]} and {second.shape[-1]} classes cannot be compared")
    return _zipf(_rank_weights(first), _rank_weights(second))


def _rank_weights(logits: NDArray[Any]) -> Floats:
    """Return 1 / rank of each class, for logits (..., classes)."""
    order = np.argsort(-logits, axis=-1, kind="stable")
    weights = np.empty(logits.shape)
    np.put_along_axis(weights, order, 1 / np.arange(1.0, logits.shape[-1] + 1), axis=-1)
    return weights


def _zipf(first: Floats, second: Floats) -> Floats:
    """Return the Zipf distance from each class's weights in the two rankings."""
    try:
        distance: Floats = (first * np.abs(first - second)).sum(axis=-1)
    except ValueError as error:
        raise ArgumentError(f"rankings of shapes {first.shape} and {second.shape} do not match") from error
    return distance


def sequence_zipf_distances(logits: ArrayLike, *, noise: bool, difficulty: int = 1) -> Floats:
    """Return the mean `zipf_distance` over the frame pairs of each sequence.

    Parameters
    ----------
    logits : array_like, (sequences, frames, classes), any real dtype
    noise, difficulty
        As in `sequence_flips`.

    Returns
    -------
    ndarray, (sequences,), float64

    Raises
    ------
    ArgumentError
        The logits contain NaN or infinity, have another shape, or too few frames.

    Examples
    --------
    >>> from robustgen.metrics import sequence_zipf_distances
    >>> sequence_zipf_distances([[[3, 2, 1], [2, 3, 1], [2, 3, 1]]], noise=False)
    array([0.375])
    """
    array = logits_of(logits, "sequences frames classes")
    means = np.empty(len(array))
    for block in blocks(len(array), array[0].size):
        pairs = frame_pairs(_rank_weights(array[block]), noise, difficulty)
        means[block] = _zipf(*pairs).mean(axis=1)
    return means


def unnormalised_zipf_distance(logits: ArrayLike, *, noise: bool, difficulty: int = 1) -> float:
    """Return the mean of `sequence_zipf_distances`: the variant of uT5D in [C] appendix C.

    Parameters
    ----------
    logits : array_like, (sequences, frames, classes), float
        Scores of the classes.
    noise : bool
        Whether frames are compared with the first one, as for `NOISE_PERTURBATIONS`, not with the previous
        one.
    difficulty : int
        Distance of the compared frames; ignored for noises.

    Examples
    --------
    >>> from robustgen.metrics import unnormalised_zipf_distance
    >>> unnormalised_zipf_distance([[[3, 2, 1], [2, 3, 1]]], noise=False)
    0.75
    """
    return float(sequence_zipf_distances(logits, noise=noise, difficulty=difficulty).mean())


def standardised_top5_distance(
    perturbation: str, distance: float, baseline: Mapping[str, float] = ALEXNET_TOP5_DISTANCE
) -> float:
    """Return the unnormalised top-5 distance divided by that of the baseline: T5D of [C] section 4.2.

    Parameters
    ----------
    perturbation : str
    distance : float
        Unnormalised top-5 distance (uT5D) of the model, at most 15.
    baseline : mapping of str to float, optional
        uT5D of another model by perturbation. Default those of AlexNet.

    Raises
    ------
    ArgumentError
        The distance is above 15, or the baseline has no positive value.

    Examples
    --------
    >>> from robustgen.metrics import standardised_top5_distance
    >>> standardised_top5_distance("tilt", 1.75)
    1.0
    """
    own = number(distance, f"the value of {perturbation}", LARGEST_TOP5_DISTANCE)
    return own / TOP5_RATIO.divisor(perturbation, baseline)


def mean_top5_distance(
    distances: Mapping[str, float],
    baseline: Mapping[str, float] = ALEXNET_TOP5_DISTANCE,
    names: Sequence[str] = COMMON_PERTURBATIONS,
) -> float:
    """Return the mean T5D over the ten common perturbations: mT5D of [C] section 4.2.

    All of `names` must be in `distances`; over others than the ten it is not mT5D.

    Parameters
    ----------
    distances : mapping of str to float
        uT5D by perturbation.
    baseline : mapping of str to float, optional
        uT5D of another model by perturbation. Default those of AlexNet.
    names : sequence of str
        Perturbations over which the mean is taken.

    Examples
    --------
    >>> from robustgen.metrics import ALEXNET_TOP5_DISTANCE, mean_top5_distance
    >>> half = {name: value / 2 for name, value in ALEXNET_TOP5_DISTANCE.items()}
    >>> mean_top5_distance(half)
    0.5
    """
    return mean_over(names, distances, lambda name, value: standardised_top5_distance(name, value, baseline))


def unnormalised_mean_top5_distance(
    distances: Mapping[str, float], names: Sequence[str] = COMMON_PERTURBATIONS
) -> float:
    """Return the mean uT5D over the ten common perturbations.

    Parameters
    ----------
    distances : mapping of str to float
        uT5D by perturbation.
    names : sequence of str
        Perturbations over which the mean is taken.

    Examples
    --------
    >>> from robustgen.metrics import unnormalised_mean_top5_distance
    >>> unnormalised_mean_top5_distance({"tilt": 1, "snow": 3}, names=["tilt", "snow"])
    2.0
    """
    return mean_over(names, distances, lambda name, value: number(value, name, LARGEST_TOP5_DISTANCE))
