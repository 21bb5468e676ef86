"""Blurs: Gaussian filters, defocus, zooms and motion."""

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import UNITS, AnyFloats, Rgb
from robustgen.pixels.imaging.kernels import blur as blur_loops
from robustgen.pixels.imaging.kernels import elementwise, exact, intrinsics

# --- Gaussian filter, bit-identical to SciPy's -----------------------------------------------------


@lru_cache(maxsize=256)
def gaussian_weights(sigma: float, truncate: float = 4.0) -> npt.NDArray[np.float64]:
    """Return the right half, centre first, of SciPy's Gaussian of radius int(truncate * sigma + 0.5).

    It is a single 1 if `sigma` is 0.
    """
    if not sigma:
        return np.ones(1)
    radius = int(truncate * sigma + 0.5)
    phi = exact.gaussian_at(np.arange(-radius, radius + 1), sigma)
    half: npt.NDArray[np.float64] = (phi / phi.sum())[radius:]
    half.flags.writeable = False
    return half


def _extension(size: int, radius: int, mode: str) -> npt.NDArray[np.intp]:
    """Return the sample index at each place of a line of `size` extended by `radius` on both sides."""
    index = np.arange(-radius, size + radius)
    index = np.clip(index, 0, size - 1) if mode == "nearest" else index % (2 * size)
    return np.where(index >= size, 2 * size - 1 - index, index)


def gaussian(
    values: npt.NDArray[Any], sigma: float | tuple[float, float], truncate: float = 4.0, mode: str = "nearest"
) -> AnyFloats:
    """Filter `values` with a Gaussian along rows and columns, without mixing channels.

    Bit-identical to ``scipy.ndimage.gaussian_filter`` of 2018.

    Parameters
    ----------
    values : ndarray of shape (H, W) or (H, W, C)
    sigma : float, or one for rows and one for columns
        Standard deviation in pixels; 0 leaves an axis as it is.
    truncate : float
        Radius of the kernel in standard deviations.
    mode : {"nearest", "reflect"}
        Extension of the image beyond its border.

    Returns
    -------
    ndarray of the shape of `values`
        float32 for float32, rounded between the two passes as in SciPy; else float64.
    """
    height, width = values.shape[:2]
    flat = np.ascontiguousarray(values).reshape(height, -1)
    out = np.empty(flat.shape, np.float32 if values.dtype == np.float32 else np.float64)
    down, across = sigma if isinstance(sigma, tuple) else (sigma, sigma)
    blur_loops.blur(
        flat,
        flat.shape[1] // width,
        *_kernel(height, down, truncate, mode),
        *_kernel(width, across, truncate, mode),
        out,
    )
    return out.reshape(values.shape)


def gaussian_bytes(image: Rgb, sigma: float, truncate: float = 4.0) -> Rgb:
    """Return `to_uint8` of `gaussian` of an image in [0, 1], in one pass and with little memory."""
    height, width, channels = image.shape
    out = np.empty_like(image)
    weights, rows = _kernel(height, sigma, truncate, "nearest")
    _, columns = _kernel(width, sigma, truncate, "nearest")
    flat, target = image.reshape(height, -1), out.reshape(height, -1)
    blur_loops.blur_bytes(flat, channels, UNITS, weights, rows, columns, target)
    return out


@lru_cache(maxsize=256)
def _kernel(size: int, sigma: float, truncate: float, mode: str) -> tuple[Any, Any]:
    """Return the right half of the kernel, and the sample index at each place of the extended axis.

    Kernels of odd radius get a zero, because the loops process two weights per side at a time.
    """
    weights = gaussian_weights(float(sigma), float(truncate))
    padded = np.append(weights, np.zeros((1 - weights.size) % 2))
    return padded, _extension(size, padded.size - 1, mode)


# --- Gaussian filters with a given number of taps, which determines the standard deviation ---------


