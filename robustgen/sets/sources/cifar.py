"""CIFAR-10 and CIFAR-100 in the published format."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from robustgen.files.containers.archives import peek_names
from robustgen.files.containers.array_files import Pickled, unpickle
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import name_source_in_errors
from robustgen.sets.sources.named_files import read_named_files
from robustgen.sets.sources.numbered import NumberedSource, Rows
from robustgen.sets.sources.places import Place


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
_MOST_BYTES = 256 * 2**20
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
    options : Options
        The split is "test", the default, or "train": of CIFAR-10, data_batch_1 to data_batch_5 in order.

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: it contains no valid batch.
    """

    def _read(self) -> Rows:
        names = [name for each in _EDITIONS for name in (*each.batches[self._split], each.meta)]
        files = read_named_files(self._place, names, _FOLDERS, _MOST_BYTES)
        present = [edition for edition in _EDITIONS if edition.batches[self._split][0] in files]
        if len(present) != 1:
            choice = " nor ".join(edition.batches[self._split][0] for edition in _EDITIONS)
            raise ValueError(f"contains {'both CIFARs; name one' if present else f'neither {choice}'}")
        (edition,) = present
        classes = tuple(str(index) for index in range(edition.classes))
        if edition.meta in files:
            with name_source_in_errors(f"{self.location}: {edition.meta}"):
                classes = _read_names(files[edition.meta], edition)
        images, labels = [], []
        for name in edition.batches[self._split]:
            with name_source_in_errors(f"{self.location}: {name}"):
                if name not in files:
                    raise ValueError("missing, but the split has several batches")
                batch = unpickle(files[name])
                images.append(_images(_entry(batch, b"data", Pickled)))
                labels.append(_labels(_entry(batch, edition.labels, list), len(images[-1]), len(classes)))
        return Rows(np.concatenate(images), np.concatenate(labels), classes)


def is_cifar(place: Place) -> bool:
    """Return True for a CIFAR folder, its parent, or an archive that begins with a CIFAR folder."""
    if place.is_folder:
        found = place.children.items()
        return any(name in (_FOLDERS if is_folder else _BATCHES) for name, is_folder in found)
    if not place.has_suffix(".tar.gz", ".tgz"):
        return False
    with place.store.open(place.name) as file:
        return any(_FOLDERS & {*PurePosixPath(name).parts} for name in peek_names(file, _MOST_PEEKED))


KIND: Final = SourceKind(is_cifar, Cifar)


def _read_names(content: bytes, edition: _Edition) -> tuple[str, ...]:
    names = _entry(unpickle(content), edition.names, list)
    usable = all(isinstance(name, bytes) and len(name) < 100 for name in names)
    if len(names) != edition.classes or not usable:
        raise ValueError(f"these are not the names of {edition.classes} classes")
    return tuple(name.decode() for name in names)


def _entry(content: object, key: bytes, kind: type) -> Any:
    if not isinstance(content, dict) or not isinstance(content.get(key), kind):
        raise ValueError(f"{key!r} is missing or of the wrong type")
    return content[key]


def _images(data: Pickled) -> Rgb:
    """Convert the (N, 3072) planes of a batch to (N, 32, 32, 3)."""
    rows = data.to_array()
    if rows.dtype != np.uint8 or rows.shape[1:] != (_PIXELS,) or not len(rows):
        raise ValueError(f"b'data' must be uint8 of shape (N, {_PIXELS}), not {rows.dtype} {rows.shape[:3]}")
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _labels(labels: list[Any], images: int, classes: int) -> npt.NDArray[np.int64]:
    are_numbers = len(labels) == images and {*map(type, labels)} == {int}
    if not (are_numbers and 0 <= min(labels) <= max(labels) < classes):
        raise ValueError(f"the labels are not {images} integers from 0 to {classes - 1}")
    return np.array(labels, np.int64)
