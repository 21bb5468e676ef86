"""Interface of all stores."""

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from typing import BinaryIO, ClassVar, Final, NamedTuple, TypeVar

AT_ONCE: Final = 32
"""Number of requests to a remote store under way at once, so that few wait for a round trip."""
MOST_BYTES: Final = 64 << 20
"""Bytes in memory that are read or written at once."""

_Place = TypeVar("_Place")
_Piece = TypeVar("_Piece")


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


def measure(file: BinaryIO, algorithm: str = "sha256") -> tuple[int, str]:
    """Return the size of a file in bytes, and its digest in hexadecimal."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    file.seek(0)
    while block := file.read(1 << 20):
        digest.update(block)
    return file.tell(), digest.hexdigest()


def prefetch(
    read: Callable[[_Place], _Piece],
    places: Iterable[_Place],
    ahead: int = 2,
    count_bytes: Callable[[_Place], int] = lambda _: 0,
) -> Iterator[_Piece]:
    """Yield the results of `read` for all `places` in order, reading a few ahead, each by its own thread.

    Fewer are read ahead if the bytes of the places, which `count_bytes` returns, are more than 64 MiB.
    """
    # Cannot be imported when Python ends, whereas this module can.
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[tuple[Future[_Piece], int]] = deque()
    with ThreadPoolExecutor(ahead) as pool:
        for place in places:
            # In the context of the caller, who may be quiet.
            waiting.append((pool.submit(copy_context().run, read, place), count_bytes(place)))
            while len(waiting) > ahead or sum(size for _, size in waiting) > MOST_BYTES:
                yield waiting.popleft()[0].result()
        while waiting:
            yield waiting.popleft()[0].result()


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
    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Write a file in pieces; it appears when the block ends, or not at all if the block raises.

        The file can be read too, for instance by `measure`.
        """

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

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete all files that exist; see `delete`."""
        deque(self.map(self.delete, paths), maxlen=0)

    @abstractmethod
    def folder(self, path: str) -> "Store":
        """Return the store of a folder of this store; "" gives this store."""

    def map(
        self,
        act: Callable[[_Place], _Piece],
        places: Iterable[_Place],
        ahead: int = AT_ONCE,
        count_bytes: Callable[[_Place], int] = lambda _: 0,
    ) -> Iterator[_Piece]:
        """Yield the results of `act` in order; on a remote store, `act` is called for many places at once.

        Fewer if their bytes are many; see `prefetch`.
        """
        return map(act, places) if self.is_local else prefetch(act, places, ahead, count_bytes)

    def open_flight(self) -> AbstractContextManager["Store"]:
        """Open this store for a block that writes files; where that is slow, many are written at once.

        All files exist when the block ends. If one cannot be written, its error is raised at the end of the
        block, and any further writing in the block raises an OSError.
        """
        return nullcontext(self)

    def sizes(self, paths: Iterable[str]) -> Iterator[int]:
        """Return the sizes of files; -1 for a file that does not exist."""
        return (entry.size if entry else -1 for entry in self.map(self.find, paths))

    def walk(self) -> Iterator[tuple[str, str]]:
        """Yield the path of everything below, sorted; with "" for files, and else with a description."""
        return ((entry.path, "") for entry in self.list())

    def list_irregular(self) -> Iterator[tuple[str, str]]:
        """Yield links, empty folders and everything else that is not a file, each with a description."""
        return iter(())

    def find(self, path: str) -> Entry | None:
        """Look up one file; return None if it does not exist."""
        try:
            return self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def exists(self, path: str) -> bool:
        """Return whether there is a file at `path`."""
        return self.find(path) is not None

    def copy(self, source: "Store", name: str, path: str, *, link: bool = False) -> None:
        """Copy the file `name` of another store to `path`; if `link`, as a hard link where possible."""
        with source.open(name) as file, self.create(path) as target:
            shutil.copyfileobj(file, target, 1 << 20)

    def clean(self) -> None:  # noqa: B027
        """Delete the temporary files of dead processes of this host."""

    def expect(self, location: str) -> None:  # noqa: B027
        """Create no more folders once the file at `location` is gone, because the store is then lost."""

    def measure_free_space(self) -> int | None:
        """Return the free bytes of the file system; None if the location has no such limit."""
        return None

    def open_scratch(self) -> AbstractContextManager["Store | None"]:
        """Open a store on the same file system for a block, whose files are then removed; None on servers."""
        return nullcontext()

    def withdraw(self) -> None:  # noqa: B027
        """Remove the folder if it is empty."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self.location == other.location

    def __hash__(self) -> int:
        return hash(self.location)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"