def blur_by_taps(image: Rgb, taps: int) -> Rgb:
    """Filter `image` with a Gaussian of an odd number of `taps`; mirror at the edge pixels, and round.

    Equals torchvision's ``gaussian_blur(image, taps)``, except where its float32 sum changes a rounding.
    """
    height, width, channels = image.shape
    weights, rows, columns = _half_kernel(taps), _mirror(height, taps), _mirror(width, taps)
    out = np.empty((height, width * channels))
    blur_loops.blur(image.reshape(height, -1), channels, weights, rows, weights, columns, out)
    return np.rint(out).astype(np.uint8).reshape(image.shape)


@lru_cache(maxsize=32)
def _half_kernel(taps: int) -> npt.NDArray[np.float64]:
    """Return the right half of the kernel, centre first, in float32 precision; a zero makes it even."""
    sigma, radius = 0.15 * taps + 0.35, taps // 2
    density = np.empty(2 * radius + 1, np.float32)
    exact.fill_exponentials(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2, density)
    weights = (density / density.sum())[radius:].astype(np.float64)
    return np.append(weights, np.zeros((1 - weights.size) % 2))


@lru_cache(maxsize=64)
def _mirror(size: int, taps: int) -> npt.NDArray[np.intp]:
    """Return the sample index at each place of a line mirrored by an even radius, edges not repeated."""
    radius = taps // 2 + (taps // 2) % 2
    index = np.abs(np.arange(-radius, size + radius)) % (2 * size - 2)
    return np.where(index >= size, 2 * size - 2 - index, index)


# --- defocus: a filter with an anti-aliased disk ---------------------------------------------------


# A caller may have NumPy raise where small weights of the Gaussian round to nothing.
@lru_cache(maxsize=64)
@np.errstate(under="ignore")
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


