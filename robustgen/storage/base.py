"""Interface of all stores."""

import hashlib
import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, ClassVar, NamedTuple


class Entry(NamedTuple):
    """File in a store.

    Attributes
    ----------
    path : str
        POSIX path below the store.
    size : int
        Size in bytes; -1 if the server does not report it.
    stamp : str
        Changes whenever the content may have changed; "" if the server does not report it.
    """

    path: str
    size: int
    stamp: str


class Writer(io.RawIOBase):
    """File that is being written, with its current size and SHA-256; `is_discarded` cancels it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash, self._hashed = file, hashlib.sha256(), 0
        self._at, self.size, self.is_discarded = 0, 0, False

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of all bytes written so far, in hexadecimal."""
        if self._hashed != self.size:
            self._hash, self._hashed = hashlib.sha256(), self.size
            for block in self.read_back():
                self._hash.update(block)
        return self._hash.hexdigest()

    def read_back(self) -> Iterator[bytes]:
        """Yield the bytes written so far, in pieces."""
        self._file.seek(0)
        while block := self._file.read(1 << 20):
            yield block
        self._file.seek(self._at)

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next write."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the offset of the next write, and return it."""
        self._at = self._file.seek(offset, whence)
        return self._at

    def write(self, data: Any) -> int:
        """Write `data`, and return its number of bytes."""
        self._file.write(data)
        count = memoryview(data).nbytes
        # Bytes that are not written in sequence are hashed at the end.
        if self._at == self._hashed:
            self._hash.update(data)
            self._hashed += count
        else:
            self._hashed = -1
        self._at += count
        self.size = max(self.size, self._at)
        return count


class Store(ABC):
    """Files below one location, under POSIX paths. Small and picklable; equal if the locations are equal.

    All methods raise an OSError with a one-line `strerror` if the location cannot be reached or used.

    Attributes
    ----------
    location : str
        Absolute path or URL, without a trailing slash.
    """

    location: str
    is_local: ClassVar[bool]

    @abstractmethod
    def read(self, path: str, start: int = 0, size: int | None = None) -> bytes:
        """Read a file, or up to `size` bytes of it from offset `start`."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """Open a file for reading; the file is seekable."""

    @abstractmethod
    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file completely or not at all.

        Raises
        ------
        FileExistsError
            With `exclusive`, if the file exists.
        OutputError
            A link leads out of the store.
        """

    @abstractmethod
    def create(self, path: str) -> AbstractContextManager[Writer]:
        """Write a file in pieces; it appears when the block ends, or not at all if the block raises."""

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Yield all files below the folder `prefix`, including hidden ones, sorted by path."""

    @abstractmethod
    def stat(self, path: str) -> Entry:
        """Look up one file.

        Raises
        ------
        FileNotFoundError
            The file does not exist.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file if it exists, and the folders that are then empty."""

    @abstractmethod
    def folder(self, path: str) -> "Store":
        """Return the store of a folder of this store; "" gives this store."""

    @abstractmethod
    def sizes(self, paths: Iterable[str]) -> Iterator[int]:
        """Yield the sizes of many files; -1 for a file that does not exist."""

    def list_irregular(self) -> Iterator[tuple[str, str]]:
        """Yield links, empty folders and everything else that is not a file, each with a description."""
        return iter(())

    def exists(self, path: str) -> bool:
        """Return whether there is a file at `path`."""
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def copy(self, source: "Store", name: str, path: str, *, link: bool = False) -> None:
        """Copy the file `name` of another store to `path`; if `link`, as a hard link where possible."""
        with source.open(name) as file, self.create(path) as target:
            shutil.copyfileobj(file, target, 1 << 20)

    def clean(self) -> None:  # noqa: B027
        """Delete the temporary files of dead processes of this host."""

    def withdraw(self) -> None:  # noqa: B027
        """Remove the folder and its parents, as far as this store created them and they are empty."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self.location == other.location

    def __hash__(self) -> int:
        return hash(self.location)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"
