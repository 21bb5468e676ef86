"""Images enlarged about their centre, as `scipy.ndimage.zoom` enlarges them, and their mean."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.imaging import kernels
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


@lru_cache(maxsize=1024)
def _zoom_columns(
    side: int, factor: float, channels: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]]:
    """Left and right sample (2, side * channels) of every value of a row, and the part of the right one."""
    axis = _zoom_axis(side, factor)
    both = np.stack([axis.places, np.minimum(axis.places + 1, axis.length - 1)])[:, :, None]
    flat = (both * channels + np.arange(channels)).reshape(2, -1)
    return flat.astype(np.uint32), np.repeat(axis.parts, channels)


@lru_cache(maxsize=1024)
def zoom_crop(shape: tuple[int, ...], factor: float) -> tuple[slice, slice]:
    """The central ceil(side / factor) rows and columns of an image of `shape`, which a zoom enlarges."""
    rows, columns = _zoom_axis(shape[0], factor), _zoom_axis(shape[1], factor)
    return (
        slice(rows.start, rows.start + rows.length),
        slice(columns.start, columns.start + columns.length),
    )


def enlarge(crop: Floats, shape: tuple[int, ...], factor: float) -> Floats:
    """What `zoom_crop` cut from an image of `shape`, enlarged to `shape`, linearly interpolated."""
    total = np.zeros(shape, crop.dtype)
    _add_enlarged(crop, (0, 0), factor, total)
    return total


def add_zoom(image: Floats, factor: float, total: Floats) -> None:
    """Add `image` with its centre enlarged to the full size, linearly interpolated, to `total` in place.

    Crops the central ceil(side / factor) of each axis, enlarges by `factor` (``scipy.ndimage.zoom``,
    order 1) and trims to the centre again.

    Parameters
    ----------
    image : float ndarray of shape (H, W) or (H, W, C)
    factor : float, at least 1
    total : ndarray of the shape and dtype of `image`
    """
    if factor == 1:
        total += image
        return
    rows, columns = zoom_crop(image.shape, factor)
    _add_enlarged(image, (rows.start, columns.start), factor, total)


def _add_enlarged(image: Floats, corner: tuple[int, int], factor: float, total: Floats) -> None:
    height, width = total.shape[:2]
    channels = math.prod(total.shape[2:])
    rows = _zoom_axis(height, factor)
    columns, parts = _zoom_columns(width, factor, channels)
    flat = image.reshape(len(image), -1)
    top, left, last = corner[0], corner[1] * channels, rows.length - 1
    target = total.reshape(height, -1)
    kernels.add_zoomed(flat, top, left, last, rows.places, rows.parts, columns, parts, target)


def average(image: Floats, total: Floats, count: int) -> Rgb:
    """(`image` + `total`) / `count` of float32 unit images, truncated to uint8."""
    out = np.empty(image.shape, np.uint8)
    kernels.average(image.reshape(-1), total.reshape(-1), np.float32(count), out.reshape(-1))
    return out
