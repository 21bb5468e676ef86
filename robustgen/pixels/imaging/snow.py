"""Falling snow: a layer of flakes, and its addition to an image."""

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import UNITS
from robustgen.pixels.imaging.kernels import elementwise, weather
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.ziggurat import normal
from robustgen.pixels.imaging.zoom import enlarge, zoom_crop


def draw_flakes(
    shape: tuple[int, int], loc: float, scale: float, factor: float, threshold: float, rng: Rng
) -> Rgb:
    """Return flakes before the motion blur: enlarged noise above `threshold`, uint8 (H, W)."""
    crop = zoom_crop(shape, factor)
    if isinstance(rng, np.random.RandomState):
        noise = rng.normal(loc=loc, scale=scale, size=shape)[crop]
    else:
        # Only the crop is used.
        noise = normal(rng, loc, scale, tuple(part.stop - part.start for part in crop))
    flakes = enlarge(noise, shape, factor)
    layer = np.empty(shape, np.uint8)
    elementwise.quantise_above(flakes.reshape(-1), float(threshold), layer.reshape(-1))
    return layer


def luma_of(image: Rgb) -> npt.NDArray[np.float32]:
    """Return the luma of `image` in [0, 1], float32 (H, W), as in OpenCV of 2018 for float32 images."""
    luma = np.empty(image.shape[:2], np.float32)
    weather.fill_luma(image, luma)
    return luma


def add_snow(
    image: Rgb, luma: npt.NDArray[np.float32], mix: float, layer: Rgb, dtype: npt.DTypeLike = np.float32
) -> Rgb:
    """Whiten `image`, and add `layer` and its copy rotated by 180 degrees.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    luma : float32 ndarray of shape (H, W)
        Result of `luma_of` for `image`.
    mix : float
        Weight of the image; the rest is the lighter of image and brightened luma.
    layer : uint8 ndarray of shape (H, W)
    dtype : float32 or float64
        Precision of the whitening.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)
    """
    out = np.empty_like(image)
    weights = np.array([mix, 1 - mix], dtype)
    weather.snowfall(image.reshape(-1), luma.reshape(-1), weights, layer.reshape(-1), UNITS, out.reshape(-1))
    return out
