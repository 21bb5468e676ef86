"""Saturation, value and tables of colours."""

import numpy as np
import numpy.typing as npt

from robustgen.imaging import kernels
from robustgen.imaging.arrays import UNITS
from robustgen.imaging.pixels import Rgb


def change_hsv(
    image: Rgb, saturation_gain: float = 1.0, saturation_offset: float = 0.0, value_offset: float = 0.0
) -> Rgb:
    """Change HSV saturation (times gain plus offset) and value (plus offset), each clipped to [0, 1]."""
    out = np.empty_like(image)
    changes = float(saturation_gain), float(saturation_offset), float(value_offset)
    kernels.change_hsv(image.reshape(-1, 3), UNITS, *changes, out.reshape(-1, 3))
    return out


def channel_means(image: Rgb) -> npt.NDArray[np.float64]:
    """Mean of each channel of `image` in [0, 1], float64 (3,): ``np.mean`` to the last bit."""
    sums = np.empty(3)
    kernels.channel_sums(image.reshape(-1, 3), UNITS, sums)
    return sums / (image.size // 3)


def apply_table(image: Rgb, table: Rgb) -> Rgb:
    """Replace each value of channel c by its entry in column c of `table`, uint8 (256, 3)."""
    out = np.empty_like(image)
    kernels.look_up(image.reshape(-1, 3), table, out.reshape(-1, 3))
    return out
