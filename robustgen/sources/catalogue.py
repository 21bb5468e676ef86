"""Where the files in an archive lie, and how they are read from there."""

import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from robustgen.sources.listed_file import Descriptor, Stamp, open_once, read_at
from robustgen.sources.scratch import Scratch
from robustgen.sources.unpacking import Unpacked, is_compressed, unpack
from robustgen.sources.walk import is_image

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
        The archive.
    stamp : Stamp
        Of `file`.
    places : dict of str to Place
        Of a compressed tar, those in what is unpacked of it.
    refused : dict of str to str
        Images that must not be read, and the archive itself where it is damaged, with the reasons.
    unpacked : Unpacked, optional
        Where a compressed tar is unpacked.
    """

    file: Path
    stamp: Stamp
    places: dict[str, Place] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    unpacked: Unpacked | None = None

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
        if is_compressed(self.file):
            start, descriptor = self._open_unpacked()
            return read_at(descriptor, start + place.offset, place.size)
        descriptor = open_once(self.file, self.stamp)
        if place.packed is None:
            return read_at(descriptor, place.offset, place.size)
        return _read_zipped(descriptor, place)

    def make_ready(self, scratch: Scratch) -> None:
        """Unpack a compressed tar to `scratch`, if that is not done."""
        if is_compressed(self.file) and self.unpacked is None:
            self.unpacked, _ = unpack(self.file, self.stamp, scratch)

    def _open_unpacked(self) -> tuple[int, Descriptor]:
        """Where the archive begins in the file that it is unpacked to, and that file."""
        if self.unpacked:
            try:
                return self.unpacked.start, self.unpacked.open()
            except (OSError, ValueError):
                # This is another machine, or the process that unpacked it has ended.
                self.unpacked = None
        self.make_ready(Scratch())
        assert self.unpacked is not None
        return self.unpacked.start, self.unpacked.open()

    # --- keeping

    def to_json(self, *, here: bool) -> Any:
        """As `Index.to_json`."""
        unpacked = self.unpacked.to_json() if here and self.unpacked else None
        return [str(self.file), self.stamp, self.places, self.refused, unpacked]

    @classmethod
    def from_json(cls, content: Any) -> "Catalogue":
        """As `Index.from_json`."""
        file, (size, time, inode), raw_places, refused, unpacked = content
        places = {name: Place(*place) for name, place in raw_places.items()}
        known = Unpacked.from_json(unpacked) if unpacked else None
        return cls(Path(file), (size, time, inode), places, refused, known)


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

_ZIP_HEADER_BYTES = 30


def _read_zipped(descriptor: Descriptor, place: Place) -> bytes:
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
