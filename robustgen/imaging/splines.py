"""Turning and enlarging by cubic splines, as ``scipy.ndimage`` does it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.imaging.arrays import unit
from robustgen.imaging.kernels import splines as kernels
from robustgen.imaging.pixels import Rgb

_TURNS = 20


Spline = npt.NDArray[np.float64]
"""Coefficients of the cubic B-splines of an image: (H + 3, W + 3, 4), the fourth of a pixel for nothing."""


def fit_spline(image: Rgb) -> Spline:
    """The B-spline coefficients of `image` in [0, 1], mirrored by one before and two after."""
    from scipy import ndimage

    x = unit(image, np.float32)
    height, width = image.shape[:2]
    rows, columns = _mirror(height), _mirror(width)
    spline = np.zeros((height + 3, width + 3, 4))
    filtered = ndimage.spline_filter1d(x, 3, axis=0, mode="mirror")
    ndimage.spline_filter1d(filtered, 3, axis=1, output=filtered, mode="mirror")
    spline[:, :, :3] = filtered.take(rows, 0).take(columns, 1)
    return spline


def blur_by_turning(spline: Spline, angle: float) -> Rgb:
    """Mean of an image turned by 21 angles up to `angle` (degrees) either way, in Gaussian weights."""
    turns, whole = _turns(float(angle))
    out = np.empty((len(spline) - 3, spline.shape[1] - 3, 3), np.uint8)
    kernels.blur_by_turning(spline, turns, whole, out)
    return out


@lru_cache(maxsize=256)
def _mirror(size: int) -> npt.NDArray[np.int64]:
    """Places on an axis of `size` samples, mirrored by one before and two after."""
    return np.pad(np.arange(size), (1, 2), mode="reflect")


@lru_cache(maxsize=256)
def _turns(angle: float) -> tuple[npt.NDArray[np.float64], np.float32]:
    """Cosine, sine and weight of each angle up to `angle` (degrees) either way; the sum of the weights."""
    from scipy import special

    places = [2 * i / _TURNS - 1 for i in range(_TURNS + 1)]
    weights = [np.exp(-2 * place**2) for place in places]
    degrees = [place * angle for place in places]
    rows = zip(map(special.cosdg, degrees), map(special.sindg, degrees), weights, strict=True)
    return np.array([*rows]), np.float32(sum(weights))


@dataclass(frozen=True)
class _SplineAxis:
    """Which four samples each place of one axis weighs, and by how much: both of shape (4, size)."""

    places: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]


@lru_cache(maxsize=256)
def _spline_axis(size: int, scale: float) -> _SplineAxis:
    """The middle `size` places of an axis of `size` samples enlarged by `scale`."""
    enlarged = round(size * scale)
    step = (size - 1) / (enlarged - 1)
    at = (np.arange(size) + (enlarged - size) // 2) * step
    first = np.floor(at).astype(np.int64)
    places = np.abs(first + np.arange(-1, 3)[:, None])
    places = np.where(places >= size, 2 * size - 2 - places, places)
    weights = np.array([kernels.spline_weights(part) for part in at - first]).T.copy()
    return _SplineAxis(places, weights)


def enlarge_channel(image: Rgb, channel: int, scale: float, out: Rgb) -> None:
    """Write the middle of one channel of `image`, enlarged by `scale`, into that of `out`.

    The samples themselves are taken for spline coefficients, so that a scale of 1 smoothes.
    """
    rows, columns = (_spline_axis(size, float(scale)) for size in image.shape[:2])
    kernels.zoom_channel(image, channel, rows.places, rows.weights, columns.places, columns.weights, out)
