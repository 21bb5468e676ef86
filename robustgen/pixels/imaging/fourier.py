"""Plans of Fourier transforms of any size for the loops in `kernels.fourier`."""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import exact, fourier

Floats = npt.NDArray[np.float64]
Plan = tuple[npt.NDArray[np.int64], Floats, Floats, Floats, Floats]

# The cost grows with the prime factor; beyond this, two power-of-two transforms are faster.
_MOST_FACTOR = 61


@lru_cache(maxsize=64)
def unit_circle(size: int) -> Floats:
    """Return cosine and sine of 2 pi k / `size` for k = 0, 1, ..., (2, `size`)."""
    return np.array([exact.sine_cosine(2 * math.pi * k / size)[::-1] for k in range(size)]).T.copy()


@lru_cache(maxsize=64)
def plan_transform(size: int) -> Plan:
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
