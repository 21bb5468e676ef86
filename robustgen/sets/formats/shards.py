"""Shards: WebDataset and Parquet files with many images each."""

import hashlib
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, BinaryIO, ClassVar, Final

from robustgen.errors import ImageError
from robustgen.files.containers.archives import END, member_bytes
from robustgen.files.containers.tables import import_pyarrow
from robustgen.files.set_files import TABLES, WrittenFile
from robustgen.files.storage import Store, measure
from robustgen.files.text_files import join_names, split_names
from robustgen.pixels.benchmarks.kinds import Benchmark, Content, Kind, Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import name_image_in_errors
from robustgen.pixels.imaging.video import read_frames
from robustgen.sets.formats import Format
from robustgen.sets.formats.base import (
    Encoded,
    Encoder,
    FilePer,
    SetContent,
    SetListing,
    WorkUnit,
    Writer,
    WrittenSet,
    cut,
    without_suffix,
)
from robustgen.sets.sources.base import class_of, name_source_in_errors
from robustgen.sets.sources.classes import CLASS_NAMES, KEYS, sample_key
from robustgen.sets.sources.files import EncodedSource, SourceListing
from robustgen.sets.sources.places import SourceFile
from robustgen.sets.sources.shards import Parquet, WebDataset

# A single shard is split by variants, to keep two workers busy; each reads the images again.
_FEWEST_UNITS = 2
# One for each variant; the places of a thousand images take 0.4 MB.
_MOST_OPEN = 128

Shards = WebDataset | Parquet

ENCODERS: Final[Mapping[Content, str]] = {"c": "jpeg", "p": "mp4"}
"""Default encodings of the images and sequences in shards."""


# --- writing -------------------------------------------------------------------------------------


AddSample = Callable[[str, int, Encoded], None]
"""Function that appends a sample: key of the source image, index of its class, and encoded image or video."""


class SampleWriter(Writer):
    """Writer of files that contain the samples of many images; one work unit writes each of them once."""

    file_per: ClassVar[FilePer] = "shard"

    @abstractmethod
    def shard_number(self, index: int, key: str) -> int:
        """Return the number of the shard with the image `key`, which is number `index` in the plan."""

    @abstractmethod
    def shard_path(self, variant: Variant, number: int) -> str:
        """Return the path of shard `number` of a variant, below the output."""

    @abstractmethod
    def start_shard(self, file: BinaryIO, variant: Variant, number: int) -> AbstractContextManager[AddSample]:
        """Begin shard `number` of `variant` in `file`, and return a function that appends a sample.

        The bytes depend only on samples and settings.
        """

    @contextmanager
    def open(self, root: Store, unit: WorkUnit, label: Callable[[str], int]) -> Iterator["_OpenShards"]:
        """Open the shards of `unit`, one for each variant."""
        number = self.shard_number(unit.start, unit.keys[0])
        with ExitStack() as files, ExitStack() as shards:
            unit_writer = _OpenShards(label, shards)
            for variant in unit.variants:
                path = self.shard_path(variant, number)
                file = files.enter_context(root.create(path))
                unit_writer.files[path] = file
                unit_writer.add[variant] = shards.enter_context(self.start_shard(file, variant, number))
            yield unit_writer


class _OpenShards:
    def __init__(self, label: Callable[[str], int], shards: ExitStack) -> None:
        self._label, self._shards = label, shards
        self.files: dict[str, BinaryIO] = {}
        self.add: dict[Variant, AddSample] = {}

    def write(self, variant: Variant, index: int, key: str, encoded: Iterable[Encoded]) -> list[WrittenFile]:
        (sample,) = encoded
        self.add[variant](key, self._label(key), sample)
        return []

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        self._shards.close()
        return [WrittenFile(path, *measure(file)) for path, file in self.files.items()]


