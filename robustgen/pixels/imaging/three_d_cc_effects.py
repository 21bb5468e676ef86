"""Fog and defocus blur from a depth map, in float32, and noise of a camera's sensor."""

import io
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.imaging.arrays import UNITS, Rgb, to_uint8, unit
from robustgen.pixels.imaging.decode import open_image
from robustgen.pixels.imaging.geometry import Chain, Crop, ResizeShorter
from robustgen.pixels.imaging.kernels import blur, draws, elementwise, exact
from robustgen.pixels.imaging.rng import AliasTable, Rng, alias_table, from_cumulative, resample

Depth = npt.NDArray[np.float32]

_CELLS = 8
# Planes with a smaller radius (pixels) stay sharp.
_SHARP = 0.1
_MOST_TAPS = 1 << 20
# Largest depth of the published maps.
_FARTHEST = 0.5
# Less than a level is left where density * depth exceeds the logarithm of 255.
_OPAQUE = 5.54
# Smallest share of the pixels that must show some of the image.
_VISIBLE = 0.01


def depth_from_midas(values: npt.NDArray[np.integer]) -> Depth:
    """Return the published depth of ImageNet from MiDaS' inverse depth, 16-bit `values`.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> robustgen.depth_from_midas(np.array([[512, 5120]], np.uint16)).round(2)
    array([[0.5, 0.1]], dtype=float32)
    """
    inverse = np.asarray(values).astype(np.float32) / np.float32(512)
    return np.asarray(np.clip(1 / (inverse + np.float32(1e-6)), 0, np.float32(_FARTHEST)), np.float32)


def read_depth_picture(data: bytes) -> npt.NDArray[Any]:
    """Read a PNG or TIFF file of one channel, (H, W); 16-bit values are kept.

    Raises
    ------
    ValueError
        The file has several channels.
    OSError
        The file is damaged, or not a PNG or TIFF file.
    """
    with open_image(io.BytesIO(data)) as picture:
        if picture.mode not in ("L", "F") and not picture.mode.startswith("I"):
            raise ValueError(f"has several channels (mode {picture.mode}); depth needs one")
        return np.array(picture)


def prepare_depth(depth: Depth, shorter: int, crop: int) -> Depth:
    """Resize the shorter side of `depth` to `shorter` pixels and cut the central `crop`, as for its image.

    Values are not interpolated: each result is the nearest value.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> robustgen.prepare_depth(np.ones((480, 640), np.float32), shorter=256, crop=224).shape
    (224, 224)
    """
    return Chain(ResizeShorter(shorter), Crop(crop)).follow(np.asarray(depth, np.float32))


def add_depth_fog(image: Rgb, depth: Depth, density: float) -> Rgb:
    """Mix `image`, with weight exp(-`density` * `depth`), with its own mean.

    Raises
    ------
    ImageError
        Nothing is left of the image, and its depths are larger than any of ImageNet's.
    """
    # A published map may hide its image too.
    if np.count_nonzero(depth * density < _OPAQUE) < _VISIBLE * depth.size and np.median(depth) > _FARTHEST:
        ends, scale = f"{depth.min():.3g} to {depth.max():.3g}", _FARTHEST / depth.max()
        raise ImageError(f"the fog hides it all: depths {ends}, at most {_FARTHEST}: give scale={scale:.1g}")
    out, units = np.empty(image.shape, np.uint8), UNITS.astype(np.float32)
    counts = np.zeros((256, 3), np.int64)
    elementwise.count_values(image.reshape(-1, 3), counts)
    light = np.float32((counts.sum(axis=1) * units.astype(np.float64)).sum() / image.size)
    blur.add_fog(
        image.reshape(-1, 3), units, depth.reshape(-1), np.float32(density), light, out.reshape(-1, 3)
    )
    return out


