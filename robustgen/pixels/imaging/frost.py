"""Frost photographs, and windows of them blended into an image."""

import math
from functools import lru_cache

import numpy as np

from robustgen.errors import ImageError
from robustgen.pixels.imaging.kernels import elementwise as kernels
from robustgen.pixels.imaging.kernels import resizing
from robustgen.pixels.imaging.opencv import cv2
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng, integers
from robustgen.pixels.imaging.third_party_files import FROST

# Indices 0 to 4 are drawn, never the sixth photograph.
_DRAWN = 5
# Pixels of the largest images whose enlarged photographs are kept.
_KEPT = 1 << 22
_MOST_BYTES = 2_000_000_000


@lru_cache(maxsize=32)
def frost_photograph(index: int, shrink: float = 1.0, directory: str | None = None) -> Rgb:
    """Return frost photograph `index` (0 .. 4), RGB, shrunk by OpenCV's default interpolation.

    Raises
    ------
    MissingDependencyError
        The file is missing, or not the published one.
    """
    data = FROST.read(list(FROST.digests)[index], directory)
    bgr = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
    if shrink != 1.0:
        bgr = np.asarray(cv2.resize(bgr, (0, 0), fx=shrink, fy=shrink))
    photograph: Rgb = np.ascontiguousarray(bgr[:, :, ::-1])
    photograph.flags.writeable = False
    return photograph


def check_frost(directory: str | None = None) -> None:
    """Raise a MissingDependencyError unless all frost photographs can be read."""
    for index in range(_DRAWN):
        frost_photograph(index, 1.0, directory)


def frost_crop(shape: tuple[int, int], shrink: float, directory: str | None, rng: Rng) -> Rgb:
    """Return a random window of `shape` (H, W) of a random frost photograph, uint8 (H, W, 3)."""
    photograph = frost_photograph(int(integers(rng, 0, _DRAWN)), shrink, directory)
    photograph = _cover(photograph, shape)
    rows, columns = photograph.shape[:2]
    top = integers(rng, 0, max(rows - shape[0], 1))
    left = integers(rng, 0, max(columns - shape[1], 1))
    return photograph[top : top + shape[0], left : left + shape[1]]


def enlarged_photograph(index: int, shape: tuple[int, int], directory: str | None) -> Rgb:
    """Return frost photograph `index`, enlarged by a tenth more than needed to cover `shape` (H, W).

    As in the package imagecorruptions, a photograph that already covers `shape` is enlarged by a tenth too.

    Raises
    ------
    ImageError
        The enlarged photograph would need too much memory.
    """
    # The photographs of one large shape alone would fill memory.
    enlarge = _enlarge_once if math.prod(shape) <= _KEPT else _enlarge
    return enlarge(index, shape, directory)


def _enlarge(index: int, shape: tuple[int, int], directory: str | None) -> Rgb:
    photograph = frost_photograph(index, 1.0, directory)
    rows, columns = photograph.shape[:2]
    factor = max(shape[0] / rows, shape[1] / columns, 1.0) * 1.1
    size = math.ceil(rows * factor), math.ceil(columns * factor)
    _check_memory(size, shape)
    enlarged = np.empty((*size, 3), np.uint8)
    resizing.resize_cubic(photograph, enlarged)
    enlarged.flags.writeable = False
    return enlarged


_enlarge_once = lru_cache(maxsize=16)(_enlarge)


def _check_memory(size: tuple[int, int], shape: tuple[int, int]) -> None:
    """Raise an ImageError if a photograph of `size`, to cover an image of `shape`, needs too much memory."""
    if (needed := 3 * math.prod(size)) > _MOST_BYTES:
        raise ImageError(
            f"needs frost enlarged to {size[1]} x {size[0]} pixels, {needed / 1e9:.1f} GB, for {shape[1]} x "
            f"{shape[0]} pixels; at most {_MOST_BYTES / 1e9:.0f} GB are allowed"
        )


def blend(image: Rgb, weight: float, other: Rgb, other_weight: float) -> Rgb:
    """Return the weighted sum of two uint8 images of one shape, clipped to 0 .. 255 and truncated."""
    out = np.empty_like(image)
    flat = np.ascontiguousarray(other).reshape(-1)
    kernels.blend(image.reshape(-1), float(weight), flat, float(other_weight), out.reshape(-1))
    return out


def _cover(photograph: Rgb, shape: tuple[int, int]) -> Rgb:
    """Return `photograph`, enlarged with its aspect ratio if it does not cover `shape`."""
    rows, columns = photograph.shape[:2]
    factor = max(shape[0] / rows, shape[1] / columns)
    if factor <= 1:
        return photograph
    size = max(math.ceil(columns * factor), shape[1]), max(math.ceil(rows * factor), shape[0])
    _check_memory(size[::-1], shape)
    return np.asarray(cv2.resize(photograph, size, interpolation=cv2.INTER_LINEAR), np.uint8)
