"""Tar archives, read and written one member at a time, with bounded memory for headers."""

import gzip
import itertools
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple

# The extended header of a file with a long name and a few attributes has some hundred bytes.
_MOST_HEADER_BYTES: Final = 1 << 16
_EXTENDED: Final = (*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_BLOCK: Final = tarfile.BLOCKSIZE
END: Final = bytes(2 * _BLOCK)
"""The two empty blocks that end an archive."""


class BoundedHeader(tarfile.TarInfo):
    """A member for ``tarfile.open(..., tarinfo=BoundedHeader)`` that refuses outsized headers.

    By default, tarfile reads a header of 3 GB into memory if its size field says so.
    """

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size < 0:
            raise tarfile.HeaderError(f"member of {self.size} bytes")
        if self.type in _EXTENDED and self.size > _MOST_HEADER_BYTES:
            raise tarfile.HeaderError(f"header of {self.size} bytes")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.HeaderError("sparse file")
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return member

    def _apply_pax_info(self, *arguments: object) -> None:
        super()._apply_pax_info(*arguments)  # type: ignore[misc]
        if self.size < 0:
            # The next header would be one already read.
            raise tarfile.HeaderError(f"member of {self.size} bytes")

    def _proc_gnusparse_10(self, *_: object) -> None:
        # Its map of holes is in the data and may have any length.
        raise tarfile.HeaderError("sparse file")


def iterate_members(file: IO[bytes]) -> Iterator[tarfile.TarInfo]:
    """Yield the members of an uncompressed tar, from the position of `file` to its end.

    Raises
    ------
    tarfile.TarError
        The archive is damaged; all members before the damage have been yielded.
    """
    with tarfile.open(fileobj=file, mode="r:", tarinfo=BoundedHeader) as archive:
        while member := archive.next():
            # By default, tarfile keeps them all.
            archive.members.clear()  # type: ignore[attr-defined]
            yield member
        # tarfile treats an invalid or missing header as the end.
        file.seek(archive.offset)
        block = file.read(_BLOCK)
    if len(block) < _BLOCK:
        raise tarfile.ReadError("the end-of-archive blocks are missing")
    if any(block):
        raise tarfile.ReadError("a header is invalid")


class TarMember(NamedTuple):
    """A file in a tar: offset of its headers, their bytes and CRC-32, and the bytes of the file."""

    offset: int
    header: int
    sum: int
    size: int


def locate_member(file: IO[bytes], entry: tarfile.TarInfo) -> TarMember:
    """Return the place of a member that `iterate_members` has yielded from `file`."""
    file.seek(entry.offset)
    header = file.read(entry.offset_data - entry.offset)
    return TarMember(entry.offset, len(header), zlib.crc32(header), entry.size)


def read_member(read: Callable[[int, int], bytes], member: TarMember) -> bytes:
    """Read a file with ``read(start, size)``; raise a ValueError if its headers have changed."""
    data = read(member.offset, member.header + member.size)
    if zlib.crc32(data[: member.header]) != member.sum:
        raise ValueError("the archive has changed since it was listed")
    return data[member.header :]


def open_compressed(file: IO[bytes]) -> tarfile.TarFile:
    """Open a tar, compressed or not, that is read from start to end."""
    return tarfile.open(fileobj=file, mode="r:*", tarinfo=BoundedHeader)


def peek_names(file: IO[bytes], count: int) -> list[str]:
    """Return the names of the first `count` members; [] if the archive is damaged."""
    try:
        with open_compressed(file) as archive:
            return [member.name for member in itertools.islice(archive, count)]
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError):
        return []


def member_bytes(name: str, content: bytes) -> bytes:
    """Return a member of an archive: header, content and padding.

    Headers follow POSIX.1-2001 and differ only in name and size (no owner, no time), independent of the
    release of Python. `END` follows the last member.
    """
    return b"".join((_header(name, len(content)), content, bytes(-len(content) % _BLOCK)))


def _header(name: str, size: int) -> bytes:
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) <= 100 and name.isascii():
        return _block(raw, size, b"0")
    # "<bytes of the record> path=<name>\n"
    rest = b" path=" + raw + b"\n"
    digits = len(str(len(rest) + len(str(len(rest)))))
    record = b"%d" % (len(rest) + digits) + rest
    padded = record + bytes(-len(record) % _BLOCK)
    return _block(b"././@PaxHeader", len(record), b"x") + padded + _block(raw[:100], size, b"0")


def _block(name: bytes, size: int, kind: bytes) -> bytes:
    """Return one header block with mode 0644, owner 0 and time 0."""
    before = name.ljust(100, b"\0") + b"0000644\0" + 2 * b"0000000\0" + b"%011o\0" % size + b"0" * 11 + b"\0"
    after = (kind.ljust(101, b"\0") + b"ustar\x0000").ljust(_BLOCK - len(before) - 8, b"\0")
    # The checksum counts its eight bytes as spaces.
    checksum = sum(before) + sum(after) + 8 * ord(" ")
    return before + b"%06o\0 " % checksum + after
