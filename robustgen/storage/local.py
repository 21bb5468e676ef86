"""Folders of this machine."""

import errno
import itertools
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from robustgen.errors import OutputError
from robustgen.storage.base import CLOSED, Entry, Store, Writer
from robustgen.storage.host import HOST, IS_WINDOWS, check_for_windows, is_left_over
from robustgen.storage.regular import open_descriptor, open_regular

_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_HAS_HANDLES: Final = {os.open, os.unlink, os.rename, os.link} <= os.supports_dir_fd
_PIECE: Final = 1 << 18
# Windows refuses to replace a file that somebody reads at that moment.
_PAUSES: Final = (0.01, 0.1, 0.5, 2.0) if os.name == "nt" else ()
_numbers = itertools.count()
# Two containers may have the same name of host.
_OWN: Final = secrets.token_hex(4)


def name_temporary() -> str:
    """Name a temporary file after this host and process, so that `Store.clean` knows when it is left over."""
    return f"{HOST}-{os.getpid()}-{_OWN}.{next(_numbers)}"


class LocalStore(Store):
    """A folder of this machine, which may not exist yet.

    Files are written under a temporary name and renamed. Most files in a row go to one folder: its handle is
    kept, so that its place is looked up and searched for links only once.

    Parameters
    ----------
    location : path
    temporary : path, optional
        Folder for files that are not whole yet, on the same file system; by default ``.robustgen/tmp``.
    """

    is_local = True
    _passes_over_closed = False
    _missing: Sequence[Path] = ()

    def __init__(self, location: str | Path, temporary: str | Path | None = None) -> None:
        self.location = os.path.realpath(location)
        self._root = self.location
        self._temporary = os.path.realpath(temporary) if temporary else f"{self.location}/.robustgen/tmp"
        self._temporaries: _Folder | None = None
        self._target: _Folder | None = None
        above = [Path(self.location), *Path(self.location).parents]
        self._missing = list(itertools.takewhile(lambda place: not place.exists(), above))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_temporaries": None, "_target": None, "_missing": ()}

    def passing_over_closed(self) -> "LocalStore":
        """Return this store, but its listings pass over folders that cannot be listed."""
        store = LocalStore.__new__(LocalStore)
        vars(store).update(self.__getstate__(), _passes_over_closed=True)
        return store

    def folder(self, path: str) -> "LocalStore":
        """Return the store of a folder below; the same links are refused."""
        if not path:
            return self
        inner = LocalStore.__new__(LocalStore)
        vars(inner).update(self.__getstate__(), location=self._full(path))
        return inner

    # --- reading

    def read(self, path: str, start: int = 0, size: int | None = None) -> bytes:
        """Read a regular file, or a part of it."""
        file = open_descriptor(self._full(path), os.O_RDONLY)
        try:
            left = os.fstat(file).st_size - start
            left = left if size is None else min(left, size)
            os.lseek(file, start, os.SEEK_SET)
            pieces: list[bytes] = []
            while left > 0 and (piece := os.read(file, left)):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces)
        finally:
            os.close(file)

    def open(self, path: str) -> BinaryIO:
        """Open a regular file; pipes and devices are refused at once."""
        return open_regular(self._full(path))

    def stat(self, path: str) -> Entry:
        """Look up one regular file."""
        status = os.stat(self._full(path))
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "is no regular file", self._full(path))
        return _entry(path, status)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Iterate over all regular files below a folder; linked folders are not entered."""
        try:
            with os.scandir(self._full(prefix)) as listed:
                # With a slash behind folders the order is that of whole paths.
                entries = sorted(
                    (f"{e.name}/" * e.is_dir(follow_symlinks=False) or e.name, e) for e in listed
                )
        except (FileNotFoundError, NotADirectoryError):
            return
        except PermissionError:
            if self._passes_over_closed:
                return
            raise
        before = f"{prefix}/" if prefix else ""
        for name, entry in entries:
            if name[-1] != "/":
                with suppress(FileNotFoundError):
                    status = entry.stat()
                    if stat.S_ISREG(status.st_mode):
                        yield _entry(before + name, status)
            elif self._full(before + entry.name) != self._temporary:
                yield from self.list(before + entry.name)

    def list_irregular(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        """Iterate over links, empty folders, folders that cannot be listed, and what else is no file."""
        try:
            with os.scandir(self._full(prefix)) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            yield prefix or ".", f"{CLOSED}: {error.strerror}"
            return
        if prefix and not entries:
            yield f"{prefix}/", "is an empty folder"
        for entry in entries:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_symlink():
                yield path, "is a link"
            elif entry.is_dir() and self._full(path) != self._temporary:
                yield from self.list_irregular(path)
            elif not entry.is_file():
                yield path, "is no regular file"

    def sizes(self, paths: Iterable[str]) -> Iterator[int]:
        """Iterate over the sizes of many files."""
        before = f"{self.location}/"
        for path in paths:
            try:
                status = os.stat(before + path)
                yield status.st_size if stat.S_ISREG(status.st_mode) else -1
            except (FileNotFoundError, NotADirectoryError):
                yield -1

    # --- writing

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file, whole or not at all."""
        # Without a context manager, as this runs 75 times an image.
        folder, name, file = self._begin(path)
        try:
            try:
                done = os.write(file, data)
                while done < len(data):
                    done += os.write(file, memoryview(data)[done:])
            finally:
                os.close(file)
            self._move(folder, name, path, exclusive)
        except BaseException:
            folder.remove(name)
            raise

    @contextmanager
    def create(self, path: str) -> Iterator[Writer]:
        """Write a file in pieces, whole or not at all."""
        folder, name, number = self._begin(path)
        try:
            with os.fdopen(number, "w+b", _PIECE) as file:
                writer = Writer(file)
                yield writer
            if writer.is_discarded:
                return folder.remove(name)
            self._move(folder, name, path)
        except BaseException:
            folder.remove(name)
            raise

    def copy(self, source: Store, name: str, path: str, *, link: bool = False) -> None:
        """Copy a file of another store; `link` makes a hard link where the file system can."""
        if link and isinstance(source, LocalStore):
            folder, temporary = self._open(self._temporary), name_temporary()
            try:
                with suppress(OSError, NotImplementedError):
                    os.link(source._full(name), f"{folder.path}/{temporary}", follow_symlinks=False)
                    return self._move(folder, temporary, path)
            finally:
                # Renaming one link to another of the same file does nothing.
                folder.remove(temporary)
        return super().copy(source, name, path)

    def replace_links(self, path: str, folders: Mapping[str, Mapping[str, str]]) -> None:
        """Fill `path` with folders of links to folders: name of each to name and target of its links.

        Raises
        ------
        OSError
            `path` holds anything else than folders of links, which is not deleted.
        """
        place = self._full(path)
        self._check_real(place)
        for above, inner, files in os.walk(place, topdown=False):
            for name in (*inner, *files):
                each = f"{above}/{name}"
                (os.unlink if os.path.islink(each) else os.rmdir)(each)
        for name, links in folders.items():
            os.makedirs(f"{place}/{name}")
            for link, target in links.items():
                os.symlink(target, f"{place}/{name}/{link}", target_is_directory=True)
        with suppress(FileNotFoundError):
            if not folders:
                os.rmdir(place)

    def delete(self, path: str) -> None:
        """Delete a file, if there is one, and the folders that are empty without it."""
        full = self._full(path)
        self._check_real(os.path.dirname(full))
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(full)
        with suppress(OSError):
            while path := path.rpartition("/")[0]:
                os.rmdir(self._full(path))

    def clean(self) -> None:
        """Delete temporary files that dead processes of this host left behind, and their folder if empty."""
        with suppress(OSError):
            self._check_real(self._temporary)
            for name in os.listdir(self._temporary):
                if is_left_over(name):
                    os.unlink(f"{self._temporary}/{name}")
            os.rmdir(self._temporary)
            os.rmdir(os.path.dirname(self._temporary))

    def withdraw(self) -> None:
        """Remove the folder, and those above it, as far as they did not exist before and are empty."""
        self.clean()
        with suppress(OSError):
            for place in self._missing:
                os.rmdir(place)

    def _begin(self, path: str) -> tuple["_Folder", str, int]:
        """Open a new temporary file for `path`; return its folder, name and descriptor."""
        self._full(path)
        name = name_temporary()
        folder = self._temporaries or self._open(self._temporary)
        try:
            file = os.open(folder.name(name), _NEW, 0o666, dir_fd=folder.number)
        except FileNotFoundError:
            # Someone has removed the folder.
            folder = self._open(self._temporary)
            file = os.open(folder.name(name), _NEW, 0o666, dir_fd=folder.number)
        self._temporaries = folder
        return folder, name, file

    def _move(self, folder: "_Folder", temporary: str, path: str, exclusive: bool = False) -> None:
        """Give a temporary file its name."""
        place, _, name = f"{self.location}/{path}".rpartition("/")
        target = self._target
        for last in (False, True):
            try:
                if target is None or target.path != place:
                    self._target = target = self._open(place, create=last)
                if exclusive and _claim(f"{folder.path}/{temporary}", f"{place}/{name}"):
                    return os.unlink(folder.name(temporary), dir_fd=folder.number)
                return _replace(folder, temporary, target, name)
            except FileNotFoundError:
                target = None
                if last:
                    raise

    def _open(self, place: str, create: bool = True) -> "_Folder":
        """Open a folder of this store."""
        self._check_real(place)
        if create:
            os.makedirs(place, exist_ok=True)
        return _Folder(place)

    def _full(self, path: str) -> str:
        if path[:1] == "/" or (".." in path and ".." in path.split("/")):
            raise OSError(errno.EINVAL, f"{path!r} is not below the folder", self.location)
        if IS_WINDOWS:
            check_for_windows(self.location, path)
        return f"{self.location}/{path}" if path else self.location

    def _check_real(self, place: str) -> None:
        """Refuse a folder if a link leads to it from the root, for it may lead anywhere."""
        end = len(self._root.rstrip("/"))
        while place.startswith(self._root) and 0 <= end < len(place):
            end = place.find("/", end + 1)
            part = place if end < 0 else place[:end]
            try:
                mode = os.lstat(part).st_mode
            except FileNotFoundError:
                return
            if stat.S_ISLNK(mode):
                raise OutputError(f"{part}: is a link; an output is written into real folders only")


