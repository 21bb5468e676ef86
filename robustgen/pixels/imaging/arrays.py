"""Types of images, and conversions between bytes and unit images.

An image is a uint8 array of shape (H, W, 3), RGB. Operations work on *unit* images, floats in [0, 1], and
convert back with `to_uint8`, which truncates: the published images were created by ``np.uint8(255 * x)``,
not by rounding.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from PIL import Image

from robustgen.errors import ImageError
from robustgen.pixels.imaging.kernels import elementwise as kernels

# --- shared pixel types ----------------------------------------------------------------------------

Rgb = npt.NDArray[np.uint8]
"""An image: uint8, shape (H, W, 3), RGB; or frames of shape (T, H, W, 3)."""

Decoded = Rgb | Image.Image
"""An image, or a decoded Pillow image of any mode, which is faster to resize than an array."""

AnyFloats = npt.NDArray[np.floating[Any]]
"""float32 or float64; a *unit* image is one of shape (H, W, 3) with values in [0, 1]."""

Doubles = npt.NDArray[np.float64]
"""float64, of any shape."""


Pixels = NDArray[np.uint8]


def check_alike(images: Sequence[Pixels], where: object, remedy: str = "") -> None:
    """Raise an ImageError if images (or sequences) differ in size; it names `where` and the `remedy`."""
    if len({image.shape for image in images}) > 1:
        sizes = " and ".join(sorted({"x".join(map(str, image.shape[:-1])) for image in images})[:2])
        raise ImageError(f"{where}: images differ in size: {sizes}{remedy and f' ({remedy})'}")


# --- pixel contract: images of bytes, unit images of floats, and the conversions between them ------

# An image is a uint8 array of shape (H, W, 3), RGB. Operations work on *unit*
# images, floats in [0, 1], and convert back with `to_uint8`, which truncates: the
# published images were created by ``np.uint8(255 * x)``, not by rounding.

# The 256 values of a unit image.
UNITS = np.arange(256) / 255.0


Value = TypeVar("Value", bound=np.generic)

_STRIP: Final = 1 << 20


def cut_strips(image: npt.NDArray[Value], pixels: int | None = None) -> list[npt.NDArray[Value]]:
    """Return the rows of `image` (H, W, ...) as views of about `pixels` pixels, by default a million."""
    rows = max(1, (pixels or _STRIP) // max(1, image.shape[1]))
    return [image[top : top + rows] for top in range(0, len(image), rows)]


def unit(image: Rgb, dtype: npt.DTypeLike = np.float64) -> AnyFloats:
    """Return `image` divided by 255, as float64 or float32."""
    if np.dtype(dtype) == np.float64:
        out = np.empty(image.shape)
        kernels.widen(np.ascontiguousarray(image).reshape(-1), UNITS, out.reshape(-1))
        return out
    divided: AnyFloats = np.divide(image, np.float32(255), dtype=np.float32)
    return divided


def to_uint8(values: AnyFloats) -> Rgb:
    """Clip unit `values` to [0, 1], multiply by 255 in their own precision, and truncate."""
    flat = np.ascontiguousarray(values)
    out = np.empty(flat.shape, np.uint8)
    kernels.quantise(flat.reshape(-1), out.reshape(-1))
    return out
