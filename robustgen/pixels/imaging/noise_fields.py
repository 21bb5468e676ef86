"""Fields of noise: Fourier transforms, noise of a given spectrum, turbulence."""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import Doubles
from robustgen.pixels.imaging.kernels import exact, fourier, weather
from robustgen.pixels.imaging.rng import Rng, integers, uniform

# --- plans of Fourier transforms of any size for the loops in `kernels.fourier` --------------------

TransformPlan = tuple[npt.NDArray[np.int64], Doubles, Doubles, Doubles, Doubles]

# The cost grows with the prime factor; beyond this, two power-of-two transforms are faster.
_MOST_FACTOR = 61


@lru_cache(maxsize=64)
def unit_circle(size: int) -> Doubles:
    """Return cosine and sine of 2 pi k / `size` for k = 0, 1, ..., (2, `size`)."""
    return np.array([exact.sine_cosine(2 * math.pi * k / size)[::-1] for k in range(size)]).T.copy()


@lru_cache(maxsize=64)
def plan_transform(size: int) -> TransformPlan:
    """Return a plan of `kernels.fourier` for lines of `size` samples."""
    factors = _factorise(size)
    if max(factors, default=1) <= _MOST_FACTOR:
        empty = np.empty((2, 0))
        return np.array(factors, np.int64), *unit_circle(size), empty, empty
    length = 1 << (2 * size - 2).bit_length()
    plan = plan_transform(length)
    places = np.arange(size) ** 2 % (2 * size)
    # All plans are in C order: given two argument types, numba 0.60 sometimes ran the wrong loop.
    chirp = np.ascontiguousarray(unit_circle(2 * size)[:, places] * [[1], [-1]])
    response = np.zeros((2, length))
    response[:, :size] = chirp * [[1], [-1]]
    response[:, length - size + 1 :] = response[:, 1:size][:, ::-1]
    # The loops transform eight lines at a time.
    values = np.repeat(response / length, 8, axis=1)
    transformed, _ = fourier.transform(values, np.empty_like(values), length, plan)
    return *plan[:3], chirp, transformed[:, ::8].copy()


def _factorise(size: int) -> list[int]:
    """Return 4s, a 2 and odd primes whose product is `size`."""
    factors, divisor = [], 4
    while size > 1:
        while size % divisor == 0:
            factors.append(divisor)
            size //= divisor
        divisor = {4: 2, 2: 3}.get(divisor, divisor + 2)
    return factors


# --- noise of a given power at each frequency, with random phases ----------------------------------

_NO_COLUMN = np.empty(0)


def draw_blue_noise(shape: tuple[int, int], rng: Rng) -> Doubles:
    """Return noise of `shape` whose amplitude grows with the frequency, with standard deviation 1."""
    (noise,) = _draw_noises(_distances(shape), 1, rng)
    return np.asarray(noise)


def draw_brownish_noises(shape: tuple[int, int], count: int, rng: Rng) -> Doubles:
    """Return `count` noises of `shape` with amplitude 1 / frequency squared and standard deviation 1."""
    return _draw_noises(_falling(shape), count, rng)


@lru_cache(maxsize=8)
def _distances(shape: tuple[int, int]) -> Doubles:
    """Return the distance of each place from the centre (H / 2, W / 2)."""
    rows, columns = np.arange(shape[0]) - shape[0] / 2, np.arange(shape[1]) - shape[1] / 2
    return np.sqrt(columns[None, :] ** 2 + rows[:, None] ** 2)


@lru_cache(maxsize=8)
def _falling(shape: tuple[int, int]) -> Doubles:
    return np.asarray(1 / (_distances(shape) ** 2 + 1))


def _draw_noises(power: Doubles, count: int, rng: Rng) -> Doubles:
    height, width = power.shape
    noises = np.empty((count, height, width))
    for noise in noises:
        left = uniform(rng, 0, 2 * np.pi, (height, width // 2))
        upper = rng.uniform(0, 2 * np.pi, height // 2) if width % 2 else _NO_COLUMN
        spectrum = fourier.half_spectrum(left, upper, power)
        fourier.invert_columns(spectrum, plan_transform(height))
        fourier.invert_rows(spectrum, plan_transform(width), noise)
        fourier.standardise(noise)
    return noises


# --- turbulence: five octaves of gradient noise ----------------------------------------------------

_TABLE = 256
_DRAWS = 2**31


def draw_turbulence(shape: tuple[int, int], cell: float, rng: Rng) -> Doubles:
    """Return the sum of |gradient noise| at five frequencies, each with half the weight of the one before.

    Parameters
    ----------
    shape : (int, int)
    cell : float
        Side of the coarsest lattice cells in pixels.

    Returns
    -------
    float64 ndarray of `shape`
        NaN where a gradient has no direction.
    """
    gradients, order = _draw_lattice(rng)
    total = np.zeros(shape)
    down, across = (np.arange(size) * (1 / cell) for size in shape)
    for frequency in (1, 2, 4, 8, 16):
        rows, columns = (frequency * each + 4096 for each in (down, across))
        weather.add_turbulence(
            total,
            gradients,
            order,
            rows.astype(np.int64),
            rows % 1,
            columns.astype(np.int64),
            columns % 1,
            1 / frequency,
        )
    return total


def _draw_lattice(rng: Rng) -> tuple[Doubles, npt.NDArray[np.int64]]:
    """Return unit gradients (514, 2) and their shuffled order (514) for lattice nodes."""
    size = 2 * _TABLE + 2
    draws = integers(rng, 0, _DRAWS, (2 * size + _TABLE,))
    components = (draws[: 2 * size].reshape(size, 2) % (2 * _TABLE) - _TABLE) / _TABLE
    with np.errstate(invalid="ignore"):
        gradients = components / np.sqrt((components**2).sum(axis=1))[:, None]
    shuffled = list(range(size))
    for i, j in zip(range(_TABLE - 1, -1, -1), (draws[2 * size :] % _TABLE).tolist(), strict=True):
        shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
    order = np.array(shuffled)
    for table in (order, gradients):
        table[_TABLE : 2 * _TABLE] = table[:_TABLE]
        table[2 * _TABLE :] = table[:2]
    return gradients, order
