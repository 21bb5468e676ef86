"""Turning and enlarging by cubic splines, as ``scipy.ndimage`` does it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import ndimage, special

from robustgen.imaging import c_bar_kernels as kernels
from robustgen.imaging.arrays import unit
from robustgen.imaging.pixels import Rgb

_TURNS = 20


def blur_by_turning(image: Rgb, angle: float) -> Rgb:
    """Mean of `image` turned by 21 angles up to `angle` (degrees) either way, in Gaussian weights."""
    x = unit(image, np.float32)
    planes = [ndimage.spline_filter(x[:, :, channel], 3, mode="mirror") for channel in range(3)]
    rows, columns = (_mirror(size) for size in image.shape[:2])
    spline = np.stack(planes, axis=2)[rows[:, None], columns]
    total, turns = np.zeros(image.shape, np.float32), _turns(float(angle))
    for cosine, sine, weight in turns:
        kernels.add_rotated(spline, cosine, sine, np.float32(weight), total)
    total /= np.float32(sum(weight for *_, weight in turns))
    blurred: Rgb = np.clip(total * np.float32(255), 0, 255).astype(np.uint8)
    return blurred


@lru_cache(maxsize=256)
def _mirror(size: int) -> npt.NDArray[np.int64]:
    """Places on an axis of `size` samples, mirrored by one before and two after."""
    return np.pad(np.arange(size), (1, 2), mode="reflect")


@lru_cache(maxsize=256)
def _turns(angle: float) -> list[tuple[float, float, float]]:
    """Cosine, sine and weight of each of the angles up to `angle` (degrees) either way."""
    places = [2 * i / _TURNS - 1 for i in range(_TURNS + 1)]
    return [
        (special.cosdg(place * angle), special.sindg(place * angle), np.exp(-2 * place**2))
        for place in places
    ]


@dataclass(frozen=True)
class _SplineAxis:
    """Which four samples each place of one axis weighs, and by how much: both of shape (size, 4)."""

    places: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]


@lru_cache(maxsize=256)
def _spline_axis(size: int, scale: float) -> _SplineAxis:
    """The middle `size` places of an axis of `size` samples enlarged by `scale`."""
    enlarged = round(size * scale)
    step = (size - 1) / (enlarged - 1)
    at = (np.arange(size) + (enlarged - size) // 2) * step
    first = np.floor(at).astype(np.int64)
    places = np.abs(first[:, None] + np.arange(-1, 3))
    places = np.where(places >= size, 2 * size - 2 - places, places)
    weights = np.array([kernels.spline_weights(part) for part in at - first])
    return _SplineAxis(places, weights)


def enlarge_channel(image: Rgb, channel: int, scale: float, out: Rgb) -> None:
    """Write the middle of one channel of `image`, enlarged by `scale`, into that of `out`.

    The samples themselves are taken for spline coefficients, so that a scale of 1 smoothes.
    """
    rows, columns = (_spline_axis(size, float(scale)) for size in image.shape[:2])
    kernels.zoom_channel(image, channel, rows.places, rows.weights, columns.places, columns.weights, out)
