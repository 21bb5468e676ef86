"""Steps that prepare images, as values: what lies beside an image, such as a depth map, can follow them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from robustgen.errors import ImageError
from robustgen.imaging.decode import as_rgb
from robustgen.imaging.geometry import centre_crop, find_shorter, resize
from robustgen.imaging.pixels import Decoded, Rgb

Map = npt.NDArray[np.float32]
"""A value for each pixel, (H, W)."""
_Resize = Callable[[Any, int, int], Any]


class Step(ABC):
    """A step of the preparation."""

    def __call__(self, image: Decoded) -> Rgb:
        """Return the image after this step, uint8 (H, W, 3).

        Raises
        ------
        ImageError
            It is too small, too elongated, or of another size than it must be.
        """
        return as_rgb(self._apply(image, resize))

    def follow(self, values: Map) -> Map:
        """Return the map of an image after this step: nothing is interpolated, each value is the nearest.

        Raises
        ------
        ImageError
            As for the image.
        """
        return np.asarray(self._apply(values, _resize_map), np.float32)

    @abstractmethod
    def _apply(self, image: Any, resize: _Resize) -> Any:
        """Take the step with an image or a map, which `resize` resizes."""


@dataclass(frozen=True)
class Keep(Step):
    """Leaves images as they are."""

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return image


@dataclass(frozen=True)
class ResizeShorter(Step):
    """Resizes the shorter side to `side` pixels, and the other one as much."""

    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        width, height = _find_size(image)
        return resize(image, *find_shorter(width, height, self.side))


@dataclass(frozen=True)
class Squeeze(Step):
    """Resizes both sides to `side` pixels."""

    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return resize(image, self.side, self.side)


@dataclass(frozen=True)
class Crop(Step):
    """Cuts the middle `side` x `side` pixels."""

    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return centre_crop(np.asarray(image), self.side, self.side)


@dataclass(frozen=True)
class CropMost(Step):
    """Cuts the middle 87.5 % of both sides."""

    def _apply(self, image: Any, resize: _Resize) -> Any:
        width, height = _find_size(image)
        return centre_crop(np.asarray(image), int(0.875 * width), int(0.875 * height))


@dataclass(frozen=True)
class CheckSide(Step):
    """Refuses images that are not `side` x `side` pixels, as those of `title` are."""

    title: str
    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        width, height = _find_size(image)
        if (width, height) != (self.side, self.side):
            sides = f"{self.side} x {self.side} pixels, not {width} x {height}"
            raise ImageError(f"{self.title} images are {sides}")
        return image


@dataclass(frozen=True)
class Chain(Step):
    """Takes the `first` step, and then the `second`."""

    first: Step
    second: Step

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return self.second._apply(self.first._apply(image, resize), resize)


def _find_size(image: Any) -> tuple[int, int]:
    """Return width and height of a Pillow image or an array."""
    width, height = image.size if isinstance(image, Image.Image) else image.shape[1::-1]
    return width, height


def _resize_map(values: Map, width: int, height: int) -> Map:
    return np.array(Image.fromarray(values).resize((width, height), Image.Resampling.NEAREST))
