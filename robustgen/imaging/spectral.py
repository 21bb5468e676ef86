"""Noise of a given power at each frequency, with random phases."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.fft

from robustgen.imaging import c_bar_kernels as kernels
from robustgen.imaging.rng import Rng, uniform

Field = npt.NDArray[np.float64]


def draw_blue_noise(shape: tuple[int, int], rng: Rng) -> Field:
    """Noise of `shape` whose amplitude grows with its frequency; its standard deviation is 1."""
    return _draw_noise(_distances(shape), rng)


def draw_brownish_noise(shape: tuple[int, int], rng: Rng) -> Field:
    """Noise of `shape` whose amplitude falls with the frequency squared; its standard deviation is 1."""
    return _draw_noise(_falling(shape), rng)


@lru_cache(maxsize=8)
def _distances(shape: tuple[int, int]) -> Field:
    """Distance of each place from the centre (H / 2, W / 2)."""
    rows, columns = np.arange(shape[0]) - shape[0] / 2, np.arange(shape[1]) - shape[1] / 2
    return np.sqrt(columns[None, :] ** 2 + rows[:, None] ** 2)


@lru_cache(maxsize=8)
def _falling(shape: tuple[int, int]) -> Field:
    return np.asarray(1 / (_distances(shape) ** 2 + 1))


def _draw_noise(power: Field, rng: Rng) -> Field:
    spectrum = np.empty((power.shape[0], power.shape[1] // 2 + 1), np.complex128)
    kernels.half_spectrum(_draw_phases(power.shape, rng), power, spectrum)
    # Axis by axis, which takes a third of the time of ``irfft2``.
    columns = scipy.fft.ifft(spectrum, axis=0, overwrite_x=True)
    noise: Field = scipy.fft.irfft(columns, power.shape[1], overwrite_x=True)
    noise /= noise.std()
    return noise


def _draw_phases(shape: tuple[int, ...], rng: Rng) -> Field:
    """Random phases, the right half the left one turned by 180 degrees."""
    height, width = shape
    left = uniform(rng, 0, 2 * np.pi, (height, width // 2))
    parts: list[npt.NDArray[Any]] = [left, left[::-1, ::-1]]
    if width % 2:
        upper = rng.uniform(0, 2 * np.pi, (height // 2, 1))
        parts.insert(1, np.concatenate([upper, np.zeros((height % 2, 1)), upper[::-1]]))
    return np.concatenate(parts, axis=1)
