"""CIFAR-10 and CIFAR-100 in the published format."""

import gzip
import tarfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustgen.containers.pickles import Pickled, unpickle
from robustgen.containers.tar import iterate_compressed
from robustgen.errors import SourceError
from robustgen.imaging.decode import Location
from robustgen.imaging.pixels import Rgb
from robustgen.sources.base import blame_source, check_split
from robustgen.sources.numbered import NumberedSource, Rows
from robustgen.sources.places import Place, SourceFile, find_place


class _Edition(NamedTuple):
    """Names in CIFAR-10 or CIFAR-100: its folder, its files by split, and its dictionary entries."""

    folder: str
    batches: Mapping[str, tuple[str, ...]]
    meta: str
    labels: bytes
    names: bytes
    classes: int


_EDITIONS = (
    _Edition(
        "cifar-10-batches-py",
        {"test": ("test_batch",), "train": tuple(f"data_batch_{number}" for number in range(1, 6))},
        "batches.meta",
        b"labels",
        b"label_names",
        10,
    ),
    _Edition(
        "cifar-100-python",
        {"test": ("test",), "train": ("train",)},
        "meta",
        b"fine_labels",
        b"fine_label_names",
        100,
    ),
)
SPLITS = ("test", "train")
_FOLDERS = frozenset(edition.folder for edition in _EDITIONS)
_BATCHES = frozenset(name for edition in _EDITIONS for names in edition.batches.values() for name in names)
# The largest published batch has 155 MB; more than 99 999 images would not fit five-digit keys.
_MOST_BYTES = 256 * 2**20
# The published archives unpack to 186 MB; skipping the rest of a larger one would only take time.
_MOST_UNPACKED = 2 * 2**30
_PIXELS = 32 * 32 * 3


def _members(split: str) -> tuple[str, ...]:
    return tuple(name for edition in _EDITIONS for name in (*edition.batches[split], edition.meta))


class Cifar(NumberedSource):
    """A split of CIFAR-10 or CIFAR-100 in the published Python format; keys are "00000", "00001", ...

    Parameters
    ----------
    path : path or URL
        The folder cifar-10-batches-py or cifar-100-python, its parent, or the .tar.gz, which is read in
        place.
    split : {"test", "train"}
        The training images of CIFAR-10 are in the order of data_batch_1 to data_batch_5.

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: it contains no valid batch.
    """

    def __init__(self, path: Location | Place, split: str = "test") -> None:
        place = find_place(path)
        super().__init__(place, check_split(place.location, split, SPLITS))

    def _read(self) -> Rows:
        files = find_batches(self._place, self._split).values()
        return read_batch(self.location, self._split, tuple(SourceFile.look(*file) for file in files))


def is_cifar(place: Place) -> bool:
    """Return True for a CIFAR folder, its parent, or an archive that begins with a CIFAR folder."""
    if place.is_folder:
        named = {*_FOLDERS, *_BATCHES} & place.children.keys()
        return bool(named) and any(find_batches(place, split) for split in SPLITS)
    if not place.has_suffix(".tar.gz", ".tgz"):
        return False
    # The reader of the archive reports damage.
    damage = tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError
    with suppress(*damage), place.store.open(place.name) as file:
        # The folder is the first member of the published archives; look a little further in others.
        for _, (member, _) in zip(range(8), iterate_compressed(file, "r:gz"), strict=False):
            name = PurePosixPath(member.name).name
            if name in _FOLDERS or (name in _BATCHES and member.isreg()):
                return True
    return False


def find_batches(place: Place, split: str) -> dict[str, tuple[Any, str]]:
    """Return the stores and paths of the files of a CIFAR folder, or of those below it, by name."""
    if not place.is_folder:
        return {place.name: (place.store, place.name)}
    folders = ("", *(f"{edition.folder}/" for edition in _EDITIONS))
    paths = [(name, folder + name) for folder in folders for name in _members(split)]
    return {name: (place.folder, path) for name, path in paths if place.has(path)}


