"""Digital: contrast, elastic transform, pixelate, JPEG, and the extra corruption saturate."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.benchmarks.registry import SCALES, corruption
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.colour import Hsv, channel_means, scale_about
from robustgen.pixels.imaging.geometry import resize_by_box
from robustgen.pixels.imaging.jpeg import Libjpeg, round_trip
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.warps import displace, jittered_affine, smooth_fields


@dataclass(frozen=True)
class Contrast:
    """Factor of the distance from the mean."""

    factor: float


@corruption(
    "digital",
    Contrast,
    {224: (0.4, 0.3, 0.2, 0.1, 0.05), 299: 224, 64: 224, 32: (0.75, 0.5, 0.4, 0.3, 0.15)},
    random=False,
    shares=channel_means,
)
def contrast(image: Rgb, parameters: Contrast, rng: Rng, means: npt.NDArray[np.float64]) -> Rgb:
    """Move every value towards the mean of its channel."""
    return scale_about(image, means, parameters.factor)


@dataclass(frozen=True)
class ElasticTransform:
    """Displacement by `alpha` times noise smoothed by `sigma`, after an affine map; all in pixels.

    The map's three anchor points are moved by up to `jitter` in each direction.
    """

    # Constants for large images are far above the published ones.
    alpha: float = within(0, 1e6)
    sigma: float = within(0, 1e6)
    jitter: float = within(0, 1e6)


def _elastic(unit_of_length: float, *rows: tuple[float, float, float]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(unit_of_length * value for value in row) for row in rows)


_ELASTIC_LARGE = ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02))


@corruption(
    "digital",
    ElasticTransform,
    {
        # 244 is the number in the scripts for a side of 224; so is 360 for 299.
        224: _elastic(244, *_ELASTIC_LARGE),
        299: _elastic(360, *_ELASTIC_LARGE),
        64: _elastic(
            64, (0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)
        ),
        32: _elastic(
            32, (0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)
        ),
    },
    displaces=True,
)
def elastic_transform(image: Rgb, parameters: ElasticTransform, rng: Rng) -> Rgb:
    """Stretch and contract small regions."""
    p = parameters
    x = jittered_affine(image, p.jitter, rng)
    return displace(x, *smooth_fields(image.shape[:2], p.alpha, p.sigma, rng))


@dataclass(frozen=True)
class Pixelate:
    """`fraction` of the side after shrinking."""

    fraction: float = within(0, 1)


@corruption(
    "digital",
    Pixelate,
    {
        224: (0.6, 0.5, 0.4, 0.3, 0.25),
        299: (0.5, 0.4, 0.3, 0.25, 0.2),
        64: (0.9, 0.8, 0.7, 0.6, 0.5),
        32: (0.95, 0.9, 0.85, 0.75, 0.65),
    },
    random=False,
    # The blocks of these fractions all have one size; those of other fractions do not.
    breaks={224: (1, 4), 64: (4,), 32: (1, 3)},
)
def pixelate(image: Rgb, parameters: Pixelate, rng: Rng) -> Rgb:
    """Shrink and enlarge, without smoothing."""
    height, width = image.shape[:2]
    columns, rows = int(width * parameters.fraction), int(height * parameters.fraction)
    if not columns or not rows:
        raise ArgumentError(f"pixelate: fraction {parameters.fraction:g} leaves none of {width} x {height}")
    small = resize_by_box(image, columns, rows)
    return resize_by_box(small, width, height)


@dataclass(frozen=True)
class JpegCompression:
    """Pillow's JPEG `quality`; the arithmetic of the IJG's libjpeg 9c, as published, or libjpeg-turbo's."""

    quality: int = within(1, 100)
    library: Libjpeg = "ijg"


@corruption(
    "digital",
    JpegCompression,
    {
        224: (25, 18, 15, 10, 7),
        299: (23, 16, 13, 8, 5),
        64: (65, 58, 50, 40, 25),
        32: (80, 65, 58, 50, 40),
    },
    random=False,
)
def jpeg_compression(image: Rgb, parameters: JpegCompression, rng: Rng) -> Rgb:
    """Compress once as a JPEG of low quality."""
    return round_trip(image, parameters.quality, library=parameters.library)


@dataclass(frozen=True)
class Saturate:
    """HSV saturation times `gain` plus `offset`."""

    gain: float
    offset: float


@corruption(
    "digital",
    Saturate,
    {
        224: ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
        299: 224,
        64: ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
        32: ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    },
    common=False,
    # Severities 1 and 2 reduce the saturation, all others increase it.
    breaks=dict.fromkeys(SCALES, (2,)),
    random=False,
    shares=Hsv,
)
def saturate(image: Rgb, parameters: Saturate, rng: Rng, hsv: Hsv) -> Rgb:
    """Change the HSV saturation."""
    return hsv.change(parameters.gain, parameters.offset)
