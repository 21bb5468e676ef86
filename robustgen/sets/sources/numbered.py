"""Sources whose images are rows of an array, with numbers instead of names."""

import hashlib
from abc import abstractmethod
from functools import cached_property
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ImageError
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Location, as_rgb
from robustgen.sets.sources.base import DEFAULTS, Options, Source, check_split, name_source_in_errors
from robustgen.sets.sources.classes import name_folders
from robustgen.sets.sources.copies import Copies
from robustgen.sets.sources.places import Place, find_place

_FEWEST_DIGITS = 5


class Rows(NamedTuple):
    """Images of a source.

    Attributes
    ----------
    images : uint8 ndarray of shape (N, H, W, 3) or (N, H, W)
    labels : int64 ndarray of shape (N,)
    classes : tuple of str
        Names of the classes, in the order of the labels.
    are_numbers : bool
        Whether the classes are bare numbers, of which there may be more.
    keys : tuple of str
        Names of the images; () if they are numbered.
    """

    images: Rgb
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    are_numbers: bool = False
    keys: tuple[str, ...] = ()


class NumberedSource(Source):
    """Images in the rows of an array, with one label each; keys are row numbers.

    Parameters
    ----------
    path : path or URL
    options : Options
    """

    splits: tuple[str, ...] = ("test", "train")
    """Names of the splits; the first is the default."""

    def __init__(self, path: Location | Place, options: Options = DEFAULTS) -> None:
        self._place = find_place(path)
        super().__init__(self._place.location)
        self._split = check_split(self.location, options.split or self.splits[0], self.splits)

    @abstractmethod
    def _read(self) -> Rows:
        """Read the images and their labels."""

    @cached_property
    def _rows(self) -> Rows:
        with name_source_in_errors(self.location):
            rows = self._read()
            return rows._replace(classes=tuple(name_folders(rows.classes)))

    @property
    def images(self) -> Rgb:
        """Return all images: uint8 ndarray of shape (N, H, W, 3) or (N, H, W)."""
        return self._rows.images

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of `images`."""
        return self._rows.images.shape

    @property
    def labels(self) -> NDArray[np.int64]:
        """Return all labels: int64 ndarray of shape (N,)."""
        return self._rows.labels

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the class names in the order of the labels; digits if the classes have no names."""
        return self._rows.classes

    @property
    def class_count(self) -> int | None:
        """Return the number of classes; None if they are bare numbers, of which there may be more."""
        return None if self._rows.are_numbers else len(self.classes)

    def tree_path(self, key: str) -> str:
        """Return ``<class>/<row number>``; a name that has a folder stays as it is."""
        return key if "/" in key else f"{self.classes[self.label(key)]}/{key}"

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return self._rows.keys or number_rows(len(self.labels))

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {key: index for index, key in enumerate(self._keys)}

    def keys(self) -> tuple[str, ...]:
        """Return the names of the rows in order, usually their numbers."""
        return self._keys

    def load(self, key: str) -> Rgb:
        """Return a copy of one image: uint8 (H, W, 3); raise an ImageError if `key` is unknown."""
        return self.read(key)[0]

    def read(self, key: str) -> tuple[Rgb, str]:
        """Return a copy of one image and the identity of its bytes."""
        image = self.images[self._index(key)]
        return as_rgb(image).copy(), hashlib.sha256(image.tobytes()).hexdigest()[:16]

    def label(self, key: str) -> int:
        """Return the label of one image; raise an ImageError if `key` is unknown."""
        return int(self.labels[self._index(key)])

    def size(self, key: str) -> int:
        """Return the size of one image in bytes; raise an ImageError if `key` is unknown."""
        self._index(key)
        return int(self._rows.images[0].nbytes)

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image in pixels; raise an ImageError if `key` is unknown."""
        self._index(key)
        return self.shape[2], self.shape[1]

    def _index(self, key: str) -> int:
        try:
            return self._indices[key]
        except KeyError:
            raise ImageError(f"no such image in {self.location}", key) from None


class UnpackedSource(NumberedSource):
    """Images in an array that is unpacked once into a temporary file; worker processes use it too.

    Parameters are those of `NumberedSource`.
    """

    def __init__(self, path: Location | Place, options: Options = DEFAULTS) -> None:
        super().__init__(path, options)
        self._copies = Copies()

    @abstractmethod
    def _unpack(self, target: BinaryIO) -> None:
        """Write the images as an `.npy` file."""

    @cached_property
    def images(self) -> Rgb:
        """Return all images: uint8 ndarray of shape (N, H, W, 3) or (N, H, W)."""
        name = f"{self._split}.npy"
        with name_source_in_errors(self.location):
            store = self._copies.find(name, self._unpack, self.location)
        images: Rgb = np.load(f"{store.location}/{name}", mmap_mode="r")
        return images

    def make_ready(self) -> None:
        """Unpack the images, to spare each worker the work."""
        _ = self.images


def number_rows(count: int) -> tuple[str, ...]:
    """Return the keys of so many images without names: "00000", "00001", ..."""
    digits = max(_FEWEST_DIGITS, len(str(count - 1)))
    return tuple(f"{row:0{digits}d}" for row in range(count))
