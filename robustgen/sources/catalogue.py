"""Where the files in an archive lie, and how they are read from there."""

import os
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from robustgen.sources.walk import is_image

Stamp = tuple[int, int]
"""Size in bytes and time of change in nanoseconds of a file: what tells that it is still the same."""

# No image has as much; what a header promises is refused beyond it.
MOST_MEMBER_BYTES = 1 << 29


class Place(NamedTuple):
    """Where a file lies in an archive.

    Attributes
    ----------
    offset : int
        Of its first byte; in a zip, of its header.
    size : int
        Bytes of the file.
    packed : int or None
        Bytes that it takes in a zip; None in a tar, where it lies as it is.
    sum : int
        CRC-32 in a zip.
    deflated : bool
    """

    offset: int
    size: int
    packed: int | None = None
    sum: int = 0
    deflated: bool = False


@dataclass
class Catalogue:
    """The files of one archive.

    Attributes
    ----------
    file : Path
        What the places are in: the archive, or what was unpacked of it.
    stamp : Stamp
        Of `file`.
    places : dict of str to Place
    refused : dict of str to str
        Images that must not be read, and the archive itself where it is damaged, with the reasons.
    """

    file: Path
    stamp: Stamp
    places: dict[str, Place] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def add(self, raw_name: str, found: Place | str) -> None:
        """Take in a member, or the reason for refusing it; hidden ones are passed over."""
        parts = [part for part in raw_name.split("/") if part not in ("", ".")]
        name = "/".join(parts)
        if not parts or any(part[0] == "." and not part.startswith("..") for part in parts):
            return
        reason = _reason_against(raw_name, parts, found)
        if name in self.places or name in self.refused:
            reason = "stands in the archive twice"
            self.places.pop(name, None)
        if reason is None and isinstance(found, Place):
            self.places[name] = found
        elif is_image(name):
            self.refused[name] = reason or str(found)

    def read(self, name: str) -> bytes:
        """Read one file; an OSError, ValueError or LookupError if it cannot be read."""
        place = self.places[name]
        descriptor = open_once(self.file, self.stamp)
        if place.packed is None:
            return read_at(descriptor, place.offset, place.size)
        return _read_zipped(descriptor, place)


def _reason_against(raw_name: str, parts: list[str], found: Place | str) -> str | None:
    if raw_name.startswith("/"):
        return "its name is absolute"
    if ".." in parts:
        return "its name leaves the archive"
    if any(part.startswith("..") for part in parts):
        return "its name begins with two dots"
    if "\0" in raw_name:
        return "its name holds a zero byte"
    if isinstance(found, str):
        return found
    if found.size > MOST_MEMBER_BYTES or (found.packed or 0) > MOST_MEMBER_BYTES:
        return f"{found.size} bytes are more than an image has"
    return None


# --- reading -------------------------------------------------------------------------------------


class _Descriptor:
    """An open file, closed when nobody needs it any more."""

    def __init__(self, number: int) -> None:
        self.number = number

    # Bound here, as modules may be gone when the interpreter ends.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


@lru_cache(maxsize=128)
def open_once(path: Path, stamp: Stamp) -> _Descriptor:
    """Open a file that many images are read from; a ValueError if it is not the one that `stamp` tells of."""
    descriptor = _Descriptor(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    if stamp_of(os.fstat(descriptor.number)) != stamp:
        raise ValueError(f"{path.name} has changed since it was listed")
    return descriptor


def stamp_of(status: os.stat_result) -> Stamp:
    """Size and time of change of a regular file; a ValueError if it is none."""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("not a regular file")
    return status.st_size, status.st_mtime_ns


def read_at(descriptor: _Descriptor, offset: int, size: int) -> bytes:
    """Read `size` bytes at `offset`; a ValueError if there are fewer."""
    pieces: list[bytes] = []
    left = size
    while left and (piece := os.pread(descriptor.number, left, offset + size - left)):
        pieces.append(piece)
        left -= len(piece)
    if left:
        raise ValueError("the archive ends within it")
    return b"".join(pieces)


_ZIP_HEADER_BYTES = 30


def _read_zipped(descriptor: _Descriptor, place: Place) -> bytes:
    header = read_at(descriptor, place.offset, _ZIP_HEADER_BYTES)
    if header[:4] != b"PK\3\4":
        raise ValueError("no header in the zip where one must be")
    # The name and the extra field are repeated before the data, in lengths of their own.
    skipped = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    data = read_at(descriptor, place.offset + _ZIP_HEADER_BYTES + skipped, place.packed or 0)
    if place.deflated:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        data = inflater.decompress(data, place.size + 1)
    if len(data) != place.size or zlib.crc32(data) != place.sum:
        raise ValueError("damaged in the zip: its length or sum differs")
    return data
