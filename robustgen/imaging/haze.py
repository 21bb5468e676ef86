"""Plasma fractals, and haze made of them."""

from typing import NamedTuple

import numpy as np

from robustgen.imaging.arrays import UNITS
from robustgen.imaging.kernels import weather as kernels
from robustgen.imaging.pixels import Floats, Rgb
from robustgen.imaging.rng import Rng, uniform


class Haze(NamedTuple):
    """A plasma fractal, float64 (H, W); its values `lowest` to `lowest` + `span` represent 0 to 1."""

    field: Floats
    lowest: float
    span: float


def draw_plasma(shape: tuple[int, int], decay: float, rng: Rng, side: int | None = None) -> Haze:
    """Return the top-left part of a diamond-square fractal.

    Parameters
    ----------
    shape : (int, int)
        Height and width.
    decay : float
        Factor by which the noise decreases with each halving.
    side : int, optional
        Side of the fractal, a power of two. Default: the smallest that fits.
    """
    side = side or 1 << (max(shape) - 1).bit_length()
    uniforms, field, lines = uniform(rng, 0, 1, (side * side - 1,)), np.empty(shape), np.empty((8, side + 1))
    least, most = kernels.plasma(uniforms, 100.0, float(decay), lines, field)
    return Haze(field, least, most - least)


def add_haze(image: Rgb, haze: Haze, strength: float) -> Rgb:
    """Add `strength` times `haze` to `image`, and scale back to the image's maximum."""
    out, (field, lowest, span) = np.empty_like(image), haze
    kernels.add_haze(
        image.reshape(-1), UNITS, field.reshape(-1), lowest, span, float(strength), out.reshape(-1)
    )
    return out
