"""The data set of AugMix: triples of views.

Hendrycks et al., "AugMix" (ICLR 2020), section 3.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from robustgen.augmentation.augmix import AugMix, augmix
from robustgen.imaging.decode import as_rgb
from robustgen.imaging.pixels import Rgb
from robustgen.torch.epochs import EpochDataset
from robustgen.torch.pairs import MapStyle, split_pair

Views = tuple[Any, Any, Any]


class AugMixDataset(EpochDataset):
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
        super().__init__(dataset, seed)
        self.preprocess = preprocess
        self.parameters = AugMix(severity, width, depth, alpha, operations)

    def __getitem__(self, index: int) -> tuple[Views, Any]:
        place = range(len(self))[operator.index(index)]
        image, label = split_pair(self.dataset[place], place)
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
