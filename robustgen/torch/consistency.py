"""Training for consistency: the data set of AugMix, and its loss for three versions of an image.

Hendrycks et al., "AugMix" (ICLR 2020), section 3. PyTorch is imported when the loss is called.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from PIL import Image

from robustgen.errors import ArgumentError, ArgumentTypeError
from robustgen.pixels.imaging.augmix import AugMix, augmix
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.torch.items import EpochDataset, MapStyle, import_torch, split_pair

Views = tuple[Any, Any, Any]


class AugMixDataset(EpochDataset):
    """A map-style data set whose items are ``((clean, mix 1, mix 2), label)``.

    The two mixes of an item depend only on seed, epoch and index, not on the number of workers of a
    DataLoader or the order of the items.

    Parameters
    ----------
    dataset : map-style dataset
        Data set of pairs (image, label). Images are Pillow images or uint8 arrays of shape (H, W, 3) or (H,
        W). Apply random crops and flips in it, so that the three versions share them.
    preprocess : callable, optional
        Called with each version: an RGB Pillow image if the data set returns Pillow images, otherwise a uint8
        array of shape (H, W, 3). Use it to convert to tensors and normalise.
    severity, width, depth, alpha, operations
        As in `robustgen.augmix`.
    seed : int
        Seed, not negative.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid, or an item is not a pair of an image and a label.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.torch import AugMixDataset
    >>> pairs = [(np.full((32, 32, 3), 30 * each, np.uint8), each) for each in range(4)]
    >>> mixed = AugMixDataset(pairs, seed=0)
    >>> (clean, first, second), label = mixed[2]
    >>> clean.shape, label, len(mixed)
    ((32, 32, 3), 2, 4)
    """

    def __init__(
        self,
        dataset: MapStyle,
        *,
        preprocess: Callable[[Any], Any] | None = None,
        severity: float = 3,
        width: int = 3,
        depth: int = -1,
        alpha: float = 1.0,
        operations: str = "augmix",
        seed: int = 0,
    ) -> None:
        super().__init__(dataset, seed)
        self.preprocess = preprocess
        self.parameters: AugMix = AugMix(severity, width, depth, alpha, operations)

    def __getitem__(self, index: int) -> tuple[Views, Any]:
        position = range(len(self))[operator.index(index)]
        image, label = split_pair(self.dataset[position], position)
        pixels = as_rgb(image)
        rng = np.random.default_rng((self.seed, self.epoch, position))
        views: list[Any] = [pixels.copy(), *(augmix(pixels, self.parameters, rng) for _ in range(2))]
        if isinstance(image, Image.Image):
            views = [*map(Image.fromarray, views)]
        first, second, third = map(self.preprocess, views) if self.preprocess else views
        return (first, second, third), label


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

    Examples
    --------
    >>> import torch
    >>> from robustgen.torch import jensen_shannon_loss
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> abs(round(float(jensen_shannon_loss(logits, logits, logits)), 4))
    0.0
    >>> round(float(jensen_shannon_loss(logits, logits, -logits)), 4)
    2.3656
    """
    # It imports SciPy, which the data set does not need.
    from robustgen.metrics.classification import divergence_from_mean

    torch = import_torch("jensen_shannon_loss")
    logits = (logits_clean, logits_1, logits_2)
    _check_logits(logits, torch)
    # In half precision, 1e-7 would be rounded to 0.
    precision = torch.promote_types(logits_clean.dtype, torch.float32)
    logarithms = [torch.log_softmax(each, 1, dtype=precision) for each in logits]
    probabilities = [torch.exp(each) for each in logarithms]
    loss = weight * divergence_from_mean(probabilities, logarithms, LEAST_PROBABILITY, torch).mean()
    return loss if labels is None else loss + torch.nn.functional.cross_entropy(logits_clean, labels)


def _check_logits(logits: Sequence[Any], torch: Any) -> None:
    for each in logits:
        if not isinstance(each, torch.Tensor):
            raise ArgumentTypeError(f"logits must be torch.Tensor, not {type(each).__name__}")
    shapes = [tuple(each.shape) for each in logits]
    if len(set(shapes)) > 1 or len(shapes[0]) != 2:
        raise ArgumentError(f"logits must have one shape (N, classes), not {', '.join(map(str, shapes))}")
