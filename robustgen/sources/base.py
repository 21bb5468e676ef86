"""The interface of all sources of images."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from robustgen.errors import ArgumentError, ImageError, MissingDependencyError, SourceError
from robustgen.imaging.decode import reason_of
from robustgen.imaging.pixels import Rgb

Loaded = TypeVar("Loaded")
"""The type of one item: pixels, of nearly all sources."""


class Items(ABC, Generic[Loaded]):
    """Items that outputs are made from, under unique keys.

    Picklable: listings and arrays are left behind and read again when needed.

    Attributes
    ----------
    location : str
        Absolute path or URL.
    """

    location: str

    def __init__(self, location: str) -> None:
        self.location = location

    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """Return the keys of all usable images, sorted; listed once.

        Raises
        ------
        SourceError
            There are none, or the source is malformed.
        """

    @abstractmethod
    def load(self, key: str) -> Loaded:
        """Load one item afresh.

        Raises
        ------
        ImageError
            It cannot be read; the message names the key and the reason.
        """

    def open(self, key: str) -> Loaded | Image.Image:
        """Load one item for a recipe to prepare: as `load` does, or a Pillow image of mode RGB."""
        return self.read(key)[0]

    def read(self, key: str) -> tuple[Loaded | Image.Image, str]:
        """Load one item for a recipe to prepare, and return it with its identity.

        Returns
        -------
        item
            The same as `load` returns, or a Pillow image of mode RGB.
        identity : str
            First 16 hexadecimal digits of the SHA-256 of the encoded file as it was read; "" if unknown.

        Raises
        ------
        ImageError
            It cannot be read.
        """
        return self.load(key), ""

    @abstractmethod
    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes.

        Raises
        ------
        ImageError
            There is no such file.
        """

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; labels index them."""

    @abstractmethod
    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`.

        Raises
        ------
        ImageError
            `key` belongs to none of the classes.
        """

    @property
    def class_labels(self) -> NDArray[np.int64]:
        """Of each class, (classes, labels), what its images are labelled with: its number, as a rule."""
        return np.arange(len(self.classes))[:, None]

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one item in pixels; from its header, where it has one.

        Raises
        ------
        ImageError
            It cannot be read, or has no dimensions.
        """
        raise ImageError(f"{key!r}: has no dimensions")

    def refused(self) -> dict[str, str]:
        """Return key and reason of whatever looks like an image but must not be processed."""
        return {}

    def storage_order(self, key: str) -> tuple[int, ...]:
        """Return the place of an image in storage: sorted by it, the source is read from beginning to end."""
        return ()

    def passed_over(self) -> tuple[str, ...]:
        """Return the names of images in formats that are not read."""
        return ()

    def remarks(self) -> tuple[str, ...]:
        """Return what to say of what is left as it is, a line each."""
        return ()

    def make_ready(self) -> None:
        """List the source and cache its index, once, before any image is read by worker processes.

        Raises
        ------
        SourceError
            It cannot be listed.
        OSError
            The index cannot be cached.
        """

    def __getstate__(self) -> dict[str, Any]:
        cls = type(self)
        return {k: v for k, v in vars(self).items() if not isinstance(getattr(cls, k, None), cached_property)}


class Source(Items[Rgb]):
    """Images under unique keys."""

    @abstractmethod
    def load(self, key: str) -> Rgb:
        """Decode one image afresh.

        Returns
        -------
        uint8 ndarray of shape (H, W, 3), C-contiguous and writable

        Raises
        ------
        ImageError
            It cannot be read; the message names the key and the reason.
        """

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image in pixels; from its header, where it has one.

        Raises
        ------
        ImageError
            It cannot be read.
        """
        height, width = self.load(key).shape[:2]
        return width, height


@contextmanager
def blame_source(where: object) -> Iterator[None]:
    """Turn any exception into a SourceError that names `where`: what is read here may hold anything."""
    try:
        yield
    except (ArgumentError, MissingDependencyError):
        raise
    except Exception as error:
        raise SourceError(f"{where}: {reason_of(error)}") from error


def check_split(location: object, split: str, known: Sequence[str]) -> str:
    """Return `split` itself; a SourceError if it is none of those `known`."""
    if split not in known:
        raise SourceError(f"{location}: has no split {split!r} (known: {', '.join(known)})")
    return split


def sort_classes(names: Iterable[str]) -> list[str]:
    """Sort names of classes as labels count them: by name, and by size if all are numbers."""
    names = sorted(names)
    if all(name.isascii() and name.isdigit() for name in names):
        names.sort(key=int)
    return names


def class_of(key: str) -> str:
    """Return the first folder of `key`; "" for an image directly in the root."""
    return key.partition("/")[0] if "/" in key else ""
