"""Sources whose images are the rows of an array, which have numbers instead of names."""

import hashlib
from abc import abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ImageError
from robustgen.imaging.decode import as_rgb
from robustgen.imaging.pixels import Rgb
from robustgen.sources.base import Source

_FEWEST_DIGITS = 5


def name_rows(count: int) -> tuple[str, ...]:
    """Return the keys of so many rows: "00000", "00001", ..., with more digits where five are too few."""
    digits = max(_FEWEST_DIGITS, len(str(count - 1)))
    return tuple(f"{row:0{digits}d}" for row in range(count))


class NumberedSource(Source):
    """Images in the rows of an array, with a label each; keys are the numbers of the rows."""

    @property
    @abstractmethod
    def images(self) -> Rgb:
        """Return all images: uint8 ndarray of shape (N, H, W, 3) or (N, H, W), read-only."""

    @property
    @abstractmethod
    def labels(self) -> NDArray[np.int64]:
        """Return all labels: int64 ndarray of shape (N,), read-only."""

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return name_rows(len(self.labels))

    def keys(self) -> tuple[str, ...]:
        """Return the numbers of the rows, in order."""
        return self._keys

    def load(self, key: str) -> Rgb:
        """Return a copy of one image: uint8 ndarray of shape (H, W, 3); an unknown key is an ImageError."""
        image: Rgb = as_rgb(self.images[self._index(key)]).copy()
        return image

    def read(self, key: str) -> tuple[Rgb, str]:
        """Return a copy of one image, and the identity of its bytes."""
        index = self._index(key)
        return self.load(key), self._identify(index)

    def _identify(self, index: int) -> str:
        return hashlib.sha256(self.images[index].tobytes()).hexdigest()[:16]

    def label(self, key: str) -> int:
        """Return the label of one image; an unknown key is an ImageError."""
        return int(self.labels[self._index(key)])

    def size(self, key: str) -> int:
        """Return the bytes of one image in the array; an unknown key is an ImageError."""
        return int(self.images[self._index(key)].nbytes)

    def _index(self, key: str) -> int:
        if not (key.isdecimal() and int(key) < len(self._keys) and key == self._keys[int(key)]):
            raise ImageError(f"{key!r}: no such image in {self.location}")
        return int(key)
