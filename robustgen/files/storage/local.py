"""Store in a folder of this machine."""

import errno
import itertools
import os
import secrets
import shutil
import stat
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from robustgen.errors import OutputError
from robustgen.files.storage.base import Entry, Store
from robustgen.files.storage.flight import Flight
from robustgen.files.storage.host import HOST_ID, is_left_over, open_regular, private_folder

# --- store in a folder of this machine -------------------------------------------------------------

_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL
_PIECE: Final = 1 << 18
_MOST_KNOWN: Final = 10_000
# A file takes a tenth of a millisecond on a disk of this machine, five round trips on a server's.
_FIRST_FILES: Final = 3
_SLOW: Final = 0.002
# Number of times that a missing folder is created again.
_ATTEMPTS: Final = 100
_Result = TypeVar("_Result")
_numbers = itertools.count()
# Two machines may have the same name.
_OWN: Final = secrets.token_hex(4)


def name_temporary() -> str:
    """Return a name for a temporary file with host and process, by which `Store.clean` finds leftovers."""
    return f"{HOST_ID}-{os.getpid()}-{_OWN}.{next(_numbers)}"


class LocalStore(Store):
    """Folder of this machine, which may not exist yet.

    Files are written under a temporary name and renamed. The path of each folder is checked for links once.

    Parameters
    ----------
    location : path
    temporary : path, optional
        Folder for incomplete files, on the same file system; by default ``.robustgen/tmp``.
    """

    is_local = True

    def __init__(self, location: str | Path, temporary: str | Path | None = None) -> None:
        self.location = os.path.realpath(location)
        self._temporary = os.path.realpath(temporary) if temporary else f"{self.location}/.robustgen/tmp"
        self._expected = ""
        # Folders whose paths contain no links.
        self._real: set[str] = set()
        above = [Path(self.location), *Path(self.location).parents]
        self._missing = [*itertools.takewhile(lambda place: not place.exists(), above)]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_real": set(), "_missing": []}

    def folder(self, path: str) -> "LocalStore":
        """Return the store of a folder of this store, which rejects the same links."""
        inner = copy(self)
        inner.location = self._full(path)
        return inner

    # --- reading

    def read(self, path: str, start: int = 0, size: int | None = None) -> bytes:
        """Read a regular file, or a part of it."""
        with self.open(path) as file:
            file.seek(start)
            return file.read(-1 if size is None else size)

    def open(self, path: str) -> BinaryIO:
        """Open a regular file; raise an OSError for pipes and devices."""
        return open_regular(self._full(path))

    def stat(self, path: str) -> Entry:
        """Look up one regular file."""
        status = os.stat(self._full(path))
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "is not a regular file", self._full(path))
        return _entry(path, status)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Yield all regular files below a folder, without following links to folders."""
        for path, entry in self._walk(prefix):
            with suppress(FileNotFoundError):
                if entry and stat.S_ISREG((status := entry.stat()).st_mode):
                    yield _entry(path, status)

    def walk(self) -> Iterator[tuple[str, str]]:
        """Yield everything below, without following links to folders, with what is no regular file."""
        for path, entry in self._walk(""):
            if not entry:
                yield path, "is an empty folder"
            elif entry.is_symlink():
                yield path, "is a link"
            else:
                yield path, "" if entry.is_file() else "is not a regular file"

    def list_irregular(self) -> Iterator[tuple[str, str]]:
        """Yield links, empty folders, and everything else that is not a regular file."""
        return (each for each in self.walk() if each[1])

    def _walk(self, prefix: str) -> Iterator[tuple[str, os.DirEntry[str] | None]]:
        """Yield path and entry of everything below a folder; for folders, only the paths of empty ones."""
        try:
            with os.scandir(self._full(prefix)) as listed:
                # With a slash after folder names, entries sort like full paths.
                entries = sorted((e.name + "/" * e.is_dir(follow_symlinks=False), e) for e in listed)
        except (FileNotFoundError, NotADirectoryError):
            return
        if prefix and not entries:
            yield f"{prefix}/", None
        for name, entry in entries:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if name[-1] != "/":
                yield path, entry
            elif self._full(path) != self._temporary:
                yield from self._walk(path)

    def sizes(self, paths: Iterable[str]) -> Iterator[int]:
        """Yield the sizes of many files."""
        before = f"{self.location}/"
        for path in paths:
            try:
                status = os.stat(before + path)
                yield status.st_size if stat.S_ISREG(status.st_mode) else -1
            except (FileNotFoundError, NotADirectoryError):
                yield -1

    # --- writing

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file completely or not at all."""
        # Avoid a context manager, because this runs 75 times per image.
        target, temporary = self._full(path), f"{self._temporary}/{name_temporary()}"
        try:
            file = self._in_folder(self._temporary, os.open, temporary, _NEW, 0o666)
            try:
                done = os.write(file, data)
                while done < len(data):
                    done += os.write(file, memoryview(data)[done:])
            finally:
                os.close(file)
            self._in_folder(target.rpartition("/")[0], _claim if exclusive else os.replace, temporary, target)
        except BaseException:
            _remove_file(temporary)
            raise

    def open_flight(self) -> AbstractContextManager[Store]:
        """Open this store for a block that writes many files at once if the file system is slow."""
        return _Flight(self).fly()

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """Write a file in pieces, completely or not at all."""
        target, temporary = self._full(path), f"{self._temporary}/{name_temporary()}"
        try:
            number = self._in_folder(self._temporary, os.open, temporary, _NEW, 0o666)
            with os.fdopen(number, "w+b", _PIECE) as file:
                yield file
            self._in_folder(target.rpartition("/")[0], os.replace, temporary, target)
        except BaseException:
            _remove_file(temporary)
            raise

    def _in_folder(self, place: str, act: Callable[..., _Result], *arguments: Any) -> _Result:
        """Call `act` for a file in a folder of this store; create the folder if it is missing.

        Raises
        ------
        OSError
            The whole store has vanished.
        """
        self._check_real(place)
        for _ in range(_ATTEMPTS):
            try:
                return act(*arguments)
            except FileNotFoundError:
                self._check_lost(place)
                # Other processes remove folders that are empty, even while this one creates them.
                self._real.discard(place)
                self._check_real(place)
                with suppress(FileNotFoundError, FileExistsError):
                    os.makedirs(place, exist_ok=True)
                self._check_lost(place)
        os.makedirs(place, exist_ok=True)
        return act(*arguments)

    def _check_lost(self, place: str) -> None:
        """Raise an OSError if the whole store has vanished; remove a folder that was created since."""
        if not self._expected or os.path.lexists(self._expected):
            return
        with suppress(OSError):
            while len(place) > len(self.location):
                os.rmdir(place)
                place = os.path.dirname(place)
        reason = "was removed or unmounted while files were written to it"
        raise OSError(errno.ESTALE, reason, self.location)

    def copy(self, source: Store, name: str, path: str, *, link: bool = False) -> None:
        """Copy a file of another store; if `link`, as a hard link where the file system supports it."""
        if link and isinstance(source, LocalStore):
            target = self._full(path)
            make = partial(os.link, source._full(name), target, follow_symlinks=False)
            self._check_real(os.path.dirname(target))
            _remove_file(target)
            with suppress(OSError, NotImplementedError):
                return self._in_folder(os.path.dirname(target), make)
        return super().copy(source, name, path)

    def delete(self, path: str) -> None:
        """Delete a file if it exists, and the folders that are then empty."""
        full = self._full(path)
        self._check_real(os.path.dirname(full))
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(full)
        with suppress(OSError):
            while path := path.rpartition("/")[0]:
                os.rmdir(self._full(path))

    def clean(self) -> None:
        """Delete the temporary files of dead processes of this host, and their folder if it is empty."""
        with suppress(OSError):
            self._check_real(self._temporary)
            for name in os.listdir(self._temporary):
                if is_left_over(name):
                    os.unlink(f"{self._temporary}/{name}")
            os.rmdir(self._temporary)
        with suppress(OSError):
            os.rmdir(os.path.dirname(self._temporary))

    def expect(self, location: str) -> None:
        """Create no more folders once the file at `location` is gone; "" ends that."""
        self._expected = location

    def measure_free_space(self) -> int | None:
        """Return the free bytes of the file system."""
        above = (Path(self.location), *Path(self.location).parents)
        return shutil.disk_usage(next(place for place in above if place.exists())).free

    @contextmanager
    def open_scratch(self) -> Iterator["LocalStore"]:
        """Open a store among the temporary files for a block, and then remove it."""
        scratch = LocalStore(f"{self._temporary}/{name_temporary()}")
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch.location, ignore_errors=True)
            self.withdraw()

    def withdraw(self) -> None:
        """Remove the folder and its parents, as far as this store created them and they are empty."""
        self.clean()
        with suppress(OSError):
            for place in self._missing:
                place.rmdir()

    def _full(self, path: str) -> str:
        if path[:1] == "/" or (".." in path and ".." in path.split("/")):
            raise OSError(errno.EINVAL, f"{path!r} is not below the folder", self.location)
        return f"{self.location}/{path}" if path else self.location

    def _check_real(self, place: str) -> None:
        """Raise an OutputError if a link is on the path of a folder, because it may lead anywhere."""
        if place in self._real:
            return
        if os.path.realpath(place) != place:
            parts = (*reversed(Path(place).parents), Path(place))
            linked = next((part for part in parts if part.is_symlink()), place)
            raise OutputError(f"{linked}: is a link; an output needs real folders")
        if len(self._real) >= _MOST_KNOWN:
            self._real.clear()
        self._real.add(place)


