"""Defocus blur: a filter with an anti-aliased disk."""

import operator
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.kernels import blur, elementwise, exact


@lru_cache(maxsize=64)
def disk(radius: float, alias_blur: float, *, fused: bool = False) -> npt.NDArray[np.float32]:
    """Return the anti-aliased disk of defocus blur, float32, with a sum of about 1.

    `fused`, for radii up to 8, rounds like later releases of OpenCV, which use fused multiply-add.
    """
    reach, ksize = (8, 3) if radius <= 8 else (radius, 5)
    # For a radius such as 8.5, the number of places is even, which shifts the image by half a pixel.
    places = np.arange(-reach, reach + 1)
    inside = np.array(places[None, :] ** 2 + places[:, None] ** 2 <= radius * radius, dtype=np.float32)
    inside /= np.sum(inside)
    if fused:
        weights = _gaussian_of_opencv(ksize, alias_blur, np.float64)
        return _blur_columns_fused(_blur_rows_fused(inside, weights), weights)
    weights = _gaussian_of_opencv(ksize, alias_blur, np.float32)
    return _blur_columns(_blur_columns(inside.T, weights).T, weights)


def _gaussian_of_opencv(size: int, sigma: float, kind: type[np.floating[Any]]) -> npt.NDArray[np.float32]:
    """Return the right half of OpenCV's Gaussian of `size` taps, rounded to `kind` first."""
    taps = exact.gaussian_at(np.arange(size) - size // 2, float(sigma)).astype(kind)
    # `sum` compensates rounding errors from Python 3.12 on.
    share = 1.0 / reduce(operator.add, taps.tolist())
    return np.array([tap * share for tap in taps.tolist()], np.float32)[size // 2 :]


def _blur_columns(
    values: npt.NDArray[np.float32], weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Filter along axis 0 in the order of OpenCV's C code: the centre, then pairs from the inside out."""
    reach, size = len(weights) - 1, len(values)
    padded = np.pad(values, ((reach, reach), (0, 0)), mode="reflect")
    total: npt.NDArray[np.float32] = weights[0] * values
    for j in range(1, reach + 1):
        before, after = padded[reach - j :][:size], padded[reach + j :][:size]
        total = total + weights[j] * (before + after)
    return total


def _blur_columns_fused(
    values: npt.NDArray[np.float32], weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Filter along axis 0 with three taps: the centre, then both neighbours together."""
    padded = np.pad(values, ((1, 1), (0, 0)), mode="reflect")
    return _multiply_add(weights[1], padded[:-2] + padded[2:], weights[0] * values)


def _blur_rows_fused(
    values: npt.NDArray[np.float32], weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Filter along axis 1 with three taps: one neighbour, then the other, then the centre."""
    padded = np.pad(values, ((0, 0), (1, 1)), mode="reflect")
    neighbours = _multiply_add(weights[1], padded[:, 2:], weights[1] * padded[:, :-2])
    return _multiply_add(weights[0], values, neighbours)


def _multiply_add(
    weight: np.float32, values: npt.NDArray[np.float32], total: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return ``weight * values + total``; the product is not rounded."""
    return (np.float64(weight) * values.astype(np.float64) + total).astype(np.float32)


@dataclass(frozen=True)
class _Groups:
    """A kernel for `defocus.weigh_groups`: single taps and columns of neighbours, grouped by weight.

    `reach` is the largest distance of a tap from the centre.
    """

    reach: int
    weights: npt.NDArray[np.float64]
    ends: npt.NDArray[np.intp]
    taps: npt.NDArray[np.intp]
    run_ends: npt.NDArray[np.intp]
    runs: npt.NDArray[np.intp]


_MOST_TAPS = 257
# A run needs two sums, a tap one value.
_SHORTEST_RUN = 3
# Smaller weights change no float64 sum.
_FAINTEST = 1e-22


@lru_cache(maxsize=64)
def _disk_groups(radius: float, alias_blur: float, channels: int, fused: bool) -> _Groups:
    kernel = disk(radius, alias_blur, fused=fused)
    kernel = np.where(kernel < _FAINTEST, 0, kernel)
    # For a small radius, most of the disk's square is empty.
    margin = int(np.argmax(kernel.any(axis=0)))
    kernel = kernel[margin : len(kernel) - margin, margin : len(kernel) - margin]
    weights, ends, taps, run_ends, runs = [], [], [], [], []
    for weight in np.unique(kernel[kernel > 0]):
        places = np.argwhere(weight == kernel.T)
        for i in range(0, len(places), _MOST_TAPS):
            for column, first, last in _join_neighbours(places[i : i + _MOST_TAPS].tolist()):
                if last - first < _SHORTEST_RUN:
                    taps += [(row, column * channels) for row in range(first, last)]
                else:
                    runs.append((column * channels, first, last))
            weights.append(float(weight))
            ends.append(len(taps))
            run_ends.append(len(runs))
    lists = np.array(taps, np.intp).reshape(-1, 2), np.array(runs, np.intp).reshape(-1, 3)
    return _Groups(
        len(kernel) // 2, np.array(weights), np.array(ends), lists[0], np.array(run_ends), lists[1]
    )


def _join_neighbours(places: list[list[int]]) -> list[list[int]]:
    """Join sorted places (column, row) to runs (column, first row, row after the last)."""
    runs: list[list[int]] = []
    for column, row in places:
        if runs and runs[-1][0] == column and runs[-1][2] == row:
            runs[-1][2] += 1
        else:
            runs.append([column, row, row + 1])
    return runs


def filter_with_disk(image: Rgb, radius: float, alias_blur: float, *, fused: bool = False) -> Rgb:
    """Filter `image` with `disk`; the border is reflected without repeating the edge (OpenCV's default).

    OpenCV's filter2D uses a Fourier transform at these sizes and is several times slower (scripts/bench.py
    --only defocus_blur). No disk sums to exactly 1, so rounding decides no pixel.
    """
    height, width, channels = image.shape
    groups = _disk_groups(radius, alias_blur, channels, fused)
    reach = groups.reach
    padded = np.empty((height + 2 * reach, (width + 2 * reach) * channels), np.uint16)
    elementwise.extend(image.reshape(height, -1), channels, reach, reach, True, np.uint16(1), padded)
    sums = np.empty((padded.shape[0] + 1, padded.shape[1]), np.uint16)
    if len(groups.runs):
        blur.add_up_columns(padded, sums)
    out = np.empty_like(image)
    blur.weigh_groups(
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
