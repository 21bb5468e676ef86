"""Zip archives, listed and read in place."""

import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple

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
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "a link" if kind == stat.S_IFLNK else "not a regular file"
    if entry.flag_bits & 1:
        return "encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compressed by method {entry.compress_type}, which is not supported"
    is_deflated = entry.compress_type == zipfile.ZIP_DEFLATED
    name_sum = zlib.crc32(entry.orig_filename.encode("utf-8" if entry.flag_bits & _UTF8 else "cp437"))
    sizes = entry.header_offset, entry.compress_size, name_sum, entry.CRC, is_deflated, entry.file_size
    return ZipMember(*sizes)


def read_member(read: Callable[[int, int], bytes], member: ZipMember) -> bytes:
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
