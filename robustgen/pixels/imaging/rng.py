"""Random generators for operations, and draws: alias method, normal, exponential and Dirichlet."""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import Doubles, Rgb
from robustgen.pixels.imaging.kernels import draws, exact

# Below this count, NumPy's draws are faster than copying the generator's state twice.
_FEWEST_DRAWS = 2048

Rng = np.random.Generator | np.random.RandomState


def integers(rng: Rng, low: Any, high: Any, size: tuple[int, ...] | None = None) -> Any:
    """Draw integers in [low, high) from either generator; the bounds may be arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import integers
    >>> int(integers(np.random.RandomState(0), 0, 10)), int(integers(np.random.default_rng(0), 0, 10))
    (5, 8)
    """
    draw = rng.randint if isinstance(rng, np.random.RandomState) else rng.integers
    return draw(low, high, size)


def spawn(rng: Rng) -> Rng:
    """Return the generator that the published function seeds, or `rng` if it is a `Generator`."""
    if isinstance(rng, np.random.RandomState):
        return np.random.RandomState(rng.randint(0, 2**32))
    return rng


@contextmanager
def python_draws(rng: Rng) -> Iterator[random.Random]:
    """Yield Python's generator with the state of a `RandomState`, or seeded by a `Generator`.

    The `RandomState` continues after the draws.
    """
    if isinstance(rng, np.random.Generator):
        yield random.Random(int(rng.integers(0, 2**63 - 1)))
        return
    _, keys, position, *_ = rng.get_state()
    draws = random.Random()
    draws.setstate((3, (*map(int, keys), int(position)), None))
    yield draws
    *words, index = draws.getstate()[1]
    rng.set_state(("MT19937", np.array(words, np.uint32), index, 0, 0.0))


def repeat_draws(rng: Rng | None) -> Callable[[], None]:
    """Return a function that sets `rng` back to its present state; None draws nothing."""
    if isinstance(rng, np.random.RandomState):
        return partial(rng.set_state, rng.get_state())
    if rng is None:
        return lambda: None
    return partial(setattr, rng.bit_generator, "state", rng.bit_generator.state)


def uniform(rng: Rng, low: float, high: float, shape: tuple[int, ...]) -> Doubles:
    """Return ``rng.uniform(low, high, shape)``; twice as fast for many draws of a PCG64."""
    if math.prod(shape) < _FEWEST_DRAWS or not draws_from_pcg64(rng):
        return np.asarray(rng.uniform(low, high, shape))
    out = np.empty(shape)
    draw_from_pcg64(rng, draws.draw_uniform, float(low), float(high - low), out.reshape(-1))
    return out


