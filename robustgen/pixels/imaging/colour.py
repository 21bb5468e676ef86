"""Conversions between colour spaces; brightness, contrast and gamma by tables."""

from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import UNITS, Rgb, cut_strips
from robustgen.pixels.imaging.decode import as_grey
from robustgen.pixels.imaging.kernels import elementwise, exact

# --- saturation, value and colour tables -----------------------------------------------------------

# Number of values in a large image, and pixels of a strip whose planes fit into the cache.
_LARGE: Final = 3 << 20
_STRIP: Final = 1 << 16


class Hsv:
    """Hue, saturation and value of an image, and changes of them.

    For a large photograph they would need eight times its bytes, so each change computes them in strips.
    """

    def __init__(self, image: Rgb) -> None:
        self._image = image
        self._planes = _split_hsv(image) if image.size <= _LARGE else None

    def change(
        self, saturation_gain: float = 1.0, saturation_offset: float = 0.0, value_offset: float = 0.0
    ) -> Rgb:
        """Return the image with saturation (times gain plus offset) and value (plus offset) in [0, 1]."""
        out = np.empty_like(self._image)
        changes = float(saturation_gain), float(saturation_offset), float(value_offset)
        if self._planes is not None:
            elementwise.join_hsv(*self._planes, *changes, out.reshape(-1, 3))
            return out
        for strip, target in zip(cut_strips(self._image, _STRIP), cut_strips(out, _STRIP), strict=True):
            elementwise.join_hsv(*_split_hsv(strip), *changes, target.reshape(-1, 3))
        return out


def _split_hsv(image: Rgb) -> npt.NDArray[np.float64]:
    """Return hue (0 to 6), saturation and value of every pixel, (3, N)."""
    planes = np.empty((3, image.size // 3))
    elementwise.split_hsv(image.reshape(-1, 3), *planes)
    return planes


def raise_value(image: Rgb, offset: float) -> Rgb:
    """Add `offset` to the HSV value of every pixel, clipped to [0, 1], as `Hsv.change` does."""
    out = np.empty_like(image)
    pixels, target = image.reshape(-1, 3), out.reshape(-1, 3)
    elementwise.raise_value(pixels, _tabulate_raised(float(offset)), float(offset), target)
    return out


@lru_cache(maxsize=64)
def _tabulate_raised(offset: float) -> npt.NDArray[np.uint16]:
    """Return the table for `kernels.colour.raise_value`.

    All channels are multiplied by the same factor as the value. If the product is an integer, rounding
    errors of the conversion to HSV and back decide its truncation.
    """
    values = np.arange(256.0)
    raised = np.clip(values / 255.0 + offset, 0.0, 1.0) * 255.0
    products = np.minimum(np.outer(raised / np.maximum(values, 1.0), values), 255.0)
    in_doubt = (np.abs(products - np.rint(products)) < 1e-6) & (products > 0.0)
    table: npt.NDArray[np.uint16] = products.astype(np.uint16) + np.uint16(8 << 8) * in_doubt
    np.fill_diagonal(table, raised.astype(np.uint16) + np.uint16(1 << 8) * in_doubt.diagonal())
    return table


def channel_means(image: Rgb) -> npt.NDArray[np.float64]:
    """Return the mean of each channel in [0, 1], float64 (3,); bit-identical to ``np.mean``."""
    sums = np.empty(3)
    elementwise.channel_sums(image.reshape(-1, 3), UNITS, sums)
    return sums / (image.size // 3)


def scale_about(image: Rgb, centres: npt.NDArray[np.float64], factor: float) -> Rgb:
    """Multiply the distance of every value from its channel's centre in `centres`, in [0, 1]."""
    out = np.empty_like(image)
    elementwise.scale_about(image.reshape(-1, 3), UNITS, centres, float(factor), out.reshape(-1, 3))
    return out


def look_up_channels(image: Rgb, tables: npt.NDArray[Any], out: npt.NDArray[Any], *, planar: bool) -> None:
    """Write the entry of each value of channel c in row c of `tables`.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    tables : ndarray of shape (3, 256)
    out : contiguous ndarray of the type of `tables`, of shape (3, H, W) if `planar`, else (H, W, 3)
    planar : bool
    """
    # The loops copy bytes of any meaning, as numba has no half precision.
    words = np.dtype(f"u{tables.itemsize}")
    entries, target = tables.view(words), out.view(words)
    if planar:
        elementwise.look_up_planes(image.reshape(-1, 3), entries, target.reshape(3, -1))
    else:
        elementwise.look_up(image.reshape(-1, 3), np.ascontiguousarray(entries.T), target.reshape(-1, 3))


def apply_table(image: Rgb, table: Rgb) -> Rgb:
    """Replace each value of channel c by its entry in column c of `table`, uint8 (256, 3)."""
    out = np.empty_like(image)
    elementwise.look_up(image.reshape(-1, 3), table, out.reshape(-1, 3))
    return out


# --- brightness, contrast and gamma by tables, as Pillow and torchvision compute them --------------


def mean_grey(image: Rgb) -> int:
    """Return the mean luma of `image`, rounded half up."""
    luma = as_grey(image)
    return int(int(luma.sum()) / luma.size + 0.5)


def blend_with(grey: int, image: Rgb, factor: float) -> Rgb:
    """Return `grey` plus `factor` times the difference of each value of `image` from it, truncated.

    Equals Pillow's ``ImageEnhance.Contrast`` with the mean grey, and ``Brightness`` with 0.
    """
    distances = np.arange(256, dtype=np.float32) - np.float32(grey)
    values = np.float32(grey) + np.float32(factor) * distances
    return _look_up(image, np.clip(values, 0, 255).astype(np.uint8))


def bend_gamma(image: Rgb, gamma: float) -> Rgb:
    """Raise the values of `image`, scaled to [0, 1], to the power `gamma`, and truncate."""
    powers = [0.0**gamma, *(exact.power(value / 255, float(gamma)) for value in range(1, 256))]
    return _look_up(image, np.array([int(255.999 * power) for power in powers], np.uint8))


def _look_up(image: Rgb, table: Rgb) -> Rgb:
    return apply_table(image, np.repeat(table[:, None], 3, axis=1))
