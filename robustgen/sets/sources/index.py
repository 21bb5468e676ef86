"""Indexes of the files of a source: built once, and cached for worker processes and later runs."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO, ClassVar, Final

from robustgen import __version__
from robustgen.errors import MissingDependencyError
from robustgen.files.containers.archives import unpack
from robustgen.files.storage import Store
from robustgen.pixels.imaging.decode import reason_of
from robustgen.sets.sources.base import Cache, Reusable, class_of, name_source_in_errors
from robustgen.sets.sources.classes import describe_order, list_numbers, sort_classes
from robustgen.sets.sources.copies import Copies
from robustgen.sets.sources.places import COMPRESSED, Place, SourceFile

# Version of the cached file's layout.
_LAYOUT: Final = 7


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
        Key to the stored label, if the files are a variant of a set; all other keys begin with the class.
    remarks : sequence of str
        Remarks about content that is skipped or copied unchanged, one line each.
    are_numbers : bool
        Whether the classes are bare numbers, of which there may be more.
    """

    places: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    classes: Sequence[str] = ()
    labels: dict[str, int] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    are_numbers: bool = False

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
        self.location, self.cache, self.split = location, cache, split
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
        """Return everything that the index depends on."""
        stamps = [
            [f"{each.store.location}/{each.name}", each.size, each.stamp]
            for each in (*self.files, *self.find_companions())
        ]
        return [_LAYOUT, __version__, type(self).__name__, self.location, self.split, stamps]


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
