"""Shards: files that hold the samples of many images each, in the order of the images."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from robustgen.benchmark import Variant
from robustgen.errors import ImageError, SourceError
from robustgen.formats.base import (
    Encoded,
    FolderDataset,
    Labels,
    Listing,
    Pixels,
    TreeWriter,
    Writer,
    WrittenFile,
    describe_difference,
    name_contents,
)
from robustgen.formats.units import WorkUnit, cut
from robustgen.imaging import decode, video
from robustgen.imaging.decode import reason_of
from robustgen.imaging.pixels import Rgb
from robustgen.name_lists import join_names
from robustgen.sources.sample_names import KEYS
from robustgen.storage import Store
from robustgen.storage import Writer as OpenFile

SHARD_SIZE = 1000
"""Images of a shard where the config does not say."""

# A single shard is cut by variants too, so that it keeps two workers busy; each reads the images again.
_FEWEST_UNITS = 2
_MOST_ARMS_LISTED = 2


# --- writing -------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """Part of a shard that belongs to one image.

    Attributes
    ----------
    name : str
        POSIX path that the file would have in a tree, below the folder of the variant.
    label : int
        Index of its class.
    data : bytes
        The encoded image or video.
    key : str
        The source image.
    """

    name: str
    label: int
    data: bytes
    key: str


class OpenShard(Protocol):
    """A shard in the making."""

    def add(self, sample: Sample) -> None:
        """Append a sample."""


class ShardWriter(Writer):
    """Writes shards of the files that `encoder` makes; a shard is written once, by one work unit.

    Parameters
    ----------
    encoder : TreeWriter
        Makes one file for each image.
    images : int
        Number of images in the set.
    shard_size : int
        Images of a shard.
    """

    format: ClassVar[str]
    joint = True
    needs_labels = True

    def __init__(self, encoder: TreeWriter, images: int, shard_size: int) -> None:
        self.encoder, self.shard_size, self.count = encoder, shard_size, -(-images // shard_size)

    # --- what is particular to a kind of shard

    @abstractmethod
    def shard_name(self, number: int) -> str:
        """Return the file name of the shard `number`, from 0."""

    def shard_path(self, variant: Variant, number: int) -> str:
        """Return where the shard `number` of a variant lies below the output."""
        return variant.path(self.shard_name(number))

    @abstractmethod
    def start_shard(self, file: OpenFile, variant: Variant) -> AbstractContextManager[OpenShard]:
        """Begin a shard of `variant` in `file`; its bytes depend on its samples and settings alone."""

    @abstractmethod
    def open_shard(self, root: Store, path: str) -> Mapping[str, Callable[[], bytes]]:
        """Return the name of each sample in a shard, and what reads its data.

        Raises
        ------
        SourceError
            The shard is damaged.
        """

    # --- what it is

    def settings(self) -> dict[str, Any]:
        """Return format, size of the shards, and what decides the bytes of a sample."""
        return {"format": self.format, "shard_size": self.shard_size, "sample": self.encoder.settings()}

    def versions(self) -> dict[str, str]:
        """Return the versions that decide the bytes of a sample."""
        return self.encoder.versions()

    def output_name(self, key: str) -> str | None:
        """Return the name of the sample."""
        return self.encoder.output_name(key)

    def as_read(self, variant: Variant, key: str, pixels: Rgb) -> Rgb:
        """Return what is read of the file in the shard."""
        return self.encoder.as_read(variant, key, pixels)

    def measure(self, variant: Variant, key: str, pixels: Rgb) -> int:
        """Return the bytes of the file; the shard adds little."""
        return self.encoder.measure(variant, key, pixels)

    # --- a run

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield a unit for the images of each shard; there are as many shards open as variants in a unit."""
        names = [*dict.fromkeys(variant.name for variant in variants)]
        size = -(-len(names) // max(1, _FEWEST_UNITS // self.count))
        groups = [
            tuple(variant for variant in variants if variant.name in names[at : at + size])
            for at in range(0, len(names), size)
        ]
        yield from cut(keys, self.shard_size, groups)

    @contextmanager
    def open(self, root: Store, unit: WorkUnit, labels: Sequence[int]) -> Iterator["_OpenShards"]:
        """Open the shards of `unit`, one for each variant."""
        with _OpenShards(self, root, unit, labels) as opened:
            yield opened

    def list_companions(self, listing: Listing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the names of the samples, which keys in shards do not fully tell."""
        names = [self.encoder.output_name(key) or key for key in listing.keys]
        return {KEYS: join_names(names)}

    def find_differences(
        self, root: Store, variant: Variant, index: int, key: str, pixels: Rgb
    ) -> Iterator[tuple[str, str]]:
        """Yield the shard if it does not hold what `pixels` are encoded to."""
        (encoded,) = self.encoder.encode(variant, key, pixels)
        path = self.shard_path(variant, index // self.shard_size)
        try:
            held = self.open_shard(root, path)
        except (OSError, SourceError):
            return  # the checksums have shown that
        if encoded.name not in held or held[encoded.name]() != encoded.data:
            yield path, f": {key} from what the source gives now"


class _OpenShards:
    """The shards of one work unit."""

    def __init__(self, writer: ShardWriter, root: Store, unit: WorkUnit, labels: Sequence[int]) -> None:
        self._writer, self._unit, self._labels = writer, unit, labels
        number = unit.start // writer.shard_size
        self._paths = {variant: writer.shard_path(variant, number) for variant in unit.variants}
        self._root, self._stack = root, ExitStack()

    def __enter__(self) -> "_OpenShards":
        self._files = {v: self._stack.enter_context(self._root.create(p)) for v, p in self._paths.items()}
        self._inner = ExitStack()
        self._shards = {
            v: self._inner.enter_context(self._writer.start_shard(file, v)) for v, file in self._files.items()
        }
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def write(self, variant: Variant, index: int, key: str, pixels: Rgb) -> list[WrittenFile]:
        (encoded,) = self._writer.encoder.encode(variant, key, pixels)
        return self._add(variant, index, key, encoded)

    def write_frames(
        self, variant: Variant, index: int, key: str, frames: Iterator[Rgb]
    ) -> list[WrittenFile]:
        (encoded,) = self._writer.encoder.encode_frames(variant, key, frames)
        return self._add(variant, index, key, encoded)

    def _add(self, variant: Variant, index: int, key: str, encoded: Encoded) -> list[WrittenFile]:
        label = self._labels[index - self._unit.start]
        self._shards[variant].add(Sample(encoded.name, label, encoded.data, key))
        return []

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        self._inner.close()
        return [WrittenFile(self._paths[v], file.size, file.sha256) for v, file in self._files.items()]


# --- reading -------------------------------------------------------------------------------------


class StoredSample(NamedTuple):
    """A sample of a shard.

    Attributes
    ----------
    label : int or None
        Index of its class, if the shard tells.
    read : callable
        Returns the encoded image or video.
    """

    label: int | None
    read: Callable[[], bytes]


@dataclass(eq=False)
class Shards(FolderDataset):
    """A folder of shards per variant.

    Parameters
    ----------
    store, kind, arms, about, folders
        As for `FolderDataset`.
    names : sequence of str, optional
        Names of the classes in the order of the model's outputs; otherwise the labels stay as they are.
    """

    suffix: ClassVar[str]

    _listed: dict[Variant, Mapping[str, StoredSample]] = field(default_factory=dict)

    # --- what is particular to a kind of shard

    @abstractmethod
    def _read_shard(self, path: str) -> Iterator[tuple[str, StoredSample]]:
        """Yield key and sample of each image in the shard at `path`, in order.

        Raises
        ------
        SourceError
            It is damaged, or holds something else.
        """

    # --- as `Dataset` has it

    def keys(self, arm: Variant) -> tuple[str, ...]:
        """Return the names of the samples; a SourceError if variants differ."""
        first = tuple(self._samples(self.arms[0]))
        own = first if arm == self.arms[0] else tuple(self._samples(arm))
        if own != first:
            folder = f"{self.root}/{self.folders[arm]}"
            raise SourceError(f"{folder}: {describe_difference(own, first, 'images')}")
        return first

    def labels(self, arm: Variant) -> Labels | None:
        """Return the true classes; None if the shards do not tell."""
        samples = self._samples(arm)
        labels = [sample.label for sample in samples.values()]
        if self.names is None or self.class_names is None:
            known = [label for label in labels if label is not None]
            return np.array(known, np.int64) if len(known) == len(labels) else None
        index = {name: i for i, name in enumerate(self.names)}
        if missing := [name for name in self.class_names if name not in index]:
            raise SourceError(f"{self.root}: class {missing[0]!r} is not in the class list")
        places = [index[name] for name in self.class_names]
        return np.array([places[label] for label in labels if label is not None], np.int64)

    @property
    def classes(self) -> int | None:
        """Return the number of classes, if the set says."""
        names = self.names or self.class_names
        return None if names is None else len(names)

    def load(self, arm: Variant, index: int) -> Pixels:
        """Return the image or the frames at `index`."""
        return self.read(arm, self.keys(arm)[index])

    def read(self, arm: Variant, key: str) -> Pixels:
        """Return the image or the frames called `key`."""
        name = arm.path(key)
        try:
            data = self._samples(arm)[key].read()
        except KeyError:
            raise ImageError(f"{name!r}: is not there") from None
        except (OSError, ValueError) as error:
            raise ImageError(f"{name!r}: {reason_of(error)}") from error
        return decode.decode(BytesIO(data), name) if self.kind == "c" else video.read_frames(data)

    def has(self, arm: Variant, key: str) -> bool:
        """Return whether `arm` has the sample `key`."""
        return key in self._samples(arm)

    def restrict(self, arm: Variant, keys: tuple[str, ...] | None = None) -> "Shards":
        """Return the set with this variant alone; the shards tell the keys."""
        return replace(self, arms=(arm,), _listed={})

    # --- listing

    def _samples(self, arm: Variant) -> Mapping[str, StoredSample]:
        if arm not in self._listed:
            self._listed[arm] = dict(self._list_arm(arm))
            # The first variant is asked for again and again; of the rest a few fit into memory.
            for other in [each for each in self._listed if each != self.arms[0]][:-_MOST_ARMS_LISTED]:
                del self._listed[other]
        return self._listed[arm]

    def _list_arm(self, arm: Variant) -> Iterator[tuple[str, StoredSample]]:
        seen: set[str] = set()
        for path in list_shards(self.store, self.folders[arm], self.suffix):
            for key, sample in self._read_shard(path):
                if key.startswith("/") or ".." in PurePosixPath(key).parts:
                    raise SourceError(f"{self.root}/{path}: holds {key!r}, which would lie outside a folder")
                if key in seen:
                    raise SourceError(
                        f"{self.root}/{path}: holds {key!r}, as does an earlier shard or sample"
                    )
                seen.add(key)
                yield key, sample
        if not seen:
            raise SourceError(f"{self.root}/{self.folders[arm]}: holds no {name_contents(self.kind)}")

    def _key(self, name: str) -> str:
        """Return what the sample called `name` is called in a tree: a sequence has no suffix."""
        return name if self.kind == "c" else str(PurePosixPath(name).with_suffix(""))


def list_shards(store: Store, folder: str, suffix: str) -> list[str]:
    """Return the paths of the shards in `folder`, in order."""
    paths = [entry.path for entry in store.list(folder) if entry.path.endswith(suffix)]
    prefix = f"{folder}/" if folder else ""
    return [path for path in paths if "/" not in (name := path.removeprefix(prefix)) and name[0] != "."]
