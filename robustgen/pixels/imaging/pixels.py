"""Shared pixel types."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from PIL import Image

from robustgen.errors import ImageError

Rgb = npt.NDArray[np.uint8]
"""An image: uint8, shape (H, W, 3), RGB; or frames of shape (T, H, W, 3)."""

Decoded = Rgb | Image.Image
"""An image, or a decoded Pillow image of any mode, which is faster to resize than an array."""

Floats = npt.NDArray[np.floating[Any]]
"""float32 or float64; a *unit* image is one of shape (H, W, 3) with values in [0, 1]."""


Pixels = NDArray[np.uint8]


def stack_images(images: Sequence[Pixels], where: object, remedy: str = "") -> Pixels:
    """Stack images (or sequences) of one size into an array, uint8 (N, ...).

    Raises
    ------
    ImageError
        There are several sizes; the message names two of them, `where`, and the `remedy`.
    """
    if len({image.shape for image in images}) > 1:
        sizes = " and ".join(sorted({"x".join(map(str, image.shape[:-1])) for image in images})[:2])
        raise ImageError(f"{where}: images differ in size: {sizes}{remedy and f' ({remedy})'}")
    return np.stack(images)
