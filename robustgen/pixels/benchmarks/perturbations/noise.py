"""Noise sequences: frame 0 is the clean image; every other frame is an independent noisy copy."""

from collections.abc import Callable, Iterator

import numpy as np

from robustgen.pixels.benchmarks.corruptions.noise import (
    Noise,
    ShotNoise,
    gaussian_alias_table,
    shot_alias_table,
    speckle_alias_table,
)
from robustgen.pixels.benchmarks.registry import perturbation
from robustgen.pixels.imaging.alias_sampling import AliasTable, resample
from robustgen.pixels.imaging.arrays import to_uint8, unit
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng

FRAMES = 31


def _sequence(image: Rgb, draw: Callable[[], Rgb]) -> Iterator[Rgb]:
    """Yield the clean image, then 30 draws."""
    yield image
    for _ in range(FRAMES - 1):
        yield draw()


def _draw_resampled(image: Rgb, table: AliasTable, rng: np.random.Generator) -> Iterator[Rgb]:
    return _sequence(image, lambda: resample(image, table, rng))


@perturbation(
    "noise",
    Noise,
    {
        224: (0.03, 0.05, 0.08),
        299: (0.035, 0.055, 0.085),
        64: (0.025, 0.05, 0.075),
        32: (0.02, 0.04, 0.06),
    },
    temporal=False,
)
def gaussian_noise(image: Rgb, parameters: Noise, rng: Rng) -> Iterator[Rgb]:
    """Add normal noise: x + N(0, sigma)."""
    if isinstance(rng, np.random.Generator):
        return _draw_resampled(image, gaussian_alias_table(parameters.sigma), rng)
    x = unit(image, np.float32)
    sigma = np.float32(parameters.sigma)
    return _sequence(image, lambda: to_uint8(x + sigma * rng.normal(size=x.shape).astype(np.float32)))


@perturbation(
    "noise",
    ShotNoise,
    {224: (300, 120, 60), 299: (250, 100, 50), 64: (500, 250, 125), 32: (700, 400, 200)},
    temporal=False,
)
def shot_noise(image: Rgb, parameters: ShotNoise, rng: Rng) -> Iterator[Rgb]:
    """Count photons: Poisson(x * photons) / photons."""
    if isinstance(rng, np.random.Generator):
        return _draw_resampled(image, shot_alias_table(parameters.photons), rng)
    expected = unit(image) * parameters.photons
    return _sequence(image, lambda: to_uint8(rng.poisson(expected) / float(parameters.photons)))


@perturbation(
    "noise",
    Noise,
    {224: (0.05, 0.10, 0.15), 299: (0.06, 0.11, 0.16), 64: (0.05, 0.10, 0.15), 32: (0.05, 0.07, 0.10)},
    common=False,
    temporal=False,
)
def speckle_noise(image: Rgb, parameters: Noise, rng: Rng) -> Iterator[Rgb]:
    """Add noise in proportion to brightness: x + x * N(0, sigma)."""
    if isinstance(rng, np.random.Generator):
        return _draw_resampled(image, speckle_alias_table(parameters.sigma), rng)
    x = unit(image)
    return _sequence(image, lambda: to_uint8(x + x * rng.normal(size=x.shape, scale=parameters.sigma)))
