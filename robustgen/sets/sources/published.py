"""CIFAR, MNIST and MedMNIST in the published files."""

import gzip
import io
import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from robustgen.files.containers.archives import peek_names
from robustgen.files.containers.array_files import Pickled, unpickle
from robustgen.files.storage import Store
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Location
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.arrays import ArrayRows, ArraySource, NpzFile, NumberedSource
from robustgen.sets.sources.base import DEFAULTS, SourceOptions, name_source_in_errors
from robustgen.sets.sources.places import Place, find_place, read_named_files


class _Edition(NamedTuple):
    """Names in CIFAR-10 or CIFAR-100: its files by split, and its dictionary entries."""

    batches: Mapping[str, tuple[str, ...]]
    meta: str
    labels: bytes
    names: bytes
    classes: int


_TRAINING = tuple(f"data_batch_{number}" for number in range(1, 6))
_EDITIONS = (
    _Edition({"test": ("test_batch",), "train": _TRAINING}, "batches.meta", b"labels", b"label_names", 10),
    _Edition({"test": ("test",), "train": ("train",)}, "meta", b"fine_labels", b"fine_label_names", 100),
)
_FOLDERS = frozenset({"cifar-10-batches-py", "cifar-100-python"})
_BATCHES = frozenset(name for edition in _EDITIONS for names in edition.batches.values() for name in names)
# The largest published batch has 155 MB; more than 99 999 images would not fit five-digit keys.
_MOST_CIFAR_BYTES = 256 * 2**20
_PIXELS = 32 * 32 * 3
# The folder is the first member of the published archives; look a little further in others.
_MOST_PEEKED = 8


class Cifar(NumberedSource):
    """A split of CIFAR-10 or CIFAR-100 in the published Python format; keys are "00000", "00001", ...

    Parameters
    ----------
    path : path or URL
        The folder cifar-10-batches-py or cifar-100-python, its parent, or the .tar.gz, which is read in
        place.
    options : SourceOptions
        The split is "test", the default, or "train": of CIFAR-10, data_batch_1 to data_batch_5 in order.

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: it contains no valid batch.
    """

    def _read(self) -> ArrayRows:
        names = [name for each in _EDITIONS for name in (*each.batches[self._split], each.meta)]
        files = read_named_files(self._place, names, _FOLDERS, _MOST_CIFAR_BYTES)
        present = [edition for edition in _EDITIONS if edition.batches[self._split][0] in files]
        if len(present) != 1:
            choice = " nor ".join(edition.batches[self._split][0] for edition in _EDITIONS)
            raise ValueError(f"contains {'both CIFARs; name one' if present else f'neither {choice}'}")
        (edition,) = present
        classes = tuple(str(index) for index in range(edition.classes))
        if edition.meta in files:
            with name_source_in_errors(f"{self.location}: {edition.meta}"):
                classes = _read_class_names(files[edition.meta], edition)
        images, labels = [], []
        for name in edition.batches[self._split]:
            with name_source_in_errors(f"{self.location}: {name}"):
                if name not in files:
                    raise ValueError("missing, but the split has several batches")
                batch = unpickle(files[name])
                images.append(_arrange_planes(_entry(batch, b"data", Pickled)))
                labels.append(
                    _check_labels(_entry(batch, edition.labels, list), len(images[-1]), len(classes))
                )
        return ArrayRows(np.concatenate(images), np.concatenate(labels), classes)


def is_cifar(place: Place) -> bool:
    """Return True for a CIFAR folder, its parent, or an archive that begins with a CIFAR folder."""
    if place.is_folder:
        found = place.children.items()
        return any(name in (_FOLDERS if is_folder else _BATCHES) for name, is_folder in found)
    if not place.has_suffix(".tar.gz", ".tgz"):
        return False
    with place.store.open(place.name) as file:
        return any(_FOLDERS & {*PurePosixPath(name).parts} for name in peek_names(file, _MOST_PEEKED))


CIFAR: Final = SourceKind(is_cifar, Cifar)


def _read_class_names(content: bytes, edition: _Edition) -> tuple[str, ...]:
    names = _entry(unpickle(content), edition.names, list)
    usable = all(isinstance(name, bytes) and len(name) < 100 for name in names)
    if len(names) != edition.classes or not usable:
        raise ValueError(f"these are not the names of {edition.classes} classes")
    return tuple(name.decode() for name in names)


def _entry(content: object, key: bytes, expected: type) -> Any:
    if not isinstance(content, dict) or not isinstance(content.get(key), expected):
        raise ValueError(f"{key!r} is missing or of the wrong type")
    return content[key]


def _arrange_planes(data: Pickled) -> Rgb:
    """Convert the (N, 3072) planes of a batch to (N, 32, 32, 3)."""
    rows = data.to_array()
    if rows.dtype != np.uint8 or rows.shape[1:] != (_PIXELS,) or not len(rows):
        raise ValueError(f"b'data' must be uint8 of shape (N, {_PIXELS}), not {rows.dtype} {rows.shape[:3]}")
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _check_labels(labels: list[Any], images: int, classes: int) -> npt.NDArray[np.int64]:
    are_numbers = len(labels) == images and {*map(type, labels)} == {int}
    if not (are_numbers and 0 <= min(labels) <= max(labels) < classes):
        raise ValueError(f"the labels are not {images} integers from 0 to {classes - 1}")
    return np.array(labels, np.int64)