def refocus(image: Rgb, depth: Depth, aperture: float, *, far: bool) -> Rgb:
    """Focus on the nearest, or the `far`, eighth of `depth`, and blur the rest.

    Raises
    ------
    ArgumentError
        A depth is so close to 0 that the blur would be wider than a million pixels.
    """
    edges = _quantiles(depth)
    focus = edges[_CELLS - 1 if far else 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        radii = np.float32(aperture) * np.abs(edges - focus) / edges
    if not np.isfinite(radii).all() or 3 * radii.max() > _MOST_TAPS:
        raise ArgumentError("depth is too close to 0 for a blur: its quantiles must exceed the focus")
    (height, width), sharp = image.shape[:2], unit(image, np.float32)
    cells, spans = np.empty((height, width), np.uint8), np.empty((len(edges), height, 2), np.int64)
    shares = np.empty((height, width, 2), np.float32)
    blur.find_cells(depth, edges, cells, shares, spans)
    plane, between, sums = np.empty((3, *image.shape), np.float32)
    out = np.empty(image.shape, np.uint8)
    for number, (radius, span) in enumerate(zip(radii, spans, strict=True)):
        taps = int(3 * radius) | 1
        blurred = radius >= _SHARP and taps > 1
        if blurred:
            weights, total, tails = _blur_weights(radius, taps // 2, (height, width))
            flat = (each.reshape(height, -1) for each in (between, plane))
            blur.blur_by_depth(sharp.reshape(height, -1), 3, weights, tails, total, span, *flat)
        blur.add_plane(number, plane if blurred else sharp, cells, shares, span, sums, out)
    return out


def _quantiles(depth: Depth) -> Depth:
    """Return the nine depths that split the pixels into eight equal cells; outer ones move outwards."""
    ranks = np.arange(_CELLS + 1) / _CELLS * (depth.size - 1)
    below, above = np.floor(ranks).astype(np.intp), np.ceil(ranks).astype(np.intp)
    values = np.partition(depth, np.concatenate([below, above]), axis=None)
    low, high, parts = values[below], values[above], (ranks - below).astype(np.float32)
    steps = high - low
    edges = np.where(parts < 0.5, low + parts * steps, high - steps * (1 - parts))
    edges[0] -= np.float32(1e-4)
    edges[-1] += np.float32(1e-4)
    return np.asarray(edges, np.float32)


def _blur_weights(
    radius: np.float32, reach: int, shape: tuple[int, ...]
) -> tuple[npt.NDArray[np.float32], np.float32, npt.NDArray[np.float32]]:
    """Return the right half of a Gaussian, cut at the image size, its sum, and the sums cut off."""
    places, half = np.arange(reach + 1, dtype=np.float32), np.empty(reach + 1, np.float32)
    exact.fill_exponentials(-(places * places) / (np.float32(2) * radius * radius), half)
    total = np.float32(2 * half[1:].sum(dtype=np.float64) + half[0])
    # The loops process two weights at a time, and no more than a side has samples.
    reaches = [side + side % 2 for side in reversed(shape)]
    tails = [half[each + 1 :].sum(dtype=np.float64) for each in reaches]
    half = np.append(half, np.zeros(reach % 2, np.float32))[: max(reaches) + 1]
    return half, total, np.array(tails, np.float32)


# --- camera sensor noise: photon counts, then circuit noise ----------------------------------------


def expose(image: Rgb, levels: tuple[float, ...], photons: float, sigma: float, rng: Rng) -> Rgb:
    """Draw Poisson(y * `photons`) / `photons`, clipped, plus N(0, `sigma`), clipped, truncated.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    levels : 256 floats
        The light y, 0 to 1, of each value of `image`.
    """
    if isinstance(rng, np.random.Generator):
        return resample(image, _alias_table(levels, photons, sigma), rng)
    light = np.array(levels)[image]
    counted = np.clip(rng.poisson(light * photons) / photons, 0, 1)
    return to_uint8(counted + rng.normal(size=image.shape, scale=sigma))


def darken(image: Rgb, factor: float) -> tuple[float, ...]:
    """Return the light of each value: stretched to the range of `image`, squared, times `factor`."""
    low, high = UNITS[image.min()], UNITS[image.max()]
    if low == high:
        return (0.0,) * 256
    levels: npt.NDArray[np.float64] = ((UNITS - low) / (high - low)) ** 2 * factor
    # Values absent from the image are out of range, but never looked up.
    return tuple(np.clip(levels, 0, 1).tolist())


@lru_cache(maxsize=64)
def _alias_table(levels: tuple[float, ...], photons: float, sigma: float) -> AliasTable:
    """Return the alias table from which `expose` draws for each value."""
    counts, shares = _circuit(photons, sigma)
    below = np.empty((256, counts.size))
    draws.poisson_below(np.array(levels) * photons, counts, below)
    # Last column: as many photons as full brightness, or more.
    chances = np.diff(below, axis=1, prepend=0.0, append=1.0)
    cumulative = np.zeros((256, 255))
    draws.add_mixtures(chances, shares, cumulative)
    return alias_table(from_cumulative(cumulative))


@lru_cache(maxsize=8)
def _circuit(photons: float, sigma: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the photon counts, and the probability of each to result in less than 1 .. 255."""
    counts = np.arange(int(np.ceil(photons)))
    light = np.append(counts / photons, 1.0)
    deviates = (np.arange(1, 256) / 255.0 - light[:, None]) / sigma
    return counts, draws.normal_below(deviates.reshape(-1)).reshape(deviates.shape)
