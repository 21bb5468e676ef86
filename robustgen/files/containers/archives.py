"""Compressed files, zip archives and tar archives, read without extracting them."""

import bz2
import gzip
import itertools
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, NamedTuple

# --- decompression of files in pieces --------------------------------------------------------------

# Images hardly compress; a file that grows a hundredfold is meant to fill a disk.
MOST_GROWTH: Final = 100
HARMLESS_BYTES = 1 << 30


def unpack(file: IO[bytes], name: str, size: int, write: Callable[[bytes], Any]) -> None:
    """Decompress a file of `size` bytes; the suffix of `name` determines the compression.

    Raises
    ------
    ValueError
        The file is damaged, or the unpacked data are too large.
    OSError
        The file cannot be read, or the data cannot be written.
    """
    openers: dict[str, Any] = {"bz2": bz2.open, "xz": lzma.open}
    done, most = 0, max(HARMLESS_BYTES, MOST_GROWTH * size)
    try:
        with openers.get(name.lower().rpartition(".")[2], gzip.open)(file) as packed:
            while piece := packed.read(1 << 20):
                write(piece)
                done += len(piece)
                if done > most:
                    raise ValueError(f"unpacks to more than {most} bytes, too large for images")
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"damaged; decompress what can be saved ({error})") from error


# --- zip archives, listed and read in place --------------------------------------------------------

_HEADER_BYTES: Final = 30
_UTF8: Final = 0x800


class ZipMember(NamedTuple):
    """A file in a zip: offset of its header, packed bytes, CRC-32 of name and content, and unpacked bytes."""

    offset: int
    packed: int
    name_sum: int
    sum: int
    is_deflated: bool
    size: int


def list_members(file: IO[bytes]) -> Iterator[tuple[str, ZipMember | str]]:
    """Yield the names of all files, each with its member or the reason for refusing it."""
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            # Some tools on Windows separate folders by backslashes.
            if not (name := entry.orig_filename.replace("\\", "/")).endswith("/"):
                yield name, _place(entry)


def _place(entry: zipfile.ZipInfo) -> ZipMember | str:
    mode = stat.S_IFMT(entry.external_attr >> 16)
    if mode not in (0, stat.S_IFREG):
        return "a link" if mode == stat.S_IFLNK else "not a regular file"
    if entry.flag_bits & 1:
        return "encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compressed by method {entry.compress_type}, which is not supported"
    is_deflated = entry.compress_type == zipfile.ZIP_DEFLATED
    name_sum = zlib.crc32(entry.orig_filename.encode("utf-8" if entry.flag_bits & _UTF8 else "cp437"))
    sizes = entry.header_offset, entry.compress_size, name_sum, entry.CRC, is_deflated, entry.file_size
    return ZipMember(*sizes)


def read_zip_member(read: Callable[[int, int], bytes], member: ZipMember) -> bytes:
    """Read a file with ``read(start, size)``; raise a ValueError if it is damaged or has changed."""
    header = read(member.offset, _HEADER_BYTES)
    if header[:4] != b"PK\3\4":
        raise ValueError("damaged in the zip: its header is missing")
    # Name and extra field are repeated before the data, the latter with possibly another length.
    named = int.from_bytes(header[26:28], "little")
    skipped = named + int.from_bytes(header[28:30], "little")
    data = read(member.offset + _HEADER_BYTES, skipped + member.packed)
    if zlib.crc32(data[:named]) != member.name_sum:
        raise ValueError("the archive has changed since it was listed")
    data = data[skipped:]
    if member.is_deflated:
        data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, member.size + 1)
    if len(data) != member.size or zlib.crc32(data) != member.sum:
        raise ValueError("damaged in the zip: its length or sum differs")
    return data


# --- tar archives, read and written one member at a time, with bounded memory for headers ----------

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


def skip_members(file: IO[bytes], count: int) -> None:
    """Move `file` behind the next `count` files of a tar without a look at their names.

    Raises
    ------
    ValueError
        The archive ends before, or has no header where one should be.
    """
    while count:
        header = file.read(_BLOCK)
        if header[257:262] != b"ustar":
            raise ValueError("the archive is damaged, or ends too early")
        file.seek(-(-int(header[124:135], 8) // _BLOCK) * _BLOCK, 1)
        # Headers with the long name of the next file have other types.
        count -= header[156:157] == tarfile.REGTYPE


def locate_member(file: IO[bytes], entry: tarfile.TarInfo) -> TarMember:
    """Return the place of a member that `iterate_members` has yielded from `file`."""
    file.seek(entry.offset)
    header = file.read(entry.offset_data - entry.offset)
    return TarMember(entry.offset, len(header), zlib.crc32(header), entry.size)


def read_tar_member(read: Callable[[int, int], bytes], member: TarMember) -> bytes:
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


def _block(name: bytes, size: int, typeflag: bytes) -> bytes:
    """Return one header block with mode 0644, owner 0 and time 0."""
    before = name.ljust(100, b"\0") + b"0000644\0" + 2 * b"0000000\0" + b"%011o\0" % size + b"0" * 11 + b"\0"
    after = (typeflag.ljust(101, b"\0") + b"ustar\x0000").ljust(_BLOCK - len(before) - 8, b"\0")
    # The checksum counts its eight bytes as spaces.
    checksum = sum(before) + sum(after) + 8 * ord(" ")
    return before + b"%06o\0 " % checksum + after
