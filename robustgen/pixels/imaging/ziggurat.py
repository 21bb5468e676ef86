"""Normal deviates bit-identical to those of NumPy's default generator, in half the time.

NumPy uses the ziggurat of Marsaglia and Tsang (2000): 256 strips of equal area under the density. The tables
were read from NumPy by feeding it chosen words (scripts/read_ziggurat.py), so that the deviates do not depend
on its release; own exponentials and logarithms make them independent of the processor.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import draws as kernels
from robustgen.pixels.imaging.kernels import exact
from robustgen.pixels.imaging.rng import Rng, draw_from_pcg64, draws_from_pcg64

Tables = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]]


def normal(rng: Rng, mean: float, deviation: float, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return ``rng.normal(mean, deviation, shape)``; twice as fast for a PCG64."""
    if not draws_from_pcg64(rng):
        return np.asarray(rng.normal(mean, deviation, shape))
    out = np.empty(shape)
    draw_from_pcg64(rng, kernels.draw_normal, *_read_tables(), float(mean), float(deviation), out.reshape(-1))
    return out


@lru_cache(maxsize=1)
def _read_tables() -> Tables:
    """Return the width / 2**52, the smallest size outside the core, and the density of each strip."""
    widths, limits = np.load(Path(__file__).with_name("ziggurat.npy"))
    edges = widths.view(np.float64) * 2.0**52
    edges[0] = 0
    return widths.view(np.float64), limits, exact.gaussian_at(edges, 1.0)
