"""Sources of encoded image files, and the indexes of those with many images per file.

An index is built once, and cached for worker processes and later runs.
"""

import hashlib
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, ClassVar, Final

from robustgen import __version__
from robustgen.errors import ImageError, MissingDependencyError, SourceError
from robustgen.files.containers.archives import unpack
from robustgen.files.lazy import cached_property
from robustgen.files.storage import Store
from robustgen.files.storage.local import LocalStore, TemporaryFolder
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.decode import (
    PILLOW_FORMATS,
    Levels,
    Location,
    decode,
    decode_to_pillow,
    name_image_in_errors,
    read_dimensions,
    read_header,
    reason_of,
)
from robustgen.pixels.imaging.file_tags import FileTags
from robustgen.pixels.imaging.jpeg import Libjpeg
from robustgen.sets.sources.base import (
    DEFAULTS,
    Cache,
    Items,
    Loaded,
    Reusable,
    Source,
    SourceOptions,
    class_of,
    name_source_in_errors,
)
from robustgen.sets.sources.classes import describe_order, list_numbers, sort_classes
from robustgen.sets.sources.places import COMPRESSED, Place, SourceFile, explain_foreign, find_place

# Of all copies of this process, as a lock cannot be sent to workers.
_UNPACKING: Final = Lock()


class Copies:
    """Temporary folder of unpacked files, which worker processes of this machine use too."""

    def __init__(self) -> None:
        self._own: TemporaryFolder | None = None
        self._path: Path | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_own": None}

    def find(self, name: str, write: Callable[[BinaryIO], Any], where: str) -> LocalStore:
        """Return the store of the copy `name`; if it is missing, ``write(file)`` creates it.

        Raises
        ------
        SourceError
            The copy cannot be written; the message names the file `where`.
        """
        try:
            with _UNPACKING:
                # The folder of the process that sent this object may be on another machine.
                if not self._path or not self._path.is_dir():
                    self._own = TemporaryFolder()
                    self._path = self._own.path
                store = LocalStore(self._path, self._path)
                if not store.exists(name):
                    with store.create(name) as target:
                        write(target)
                return store
        except (ConnectionError, FileNotFoundError):
            raise
        except OSError as error:
            problem = f"cannot be unpacked to a temporary file ({error.strerror or error})"
            raise SourceError(f"{where}: {problem}; set TMPDIR to another folder") from error


# Version of the cached file's layout.
_LAYOUT: Final = 10


@dataclass
class SourceListing:
    """Images of a source, or files of an archive; JSON-serialisable.

    Attributes
    ----------
    places : dict
        Key or name to the place of the image. A place in an index is the number of the file, the position in
        that file and, last, the size of the image in bytes.
    refused : dict of str to str
        Refused images and files, with the reasons.
    classes : sequence of str
        Names of the classes in the order of the labels.
    labels : dict of str to int
        Key to the stored label, of a variant of a set or of a table; all other keys begin with the class.
    remarks : sequence of str
        Remarks about content that is skipped or copied unchanged, one line each.
    are_numbers : bool
        Whether the classes are bare numbers, of which there may be more.
    copies : dict of str to str
        Key of an image that repeats an earlier one of a table to the key of that one.
    """

    places: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    classes: Sequence[str] = ()
    labels: dict[str, int] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    are_numbers: bool = False
    copies: dict[str, str] = field(default_factory=dict)

    def add(self, key: str, place: Any, refusal: str | None = None) -> None:
        """Add an image, or the reason for refusing it; images with one key are all refused."""
        if key in self.places or key in self.refused:
            refusal = "occurs twice"
            self.places.pop(key, None)
        if refusal:
            self.refused[key] = refusal
        else:
            self.places[key] = place

    def order_classes(self, recorded: Sequence[str] = (), *, are_numbers: bool = False) -> None:
        """Set `classes` to those of the keys.

        Parameters
        ----------
        recorded : sequence of str
            All classes in the order of the labels, if known.
        are_numbers : bool
            Whether the labels are integers without names.
        """
        found = {class_of(key) for key in self.places}
        known = recorded or (list_numbers(found) if are_numbers else None)
        self.classes, self.are_numbers = known or sort_classes(found), are_numbers and bool(known)
        if not known:
            self.remarks = [*self.remarks, *describe_order(self.classes)]

    @contextmanager
    def refuse_damaged(self, name: str, prefix: str = "") -> Iterator[None]:
        """Refuse the file `name` if it cannot be read, unless a connection was lost, which is no damage."""
        try:
            yield
        except (ConnectionError, MissingDependencyError):
            raise
        # pyarrow has exceptions of its own.
        except Exception as error:
            self.refused[name] = prefix + reason_of(error)


