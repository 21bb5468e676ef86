"""The blur of a lens out of focus: a filter with an anti-aliased disk."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.imaging.kernels import defocus, elementwise
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
class _Groups:
    """A kernel as `defocus.weigh_groups` takes it: single taps and rows of neighbours, grouped by weight.

    `reach` is how far from its centre the outermost of them lie.
    """

    reach: int
    weights: npt.NDArray[np.float64]
    ends: npt.NDArray[np.intp]
    taps: npt.NDArray[np.intp]
    run_ends: npt.NDArray[np.intp]
    runs: npt.NDArray[np.intp]


_MOST_TAPS = 257
# Two sums are read for a run, one value for a tap.
_SHORTEST_RUN = 3


@lru_cache(maxsize=64)
def _disk_groups(radius: float, alias_blur: float, channels: int) -> _Groups:
    kernel = disk(radius, alias_blur)
    # Most of the disk's square is empty where the radius is small.
    margin = int(np.argmax(kernel.any(axis=0)))
    kernel = kernel[margin : len(kernel) - margin, margin : len(kernel) - margin]
    weights, ends, taps, run_ends, runs = [], [], [], [], []
    for weight in np.unique(kernel[kernel > 0]):
        places = np.argwhere(kernel == weight)
        for i in range(0, len(places), _MOST_TAPS):
            for row, first, last in _join_neighbours(places[i : i + _MOST_TAPS].tolist()):
                if last - first < _SHORTEST_RUN:
                    taps += [(row, column * channels) for column in range(first, last)]
                else:
                    runs.append((row, first * channels, last * channels))
            weights.append(float(weight))
            ends.append(len(taps))
            run_ends.append(len(runs))
    lists = np.array(taps, np.intp).reshape(-1, 2), np.array(runs, np.intp).reshape(-1, 3)
    return _Groups(
        len(kernel) // 2, np.array(weights), np.array(ends), lists[0], np.array(run_ends), lists[1]
    )


def _join_neighbours(places: list[list[int]]) -> list[list[int]]:
    """Places (row, column) in reading order as runs (row, first column, column after the last)."""
    runs: list[list[int]] = []
    for row, column in places:
        if runs and runs[-1][0] == row and runs[-1][2] == column:
            runs[-1][2] += 1
        else:
            runs.append([row, column, column + 1])
    return runs


def filter_with_disk(image: Rgb, radius: float, alias_blur: float) -> Rgb:
    """Filter `image` with `disk`, border reflected without repeating the edge (OpenCV's default).

    OpenCV's own filter2D goes through a Fourier transform at these sizes, which is several times as slow
    (scripts/bench.py --only defocus_blur); no disk sums to exactly 1, so rounding decides no pixel.
    """
    height, width, channels = image.shape
    groups = _disk_groups(radius, alias_blur, channels)
    reach = groups.reach
    padded = np.empty((height + 2 * reach, (width + 2 * reach) * channels), np.uint16)
    elementwise.extend(image.reshape(height, -1), channels, reach, reach, True, np.uint16(1), padded)
    sums = np.empty((padded.shape[0], padded.shape[1] + channels), np.uint16)
    if len(groups.runs):
        defocus.add_up_rows(padded, channels, sums)
    out = np.empty_like(image)
    defocus.weigh_groups(
        padded,
        sums,
        groups.weights,
        groups.ends,
        groups.taps,
        groups.run_ends,
        groups.runs,
        out.reshape(height, -1),
    )
    return out
