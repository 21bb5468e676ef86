"""Plasma fractals, and images seen through them."""

import numpy as np

from robustgen.imaging import kernels
from robustgen.imaging.arrays import UNITS
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
    field = np.empty((side, side))
    kernels.plasma(uniform(rng, 0, 1, (side * side - 1,)), 100.0, decay, field)
    field -= field.min()
    field /= field.max()
    return field[: shape[0], : shape[1]]


def add_haze(image: Rgb, haze: Floats, strength: float) -> Rgb:
    """Add `strength` times `haze`, float64 (H, W), to `image` and scale back to the image's own maximum."""
    out = np.empty_like(image)
    flat = np.ascontiguousarray(haze).reshape(-1)
    brightest = image.max() / 255.0
    kernels.add_haze(image.reshape(-1), UNITS, flat, float(strength), brightest, out.reshape(-1))
    return out
