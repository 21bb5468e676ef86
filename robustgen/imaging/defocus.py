"""The blur of a lens out of focus: a filter with an anti-aliased disk."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.imaging import kernels
from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Rgb


@lru_cache(maxsize=64)
def disk(radius: float, alias_blur: float) -> npt.NDArray[np.float32]:
    """Anti-aliased disk, float32, that sums to about 1: the aperture of defocus blur."""
    reach, ksize = (8, 3) if radius <= 8 else (int(radius), 5)
    places = np.arange(-reach, reach + 1)
    inside = np.array(places[None, :] ** 2 + places[:, None] ** 2 <= radius**2, dtype=np.float32)
    inside /= np.sum(inside)
    return np.asarray(cv2.GaussianBlur(inside, ksize=(ksize, ksize), sigmaX=alias_blur), np.float32)


@dataclass(frozen=True)
class _Taps:
    """A kernel as `kernels.weigh_groups` takes it: its places, grouped by weight, counted from its corner."""

    weights: npt.NDArray[np.float64]
    ends: npt.NDArray[np.intp]
    tops: npt.NDArray[np.intp]
    lefts: npt.NDArray[np.intp]


_MOST_TAPS = 257


@lru_cache(maxsize=64)
def _disk_taps(radius: float, alias_blur: float) -> _Taps:
    kernel = disk(radius, alias_blur)
    groups = []
    for weight in np.unique(kernel[kernel > 0]):
        places = np.argwhere(kernel == weight)
        parts = [places[i : i + _MOST_TAPS] for i in range(0, len(places), _MOST_TAPS)]
        groups += [(float(weight), part) for part in parts]
    tops, lefts = np.concatenate([part for _, part in groups]).T
    weights = np.array([weight for weight, _ in groups])
    return _Taps(weights, np.cumsum([len(part) for _, part in groups]), tops.copy(), lefts.copy())


def filter_with_disk(image: Rgb, radius: float, alias_blur: float) -> Rgb:
    """Filter `image` with `disk`, border reflected without repeating the edge (OpenCV's default).

    OpenCV's own filter2D goes through a Fourier transform at these sizes, which is three times as slow
    (scripts/bench.py --only defocus_blur); no disk sums to exactly 1, so rounding decides no pixel.
    """
    taps = _disk_taps(radius, alias_blur)
    reach = len(disk(radius, alias_blur)) // 2
    height, width, channels = image.shape
    padded = np.empty((height + 2 * reach, (width + 2 * reach) * channels), np.uint16)
    kernels.extend(image.reshape(height, -1), channels, reach, reach, True, np.uint16(1), padded)
    out = np.empty_like(image)
    kernels.weigh_groups(
        padded, taps.weights, taps.ends, taps.tops, taps.lefts * channels, out.reshape(height, -1)
    )
    return out
