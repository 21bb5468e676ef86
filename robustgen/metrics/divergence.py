"""Divergences of distributions over the classes."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import Floats, distributions


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
