"""WebDataset: tar archives of `<key>.jpg` and `<key>.cls`, as webdataset and open_clip read them."""

import json
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import Final

from robustgen.benchmark import Variant
from robustgen.containers.tar import END, iterate_members, member_bytes
from robustgen.errors import SourceError
from robustgen.formats.base import Listing, read_names
from robustgen.formats.shards import Sample, Shards, ShardWriter, StoredSample
from robustgen.imaging import decode
from robustgen.name_lists import join_names
from robustgen.sources.sample_names import CLASS_NAMES, KEYS, sample_key, sample_name
from robustgen.storage import Store
from robustgen.storage import Writer as OpenFile

# What readers of WebDatasets call a suffix.
_SUFFIXES: Final = {".jpeg": "jpg", ".jpg": "jpg"}

INFO: Final = "_info.json"
"""What timm reads of a set."""


# --- writing -------------------------------------------------------------------------------------


class WebDatasetWriter(ShardWriter):
    """`<corruption>/<severity>/000000.tar` and `nshards.txt`; `classnames.txt`, `_info.json` at the root."""

    format = "webdataset"

    def shard_name(self, number: int) -> str:
        """Return ``000012.tar``."""
        return f"{number:06d}.tar"

    @contextmanager
    def start_shard(self, file: OpenFile, variant: Variant) -> Iterator["_OpenTar"]:
        """Begin an archive; an archive ends with two empty blocks."""
        yield _OpenTar(file)
        file.write(END)

    def list_companions(self, listing: Listing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return names of samples and classes, and for each variant which shards there are."""
        counts = {f"{folder}/nshards.txt": b"%d\n" % self.count for folder in folders}
        names = {CLASS_NAMES: join_names(listing.classes()), INFO: self._describe(listing, folders)}
        return {**super().list_companions(listing, folders), **names, **counts}

    def _describe(self, listing: Listing, folders: Sequence[str]) -> bytes:
        """Return what timm reads: of each variant, as a split, its shards and how many samples each has."""
        starts = range(0, len(listing.keys), self.shard_size)
        shards = [listing.keys[start : start + self.shard_size] for start in starts]
        splits, lacking = {}, listing.failed()
        for folder in folders:
            failed = {key for key, own in lacking if own in ("", folder)}
            lengths = [sum(key not in failed for key in keys) for keys in shards]
            splits[folder] = {
                "name": folder,
                "num_samples": sum(lengths),
                "filenames": [f"{folder}/{self.shard_name(number)}" for number in range(self.count)],
                "shard_lengths": lengths,
            }
        return json.dumps({"splits": splits}, indent=1).encode() + b"\n"

    def open_shard(self, root: Store, path: str) -> Mapping[str, Callable[[], bytes]]:
        """Return the name of each sample in an archive, and what reads its data."""
        places = _list_members(root, path)
        names = {sample_key(name): name for name in read_names(root, KEYS) or ()}
        return {
            names.get(member.rpartition(".")[0], member): partial(root.read, path, *place)
            for member, place in places.items()
            if not member.endswith(".cls")
        }


class _OpenTar:
    """An archive to which samples are added: two members for each, the file and its label in decimal."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file

    def add(self, sample: Sample) -> None:
        key, suffix = sample_key(sample.name), PurePosixPath(sample.name).suffix.lower()
        self._file.write(member_bytes(f"{key}.{_SUFFIXES.get(suffix, suffix[1:])}", sample.data))
        self._file.write(member_bytes(f"{key}.cls", b"%d" % sample.label))


def _list_members(store: Store, path: str) -> dict[str, tuple[int, int]]:
    """Return offset and size of each member of an archive.

    Raises
    ------
    SourceError
        It is damaged.
    """
    try:
        with store.open(path) as file:
            return {
                member.name: (member.offset_data, member.size)
                for member in iterate_members(file)
                if member.isreg()
            }
    except (tarfile.TarError, OSError) as error:
        raise SourceError(f"{store.location}/{path}: is damaged: {error}") from error


# --- reading -------------------------------------------------------------------------------------


@dataclass(eq=False)
class WebDatasetShards(Shards):
    """Tar archives of samples: `<key>.jpg` (or another image, or `.mp4`) and `<key>.cls`."""

    format = "webdataset"
    suffix = ".tar"

    @cached_property
    def _names_of(self) -> Mapping[str, str]:
        """Key of a sample to what it is called in a tree, if the set tells."""
        return {sample_key(name): name for name in read_names(self.store, KEYS) or ()}

    @cached_property
    def class_names(self) -> Sequence[str] | None:
        """Names of the classes that the labels count, if the set tells."""
        lines = read_names(self.store, CLASS_NAMES)
        return None if lines is None else [line.removesuffix("\r") for line in lines]

    def _read_shard(self, path: str) -> Iterator[tuple[str, StoredSample]]:
        suffixes = decode.EXTENSIONS if self.kind == "c" else (".mp4",)
        members = _list_members(self.store, path)
        labels: dict[str, int] = {}
        for name, (offset, size) in members.items():
            if name.endswith(".cls"):
                try:
                    labels[name.removesuffix(".cls")] = int(self.store.read(path, offset, min(size, 20)))
                except ValueError as error:
                    raise SourceError(f"{self.root}/{path}: is damaged: {name!r}: {error}") from error
        for member, place in members.items():
            key, _, suffix = member.rpartition(".")
            if f".{suffix.lower()}" in suffixes:
                name = self._names_of.get(key) or f"{sample_name(key)}.{suffix}"
                yield self._key(name), StoredSample(labels.get(key), partial(self.store.read, path, *place))
