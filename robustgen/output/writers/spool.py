"""Spools: files to which each process appends its encoded samples, until shards are put together of them.

A sample is a header and its data. A spool is called `<layout>-<generation>-<process>.spool`; what a later
generation, that is a later run, holds of a sample takes the place of what earlier ones hold.
"""

import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from robustgen.errors import OutputError
from robustgen.regular_file import open_descriptor

# Mark, bytes of the folder's name, number of the image, bytes of the data, CRC-32 of the data.
_HEADER: Final = struct.Struct("<4sIIQI")
_SAMPLE, _WITHDRAWN = b"smpl", b"void"
_MOST_PENDING: Final = 1 << 23
# Workers of several machines may share the folder.
_OWN: Final = secrets.token_hex(4)


class Staged(NamedTuple):
    """Where a sample lies in a spool.

    Attributes
    ----------
    folder : str
        Of the arm.
    image : int
        Its number.
    offset, size : int
        Of its data, in bytes.
    crc : int
        CRC-32 of its data.
    withdrawn : bool
        Whether it only says that there is no such sample any more.
    """

    folder: str
    image: int
    offset: int
    size: int
    crc: int
    withdrawn: bool


class SpoolFile:
    """The spool of this process in the folder `folder`; samples are collected and appended together."""

    def __init__(self, folder: Path, layout: str, generation: int) -> None:
        self.path = folder / f"{layout}-{generation:06d}-{_OWN}-{os.getpid()}.spool"
        self._end = self.path.stat().st_size if self.path.exists() else 0
        self._pending = bytearray()

    def add(self, folder: str, index: int, data: bytes) -> int:
        """Add a sample, and return the offset at which it ends."""
        return self._add(_SAMPLE, folder, index, data)

    def withdraw(self, folder: str, index: int) -> None:
        """Say that there is no such sample any more, whatever earlier generations hold."""
        self._add(_WITHDRAWN, folder, index, b"")

    def _add(self, mark: bytes, folder: str, index: int, data: bytes) -> int:
        name = folder.encode("utf-8", "surrogateescape")
        self._pending += _HEADER.pack(mark, len(name), index, len(data), zlib.crc32(data))
        self._pending += name
        self._pending += data
        end = self._end + len(self._pending)
        if len(self._pending) >= _MOST_PENDING:
            self.flush()
        return end

    def flush(self) -> None:
        """Append what was collected; where the disk refuses, the spool is left as it was before."""
        if not self._pending:
            return
        pending, self._pending = self._pending, bytearray()
        file = open_descriptor(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW)
        try:
            view, at = memoryview(pending), self._end
            while view:
                done = os.pwrite(file, view, at)
                view, at = view[done:], at + done
            self._end = at
        except OSError:
            os.ftruncate(file, self._end)
            raise
        finally:
            os.close(file)


class Spool(NamedTuple):
    """A spool and what its name says."""

    layout: str
    generation: int
    path: Path


def list_spools(folder: Path) -> list[Spool]:
    """Every spool in `folder`, earlier generations first."""
    found = []
    for path in folder.glob("*.spool"):
        layout, generation, *_ = path.name.split("-")
        found.append(Spool(layout, int(generation), path))
    return sorted(found, key=lambda spool: (spool.generation, spool.path.name))


def read_spool(path: Path) -> Iterator[Staged]:
    """All whole samples of a spool; one that a killed process left torn at the end is passed over."""
    file = open_descriptor(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        at, size = 0, os.fstat(file).st_size
        while len(header := os.pread(file, _HEADER.size, at)) == _HEADER.size:
            mark, name_size, index, data_size, crc = _HEADER.unpack(header)
            start = at + _HEADER.size + name_size
            at = start + data_size
            if mark not in (_SAMPLE, _WITHDRAWN) or at > size:
                return
            name = os.pread(file, name_size, start - name_size).decode("utf-8", "surrogateescape")
            yield Staged(name, index, start, data_size, crc, mark == _WITHDRAWN)
    finally:
        os.close(file)


def read_data(path: Path, offset: int, size: int, crc: int) -> bytes:
    """The data of a sample, which lies at `offset`.

    Raises
    ------
    OutputError
        The spool is damaged.
    """
    file = open_descriptor(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        data = os.pread(file, size, offset)
    finally:
        os.close(file)
    if zlib.crc32(data) != crc:
        raise OutputError(f"{path} is damaged; remove it and give the command again")
    return data


_NOTHING, _VOID = -1, -2


class Staging:
    """Where the staged samples of one arm lie, of a set of so many `images`."""

    def __init__(self, images: int) -> None:
        # Millions of samples are staged of a whole set, so arrays it is.
        self._spools = np.full(images, _NOTHING, np.int32)
        self._places = np.zeros((images, 3), np.int64)

    def take(self, number: int, staged: Staged, generations: Sequence[int]) -> None:
        """Take note of what the spool `number` holds; spools come by generation."""
        held = self._spools[staged.image]
        if not staged.withdrawn:
            self._spools[staged.image] = number
            self._places[staged.image] = staged.offset, staged.size, staged.crc
        # Within a generation an image is withdrawn before it is made anew, if it is.
        elif held < 0 or generations[held] < generations[number]:
            self._spools[staged.image] = _VOID

    def touches(self, span: range) -> bool:
        """Whether anything is staged of the images in `span`."""
        return bool((self._spools[span.start : span.stop] != _NOTHING).any())

    def is_withdrawn(self, index: int) -> bool:
        """Whether the sample that a finished shard holds of this image is void."""
        return bool(self._spools[index] == _VOID)

    def read(self, index: int, spools: Sequence[Path]) -> bytes | None:
        """The sample of an image, or None where none is staged."""
        number = self._spools[index]
        return None if number < 0 else read_data(spools[number], *map(int, self._places[index]))
