"""Affine maps of MNIST-C, with random signs."""

from dataclasses import dataclass

import numpy as np

from robustgen.pixels.benchmarks.corruptions.mnist_c.family import digit
from robustgen.pixels.imaging import mnist_c_effects
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng


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
