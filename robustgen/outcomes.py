"""Noise as a draw from 256 outcomes.

Independent noise turns a pixel value v into a random value w whose distribution
depends on v alone. So instead of drawing a normal or Poisson deviate per value
and rounding it off, the chance of every w is written down once per v, and one
32-bit draw picks among them: Walker's alias method, exact to 2**-32 per outcome.
"""

import numpy as np
import numpy.typing as npt

from robustgen import kernels
from robustgen.image import Rgb

Chances = npt.NDArray[np.float64]
AliasTable = npt.NDArray[np.uint32]

_CHANCE_BITS = 24


def from_cumulative(cumulative: npt.NDArray[np.float64]) -> Chances:
    """Chances (256, 256) of the truncated values from P(255 x < w) at w = 1 .. 255, shape (256, 255)."""
    edges = np.concatenate([np.zeros((256, 1)), cumulative, np.ones((256, 1))], axis=1)
    return np.maximum(np.diff(edges, axis=1), 0.0)


def alias_table(chances: Chances) -> AliasTable:
    """Walker's alias table of each row of `chances` (256, 256), packed as `kernels.resample` reads it."""
    return np.stack([_alias_row(row) for row in chances])


def _alias_row(chances: npt.NDArray[np.float64]) -> AliasTable:
    filling = chances / chances.sum() * chances.size
    stay, alias = np.ones(chances.size), np.arange(chances.size)
    poor = [i for i in range(chances.size) if filling[i] < 1]
    rich = [i for i in range(chances.size) if filling[i] >= 1]
    while poor and rich:
        taker, giver = poor.pop(), rich[-1]
        stay[taker], alias[taker] = filling[taker], giver
        filling[giver] -= 1 - filling[taker]
        if filling[giver] < 1:
            poor.append(rich.pop())
    # A full column names itself as its alias, so its last 2**-24 of chance stays at home too.
    threshold = np.minimum(np.rint(stay * (1 << _CHANCE_BITS)), (1 << _CHANCE_BITS) - 1)
    return (threshold.astype(np.uint32) << np.uint32(8)) | alias.astype(np.uint32)


def resample(image: Rgb, table: AliasTable, rng: np.random.Generator) -> Rgb:
    """Draw a new value for each value of `image`, uint8 of any shape, from `table`."""
    bits = rng.integers(0, 2**64, (image.size + 1) // 2, dtype=np.uint64).astype("<u8").view("<u4")
    out = np.empty(image.shape, np.uint8)
    kernels.resample(image.reshape(-1), table, bits, out.reshape(-1))
    return out
