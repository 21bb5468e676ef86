"""Noise: Gaussian, shot, impulse, and the extra corruption speckle noise.

With a `RandomState`, deviates are drawn as in the published scripts. With a `Generator`, each value is drawn
from its exact distribution over the 256 results (see `robustgen.pixels.imaging.rng`), which is ten times
as fast.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging.arrays import Rgb, to_uint8, unit
from robustgen.pixels.imaging.kernels import draws
from robustgen.pixels.imaging.rng import AliasTable, Rng, alias_table, from_cumulative, resample

_VALUES = np.arange(256)[:, None] / 255.0
_EDGES = np.arange(1, 256)[None, :] / 255.0
# Distances of each edge from each value, -254 to 255.
_STEPS = np.arange(1, 256)[None, :] - np.arange(256)[:, None]


@dataclass(frozen=True)
class Noise:
    """Standard deviation `sigma`, in units of the full range."""

    sigma: float


@lru_cache(maxsize=32)
def gaussian_alias_table(sigma: float) -> AliasTable:
    """Return the alias table of x + N(0, sigma), clipped and truncated."""
    if not sigma:
        return alias_table(np.eye(256))
    shares = draws.normal_below(np.arange(-255, 256) / 255.0 / sigma)
    return alias_table(from_cumulative(shares[_STEPS + 255]))


@corruption(
    "noise",
    Noise,
    {
        224: (0.08, 0.12, 0.18, 0.26, 0.38),
        299: (0.09, 0.13, 0.19, 0.27, 0.40),
        64: (0.04, 0.08, 0.12, 0.15, 0.18),
        32: (0.04, 0.06, 0.08, 0.09, 0.10),
    },
)
def gaussian_noise(image: Rgb, parameters: Noise, rng: Rng) -> Rgb:
    """Add normal noise: x + N(0, sigma)."""
    if isinstance(rng, np.random.Generator):
        return resample(image, gaussian_alias_table(parameters.sigma), rng)
    x = unit(image)
    return to_uint8(x + rng.normal(size=x.shape, scale=parameters.sigma))


@dataclass(frozen=True)
class ShotNoise:
    """Number of `photons` at full brightness."""

    photons: float = within(0.1, 1e6)


@lru_cache(maxsize=32)
def shot_alias_table(photons: float) -> AliasTable:
    """Return the alias table of Poisson(x * photons) / photons, clipped and truncated."""
    counts = np.arange(int(photons) + 1)
    results = to_uint8(counts / photons)
    # At edge w: the probability of a count whose result is below w.
    below = np.searchsorted(results, np.arange(1, 256)) - 1
    cumulative = np.empty((256, 255))
    draws.poisson_below(_VALUES[:, 0] * photons, below, cumulative)
    return alias_table(from_cumulative(cumulative))


@corruption(
    "noise",
    ShotNoise,
    {
        224: (60, 25, 12, 5, 3),
        299: (50, 20, 10, 5, 3),
        64: (250, 100, 50, 30, 15),
        32: (500, 250, 100, 75, 50),
    },
)
def shot_noise(image: Rgb, parameters: ShotNoise, rng: Rng) -> Rgb:
    """Count photons: Poisson(x * photons) / photons."""
    if isinstance(rng, np.random.Generator):
        return resample(image, shot_alias_table(parameters.photons), rng)
    return to_uint8(rng.poisson(unit(image) * parameters.photons) / float(parameters.photons))


@dataclass(frozen=True)
class ImpulseNoise:
    """Share `amount` of the values that change."""

    amount: float = within(0, 1)


@lru_cache(maxsize=32)
def impulse_alias_table(amount: float) -> AliasTable:
    """Return the alias table of salt and pepper, equally likely, in `amount` of the values."""
    chances = np.eye(256) * (1 - amount)
    chances[:, 0] += amount / 2
    chances[:, 255] += amount / 2
    return alias_table(chances)


@corruption(
    "noise",
    ImpulseNoise,
    {
        224: (0.03, 0.06, 0.09, 0.17, 0.27),
        299: (0.04, 0.07, 0.10, 0.18, 0.28),
        64: (0.01, 0.02, 0.05, 0.08, 0.14),
        32: (0.01, 0.02, 0.03, 0.05, 0.07),
    },
)
def impulse_noise(image: Rgb, parameters: ImpulseNoise, rng: Rng) -> Rgb:
    """Set values of single channels to 0 or 255 (salt and pepper)."""
    if isinstance(rng, np.random.Generator):
        return resample(image, impulse_alias_table(parameters.amount), rng)
    hit = rng.uniform(size=image.shape) <= parameters.amount
    salt = rng.uniform(size=image.shape) <= 0.5
    return np.where(hit, np.where(salt, np.uint8(255), np.uint8(0)), image)


@lru_cache(maxsize=32)
def speckle_alias_table(sigma: float) -> AliasTable:
    """Return the alias table of x + x * N(0, sigma), clipped and truncated; black stays black."""
    if not sigma:
        return alias_table(np.eye(256))
    cumulative = np.ones((256, 255))
    deviates = (_EDGES - _VALUES[1:]) / (_VALUES[1:] * sigma)
    cumulative[1:] = draws.normal_below(deviates.reshape(-1)).reshape(deviates.shape)
    return alias_table(from_cumulative(cumulative))


@corruption(
    "noise",
    Noise,
    {
        224: (0.15, 0.20, 0.35, 0.45, 0.60),
        299: (0.16, 0.21, 0.36, 0.46, 0.61),
        64: (0.15, 0.20, 0.25, 0.30, 0.35),
        32: (0.06, 0.10, 0.12, 0.16, 0.20),
    },
    common=False,
)
def speckle_noise(image: Rgb, parameters: Noise, rng: Rng) -> Rgb:
    """Add noise in proportion to brightness: x + x * N(0, sigma)."""
    if isinstance(rng, np.random.Generator):
        return resample(image, speckle_alias_table(parameters.sigma), rng)
    x = unit(image)
    return to_uint8(x + x * rng.normal(size=x.shape, scale=parameters.sigma))
