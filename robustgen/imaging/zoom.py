"""Images enlarged about their centre, as `scipy.ndimage.zoom` enlarges them, and their mean."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.imaging.kernels import elementwise, intrinsics, zoom
from robustgen.imaging.pixels import Floats, Rgb


@dataclass(frozen=True)
class _ZoomAxis:
    """The central crop of one axis, and where its enlarged centre is sampled."""

    start: int
    length: int
    places: npt.NDArray[np.intp]
    parts: npt.NDArray[np.float64]


@lru_cache(maxsize=1024)
def _zoom_axis(side: int, factor: float) -> _ZoomAxis:
    crop = math.ceil(side / factor)
    size = round(crop * factor)
    trim = (size - side) // 2
    samples = np.arange(trim, trim + side) * ((crop - 1) / (size - 1))
    places = np.floor(samples).astype(np.intp)
    return _ZoomAxis((side - crop) // 2, crop, places, samples - places)


@dataclass(frozen=True)
class _ZoomPlan:
    """Several zooms of an image as `zoom.add_zoomed` takes them."""

    crops: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]
    row_parts: npt.NDArray[np.float64]
    blocks: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]
    parts: npt.NDArray[np.float64]


@lru_cache(maxsize=64)
def _plan_zooms(height: int, width: int, channels: int, factors: tuple[float, ...], cut: bool) -> _ZoomPlan:
    """Plan the zooms by `factors` of an image, or of what `zoom_crop` has `cut` from it."""
    rows = [_zoom_axis(height, factor) for factor in factors]
    columns = [_zoom_axis(width, factor) for factor in factors]
    crops = [
        (0 if cut else y.start, 0 if cut else x.start * channels, y.length - 1, x.length * channels)
        for y, x in zip(rows, columns, strict=True)
    ]
    blocks = [_find_blocks(axis.places, channels) for axis in columns]
    return _ZoomPlan(
        np.array(crops, np.intp),
        np.stack([axis.places for axis in rows]),
        np.stack([axis.parts for axis in rows]),
        np.concatenate(blocks),
        np.cumsum([len(each) for each in blocks]),
        np.stack([np.repeat(axis.parts, channels) for axis in columns]),
    )


def _find_blocks(places: npt.NDArray[np.intp], channels: int) -> npt.NDArray[np.intp]:
    """Where in the crop, and where in the result, runs of neighbours begin, each `intrinsics.BLOCK` long."""
    shifts = np.arange(places.size) - places
    edges = np.concatenate([[0], np.flatnonzero(np.diff(shifts)) + 1, [places.size]]) * channels
    targets = np.concatenate([np.arange(a, b, intrinsics.BLOCK) for a, b in itertools.pairwise(edges)])
    return np.stack([targets - shifts[targets // channels] * channels, targets], axis=1)


@lru_cache(maxsize=1024)
def zoom_crop(shape: tuple[int, ...], factor: float) -> tuple[slice, slice]:
    """The central ceil(side / factor) rows and columns of an image of `shape`, which a zoom enlarges."""
    rows, columns = _zoom_axis(shape[0], factor), _zoom_axis(shape[1], factor)
    return (
        slice(rows.start, rows.start + rows.length),
        slice(columns.start, columns.start + columns.length),
    )


def enlarge(crop: Floats, shape: tuple[int, int], factor: float) -> Floats:
    """What `zoom_crop` cut from an image of `shape`, enlarged to `shape`, linearly interpolated."""
    total = np.zeros(shape, crop.dtype)
    _add_zoomed(crop, _plan_zooms(*shape, 1, (factor,), True), total)
    return total


def add_zooms(image: Floats, factors: Sequence[float], total: Floats) -> None:
    """Add `image` with its centre enlarged to the full size, by one factor after the other, to `total`.

    Crops the central ceil(side / factor) of each axis, enlarges by the factor (``scipy.ndimage.zoom``,
    order 1) and trims to the centre again.

    Parameters
    ----------
    image : float ndarray of shape (H, W) or (H, W, C)
    factors : floats, at least 1
    total : ndarray of the shape and dtype of `image`
    """
    if factors and factors[0] == 1:
        total += image
        factors = factors[1:]
    if factors:
        height, width, *channels = image.shape
        _add_zoomed(image, _plan_zooms(height, width, math.prod(channels), tuple(factors), False), total)


def _add_zoomed(image: Floats, plan: _ZoomPlan, total: Floats) -> None:
    flat, target = image.reshape(len(image), -1), total.reshape(len(total), -1)
    channels = target.shape[1] // total.shape[1]
    zoom.add_zoomed(
        flat, channels, plan.crops, plan.rows, plan.row_parts, plan.blocks, plan.ends, plan.parts, target
    )


def average(image: Floats, total: Floats, count: int) -> Rgb:
    """(`image` + `total`) / `count` of float32 unit images, truncated to uint8."""
    out = np.empty(image.shape, np.uint8)
    elementwise.average(image.reshape(-1), total.reshape(-1), np.float32(count), out.reshape(-1))
    return out
