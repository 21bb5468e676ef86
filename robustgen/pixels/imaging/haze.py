"""Plasma fractals, and haze made of them."""

from typing import Final, NamedTuple

import numpy as np

from robustgen.errors import ImageError
from robustgen.pixels.imaging.arrays import UNITS
from robustgen.pixels.imaging.kernels import weather as kernels
from robustgen.pixels.imaging.pixels import Floats, Rgb
from robustgen.pixels.imaging.rng import Rng, uniform

_WOBBLE: Final = 100.0
# Side up to which all draws are made at once: 0.1 GB.
_AT_ONCE: Final = 4096
_LARGEST: Final = 16384
_DRAWS: Final = 1 << 20


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

    Raises
    ------
    ImageError
        The fractal would need too much memory.
    """
    side = side or 1 << (max(shape) - 1).bit_length()
    if side > _LARGEST:
        size, most = f"{shape[1]} x {shape[0]}", _LARGEST
        raise ImageError(
            f"needs a fractal of {side} x {side} points, {side * side * 4 / 1e9:.1f} GB, for {size} pixels: "
            f"the longer side must have at most {most} pixels"
        )
    first = min(side, _AT_ONCE)
    uniforms, lines = uniform(rng, 0, 1, (first * first - 1,)), np.empty((8, first + 1))
    field = np.empty(shape if first == side else (first, first))
    ends = np.array(kernels.plasma(uniforms, _WOBBLE, float(decay), lines, field))
    wobble = _WOBBLE
    for _ in range(first.bit_length() - 1):
        wobble /= decay
    while first < side:
        first *= 2
        finer = np.empty(shape if first == side else (first, first))
        _refine(field, wobble, rng, finer, ends)
        field, wobble = finer, wobble / decay
    return Haze(field, ends[0], ends[1] - ends[0])


def _refine(field: Floats, wobble: float, rng: Rng, finer: Floats, ends: Floats) -> None:
    """Double the points of a large `field`; draw for a few rows at once, in the order of the whole."""
    side = len(field)
    centres = uniform(rng, 0, 1, field.shape)
    kernels.place_all_centres(field, wobble, centres)
    rows = max(1, _DRAWS // side)
    for is_odd in (0, 1):
        for first in range(0, side, rows):
            draws = uniform(rng, 0, 1, (min(rows, side - first), side))
            kernels.refine_rows(field, centres, wobble, draws, first, is_odd, finer, ends)


def add_haze(image: Rgb, haze: Haze, strength: float) -> Rgb:
    """Add `strength` times `haze` to `image`, and scale back to the image's maximum."""
    out, (field, lowest, span) = np.empty_like(image), haze
    kernels.add_haze(
        image.reshape(-1), UNITS, field.reshape(-1), lowest, span, float(strength), out.reshape(-1)
    )
    return out
