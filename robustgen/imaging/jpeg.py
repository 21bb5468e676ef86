"""JPEG files of pixels and pixels of JPEG files, with libjpeg-turbo's own bytes."""

import numpy as np

from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Rgb


def encode_jpeg(image: Rgb, quality: int, *, optimise: bool) -> bytes:
    """JPEG file of `image` at Pillow's `quality`, 4:2:0, with or without optimised Huffman tables.

    OpenCV's encoder gives the very bytes of Pillow's, as both wrap libjpeg-turbo (a test holds them to it),
    and spares a copy of the image.
    """
    options = [
        cv2.IMWRITE_JPEG_QUALITY,
        quality,
        cv2.IMWRITE_JPEG_OPTIMIZE,
        int(optimise),
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    ]
    encoded: bytes = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)[1].tobytes()
    return encoded


def decode_jpeg(data: bytes) -> Rgb:
    """The pixels, uint8 (H, W, 3), of a JPEG file that `encode_jpeg` made."""
    pixels = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8)
