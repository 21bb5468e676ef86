"""ImageNet-P: changes of the prediction along a sequence."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError
from robustgen.metrics.baselines import ALEXNET_FLIP_PROBABILITY
from robustgen.metrics.checks import Floats, array_of, number
from robustgen.metrics.formulas import FLIP_RATE, mean_over
from robustgen.metrics.names import COMMON_PERTURBATIONS


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
    """
    frames = array_of(predictions, "predictions", "iu", "sequences frames")
    before, after = frame_pairs(frames, noise, difficulty)
    flips: Floats = (before != after).mean(axis=1)
    return flips


def flip_probability(predictions: ArrayLike, *, noise: bool, difficulty: int = 1) -> float:
    """Return the mean of `sequence_flips`: FP of [C] section 4.2; same arguments."""
    return float(sequence_flips(predictions, noise=noise, difficulty=difficulty).mean())


def flip_rate(
    perturbation: str, probability: float, baseline: Mapping[str, float] = ALEXNET_FLIP_PROBABILITY
) -> float:
    """Return the flip probability divided by that of the baseline: FR of [C] section 4.2.

    `baseline` maps perturbations to flip probabilities of another model. A probability that is not a
    fraction, or a baseline without a positive value, raises ArgumentError.
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
    """
    return mean_over(names, probabilities, lambda name, value: flip_rate(name, value, baseline))


def mean_flip_probability(
    probabilities: Mapping[str, float], names: Sequence[str] = COMMON_PERTURBATIONS
) -> float:
    """Return the mean flip probability over the ten common perturbations: mFP of [M] section 4."""
    return mean_over(names, probabilities, lambda name, value: number(value, name))
