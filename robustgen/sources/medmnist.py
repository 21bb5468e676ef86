"""MedMNIST and MedMNIST+ as published: one `.npz` with images and labels of three splits."""

import hashlib
import math
import zipfile
from collections.abc import Callable
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.containers import npz
from robustgen.imaging.decode import Location, as_rgb, blame_image
from robustgen.imaging.pixels import Rgb
from robustgen.sources.base import check_split
from robustgen.sources.files import IndexedSource
from robustgen.sources.index import Cache, Index, Listing
from robustgen.sources.numbered import name_rows
from robustgen.sources.places import Place, SourceFile, find_place

_SPLITS: Final = ("test", "train", "val")
_MOST_CLASSES: Final = 1000


class MedMnist(IndexedSource):
    """A split of a MedMNIST file such as ``pathmnist_224.npz``; keys are "00000", "00001", ...

    The images are decompressed once into a temporary file.

    Parameters
    ----------
    path : path or URL
    split : {"test", "train", "val"}
    index : (Store, str), optional
        A file in which the listing may be cached.

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: it contains no such arrays.
    """

    def __init__(self, path: Location | Place, split: str = "test", index: Cache = None) -> None:
        place = find_place(path)
        check_split(place.location, split, _SPLITS)
        super().__init__(_RowIndex(place.location, index, split))

    def load(self, key: str) -> Rgb:
        """Return one image: uint8 ndarray of shape (H, W, 3); raise an ImageError if `key` is unknown."""
        return self.read(key)[0]

    def read(self, key: str) -> tuple[Rgb, str]:
        """Return one image and the identity of its bytes."""
        number, start, size, *shape = self._place(key)
        with blame_image(key):
            data = self._index.read(number, start, size)
        image: Rgb = as_rgb(np.frombuffer(data, np.uint8).reshape(shape)).copy()
        return image, hashlib.sha256(data).hexdigest()[:16]

    def size(self, key: str) -> int:
        """Return the size of one image in bytes; raise an ImageError if `key` is unknown."""
        return int(self._place(key)[2])

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image in pixels; raise an ImageError if `key` is unknown."""
        height, width = self._place(key)[3:5]
        return int(width), int(height)

    @property
    def class_labels(self) -> NDArray[np.int64]:
        """Return the labels of each class: its number, or a 0 or 1 for each label of a multi-label set."""
        if self.classes == tuple(map(str, range(len(self.classes)))):
            return super().class_labels
        return np.array([[*map(int, name)] for name in self.classes])


def is_medmnist(place: Place) -> bool:
    """Return True for a NumPy archive."""
    return place.has_suffix(".npz") and not place.is_folder


class _RowIndex(Index):
    """Rows of the images of a split: file number, offset, bytes and shape of each."""

    def is_packed(self, file: SourceFile) -> bool:
        """Return True: rows are read from the unpacked array."""
        return True

    def unpack_file(self, packed: IO[bytes], file: SourceFile, write: Callable[[bytes], Any]) -> str | None:
        """Unpack the array of images, passing its content to `write`."""
        with zipfile.ZipFile(packed) as archive:
            npz.copy_array(archive, npz.find_array(archive, f"{self.split}_images"), write)
        return None

    def build(self, files: list[SourceFile]) -> Listing:
        """List the rows."""
        (file,) = files
        with file.store.open(file.name) as content, zipfile.ZipFile(content) as archive:
            images = npz.find_array(archive, f"{self.split}_images")
            header = npz.read_image_header(archive, images)
            labels = npz.read_labels(archive, f"{self.split}_labels")
        shape = header.shape
        numbers, classes = _read_classes(labels, shape[0])
        size, keys = math.prod(shape[1:]), name_rows(shape[0])
        rows = ((0, header.offset + row * size, size, *shape[1:]) for row in range(len(keys)))
        return Listing(dict(zip(keys, rows, strict=True)), {}, classes, dict(zip(keys, numbers, strict=True)))


def _read_classes(values: NDArray[np.int64], count: int) -> tuple[list[int], list[str]]:
    """Return the class of each of `count` images, and the class names, which are numbers.

    Multi-label images with the same labels form one class: "00100000000000".
    """
    if len(values) != count:
        raise ValueError(f"{len(values)} labels do not fit {count} images")
    if values.min() < 0 or values.max() > (1 if values.shape[1] > 1 else _MOST_CLASSES - 1):
        raise ValueError(f"labels from {values.min()} to {values.max()}")
    if values.shape[1] == 1:
        return values[:, 0].tolist(), [*map(str, range(int(values.max()) + 1))]
    texts = ["".join(map(str, row)) for row in values.tolist()]
    places = {text: place for place, text in enumerate(sorted({*texts}))}
    return [places[text] for text in texts], [*places]
