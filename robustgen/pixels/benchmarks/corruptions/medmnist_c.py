"""The corruptions of MedMNIST-C, with constants for each of twelve sets of medical images.

Definitions: Di Salvo, Doerrich and Ledig 2024, as the published generation code computes them. The edition
is the name of the set: ``edition="pathmnist"``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from robustgen.pixels.benchmarks.corruptions import blur as common
from robustgen.pixels.benchmarks.corruptions import digital, noise
from robustgen.pixels.benchmarks.corruptions.blur import DefocusBlur, MotionBlur, ZoomBlur, Zooms
from robustgen.pixels.benchmarks.corruptions.digital import JpegCompression, Pixelate
from robustgen.pixels.benchmarks.corruptions.noise import ImpulseNoise, Noise, ShotNoise
from robustgen.pixels.benchmarks.ingredients import InstalledFiles
from robustgen.pixels.benchmarks.registry import BALANCED_ERRORS, MEDMNIST, Family, Function, corruption
from robustgen.pixels.imaging import specimen
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.blur import blur_by_taps, filter_with_disk
from robustgen.pixels.imaging.colour import Hsv, bend_gamma, blend_with, mean_grey
from robustgen.pixels.imaging.rng import Rng, python_draws

# --- the family MedMNIST-C, and the order of its sets ----------------------------------------------

MEDMNIST_C = Family(
    "medmnist-c",
    "MedMNIST-C",
    "Francesco Di Salvo, Sebastian Doerrich and Christian Ledig: MedMNIST-C: Comprehensive Benchmark and "
    "Improved Classifier Robustness by Simulating Realistic Image Corruptions. arXiv:2406.17536, 2024.",
    licence="Apache-2.0",
    measure=BALANCED_ERRORS,
)
"""The corruptions of the twelve sets; a set has those with constants for it."""
_LIKE = {"pneumoniamnist": "chestmnist", "organcmnist": "organamnist", "organsmnist": "organamnist"}


def _drawn(
    category: str, parameters: type, table: dict[str, Any], **more: Any
) -> Callable[[Function], Function]:
    """Register a corruption; a set that its table lacks may have the constants of another one."""
    like = {name: other for name, other in _LIKE.items() if other in table and name not in table}
    return corruption(category, parameters, {**table, **like}, family=MEDMNIST_C, **more)


_fixed = partial(_drawn, random=False)


# --- blur of MedMNIST-C ----------------------------------------------------------------------------


@_fixed(
    "blur",
    DefocusBlur,
    {
        "pathmnist": ((3, 0.1), (4, 0.1), (5, 0.2), (6, 0.2), (7, 0.3)),
        "bloodmnist": ((2, 0.01), (3, 0.1), (4, 0.1), (5, 0.1), (6, 0.1)),
        "dermamnist": ((4, 0.1), (5, 0.2), (6, 0.3), (7, 0.4), (8, 0.5)),
        "retinamnist": ((4, 0.1), (5, 0.2), (6, 0.3), (7, 0.4), (8, 0.5)),
        "octmnist": ((0.5, 0.6), (1, 0.5), (1.5, 0.1), (2, 0.5), (2.5, 0.1)),
    },
)
def defocus_blur(image: Rgb, parameters: DefocusBlur, rng: Rng) -> Rgb:
    """Blur out of focus, with the disk as OpenCV 5 rounds it."""
    return filter_with_disk(image, parameters.radius, parameters.alias_blur, fused=True)


_drawn(
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
)(common.motion_blur)

_zooms = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))
_fixed("blur", ZoomBlur, {"dermamnist": _zooms}, shares=Zooms)(common.zoom_blur)


@dataclass(frozen=True)
class TapBlur:
    """Number of `taps` of the Gaussian kernel, an odd number, which decides its standard deviation."""

    taps: int


@_fixed(
    "blur",
    TapBlur,
    {
        "tissuemnist": (13, 15, 17, 21, 25),
        "chestmnist": (3, 5, 7, 9, 11),
        "organamnist": (11, 13, 15, 17, 21),
    },
    # There is no kernel between two odd numbers of taps.
    breaks=dict.fromkeys(MEDMNIST, (1, 2, 3, 4)),
)
def gaussian_blur(image: Rgb, parameters: TapBlur, rng: Rng) -> Rgb:
    """Blur with a Gaussian of a number of taps."""
    return blur_by_taps(image, parameters.taps)


# --- light and colour of MedMNIST-C ----------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """The `factor` for distances from black, or from the mean grey."""

    factor: float


@_fixed(
    "weather",
    Factor,
    {
        "pathmnist": (1.1, 1.15, 1.2, 1.22, 1.25),
        "bloodmnist": (1.1, 1.2, 1.3, 1.35, 1.4),
        "dermamnist": (1.1, 1.2, 1.3, 1.4, 1.5),
        "tissuemnist": (1.3, 1.4, 1.5, 1.6, 1.7),
        "breastmnist": (1.4, 1.5, 1.6, 1.8, 2.0),
        "chestmnist": (1.1, 1.2, 1.3, 1.4, 1.5),
        "organamnist": (1.2, 1.3, 1.4, 1.5, 1.6),
    },
)
def brightness_up(image: Rgb, parameters: Factor, rng: Rng) -> Rgb:
    """Multiply all values by a factor above 1."""
    return blend_with(0, image, parameters.factor)


@_fixed(
    "weather",
    Factor,
    {
        "pathmnist": (0.85, 0.8, 0.75, 0.72, 0.7),
        "bloodmnist": (0.9, 0.8, 0.7, 0.6, 0.5),
        "dermamnist": (0.9, 0.8, 0.7, 0.6, 0.5),
        "retinamnist": (0.9, 0.8, 0.7, 0.6, 0.5),
        "tissuemnist": (0.8, 0.7, 0.6, 0.5, 0.4),
        "breastmnist": (0.55, 0.5, 0.45, 0.4, 0.3),
        "chestmnist": (0.9, 0.8, 0.7, 0.6, 0.5),
        "organamnist": (0.8, 0.75, 0.7, 0.65, 0.6),
    },
)
def brightness_down(image: Rgb, parameters: Factor, rng: Rng) -> Rgb:
    """Multiply all values by a factor below 1."""
    return blend_with(0, image, parameters.factor)


@_fixed(
    "digital",
    Factor,
    {
        "pathmnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "bloodmnist": (1.1, 1.15, 1.2, 1.25, 1.3),
        "dermamnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "tissuemnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "chestmnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "organamnist": (1.3, 1.4, 1.6, 1.7, 1.8),
    },
    shares=mean_grey,
)
def contrast_up(image: Rgb, parameters: Factor, rng: Rng, grey: int) -> Rgb:
    """Move all values away from the mean grey."""
    return blend_with(grey, image, parameters.factor)


@_fixed(
    "digital",
    Factor,
    {
        "pathmnist": (0.8, 0.7, 0.6, 0.55, 0.5),
        "bloodmnist": (0.9, 0.8, 0.7, 0.6, 0.5),
        "dermamnist": (0.8, 0.7, 0.6, 0.5, 0.4),
        "retinamnist": (0.9, 0.8, 0.7, 0.6, 0.4),
        "tissuemnist": (0.9, 0.8, 0.7, 0.6, 0.4),
        "octmnist": (0.6, 0.4, 0.3, 0.2, 0.15),
        "breastmnist": (0.9, 0.8, 0.7, 0.6, 0.4),
        "chestmnist": (0.9, 0.8, 0.7, 0.6, 0.4),
        "organamnist": (0.8, 0.7, 0.6, 0.55, 0.5),
    },
    shares=mean_grey,
)
def contrast_down(image: Rgb, parameters: Factor, rng: Rng, grey: int) -> Rgb:
    """Move all values towards the mean grey."""
    return blend_with(grey, image, parameters.factor)


@dataclass(frozen=True)
class Gamma:
    """The exponent `gamma` for values from 0 to 1."""

    gamma: float


@_fixed(
    "digital",
    Gamma,
    {
        "chestmnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "organamnist": (1.3, 1.4, 1.6, 1.8, 2.0),
    },
)
def gamma_corr_up(image: Rgb, parameters: Gamma, rng: Rng) -> Rgb:
    """Darken the middle tones by a power above 1."""
    return bend_gamma(image, parameters.gamma)


@_fixed(
    "digital",
    Gamma,
    {
        "chestmnist": (0.9, 0.8, 0.7, 0.6, 0.4),
        "organamnist": (0.9, 0.8, 0.7, 0.6, 0.4),
    },
)
def gamma_corr_down(image: Rgb, parameters: Gamma, rng: Rng) -> Rgb:
    """Lighten the middle tones by a power below 1."""
    return bend_gamma(image, parameters.gamma)


@dataclass(frozen=True)
class Saturation:
    """The number `added` to the HSV saturation."""

    added: float


@_fixed(
    "digital",
    Saturation,
    {
        "pathmnist": (0.05, 0.10, 0.15, 0.20, 0.25),
        "bloodmnist": (0.05, 0.10, 0.15, 0.17, 0.20),
    },
    shares=Hsv,
)
def saturate(image: Rgb, parameters: Saturation, rng: Rng, hsv: Hsv) -> Rgb:
    """Raise the HSV saturation."""
    return hsv.change(saturation_offset=parameters.added)


# --- digital corruptions of MedMNIST-C: those of ImageNet-C, with other constants ------------------

_fixed(
    "digital",
    Pixelate,
    {
        "pathmnist": (0.8, 0.6, 0.4, 0.3, 0.25),
        "bloodmnist": (0.6, 0.5, 0.4, 0.3, 0.25),
        "dermamnist": (0.7, 0.5, 0.4, 0.3, 0.25),
        "retinamnist": (0.8, 0.6, 0.5, 0.4, 0.35),
        "tissuemnist": (0.40, 0.30, 0.20, 0.15, 0.10),
        "octmnist": (0.30, 0.25, 0.20, 0.15, 0.10),
        "breastmnist": (0.30, 0.25, 0.20, 0.15, 0.10),
        "chestmnist": (0.30, 0.25, 0.20, 0.15, 0.10),
        "pneumoniamnist": (0.8, 0.7, 0.6, 0.5, 0.4),
        "organamnist": (0.7, 0.6, 0.5, 0.40, 0.35),
    },
)(digital.pixelate)


# Pillow had libjpeg-turbo when the sets were published.
_QUALITIES = {
    **dict.fromkeys(
        ("pathmnist", "bloodmnist", "breastmnist", "chestmnist", "organamnist"), (50, 30, 15, 10, 7)
    ),
    "dermamnist": (30, 20, 15, 10, 7),
    "retinamnist": (30, 25, 20, 10, 5),
    "tissuemnist": (25, 20, 15, 10, 7),
    "octmnist": (30, 15, 10, 7, 5),
}
_by_turbo = {name: [(quality, "turbo") for quality in row] for name, row in _QUALITIES.items()}
_fixed("digital", JpegCompression, _by_turbo)(digital.jpeg_compression)


# --- artefacts of microscopy and of skin photographs -----------------------------------------------


@dataclass(frozen=True)
class Stains:
    """Highest number of `stains`, and the `size` of their masks: 1 to 5, for 12 to 42 pixels."""

    stains: int
    size: int


class InkMasks(InstalledFiles):
    """The masks of ink."""

    name = "ink"
    sentence = "the published masks of ink, in a folder"
    licence = "Blots of ink have the shapes of the masks in the package medmnistc."

    def check(self, folder: str | None, parameters: Stains) -> None:
        """Read the masks of one size."""
        specimen.read_masks(parameters.size, folder)


INK = InkMasks()


@_drawn(
    "digital",
    Stains,
    {
        "pathmnist": ((1, 3), (2, 3), (3, 3), (4, 3), (5, 4)),
        "bloodmnist": ((1, 3), (2, 3), (3, 3), (3, 3), (3, 4)),
    },
    needs=INK,
)
def stain_deposit(image: Rgb, parameters: Stains, rng: Rng, folder: str | None) -> Rgb:
    """Add black blots of ink."""
    masks = specimen.read_masks(parameters.size, folder)
    with python_draws(rng) as draws:
        return specimen.blot(image, masks, parameters.stains, draws)


@dataclass(frozen=True)
class Bubbles:
    """Largest `radius` in pixels, and highest number of `bubbles`."""

    radius: int
    bubbles: int


@_drawn(
    "digital",
    Bubbles,
    {
        "pathmnist": ((7, 15), (10, 15), (12, 15), (15, 20), (17, 25)),
        "bloodmnist": ((5, 10), (7, 10), (10, 10), (12, 12), (15, 12)),
    },
)
def bubble(image: Rgb, parameters: Bubbles, rng: Rng) -> Rgb:
    """Add transparent air bubbles."""
    with python_draws(rng) as draws:
        return specimen.add_bubbles(image, parameters.radius, parameters.bubbles, draws)


@dataclass(frozen=True)
class Corners:
    """Radius of the visible disk, as a `share` of half the shorter side."""

    share: float


@_fixed("digital", Corners, {"dermamnist": (1.10, 1.05, 1.00, 0.90, 0.95)})
def black_corner(image: Rgb, parameters: Corners, rng: Rng) -> Rgb:
    """Blacken everything outside a disk, as a dermatoscope does."""
    return specimen.keep_disk(image, parameters.share)


@dataclass(frozen=True)
class Characters:
    """Highest number of `words`, highest number of `letters` in each, and their largest `size`."""

    words: int
    letters: int
    size: float


@_drawn(
    "digital",
    Characters,
    {"dermamnist": ((1, 6, 0.14), (2, 7, 0.15), (3, 8, 0.16), (4, 9, 0.17), (6, 10, 0.18))},
)
def characters(image: Rgb, parameters: Characters, rng: Rng) -> Rgb:
    """Write random letters over the image."""
    p = parameters
    with python_draws(rng) as draws:
        return specimen.write_letters(image, p.words, p.letters, p.size, draws)


# --- noise of MedMNIST-C: that of ImageNet-C, with other constants ---------------------------------

_drawn(
    "noise",
    Noise,
    {
        "dermamnist": (0.04, 0.08, 0.12, 0.18, 0.26),
        "retinamnist": (0.04, 0.08, 0.12, 0.16, 0.20),
        "chestmnist": (0.04, 0.08, 0.12, 0.18, 0.26),
        "pneumoniamnist": (0.04, 0.05, 0.06, 0.07, 0.08),
        "organamnist": (0.04, 0.08, 0.12, 0.16, 0.20),
    },
)(noise.gaussian_noise)

_drawn(
    "noise",
    Noise,
    {
        "dermamnist": (0.05, 0.15, 0.2, 0.35, 0.45),
        "retinamnist": (0.10, 0.15, 0.20, 0.25, 0.30),
        "octmnist": (0.15, 0.30, 0.40, 0.50, 0.60),
        "breastmnist": (0.10, 0.15, 0.20, 0.25, 0.30),
        "chestmnist": (0.05, 0.15, 0.2, 0.35, 0.45),
        "pneumoniamnist": (0.05, 0.07, 0.10, 0.15, 0.20),
        "organamnist": (0.05, 0.10, 0.20, 0.30, 0.40),
    },
)(noise.speckle_noise)

_drawn(
    "noise",
    ImpulseNoise,
    {
        "dermamnist": (0.01, 0.03, 0.06, 0.09, 0.17),
        "tissuemnist": (0.01, 0.015, 0.02, 0.025, 0.03),
        "chestmnist": (0.01, 0.03, 0.06, 0.09, 0.17),
        "pneumoniamnist": (0.005, 0.01, 0.013, 0.017, 0.02),
        "organamnist": (0.01, 0.02, 0.03, 0.05, 0.08),
    },
)(noise.impulse_noise)

_drawn(
    "noise",
    ShotNoise,
    {
        "dermamnist": (60, 25, 18, 10, 5),
        "chestmnist": (60, 25, 18, 10, 5),
        "pneumoniamnist": (300, 200, 150, 100, 80),
        "organamnist": (200, 100, 50, 25, 15),
    },
)(noise.shot_noise)


FAMILY = MEDMNIST_C
