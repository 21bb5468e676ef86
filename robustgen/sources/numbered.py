"""Sources whose images are rows of an array, with numbers instead of names."""

import hashlib
from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ImageError
from robustgen.imaging.decode import as_rgb
from robustgen.imaging.pixels import Rgb
from robustgen.sources.base import Source, blame_source
from robustgen.sources.places import Place

_FEWEST_DIGITS = 5


def name_rows(count: int) -> tuple[str, ...]:
    """Return the keys of `count` rows: "00000", "00001", ..., with more than five digits if needed."""
    digits = max(_FEWEST_DIGITS, len(str(count - 1)))
    return tuple(f"{row:0{digits}d}" for row in range(count))


class Rows(NamedTuple):
    """Images of a source.

    Attributes
    ----------
    images : uint8 ndarray of shape (N, H, W, 3) or (N, H, W), read-only
    labels : int64 ndarray of shape (N,), read-only
    classes : tuple of str
        Names of the classes, in the order of the labels.
    identities : tuple of str
        Identity of the bytes of each image.
    """

    images: Rgb
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    identities: tuple[str, ...]

    @classmethod
    def collect(cls, images: Rgb, labels: NDArray[np.int64], classes: tuple[str, ...]) -> "Rows":
        """Compute the identities of the images, and make the arrays read-only."""
        for each in (images, labels):
            each.setflags(write=False)
        # Once per process: images are read again for each output array.
        identities = tuple(hashlib.sha256(image.tobytes()).hexdigest()[:16] for image in images)
        return cls(images, labels, classes, identities)


class NumberedSource(Source):
    """Images in the rows of an array, with one label each; keys are row numbers.

    Parameters
    ----------
    place : Place
    split : str
    """

    def __init__(self, place: Place, split: str) -> None:
        super().__init__(place.location)
        self._place, self._split = place, split

    @abstractmethod
    def _read(self) -> Rows:
        """Read the images, or return the cached ones."""

    @cached_property
    def _rows(self) -> Rows:
        with blame_source(self.location):
            return self._read()

    @property
    def images(self) -> Rgb:
        """Return all images: uint8 ndarray of shape (N, H, W, 3) or (N, H, W), read-only."""
        return self._rows.images

    @property
    def labels(self) -> NDArray[np.int64]:
        """Return all labels: int64 ndarray of shape (N,), read-only."""
        return self._rows.labels

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the class names in the order of the labels; digits if the classes have no names."""
        return self._rows.classes

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return name_rows(len(self.labels))

    def keys(self) -> tuple[str, ...]:
        """Return the row numbers in order."""
        return self._keys

    def load(self, key: str) -> Rgb:
        """Return a copy of one image: uint8 (H, W, 3); raise an ImageError if `key` is unknown."""
        image: Rgb = as_rgb(self.images[self._index(key)]).copy()
        return image

    def read(self, key: str) -> tuple[Rgb, str]:
        """Return a copy of one image and the identity of its bytes."""
        return self.load(key), self._rows.identities[self._index(key)]

    def label(self, key: str) -> int:
        """Return the label of one image; raise an ImageError if `key` is unknown."""
        return int(self.labels[self._index(key)])

    def size(self, key: str) -> int:
        """Return the size of one image in bytes; raise an ImageError if `key` is unknown."""
        return int(self.images[self._index(key)].nbytes)

    def _index(self, key: str) -> int:
        if not (key.isdecimal() and int(key) < len(self._keys) and key == self._keys[int(key)]):
            raise ImageError(f"{key!r}: no such image in {self.location}")
        return int(key)
