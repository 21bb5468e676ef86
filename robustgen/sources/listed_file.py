"""Files that were listed once and are read piece by piece, as long as they are the ones that were listed."""

import os
import stat
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

Stamp = tuple[int, int, int]
"""Bytes, time of change in nanoseconds, and inode of a file: what tells that it is still the same."""


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a regular file; a ValueError if it is none."""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("not a regular file")
    return status.st_size, status.st_mtime_ns, status.st_ino


def check_unchanged(path: Path, status: os.stat_result, stamp: Stamp) -> None:
    """Raise a ValueError if the file at `path` is not the one that `stamp` tells of."""
    if stamp_of(status) != stamp:
        raise ValueError(f"{path.name} has changed since it was listed")


class Descriptor:
    """An open file, closed when nobody needs it any more."""

    def __init__(self, number: int) -> None:
        self.number = number

    # Bound here, as modules may be gone when the interpreter ends.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


@lru_cache(maxsize=128)
def open_once(path: Path, stamp: Stamp) -> Descriptor:
    """Open a file that many images are read from.

    Raises
    ------
    OSError
        It cannot be opened.
    ValueError
        It is not the one that `stamp` tells of.
    """
    descriptor = Descriptor(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    check_unchanged(path, os.fstat(descriptor.number), stamp)
    return descriptor


def read_at(descriptor: Descriptor, offset: int, size: int) -> bytes:
    """Read `size` bytes at `offset`; a ValueError if there are fewer."""
    pieces: list[bytes] = []
    left = size
    while left and (piece := os.pread(descriptor.number, left, offset + size - left)):
        pieces.append(piece)
        left -= len(piece)
    if left:
        raise ValueError("the archive ends within it")
    return b"".join(pieces)


def read_member(path: Path, stamp: Stamp, offset: int, size: int) -> bytes:
    """Read what lies at `offset` of an archive; an OSError or ValueError as `open_once` and `read_at`."""
    return read_at(open_once(path, stamp), offset, size)
