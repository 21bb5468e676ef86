"""Turbulence: five octaves of gradient noise."""

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import turbulence as kernels
from robustgen.pixels.imaging.rng import Rng, integers

_TABLE = 256
_DRAWS = 2**31


def draw_turbulence(shape: tuple[int, int], cell: float, rng: Rng) -> npt.NDArray[np.float64]:
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
        kernels.add_turbulence(
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


def _draw_lattice(rng: Rng) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
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