def bytes_below(rng: np.random.Generator, bound: int, count: int) -> npt.NDArray[np.uint8]:
    """Return ``rng.integers(0, bound, count, np.uint8)``; three times as fast for a PCG64."""
    words: Any = rng.bit_generator
    if count < _FEWEST_DRAWS or not draws_from_pcg64(rng) or words.state["has_uint32"]:
        return rng.integers(0, bound, count, np.uint8)
    begun, out, done, used = words.state, np.empty(count, np.uint8), 0, 0
    while done < count:
        likely = (count - done) * 256 // (256 - 256 % bound)
        octets = words.random_raw(likely // 8 + 64).astype("<u8", copy=False).view(np.uint8)
        more, taken = draws.keep_below(octets, bound, out[done:])
        done, used = done + more, used + taken
    # NumPy takes octets from 32-bit halves of words, and keeps an unused upper half.
    halves = -(-used // 4)
    words.state = begun
    words.advance(halves // 2)
    if halves % 2:
        rng.integers(0, 2**32, dtype=np.uint32)
    return out


def draws_from_pcg64(rng: Rng) -> bool:
    """Return True if `rng` is a Generator with a PCG64, as `draw_from_pcg64` needs."""
    return isinstance(rng, np.random.Generator) and type(rng.bit_generator) is np.random.PCG64


def draw_from_pcg64(rng: Any, kernel: Callable[..., None], *arguments: Any) -> None:
    """Call ``kernel(generator, *arguments)`` with the state of `rng`, and advance `rng` accordingly."""
    with rng.bit_generator.lock:
        held = rng.bit_generator.state
        numbers = held["state"]
        words = bytearray((numbers["state"] | numbers["inc"] << 128).to_bytes(32, "little"))
        kernel(np.frombuffer(words, np.uint64), *arguments)
        numbers["state"] = int.from_bytes(words[:16], "little")
        rng.bit_generator.state = held


# --- noise drawn from a table: Walker's alias method over the 256 values of a pixel ----------------

# Independent noise turns a pixel value v into a random value w whose distribution
# depends on v alone. Instead of drawing and truncating a normal or Poisson deviate
# per value, this module tabulates the probability of every w for each v, and one
# 32-bit draw selects w: Walker's alias method, exact to 2**-32 per value.

Chances = Doubles
AliasTable = npt.NDArray[np.uint32]

# Below this count, NumPy's draws are faster than copying the generator's state twice.
_MOST_BY_NUMPY = 4096

# Looking up these objects is ten times as fast as parsing their names.
_WORDS = {name: np.dtype(name) for name in ("<u1", "<u4", "<u8")}

_OF_64_BITS = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)


def from_cumulative(cumulative: Doubles) -> Chances:
    """Return probabilities (256, 256) of truncated values from P(255 x < w), w = 1 .. 255, (256, 255)."""
    edges = np.concatenate([np.zeros((256, 1)), cumulative, np.ones((256, 1))], axis=1)
    return np.maximum(np.diff(edges, axis=1), 0.0)


def alias_table(chances: Chances) -> AliasTable:
    """Return Walker's alias table of each row of `chances` (256, 256), packed for `kernels.resample`."""
    filling = chances / chances.sum(axis=1, keepdims=True) * chances.shape[1]
    table = np.empty(chances.shape, np.uint32)
    draws.alias_rows(filling, table)
    return table


def random_bits(rng: np.random.Generator, count: int, dtype: str) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return `count` uniform words of the little-endian unsigned `dtype`, cut from 64-bit draws."""
    word = _WORDS[dtype]
    words = (count * word.itemsize + 7) // 8
    # `random_raw` gives the same words faster, but other generators (MT19937) may return only 32 bits.
    if type(rng.bit_generator) in _OF_64_BITS:
        draws = rng.bit_generator.random_raw(words)
    else:
        draws = rng.integers(0, 2**64 - 1, words, np.uint64, endpoint=True)
    return draws.astype(_WORDS["<u8"], copy=False).view(word)[:count]


def resample(image: Rgb, table: AliasTable, rng: np.random.Generator) -> Rgb:
    """Draw a new value for each value of `image`, uint8 of any shape, from `table`."""
    out = np.empty(image.shape, np.uint8)
    if image.size > _MOST_BY_NUMPY and draws_from_pcg64(rng):
        draw_from_pcg64(rng, draws.draw_resampled, image.reshape(-1), table, out.reshape(-1))
    else:
        bits = random_bits(rng, image.size, "<u4")
        draws.resample(image.reshape(-1), table, bits, np.empty(image.size, np.uint32), out.reshape(-1))
    return out


# --- normal deviates bit-identical to those of NumPy's default generator, in half the time ---------

# NumPy uses the ziggurat of Marsaglia and Tsang (2000): 256 strips of equal area under the density. The
# tables were read from NumPy by feeding it chosen words (scripts/read_ziggurat.py), so that the deviates do
# not depend on its release; own exponentials and logarithms make them independent of the processor.

ZigguratTables = tuple[Doubles, npt.NDArray[np.int64], Doubles]


def normal(rng: Rng, mean: float, deviation: float, shape: tuple[int, ...]) -> Doubles:
    """Return ``rng.normal(mean, deviation, shape)``; twice as fast for a PCG64."""
    if not draws_from_pcg64(rng):
        return np.asarray(rng.normal(mean, deviation, shape))
    out = np.empty(shape)
    draw_from_pcg64(
        rng, draws.draw_normal, *_read_normal_tables(), float(mean), float(deviation), out.reshape(-1)
    )
    return out


@lru_cache(maxsize=1)
def _read_normal_tables() -> ZigguratTables:
    """Return the width / 2**52, the smallest size outside the core, and the density of each strip."""
    widths, limits = np.load(Path(__file__).with_name("ziggurat.npy"))
    edges = widths.view(np.float64) * 2.0**52
    edges[0] = 0
    return widths.view(np.float64), limits, exact.gaussian_at(edges, 1.0)


# --- Dirichlet and Beta weights, equal to those of NumPy's default generator -----------------------

# NumPy uses exponentials, logarithms and powers of the C library, whose last bit depends on the processor;
# here they are correctly rounded. Exponential deviates use a ziggurat (Marsaglia and Tsang 2000), Gamma
# deviates Ahrens and Dieter (1974) below a shape of 1 and Marsaglia and Tsang (2000) above, and Beta deviates
# Johnk (1964) if neither shape is above 1.

# Below this concentration, all Gamma deviates could be 0, so NumPy breaks a stick with Beta deviates.
_SMALL = 0.1


def dirichlet(rng: Rng, concentration: float, count: int) -> Doubles:
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
    widths, limits, heights = _read_exponential_tables()
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
def _read_exponential_tables() -> tuple[list[float], list[int], list[float]]:
    """Return the width / 2**53, the smallest size outside the core, and the density of each strip."""
    widths, limits = np.load(Path(__file__).with_name("exponential_ziggurat.npy"))
    edges = widths.view(np.float64) * 2.0**53
    edges[0] = 0
    return widths.view(np.float64).tolist(), limits.tolist(), [float(exact.exp(-edge)) for edge in edges]


def _power(base: float, exponent: float) -> float:
    return float(exact.power(base, exponent)) if base > 0 else 0.0
