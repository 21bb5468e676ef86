"""Falling snow: a layer of flakes, and an image that it falls on."""

import numpy as np
import numpy.typing as npt

from robustgen.imaging.arrays import UNITS
from robustgen.imaging.kernels import elementwise, weather
from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Floats, Rgb
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


def luma_of(image: Floats) -> npt.NDArray[np.float32]:
    """Luma, float32 (H, W), of a unit `image` (H, W, 3), as OpenCV weighs the colours."""
    return np.asarray(cv2.cvtColor(image.astype(np.float32, copy=False), cv2.COLOR_RGB2GRAY))


def add_snow(image: Floats, luma: npt.NDArray[np.float32], mix: float, layer: Rgb) -> Rgb:
    """Whiten a unit `image` and let `layer`, and its copy turned by 180 degrees, fall on it.

    Parameters
    ----------
    image : float32 or float64 ndarray of shape (H, W, 3)
    luma : float32 ndarray of shape (H, W)
        What `grey` gives for it.
    mix : float
        Weight of the image; the rest is the lighter of image and brightened grey.
    layer : uint8 ndarray of shape (H, W)

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)
    """
    out = np.empty(image.shape, np.uint8)
    values, target, own = image.reshape(-1), out.reshape(-1), image.dtype.type
    weather.snowfall(values, luma.reshape(-1), own(mix), own(1 - mix), layer.reshape(-1), UNITS, target)
    return out
