"""The data set of AugMix: three versions of each image.

Hendrycks et al., "AugMix" (ICLR 2020), section 3.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.augmix import AugMix, augmix
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.torch.items import EpochDataset, MapStyle, split_pair

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
        position = range(len(self))[operator.index(index)]
        image, label = split_pair(self.dataset[position], position)
        pixels = as_rgb(image)
        rng = np.random.default_rng((self.seed, self.epoch, position))
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
