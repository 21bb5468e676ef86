"""Falling snow: a layer of flakes, and an image that it falls on."""

import numpy as np
import numpy.typing as npt

from robustgen.imaging.arrays import UNITS
from robustgen.imaging.kernels import elementwise, weather
from robustgen.imaging.pixels import Rgb
from robustgen.imaging.rng import Rng
from robustgen.imaging.ziggurat import normal
from robustgen.imaging.zoom import enlarge, zoom_crop


def draw_flakes(
    shape: tuple[int, int], loc: float, scale: float, factor: float, threshold: float, rng: Rng
) -> Rgb:
    """Flakes before the wind: noise, enlarged, cut off under `threshold`, uint8 of `shape` (H, W)."""
    crop = zoom_crop(shape, factor)
    if isinstance(rng, np.random.RandomState):
        noise = rng.normal(loc=loc, scale=scale, size=shape)[crop]
    else:
        # Only the crop is ever seen.
        noise = normal(rng, loc, scale, tuple(part.stop - part.start for part in crop))
    flakes = enlarge(noise, shape, factor)
    layer = np.empty(shape, np.uint8)
    elementwise.quantise_above(flakes.reshape(-1), float(threshold), layer.reshape(-1))
    return layer


def luma_of(image: Rgb) -> npt.NDArray[np.float32]:
    """Return the luma of `image` in [0, 1], float32 (H, W), as OpenCV of 2018 had it for float32 images."""
    luma = np.empty(image.shape[:2], np.float32)
    weather.fill_luma(image.reshape(-1, 3), luma.reshape(-1))
    return luma


def add_snow(
    image: Rgb, luma: npt.NDArray[np.float32], mix: float, layer: Rgb, dtype: npt.DTypeLike = np.float32
) -> Rgb:
    """Whiten `image` and let `layer`, and its copy turned by 180 degrees, fall on it.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    luma : float32 ndarray of shape (H, W)
        What `luma_of` gives for it.
    mix : float
        Weight of the image; the rest is the lighter of image and brightened luma.
    layer : uint8 ndarray of shape (H, W)
    dtype : float32 or float64
        The precision in which it is whitened.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)
    """
    out = np.empty_like(image)
    weights = np.array([mix, 1 - mix], dtype)
    weather.snowfall(image.reshape(-1), luma.reshape(-1), weights, layer.reshape(-1), UNITS, out.reshape(-1))
    return out
