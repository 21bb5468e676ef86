"""Images enlarged about their centre, like `scipy.ndimage.zoom`, and their mean."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import Floats, Rgb
from robustgen.pixels.imaging.kernels import blur, elementwise, intrinsics

# With this number of columns, the rows for all zooms stay in the cache.
_COLUMNS: Final = 256


@dataclass(frozen=True)
class _ZoomAxis:
    """Central crop of one axis, and the sample positions of its enlarged centre.

    The first `inside` samples are within the crop; rounding may put the last one 1e-14 outside.
    """

    start: int
    length: int
    places: npt.NDArray[np.intp]
    parts: npt.NDArray[np.float64]
    inside: int

    def cut(self, begin: int, end: int) -> "_ZoomAxis":
        """Return the axis with only the samples from `begin` to `end`."""
        places = self.places[begin:end]
        first, after = places[0], min(places[-1] + 2, self.length)
        inside = min(max(self.inside - begin, 0), len(places))
        return _ZoomAxis(self.start + first, after - first, places - first, self.parts[begin:end], inside)


@lru_cache(maxsize=1024)
def _zoom_axis(side: int, factor: float) -> _ZoomAxis:
    crop = math.ceil(side / factor)
    size = round(crop * factor)
    trim = (size - side) // 2
    samples = np.arange(trim, trim + side) * ((crop - 1) / (size - 1))
    places = np.floor(samples).astype(np.intp)
    inside = int(np.count_nonzero(samples <= crop - 1))
    return _ZoomAxis((side - crop) // 2, crop, places, samples - places, inside)


@dataclass(frozen=True)
class _ZoomPlan:
    """Several zooms of a strip of columns from flat column `left` on, for `zoom.add_zoomed`."""

    crops: npt.NDArray[np.intp]
    inside: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]
    row_parts: npt.NDArray[np.float64]
    blocks: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]
    parts: npt.NDArray[np.float64]
    left: int

    def arguments(self, image: Floats) -> tuple[Any, ...]:
        """Return the first arguments of `zoom.add_zoomed`: `image`, its channels, and the plan."""
        flat = image.reshape(len(image), -1)
        plan = (
            self.crops,
            self.inside,
            self.rows,
            self.row_parts,
            self.blocks,
            self.ends,
            self.parts,
            self.left,
        )
        return flat, flat.shape[1] // image.shape[1], *plan


@lru_cache(maxsize=64)
def _plan_zooms(
    height: int, width: int, channels: int, factors: tuple[float, ...], cut: bool, black_outside: bool = False
) -> tuple[_ZoomPlan, ...]:
    """Plan the zooms by `factors` of an image, or of its `zoom_crop` if `cut`, strip by strip."""
    rows = [_zoom_axis(height, factor) for factor in factors]
    columns = [_zoom_axis(width, factor) for factor in factors]
    if cut:
        rows, columns = ([replace(axis, start=0) for axis in axes] for axes in (rows, columns))
    if not black_outside:
        rows, columns = (
            [replace(axis, inside=len(axis.places)) for axis in axes] for axes in (rows, columns)
        )
    places, parts = np.stack([axis.places for axis in rows]), np.stack([axis.parts for axis in rows])
    plans = []
    for left in range(0, width, _COLUMNS):
        strip = [axis.cut(left, left + _COLUMNS) for axis in columns]
        blocks = [_find_blocks(axis.places, channels) for axis in strip]
        plans.append(
            _ZoomPlan(
                _find_crops(rows, strip, channels),
                np.array(
                    [(y.inside, x.inside * channels) for y, x in zip(rows, strip, strict=True)], np.intp
                ),
                places,
                parts,
                np.concatenate(blocks),
                np.cumsum([len(each) for each in blocks]),
                np.stack([np.repeat(axis.parts, channels) for axis in strip]),
                left * channels,
            )
        )
    return tuple(plans)


def _find_crops(rows: list[_ZoomAxis], columns: list[_ZoomAxis], channels: int) -> npt.NDArray[np.intp]:
    """Return first row, first flat column, last row and flat width of each zoom's crop."""
    crops = [
        (y.start, x.start * channels, y.length - 1, x.length * channels)
        for y, x in zip(rows, columns, strict=True)
    ]
    return np.array(crops, np.intp)


