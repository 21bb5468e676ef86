"""Pixel contract: images of bytes, unit images of floats, and the conversions between them.

An image is a uint8 array of shape (H, W, 3), RGB. Operations work on *unit*
images, floats in [0, 1], and convert back with `to_uint8`, which truncates: the
published images were created by ``np.uint8(255 * x)``, not by rounding.
"""

from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import elementwise as kernels
from robustgen.pixels.imaging.pixels import Floats, Rgb

# The 256 values of a unit image.
UNITS = np.arange(256) / 255.0


Value = TypeVar("Value", bound=np.generic)

_STRIP: Final = 1 << 20


def cut_strips(image: npt.NDArray[Value], pixels: int | None = None) -> list[npt.NDArray[Value]]:
    """Return the rows of `image` (H, W, ...) as views of about `pixels` pixels, by default a million."""
    rows = max(1, (pixels or _STRIP) // max(1, image.shape[1]))
    return [image[top : top + rows] for top in range(0, len(image), rows)]


def unit(image: Rgb, dtype: npt.DTypeLike = np.float64) -> Floats:
    """Return `image` divided by 255, as float64 or float32."""
    if np.dtype(dtype) == np.float64:
        out = np.empty(image.shape)
        kernels.widen(np.ascontiguousarray(image).reshape(-1), UNITS, out.reshape(-1))
        return out
    divided: Floats = np.divide(image, np.float32(255), dtype=np.float32)
    return divided


def to_uint8(values: Floats) -> Rgb:
    """Clip unit `values` to [0, 1], multiply by 255 in their own precision, and truncate."""
    flat = np.ascontiguousarray(values)
    out = np.empty(flat.shape, np.uint8)
    kernels.quantise(flat.reshape(-1), out.reshape(-1))
    return out
