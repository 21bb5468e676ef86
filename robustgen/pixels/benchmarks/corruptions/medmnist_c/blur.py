"""Blur of MedMNIST-C: three of ImageNet-C with other constants, and a Gaussian with a number of taps."""

from dataclasses import dataclass

from robustgen.pixels.benchmarks.corruptions import blur as common
from robustgen.pixels.benchmarks.corruptions.blur import DefocusBlur, MotionBlur, ZoomBlur, Zooms
from robustgen.pixels.benchmarks.corruptions.medmnist_c.family import LIKE_ORGANAMNIST, MEDMNIST_C
from robustgen.pixels.benchmarks.registry import MEDMNIST, corruption
from robustgen.pixels.imaging.defocus import filter_with_disk
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.tap_blur import blur_by_taps


@corruption(
    "blur",
    DefocusBlur,
    {
        "pathmnist": ((3, 0.1), (4, 0.1), (5, 0.2), (6, 0.2), (7, 0.3)),
        "bloodmnist": ((2, 0.01), (3, 0.1), (4, 0.1), (5, 0.1), (6, 0.1)),
        "dermamnist": ((4, 0.1), (5, 0.2), (6, 0.3), (7, 0.4), (8, 0.5)),
        "retinamnist": ((4, 0.1), (5, 0.2), (6, 0.3), (7, 0.4), (8, 0.5)),
        "octmnist": ((0.5, 0.6), (1, 0.5), (1.5, 0.1), (2, 0.5), (2.5, 0.1)),
    },
    family=MEDMNIST_C,
    random=False,
)
def defocus_blur(image: Rgb, parameters: DefocusBlur, rng: Rng) -> Rgb:
    """Blur out of focus, with the disk as OpenCV 5 rounds it."""
    return filter_with_disk(image, parameters.radius, parameters.alias_blur, fused=True)


corruption(
    "blur",
    MotionBlur,
    {
        "pathmnist": ((5, 5), (10, 5), (15, 5), (15, 8), (15, 12)),
        "bloodmnist": ((3, 3), (5, 5), (10, 5), (10, 7), (10, 9)),
        "dermamnist": ((10, 5), (15, 5), (15, 8), (15, 12), (20, 15)),
        "retinamnist": ((8, 5), (15, 5), (15, 8), (15, 12), (20, 15)),
        "octmnist": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
        "breastmnist": ((5, 5), (9, 7), (9, 10), (13, 10), (17, 12)),
    },
    family=MEDMNIST_C,
)(common.motion_blur)

corruption(
    "blur",
    ZoomBlur,
    {
        "dermamnist": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    },
    family=MEDMNIST_C,
    random=False,
    shares=Zooms,
)(common.zoom_blur)


@dataclass(frozen=True)
class TapBlur:
    """Number of `taps` of the Gaussian kernel, an odd number, which decides its standard deviation."""

    taps: int


@corruption(
    "blur",
    TapBlur,
    {
        "tissuemnist": (13, 15, 17, 21, 25),
        "chestmnist": (3, 5, 7, 9, 11),
        "pneumoniamnist": (3, 5, 7, 9, 11),
        "organamnist": (11, 13, 15, 17, 21),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
    random=False,
    # There is no kernel between two odd numbers of taps.
    breaks=dict.fromkeys(MEDMNIST, (1, 2, 3, 4)),
)
def gaussian_blur(image: Rgb, parameters: TapBlur, rng: Rng) -> Rgb:
    """Blur with a Gaussian of a number of taps."""
    return blur_by_taps(image, parameters.taps)
