"""Losses that require similar predictions for several versions of an image.

Hendrycks et al., "AugMix" (ICLR 2020), section 3. Zheng et al., "Improving the Robustness of Deep Neural
Networks via Stability Training" (CVPR 2016), section 3. PyTorch is imported when a loss is called.
"""

from collections.abc import Sequence
from typing import Any

from robustgen.errors import ArgumentError, ArgumentTypeError, MissingDependencyError
from robustgen.metrics.classification import divergence_from_mean

# The mean prediction is clamped away from 0 before its logarithm, as published.
LEAST_PROBABILITY = 1e-7


def jensen_shannon_loss(
    logits_clean: Any, logits_1: Any, logits_2: Any, labels: Any = None, weight: float = 12.0
) -> Any:
    """Return the cross entropy of the clean images plus `weight` times the divergence of three predictions.

    The divergence is the mean of the Kullback-Leibler divergences of the three distributions from their
    mean, which is clamped to at least 1e-7, averaged over the images.

    Parameters
    ----------
    logits_clean, logits_1, logits_2 : torch.Tensor of shape (N, classes)
        Logits of the clean images and of their two mixes.
    labels : torch.Tensor of shape (N,), optional
        True classes. Without them the result is only the weighted divergence.
    weight : float
        12 in the paper's experiments.

    Returns
    -------
    torch.Tensor
        A scalar.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        The logits are not tensors, or not of one shape (N, classes).
    MissingDependencyError
        PyTorch is not installed.
    """
    torch = _torch("jensen_shannon_loss")
    logits = (logits_clean, logits_1, logits_2)
    _check_logits(logits, torch)
    # In half precision, 1e-7 would be rounded to 0.
    precision = torch.promote_types(logits_clean.dtype, torch.float32)
    logarithms = [torch.log_softmax(each, 1, dtype=precision) for each in logits]
    probabilities = [torch.exp(each) for each in logarithms]
    loss = weight * divergence_from_mean(probabilities, logarithms, LEAST_PROBABILITY, torch).mean()
    return loss if labels is None else loss + torch.nn.functional.cross_entropy(logits_clean, labels)


def stability_loss(logits_clean: Any, logits_noisy: Any, labels: Any = None, weight: float = 0.01) -> Any:
    """Return the cross entropy of the clean images plus `weight` times that of clean and noisy predictions.

    The second term is the cross entropy of the softmax of the noisy images relative to the softmax of the
    clean ones, averaged over the images. Its gradient flows through both. The paper of ImageNet-C tries the
    weights 0.01, 0.05 and 0.1, with the noise of `UniformNoise` (appendix F).

    Parameters
    ----------
    logits_clean, logits_noisy : torch.Tensor of shape (N, classes)
        Logits of the clean images, and of the same images with noise.
    labels : torch.Tensor of shape (N,), optional
        True classes. Without them the result is only the weighted second term.
    weight : float

    Returns
    -------
    torch.Tensor
        A scalar.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        The logits are not tensors, or not of one shape (N, classes).
    MissingDependencyError
        PyTorch is not installed.
    """
    torch = _torch("stability_loss")
    _check_logits((logits_clean, logits_noisy), torch)
    precision = torch.promote_types(logits_clean.dtype, torch.float32)
    clean = torch.softmax(logits_clean, 1, dtype=precision)
    noisy = torch.log_softmax(logits_noisy, 1, dtype=precision)
    loss = -weight * (clean * noisy).sum(1).mean()
    return loss if labels is None else loss + torch.nn.functional.cross_entropy(logits_clean, labels)


def _torch(name: str) -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(f"{name} needs PyTorch: pip install 'robustgen[torch]'") from error
    return torch


def _check_logits(logits: Sequence[Any], torch: Any) -> None:
    for each in logits:
        if not isinstance(each, torch.Tensor):
            raise ArgumentTypeError(f"logits must be torch.Tensor, not {type(each).__name__}")
    shapes = [tuple(each.shape) for each in logits]
    if len(set(shapes)) > 1 or len(shapes[0]) != 2:
        raise ArgumentError(f"logits must have one shape (N, classes), not {', '.join(map(str, shapes))}")
