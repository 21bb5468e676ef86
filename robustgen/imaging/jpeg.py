"""JPEG files of pixels and pixels of JPEG files, by libjpeg-turbo or by the IJG's libjpeg 9c.

The published files went through IJG libjpeg 9, which shrinks and enlarges the chroma by scaled cosine
transforms where libjpeg-turbo averages and interpolates: the same tables, other pixels.
"""

import re
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from robustgen.errors import MissingDependencyError
from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Rgb

Libjpeg = Literal["turbo", "ijg"]
Subsampling = Literal["4:2:0", "4:4:4"]

# The release inside the wheels of Pillow 5, of July 2018.
_IJG = "9c"
# jpeglib knows files only, which in memory are twice as fast.
_SCRATCH = next((folder for folder in ("/dev/shm",) if Path(folder).is_dir()), None)


def encode_jpeg(
    image: Rgb,
    quality: int,
    *,
    optimise: bool,
    library: Libjpeg = "turbo",
    subsampling: Subsampling = "4:2:0",
) -> bytes:
    """Return the JPEG file of `image` at Pillow's `quality`, with or without optimised Huffman tables.

    It is grey if `image` has one channel, (H, W).

    OpenCV's encoder gives the very bytes of Pillow's, as both wrap libjpeg-turbo (a test holds them to it),
    and spares a copy of the image.

    Raises
    ------
    MissingDependencyError
        `library` is ``"ijg"``, and jpeglib is not installed.
    """
    if library == "ijg":
        return _encode_by_ijg(image, quality, optimise, subsampling)
    options = [
        cv2.IMWRITE_JPEG_QUALITY,
        quality,
        cv2.IMWRITE_JPEG_OPTIMIZE,
        int(optimise),
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420
        if subsampling == "4:2:0"
        else cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
    ]
    pixels = cv2.cvtColor(image, cv2.COLOR_RGB2BGR) if image.ndim == 3 else image
    encoded: bytes = cv2.imencode(".jpg", pixels, options)[1].tobytes()
    return encoded


def decode_jpeg(data: bytes, *, library: Libjpeg = "turbo") -> Rgb:
    """Return the pixels, uint8 (H, W, 3), of a JPEG file that `encode_jpeg` made."""
    if library == "ijg":
        return _decode_by_ijg(data)
    pixels = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8)


def libjpeg_version(library: Libjpeg) -> str:
    """Name and release of the libjpeg that encodes."""
    if library == "ijg":
        return f"IJG libjpeg {_IJG} (jpeglib {metadata.version('jpeglib')})"
    # A line such as "JPEG: build-libjpeg-turbo (ver 3.1.2-70)".
    found = re.search(r"JPEG:\s*(.+)", cv2.getBuildInformation())
    return found[1].strip() if found else "unknown"


def load_ijg() -> Any:
    """Return the package jpeglib, set to IJG libjpeg 9c, or a MissingDependencyError that says how to
    install it.
    """
    try:
        import jpeglib
    except ImportError as error:
        raise MissingDependencyError(
            "libjpeg: ijg needs jpeglib, which carries IJG libjpeg 9c: pip install 'robustgen[ijg]'"
        ) from error
    if jpeglib.version.get() != _IJG:
        jpeglib.version.set(_IJG)
    return jpeglib


def _encode_by_ijg(image: Rgb, quality: int, optimise: bool, subsampling: Subsampling) -> bytes:
    in_colour = image.ndim == 3
    picture = load_ijg().from_spatial(np.ascontiguousarray(image if in_colour else image[:, :, None]))
    if in_colour:
        picture.samp_factor = subsampling
    # As in Pillow: no table holds more than 8 bits, or old decoders fail at low qualities.
    flags = ["+FORCE_BASELINE"] + ["+OPTIMIZE_CODING"] * optimise
    with tempfile.NamedTemporaryFile(suffix=".jpeg", dir=_SCRATCH) as file:
        picture.write_spatial(file.name, qt=quality, flags=flags)
        return file.read()


def _decode_by_ijg(data: bytes) -> Rgb:
    jpeglib = load_ijg()
    with tempfile.NamedTemporaryFile(suffix=".jpeg", dir=_SCRATCH) as file:
        file.write(data)
        file.flush()
        pixels = np.asarray(jpeglib.read_spatial(file.name).spatial, np.uint8)
        return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels
