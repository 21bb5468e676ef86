"""Crops of a photograph for a model: its centre, or ten crops, as in torchvision."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.geometry import centre_crop, crop_ten, resize_shorter

SHARE: Final = 0.875
"""Side of the crop relative to the shorter side of the resized image: 224 / 256, as in ImageNet tests."""


@dataclass(frozen=True)
class CropSizes:
    """Resizing and cropping of an image.

    Attributes
    ----------
    height, width : int
        Size of a crop, in pixels.
    shorter : int
        Shorter side of the image that is cropped.
    """

    height: int
    width: int
    shorter: int

    def resize(self, image: Rgb) -> Rgb:
        """Return `image`, uint8 (H, W, 3), resized to the shorter side before the crop; bilinear.

        Raises
        ------
        ImageError
            The image is too elongated.
        """
        return resize_shorter(image, self.shorter)

    def crop_centre(self, image: Rgb) -> Rgb:
        """Return the centre of the resized `image`: uint8 (1, height, width, 3)."""
        return centre_crop(self.resize(image), self.width, self.height)[None]

    def crop_ten(self, image: Rgb) -> Rgb:
        """Return four corners and the centre, then those of the mirrored image: uint8 (10, height, width, 3).

        Krizhevsky et al., 2012, section 4.1.
        """
        return np.stack([*crop_ten(self.resize(image), self.width, self.height)])


def geometry(height: int, width: int, shorter: int | None = None) -> CropSizes:
    """Return the geometry of crops of that size; `shorter` defaults to the crop's size / 0.875."""
    return CropSizes(height, width, shorter or round(max(height, width) / SHARE))