def _find_blocks(places: npt.NDArray[np.intp], channels: int) -> npt.NDArray[np.intp]:
    """Return the starts, in crop and result, of runs of neighbours, each `intrinsics.BLOCK` long."""
    shifts = np.arange(places.size) - places
    edges = np.concatenate([[0], np.flatnonzero(np.diff(shifts)) + 1, [places.size]]) * channels
    targets = np.concatenate([np.arange(a, b, intrinsics.BLOCK) for a, b in itertools.pairwise(edges)])
    return np.stack([targets - shifts[targets // channels] * channels, targets], axis=1)


@lru_cache(maxsize=1024)
def zoom_crop(shape: tuple[int, ...], factor: float) -> tuple[slice, slice]:
    """Return the central ceil(side / factor) rows and columns of an image, which a zoom enlarges."""
    rows, columns = _zoom_axis(shape[0], factor), _zoom_axis(shape[1], factor)
    return (
        slice(rows.start, rows.start + rows.length),
        slice(columns.start, columns.start + columns.length),
    )


def enlarge(crop: Floats, shape: tuple[int, int], factor: float) -> Floats:
    """Enlarge the `zoom_crop` of an image of `shape` (H, W) to `shape` by linear interpolation."""
    if factor == 1:
        return crop
    channels = math.prod(crop.shape[2:])
    out = np.empty((*shape, *crop.shape[2:]), crop.dtype)
    for plan in _plan_zooms(*shape, channels, (factor,), True):
        blur.add_zoomed(*plan.arguments(crop), out.reshape(len(out), -1), False, None, None)
    return out


def average_zooms(
    image: Floats, factors: Sequence[float], total: Floats, added: int, black_outside: bool = False
) -> Rgb:
    """Return the mean of `image` and its zooms, its centre enlarged by each of `factors`.

    A zoom crops the central ceil(side / factor) of each axis, enlarges by the factor (``scipy.ndimage.zoom``,
    order 1) and trims to the centre again.

    Parameters
    ----------
    image : float32 ndarray of shape (H, W, 3)
        A unit image.
    factors : floats
        The first factor is 1, the others are larger.
    total : float32 ndarray of the shape of `image`
        The sum of the zooms by the first `added` factors; becomes the sum of all.
    black_outside : bool
        Make the last row or column black where rounding places it outside the crop, as SciPy does at some
        sizes (36, 71, 78, 136, 277, ...); otherwise repeat the edge.
    """
    count = len(factors) + 1
    if len(factors) <= max(added, 1):
        if not added:
            total[...] = image if factors else 0
        return average(image, total, count)
    height, width, channels = image.shape
    flat_total, out = total.reshape(height, -1), np.empty(image.shape, np.uint8)
    for plan in _plan_zooms(height, width, channels, tuple(factors[max(added, 1) :]), False, black_outside):
        blur.add_zoomed(
            *plan.arguments(image), flat_total, added > 0, np.float32(count), out.reshape(height, -1)
        )
    return out


def average(image: Floats, total: Floats, count: int) -> Rgb:
    """Return (`image` + `total`) / `count` of float32 unit images, truncated to uint8."""
    out = np.empty(image.shape, np.uint8)
    elementwise.average(image.reshape(-1), total.reshape(-1), np.float32(count), out.reshape(-1))
    return out


def take_in(image: Rgb, total: Floats, count: int) -> Rgb:
    """Replace `image` by the mean of it and the `count` - 1 images with the sum `total`, and return it.

    `image` is also added to `total`, float32 (H, W, 3) in [0, 1].
    """
    blur.take_in(image.reshape(-1), total.reshape(-1), np.float32(count))
    return image
