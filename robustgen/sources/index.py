"""Indexes of the files of a source: built once, and cached for worker processes and later runs."""

import hashlib
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import IO, Any, Final, NamedTuple

from robustgen import __version__
from robustgen.benchmark import Kind
from robustgen.containers.compressed import unpack
from robustgen.errors import SourceError
from robustgen.sources.base import blame_source
from robustgen.sources.places import COMPRESSED, Place, SourceFile
from robustgen.storage import Store
from robustgen.storage.local import LocalStore
from robustgen.storage.temporary import TemporaryFolder

# Version of the cached file's layout.
_LAYOUT: Final = 3

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
    is_lasting : bool
        Whether a later run would find the same; false after a read error that may be temporary.
    remarks : sequence of str
        Remarks about content that is copied unchanged, one sentence each.
    """

    places: dict[str, Sequence[Any]]
    refused: dict[str, str]
    classes: Sequence[str]
    labels: dict[str, int]
    is_lasting: bool = True
    remarks: Sequence[str] = ()


class _Known:
    """State of an index in this process: files, their listing once made, and unpacked copies."""

    def __init__(self) -> None:
        self.files: list[SourceFile] = []
        self.listing: Listing | None = None
        self.is_new = False
        self.copies: TemporaryFolder | None = None


# Another process sends the index with each task.
@lru_cache(maxsize=4)
def _find_known(token: str) -> _Known:
    """Return the one index of this process that has the `token`."""
    return _Known()


class Index(ABC):
    """Index of the files of a source, built on first use.

    A pickled index contains the location of the cached listing, not the listing: other processes read the
    cache, if size and stamp of all files are unchanged, or list the files themselves.

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
        self.location, self._cache, self._token = location, cache, secrets.token_hex(8)
        self.split, self.kind = split, kind
        self._known: _Known | None = _Known()
        # Folder with unpacked copies that belongs to another process on this machine.
        self._lent = ""

    def find_files(self) -> list[SourceFile]:
        """Look up the files of the source: by default, a single one."""
        return [Place(self.location).file]

    def find_companions(self, files: list[SourceFile]) -> list[SourceFile]:
        """Look up other files that the index depends on, existing or not."""
        return []

    @abstractmethod
    def build(self, files: list[SourceFile]) -> Listing:
        """Read through all files.

        Raises
        ------
        OSError, ValueError
            No file can be read.
        """

    def is_packed(self, file: SourceFile) -> bool:
        """Return whether the file must be unpacked before its images can be read."""
        return file.name.lower().endswith(COMPRESSED)

    def unpack_file(self, packed: IO[bytes], file: SourceFile, write: Callable[[bytes], Any]) -> str | None:
        """Unpack a file, passing its content to `write`; return a description of any damage."""
        return unpack(packed, file.name, file.size, write)

    @property
    def listing(self) -> Listing:
        """Return the listing: from memory, from the cache, or by listing the files.

        Raises
        ------
        SourceError
            The files cannot be listed.
        """
        known = self._get()
        if known.listing is None:
            known.listing = self._read_cached(known.files)
        if known.listing is None:
            with blame_source(self.location):
                known.listing, known.is_new = self.build(known.files), True
        return known.listing

    @property
    def files(self) -> list[SourceFile]:
        """Return the files of the source."""
        return self._get().files

    def make_ready(self) -> None:
        """List the files, cache the listing and unpack compressed files, to spare each worker the work.

        Raises
        ------
        SourceError
            The source cannot be read.
        OSError
            The index cannot be cached.
        """
        listing, known = self.listing, self._get()
        with blame_source(self.location):
            for number, file in enumerate(known.files):
                if self.is_packed(file) and file.size >= 0:
                    self.locate(number)
        if self._cache and known.is_new and listing.is_lasting:
            content = {"of": self._fingerprint(known.files), "listing": listing}
            body = json.dumps(content, separators=(",", ":")).encode()
            store, name = self._cache
            store.put(name, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            known.is_new = False

    def read(self, number: int, start: int, size: int) -> bytes:
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
        known = self._get()
        if not self.is_packed(known.files[number]):
            file = self.check(number)
            return file.store, file.name
        name = f"{number}.tar"
        for folder in (str(known.copies.path) if known.copies else "", self._lent):
            if folder and (store := LocalStore(folder, folder)).exists(name):
                return store, name
        self.unpack(number)
        assert known.copies
        return LocalStore(known.copies.path, known.copies.path), name

    def check(self, number: int) -> SourceFile:
        """Return one of the files; raise a ValueError if it has changed since it was listed."""
        file = self.files[number]
        # Asking a server takes longer than reading an image, so each process checks once.
        if file.store.is_local or file not in _CHECKED:
            file.check_unchanged()
            _CHECKED.add(file)
        return file

    def __getstate__(self) -> dict[str, Any]:
        copies = self._known and self._known.copies
        return vars(self) | {"_known": None, "_lent": str(copies.path) if copies else self._lent}

    def _get(self) -> _Known:
        """Return the state of the index, with the files looked up."""
        self._known = self._known or _find_known(self._token)
        if not self._known.files:
            with blame_source(self.location):
                self._known.files = self.find_files()
        return self._known

    def _read_cached(self, files: list[SourceFile]) -> Listing | None:
        """Read the cached listing of an earlier run; return None if it is damaged or of other files."""
        if self._cache:
            with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
                digest, _, body = self._cache[0].read(self._cache[1]).partition(b"\n")
                if digest == hashlib.sha256(body).hexdigest().encode():
                    content = json.loads(body)
                    if content["of"] == self._fingerprint(files):
                        return Listing(*content["listing"])
        return None

    def _fingerprint(self, files: list[SourceFile]) -> list[Any]:
        """Return everything that the index depends on."""
        stamps = [
            [f"{each.store.location}/{each.name}", each.size, each.stamp]
            for each in (*files, *self.find_companions(files))
        ]
        return [_LAYOUT, __version__, type(self).__name__, self.location, self.split, stamps]

    def unpack(self, number: int) -> str | None:
        """Unpack a compressed file; return a description of any damage."""
        known = self._get()
        file = known.files[number]
        file.check_unchanged()
        try:
            known.copies = known.copies or TemporaryFolder()
            copies = LocalStore(known.copies.path, known.copies.path)
            with file.store.open(file.name) as packed, copies.create(f"{number}.tar") as target:
                return self.unpack_file(packed, file, target.write)
        except (ConnectionError, FileNotFoundError):
            raise
        except OSError as error:
            where = f"{file.store.location}/{file.name}: cannot be unpacked to a temporary file"
            raise SourceError(f"{where} ({error.strerror}); set TMPDIR to another folder") from error


_CHECKED: set[SourceFile] = set()
