"""Affine and perspective maps of an image, as OpenCV 3 and 4 computed them.

Positions are rounded to 1/32 of a pixel, which is how the published data was made. OpenCV 5 interpolates at
the exact position, so these are loops of our own and do not depend on its release.
"""

import numpy as np
import numpy.typing as npt

from robustgen.imaging.kernels import warps as kernels
from robustgen.imaging.pixels import Rgb


def warp_affine(image: Rgb, matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Map `image` by an affine `matrix`, bilinearly, borders mirrored about the edge pixels.

    Equals ``cv2.warpAffine(image / 255 as float32, matrix, borderMode=cv2.BORDER_REFLECT_101)`` of OpenCV 3
    and 4 to the last bit.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    matrix : float64 ndarray of shape (2, 3)
        Takes a place (x, y, 1) in `image` to its place in the result.

    Returns
    -------
    float32 ndarray of shape (H, W, 4)
        Values in [0, 1]; the fourth of each pixel means nothing, it makes the pixel one word of 16 bytes.
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

    Equals ``cv2.warpPerspective(image, matrix, (width, height))`` of OpenCV 3 and 4 to the last bit.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    matrix : float64 ndarray of shape (3, 3)
        Takes a place (x, y, 1) in `image` to its place in the result, up to a factor.
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
    out = np.empty_like(image)
    kernels.warp_perspective(image, inverse, out)
    return out
