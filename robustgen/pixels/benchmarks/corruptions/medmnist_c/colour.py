"""Light and colour of MedMNIST-C."""

from dataclasses import dataclass

from robustgen.pixels.benchmarks.corruptions.medmnist_c.family import LIKE_ORGANAMNIST, MEDMNIST_C
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging.colour import Hsv
from robustgen.pixels.imaging.enhancement import bend_gamma, blend_with, mean_grey
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng


@dataclass(frozen=True)
class Factor:
    """The `factor` for distances from black, or from the mean grey."""

    factor: float


@corruption(
    "weather",
    Factor,
    {
        "pathmnist": (1.1, 1.15, 1.2, 1.22, 1.25),
        "bloodmnist": (1.1, 1.2, 1.3, 1.35, 1.4),
        "dermamnist": (1.1, 1.2, 1.3, 1.4, 1.5),
        "tissuemnist": (1.3, 1.4, 1.5, 1.6, 1.7),
        "breastmnist": (1.4, 1.5, 1.6, 1.8, 2.0),
        "chestmnist": (1.1, 1.2, 1.3, 1.4, 1.5),
        "pneumoniamnist": (1.1, 1.2, 1.3, 1.4, 1.5),
        "organamnist": (1.2, 1.3, 1.4, 1.5, 1.6),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
    random=False,
)
def brightness_up(image: Rgb, parameters: Factor, rng: Rng) -> Rgb:
    """Multiply all values by a factor above 1."""
    return blend_with(0, image, parameters.factor)


@corruption(
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
        "pneumoniamnist": (0.9, 0.8, 0.7, 0.6, 0.5),
        "organamnist": (0.8, 0.75, 0.7, 0.65, 0.6),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
    random=False,
)
def brightness_down(image: Rgb, parameters: Factor, rng: Rng) -> Rgb:
    """Multiply all values by a factor below 1."""
    return blend_with(0, image, parameters.factor)


@corruption(
    "digital",
    Factor,
    {
        "pathmnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "bloodmnist": (1.1, 1.15, 1.2, 1.25, 1.3),
        "dermamnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "tissuemnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "chestmnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "pneumoniamnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "organamnist": (1.3, 1.4, 1.6, 1.7, 1.8),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
    random=False,
    shares=mean_grey,
)
def contrast_up(image: Rgb, parameters: Factor, rng: Rng, grey: int) -> Rgb:
    """Move all values away from the mean grey."""
    return blend_with(grey, image, parameters.factor)


@corruption(
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
        "pneumoniamnist": (0.9, 0.8, 0.7, 0.6, 0.4),
        "organamnist": (0.8, 0.7, 0.6, 0.55, 0.5),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
    random=False,
    shares=mean_grey,
)
def contrast_down(image: Rgb, parameters: Factor, rng: Rng, grey: int) -> Rgb:
    """Move all values towards the mean grey."""
    return blend_with(grey, image, parameters.factor)


@dataclass(frozen=True)
class Gamma:
    """The exponent `gamma` for values from 0 to 1."""

    gamma: float


@corruption(
    "digital",
    Gamma,
    {
        "chestmnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "pneumoniamnist": (1.1, 1.2, 1.3, 1.4, 1.6),
        "organamnist": (1.3, 1.4, 1.6, 1.8, 2.0),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
    random=False,
)
def gamma_corr_up(image: Rgb, parameters: Gamma, rng: Rng) -> Rgb:
    """Darken the middle tones by a power above 1."""
    return bend_gamma(image, parameters.gamma)


@corruption(
    "digital",
    Gamma,
    {
        "chestmnist": (0.9, 0.8, 0.7, 0.6, 0.4),
        "pneumoniamnist": (0.9, 0.8, 0.7, 0.6, 0.4),
        "organamnist": (0.9, 0.8, 0.7, 0.6, 0.4),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
    random=False,
)
def gamma_corr_down(image: Rgb, parameters: Gamma, rng: Rng) -> Rgb:
    """Lighten the middle tones by a power below 1."""
    return bend_gamma(image, parameters.gamma)


@dataclass(frozen=True)
class Saturation:
    """The number `added` to the HSV saturation."""

    added: float


@corruption(
    "digital",
    Saturation,
    {
        "pathmnist": (0.05, 0.10, 0.15, 0.20, 0.25),
        "bloodmnist": (0.05, 0.10, 0.15, 0.17, 0.20),
    },
    family=MEDMNIST_C,
    random=False,
    shares=Hsv,
)
def saturate(image: Rgb, parameters: Saturation, rng: Rng, hsv: Hsv) -> Rgb:
    """Raise the HSV saturation."""
    return hsv.change(saturation_offset=parameters.added)
