"""Indexes of the files of a source: built once, and cached for worker processes and later runs."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, BinaryIO, Final, NamedTuple

from robustgen import __version__
from robustgen.benchmark import Kind
from robustgen.containers.compressed import unpack
from robustgen.sources.base import Reusable, blame_source
from robustgen.sources.copies import Copies
from robustgen.sources.places import COMPRESSED, Place, SourceFile
from robustgen.storage import Store

# Version of the cached file's layout.
_LAYOUT: Final = 4

Cache = tuple[Store, str] | None
"""Location of a cached index: a store and the name of a file in it."""


class Listing(NamedTuple):
    """Content of an index, JSON-serialisable.

    Attributes
    ----------
    places : dict
        Key or name to the number of the file and the image's position in it.
    refused : dict of str to str
        Refused images and files, with the reasons.
    classes : sequence of str
        Names of the classes, if there are labels.
    labels : dict of str to int
        Key to the index in `classes`.
    remarks : sequence of str
        Remarks about content that is copied unchanged, one sentence each.
    """

    places: dict[str, Any]
    refused: dict[str, str]
    classes: Sequence[str]
    labels: dict[str, int]
    remarks: Sequence[str] = ()

    def add(self, key: str, place: Any, refusal: str | None = None) -> None:
        """Add an image, or the reason for refusing it; images with one key are all refused."""
        if key in self.places or key in self.refused:
            refusal = "occurs twice"
            self.places.pop(key, None)
        if refusal:
            self.refused[key] = refusal
        else:
            self.places[key] = place

    def number(self, classes: Sequence[str], names: Mapping[str, str]) -> "Listing":
        """Return the listing with these `classes`; `names` maps each key to its class."""
        index = {name: number for number, name in enumerate(classes)}
        return self._replace(classes=classes, labels={key: index[names[key]] for key in self.places})


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
    kind : {"c", "p"}, optional
        Kind of the set, if the files are one of its variants: names and labels are listed as stored.
    """

    def __init__(
        self, location: str, cache: Cache = None, split: str | None = None, kind: Kind | None = None
    ) -> None:
        self.location, self.cache, self.split, self.kind = location, cache, split, kind
        self._copies = Copies()

    @cached_property
    def _checked(self) -> set[int]:
        """Return the numbers of the files that this process has found unchanged."""
        return set()

    @cached_property
    def files(self) -> list[SourceFile]:
        """Return the files of the source."""
        with blame_source(self.location):
            return self.find_files()

    def find_files(self) -> list[SourceFile]:
        """Look up the files of the source: by default, a single one."""
        return [Place(self.location).file]

    def find_companions(self) -> list[SourceFile]:
        """Look up other files that the index depends on, existing or not."""
        return []

    @abstractmethod
    def build(self) -> Listing:
        """Read through all files.

        Raises
        ------
        OSError, ValueError
            No file can be read, or a connection was lost.
        """

    @cached_property
    def listing(self) -> Listing:
        """Return the listing: from memory, from the cache, or by listing the files.

        Raises
        ------
        SourceError
            The files cannot be listed.
        """
        with blame_source(self.location):
            return self._cached or self.build()

    @cached_property
    def _cached(self) -> Listing | None:
        """Return the cached listing of an earlier run; None if it is damaged or of other files."""
        if self.cache:
            with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
                digest, _, body = self.cache[0].read(self.cache[1]).partition(b"\n")
                content = json.loads(body)
                if digest == _digest(body) and content["of"] == self._fingerprint():
                    return Listing(*content["listing"])
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
        with blame_source(self.location):
            used = {place[0] for place in listing.places.values()}
            for number, file in enumerate(self.files):
                if number in used and file.name.lower().endswith(COMPRESSED):
                    self.locate(number)
        if self.cache and not self._cached:
            body = json.dumps({"of": self._fingerprint(), "listing": listing}, separators=(",", ":")).encode()
            self.cache[0].put(self.cache[1], _digest(body) + b"\n" + body)
            self._cached = listing

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
            file.check_unchanged()
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
