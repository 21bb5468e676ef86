"""Shards: files that contain the samples of many images, in the order of the images."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from typing import Any, BinaryIO, ClassVar

import numpy as np

from robustgen.errors import ImageError, SourceError
from robustgen.files.name_lists import join_names
from robustgen.files.set_files import WrittenFile
from robustgen.files.storage import Store, measure
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging import decode, video
from robustgen.pixels.imaging.arrays import Pixels
from robustgen.sets.formats.base import Dataset, Encoded, Encoder, Labels, SetContent, SetListing, Writer
from robustgen.sets.formats.units import WorkUnit, cut
from robustgen.sets.sources.files import IndexedSource
from robustgen.sets.sources.sample_names import KEYS

# A single shard is split by variants, to keep two workers busy; each reads the images again.
_FEWEST_UNITS = 2
_MOST_OPEN = 3


# --- writing -------------------------------------------------------------------------------------


AddSample = Callable[[str, int, Encoded], None]
"""Function that appends a sample: key of the source image, index of its class, and encoded image or video."""


class SampleWriter(Writer):
    """Writer of files that contain the samples of many images; one work unit writes each of them once."""

    file_per = "shard"

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
    """Unit writer of shards."""

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
    reader: ClassVar[type[IndexedSource]]

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
        shard = self.reader(f"{root.location}/{path}", kind="c" if stem == encoded.name else "p")
        with suppress(ImageError):
            return path, shard.read_bytes(stem) == encoded.data
        return path, False


# --- reading -------------------------------------------------------------------------------------


@dataclass(eq=False)
class SourceSet(Dataset):
    """A set with a folder per variant, each of which is read as a source of images.

    Parameters
    ----------
    store, kind, variants, manifest, folders
        As for `Dataset`.
    names : sequence of str, optional
        Class names in the order of the model's outputs. Default: labels are unchanged.
    """

    def __post_init__(self) -> None:
        """Limit the number of open variants, each of which takes memory."""
        self._open = lru_cache(_MOST_OPEN)(self._open_variant)

    @abstractmethod
    def open_folder(self, location: str) -> IndexedSource:
        """Open the folder of a variant."""

    def list_keys(self, variant: Variant) -> tuple[str, ...]:
        """Return the names of the images or sequences that `variant` has, in order."""
        return self._open(variant)[1]

    def read(self, variant: Variant, key: str) -> Pixels:
        """Return the image or the frames called `key`."""
        name = variant.path(key)
        with decode.name_image_in_errors(name):
            data = self._open(variant)[0].read_bytes(key)
        return decode.decode(BytesIO(data), name) if self.kind == "c" else video.read_frames(data)

    def restrict(self, variant: Variant, keys: tuple[str, ...] | None = None) -> "SourceSet":
        """Return the set with this variant alone; the keys are listed again from its folder."""
        return replace(self, variants=(variant,))

    def _open_variant(self, variant: Variant) -> tuple[IndexedSource, tuple[str, ...]]:
        """Return the source of a variant and its keys; raise a SourceError if the source refuses a file."""
        source = self.open_folder(f"{self.root}/{self.folders[variant]}")
        for name, reason in source.refused().items():
            raise SourceError(f"{source.location}: {name!r}: {reason}")
        places = source.listing.places
        return source, tuple(sorted(source.keys(), key=lambda key: places[key][:3]))


class Shards(SourceSet):
    """Set with a folder of shards per variant."""

    suffix: ClassVar[str]
    reader: ClassVar[type[IndexedSource]]

    def open_folder(self, location: str) -> IndexedSource:
        """Open the shards of a variant."""
        return self.reader(location, kind=self.kind)

    def list_labels(self, variant: Variant) -> Labels | None:
        """Return the stored labels; None if the shards lack labels."""
        source, keys = self._open(variant)
        labels = source.listing.labels
        return np.array([labels[key] for key in keys], np.int64) if len(labels) == len(keys) else None

    def find_classes(self) -> Sequence[str] | None:
        """Return the class names in `classnames.txt`, or in the schema of the tables."""
        return self._open(self.variants[0])[0].listing.classes or None
