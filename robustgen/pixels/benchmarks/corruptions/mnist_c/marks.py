"""Stripes, lines and edges of MNIST-C."""

from dataclasses import dataclass

import numpy as np

from robustgen.pixels.benchmarks.corruptions.mnist_c.family import SIDE, Fixed, digit
from robustgen.pixels.imaging import mnist_c_effects
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng, integers


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
