"""JPEG files, and the round trip through one; messages of compiled libraries."""

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from PIL import features

from robustgen.errors import ArgumentError, explain_import
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.kernels import cosine
from robustgen.pixels.imaging.third_party import cv2

# --- messages that compiled libraries print to the terminal ----------------------------------------

# All threads of a process share its terminal; jpeglib has global variables besides.
_only_capture: Final = threading.Lock()


@contextmanager
def capture_native_messages(messages: list[str]) -> Iterator[None]:
    """Append the lines that libraries print to the standard error meanwhile, without the names of files."""
    with _only_capture, tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            lines = file.read().decode(errors="backslashreplace").splitlines()
            # libtiff reads all files under one name.
            messages += [line.removeprefix("tempfile.tif: ").rstrip(".") for line in lines if line.strip()]


# --- JPEG encoding and decoding with libjpeg-turbo or the IJG's libjpeg 9c -------------------------

# The published files were created with IJG libjpeg 9, which resizes the chroma by scaled cosine transforms;
# libjpeg-turbo averages and interpolates. The tables are the same, the pixels differ.

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


def libjpeg_version(library: Libjpeg) -> str:
    """Return name and release of the libjpeg that encodes files."""
    if library == "ijg":
        return f"IJG libjpeg {_IJG} (jpeglib {metadata.version('jpeglib')})"
    # The line is like "JPEG: build-libjpeg-turbo (ver 3.1.2-70)".
    found = re.search(r"JPEG:\s*(.+)", cv2.getBuildInformation())
    return found[1].strip() if found else "unknown"


def decoder_version(library: Libjpeg) -> str:
    """Return name and release of the libjpeg that decodes source images."""
    turbo = features.version_feature("libjpeg_turbo")
    return libjpeg_version(library) if library == "ijg" else f"libjpeg-turbo {turbo} (Pillow)"


def check_libjpeg(library: Libjpeg) -> Libjpeg:
    """Return `library`.

    Raises
    ------
    ArgumentError
        It does not exist.
    MissingDependencyError
        It is ``"ijg"``, and jpeglib is not installed.
    """
    if library not in get_args(Libjpeg):
        raise ArgumentError(f"libjpeg must be 'turbo' or 'ijg', not {library!r}")
    if library == "ijg":
        load_ijg()
    return library


def load_ijg() -> Any:
    """Return the package jpeglib, set to IJG libjpeg 9c; raise a MissingDependencyError if missing."""
    with explain_import("libjpeg: ijg needs jpeglib, which includes IJG libjpeg 9c", "ijg"):
        import jpeglib
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


def read_by_ijg(data: bytes) -> NDArray[np.uint8]:
    """Return the pixels of a JPEG file that libjpeg-turbo accepts, decoded by IJG libjpeg 9c.

    Returns
    -------
    uint8 ndarray of shape (H, W, C)
        Grey, RGB, or CMYK as stored.

    Raises
    ------
    OSError, ValueError
        The file is damaged.
    MissingDependencyError
        jpeglib is not installed.
    """
    jpeglib, content = load_ijg(), _drop_notes(data)
    with capture_native_messages([]), tempfile.NamedTemporaryFile(suffix=".jpeg", dir=_SCRATCH) as file:
        file.write(content)
        file.flush()
        try:
            return np.asarray(jpeglib.read_spatial(file.name).spatial, np.uint8)
        except OSError as error:
            # jpeglib's own errors have no number, and name the temporary file.
            if error.errno is not None:
                raise
            is_lossless = _LOSSLESS in content
            reason, way = ("it is lossless: ", "; choose libjpeg turbo") if is_lossless else ("", "")
            raise ValueError(f"{reason}libjpeg 9c cannot decode it{way}") from error


# jpeglib keeps the markers of a file in global variables, 50 at most, without checks.
_MOST_MARKERS: Final = 50
# The marker of frames that are coded without loss, which coded data cannot contain.
_LOSSLESS: Final = b"\xff\xc3"
_MARKER: Final = re.compile(rb"\xff+([^\x00\xff\x01\xd0-\xd8])", re.DOTALL)


