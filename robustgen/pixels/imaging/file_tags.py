"""Orientation and colour profile of an image file: read from one file, and added to another.

Files are added to as bytes, because encoders write pixels alone.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import TiffImageFile

from robustgen.pixels.imaging.arrays import Rgb

ORIENTATION: Final = 0x0112
"""EXIF tag: 1 to 8, which tells readers how to turn the stored pixels."""
_PROFILE: Final = 0x8773
_EXIF: Final = b"Exif\0\0"
# More does not fit into a JPEG file, which numbers the pieces of a profile in one byte.
_LARGEST_PIECE: Final = 65519
_MOST_BYTES: Final = 255 * _LARGEST_PIECE


class FileTags(NamedTuple):
    """Properties of an image file beside its pixels.

    Attributes
    ----------
    orientation : int
        EXIF orientation, 1 to 8; 0 if the file has none.
    profile : bytes
        ICC profile of RGB colours; empty if there is none.
    """

    orientation: int = 0
    profile: bytes = b""


NO_TAGS: Final = FileTags()


# --- reading -------------------------------------------------------------------------------------


def read_tags(image: Image.Image) -> FileTags:
    """Return the tags of a Pillow image: of a TIFF file before it is loaded, of any other file after that."""
    orientation: Any
    if isinstance(image, TiffImageFile):
        orientation = image.tag_v2.get(ORIENTATION)
    else:
        orientation = _find_orientation(image.info.get("exif") or _read_text(image))
    profile = image.info.get("icc_profile") or b""
    # All pixels are written as RGB.
    is_kept = profile[16:20] == b"RGB " and len(profile) <= _MOST_BYTES
    return FileTags(orientation if orientation in range(1, 9) else 0, profile if is_kept else b"")


def _read_text(image: Image.Image) -> bytes:
    """Return EXIF data that ImageMagick has written as hexadecimal digits into a PNG file."""
    text = image.info.get("Raw profile type exif", "")
    try:
        return bytes.fromhex("".join(str(text).split("\n")[3:]))
    except ValueError:
        return b""


def _find_orientation(exif: bytes) -> int:
    """Return the orientation in EXIF data; 0 if it has none or is damaged."""
    while exif.startswith(_EXIF):
        exif = exif[len(_EXIF) :]
    order = "<" if exif.startswith(b"II") else ">"
    try:
        (start,) = struct.unpack_from(f"{order}L", exif, 4)
        (count,) = struct.unpack_from(f"{order}H", exif, start)
        for place in range(start + 2, start + 2 + 12 * count, 12):
            tag, value_type = struct.unpack_from(f"{order}HH", exif, place)
            if tag == ORIENTATION:
                return int(struct.unpack_from(order + ("L" if value_type == 4 else "H"), exif, place + 8)[0])
    except struct.error:
        pass
    return 0


def turn_upright(pixels: Rgb, orientation: int) -> Rgb:
    """Return `pixels` (H, W, 3) as readers show them that apply the `orientation`: turned or mirrored."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


# --- writing -------------------------------------------------------------------------------------


def add_tags(file: bytes, tags: FileTags) -> bytes:
    """Return a JPEG, PNG, TIFF or lossless WebP `file` of RGB pixels with `tags`; other files unchanged."""
    if tags != NO_TAGS:
        for start, add in _ADDING.items():
            if file.startswith(start):
                return add(file, tags)
    return file


def _make_exif(orientation: int) -> bytes:
    """Return EXIF data of one tag."""
    return b"MM\0*" + struct.pack(">LHHHLHHL", 8, 1, ORIENTATION, 3, 1, orientation, 0, 0)


def _add_to_jpeg(file: bytes, tags: FileTags) -> bytes:
    """Add segments after the first one, which is that of JFIF."""
    start = 4 + int.from_bytes(file[4:6], "big") if file[2:4] == b"\xff\xe0" else 2
    return file[:start] + b"".join(_list_segments(tags)) + file[start:]


def _list_segments(tags: FileTags) -> Iterator[bytes]:
    if tags.orientation:
        yield _make_segment(1, _EXIF + _make_exif(tags.orientation))
    starts = range(0, len(tags.profile), _LARGEST_PIECE)
    for number, start in enumerate(starts, 1):
        piece = tags.profile[start : start + _LARGEST_PIECE]
        yield _make_segment(2, b"ICC_PROFILE\0" + bytes([number, len(starts)]) + piece)


def _make_segment(number: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, 0xE0 + number, 2 + len(content)) + content


def _add_to_png(file: bytes, tags: FileTags) -> bytes:
    """Add chunks after the header, which has 33 bytes."""
    # Uncompressed, so that the bytes do not depend on the release of zlib.
    profile = b"ICC Profile\0\0" + zlib.compress(tags.profile, 0) if tags.profile else b""
    exif = _make_exif(tags.orientation) if tags.orientation else b""
    chunks = (
        struct.pack(">L", len(content)) + name + content + struct.pack(">L", zlib.crc32(name + content))
        for name, content in ((b"iCCP", profile), (b"eXIf", exif))
        if content
    )
    return file[:33] + b"".join(chunks) + file[33:]


def _add_to_webp(file: bytes, tags: FileTags) -> bytes:
    """Put the image of a simple file into an extended one, whose header names its size and other parts."""
    if file[12:16] != b"VP8L":
        return file
    (bits,) = struct.unpack_from("<L", file, 21)
    exif = _make_exif(tags.orientation) if tags.orientation else b""
    # One bit each says that there are a profile, transparency and EXIF data.
    flags = bool(tags.profile) << 5 | (bits >> 28 & 1) << 4 | bool(exif) << 3
    size = (bits & 0x3FFF).to_bytes(3, "little") + (bits >> 14 & 0x3FFF).to_bytes(3, "little")
    parts = [(b"VP8X", struct.pack("<L", flags) + size), (b"ICCP", tags.profile), (b"EXIF", exif)]
    extended, profile, own = (
        name + struct.pack("<L", len(content)) + content + bytes(len(content) % 2) if content else b""
        for name, content in parts
    )
    body = b"WEBP" + extended + profile + file[12:] + own
    return b"RIFF" + struct.pack("<L", len(body)) + body


def _add_to_tiff(file: bytes, tags: FileTags) -> bytes:
    """Append a new directory, with the entries of the old one and those of the tags."""
    order = "<" if file.startswith(b"II") else ">"
    (start,) = struct.unpack_from(f"{order}L", file, 4)
    (count,) = struct.unpack_from(f"{order}H", file, start)
    old = (file[place : place + 12] for place in range(start + 2, start + 2 + 12 * count, 12))
    entries = {struct.unpack(f"{order}H", each[:2])[0]: each for each in old}
    following = file[start + 2 + 12 * count :][:4]
    file += bytes(len(file) % 2)
    if tags.orientation:
        entries[ORIENTATION] = struct.pack(f"{order}HHLHH", ORIENTATION, 3, 1, tags.orientation, 0)
    if tags.profile:
        entries[_PROFILE] = struct.pack(f"{order}HHLL", _PROFILE, 7, len(tags.profile), len(file))
        file += tags.profile + bytes(len(tags.profile) % 2)
    directory = struct.pack(f"{order}H", len(entries)) + b"".join(each for _, each in sorted(entries.items()))
    return file[:4] + struct.pack(f"{order}L", len(file)) + file[8:] + directory + following


_ADDING: Final = {
    b"\xff\xd8": _add_to_jpeg,
    b"\x89PNG\r\n\x1a\n": _add_to_png,
    b"RIFF": _add_to_webp,
    b"II*\0": _add_to_tiff,
    b"MM\0*": _add_to_tiff,
}
