"""Divergences of distributions over the classes."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import Floats, distributions


def jensen_shannon(*rows: ArrayLike) -> Floats:
    """Mean Kullback-Leibler divergence, in nats, of distributions from their mean; [M] section 3, equation 2.

    Parameters
    ----------
    *rows : array_like, (..., classes), float
        Two or more distributions of one shape; in AugMix three, of an image and two augmented copies.

    Returns
    -------
    ndarray, (...), float64
        0 (all equal) to the logarithm of their number.

    Raises
    ------
    ArgumentError
        If there are fewer than two, the shapes differ or a row is no distribution.
    """
    arrays = [distributions(each) for each in rows]
    if len(arrays) < 2 or len({each.shape for each in arrays}) > 1:
        raise ArgumentError("at least two distributions of one shape are needed")
    # Where a probability is 0 its term is 0, whatever the logarithm.
    logarithms = [np.log(np.where(each > 0, each, 1)) for each in arrays]
    divergence: Floats = divergence_from_mean(arrays, logarithms, np.finfo(np.float64).tiny, np)
    return divergence


def divergence_from_mean(
    probabilities: Sequence[Any], log_probabilities: Sequence[Any], least: float, library: ModuleType
) -> Any:
    """Mean Kullback-Leibler divergence of distributions from their mean, of arrays or of tensors.

    Parameters
    ----------
    probabilities, log_probabilities : sequence of tensors or arrays, (..., classes)
    least : float
        The mean distribution is raised to this before its logarithm is taken.
    library : module
        Theirs: numpy or torch.

    Returns
    -------
    tensor or array, (...)
    """
    log_mean = library.log(library.clip(sum(probabilities) / len(probabilities), least, 1.0))
    pairs = zip(probabilities, log_probabilities, strict=True)
    return sum((p * (log_p - log_mean)).sum(-1) for p, log_p in pairs) / len(probabilities)
