"""For training with AugMix in PyTorch: triples of views, and the loss that makes their predictions agree.

Hendrycks et al., "AugMix" (ICLR 2020), section 3. PyTorch is imported by the loss alone, when it is called.
"""

import operator
from collections.abc import Callable, Sequence
from ctypes import c_uint64
from multiprocessing.context import get_spawning_popen
from multiprocessing.sharedctypes import RawValue
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from PIL import Image

from robustgen.augmentation.augmix import AugMix, augmix
from robustgen.errors import ArgumentError, ArgumentTypeError, MissingDependencyError
from robustgen.imaging.decode import as_rgb
from robustgen.imaging.pixels import Rgb
from robustgen.metrics.divergence import divergence_from_mean

# The mean prediction is kept away from 0 before its logarithm is taken, as published.
LEAST_PROBABILITY = 1e-7

Views = tuple[Any, Any, Any]


# --- the dataset ---------------------------------------------------------------------------------


class MapStyle(Protocol):
    """A dataset with a length, whose items are images with their labels."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


class AugMixDataset:
    """A map-style dataset whose items are ``((clean, mix 1, mix 2), label)``.

    The two mixes of an item depend on seed, epoch and index alone: not on the number of workers of a
    DataLoader, nor on the order in which items are asked for.

    Parameters
    ----------
    dataset : map-style dataset
        Of pairs (image, label). Images are Pillow images or uint8 arrays of shape (H, W, 3) or (H, W).
        Random cropping and flipping belong into it, so that the three views have them in common.
    preprocess : callable, optional
        Called with each of the views: RGB Pillow images if the dataset gives Pillow images, else uint8
        arrays of shape (H, W, 3). Tensors are made and normalised here.
    severity, width, depth, alpha, operations
        As in `robustgen.augmix`.
    seed : int
        Not negative.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A value cannot be used, or an item is no pair of an image and a label.
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
        self.dataset, self.preprocess = dataset, preprocess
        self.parameters = AugMix(severity, width, depth, alpha, operations)
        self.seed = _natural("seed", seed)
        self._epoch = _Shared()

    @property
    def epoch(self) -> int:
        """The current epoch, 0 at first."""
        return self._epoch.value

    def set_epoch(self, epoch: int) -> None:
        """Give every item other mixes. Call it before each epoch; workers that live on are told too."""
        self._epoch.value = _natural("epoch", epoch)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Views, Any]:
        place = range(len(self))[operator.index(index)]
        image, label = _pair(self.dataset[place], place)
        pixels = as_rgb(image)
        rng = np.random.default_rng((self.seed, self.epoch, place))
        first, second = (augmix(pixels, self.parameters, rng) for _ in range(2))
        as_picture = isinstance(image, Image.Image)
        return (
            self._view(pixels.copy(), as_picture),
            self._view(first, as_picture),
            self._view(second, as_picture),
        ), label

    def _view(self, pixels: Rgb, as_picture: bool) -> Any:
        view = Image.fromarray(pixels) if as_picture else pixels
        return self.preprocess(view) if self.preprocess else view


def _pair(item: Any, index: int) -> tuple[Any, Any]:
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise ArgumentTypeError(f"item {index} of the dataset must be a pair (image, label)")
    return item[0], item[1]


def _natural(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 0 <= int(value) < 2**64:
        raise ArgumentError(f"{name} must be from 0 to 2**64 - 1, not {value}")
    return int(value)


class _Shared:
    """A whole number in memory that worker processes share with the process that started them."""

    def __init__(self, value: int = 0) -> None:
        self._memory = RawValue(c_uint64, value)

    @property
    def value(self) -> int:
        return int(self._memory.value)

    @value.setter
    def value(self, value: int) -> None:
        self._memory.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        # Memory is handed on only to a process that is being started; other copies go their own way.
        if get_spawning_popen() is None:
            return _Shared, (self.value,)
        return object.__new__, (_Shared,), {"_memory": self._memory}


# --- the loss ------------------------------------------------------------------------------------


def jensen_shannon_loss(
    logits_clean: Any, logits_1: Any, logits_2: Any, labels: Any = None, weight: float = 12.0
) -> Any:
    """Cross entropy of the clean images, and `weight` times the divergence of the three predictions.

    The divergence is the mean of the Kullback-Leibler divergences of the three distributions from their
    mean, which is clamped to at least 1e-7, averaged over the images.

    Parameters
    ----------
    logits_clean, logits_1, logits_2 : torch.Tensor of shape (N, classes)
        Of the clean images and of their two mixes.
    labels : torch.Tensor of shape (N,), optional
        Classes. Without them the result is the weighted divergence alone.
    weight : float
        12 in the paper's experiments.

    Returns
    -------
    torch.Tensor
        A scalar.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        The logits are no tensors, or not of one shape (N, classes).
    MissingDependencyError
        PyTorch is not installed.
    """
    torch = _torch()
    logits = (logits_clean, logits_1, logits_2)
    _check_logits(logits, torch)
    # In half precision 1e-7 would be 0.
    precision = torch.promote_types(logits_clean.dtype, torch.float32)
    logarithms = [torch.log_softmax(each, 1, dtype=precision) for each in logits]
    probabilities = [torch.exp(each) for each in logarithms]
    loss = weight * divergence_from_mean(probabilities, logarithms, LEAST_PROBABILITY, torch).mean()
    return loss if labels is None else loss + torch.nn.functional.cross_entropy(logits_clean, labels)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            "jensen_shannon_loss needs PyTorch: pip install 'robustgen[torch]'"
        ) from error
    return torch


def _check_logits(logits: Sequence[Any], torch: Any) -> None:
    for each in logits:
        if not isinstance(each, torch.Tensor):
            raise ArgumentTypeError(f"logits must be torch.Tensor, not {type(each).__name__}")
    shapes = [tuple(each.shape) for each in logits]
    if len(set(shapes)) > 1 or len(shapes[0]) != 2:
        raise ArgumentError(f"logits must have one shape (N, classes), not {', '.join(map(str, shapes))}")
