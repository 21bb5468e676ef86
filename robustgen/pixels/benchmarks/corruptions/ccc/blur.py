"""Blur of CCC: radii, iterations and zooms interpolated between those of ImageNet-C."""

from dataclasses import dataclass

from robustgen.pixels.benchmarks.corruptions import blur as common
from robustgen.pixels.benchmarks.corruptions.blur import DefocusBlur, MotionBlur, ZoomBlur, Zooms
from robustgen.pixels.benchmarks.corruptions.ccc.family import varying
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng

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
