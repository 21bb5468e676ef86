"""JPEG compression and decompression with the arithmetic of the IJG's libjpeg 9c, which Pillow had in 2018.

Entropy coding loses nothing, so no file is needed.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.kernels import cosine
from robustgen.pixels.imaging.opencv import cv2
from robustgen.pixels.imaging.pixels import Rgb

# JPEG standard, annex K: tables K.1 and K.2.
_LUMA = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ]
)
_CHROMA = np.pad(
    [[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]], (0, 4), constant_values=99
)
# Chroma is halved in both directions: 8 x 8 coefficients describe 16 x 16 pixels.
_LUMA_BLOCK, _CHROMA_BLOCK = 8, 16


def round_trip(image: Rgb, quality: int) -> Rgb:
    """Return `image` after compression as JPEG (4:2:0) and decompression by libjpeg 9c.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or, for a grey file, (H, W)
    quality : int
        Pillow's quality, from 1 to 100.
    """
    height, width = image.shape[:2]
    if height % _CHROMA_BLOCK or width % _CHROMA_BLOCK:
        margins = ((0, -height % _CHROMA_BLOCK), (0, -width % _CHROMA_BLOCK), (0, 0))
        image = np.pad(image, margins[: image.ndim], mode="edge")
    luma, chroma = _quantisation(quality)
    if image.ndim == 2:
        plane = image.copy()
        cosine.compress_plane(plane, luma, _LUMA_BLOCK)
        return np.ascontiguousarray(plane[:height, :width])
    planes = np.empty((3, *image.shape[:2]), np.uint8)
    flat = planes.reshape(3, -1)
    cosine.split_colours(*(channel.reshape(-1) for channel in cv2.split(image)), flat)
    cosine.compress_plane(planes[0], luma, _LUMA_BLOCK)
    cosine.compress_plane(planes[1], chroma, _CHROMA_BLOCK)
    cosine.compress_plane(planes[2], chroma, _CHROMA_BLOCK)
    cosine.join_colours(flat)
    return np.ascontiguousarray(cv2.merge([*planes])[:height, :width])


@lru_cache
def _quantisation(quality: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the tables of luma and chroma, int32 (8, 8)."""
    factor = 5000 // quality if quality < 50 else 200 - 2 * quality
    luma, chroma = (
        np.clip((base * factor + 50) // 100, 1, 255).astype(np.int32) for base in (_LUMA, _CHROMA)
    )
    return luma, chroma
