"""JPEG encoding and decoding with libjpeg-turbo or the IJG's libjpeg 9c.

The published files were created with IJG libjpeg 9, which resizes the chroma by scaled cosine transforms;
libjpeg-turbo averages and interpolates. The tables are the same, the pixels differ.
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

# The release in the wheels of Pillow 5 of July 2018.
_IJG = "9c"
# jpeglib needs files; in memory they are twice as fast.
_SCRATCH = next((folder for folder in ("/dev/shm",) if Path(folder).is_dir()), None)


def encode_jpeg(
    image: Rgb,
    quality: int,
    *,
    optimise: bool,
    library: Libjpeg = "turbo",
    subsampling: Subsampling = "4:2:0",
) -> bytes:
    """Encode `image` as JPEG at Pillow's `quality`, with or without optimised Huffman tables.

    The file is grey if `image` has one channel, (H, W).

    OpenCV's encoder writes the same bytes as Pillow's, as both wrap libjpeg-turbo (a test checks this), and
    saves a copy of the image.

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
    """Return the pixels, uint8 (H, W, 3), of a JPEG file from `encode_jpeg`."""
    if library == "ijg":
        return _decode_by_ijg(data)
    pixels = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8)


def libjpeg_version(library: Libjpeg) -> str:
    """Return name and release of the encoding libjpeg."""
    if library == "ijg":
        return f"IJG libjpeg {_IJG} (jpeglib {metadata.version('jpeglib')})"
    # The line is like "JPEG: build-libjpeg-turbo (ver 3.1.2-70)".
    found = re.search(r"JPEG:\s*(.+)", cv2.getBuildInformation())
    return found[1].strip() if found else "unknown"


def load_ijg() -> Any:
    """Return the package jpeglib, set to IJG libjpeg 9c; raise a MissingDependencyError if missing."""
    try:
        import jpeglib
    except ImportError as error:
        raise MissingDependencyError(
            "libjpeg: ijg needs jpeglib, which includes IJG libjpeg 9c: pip install 'robustgen[ijg]'"
        ) from error
    if jpeglib.version.get() != _IJG:
        jpeglib.version.set(_IJG)
    return jpeglib


def _encode_by_ijg(image: Rgb, quality: int, optimise: bool, subsampling: Subsampling) -> bytes:
    in_colour = image.ndim == 3
    picture = load_ijg().from_spatial(np.ascontiguousarray(image if in_colour else image[:, :, None]))
    if in_colour:
        picture.samp_factor = subsampling
    # Like Pillow, limit table entries to 8 bits; otherwise old decoders fail at low qualities.
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
