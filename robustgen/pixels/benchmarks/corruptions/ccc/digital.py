"""Digital corruptions of CCC."""

from dataclasses import dataclass

from robustgen.pixels.benchmarks.corruptions import digital as common
from robustgen.pixels.benchmarks.corruptions.ccc.family import varying
from robustgen.pixels.benchmarks.corruptions.digital import Contrast, ElasticTransform, Pixelate
from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.imaging.colour import channel_means
from robustgen.pixels.imaging.elastic import displace, jittered_affine, smooth_fields
from robustgen.pixels.imaging.jpeg import Libjpeg
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng

varying("digital", Contrast, 1, 0.4, 0.3, 0.2, 0.1, 0.05, random=False, shares=channel_means)(common.contrast)


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


varying("digital", Pixelate, 1, 0.6, 0.5, 0.4, 0.3, 0.25, random=False)(common.pixelate)


@dataclass(frozen=True)
class Jpeg:
    """Pillow's JPEG `quality`, rounded, by libjpeg-turbo, as in 2022, or with IJG libjpeg 9c's arithmetic."""

    quality: float = within(1, 100)
    library: Libjpeg = "turbo"


@varying("digital", Jpeg, 85, 25, 18, 15, 10, 7, random=False)
def jpeg(image: Rgb, parameters: Jpeg, rng: Rng) -> Rgb:
    """Compress once as a JPEG of low quality."""
    p = parameters
    return common.jpeg_compression(image, common.JpegCompression(round(p.quality), p.library), rng)
