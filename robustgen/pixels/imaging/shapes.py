"""Small filled shapes, painted like Pillow's."""

from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng, integers

TRIANGLE, SQUARE, STAR, CIRCLE = range(4)


def draw_shapes(count: int, shape: tuple[int, int], rng: Rng) -> npt.NDArray[np.int64]:
    """Draw `count` shapes for an image of `shape` (H, W).

    Returns
    -------
    int64 ndarray of shape (count, 8)
        Kind, x, y, size (6 to 15), red, green, blue, and a rotation in degrees.
    """
    lows = np.array([0, 0, 0, 6, 0, 0, 0, 0])
    highs = np.array([4, shape[1], shape[0], 16, 256, 256, 256, 360])
    drawn: npt.NDArray[np.int64] = integers(rng, lows, highs, (count, 8))
    return drawn


def paint_shapes(image: Rgb, shapes: npt.NDArray[np.int64]) -> Rgb:
    """Return `image` with the `shapes` of `draw_shapes` painted over it in order."""
    picture = Image.fromarray(image)
    painter = ImageDraw.Draw(picture)
    for kind, x, y, size, red, green, blue, rotation in shapes.tolist():
        colour = red, green, blue
        if kind == TRIANGLE:
            painter.polygon([(x, y), (x + size, y), (x + size / 2, y + size)], fill=colour)
        elif kind == SQUARE:
            painter.rectangle([(x, y), (x + size, y + size)], fill=colour)
        elif kind == STAR:
            painter.polygon(_star(x, y, size, rotation), fill=colour)
        else:
            painter.ellipse([(x, y), (x + size, y + size)], fill=colour)
    return np.array(picture)


def _star(x: int, y: int, size: int, rotation: int) -> list[tuple[float, float]]:
    """Return the ten points of a star about (`x`, `y`)."""
    sines, cosines = _turn()
    outer = size / 1.2
    angles = range(rotation, rotation + 360, 36)
    radii = (outer, outer / 2) * 5
    return [(x + r * sines[a], y + r * cosines[a]) for a, r in zip(angles, radii, strict=True)]


@lru_cache(maxsize=1)
def _turn() -> tuple[list[float], list[float]]:
    """Return sines and cosines of 0 to 683 degrees, correctly rounded on any machine.

    Pillow truncates the points of a star to integers, so the last bit can change a pixel.
    """
    radians = [angle * 0.017453292519943295 for angle in range(684)]
    with localcontext() as context:
        context.prec = 60
        sines = [float(_sum_series(Decimal(each), Decimal(each), 1)) for each in radians]
        cosines = [float(_sum_series(Decimal(each), Decimal(1), 0)) for each in radians]
    return sines, cosines


def _sum_series(x: Decimal, term: Decimal, power: int) -> Decimal:
    """Sum the alternating series of sine or cosine at `x`, whose first term, of `power`, is `term`."""
    total, square = term, x * x
    while abs(term) > Decimal("1e-40"):
        power += 2
        term = -term * square / (power * (power - 1))
        total += term
    return total
