"""Sets whose files hold many samples each: WebDataset and Parquet, our own or those of others."""

import os
import tarfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple

import numpy as np

from robustgen.benchmark import Arm, Kind
from robustgen.datasets.base import Dataset, Labels, Pixels, describe_difference, name_contents, read_names
from robustgen.errors import ImageError, SourceError
from robustgen.imaging import decode, video
from robustgen.imaging.decode import reason_of
from robustgen.output.writers.parquet import SAMPLE_COLUMNS, read_class_names
from robustgen.regular_file import open_regular
from robustgen.sources.listed_file import Stamp, read_member, stamp_of
from robustgen.sources.parquet_files import import_pyarrow, read_group
from robustgen.sources.sample_names import CLASS_NAMES, KEYS, sample_key, sample_name
from robustgen.sources.tar_members import iterate_members

_MOST_ARMS_LISTED = 2


class Sample(NamedTuple):
    """A sample of a shard.

    Attributes
    ----------
    label : int or None
        Index of its class, where the shard tells.
    read : callable
        Returns the encoded image or video.
    """

    label: int | None
    read: Callable[[], bytes]


@dataclass(eq=False)
class Shards(Dataset):
    """A folder of shards per arm.

    Parameters
    ----------
    root, kind, arms, about
        As for `Dataset`.
    folders : mapping of Arm to Path
    names : sequence of str, optional
        Names of the classes in the order of the model's outputs; otherwise the labels stay as they are.
    """

    root: Path
    kind: Kind
    arms: tuple[Arm, ...]
    about: Mapping[str, Any]
    folders: Mapping[Arm, Path]
    names: Sequence[str] | None = None

    suffix: ClassVar[str]

    _listed: dict[Arm, Mapping[str, Sample]] = field(default_factory=dict)

    # --- what is particular to a kind of shard

    @abstractmethod
    def _read_shard(self, path: Path) -> Iterator[tuple[str, Sample]]:
        """Key and sample of each image in the shard at `path`, in order.

        Raises
        ------
        SourceError
            It is damaged, or holds something else.
        """

    @property
    @abstractmethod
    def _class_names(self) -> Sequence[str] | None:
        """The names of the classes that the labels count, where the set tells."""

    # --- what a set offers

    def keys(self, arm: Arm) -> tuple[str, ...]:
        """As `Dataset.keys`."""
        first = tuple(self._samples(self.arms[0]))
        if arm != self.arms[0] and (own := tuple(self._samples(arm))) != first:
            raise SourceError(f"{self.folders[arm]}: {describe_difference(own, first, 'images')}")
        return first

    def labels(self, arm: Arm) -> Labels | None:
        """As `Dataset.labels`."""
        samples = self._samples(arm)
        labels = [sample.label for sample in samples.values()]
        if self.names is None or self._class_names is None:
            known = [label for label in labels if label is not None]
            return np.array(known, np.int64) if len(known) == len(labels) else None
        index = {name: i for i, name in enumerate(self.names)}
        places = [index.get(name) for name in self._class_names]
        if missing := [name for name in self._class_names if name not in index]:
            raise SourceError(f"{self.root}: class {missing[0]!r} is not in the class list")
        return np.array([places[label] for label in labels if label is not None], np.int64)

    @property
    def classes(self) -> int | None:
        """As `Dataset.classes`."""
        names = self.names or self._class_names
        return None if names is None else len(names)

    def load(self, arm: Arm, index: int) -> Pixels:
        """As `Dataset.load`."""
        return self.read(arm, self.keys(arm)[index])

    def read(self, arm: Arm, key: str) -> Pixels:
        """As `Dataset.read`."""
        name = arm.path(key)
        try:
            data = self._samples(arm)[key].read()
        except KeyError:
            raise ImageError(f"{name!r}: is not there") from None
        except (OSError, ValueError) as error:
            raise ImageError(f"{name!r}: {reason_of(error)}") from error
        return decode.decode(BytesIO(data), name) if self.kind == "c" else video.read_frames(data)

    def has(self, arm: Arm, key: str) -> bool:
        """As `Dataset.has`."""
        return key in self._samples(arm)

    def restrict(self, arm: Arm, keys: tuple[str, ...] | None = None) -> "Shards":
        """As `Dataset.restrict`; the shards tell the keys."""
        return replace(self, arms=(arm,), _listed={})

    # --- listing

    def _samples(self, arm: Arm) -> Mapping[str, Sample]:
        if arm not in self._listed:
            self._listed[arm] = dict(self._list_arm(arm))
            # Millions of samples need not all be known at once; the first arm is asked for again and again.
            for other in [each for each in self._listed if each != self.arms[0]][:-_MOST_ARMS_LISTED]:
                del self._listed[other]
        return self._listed[arm]

    def _list_arm(self, arm: Arm) -> Iterator[tuple[str, Sample]]:
        seen: set[str] = set()
        for path in list_shards(self.folders[arm], self.suffix):
            for key, sample in self._read_shard(path):
                if key.startswith("/") or ".." in PurePosixPath(key).parts:
                    raise SourceError(f"{path}: holds {key!r}, which would lie outside a folder")
                if key in seen:
                    raise SourceError(f"{path}: holds {key!r}, which an earlier shard or sample is called")
                seen.add(key)
                yield key, sample
        if not seen:
            raise SourceError(f"{self.folders[arm]}: holds no {name_contents(self.kind)}")

    def _key(self, name: str) -> str:
        """What the sample called `name` is called in a tree: a sequence has no suffix."""
        return name if self.kind == "c" else str(PurePosixPath(name).with_suffix(""))


