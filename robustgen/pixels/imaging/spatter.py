"""Drops of water and mud on the lens."""

from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import cut_strips
from robustgen.pixels.imaging.gaussian import gaussian
from robustgen.pixels.imaging.kernels import distances
from robustgen.pixels.imaging.kernels import weather as kernels
from robustgen.pixels.imaging.opencv import cv2
from robustgen.pixels.imaging.pixels import Floats, Rgb
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.ziggurat import normal

# The scripts passed RGB to OpenCV's BGR helpers, so 175 and 63 apply to red.
_WATER = np.array([175 / 255, 238 / 255, 238 / 255], np.float32)
_MUD = np.array([63 / 255, 42 / 255, 20 / 255], np.float32)
# Costs of steps along an axis, a diagonal, and a knight's move: OpenCV's in 1/65536, and Intel IPP's.
FIXED_POINT_COSTS = np.array([65536, 91750, 143976], np.int32)
IPP_COSTS = np.array([1, 1.4, 2.1969], np.float32)
_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)


def draw_drops(
    shape: tuple[int, int], loc: float, scale: float, sigma: float, threshold: float, rng: Rng
) -> Floats:
    """Return the layer of drops, smoothed noise above `threshold`, float64 of `shape` (H, W)."""
    layer = gaussian(normal(rng, loc, scale, shape), sigma)
    layer *= layer >= threshold
    return layer


def splash_water(
    image: Rgb, layer: Floats, strength: float, costs: npt.NDArray[Any] = FIXED_POINT_COSTS
) -> Rgb | None:
    """Add the light on the drops of a thresholded `layer` (H, W) to `image`.

    Return None if there are no drops; the scripts divided 0 by 0 in this case.
    """
    # In strips: a second layer would need eight bytes per pixel.
    grey = np.concatenate([(strip * 255).astype(np.uint8) for strip in cut_strips(layer)])
    light = _emboss(grey, costs).astype(np.float32)
    light *= grey
    light = light.reshape(-1)
    brightest = light.max()
    if brightest == 0:
        return None
    out = np.empty_like(image)
    pixels, target = image.reshape(-1, 3), out.reshape(-1, 3)
    kernels.add_light(pixels, light, brightest, np.float32(strength), _WATER, target)
    return out


def _emboss(grey: npt.NDArray[np.uint8], costs: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the relief of the drops in `grey` (H, W), lit from one side."""
    near = np.empty_like(grey)
    distances.blur_distances(cv2.Canny(grey, 50, 150), costs, near)
    relief = cv2.equalizeHist(near)
    return np.asarray(cv2.blur(cv2.filter2D(relief, cv2.CV_8U, _EMBOSS), (3, 3)))


def splash_mud(image: Rgb, spots: npt.NDArray[np.bool_], strength: float) -> Rgb:
    """Cover `image` with mud on the softened `spots` (H, W)."""
    out = np.empty_like(image)
    shares = draw_cover(spots, strength, np.float64).reshape(-1)
    kernels.cover(image.reshape(-1, 3), shares, _MUD, out.reshape(-1, 3))
    return out


def draw_cover(spots: npt.NDArray[np.bool_], strength: float, dtype: npt.DTypeLike) -> Floats:
    """Return the cover of the lens by mud, (H, W, 1): `spots`, softened in `dtype`, above 0.8."""
    cover = gaussian(spots.astype(dtype), strength)
    cover *= cover >= 0.8
    return cover[:, :, None]