class _Folder:
    """An open folder, closed when nobody needs it any more; where the system has no handles, its path."""

    number: int | None = None

    def __init__(self, path: str) -> None:
        self.path = path
        if _HAS_HANDLES:
            self.number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def name(self, name: str) -> str:
        """Return what a file in the folder is called relative to `number`."""
        return f"{self.path}/{name}" if self.number is None else name

    def remove(self, name: str) -> None:
        """Remove a temporary file, if it is still there."""
        with suppress(OSError):
            os.unlink(self.name(name), dir_fd=self.number)

    # Bound here, as modules may be gone when the interpreter ends.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if self.number is not None:
            close(self.number)


def _replace(folder: _Folder, temporary: str, target: _Folder, name: str) -> None:
    """Rename a file over whatever has its name."""
    source, final = folder.name(temporary), target.name(name)
    for seconds in _PAUSES:
        with suppress(PermissionError):
            return os.replace(source, final)
        time.sleep(seconds)
    os.replace(source, final, src_dir_fd=folder.number, dst_dir_fd=target.number)


def _claim(source: str, target: str) -> bool:
    """Link `source` to `target`, which must not exist; return False if only the name could be claimed."""
    try:
        os.link(source, target)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        os.close(os.open(target, _NEW, 0o666))
        return False
    return True


def _entry(path: str, status: os.stat_result) -> Entry:
    return Entry(path, status.st_size, f"{status.st_mtime_ns}-{status.st_ino}")