def _gaussian_of_opencv(size: int, sigma: float, dtype: type[np.floating[Any]]) -> npt.NDArray[np.float32]:
    """Return the right half of OpenCV's Gaussian of `size` taps, rounded to `dtype` first."""
    taps = exact.gaussian_at(np.arange(size) - size // 2, float(sigma)).astype(dtype)
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
        blur_loops.add_up_columns(padded, sums)
    out = np.empty_like(image)
    blur_loops.weigh_groups(
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


# --- images enlarged about their centre, like `scipy.ndimage.zoom`, and their mean -----------------

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

    def arguments(self, image: AnyFloats) -> tuple[Any, ...]:
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
    return slice(rows.start, rows.start + rows.length), slice(columns.start, columns.start + columns.length)


def enlarge(crop: AnyFloats, shape: tuple[int, int], factor: float) -> AnyFloats:
    """Enlarge the `zoom_crop` of an image of `shape` (H, W) to `shape` by linear interpolation."""
    if factor == 1:
        return crop
    channels = math.prod(crop.shape[2:])
    out = np.empty((*shape, *crop.shape[2:]), crop.dtype)
    for plan in _plan_zooms(*shape, channels, (factor,), True):
        blur_loops.add_zoomed(*plan.arguments(crop), out.reshape(len(out), -1), False, None, None)
    return out


def average_zooms(
    image: AnyFloats, factors: Sequence[float], total: AnyFloats, added: int, black_outside: bool = False
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
        blur_loops.add_zoomed(
            *plan.arguments(image), flat_total, added > 0, np.float32(count), out.reshape(height, -1)
        )
    return out


def average(image: AnyFloats, total: AnyFloats, count: int) -> Rgb:
    """Return (`image` + `total`) / `count` of float32 unit images, truncated to uint8."""
    out = np.empty(image.shape, np.uint8)
    elementwise.average(image.reshape(-1), total.reshape(-1), np.float32(count), out.reshape(-1))
    return out


def take_in(image: Rgb, total: AnyFloats, count: int) -> Rgb:
    """Replace `image` by the mean of it and the `count` - 1 images with the sum `total`, and return it.

    `image` is also added to `total`, float32 (H, W, 3) in [0, 1].
    """
    blur_loops.take_in(image.reshape(-1), total.reshape(-1), np.float32(count))
    return image


# --- motion along a line, identical to ImageMagick's ------------------------------------------------

# Above this number of values, slabs save more memory than their shared lines cost time.
_LARGE: Final = 1 << 24


@lru_cache(maxsize=256)
def _motion_weights(radius: float, sigma: float) -> npt.NDArray[np.float64]:
    """Return ImageMagick's one-sided Gaussian: 2 ceil(radius) + 1 weights with sum 1."""
    width = 2 * math.ceil(radius) + 1
    weights: npt.NDArray[np.float64] = blur_loops.fading_weights(width, float(sigma))
    weights /= weights.sum()
    return weights


def _direction(width: int, angle: float) -> tuple[float, float, float]:
    """Return the end of a line of `width` pixels along `angle` (degrees), down and right, and its length."""
    sine, cosine = exact.sine_cosine(math.radians(angle))
    down, right = width * sine, width * cosine
    return down, right, exact.hypot(down, right)


def blur_along_line(image: Rgb, radius: float, sigma: float, angle: float) -> Rgb:
    """Blur along a line, like ImageMagick 6.9 (Q16).

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W)
    radius, sigma : float
        Pixels; the one-sided kernel has 2 ceil(radius) + 1 samples.
    angle : float
        Degrees.

    Returns
    -------
    uint8 ndarray of the shape of `image`
    """
    weights, (height, width) = _motion_weights(radius, sigma), image.shape[:2]
    flat, direction = image.reshape(height, -1), _direction(weights.size, angle)

    def blur(lines: Rgb) -> Rgb:
        out = np.empty(lines.shape, np.uint8)
        blur_loops.blur_along_line(lines, flat.shape[1] // width, weights, *direction, out)
        return out

    return _map_slabs(blur, flat, weights.size).reshape(image.shape)


def _map_slabs(blur: Callable[[Rgb], Rgb], flat: Rgb, reach: int) -> Rgb:
    """Blur `flat` (H, W * C); process a large image in slabs, each extended by `reach` lines.

    `blur` needs four times the bytes of its lines.
    """
    if flat.size <= _LARGE:
        return blur(flat)
    out, step = np.empty_like(flat), max(_LARGE // 2 // flat.shape[1], 1)
    for top in range(0, len(flat), step):
        first = max(top - reach, 0)
        target = out[top : top + step]
        target[:] = blur(flat[first : top + step + reach])[top - first :][: len(target)]
    return out


def sum_along_line(values: AnyFloats, radius: float, sigma: float, angle: float) -> AnyFloats:
    """Blur along a line in float64 without intermediate rounding, like the package imagecorruptions.

    Parameters
    ----------
    values : ndarray of shape (H, W, 3) or (H, W)
    radius, sigma, angle : float
        As in `blur_along_line`. Weights of samples a full side away are dropped without renormalising.

    Returns
    -------
    float64 ndarray of the shape of `values`
    """
    height, width = values.shape[:2]
    weights = blur_loops.fading_weights(2 * math.ceil(radius) + 1, float(sigma))
    if sigma:
        weights /= math.sqrt(2 * math.pi) * sigma
    weights /= weights.sum()
    rows, columns = np.empty((2, weights.size), np.int64)
    blur_loops.place_samples(*_direction(weights.size, angle), rows, columns)
    reached = np.maximum(np.abs(rows) / height, np.abs(columns) / width) < 1
    count = weights.size if reached.all() else int(np.argmin(reached))
    weights, rows, columns = weights[:count], rows[:count], columns[:count]
    down, right = int(rows[-1]), int(columns[-1])
    above, left = max(-down, 0), max(-right, 0)
    flat = np.ascontiguousarray(values).reshape(height, -1)
    channels = flat.shape[1] // width
    padded = np.empty((height + abs(down), (width + abs(right)) * channels))
    elementwise.extend(flat, channels, above, left, False, 1.0, padded)
    out = np.empty(flat.shape)
    blur_loops.sum_rows(padded, weights, rows + above, (columns + left) * channels, out)
    return out.reshape(values.shape)
