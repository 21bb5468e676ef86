"""Preparation steps of images as values, which also apply to maps of an image, such as depth."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from robustgen.errors import ImageError
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.decode import as_rgb, as_rgb_picture
from robustgen.pixels.imaging.geometry import centre_crop, find_shorter, resize, resize_picture

Map = npt.NDArray[np.float32]
"""A value for each pixel, (H, W)."""
_Resize = Callable[[Any, int, int], Any]


class PreparationStep(ABC):
    """A step of the preparation."""

    def __call__(self, image: Decoded) -> Rgb:
        """Return the image after this step, uint8 (H, W, 3).

        Raises
        ------
        ImageError
            The image is too small, too elongated, or has the wrong size.
        """
        picture = as_rgb_picture(image) if isinstance(image, Image.Image) else image
        return as_rgb(self._apply(picture, resize))

    def apply_as_stored(self, image: Image.Image) -> Rgb:
        """Return a Pillow image after this step, which is applied in its own mode, before the conversion.

        Raises
        ------
        ImageError
            As for the converted image.
        """
        return as_rgb(self._apply(image, resize_picture))

    def follow(self, values: Map) -> Map:
        """Return a map of the image after this step, with nearest values, not interpolated.

        Raises
        ------
        ImageError
            As for the image.
        """
        return np.asarray(self._apply(values, _resize_map), np.float32)

    @abstractmethod
    def _apply(self, image: Any, resize: _Resize) -> Any:
        """Apply the step to an image or a map, resizing with `resize`."""


@dataclass(frozen=True)
class Keep(PreparationStep):
    """A step that keeps images unchanged."""

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return image


@dataclass(frozen=True)
class ResizeShorter(PreparationStep):
    """A step that resizes the shorter side to `side` pixels and keeps the aspect ratio."""

    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        width, height = _find_size(image)
        return resize(image, *find_shorter(width, height, self.side))


@dataclass(frozen=True)
class Squeeze(PreparationStep):
    """A step that resizes both sides to `side` pixels."""

    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return resize(image, self.side, self.side)


@dataclass(frozen=True)
class Crop(PreparationStep):
    """A step that cuts the central `side` x `side` pixels."""

    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return centre_crop(np.asarray(image), self.side, self.side)


@dataclass(frozen=True)
class CropMost(PreparationStep):
    """A step that cuts the central 87.5 % of both sides."""

    def _apply(self, image: Any, resize: _Resize) -> Any:
        width, height = _find_size(image)
        return centre_crop(np.asarray(image), int(0.875 * width), int(0.875 * height))


@dataclass(frozen=True)
class CheckSide(PreparationStep):
    """A step that refuses images not of `side` x `side` pixels, the size of `title` images."""

    title: str
    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        width, height = _find_size(image)
        if (width, height) != (self.side, self.side):
            sides = f"{self.side} x {self.side} pixels, not {width} x {height}"
            raise ImageError(f"{self.title} images are {sides}")
        return image


@dataclass(frozen=True)
class Chain(PreparationStep):
    """The `first` step followed by the `second`."""

    first: PreparationStep
    second: PreparationStep

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return self.second._apply(self.first._apply(image, resize), resize)


class Preparation(NamedTuple):
    """Geometry of one corruption in pixels.

    The shorter side is resized to `resize`, then cropped to `crop`, and the result to `finish`.
    """

    resize: int = 256
    crop: int = 224
    finish: int = 224

    @property
    def step(self) -> PreparationStep:
        """Return the preparation of the source image as one step."""
        return Chain(ResizeShorter(self.resize), Crop(self.crop))

    def prepare(self, image: Decoded) -> Rgb:
        """Resize and crop a source image for the corruption."""
        return self.step(image)

    def complete(self, corrupted: Rgb) -> Rgb:
        """Crop the result of the corruption to the saved size."""
        return centre_crop(corrupted, self.finish, self.finish)


def _find_size(image: Any) -> tuple[int, int]:
    """Return width and height of a Pillow image or an array."""
    width, height = image.size if isinstance(image, Image.Image) else image.shape[1::-1]
    return width, height


def _resize_map(values: Map, width: int, height: int) -> Map:
    return np.array(Image.fromarray(values).resize((width, height), Image.Resampling.NEAREST))
