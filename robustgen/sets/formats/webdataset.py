"""WebDataset: tar archives of `<key>.jpg` and `<key>.cls`, as webdataset and open_clip read them."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Final

from robustgen.files.containers.archives import END, member_bytes
from robustgen.files.text_files import join_names
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.sets.formats import DEFAULTS, Format
from robustgen.sets.formats.base import Encoded, SetListing
from robustgen.sets.formats.shards import AddSample, Shards, ShardWriter
from robustgen.sets.sources.sample_names import CLASS_NAMES, sample_key
from robustgen.sets.sources.webdataset import WebDataset

# Suffixes that readers of WebDatasets expect.
_SUFFIXES: Final = {"jpeg": "jpg"}

INFO: Final = "_info.json"
"""File that describes a set for timm."""


# --- writing -------------------------------------------------------------------------------------


class WebDatasetWriter(ShardWriter):
    """Writer of `<corruption>/<severity>/000000.tar` and `nshards.txt`, with root files for readers."""

    format = "webdataset"
    reader = WebDataset

    def shard_name(self, number: int) -> str:
        """Return ``000012.tar``."""
        return f"{number:06d}.tar"

    @contextmanager
    def start_shard(self, file: BinaryIO, variant: Variant, number: int) -> Iterator[AddSample]:
        """Begin an archive with two members per sample: the file, and its label in decimal."""

        def add(key: str, label: int, sample: Encoded) -> None:
            file.write(_pack(sample, label))

        yield add
        file.write(END)

    def measure(self, encoded: Encoded) -> int:
        """Return the number of bytes of both members."""
        return len(_pack(encoded, 0))

    def list_companions(self, listing: SetListing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the files that name samples and classes, and that count and describe the shards."""
        counts = {f"{folder}/nshards.txt": b"%d\n" % self.count for folder in folders}
        names = {CLASS_NAMES: join_names(listing.classes()), INFO: self._describe(listing, folders)}
        return {**super().list_companions(listing, folders), **names, **counts}

    def _describe(self, listing: SetListing, folders: Sequence[str]) -> bytes:
        """Return the content of `_info.json`: shards and sample counts of each variant, as splits."""
        count, size, splits, lacking = len(listing.keys), self.shard_size, {}, listing.failed()
        affected = {key for key, _ in lacking}
        shards = {key: self.shard_number(i, key) for i, key in enumerate(listing.keys) if key in affected}
        for folder in folders:
            failed = {key for key, own in lacking if own in ("", folder)}
            omitted = Counter(shards[key] for key in failed & shards.keys())
            lengths = [min(size, count - number * size) - omitted[number] for number in range(self.count)]
            splits[folder] = {
                "name": folder,
                "num_samples": sum(lengths),
                "filenames": [f"{folder}/{self.shard_name(number)}" for number in range(self.count)],
                "shard_lengths": lengths,
            }
        return json.dumps({"splits": splits}, indent=1).encode() + b"\n"


def _pack(sample: Encoded, label: int) -> bytes:
    """Return the members of a sample: the file, and its label."""
    stem, suffix = sample_key(sample.name), sample.name.rpartition(".")[2].lower()
    image = member_bytes(f"{stem}.{_SUFFIXES.get(suffix, suffix)}", sample.data)
    return image + member_bytes(f"{stem}.cls", b"%d" % label)


# --- reading -------------------------------------------------------------------------------------


class WebDatasetShards(Shards):
    """Set of tar archives of samples: `<key>.jpg` (or another image, or `.mp4`) and `<key>.cls`."""

    format = "webdataset"
    suffix = ".tar"
    reader = WebDataset


WEBDATASET: Final = Format("WebDataset", DEFAULTS, WebDatasetWriter, WebDatasetShards)