# --- MNIST ---------------------------------------------------------------------------------------


_IDX_IMAGES: Final = re.compile(r"(?:.*-)?(t10k|test|train)-images[-.]idx3-ubyte(?:\.gz)?")
# Unsigned bytes (type 8) with three axes and with one.
_IMAGE_MAGIC, _LABEL_MAGIC = 0x803, 0x801
# The largest, EMNIST by class, has 547 MB of images.
_MOST_IDX_BYTES: Final = 1 << 30


class Idx(NumberedSource):
    """Grey images in IDX files such as ``t10k-images-idx3-ubyte.gz``, with labels in the same folder.

    Parameters
    ----------
    path : path or URL
        A file of images, or its folder.
    options : SourceOptions
        The split is "test" or "train". Default: the split of the file, or the test images of a folder.

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: the split is missing, or a file is damaged.
    """

    def __init__(self, path: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        place = find_place(path)
        if own := None if place.is_folder else _split_of(place.name):
            self.splits = (own,)
        super().__init__(place, options)

    def _read(self) -> ArrayRows:
        store = self._place.folder if self._place.is_folder else self._place.store
        found = find_images(self._place, self._split)
        if len(found) != 1:
            raise ValueError(f"needs one file of {self._split} images, found {', '.join(found) or 'none'}")
        labelled = found[0].removesuffix(".gz").replace("-images", "-labels").replace("idx3", "idx1")
        if not store.exists(labelled):
            labelled += ".gz"
        labels, images = _read_idx(store, labelled, _LABEL_MAGIC), _read_idx(store, found[0], _IMAGE_MAGIC)
        if len(images) != len(labels):
            raise ValueError(f"{labelled}: {len(labels)} labels for {len(images)} images")
        classes = tuple(map(str, range(max(10, int(labels.max()) + 1))))
        return ArrayRows(images, labels.astype(np.int64), classes, are_numbers=True)


MNIST: Final = SourceKind(lambda place: any(find_images(place, split) for split in Idx.splits), Idx)


def find_images(place: Place, split: str) -> list[str]:
    """Return the names of the image files of a split; prefer a plain file to its compressed copy."""
    names = place.children if place.is_folder else [place.name]
    # In this order, a plain file overwrites its compressed copy.
    plain = {name.removesuffix(".gz"): name for name in sorted(names, reverse=True)}
    return [name for name in plain.values() if _split_of(name) == split]


def _split_of(name: str) -> str | None:
    found = _IDX_IMAGES.fullmatch(name)
    return "train" if found and found[1] == "train" else "test" if found else None


def _read_idx(store: Store, name: str, magic: int) -> Rgb:
    """Read an array of bytes; raise a SourceError that names the file if its magic number is another."""
    with name_source_in_errors(f"{store.location}/{name}"):
        data = store.read(name, size=_MOST_IDX_BYTES + 1)
        if name.endswith(".gz"):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MOST_IDX_BYTES + 1)
        if len(data) > _MOST_IDX_BYTES:
            raise ValueError(f"more than {_MOST_IDX_BYTES} bytes")
        start = 4 + 4 * (magic & 0xFF)
        found, *shape = np.frombuffer(data[:start].ljust(start, b"\0"), ">u4").tolist()
        if found != magic:
            raise ValueError(f"magic number is {found:#010x}; such IDX files have {magic:#010x}")
        there = max(0, len(data) - start)
        if there != math.prod(shape) or not there:
            raise ValueError(f"damaged: {there} bytes for an array of shape {tuple(shape)}")
        return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


# --- MedMNIST ------------------------------------------------------------------------------------


class MedMnist(ArraySource):
    """A split of a MedMNIST file such as ``pathmnist_224.npz``; images may have several labels.

    Those with the same labels form one class: "00100000000000". Parameters are those of `ArraySource`.
    """

    splits = ("test", "train", "val")

    def _read_values(self, name: str) -> NDArray[Any]:
        rows = NpzFile(self._place.store, self._place.name).read(name, several=True)
        if rows.size == len(rows):
            return rows.reshape(-1)
        if rows.ndim != 2 or not np.isin(rows, (0, 1)).all():
            raise ValueError(f"{name}: {rows.dtype} {rows.shape} is neither classes nor labels of 0 and 1")
        return np.array(["".join(map(str, row)) for row in rows.astype(int).tolist()])

    @property
    def class_labels(self) -> NDArray[np.int64]:
        """Return the labels of each class: its number, or a 0 or 1 for each label of a multi-label set."""
        if self.class_count is None:
            return super().class_labels
        return np.array([[*map(int, name)] for name in self.classes])


def is_medmnist(place: Place) -> bool:
    """Return True for a NumPy archive with images of a split, such as ``test_images``."""
    if place.is_folder or not place.has_suffix(".npz"):
        return False
    names = NpzFile(place.store, place.name).list_names()
    return any(f"{split}_images" in names for split in MedMnist.splits)


MEDMNIST: Final = SourceKind(is_medmnist, MedMnist)
