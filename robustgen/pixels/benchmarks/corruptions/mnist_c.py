"""The fifteen corruptions of MNIST-C, each with one severity, for grey images of 28 x 28 pixels.

Definitions: Mu and Gilmer 2019, as the published generation code computes them. The categories are
robustgen's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.corruptions import noise as common
from robustgen.pixels.benchmarks.corruptions.blur import MotionBlur
from robustgen.pixels.benchmarks.corruptions.noise import ImpulseNoise, ShotNoise
from robustgen.pixels.benchmarks.corruptions.weather import Brightness, Fog, Spatter
from robustgen.pixels.benchmarks.registry import Family, corruption
from robustgen.pixels.imaging import mnist_c_effects
from robustgen.pixels.imaging.arrays import Rgb, to_uint8, unit
from robustgen.pixels.imaging.blur import blur_along_line, gaussian
from robustgen.pixels.imaging.mnist_c_effects import round_to_uint8, swap_pixels
from robustgen.pixels.imaging.rng import Rng, integers
from robustgen.pixels.imaging.weather_effects import draw_cover, draw_drops, draw_plasma

# --- the family MNIST-C, and the registration of its corruptions -----------------------------------

SIDE = 28

MNIST_C = Family(
    "mnist-c",
    "MNIST-C",
    "Norman Mu and Justin Gilmer: MNIST-C: A Robustness Benchmark for Computer Vision. "
    "arXiv:1906.02337, 2019.",
    licence="Apache-2.0",
    severities=(1,),
)
"""The fifteen corruptions of MNIST-C."""

Function = Callable[[Rgb, Any, Any], Rgb]


@dataclass(frozen=True)
class Fixed:
    """No constants."""


def digit(
    category: str, parameters: type = Fixed, constants: tuple[Any, ...] = (), **traits: Any
) -> Callable[[Function], Function]:
    """Register the decorated function, for images uint8 (28, 28), with its `constants`."""
    own = {"smallest_side": SIDE, "grey": True, **traits}

    def register(function: Function) -> Function:
        @wraps(function)
        def corrupt(image: Rgb, own: Any, rng: Any) -> Rgb:
            if image.shape != (SIDE, SIDE):
                size = f"{image.shape[1]} x {image.shape[0]}"
                raise ArgumentError(f"mnist-c needs images of {SIDE} x {SIDE} pixels, not {size}")
            return function(image, own, rng)

        return corruption(category, parameters, {"mnist": (constants,)}, family=MNIST_C, **own)(corrupt)

    return register


# --- noise, blur and weather of MNIST-C ------------------------------------------------------------

# Side of the plasma, whose upper left corner is used.
_PLASMA_SIDE = 256


@digit("digital", random=False, common=False)
def identity(image: Rgb, parameters: Fixed, rng: Rng) -> Rgb:
    """Return the image unchanged."""
    return image


@digit("noise", ShotNoise, (3,))
def shot_noise(image: Rgb, parameters: ShotNoise, rng: Rng) -> Rgb:
    """Count photons: Poisson(x * photons) / photons."""
    return common.shot_noise(image, parameters, rng)


@digit("noise", ImpulseNoise, (0.17,))
def impulse_noise(image: Rgb, parameters: ImpulseNoise, rng: Rng) -> Rgb:
    """Set pixels to 0 or 255 (salt and pepper)."""
    return common.impulse_noise(image, parameters, rng)


@dataclass(frozen=True)
class GlassBlur:
    """Gaussian `sigma` before and after `iterations` of swapping pixels with neighbours."""

    sigma: float
    iterations: int


@digit("blur", GlassBlur, (0.7, 2))
def glass_blur(image: Rgb, parameters: GlassBlur, rng: Rng) -> Rgb:
    """Look through frosted glass: swap pixels with random neighbours."""
    # The published code blurs down the columns only: scikit-image took the rows' axis for channels.
    sigma = parameters.sigma, 0.0
    smooth = to_uint8(gaussian(unit(image), sigma))
    return round_to_uint8(gaussian(unit(swap_pixels(smooth, parameters.iterations, rng)), sigma))


@digit("blur", MotionBlur, (10, 3))
def motion_blur(image: Rgb, parameters: MotionBlur, rng: Rng) -> Rgb:
    """Move the camera in a straight line within 45 degrees of the horizontal."""
    p = parameters
    return blur_along_line(image, p.radius, p.sigma, rng.uniform(-45, 45))


@digit("weather", Brightness, (0.5,), random=False)
def brightness(image: Rgb, parameters: Brightness, rng: Rng) -> Rgb:
    """Raise all values."""
    return round_to_uint8(unit(image) + parameters.added)


@digit("weather", Fog, (3, 1.4))
def fog(image: Rgb, parameters: Fog, rng: Rng) -> Rgb:
    """Add a plasma fractal and scale back to the image's original maximum."""
    field, lowest, span = draw_plasma(image.shape[:2], parameters.decay, rng, _PLASMA_SIDE)
    x, strength = unit(image), parameters.strength
    brightest = x.max()
    return round_to_uint8((x + strength * ((field - lowest) / span)) * brightest / (brightest + strength))