# Worker processes unpickle a source with each task, but need not read the batch again.
@lru_cache(maxsize=1)
def read_batch(location: str, split: str, stamps: tuple[SourceFile, ...]) -> Rows:
    """Read the batches of a split; `stamps` only serve to detect changes."""
    place = Place(location)
    files = _read_folder(place, split) if place.is_folder else _read_archive(place, split)
    present = [edition for edition in _EDITIONS if edition.batches[split][0] in files]
    if len(present) != 1:
        choice = " nor ".join(edition.batches[split][0] for edition in _EDITIONS)
        problem = "both CIFARs; name one" if present else f"neither {choice}"
        raise SourceError(f"{location}: contains {problem}")
    return _parse(location, files, present[0], split)


def _read_folder(place: Place, split: str) -> dict[str, bytes]:
    files = {}
    for name, (store, path) in find_batches(place, split).items():
        files[name] = store.read(path, size=_MOST_BYTES + 1)
        if len(files[name]) > _MOST_BYTES:
            raise ValueError(f"{name} has more than {_MOST_BYTES} bytes")
    return files


def _read_archive(place: Place, split: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with place.store.open(place.name) as file:
        for member, extract in iterate_compressed(file, "r:gz"):
            if member.offset_data + member.size > _MOST_UNPACKED:
                raise ValueError(f"unpacks to more than {_MOST_UNPACKED} bytes, which CIFAR does not")
            path = PurePosixPath(member.name)
            inside = len(path.parts) > 1 and not path.is_absolute() and ".." not in path.parts
            known = path.name in _members(split) and member.isreg()
            if inside and known and member.size <= _MOST_BYTES:
                files.setdefault(path.name, extract(member).read())
    return files


def _parse(location: str, files: dict[str, bytes], edition: _Edition, split: str) -> Rows:
    classes = tuple(str(index) for index in range(edition.classes))
    if edition.meta in files:
        with blame_source(f"{location}: {edition.meta}"):
            names = _entry(unpickle(files[edition.meta]), edition.names, list)
            usable = all(isinstance(name, bytes) and len(name) < 100 for name in names)
            if len(names) != edition.classes or not usable:
                raise ValueError(f"these are not the names of {edition.classes} classes")
            classes = tuple(name.decode() for name in names)
    parts = []
    for name in edition.batches[split]:
        with blame_source(f"{location}: {name}"):
            if name not in files:
                raise ValueError("missing, but the split has several batches")
            batch = unpickle(files[name])
            rows = _images(_entry(batch, b"data", Pickled))
            parts.append((rows, _labels(_entry(batch, edition.labels, list), len(rows), len(classes))))
    images, labels = (
        np.concatenate(each) if len(parts) > 1 else each[0] for each in zip(*parts, strict=True)
    )
    return Rows.collect(images, labels, classes)


def _entry(content: object, key: bytes, kind: type) -> Any:
    if not isinstance(content, dict):
        raise ValueError(f"a dict was expected, not {type(content).__name__}")
    if not isinstance(content.get(key), kind):
        raise ValueError(f"{key!r} is missing or of the wrong type")
    return content[key]


def _images(data: Pickled) -> Rgb:
    """Convert the (N, 3072) planes of a batch to (N, 32, 32, 3)."""
    _, shape, dtype, by_columns, content = data.state
    if not isinstance(content, bytes) or not isinstance(shape, tuple) or {*map(type, shape)} != {int}:
        raise ValueError("b'data' is not an array")
    if dtype.made_from[0] not in ("u1", b"u1") or shape[1:] != (_PIXELS,) or not shape[0]:
        raise ValueError(f"b'data' must be uint8 of shape (N, {_PIXELS}), not {shape[:3]}")
    rows = np.frombuffer(content, np.uint8).reshape(shape, order="F" if by_columns else "C")
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _labels(labels: list[object], images: int, classes: int) -> npt.NDArray[np.int64]:
    if len(labels) != images:
        raise ValueError(f"{len(labels)} labels for {images} images")
    wrong = [label for label in labels if type(label) is not int or not 0 <= label < classes]
    if wrong:
        shown = repr(wrong[0]) if isinstance(wrong[0], int | float) else type(wrong[0]).__name__
        raise ValueError(f"label {shown} is not an integer from 0 to {classes - 1}")
    return np.array(labels, np.int64)
