"""The corruptions of CCC, Continuously Changing Corruptions: severities 0 to 5, in quarters.

Definitions: Press, Schneider, Kuemmerer and Bethge 2023, as the published generation code computes them. They
are those of ImageNet-C with constants interpolated linearly between severities; severity 0 changes nothing.
`robustgen.related.streams.ccc` creates sequences of pairs of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from robustgen.pixels.benchmarks.corruptions import blur as common
from robustgen.pixels.benchmarks.corruptions import digital, noise, weather
from robustgen.pixels.benchmarks.corruptions.blur import DefocusBlur, MotionBlur, ZoomBlur, Zooms
from robustgen.pixels.benchmarks.corruptions.digital import Contrast, ElasticTransform, Pixelate
from robustgen.pixels.benchmarks.corruptions.noise import ImpulseNoise, Noise, ShotNoise
from robustgen.pixels.benchmarks.corruptions.weather import FROST, Brightness, Fog, Frost, Snow
from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.benchmarks.registry import Family, corruption
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.colour import channel_means
from robustgen.pixels.imaging.jpeg import Libjpeg
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.warps import displace, jittered_affine, smooth_fields
from robustgen.pixels.imaging.weather_effects import luma_of

# --- the family CCC, and the registration of its corruptions ---------------------------------------

CCC = Family(
    "ccc",
    "CCC",
    "Ori Press, Steffen Schneider, Matthias Kuemmerer and Matthias Bethge: RDumb: A simple approach that "
    "questions our progress in continual test-time adaptation. Advances in Neural Information Processing "
    "Systems, 2023.",
    licence="MIT",
    severities=(0, 1, 2, 3, 4, 5),
    linear=True,
)
"""Fifteen corruptions; the published runs use fourteen."""

Function = Callable[..., Rgb]


def varying(category: str, parameters: type, *rows: Any, **flags: Any) -> Callable[[Function], Function]:
    """Register the decorated function with `rows` of constants for the severities 0 to 5.

    The function is not called for severity 0.
    """
    still = parameters(*rows[0]) if isinstance(rows[0], tuple) else parameters(rows[0])

    def register(function: Function) -> Function:
        @wraps(function)
        def corrupt(image: Rgb, own: Any, rng: Any, *shared: Any) -> Rgb:
            return image if own == still else function(image, own, rng, *shared)

        return corruption(category, parameters, {224: rows}, family=CCC, **flags)(corrupt)

    return register


# --- blur of CCC: radii, iterations and zooms interpolated between those of ImageNet-C -------------

varying("blur", DefocusBlur, (0, 0), (3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5), random=False)(
    common.defocus_blur
)


@dataclass(frozen=True)
class Glass:
    """Gaussian `sigma` before and after `iterations` of moving pixels by up to `delta`.

    The last two are rounded, halves to even, and `delta` is at least 1.
    """

    sigma: float
    delta: float
    iterations: float


@varying("blur", Glass, (0, 0, 0), (0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))
def glass_blur(image: Rgb, parameters: Glass, rng: Rng) -> Rgb:
    """Look through frosted glass: replace pixels by random neighbours."""
    p = parameters
    return common.glass_blur(
        image, common.GlassBlur(p.sigma, round(max(p.delta, 1)), round(p.iterations)), rng
    )


varying("blur", MotionBlur, (0, 0), (10, 3), (15, 5), (15, 8), (15, 12), (20, 15))(common.motion_blur)

varying(
    "blur",
    ZoomBlur,
    *((1, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    random=False,
    shares=Zooms,
)(common.zoom_blur)


# --- digital corruptions of CCC --------------------------------------------------------------------

varying("digital", Contrast, 1, 0.4, 0.3, 0.2, 0.1, 0.05, random=False, shares=channel_means)(
    digital.contrast
)


# Lengths are shares of 244, the number in the scripts for a side of 224; the first sigma is in pixels.
_ELASTIC = ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02))


@varying(
    "digital",
    ElasticTransform,
    (0, 999, 0),
    *(tuple(244 * share for share in row) for row in _ELASTIC),
    displaces=True,
)
def elastic(image: Rgb, parameters: ElasticTransform, rng: Rng) -> Rgb:
    """Stretch and contract small regions; SciPy of 2022 reflects borders in another way than that of 2018."""
    p = parameters
    x = jittered_affine(image, p.jitter, rng)
    return displace(x, *smooth_fields(image.shape[:2], p.alpha, p.sigma, rng), mended=True)


varying("digital", Pixelate, 1, 0.6, 0.5, 0.4, 0.3, 0.25, random=False)(digital.pixelate)


@dataclass(frozen=True)
class Jpeg:
    """Pillow's JPEG `quality`, rounded, by libjpeg-turbo, as in 2022, or with IJG libjpeg 9c's arithmetic."""

    quality: float = within(1, 100)
    library: Libjpeg = "turbo"


@varying("digital", Jpeg, 85, 25, 18, 15, 10, 7, random=False)
def jpeg(image: Rgb, parameters: Jpeg, rng: Rng) -> Rgb:
    """Compress once as a JPEG of low quality."""
    p = parameters
    return digital.jpeg_compression(image, digital.JpegCompression(round(p.quality), p.library), rng)


# --- noise of CCC ----------------------------------------------------------------------------------

varying("noise", Noise, 0, 0.08, 0.12, 0.18, 0.26, 0.38)(noise.gaussian_noise)


@dataclass(frozen=True)
class Grain:
    """The brightness of one `photon`, as a share of the full one."""

    photon: float


@varying("noise", Grain, 0, 1 / 60, 1 / 25, 1 / 12, 1 / 5, 1 / 3)
def shot_noise(image: Rgb, parameters: Grain, rng: Rng) -> Rgb:
    """Count photons: Poisson(x / photon) * photon."""
    return noise.shot_noise(image, ShotNoise(1 / parameters.photon), rng)


varying("noise", ImpulseNoise, 0, 0.03, 0.06, 0.09, 0.17, 0.27)(noise.impulse_noise)


# --- weather of CCC --------------------------------------------------------------------------------

varying(
    "weather",
    Snow,
    (0.1, 0.3, 3, 1, 10, 4, 1),
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    shares=luma_of,
)(weather.snow)

varying(
    "weather",
    Frost,
    *((1, 0), (1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    needs=FROST,
)(weather.frost)

varying("weather", Fog, (0, 2), (1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4))(weather.fog)

varying("weather", Brightness, 0, 0.1, 0.2, 0.3, 0.4, 0.5, random=False, common=False)(weather.brightness)


FAMILY = CCC
