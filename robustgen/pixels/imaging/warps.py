"""Affine warps like Pillow's, and affine and perspective warps like those of OpenCV 3 and 4.

The published data were created with positions rounded to 1/32 of a pixel. OpenCV 5 interpolates at exact
positions, so this module uses its own loops, independent of the release.
"""

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import warps as kernels
from robustgen.pixels.imaging.opencv import cv2
from robustgen.pixels.imaging.pixels import Rgb

Matrix = tuple[float, float, float, float, float, float]


def sample_affine(image: Rgb, matrix: Matrix) -> Rgb:
    """Sample `image` bilinearly at the places that `matrix` maps to; outside is black.

    Equals Pillow's ``Image.transform``.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    matrix : six floats
        Maps (x, y) in the result to (a x + b y + c, d x + e y + f) in `image`.
    """
    width, out = image.shape[1], np.zeros_like(image)
    places, parts = np.empty(width, np.int32), np.empty((6, width))
    near, lines = _make_lines(width)
    words = _frame_words(image, 1)
    words[0], words[-1] = words[1], words[-2]
    words[:, 0], words[:, -1] = words[:, 1], words[:, -2]
    kernels.sample_affine(words, matrix, places, parts, near, lines, out)
    return out


def _make_lines(width: int) -> tuple[npt.NDArray[np.uint32], Rgb]:
    """Return buffers for a line of results: the four neighbours of each pixel, and its channels."""
    return np.empty((4, width), np.uint32), np.empty((3, width), np.uint8)


def _frame_words(image: Rgb, border: int) -> npt.NDArray[np.uint32]:
    """Return the pixels of `image` as words, red lowest, with a black border of `border` pixels."""
    height, width = image.shape[:2]
    framed = np.zeros((height + 2 * border, width + 2 * border, 4), np.uint8)
    cv2.cvtColor(image, cv2.COLOR_RGB2RGBA, framed[border:-border, border:-border])
    return framed.view(np.uint32)[..., 0]


def warp_affine(image: Rgb, matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Map `image` by an affine `matrix`, bilinearly, borders mirrored about the edge pixels.

    Bit-identical to ``cv2.warpAffine(image / 255 as float32, matrix, borderMode=cv2.BORDER_REFLECT_101)`` of
    OpenCV 3 and 4.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    matrix : float64 ndarray of shape (2, 3)
        Maps (x, y, 1) in `image` to its place in the result.

    Returns
    -------
    float32 ndarray of shape (H, W, 4)
        Values in [0, 1]; the fourth of each pixel is unused and pads the pixel to a word of 16 bytes.
    """
    (a, b, c), (d, e, f) = matrix.tolist()
    determinant = a * e - b * d
    scale = 1.0 / determinant if determinant else 0.0
    xx, xy, yx, yy = e * scale, -b * scale, -d * scale, a * scale
    inverse = (xx, xy, -xx * c - xy * f, yx, yy, -yx * c - yy * f)
    out = np.empty((*image.shape[:2], 4), np.float32)
    kernels.warp_affine(image, inverse, out)
    return out


def warp_perspective(image: Rgb, matrix: npt.NDArray[np.float64]) -> Rgb:
    """Map `image` by a projective `matrix`, bilinearly; outside is black.

    Bit-identical to ``cv2.warpPerspective(image, matrix, (width, height))`` of OpenCV 3 and 4.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    matrix : float64 ndarray of shape (3, 3)
        Maps (x, y, 1) in `image` to its place in the result, up to a factor.
    """
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    scale = 1.0 / determinant if determinant else 0.0
    inverse = (
        (e * i - f * h) * scale,
        (c * h - b * i) * scale,
        (b * f - c * e) * scale,
        (f * g - d * i) * scale,
        (a * i - c * g) * scale,
        (c * d - a * f) * scale,
        (d * h - e * g) * scale,
        (b * g - a * h) * scale,
        (a * e - b * d) * scale,
    )
    width, out = image.shape[1], np.empty_like(image)
    near, lines = _make_lines(width)
    words = _frame_words(image, 2)
    kernels.warp_perspective(words, inverse, np.empty((3, width), np.int32), near, lines, out)
    return out
