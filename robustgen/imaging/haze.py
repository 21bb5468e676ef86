"""Plasma fractals, and images seen through them."""

import numpy as np

from robustgen.imaging.arrays import UNITS
from robustgen.imaging.kernels import weather as kernels
from robustgen.imaging.pixels import Floats, Rgb
from robustgen.imaging.rng import Rng, uniform


def draw_plasma(shape: tuple[int, int], decay: float, rng: Rng) -> Floats:
    """Top-left part of a diamond-square fractal, scaled to [0, 1].

    Parameters
    ----------
    shape : (int, int)
        Height and width; the fractal's side is the next power of two.
    decay : float
        By how much the noise shrinks with each halving.

    Returns
    -------
    float64 ndarray of `shape`
    """
    side = 1 << (max(shape) - 1).bit_length()
    haze = np.empty(shape)
    kernels.unit_plasma(uniform(rng, 0, 1, (side * side - 1,)), 100.0, float(decay), haze)
    return haze


def add_haze(image: Rgb, haze: Floats, strength: float) -> Rgb:
    """Add `strength` times `haze`, float64 (H, W), to `image` and scale back to the image's own maximum."""
    out = np.empty_like(image)
    kernels.add_haze(image.reshape(-1), UNITS, haze.reshape(-1), float(strength), out.reshape(-1))
    return out