def list_shards(folder: Path, suffix: str) -> list[Path]:
    """The shards in `folder`, in order."""
    return sorted(
        path for path in folder.glob(f"*{suffix}") if path.is_file() and not path.name.startswith(".")
    )


@dataclass(eq=False)
class WebDatasetShards(Shards):
    """Tar archives of samples: `<key>.jpg` (or another image, or `.mp4`) and `<key>.cls`."""

    format = "webdataset"
    suffix = ".tar"

    @cached_property
    def _names_of(self) -> Mapping[str, str]:
        """Key of a sample to what it is called in a tree, where the set tells."""
        return {sample_key(name): name for name in read_names(self.root / KEYS) or ()}

    @cached_property
    def _class_names(self) -> Sequence[str] | None:
        lines = read_names(self.root / CLASS_NAMES)
        return None if lines is None else [line.removesuffix("\r") for line in lines]

    def _read_shard(self, path: Path) -> Iterator[tuple[str, Sample]]:
        suffixes = decode.EXTENSIONS if self.kind == "c" else (".mp4",)
        places: dict[str, tuple[str, int, int]] = {}
        labels: dict[str, int] = {}
        try:
            with open_regular(path) as file:
                stamp = stamp_of(os.fstat(file.fileno()))
                for member in iterate_members(file):
                    key, _, suffix = member.name.rpartition(".")
                    if not member.isreg():
                        continue
                    if f".{suffix.lower()}" in suffixes:
                        places[key] = member.name, member.offset_data, member.size
                    elif suffix == "cls":
                        labels[key] = int(read_member(path, stamp, member.offset_data, min(member.size, 20)))
        except (tarfile.TarError, OSError, ValueError) as error:
            raise SourceError(f"{path}: is damaged: {error}") from error
        for key, (member_name, *place) in places.items():
            suffix = PurePosixPath(member_name).suffix
            name = self._names_of.get(key) or f"{sample_name(key)}{suffix}"
            yield self._key(name), Sample(labels.get(key), partial(read_member, path, stamp, *place))


@dataclass(eq=False)
class ParquetShards(Shards):
    """Parquet files with a column of images or videos, and one of labels."""

    format = "parquet"
    suffix = ".parquet"

    @cached_property
    def _class_names(self) -> Sequence[str] | None:
        path = next(iter(list_shards(self.folders[self.arms[0]], self.suffix)), None)
        return None if path is None else read_class_names(self._open(path).schema_arrow)

    def _open(self, path: Path) -> Any:
        pyarrow, parquet = import_pyarrow()
        try:
            return parquet.ParquetFile(path)
        except (pyarrow.ArrowException, OSError) as error:
            raise SourceError(f"{path}: is damaged: {error}") from error

    def _read_shard(self, path: Path) -> Iterator[tuple[str, Sample]]:
        column, file, stamp = SAMPLE_COLUMNS[self.kind], self._open(path), stamp_of(path.stat())
        if column not in file.schema_arrow.names:
            raise SourceError(f"{path}: has no column {column!r}")
        for group in range(file.num_row_groups):
            table = _read_names_and_labels(path, file, column, group)
            labels = table["label"].to_pylist() if "label" in table.schema.names else [None] * len(table)
            for row, (cell, label) in enumerate(zip(table[column].to_pylist(), labels, strict=True)):
                read = partial(_read_cell, path, stamp, column, group, row)
                yield self._key(cell["path"] or f"{path.stem}/{group}-{row}"), Sample(label, read)


def _read_names_and_labels(path: Path, file: Any, column: str, group: int) -> Any:
    try:
        return file.read_row_group(group, columns=[f"{column}.path", "label"])
    except (import_pyarrow()[0].ArrowException, OSError) as error:
        raise SourceError(f"{path}: row group {group} is damaged: {error}") from error


def _read_cell(path: Path, stamp: Stamp, column: str, group: int, row: int) -> bytes:
    """The encoded sample in one row."""
    return bytes(read_group(path, stamp, f"{column}.bytes", group)[row].as_py())
