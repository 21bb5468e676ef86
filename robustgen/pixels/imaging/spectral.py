"""Noise of a given power at each frequency, with random phases."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.fourier import plan_transform
from robustgen.pixels.imaging.kernels import fourier
from robustgen.pixels.imaging.kernels import spectral as kernels
from robustgen.pixels.imaging.rng import Rng, uniform

_NO_COLUMN = np.empty(0)

Field = npt.NDArray[np.float64]


def draw_blue_noise(shape: tuple[int, int], rng: Rng) -> Field:
    """Return noise of `shape` whose amplitude grows with the frequency, with standard deviation 1."""
    (noise,) = _draw_noises(_distances(shape), 1, rng)
    return np.asarray(noise)


def draw_brownish_noises(shape: tuple[int, int], count: int, rng: Rng) -> Field:
    """Return `count` noises of `shape` with amplitude 1 / frequency squared and standard deviation 1."""
    return _draw_noises(_falling(shape), count, rng)


@lru_cache(maxsize=8)
def _distances(shape: tuple[int, int]) -> Field:
    """Return the distance of each place from the centre (H / 2, W / 2)."""
    rows, columns = np.arange(shape[0]) - shape[0] / 2, np.arange(shape[1]) - shape[1] / 2
    return np.sqrt(columns[None, :] ** 2 + rows[:, None] ** 2)


@lru_cache(maxsize=8)
def _falling(shape: tuple[int, int]) -> Field:
    return np.asarray(1 / (_distances(shape) ** 2 + 1))


def _draw_noises(power: Field, count: int, rng: Rng) -> Field:
    height, width = power.shape
    noises = np.empty((count, height, width))
    for noise in noises:
        left = uniform(rng, 0, 2 * np.pi, (height, width // 2))
        upper = rng.uniform(0, 2 * np.pi, height // 2) if width % 2 else _NO_COLUMN
        spectrum = kernels.half_spectrum(left, upper, power)
        fourier.invert_columns(spectrum, plan_transform(height))
        fourier.invert_rows(spectrum, plan_transform(width), noise)
        kernels.standardise(noise)
    return noises
