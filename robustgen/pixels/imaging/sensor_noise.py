"""Camera sensor noise: photon counts, then circuit noise."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import UNITS, Rgb, to_uint8
from robustgen.pixels.imaging.kernels import draws
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.sampling import AliasTable, alias_table, from_cumulative, resample

Levels = tuple[float, ...]


def expose(image: Rgb, levels: Levels, photons: float, sigma: float, rng: Rng) -> Rgb:
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


def darken(image: Rgb, factor: float) -> Levels:
    """Return the light of each value: stretched to the range of `image`, squared, times `factor`."""
    low, high = UNITS[image.min()], UNITS[image.max()]
    if low == high:
        return (0.0,) * 256
    levels: npt.NDArray[np.float64] = ((UNITS - low) / (high - low)) ** 2 * factor
    # Values absent from the image are out of range, but never looked up.
    return tuple(np.clip(levels, 0, 1).tolist())


@lru_cache(maxsize=64)
def _alias_table(levels: Levels, photons: float, sigma: float) -> AliasTable:
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