def _drop_notes(data: bytes) -> bytes:
    """Return a JPEG file without comments and application data, except for those that tell its colours."""
    parts, kept, start, offset = list[bytes](), 0, 0, 0
    while (found := _MARKER.search(data, offset)) and found[1] != b"\xd9":
        after = found.end() + max(2, int.from_bytes(data[found.end() : found.end() + 2], "big"))
        is_note = found[1] == b"\xfe" or b"\xe0" <= found[1] <= b"\xef"
        tells_colours = data.startswith((b"JFIF\0", b"Adobe"), found.end() + 2)
        kept += is_note and tells_colours
        if is_note and not tells_colours:
            parts.append(data[start : found.start()])
            start = after
        offset = after
    if kept > _MOST_MARKERS:
        raise ValueError(f"has {kept} headers of JFIF and Adobe")
    return b"".join([*parts, data[start:]])


# --- the round trip, with the arithmetic of either library -----------------------------------------

# Entropy coding loses nothing, so no file is needed.

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
# Factors of red and green in the first chroma, and of this in green, which the libraries round differently;
# and the mask of values beyond the limits.
_ARITHMETIC: Final = {"ijg": (-11058, -21710, -22553, 1023), "turbo": (-11059, -21709, -22554, -1)}
# libjpeg-turbo interpolates no rows of one or two samples.
_FEWEST_INTERPOLATED: Final = 5


def round_trip(
    image: Rgb, quality: int, *, library: Libjpeg = "turbo", subsampling: Subsampling = "4:2:0"
) -> Rgb:
    """Return `image` after compression as JPEG and decompression by the same library.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or, for a grey file, (H, W)
    quality : int
        Pillow's quality, from 1 to 100.
    library : {"turbo", "ijg"}
    subsampling : {"4:2:0", "4:4:4"}
    """
    height, width = image.shape[:2]
    if height % _CHROMA_BLOCK or width % _CHROMA_BLOCK:
        margins = ((0, -height % _CHROMA_BLOCK), (0, -width % _CHROMA_BLOCK), (0, 0))
        image = np.pad(image, margins[: image.ndim], mode="edge")
    luma, chroma = _quantisation(quality)
    by_red, by_green, by_first, mask = _ARITHMETIC[library]
    if image.ndim == 2:
        plane = image.copy()
        _compress(plane, luma, _LUMA_BLOCK, mask)
        return np.ascontiguousarray(plane[:height, :width])
    planes = np.empty((3, *image.shape[:2]), np.uint8)
    lines = np.ascontiguousarray(image).reshape(len(image), -1)
    cosine.split_colours(lines, planes, by_red, by_green)
    _compress(planes[0], luma, _LUMA_BLOCK, mask)
    for plane in planes[1:]:
        if subsampling == "4:4:4":
            _compress(plane, chroma, _LUMA_BLOCK, mask)
        elif library == "ijg":
            _compress(plane, chroma, _CHROMA_BLOCK, mask)
        else:
            _compress_means(plane, chroma, height, width)
    cosine.join_colours(planes.reshape(3, -1), by_first)
    return np.ascontiguousarray(cv2.merge([*planes])[:height, :width])


def _compress(plane: NDArray[np.uint8], table: NDArray[np.int32], side: int, mask: int) -> None:
    # The loop takes four samples at once.
    cosine.compress_plane(plane.view(np.int32), table, side, mask)


def _compress_means(plane: NDArray[np.uint8], table: NDArray[np.int32], height: int, width: int) -> None:
    """Replace `height` x `width` samples of a plane by the round trip of the means of 2 x 2 of them."""
    means = np.empty((plane.shape[0] // 2, plane.shape[1] // 2), np.uint8)
    cosine.halve_plane(plane, means)
    # The library repeats means, not samples, below the image.
    means[(height + 1) // 2 :] = means[(height - 1) // 2]
    _compress(means, table, _LUMA_BLOCK, _ARITHMETIC["turbo"][-1])
    if width < _FEWEST_INTERPOLATED:
        plane[:] = means.repeat(2, axis=0).repeat(2, axis=1)
    else:
        cosine.double_plane(means, plane[:height, :width])


@lru_cache
def _quantisation(quality: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the tables of luma and chroma, int32 (8, 8)."""
    factor = 5000 // quality if quality < 50 else 200 - 2 * quality
    luma, chroma = (
        np.clip((base * factor + 50) // 100, 1, 255).astype(np.int32) for base in (_LUMA, _CHROMA)
    )
    return luma, chroma