class ShardWriter(SampleWriter):
    """Writer of shards of a fixed number of images, each encoded as one file."""

    format: ClassVar[str]
    reader: ClassVar[type[Shards]]

    def __init__(self, encoder: Encoder, images: int, shard_size: int) -> None:
        super().__init__(encoder)
        self.shard_size, self.count = shard_size, -(-images // shard_size)

    @classmethod
    def create(cls, encoder: Encoder, content: SetContent) -> Writer:
        """Return the writer of a set."""
        return cls(encoder, len(content.keys), content.shard_size)

    @abstractmethod
    def shard_name(self, number: int) -> str:
        """Return the file name of shard `number`, counted from 0."""

    def shard_number(self, index: int, key: str) -> int:
        """Return the number of the shard with image number `index`."""
        return index // self.shard_size

    def shard_path(self, variant: Variant, number: int) -> str:
        """Return the path of shard `number` of a variant, below the output."""
        return variant.path(self.shard_name(number))

    def settings(self) -> dict[str, Any]:
        """Return format, shard size, and the settings of the samples."""
        return {"format": self.format, "shard_size": self.shard_size, "sample": self.encoder.settings()}

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield a unit for the images of each shard; a unit keeps one shard open for each variant."""
        names = [*dict.fromkeys(variant.name for variant in variants)]
        size = -(-len(names) // max(1, _FEWEST_UNITS // self.count))
        groups = [
            tuple(variant for variant in variants if variant.name in names[at : at + size])
            for at in range(0, len(names), size)
        ]
        yield from cut(keys, self.shard_size, groups)

    def list_companions(self, listing: SetListing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the names of the samples; keys in shards are not the full names."""
        names = [self.encoder.output_name(key) or key for key in listing.keys]
        return {KEYS: join_names(names)}

    def find_output(
        self, root: Store, variant: Variant, index: int, key: str, encoded: Encoded
    ) -> tuple[str, bool]:
        """Return the path of the shard, and whether its sample is the same."""
        path = self.shard_path(variant, self.shard_number(index, key))
        stem = encoded.name.removesuffix(".mp4")
        with _OPENING:
            shard = _open_known(self, root, path, "c" if stem == encoded.name else "p")
        with suppress(ImageError):
            return path, shard(stem) == encoded.data
        return path, False


class _KnownShard:
    """A shard whose samples are read by their names; the first thread that asks lists it.

    All shards share the memory of one store.
    """

    def __init__(self, reader: type[Shards], root: Store, path: str, kind: Kind) -> None:
        self._shards, self._listing = reader(f"{root.location}/{path}"), Lock()
        self._source, self._place = ShardSource(self._shards, kind), (root, path)

    def __call__(self, name: str) -> bytes:
        """Return the bytes of a sample."""
        with self._listing:
            if "files" not in vars(self._shards):
                self._shards.files = [SourceFile.look(*self._place)]
            self._source.size(name)
        return self._source.read_bytes(name)


_OPENING: Final = Lock()


@lru_cache(_MOST_OPEN)
def _open_known(writer: ShardWriter, root: Store, path: str, kind: Kind) -> _KnownShard:
    """Open a shard for the comparisons of one writer; the latest ones stay open."""
    return _KnownShard(writer.reader, root, path, kind)


# --- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordedSamples:
    """Samples of a complete set, as its records list them; all variants share one object.

    Attributes
    ----------
    names : sequence of str
        Names of the samples, with their suffixes, in the order of the files.
    numbers : dict of str to int
        Key to the number of the sample.
    labels : dict of str to int, optional
        None if only the samples contain them.
    file_size : int
        Number of samples in each file except the last.
    """

    names: Sequence[str]
    numbers: dict[str, int]
    labels: dict[str, int] | None
    file_size: int


class ShardSource(EncodedSource):
    """Images or sequences of a variant, under the names and labels that its samples were written with.

    Keys are in the order of the files, and lack the suffix for sequences.

    Parameters
    ----------
    shards : WebDataset or Parquet
        Files of the variant.
    kind : {"c", "p"}
    recorded : RecordedSamples, optional
        The samples of the set, so that only those files are listed from which images are read.
    """

    def __init__(self, shards: Shards, kind: Kind, recorded: RecordedSamples | None = None) -> None:
        super().__init__(shards.location)
        self._shards, self._kind, self._recorded = shards, kind, recorded

    @cached_property
    def _samples(self) -> RecordedSamples | None:
        """Return the recorded samples, unless files have been added or removed since.

        A server is asked for everything once, because each look into a file would be a round trip.
        """
        recorded, files = self._recorded, self._shards.files
        is_whole = recorded and len(files) == -(-len(recorded.names) // recorded.file_size)
        return recorded if is_whole and files[0].store.is_local else None

    @cached_property
    def listing(self) -> SourceListing:
        """Return keys, labels and places of all samples; raise a SourceError if they cannot be read."""
        with name_source_in_errors(self.location):
            found = self._shards.list_samples(self._kind)
        listing = SourceListing({}, found.refused, found.classes, remarks=found.remarks)
        for place, label, name in found.places.values():
            key = name if self._kind == "c" else without_suffix(name)
            leaves = key.startswith("/") or ".." in key.split("/")
            listing.add(key, place, "its path leaves the folder" if leaves else None)
            if isinstance(label, int):
                listing.labels[key] = label
        return listing

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        if self._samples:
            return tuple(self._samples.numbers)
        return tuple(sorted(super()._keys, key=lambda key: self.listing.places[key][:3]))

    def refused(self) -> dict[str, str]:
        """Return the keys of all refused images and files, with the reasons; none of a complete set."""
        return {} if self._samples else super().refused()

    def label(self, key: str) -> int:
        """Return the stored number of a sample; -1 if it has none."""
        labels = self._samples and self._samples.labels
        return (labels or self.listing.labels).get(key, -1)

    def _place(self, key: str) -> Any:
        """Return the place of one sample; raise an ImageError if `key` is unknown."""
        if not self._samples:
            return super()._place(key)
        try:
            number = self._samples.numbers[key]
        except KeyError:
            raise ImageError(f"no such image in {self.location}", key) from None
        file, index = divmod(number, self._samples.file_size)
        with name_image_in_errors(key):
            return self._shards.find_sample(file, index, self._samples.names[number], self._kind)

    def size(self, key: str) -> int:
        """Return the size of one sample in bytes; raise an ImageError if `key` is unknown."""
        return int(self._place(key)[-1])

    def read_bytes(self, key: str) -> bytes:
        """Read the file of one sample."""
        return self._shards.read_sample(self._place(key))

    def decode(self, data: Any, key: str) -> Rgb:
        """Decode one image (H, W, 3), or the frames (T, H, W, 3) of a video; uint8."""
        return super().decode(data, key) if self._kind == "c" else read_frames(data, key)


class ShardSet(WrittenSet):
    """Set with a folder of shards per variant."""

    suffix: ClassVar[str]
    reader: ClassVar[type[Shards]]

    def open(self, variant: Variant) -> ShardSource:
        """Open the shards of a variant."""
        return ShardSource(self.reader(f"{self.root}/{self.places[variant]}"), self.kind, self._recorded)

    @cached_property
    def _recorded(self) -> RecordedSamples | None:
        """Return the samples of a set that lacks none, from its records; None without these."""
        size = self.manifest.get("settings", {}).get("output", {}).get("shard_size")
        if not (size and self.manifest["complete"] and self.store.exists(KEYS)):
            return None
        names = split_names(self.store.read(KEYS))
        keys = names if self.kind == "c" else [without_suffix(name) for name in names]
        numbers = {key: number for number, key in enumerate(keys)}
        # Tables replace what is no UTF-8.
        if len(numbers) != self.manifest["images"] or any(name != _as_text(name) for name in names):
            return None
        labels = {name: label for label, name in enumerate(self.manifest["classes"])}
        known = {key: labels[class_of(key)] for key in keys if class_of(key) in labels}
        return RecordedSamples(names, numbers, known if len(known) == len(keys) else None, size)


# --- WebDataset ----------------------------------------------------------------------------------


# Suffixes that readers of WebDatasets expect.
_SUFFIXES: Final = {"jpeg": "jpg"}

INFO: Final = "_info.json"
"""File that describes a set for timm."""


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


class WebDatasetShards(ShardSet):
    """Set of tar archives of samples: `<key>.jpg` (or another image, or `.mp4`) and `<key>.cls`."""

    format = "webdataset"
    suffix = ".tar"
    reader = WebDataset


WEBDATASET: Final = Format("WebDataset", ENCODERS, WebDatasetWriter, WebDatasetShards)


# --- Parquet -------------------------------------------------------------------------------------


# Readers fetch complete row groups; viewers of hubs need small ones.
_ROWS_PER_GROUP: Final = 100

SAMPLE_COLUMNS: Final[Mapping[Kind, str]] = {"c": "image", "p": "video"}
"""Names of the sample column, by which the library `datasets` detects its type."""


class ParquetWriter(ShardWriter):
    """Writer of `data/<corruption>/<severity>/00000-of-00050.parquet`.

    Columns are ``image`` (or ``video``), a struct of ``bytes`` and ``path``; ``label``; the operation,
    its level, and the key of the source image. The names of all classes are in the metadata of the schema,
    where the library `datasets` expects them.
    """

    format = "parquet"
    reader = Parquet

    def __init__(
        self, encoder: Encoder, images: int, shard_size: int, benchmark: Benchmark, classes: Iterable[str]
    ) -> None:
        super().__init__(encoder, images, shard_size)
        sample = SAMPLE_COLUMNS[benchmark.kind]
        self.columns = sample, "label", benchmark.operation, benchmark.level, "key"
        self.classes = [_as_text(name) for name in classes]

    @classmethod
    def create(cls, encoder: Encoder, content: SetContent) -> Writer:
        """Return the writer of a set."""
        images, classes = len(content.keys), content.source.classes
        return cls(encoder, images, content.shard_size, content.benchmark, classes)

    def settings(self) -> dict[str, Any]:
        """Return the settings of samples and shards, and the columns."""
        return super().settings() | {"columns": [*self.columns]}

    def versions(self) -> dict[str, str]:
        """Return the versions for the samples, and that of pyarrow."""
        return super().versions() | {"pyarrow": str(import_pyarrow()[0].__version__)}

    def shard_name(self, number: int) -> str:
        """Return ``00012-of-00050.parquet``."""
        return f"{number:05d}-of-{self.count:05d}.parquet"

    def shard_path(self, variant: Variant, number: int) -> str:
        """Return ``data/fog/3/00012-of-00050.parquet``."""
        return f"{TABLES}/{super().shard_path(variant, number)}"

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield a unit for the images of each shard; units depend on the classes and the shard count."""
        shared = hashlib.sha256("\0".join([str(self.count), *self.classes]).encode()).hexdigest()
        for unit in super().cut(keys, variants):
            yield replace(unit, shared=shared)

    @contextmanager
    def start_shard(self, file: BinaryIO, variant: Variant, number: int) -> Iterator[AddSample]:
        """Begin an uncompressed table; images and videos are already compressed."""
        pyarrow, parquet = import_pyarrow()
        cell = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
        text = {"dtype": "string", "_type": "Value"}
        types: tuple[tuple[Any, dict[str, Any]], ...] = (
            (cell, {"_type": self.columns[0].capitalize()}),
            (pyarrow.int64(), {"names": self.classes, "_type": "ClassLabel"}),
            (pyarrow.string(), text),
            # Severities may be fractional, and all files share one schema.
            (pyarrow.float64(), {"dtype": "float64", "_type": "Value"}),
            (pyarrow.string(), text),
        )
        features = {name: feature for name, (_, feature) in zip(self.columns, types, strict=True)}
        schema = pyarrow.schema(
            [(name, data_type) for name, (data_type, _) in zip(self.columns, types, strict=True)],
            metadata={"huggingface": json.dumps({"info": {"features": features}})},
        )
        with parquet.ParquetWriter(
            file, schema, compression="none", use_dictionary=False, write_statistics=False, store_schema=True
        ) as writer:
            rows: list[dict[str, Any]] = []

            def add(key: str, label: int, sample: Encoded) -> None:
                content = {"bytes": sample.data, "path": _as_text(sample.name)}
                values = content, label, variant.name, float(variant.level), _as_text(key)
                rows.append(dict(zip(self.columns, values, strict=True)))
                if len(rows) == _ROWS_PER_GROUP:
                    flush()

            def flush() -> None:
                writer.write_table(pyarrow.Table.from_pylist(rows, schema))
                rows.clear()

            yield add
            if rows:
                flush()


def _as_text(name: str) -> str:
    """Return `name` with characters invalid in UTF-8 replaced."""
    return name.encode("utf-8", "replace").decode()


class ParquetShards(ShardSet):
    """Set of Parquet files with a column of images or videos and one of labels."""

    format = "parquet"
    suffix = ".parquet"
    reader = Parquet


PARQUET: Final = Format("Parquet", ENCODERS, ParquetWriter, ParquetShards)
