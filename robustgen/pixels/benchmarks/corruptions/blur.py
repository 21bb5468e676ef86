"""Blur: defocus, frosted glass, motion, zoom, and the extra corruption Gaussian blur."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging.arrays import Rgb, unit
from robustgen.pixels.imaging.blur import (
    average_zooms,
    blur_along_line,
    filter_with_disk,
    gaussian_bytes,
)
from robustgen.pixels.imaging.kernels import blur
from robustgen.pixels.imaging.rng import Rng, bytes_below, random_bits


@dataclass(frozen=True)
class DefocusBlur:
    """Disk of `radius` pixels, its edge smoothed by a Gaussian of `alias_blur` pixels."""

    radius: float = within(0, 500)
    alias_blur: float = within(0, 100)


@corruption(
    "blur",
    DefocusBlur,
    {
        224: ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
        299: ((4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)),
        64: ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        32: ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    },
    random=False,
    # From a smoothed pixel to a disk.
    breaks={64: (1,), 32: (3,)},
)
def defocus_blur(image: Rgb, parameters: DefocusBlur, rng: Rng) -> Rgb:
    """Blur with a disk, as an out-of-focus lens does."""
    return filter_with_disk(image, parameters.radius, parameters.alias_blur)


@dataclass(frozen=True)
class GlassBlur:
    """Gaussian `sigma` before and after `iterations` of moving pixels by up to `max_delta`."""

    sigma: float
    max_delta: int
    iterations: int = within(0, 100)


@corruption(
    "blur",
    GlassBlur,
    {
        224: ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        299: ((0.8, 1, 3), (1, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
        64: ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        32: ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    },
    # From many short moves to few long ones.
    breaks={299: (1,)},
)
def glass_blur(image: Rgb, parameters: GlassBlur, rng: Rng) -> Rgb:
    """Look through frosted glass: replace pixels by random neighbours."""
    reach, iterations = parameters.max_delta, parameters.iterations
    visits = (image.shape[0] - 2 * reach) * (image.shape[1] - 2 * reach) * iterations
    moves = _moves(reach, visits, rng)
    shuffled = gaussian_bytes(image, parameters.sigma)
    blur.glass_shuffle(shuffled, moves, reach, iterations)
    return gaussian_bytes(shuffled, parameters.sigma)


def _moves(reach: int, visits: int, rng: Rng) -> npt.NDArray[np.integer[Any]]:
    """Return the origin of each visited pixel, in the encoding of `kernels.glass_shuffle`."""
    if isinstance(rng, np.random.Generator):
        moves = 4 * reach * reach
        if moves <= 256 and moves & (moves - 1) == 0:
            return random_bits(rng, visits, "<u1") & np.uint8(moves - 1)
        return bytes_below(rng, moves, visits) if moves <= 256 else rng.integers(0, moves, visits, np.uint32)
    pairs = rng.randint(-reach, reach, (visits, 2)) + reach
    return np.asarray(pairs[:, 0] * 2 * reach + pairs[:, 1])


@dataclass(frozen=True)
class MotionBlur:
    """Trail of 2 ceil(`radius`) + 1 pixels, weighted by a Gaussian of `sigma` pixels."""

    radius: float
    sigma: float


@corruption(
    "blur",
    MotionBlur,
    {
        224: ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
        299: ((12, 4), (17, 6), (17, 9), (17, 13), (22, 16)),
        64: ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        32: ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    },
)
def motion_blur(image: Rgb, parameters: MotionBlur, rng: Rng) -> Rgb:
    """Move the camera in a straight line within 45 degrees of the horizontal."""
    angle = rng.uniform(-45, 45)
    return blur_along_line(image, parameters.radius, parameters.sigma, angle)


class Zooms:
    """Zooms of one image and their sum; a severity with the same step continues the previous sum."""

    def __init__(self, image: Rgb) -> None:
        self._image = unit(image, np.float32)
        self._total = np.empty_like(self._image)
        self._step, self._added = 0.0, 0

    def average(self, factors: list[float], step: float, black_outside: bool = False) -> Rgb:
        """Return the mean of the image and its zooms by `factors`, with equal steps of `step`.

        `black_outside` as in `average_zooms`, the same in every call.
        """
        added = self._added if step == self._step and self._added <= len(factors) else 0
        # An incomplete sum must not be reused.
        self._added = 0
        averaged = average_zooms(self._image, factors, self._total, added, black_outside)
        self._step, self._added = step, len(factors)
        return averaged


@dataclass(frozen=True)
class ZoomBlur:
    """Zoom factors from 1 to `stop`, in steps of `step`."""

    stop: float = within(1, 100)
    step: float = within(0.001, 100)


@corruption(
    "blur",
    ZoomBlur,
    {
        224: ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
        299: 224,
        64: ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        32: 64,
    },
    random=False,
    shares=Zooms,
    # The crops of the first few zooms differ by less than a pixel.
    breaks={32: (1,)},
)
def zoom_blur(image: Rgb, parameters: ZoomBlur, rng: Rng, zooms: Zooms) -> Rgb:
    """Move the camera towards the scene: the mean of the image and its zooms."""
    return zooms.average(zoom_factors(parameters), parameters.step)


def zoom_factors(parameters: ZoomBlur) -> list[float]:
    """Return the values of ``numpy.arange(1, stop, step)``, without a fused multiply-add."""
    # Rounding includes the stop itself in some of these ranges; the published data have it.
    count = math.ceil((parameters.stop - 1) / parameters.step)
    step = (1 + parameters.step) - 1
    return [1 + i * step for i in range(count)]


@dataclass(frozen=True)
class GaussianBlur:
    """Standard deviation `sigma` in pixels."""

    sigma: float


@corruption(
    "blur",
    GaussianBlur,
    {
        224: (1, 2, 3, 4, 6),
        299: (1.5, 2.5, 3.5, 4.5, 6.5),
        64: (0.5, 0.75, 1, 1.25, 1.5),
        32: (0.4, 0.6, 0.7, 0.8, 1),
    },
    common=False,
    random=False,
)
def gaussian_blur(image: Rgb, parameters: GaussianBlur, rng: Rng) -> Rgb:
    """Blur with a Gaussian."""
    return gaussian_bytes(image, parameters.sigma)
