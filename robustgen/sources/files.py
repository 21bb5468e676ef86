"""Sources with one file for each image."""

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from PIL import Image

from robustgen.errors import ImageError, SourceError
from robustgen.imaging.decode import (
    EXTENSIONS,
    blame_image,
    decode,
    decode_to_pillow,
    read_dimensions,
    reason_of,
)
from robustgen.imaging.pixels import Rgb
from robustgen.sources.base import Source, class_of, sort_classes
from robustgen.sources.tree import FileTree
from robustgen.sources.walk import UNREAD, Found


class _Listing(NamedTuple):
    """What was found: keys, refused ones with their reasons, and those that are passed over."""

    keys: tuple[str, ...]
    refused: dict[str, str]
    unread: tuple[str, ...]


class FileSource(Source):
    """A source with one file for each image, in a folder or an archive."""

    def __init__(self, tree: FileTree) -> None:
        super().__init__(tree.location)
        self._tree = tree

    def make_ready(self) -> None:
        """Do once what every worker process would else do for itself; a SourceError if that fails."""
        self._tree.make_ready()

    def export_index(self) -> bytes | None:
        """Return what the next run needs to list the source sooner, if it has not got it yet."""
        return self._tree.export_index()

    def _scan(self) -> Iterable[Found]:
        """All that look like images, in any order."""
        return self._tree.find()

    def _name(self, key: str) -> str:
        """What the tree calls the image; found without a listing, which worker processes do not have."""
        return key

    @cached_property
    def _listing(self) -> _Listing:
        found = sorted(dict(self._scan()).items())
        unread = tuple(key for key, reason in found if reason == UNREAD)
        refused = {key: reason for key, reason in found if reason and reason != UNREAD}
        return _Listing(tuple(key for key, reason in found if not reason), refused, unread)

    def keys(self) -> tuple[str, ...]:
        """Return the keys of all usable images, sorted; a SourceError if there are none."""
        keys, refused, unread = self._listing
        if not keys:
            example = "".join(f"; {len(refused)} refused, {k!r}: {why}" for k, why in [*refused.items()][:1])
            example += f"; {len(unread)} passed over, as {unread[0]!r} is {UNREAD}" if unread else ""
            raise SourceError(f"{self.location}: no images (looked for {', '.join(EXTENSIONS)}){example}")
        return keys

    def refused(self) -> dict[str, str]:
        """Return key and reason of whatever looks like an image but must not be processed."""
        return dict(self._listing.refused)

    def passed_over(self) -> tuple[str, ...]:
        """Return the names of images in formats that are not read."""
        return self._listing.unread

    def load(self, key: str) -> Rgb:
        """Decode one image afresh: uint8 ndarray of shape (H, W, 3); an ImageError if it cannot be read."""
        with blame_image(key), self._tree.open(self._name(key)) as file:
            return decode(file, key)

    def open(self, key: str) -> Image.Image:
        """Decode one image afresh to a Pillow image of mode RGB; an ImageError if it cannot be read."""
        with blame_image(key), self._tree.open(self._name(key)) as file:
            return decode_to_pillow(file, key)

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image, from its header; an ImageError if it cannot be read."""
        with blame_image(key), self._tree.open(self._name(key)) as file:
            return read_dimensions(file, key)

    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes; an ImageError if there is no such file."""
        try:
            return self._tree.size(self._name(key))
        except (OSError, ValueError, LookupError) as error:
            raise ImageError(f"{key!r}: {reason_of(error)}") from error

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(sort_classes({class_of(key) for key in self.keys()}))}

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, sorted; numbers by their size."""
        return tuple(self._indices)

    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`; an ImageError if it is of none."""
        try:
            return self._indices[class_of(key)]
        except KeyError:
            raise ImageError(f"{key!r}: of no class that {self.location} has") from None
