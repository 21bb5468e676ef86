"""Gaussian filters with a given number of taps, which determines the standard deviation."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import elementary
from robustgen.pixels.imaging.kernels import gaussian as kernels
from robustgen.pixels.imaging.pixels import Rgb


def blur_by_taps(image: Rgb, taps: int) -> Rgb:
    """Filter `image` with a Gaussian of an odd number of `taps`; mirror at the edge pixels, and round.

    Equals torchvision's ``gaussian_blur(image, taps)``, except where its float32 sum changes a rounding.
    """
    height, width, channels = image.shape
    weights, rows, columns = _half_kernel(taps), _mirror(height, taps), _mirror(width, taps)
    out = np.empty((height, width * channels))
    kernels.blur(image.reshape(height, -1), channels, weights, rows, weights, columns, out)
    return np.rint(out).astype(np.uint8).reshape(image.shape)


@lru_cache(maxsize=32)
def _half_kernel(taps: int) -> npt.NDArray[np.float64]:
    """Return the right half of the kernel, centre first, in float32 precision; a zero makes it even."""
    sigma, radius = 0.15 * taps + 0.35, taps // 2
    density = np.empty(2 * radius + 1, np.float32)
    elementary.fill_exponentials(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2, density)
    weights = (density / density.sum())[radius:].astype(np.float64)
    return np.append(weights, np.zeros((1 - weights.size) % 2))


@lru_cache(maxsize=64)
def _mirror(size: int, taps: int) -> npt.NDArray[np.intp]:
    """Return the sample index at each place of a line mirrored by an even radius, edges not repeated."""
    radius = taps // 2 + (taps // 2) % 2
    index = np.abs(np.arange(-radius, size + radius)) % (2 * size - 2)
    return np.where(index >= size, 2 * size - 2 - index, index)
