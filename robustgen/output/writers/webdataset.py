"""WebDataset: tar archives of `<key>.jpg` and `<key>.cls`, as webdataset and open_clip read them."""

import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from robustgen.errors import OutputError
from robustgen.name_lists import join_names
from robustgen.output.writers.shards import Sample, ShardWriter
from robustgen.regular_file import open_regular
from robustgen.sources.listed_file import read_member, stamp_of
from robustgen.sources.sample_names import CLASS_NAMES, sample_key
from robustgen.sources.tar_members import iterate_members

_BLOCK: Final = 512
# What readers of WebDatasets call a suffix.
_SUFFIXES: Final = {".jpeg": "jpg", ".jpg": "jpg"}


class WebDatasetWriter(ShardWriter):
    """`<corruption>/<severity>/000000.tar`, with `nshards.txt` beside and `classnames.txt` at the root.

    All headers are alike but for name and size: no owner, no time.
    """

    format = "webdataset"

    def shard_name(self, number: int, count: int) -> str:
        """``000012.tar``."""
        return f"{number:06d}.tar"

    def companions(self, count: int) -> Mapping[str, bytes]:
        """How many shards there are."""
        return {"nshards.txt": b"%d\n" % count}

    def root_companions(self, classes: Sequence[str]) -> Mapping[str, bytes]:
        """The names of the classes, in the order of the labels."""
        return {CLASS_NAMES: join_names(classes)}

    def write_shard(self, file: BinaryIO, samples: Iterator[Sample], classes: Sequence[str]) -> None:
        """Two members for each sample: the file, and its label in decimal."""
        for name, label, data in samples:
            key = sample_key(name)
            suffix = PurePosixPath(name).suffix.lower()
            for member, content in (
                (f"{key}.{_SUFFIXES.get(suffix, suffix[1:])}", data),
                (f"{key}.cls", b"%d" % label),
            ):
                file.write(_header(member, len(content)))
                file.write(content)
                file.write(bytes(-len(content) % _BLOCK))
        # An archive ends with two empty blocks.
        file.write(bytes(2 * _BLOCK))

    def read_shard(self, path: Path) -> Mapping[str, Callable[[], bytes]]:
        """Name of each sample to what reads its data."""
        names = {sample_key(name): name for name in map(self.encoder.output_name, self._keys) if name}
        try:
            with open_regular(path) as file:
                stamp = stamp_of(os.fstat(file.fileno()))
                return {
                    names[key]: partial(read_member, path, stamp, member.offset_data, member.size)
                    for member in iterate_members(file)
                    if not member.name.endswith(".cls") and (key := member.name.rpartition(".")[0]) in names
                }
        except tarfile.TarError as error:
            raise OutputError(f"{path} is damaged: {error}") from error


def _header(name: str, size: int) -> bytes:
    """The header of a member as POSIX.1-2001 has it; releases of Python write it differently."""
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) <= 100 and name.isascii():
        return _block(raw, size, b"0")
    record = _pax_record(b"path", raw)
    padded = record + bytes(-len(record) % _BLOCK)
    return _block(b"././@PaxHeader", len(record), b"x") + padded + _block(raw[:100], size, b"0")


def _block(name: bytes, size: int, kind: bytes) -> bytes:
    """One block: readable by all, of nobody, of the beginning of time."""
    before = name.ljust(100, b"\0") + b"0000644\0" + 2 * b"0000000\0" + b"%011o\0" % size + b"0" * 11 + b"\0"
    after = (kind.ljust(101, b"\0") + b"ustar\x0000").ljust(_BLOCK - len(before) - 8, b"\0")
    # The checksum counts its own eight bytes as spaces.
    checksum = sum(before) + sum(after) + 8 * ord(" ")
    return before + b"%06o\0 " % checksum + after


def _pax_record(key: bytes, value: bytes) -> bytes:
    """``"<bytes of the record> <key>=<value>\\n"``."""
    rest = b" " + key + b"=" + value + b"\n"
    size = len(rest) + len(str(len(rest)))
    size = len(rest) + len(str(size))
    return b"%d" % size + rest
