"""Random generators for operations."""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import draws as draws_loops

# Below this count, NumPy's draws are faster than copying the generator's state twice.
_FEWEST_DRAWS = 2048

Rng = np.random.Generator | np.random.RandomState


def integers(rng: Rng, low: Any, high: Any, size: tuple[int, ...] | None = None) -> Any:
    """Draw integers in [low, high) from either kind of generator; the bounds may be arrays."""
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


def uniform(rng: Rng, low: float, high: float, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return ``rng.uniform(low, high, shape)``; twice as fast for many draws of a PCG64."""
    if math.prod(shape) < _FEWEST_DRAWS or not draws_from_pcg64(rng):
        return np.asarray(rng.uniform(low, high, shape))
    out = np.empty(shape)
    draw_from_pcg64(rng, draws_loops.draw_uniform, float(low), float(high - low), out.reshape(-1))
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
        more, taken = draws_loops.keep_below(octets, bound, out[done:])
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
