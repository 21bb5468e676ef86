"""Normal deviates as NumPy's default generator draws them, to the last bit, in half the time.

NumPy takes them by the ziggurat of Marsaglia and Tsang (2000): 256 strips of equal area under the density.
The tables of the strips are not written down here but read from NumPy, by showing it words of our choice.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.imaging.kernels import draws as kernels
from robustgen.imaging.rng import Rng, draw_from_pcg64, draws_from_pcg64

# Below this number NumPy has done before the state of its generator is copied to and fro.
_WORTHWHILE = 2048

_STRIPS = 256
# A word holds the strip, the sign and the size of the deviate, from its lowest bit on.
_SIZE_SHIFT, _SIZE_BITS = 9, 52
# What PCG64 multiplies its state by, and what undoes that.
_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645
_INVERSE = pow(_FACTOR, -1, 2**128)

Tables = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]]


def normal(rng: Rng, mean: float, deviation: float, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """What ``rng.normal(mean, deviation, shape)`` gives; many of them from a PCG64 in half the time."""
    if not draws_from_pcg64(rng) or math.prod(shape) < _WORTHWHILE or not agrees_with_numpy():
        return np.asarray(rng.normal(mean, deviation, shape))
    return draw_normal(rng, mean, deviation, shape)


def draw_normal(rng: Rng, mean: float, deviation: float, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """The same from any PCG64 that is NumPy's own, by our loop."""
    out = np.empty(shape)
    draw_from_pcg64(rng, kernels.draw_normal, *_read_tables(), float(mean), float(deviation), out.reshape(-1))
    return out


@lru_cache(maxsize=1)
def agrees_with_numpy() -> bool:
    """Whether NumPy still draws in the way that we know."""
    ours, its = np.random.default_rng(0), np.random.default_rng(0)
    return (
        np.array_equal(draw_normal(ours, 0, 1, (4096,)), its.normal(size=4096))
        and ours.random() == its.random()
    )


@lru_cache(maxsize=1)
def _read_tables() -> Tables:
    """Of each strip: width by 2**52, size from which a deviate is outside the core, density at the edge."""
    shown = _ShownGenerator()
    # So small a deviate is taken from any strip.
    widths = np.array([shown.draw(strip, 2**40) / 2**40 for strip in range(_STRIPS)])
    cores = np.roll(widths, 1) / widths
    # The outermost strip ends in the tail, the innermost has no core.
    cores[0], cores[1] = widths[-1] / widths[0], 0
    limits = np.array([shown.find_limit(strip, core) for strip, core in enumerate(cores)])
    edges = widths * 2.0**_SIZE_BITS
    edges[0] = 0
    return widths, limits, np.exp(-0.5 * edges * edges)


class _ShownGenerator:
    """NumPy's generator, whose next word is of our choice."""

    def __init__(self) -> None:
        self._generator = np.random.Generator(np.random.PCG64(0))
        self._held = dict(self._generator.bit_generator.state)

    def draw(self, strip: int, size: int) -> float:
        """The deviate that NumPy draws from a word of these parts."""
        self._word = size << _SIZE_SHIFT | strip
        # A state below 2**64 is the word that it gives.
        self._held["state"] = {"state": (self._word - 1) * _INVERSE % 2**128, "inc": 1}
        self._generator.bit_generator.state = self._held
        return self._generator.standard_normal()

    def find_limit(self, strip: int, core: float) -> int:
        """From which size on NumPy needs more than one word, which is about `core` times 2**52."""
        about = int(core * 2**_SIZE_BITS)
        for size in range(max(about - 2, 0), about + 2):
            self.draw(strip, size)
            if self._generator.bit_generator.state["state"]["state"] != self._word:
                return size
        return about