@digit("weather", Spatter, (0.65, 0.3, 1, 0.65, 1.5, 1))
def spatter(image: Rgb, parameters: Spatter, rng: Rng) -> Rgb:
    """Splash mud on the lens."""
    p = parameters
    layer = draw_drops(image.shape[:2], p.loc, p.scale, p.sigma, p.threshold, rng)
    cover = draw_cover(layer > p.threshold, p.strength, "float32")[:, :, 0]
    return round_to_uint8(unit(image, np.float32) * (1 - cover) + np.float32(63 / 255) * cover)


# --- affine maps of MNIST-C, with random signs -----------------------------------------------------


@dataclass(frozen=True)
class Angle:
    """An `angle` in radians."""

    angle: float


@digit("digital", Angle, (0.4,), displaces=True)
def shear(image: Rgb, parameters: Angle, rng: Rng) -> Rgb:
    """Shear to the left or to the right."""
    (sign,) = mnist_c_effects.draw_signs(1, rng)
    return mnist_c_effects.sample_about_centre(image, mnist_c_effects.shear(float(parameters.angle * sign)))


@dataclass(frozen=True)
class Zoom:
    """The `step`, in pixels of the image, between two pixels of the result."""

    step: float


@digit("digital", Zoom, (1 / 0.7,), random=False, displaces=True)
def scale(image: Rgb, parameters: Zoom, rng: Rng) -> Rgb:
    """Shrink the digit."""
    return mnist_c_effects.sample_about_centre(image, np.eye(2) * parameters.step)


@digit("digital", Angle, (0.4,), displaces=True)
def rotate(image: Rgb, parameters: Angle, rng: Rng) -> Rgb:
    """Rotate to the left or to the right."""
    (sign,) = mnist_c_effects.draw_signs(1, rng)
    return mnist_c_effects.sample_about_centre(
        image, mnist_c_effects.rotation(float(parameters.angle * sign))
    )


@dataclass(frozen=True)
class Shift:
    """Number of `pixels` in each direction."""

    pixels: int


@digit("digital", Shift, (3,), displaces=True)
def translate(image: Rgb, parameters: Shift, rng: Rng) -> Rgb:
    """Move into one of the four corners."""
    moves = mnist_c_effects.draw_signs(2, rng) * parameters.pixels
    return mnist_c_effects.sample_places(image, np.column_stack([np.eye(2), moves]))


# --- stripes, lines and edges of MNIST-C -----------------------------------------------------------


@digit("digital", random=False)
def stripe(image: Rgb, parameters: Fixed, rng: Rng) -> Rgb:
    """Invert the left and the right quarter."""
    out, quarter = image.copy(), SIDE // 4
    out[:, :quarter] = 255 - image[:, :quarter]
    out[:, -quarter:] = 255 - image[:, -quarter:]
    return out


@digit("digital")
def dotted_line(image: Rgb, parameters: Fixed, rng: Rng) -> Rgb:
    """Draw a dotted line from the left to the right."""
    left, right = integers(rng, 0, SIDE - 1, (2,))
    lined = mnist_c_effects.add_strokes(image, np.array([[0, left], [SIDE - 1, right]], np.float64))
    # Pairs of alternate columns.
    return np.where(np.arange(SIDE) // 2 % 2, lined, image)


@dataclass(frozen=True)
class Zigzag:
    """The `step` along the line and the `height` of the zigzag, in pixels."""

    step: float
    height: float


@digit("digital", Zigzag, (2, 2))
def zigzag(image: Rgb, parameters: Zigzag, rng: Rng) -> Rgb:
    """Draw a zigzag from the left to the right."""
    left = int(integers(rng, 0, SIDE - 1))
    right = left + int(integers(rng, -5, 5))
    ends = (2.0, float(left)), (SIDE - 3.0, float(right))
    return mnist_c_effects.add_strokes(
        image, mnist_c_effects.bend_zigzag(*ends, parameters.step, parameters.height)
    )


@digit("digital", random=False)
def canny_edges(image: Rgb, parameters: Fixed, rng: Rng) -> Rgb:
    """Keep only the edges."""
    return mnist_c_effects.find_edges(image)


FAMILY = MNIST_C
