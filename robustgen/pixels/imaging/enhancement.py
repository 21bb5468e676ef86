"""Brightness, contrast and gamma by tables, as Pillow and torchvision compute them."""

import numpy as np

from robustgen.pixels.imaging.colour import apply_table
from robustgen.pixels.imaging.decode import as_grey
from robustgen.pixels.imaging.kernels import exact
from robustgen.pixels.imaging.pixels import Rgb


def mean_grey(image: Rgb) -> int:
    """Return the mean luma of `image`, rounded half up."""
    luma = as_grey(image)
    return int(int(luma.sum()) / luma.size + 0.5)


def blend_with(grey: int, image: Rgb, factor: float) -> Rgb:
    """Return `grey` plus `factor` times the difference of each value of `image` from it, truncated.

    Equals Pillow's ``ImageEnhance.Contrast`` with the mean grey, and ``Brightness`` with 0.
    """
    distances = np.arange(256, dtype=np.float32) - np.float32(grey)
    values = np.float32(grey) + np.float32(factor) * distances
    return _look_up(image, np.clip(values, 0, 255).astype(np.uint8))


def bend_gamma(image: Rgb, gamma: float) -> Rgb:
    """Raise the values of `image`, scaled to [0, 1], to the power `gamma`, and truncate."""
    powers = [0.0**gamma, *(exact.power(value / 255, float(gamma)) for value in range(1, 256))]
    return _look_up(image, np.array([int(255.999 * power) for power in powers], np.uint8))


def _look_up(image: Rgb, table: Rgb) -> Rgb:
    return apply_table(image, np.repeat(table[:, None], 3, axis=1))
