"""Gaussian filters of a given standard deviation, or of a given number of taps."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import UNITS, Floats, Rgb
from robustgen.pixels.imaging.kernels import blur, exact

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
    values: npt.NDArray[Any],
    sigma: float | tuple[float, float],
    truncate: float = 4.0,
    mode: str = "nearest",
) -> Floats:
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
    blur.blur(
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
    blur.blur_bytes(flat, channels, UNITS, weights, rows, columns, target)
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
    blur.blur(image.reshape(height, -1), channels, weights, rows, weights, columns, out)
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
