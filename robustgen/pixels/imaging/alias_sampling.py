"""Noise drawn from a table: Walker's alias method over the 256 values of a pixel.

Independent noise turns a pixel value v into a random value w whose distribution
depends on v alone. Instead of drawing and truncating a normal or Poisson deviate
per value, this module tabulates the probability of every w for each v, and one
32-bit draw selects w: Walker's alias method, exact to 2**-32 per value.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import draws as kernels
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import draw_from_pcg64, draws_from_pcg64

Chances = npt.NDArray[np.float64]
AliasTable = npt.NDArray[np.uint32]

# Below this count, NumPy's draws are faster than copying the generator's state twice.
_MOST_BY_NUMPY = 4096

# Looking up these objects is ten times as fast as parsing their names.
_WORDS = {name: np.dtype(name) for name in ("<u1", "<u4", "<u8")}

_OF_64_BITS = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)


def from_cumulative(cumulative: npt.NDArray[np.float64]) -> Chances:
    """Return probabilities (256, 256) of truncated values from P(255 x < w), w = 1 .. 255, (256, 255)."""
    edges = np.concatenate([np.zeros((256, 1)), cumulative, np.ones((256, 1))], axis=1)
    return np.maximum(np.diff(edges, axis=1), 0.0)


def alias_table(chances: Chances) -> AliasTable:
    """Return Walker's alias table of each row of `chances` (256, 256), packed for `kernels.resample`."""
    filling = chances / chances.sum(axis=1, keepdims=True) * chances.shape[1]
    table = np.empty(chances.shape, np.uint32)
    kernels.alias_rows(filling, table)
    return table


def random_bits(rng: np.random.Generator, count: int, dtype: str) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return `count` uniform words of the little-endian unsigned `dtype`, cut from 64-bit draws."""
    kind = _WORDS[dtype]
    words = (count * kind.itemsize + 7) // 8
    # `random_raw` gives the same words faster, but other generators (MT19937) may return only 32 bits.
    if type(rng.bit_generator) in _OF_64_BITS:
        draws = rng.bit_generator.random_raw(words)
    else:
        draws = rng.integers(0, 2**64 - 1, words, np.uint64, endpoint=True)
    return draws.astype(_WORDS["<u8"], copy=False).view(kind)[:count]


def resample(image: Rgb, table: AliasTable, rng: np.random.Generator) -> Rgb:
    """Draw a new value for each value of `image`, uint8 of any shape, from `table`."""
    out = np.empty(image.shape, np.uint8)
    if image.size > _MOST_BY_NUMPY and draws_from_pcg64(rng):
        draw_from_pcg64(rng, kernels.draw_resampled, image.reshape(-1), table, out.reshape(-1))
    else:
        bits = random_bits(rng, image.size, "<u4")
        kernels.resample(image.reshape(-1), table, bits, np.empty(image.size, np.uint32), out.reshape(-1))
    return out
