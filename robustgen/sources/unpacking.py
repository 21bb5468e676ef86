"""Compressed tars, which have no places to read from, unpacked to a temporary file."""

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from robustgen.errors import SourceError
from robustgen.imaging.decode import reason_of
from robustgen.sources.listed_file import Descriptor, Stamp, check_unchanged, open_once
from robustgen.sources.scratch import Scratch

COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
# Images hardly shrink; what unpacks to a hundred times its size and more is there to fill a disk.
_MOST_GROWTH, _HARMLESS_BYTES = 100, 1 << 30


class _Lent(NamedTuple):
    """The temporary file of another process of this machine."""

    path: Path
    stamp: Stamp


@dataclass(frozen=True)
class Unpacked:
    """Where an archive is unpacked.

    Attributes
    ----------
    file : Scratch
        Our own, or that of another process.
    start : int
        Where the archive begins in it.
    """

    file: Scratch | _Lent
    start: int

    def open(self) -> Descriptor:
        """The file; an OSError or ValueError if it is not there any more."""
        return open_once(self.file.path, self.file.stamp)

    def to_json(self) -> Any:
        """What tells another process of this machine where it is."""
        return [str(self.file.path), self.file.stamp, self.start]

    @classmethod
    def from_json(cls, content: Any) -> "Unpacked":
        """What `to_json` told."""
        path, (size, time, inode), start = content
        return cls(_Lent(Path(path), (size, time, inode)), start)


def is_compressed(path: Path) -> bool:
    """Whether the name of `path` is that of a compressed tar."""
    return path.name.lower().endswith(COMPRESSED)


def unpack(path: Path, stamp: Stamp, scratch: Scratch) -> tuple[Unpacked, str | None]:
    """Decompress a tar to the end of `scratch`, as far as that is possible; also say what is wrong with it.

    Raises
    ------
    SourceError
        There is no room for it, or it grows beyond measure.
    OSError, ValueError
        It cannot be read, or is not the one that `stamp` tells of.
    """
    check_unchanged(path, path.stat(), stamp)
    with _blame_room(path):
        start = scratch.file.seek(0, os.SEEK_END)
    most = max(_HARMLESS_BYTES, _MOST_GROWTH * stamp[0])
    with _open_compressed(path) as packed:
        while True:
            try:
                piece = packed.read1(1 << 16)
            except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
                size = scratch.file.tell() - start
                return Unpacked(scratch, start), f"damaged after {size} unpacked bytes: {reason_of(error)}"
            if not piece:
                return Unpacked(scratch, start), None
            with _blame_room(path):
                scratch.file.write(piece)
                scratch.file.flush()
            if scratch.file.tell() - start > most:
                raise SourceError(f"{path}: unpacks to more than {most} bytes, which no images do")


@contextmanager
def _blame_room(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceError(
            f"{path}: cannot be unpacked to a temporary file ({reason_of(error)}); TMPDIR names another place"
        ) from error


def _open_compressed(path: Path) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    name = path.name.lower()
    if name.endswith(".bz2"):
        return bz2.BZ2File(path)
    return lzma.LZMAFile(path) if name.endswith(".xz") else gzip.GzipFile(path)
