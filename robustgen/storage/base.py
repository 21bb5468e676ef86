"""The interface of all stores."""

import hashlib
import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, ClassVar, Final, NamedTuple

CLOSED: Final = "cannot be listed"
"""What `Store.list_irregular` says of a folder that is closed to us."""


class Entry(NamedTuple):
    """A file in a store.

    Attributes
    ----------
    path : str
        POSIX path below the store.
    size : int
        Bytes; -1 if the server does not tell.
    stamp : str
        Differs when the content may differ; "" if the server does not tell.
    """

    path: str
    size: int
    stamp: str


class Writer(io.RawIOBase):
    """A file that is written in pieces; knows its size and SHA-256 so far."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash, self.size = file, hashlib.sha256(), 0
        self._in_sequence, self.is_discarded = True, False

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of all bytes written so far, in hexadecimal."""
        if not self._in_sequence:
            self._hash, self._in_sequence = hashlib.sha256(), True
            for block in self.read_back():
                self._hash.update(block)
        return self._hash.hexdigest()

    def read_back(self) -> Iterator[bytes]:
        """Yield what is written so far, in pieces."""
        self._file.seek(0)
        while block := self._file.read(1 << 20):
            yield block

    def write_at(self, offset: int, data: bytes) -> None:
        """Write `data` at any place, which need not follow on what is written."""
        if self._in_sequence:
            self._file.flush()
            self._in_sequence = False
        # Past the buffer, which every seek would empty.
        raw = getattr(self._file, "raw", self._file)
        raw.seek(offset)
        view = memoryview(data)
        while view:
            view = view[raw.write(view) :]
        self.size = max(self.size, offset + len(data))

    def discard(self) -> None:
        """Say that there is to be no file after all."""
        self.is_discarded = True

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Append `data` and return the number of its bytes."""
        self._file.write(data)
        self._hash.update(data)
        count = memoryview(data).nbytes
        self.size += count
        return count

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self.size


class Seekable(io.RawIOBase):
    """A file that is being written, for archives that go back to complete what they wrote before."""

    def __init__(self, target: Writer) -> None:
        self._target, self._at = target, 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next bytes go."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Choose where the next bytes go."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence, self._target.size)
        return self._at

    def write(self, data: Any) -> int:
        """Write `data` there, and return the number of its bytes."""
        self._target.write_at(self._at, data)
        count = memoryview(data).nbytes
        self._at += count
        return count


class Store(ABC):
    """Files below one place, under POSIX paths. Small and picklable; equal to others of the same place.

    All methods raise an OSError with a one-line `strerror` if the place cannot be reached or refuses.

    Attributes
    ----------
    location : str
        Absolute path or URL, without a trailing slash.
    """

    location: str
    is_local: ClassVar[bool]

    @abstractmethod
    def read(self, path: str, start: int = 0, size: int | None = None) -> bytes:
        """Read a file, or up to `size` of its bytes from `start` on."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """Open a file for reading; it can be searched."""

    @abstractmethod
    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file, whole or not at all.

        Raises
        ------
        FileExistsError
            `exclusive`, and there is one already.
        OutputError
            A link leads out of the store.
        """

    @abstractmethod
    def create(self, path: str) -> AbstractContextManager[Writer]:
        """Write a file in pieces: it appears when the block ends, and not at all if the block raises."""

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Iterate over all files below the folder `prefix`, hidden ones too, sorted by path."""

    @abstractmethod
    def stat(self, path: str) -> Entry:
        """Look up one file.

        Raises
        ------
        FileNotFoundError
            There is none.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file, if there is one, and the folders that are empty without it."""

    @abstractmethod
    def folder(self, path: str) -> "Store":
        """Return the store of a folder below; "" gives this store."""

    @abstractmethod
    def sizes(self, paths: Iterable[str]) -> Iterator[int]:
        """Iterate over the sizes of many files; -1 stands for one that does not exist."""

    def passing_over_closed(self) -> "Store":
        """Return this store, but its listings pass over folders that cannot be listed, where others raise."""
        return self

    def list_irregular(self) -> Iterator[tuple[str, str]]:
        """Iterate over links, empty folders and what else is no file, each with what it is."""
        return iter(())

    def exists(self, path: str) -> bool:
        """Return True if there is a file at `path`."""
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def copy(self, source: "Store", name: str, path: str, *, link: bool = False) -> None:
        """Copy the file `name` of another store to `path`, by a hard link if `link` and both can."""
        with source.open(name) as file, self.create(path) as target:
            shutil.copyfileobj(file, target, 1 << 20)

    def clean(self) -> None:  # noqa: B027
        """Delete temporary files that dead processes of this host left behind."""

    def withdraw(self) -> None:  # noqa: B027
        """Remove the folder, and those above it, as far as this store has created them and they are empty."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self.location == other.location

    def __hash__(self) -> int:
        return hash(self.location)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"
