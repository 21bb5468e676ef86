"""Shared pixel types."""

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Rgb = npt.NDArray[np.uint8]
"""An image: uint8, shape (H, W, 3), RGB; or frames of shape (T, H, W, 3)."""

Decoded = Rgb | Image.Image
"""An image, or a decoded Pillow image of any mode, which is faster to resize than an array."""

Floats = npt.NDArray[np.floating[Any]]
"""float32 or float64; a *unit* image is one of shape (H, W, 3) with values in [0, 1]."""
