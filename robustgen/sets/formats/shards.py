"""Shards: files that contain the samples of many images, in the order of the images."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, BinaryIO, ClassVar

from robustgen.errors import ImageError
from robustgen.files.set_files import WrittenFile
from robustgen.files.storage import Store, measure
from robustgen.files.text_files import join_names
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.sets.formats.base import Encoded, Encoder, SetContent, SetListing, Writer, WrittenSet
from robustgen.sets.formats.units import WorkUnit, cut
from robustgen.sets.sources.files import IndexedSource
from robustgen.sets.sources.sample_names import KEYS

# A single shard is split by variants, to keep two workers busy; each reads the images again.
_FEWEST_UNITS = 2


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


class Shards(WrittenSet):
    """Set with a folder of shards per variant."""

    suffix: ClassVar[str]
    reader: ClassVar[type[IndexedSource]]

    def open(self, variant: Variant) -> IndexedSource:
        """Open the shards of a variant."""
        return self.reader(f"{self.root}/{self.places[variant]}", kind=self.kind)