class Index(Reusable, ABC):
    """Index of the files of a source, built on first use.

    Worker processes read the cached listing, if size and stamp of all files are unchanged, or list the files
    themselves.

    Parameters
    ----------
    location : str
    cache : (Store, str), optional
    split : str, optional
        The only split to list.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """Suffixes of the files in a folder that belong to the source."""

    def __init__(self, location: str, cache: Cache = None, split: str | None = None) -> None:
        self.location: str = location
        self.cache: Cache = cache
        self.split: str | None = split
        self._copies = Copies()

    @cached_property
    def _checked(self) -> set[int]:
        """Return the numbers of the files that this process has found unchanged."""
        return set()

    @cached_property
    def files(self) -> list[SourceFile]:
        """Return the files of the source."""
        with name_source_in_errors(self.location):
            return Place(self.location).expand(self.suffixes, self.split)

    def find_companions(self) -> list[SourceFile]:
        """Look up other files that the index depends on, existing or not."""
        return []

    @abstractmethod
    def build(self) -> SourceListing:
        """Read through all files.

        Raises
        ------
        OSError, ValueError
            The files cannot be read, or a connection was lost.
        """

    @cached_property
    def listing(self) -> SourceListing:
        """Return the listing: from memory, from the cache, or by listing the files.

        Raises
        ------
        SourceError
            The files cannot be listed.
        """
        with name_source_in_errors(self.location):
            return self._cached or self.build()

    @cached_property
    def _cached(self) -> SourceListing | None:
        """Return the cached listing of an earlier run; None if it is damaged or of other files."""
        if self.cache:
            with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
                digest, _, body = self.cache[0].read(self.cache[1]).partition(b"\n")
                content = json.loads(body)
                if digest == _digest(body) and content["of"] == self._fingerprint():
                    return SourceListing(**content["listing"])
        return None

    def make_ready(self) -> None:
        """List the files, cache the listing and unpack compressed files, to spare each worker the work.

        Raises
        ------
        SourceError
            The source cannot be read.
        OSError
            The index cannot be cached.
        """
        listing = self.listing
        with name_source_in_errors(self.location):
            for number in {place[0] for place in listing.places.values()}:
                if self.files[number].name.lower().endswith(COMPRESSED):
                    self.locate(number)
        if self.cache and not self._cached:
            content = {"of": self._fingerprint(), "listing": vars(listing)}
            body = json.dumps(content, separators=(",", ":")).encode()
            self.cache[0].put(self.cache[1], _digest(body) + b"\n" + body)

    def read_part(self, number: int, start: int, size: int) -> bytes:
        """Read a part of one of the files, unpacked.

        Raises
        ------
        OSError, ValueError
            The file cannot be read, is too short, or has changed since it was listed.
        """
        store, name = self.locate(number)
        data = store.read(name, start, size)
        if len(data) < size:
            raise ValueError("the archive ends within it")
        return data

    def locate(self, number: int) -> tuple[Store, str]:
        """Return store and name of one of the files, unpacked; raise a ValueError if it has changed."""
        file = self.check(number)
        if not file.name.lower().endswith(COMPRESSED):
            return file.store, file.name
        name = f"{number}.tar"

        def write(target: BinaryIO) -> None:
            with file.store.open(file.name) as packed:
                unpack(packed, file.name, file.size, target.write)

        return self._copies.find(name, write, f"{file.store.location}/{file.name}"), name

    def check(self, number: int) -> SourceFile:
        """Return one of the files; raise a ValueError if it has changed since it was listed."""
        file = self.files[number]
        # Asking a server takes longer than reading an image, so each process checks once.
        if file.store.is_local or number not in self._checked:
            if SourceFile.look(file.store, file.name) != file:
                raise ValueError(f"{file.name} has changed since it was listed")
            self._checked.add(number)
        return file

    def _fingerprint(self) -> list[Any]:
        stamps = [
            [f"{each.store.location}/{each.name}", each.size, each.stamp]
            for each in (*self.files, *self.find_companions())
        ]
        return [_LAYOUT, __version__, type(self).__name__, self.location, self.split, stamps]


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


# --- sources -------------------------------------------------------------------------------------


def _identify(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


class ListedItems(Items[Loaded]):
    """Items with a listing; keys begin with the class."""

    formats: ClassVar[str] = f"no images in the formats {', '.join(PILLOW_FORMATS)}"
    """Sentence about the formats, for a source without any item."""

    @property
    @abstractmethod
    def listing(self) -> SourceListing:
        """Return the items found."""

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        places, refused = self.listing.places, self.listing.refused
        if not places:
            first = [f"{len(refused)} refused, {key!r}: {why}" for key, why in [*refused.items()][:1]]
            none = explain_foreign(Place(self.location)) or self.formats
            raise SourceError(f"{self.location}: {'; '.join([none, *first, *self.remarks()])}")
        return tuple(sorted(places))

    def keys(self) -> tuple[str, ...]:
        """Return the sorted keys of all usable images; raise a SourceError if there are none."""
        return self._keys

    def refused(self) -> dict[str, str]:
        """Return the keys of all refused images and files, with the reasons."""
        return dict(self.listing.refused)

    def remarks(self) -> Sequence[str]:
        """Return remarks about content that is skipped or copied unchanged, one line each."""
        return self.listing.remarks

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the classes in the order of the labels."""
        return tuple(self.listing.classes)

    @property
    def class_count(self) -> int | None:
        """Return the number of classes; None if they are bare numbers, of which there may be more."""
        return None if self.listing.are_numbers else len(self.classes)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.listing.classes)}

    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`; raise an ImageError if it has none."""
        try:
            return self._numbers[class_of(key)]
        except KeyError:
            raise ImageError(f"in no class of {self.location}", key) from None

    def _place(self, key: str) -> Any:
        """Return the place of one item; raise an ImageError if `key` is unknown."""
        try:
            return self.listing.places[key]
        except KeyError:
            raise ImageError(f"no such image in {self.location}", key) from None


class EncodedSource(ListedItems[Rgb], Source):
    """A source of encoded images with a listing; keys begin with the class.

    Attributes
    ----------
    libjpeg : {"turbo", "ijg"}
        Decoder of its JPEG files.
    """

    libjpeg: Libjpeg = "turbo"

    @abstractmethod
    def read_bytes(self, key: str) -> bytes:
        """Read the file of one image; raise any exception if it cannot be read."""

    def load(self, key: str) -> Rgb:
        """Decode one image: uint8 ndarray of shape (H, W, 3); raise an ImageError if it is unreadable."""
        return self.decode(self.read_encoded(key), key)

    def read_encoded(self, key: str) -> Any:
        """Read what `decode` takes: the bytes of the file; raise an ImageError if it is unreadable."""
        with name_image_in_errors(key):
            return self.read_bytes(key)

    def decode(self, data: Any, key: str) -> Rgb:
        """Decode the bytes of the file of one image, as `load` does."""
        return decode(io.BytesIO(data), key, self.libjpeg, self.levels)

    def read(self, key: str) -> tuple[Decoded, str]:
        """Decode one image to a Pillow image of its own mode; return it with the identity of its file."""
        with name_image_in_errors(key):
            data = self.read_bytes(key)
        return decode_to_pillow(io.BytesIO(data), key, self.libjpeg, self.levels), _identify(data)

    def identify(self, key: str) -> str:
        """Return the identity of one image's file; raise an ImageError if it cannot be read."""
        with name_image_in_errors(key):
            return _identify(self.read_bytes(key))

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image from its header; raise an ImageError if unreadable."""
        with name_image_in_errors(key):
            return read_dimensions(io.BytesIO(self.read_bytes(key)), key)

    def read_header(self, key: str) -> tuple[int, int, FileTags]:
        """Return width, height, orientation and colour profile; raise an ImageError if unreadable."""
        with name_image_in_errors(key):
            return read_header(io.BytesIO(self.read_bytes(key)), key)


class IndexedSource(Index, EncodedSource):
    """Images in files that contain many images each, with an index of their places.

    Parameters
    ----------
    files : path or URL
        A file, a folder of files, or a pattern: ``val-{000000..000063}.tar``, ``val-*.parquet``.
    options : SourceOptions
        With a `split`, only the files whose names contain it are used.

    Raises
    ------
    SourceError
        The file does not exist. From all other methods: the files contain no images.

    Examples
    --------
    >>> import robustgen
    >>> from robustgen.plugins import Choices, IndexedSource, open_chosen_source
    >>> keys = {"corruptions": "contrast", "limit": 2, "format": "webdataset", "quiet": True}
    >>> made = robustgen.make_c("demo", output="out", jobs=1, **keys)
    >>> source = open_chosen_source(Choices(source="out/contrast/1"))
    >>> isinstance(source, IndexedSource), len(source.keys())
    (True, 2)
    """

    def __init__(self, files: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        super().__init__(find_place(files).location, options.cache, options.split)
        self.libjpeg: Libjpeg = options.libjpeg
        self.levels: Levels | None = options.levels
        self.label_column: str | None = options.label_column

    def _fingerprint(self) -> list[Any]:
        return [*super()._fingerprint(), self.label_column]

    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes; raise an ImageError if `key` is unknown."""
        return int(self._place(key)[-1])

    def stat(self, key: str) -> tuple[int, str]:
        """Return the size of one image's file, and the stamp of the file that contains it."""
        return self.size(key), self.files[self._place(key)[0]].stamp
