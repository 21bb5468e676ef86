"""Sources of encoded image files."""

import hashlib
import io
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from robustgen.benchmark import Kind
from robustgen.errors import ImageError, SourceError
from robustgen.imaging.decode import (
    EXTENSIONS,
    Location,
    as_rgb,
    blame_image,
    decode_to_pillow,
    read_dimensions,
)
from robustgen.imaging.pixels import Decoded, Rgb
from robustgen.sources.base import Source, class_of, sort_classes
from robustgen.sources.index import Cache, Index
from robustgen.sources.places import Place, find_place
from robustgen.sources.trees import FileTree, open_tree
from robustgen.sources.walk import UNREAD, Found


class EncodedSource(Source):
    """A source of encoded images."""

    def read_bytes(self, key: str) -> bytes:
        """Read the file of one image; raise any exception if it cannot be read."""
        raise NotImplementedError

    def load(self, key: str) -> Rgb:
        """Decode one image: uint8 ndarray of shape (H, W, 3); raise an ImageError if it is unreadable."""
        with blame_image(key):
            return as_rgb(self.read(key)[0]).copy()

    def read(self, key: str) -> tuple[Decoded, str]:
        """Decode one image to a Pillow image of mode RGB, and return it with the identity of its file."""
        with blame_image(key):
            data = self.read_bytes(key)
        return decode_to_pillow(io.BytesIO(data), key), hashlib.sha256(data).hexdigest()[:16]

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image from its header; raise an ImageError if unreadable."""
        with blame_image(key):
            return read_dimensions(io.BytesIO(self.read_bytes(key)), key)


class IndexedSource(Index, EncodedSource):
    """Images in files that contain many images each, with an index of their places and labels.

    Parameters
    ----------
    files : path or URL
        A file, a folder of files, or a pattern: ``val-{000000..000063}.tar``, ``val-*.parquet``.
    index : (Store, str), optional
        A file in which the listing may be cached.
    split : str, optional
        Use only the files whose names contain this split.
    kind : {"c", "p"}, optional
        Kind of the set, if the files are one of its variants: keys are the names of the samples (without
        suffix for sequences), and labels are the stored numbers.

    Raises
    ------
    SourceError
        The file does not exist. From all other methods: the files contain no images.
    """

    def __init__(
        self,
        files: Location | Place,
        index: Cache = None,
        split: str | None = None,
        kind: Kind | None = None,
    ) -> None:
        super().__init__(find_place(files).location, index, split, kind)

    def keys(self) -> tuple[str, ...]:
        """Return the sorted keys of all images; raise a SourceError if there are none."""
        listing = self.listing
        if not listing.places:
            example = "".join(f"; {key!r}: {why}" for key, why in [*listing.refused.items()][:1])
            raise SourceError(f"{self.location}: no images{example}")
        return tuple(sorted(listing.places))

    def refused(self) -> dict[str, str]:
        """Return the keys or files that are refused, with the reasons."""
        return dict(self.listing.refused)

    def storage_order(self, key: str) -> tuple[int, ...]:
        """Return the number of the file and the position in it."""
        return tuple(self._place(key)[:3])

    def _place(self, key: str) -> Any:
        try:
            return self.listing.places[key]
        except KeyError:
            raise ImageError(f"{key!r}: no such image in {self.location}") from None

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the classes in the order of the labels."""
        return tuple(self.listing.classes)

    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`; raise an ImageError if it has none."""
        if key not in self.listing.labels:
            raise ImageError(f"{key!r}: in no class of {self.location}")
        return self.listing.labels[key]


class _Listing(NamedTuple):
    """Files found: usable keys, refused keys with the reasons, and unsupported formats."""

    keys: tuple[str, ...]
    refused: dict[str, str]
    unread: tuple[str, ...]


class FileSource(EncodedSource):
    """A source with one file for each image, in a folder or an archive.

    Parameters
    ----------
    root : path, URL or FileTree
        A folder, or one of the archives in `places.ARCHIVES`.
    follow : sequence of path
        Folders outside `root` to which links may lead.
    index : (Store, str), optional
        A file in which the listing of an archive may be cached.

    Raises
    ------
    SourceError
        `root` is neither a folder nor an archive.
    """

    def __init__(
        self, root: Location | Place | FileTree, follow: Sequence[Location] = (), index: Cache = None
    ) -> None:
        tree = open_tree(root, follow, index)
        super().__init__(tree.location)
        self._tree = tree.below(self._find_images(tree))

    def _find_images(self, tree: FileTree) -> str:
        """Return the folder of the images in `tree`; "" is the tree itself."""
        return tree.common_folder()

    def make_ready(self) -> None:
        """List the files for the worker processes."""
        self._tree.make_ready()

    def _scan(self) -> Iterable[Found]:
        """Find all files that look like images, in any order."""
        return self._tree.find()

    def _name(self, key: str) -> str:
        """Return the name of an image in the tree; needs no listing, as worker processes have none."""
        return key

    @cached_property
    def _listing(self) -> _Listing:
        found = sorted(dict(self._scan()).items())
        unread = tuple(key for key, reason in found if reason == UNREAD)
        refused = {key: reason for key, reason in found if reason and reason != UNREAD}
        return _Listing(tuple(key for key, reason in found if not reason), refused, unread)

    def keys(self) -> tuple[str, ...]:
        """Return the sorted keys of all usable images; raise a SourceError if there are none."""
        keys, refused, unread = self._listing
        if not keys:
            others = refused | dict.fromkeys(unread, UNREAD)
            example = "".join(f"; {len(others)} refused, {k!r}: {why}" for k, why in [*others.items()][:1])
            raise SourceError(f"{self.location}: no images (looked for {', '.join(EXTENSIONS)}){example}")
        return keys

    def refused(self) -> dict[str, str]:
        """Return the keys of all refused images, with the reasons."""
        return dict(self._listing.refused)

    def passed_over(self) -> tuple[str, ...]:
        """Return the names of images in unsupported formats."""
        return self._listing.unread

    def read_bytes(self, key: str) -> bytes:
        """Read the file of one image."""
        return self._tree.read(self._name(key))

    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes; raise an ImageError if it does not exist."""
        with blame_image(key):
            return self._tree.size(self._name(key))

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(sort_classes({class_of(key) for key in self.keys()}))}

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the sorted names of the classes; numbers are sorted numerically."""
        return tuple(self._indices)

    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`; raise an ImageError if it has none."""
        try:
            return self._indices[class_of(key)]
        except KeyError:
            raise ImageError(f"{key!r}: in no class of {self.location}") from None
