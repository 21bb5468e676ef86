"""Corruptions of small grey images, uint8 (H, W): affine maps, strokes, swaps, edges."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import Doubles, Rgb, unit
from robustgen.pixels.imaging.blur import gaussian
from robustgen.pixels.imaging.kernels import drawing, exact
from robustgen.pixels.imaging.rng import Rng, integers


def round_to_uint8(values: npt.NDArray[np.floating[Any]]) -> Rgb:
    """Clip unit `values`, and round 255 times them, as float32, halves to even, like MNIST-C's notebook."""
    scaled = (np.clip(values, 0, 1) * values.dtype.type(255)).astype(np.float32)
    return np.asarray(np.rint(scaled), np.uint8)


def draw_signs(count: int, rng: Rng) -> npt.NDArray[np.int64]:
    """Draw `count` signs, -1 or 1."""
    return np.asarray(2 * integers(rng, 0, 2, (count,)) - 1)


def shear(amount: float) -> Doubles:
    """Return the matrix (2, 2) of a shear by an angle in radians, as in scikit-image up to 0.18."""
    return np.array([[1, -exact.sine(amount)], [0, exact.cosine(amount)]])


def rotation(angle: float) -> Doubles:
    """Return the matrix (2, 2) of a rotation by an angle in radians."""
    return np.array([[exact.cosine(angle), -exact.sine(angle)], [exact.sine(angle), exact.cosine(angle)]])


def sample_about_centre(image: Rgb, matrix: Doubles) -> Rgb:
    """Sample `image` at the places that `matrix` (2, 2) maps to, about its centre."""
    centre = (np.array(image.shape[::-1]) - 1) / 2
    return sample_places(image, np.column_stack([matrix, centre * (1 - matrix.sum(axis=1))]))


def sample_places(image: Rgb, matrix: Doubles) -> Rgb:
    """Sample `image` linearly at `matrix` (2, 3) times (x, y, 1); outside is black.

    Values are clipped to the range of the image, but for those that are exactly 0, as scikit-image does.
    """
    values = unit(image)
    out = np.empty(image.shape)
    drawing.sample_affine(values, np.ascontiguousarray(matrix, np.float64), out)
    return round_to_uint8(np.where(out == 0, 0.0, out.clip(values.min(), values.max())))


def add_strokes(image: Rgb, points: Doubles) -> Rgb:
    """Add soft lines between consecutive `points` (N, 2), column and row."""
    values = unit(image)
    for start, end in itertools.pairwise(points):
        drawing.add_line(*map(float, (*start, *end)), values)
    return round_to_uint8(values)


def bend_zigzag(start: tuple[float, float], end: tuple[float, float], step: float, height: float) -> Doubles:
    """Return the points (N, 2), column and row, of a zigzag between two points, `height` off the line."""
    across, down = end[0] - start[0], end[1] - start[1]
    angle = float(exact.angle_of(float(down), float(across)))
    length = across / exact.cosine(angle)
    points = [(0.0, 0.0)]
    for number in range(int((length - step) // (2 * step)) + 1):
        points.append((step * (2 * number + 1), height * (1 - 2 * (number % 2))))
    left = length - 2 * step * (length // (2 * step))
    if left:
        points.append((length, points[-1][1] / (2 * left)))
    c, s = exact.cosine(angle), exact.sine(angle)
    # The order of sums in a matrix product would depend on the processor.
    turned = np.array([(x * c - y * s, x * s + y * c) for x, y in points])
    return np.asarray(turned + np.array(start))


def swap_pixels(image: Rgb, rounds: int, rng: Rng) -> Rgb:
    """Swap each pixel with probability 1/2 with a neighbour above or to the left, in several `rounds`."""
    visits = rounds * (image.shape[0] - 2) * (image.shape[1] - 2)
    moves = np.zeros((visits, 3), np.int64)
    if isinstance(rng, np.random.RandomState):
        # The published code draws a move only for pixels that it swaps.
        for move in moves:
            # Same draw as `choice([True, False])`.
            move[0] = rng.randint(0, 2) == 0
            if move[0]:
                move[1:] = rng.randint(-1, 1, 2)
    else:
        moves[...] = rng.integers(0, 2, moves.shape) - np.array([0, 1, 1])
    out = image.copy()
    drawing.swap_neighbours(out, moves)
    return out


def find_edges(image: Rgb, low: float = 0.1, high: float = 0.2) -> Rgb:
    """Return Canny's edges of `image`, smoothed by a Gaussian of one pixel: 0 or 255.

    Equals ``skimage.feature.canny`` with its defaults.
    """
    from scipy import ndimage

    height, width = image.shape
    # The outside is black; dividing by the smoothed mask corrects the border.
    frame = np.zeros((height + 8, width + 8))
    frame[4:-4, 4:-4] = unit(image)
    inside = np.zeros_like(frame)
    inside[4:-4, 4:-4] = 1
    smooth, share = (gaussian(each, 1.0)[4:-4, 4:-4] for each in (frame, inside))
    smooth = smooth / (share + np.finfo(np.float64).eps)
    right, down = ndimage.sobel(smooth, axis=1), ndimage.sobel(smooth, axis=0)
    thin = np.zeros((height, width))
    drawing.thin_edges(np.sqrt(down * down + right * right), down, right, low, thin)
    edges, count = ndimage.label(thin > 0, np.ones((3, 3)))
    strong = np.zeros(count + 1, np.bool_)
    strong[edges[thin >= high]] = True
    return np.asarray(strong[edges] * np.uint8(255))
