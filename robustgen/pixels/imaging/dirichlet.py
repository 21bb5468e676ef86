"""Dirichlet and Beta weights equal to those of NumPy's default generator, identical on all processors.

NumPy uses exponentials, logarithms and powers of the C library, whose last bit depends on the processor;
here they are correctly rounded. Exponential deviates use a ziggurat (Marsaglia and Tsang 2000), Gamma
deviates Ahrens and Dieter (1974) below a shape of 1 and Marsaglia and Tsang (2000) above, and Beta deviates
Johnk (1964) if neither shape is above 1.
"""

import math
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import exact
from robustgen.pixels.imaging.rng import Rng, draws_from_pcg64
from robustgen.pixels.imaging.ziggurat import normal

Floats = npt.NDArray[np.float64]

# Below this concentration, all Gamma deviates could be 0, so NumPy breaks a stick with Beta deviates.
_SMALL = 0.1


def dirichlet(rng: Rng, concentration: float, count: int) -> Floats:
    """Return the result of ``rng.dirichlet([concentration] * count)``."""
    if not draws_from_pcg64(rng):
        return np.asarray(rng.dirichlet([concentration] * count))
    if concentration >= _SMALL:
        deviates = [_draw_gamma(rng, concentration) for _ in range(count)]
        total = 0.0
        for each in deviates:
            total += each
        return np.array(deviates) * (1.0 / total)
    shares, rest = np.empty(count), 1.0
    others = [*accumulate([concentration] * (count - 1))][::-1]
    for i, other in enumerate(others):
        share = beta(rng, concentration, other)
        shares[i] = rest * share
        rest *= 1.0 - share
    shares[-1] = rest
    return shares


def beta(rng: Rng, a: float, b: float) -> float:
    """Return the result of ``rng.beta(a, b)``."""
    if not draws_from_pcg64(rng):
        return float(rng.beta(a, b))
    if a > 1 or b > 1:
        first, second = _draw_gamma(rng, a), _draw_gamma(rng, b)
        return first / (first + second)
    while True:
        u, v = rng.random(), rng.random()
        x, y = _power(u, 1 / a), _power(v, 1 / b)
        if x > 0 and y > 0 and x + y <= 1:
            return x / (x + y)
        if x + y <= 1 and u > 0 and v > 0:
            # A power underflows, but its logarithm does not.
            x, y = float(exact.log(u)) / a, float(exact.log(v)) / b
            top = max(x, y)
            whole = exact.exp(x - top) + exact.exp(y - top)
            return float(exact.exp(x - top - exact.log(whole)))


def _draw_gamma(rng: Rng, shape: float) -> float:
    """Return the result of ``rng.standard_gamma(shape)`` for a PCG64."""
    if shape == 1:
        return _draw_exponential(rng)
    if shape < 1:
        while True:
            u, deviate = rng.random(), _draw_exponential(rng)
            if u <= 1 - shape:
                x, limit = _power(u, 1 / shape), deviate
            else:
                y = -float(exact.log((1 - u) / shape))
                x, limit = _power(1 - shape + shape * y, 1 / shape), deviate + y
            if x <= limit:
                return x
    base = shape - 1 / 3
    scale = 1 / math.sqrt(9 * base)
    while True:
        x, v = 0.0, 0.0
        while v <= 0:
            x = float(normal(rng, 0, 1, (1,))[0])
            v = 1 + scale * x
        v = v * v * v
        u = rng.random()
        if u < 1 - 0.0331 * (x * x) * (x * x):
            return base * v
        if u == 0 or exact.log(u) < 0.5 * x * x + base * (1 - v + exact.log(v)):
            return base * v


def _draw_exponential(rng: Rng) -> float:
    """Return the result of ``rng.standard_exponential()`` for a PCG64."""
    widths, limits, heights = _read_tables()
    while True:
        # Bits of a word, lowest first: 3 unused, 8 for the strip, 53 for the size.
        word = int(rng.bit_generator.random_raw())  # type: ignore[union-attr]
        strip, size = word >> 3 & 255, word >> 11
        deviate = size * widths[strip]
        if size < limits[strip]:
            return deviate
        if strip == 0:
            return widths[255] * 2.0**53 - float(exact.log(1 - rng.random()))
        height = (heights[strip - 1] - heights[strip]) * rng.random() + heights[strip]
        if height < exact.exp(-deviate):
            return deviate


@lru_cache(maxsize=1)
def _read_tables() -> tuple[list[float], list[int], list[float]]:
    """Return the width / 2**53, the smallest size outside the core, and the density of each strip."""
    widths, limits = np.load(Path(__file__).with_name("exponential_ziggurat.npy"))
    edges = widths.view(np.float64) * 2.0**53
    edges[0] = 0
    return widths.view(np.float64).tolist(), limits.tolist(), [float(exact.exp(-edge)) for edge in edges]


def _power(base: float, exponent: float) -> float:
    return float(exact.power(base, exponent)) if base > 0 else 0.0