class _Flight(Flight, LocalStore):
    """Folder whose files are written many at once if each of the first ones takes long, as over a network.

    Parameters
    ----------
    store : LocalStore
    """

    def __init__(self, store: LocalStore) -> None:
        vars(self).update(vars(store))
        self._store = store
        self._seconds = list[float]()

    def folder(self, path: str) -> LocalStore:
        """Return the plain store of a folder, which writes at once."""
        return self._store.folder(path)

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file, or begin to write it if the file system is slow."""
        if len(self._seconds) == _FIRST_FILES and min(self._seconds) > _SLOW and not exclusive:
            return self.begin(path, len(data), super().put, data)
        started = time.perf_counter()
        super().put(path, data, exclusive=exclusive)
        if len(self._seconds) < _FIRST_FILES:
            self._seconds.append(time.perf_counter() - started)
        return None


def _claim(temporary: str, target: str) -> None:
    """Rename a file; raise a FileExistsError if the name is taken."""
    try:
        os.link(temporary, target)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        # Without hard links, reserve the name first.
        os.close(os.open(target, _NEW, 0o666))
        return os.replace(temporary, target)
    os.unlink(temporary)


def _remove_file(temporary: str) -> None:
    with suppress(OSError):
        os.unlink(temporary)


def _entry(path: str, status: os.stat_result) -> Entry:
    return Entry(path, status.st_size, f"{status.st_mtime_ns}-{status.st_ino}")


# --- temporary folders of all processes of this machine --------------------------------------------


class TemporaryFolder:
    """Folder in the folder for temporary files (`TMPDIR`), removed with this object or at process exit.

    If the process is killed, the next process that creates such a folder removes it.

    Raises
    ------
    OSError
        No temporary folder can be created.
    """

    def __init__(self) -> None:
        parent = private_folder("robustgen")
        for left in parent.iterdir():
            if is_left_over(left.name):
                shutil.rmtree(left, ignore_errors=True)
        self.path: Path = parent / name_temporary()
        self.path.mkdir()
        # Callable now; otherwise runs at process exit.
        self.remove: Callable[[], object] = weakref.finalize(self, _remove_folder, self.path, os.getpid())


def _remove_folder(path: Path, process: int) -> None:
    # A forked process inherits the finalizer, but not the folder.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
