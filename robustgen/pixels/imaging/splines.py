"""Rotation and enlargement by cubic splines, like ``scipy.ndimage``."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import Floats, Rgb, unit
from robustgen.pixels.imaging.kernels import exact
from robustgen.pixels.imaging.kernels import splines as kernels

_TURNS = 20


Spline = npt.NDArray[np.float64]
"""Cubic B-spline coefficients of an image: (H + 3, W + 3, 4); the fourth of each pixel is unused."""


def fit_spline(image: Rgb) -> Spline:
    """Return the B-spline coefficients of `image` in [0, 1], mirrored by one sample before and two after."""
    height, width = image.shape[:2]
    spline = np.zeros((height + 3, width + 3, 4))
    kernels.fit_spline(unit(image, np.float32), _powers(height), _powers(width), spline)
    return spline


def blur_by_turning(spline: Spline, angle: float) -> Rgb:
    """Return the Gaussian-weighted mean of an image rotated by 21 angles within +-`angle` (degrees)."""
    turns, whole = _turns(float(angle))
    out = np.empty((len(spline) - 3, spline.shape[1] - 3, 3), np.uint8)
    kernels.blur_by_turning(spline, turns, whole, out)
    return out


@lru_cache(maxsize=256)
def _powers(size: int) -> Floats:
    """Return the powers 0 to `size` - 1 of the pole of a cubic B-spline."""
    return np.multiply.accumulate(np.append(1.0, np.full(size - 1, kernels.POLE)))


@lru_cache(maxsize=256)
def _turns(angle: float) -> tuple[npt.NDArray[np.float64], np.float32]:
    """Return cosine, sine and weight of each angle within +-`angle` (degrees), and the sum of weights."""
    places = [2 * i / _TURNS - 1 for i in range(_TURNS + 1)]
    weights = [exact.exp(-2 * place * place) for place in places]
    turns = [exact.sine_cosine(math.radians(place * angle)) for place in places]
    rows = [(cosine, sine, weight) for (sine, cosine), weight in zip(turns, weights, strict=True)]
    return np.array(rows), np.float32(np.add.accumulate(weights)[-1])


@dataclass(frozen=True)
class _SplineAxis:
    """Four samples for each place of one axis, and their weights, both (4, size)."""

    places: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]


@lru_cache(maxsize=256)
def _spline_axis(size: int, scale: float) -> _SplineAxis:
    """Return the central `size` places of an axis of `size` samples enlarged by `scale`."""
    enlarged = round(size * scale)
    step = (size - 1) / (enlarged - 1)
    at = (np.arange(size) + (enlarged - size) // 2) * step
    first = np.floor(at).astype(np.int64)
    places = np.abs(first + np.arange(-1, 3)[:, None])
    places = np.where(places >= size, 2 * size - 2 - places, places)
    weights = np.array([kernels.spline_weights(part) for part in at - first]).T.copy()
    return _SplineAxis(places, weights)


def enlarge_channel(image: Rgb, channel: int, scale: float, out: Rgb) -> None:
    """Write the centre of one channel of `image`, enlarged by `scale`, into that channel of `out`.

    The samples are used as spline coefficients, so that a scale of 1 smoothes.
    """
    rows, columns = (_spline_axis(size, float(scale)) for size in image.shape[:2])
    kernels.zoom_channel(image, channel, rows.places, rows.weights, columns.places, columns.weights, out)
