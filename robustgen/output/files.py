"""Files of an output: what they are called, and how they come to be whole or not at all.

Every file is written under a temporary name in the output's own state folder and
then renamed. Files without a name that are then linked (Linux) cost as much, and are not known everywhere.

The state folder lies in the output, or beside it where every folder in the output is taken for a class.
"""

import errno
import hashlib
import itertools
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Final

from robustgen.errors import OutputError
from robustgen.output.records import WrittenFile
from robustgen.regular_file import open_descriptor, open_regular

STATE = ".robustgen"
SUMS, FRAMES, MANIFEST, ERRORS = "SHA256SUMS", "FRAMES.SHA256", "dataset.json", "errors.jsonl"
# Beside arrays: the class of each row.
LABELS = "labels.npy"

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY
_NONE: Final = -1
_ATTEMPTS, _SECONDS_BETWEEN_ATTEMPTS = 20, 0.1
_numbers = itertools.count()
# Workers of several machines may share the folder.
_OWN = secrets.token_hex(4)


def place_beside(root: Path) -> Path:
    """The state folder of the output at `root` where it lies beside it: ``.icons.robustgen`` of ``icons``."""
    parent, name = os.path.split(os.path.realpath(root))
    return Path(parent, f".{name}{STATE}")


def find_state(root: Path) -> Path | None:
    """The state folder of the output at `root`, in it or else beside it; None if there is none."""
    inside = root / STATE
    if os.path.lexists(inside):
        return inside
    beside = place_beside(root)
    return beside if os.path.lexists(beside) else None


def temporary_folder(root: Path) -> Path:
    """Where files lie until they are whole."""
    return (find_state(root) or root / STATE) / "tmp"


def write_whole(root: Path, path: str, data: bytes, *, durable: bool = False) -> WrittenFile:
    """Write `data` to `path` below `root` by way of a temporary name; `durable` waits for the disk.

    Raises
    ------
    OSError
        The disk is full, or the folder cannot be written.
    OutputError
        A link leads from `root` to elsewhere.
    """
    with closing(FileWriter(root)) as files:
        return files.write(path, data, durable=durable)


class FileWriter:
    """Writes files below `root`, each whole or not at all, and keeps the folders in use open until `close`.

    Files in a row mostly go to one folder: by its handle, its place need not be looked up and searched for
    links each time.

    Parameters
    ----------
    root : Path
    temporary : Path, optional
        Where files lie until they are whole, if not in the `temporary_folder`.

    Raises
    ------
    OSError
        There is no such folder.
    """

    def __init__(self, root: Path, temporary: Path | None = None) -> None:
        self._root = root
        self._temporary = os.open(temporary or temporary_folder(root), _FOLDER)
        self._place, self._folder = "", _NONE

    def write(self, path: str, data: bytes, *, durable: bool = False) -> WrittenFile:
        """Write `data` to `path` below the root; as `write_whole`."""
        # Plain calls on plain strings: this runs 75 times an image.
        temporary = f"{_OWN}-{os.getpid()}-{next(_numbers)}"
        try:
            self._write_temporary(temporary, data, durable=durable)
            try:
                self._move(temporary, path)
            except FileNotFoundError:
                self._leave()
                Path(f"{self._root}/{path}").parent.mkdir(parents=True, exist_ok=True)
                self._move(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self._temporary)
            raise
        return WrittenFile(path, len(data), hashlib.sha256(data).hexdigest())

    def close(self) -> None:
        """Let go of the folders."""
        self._leave()
        os.close(self._temporary)

    def _write_temporary(self, name: str, data: bytes, *, durable: bool) -> None:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=self._temporary)
        try:
            done = os.write(file, data)
            while done < len(data):
                done += os.write(file, memoryview(data)[done:])
            if durable:
                os.fsync(file)
        finally:
            os.close(file)

    def _move(self, temporary: str, path: str) -> None:
        place, _, name = path.rpartition("/")
        if place != self._place or self._folder == _NONE:
            self._enter(place)
        os.replace(temporary, name, src_dir_fd=self._temporary, dst_dir_fd=self._folder)

    def _enter(self, place: str) -> None:
        self._leave()
        check_real(self._root, f"{place}/" if place else "")
        self._place, self._folder = place, os.open(f"{self._root}/{place}", _FOLDER)

    def _leave(self) -> None:
        folder, self._folder = self._folder, _NONE
        if folder != _NONE:
            os.close(folder)


def save(path: Path, data: bytes, called: str = "") -> None:
    """Write a file of the user's choosing, whole or not at all; messages say what it is `called`.

    Raises
    ------
    OutputError
        It cannot be written.
    """
    save_parts(path, [data], called)


def save_parts(path: Path, parts: Iterable[bytes], called: str = "") -> None:
    """As `save`, of a file that is made in `parts`; a device or a pipe is written to, not replaced."""
    temporary = path.with_name(f".{_OWN}-{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        special = path.exists() and not path.is_file()
        with (path if special else temporary).open("wb") as file:
            file.writelines(parts)
        if not special:
            temporary.replace(path)
    except OSError as error:
        raise OutputError(f"{called or path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def move_into(root: Path, temporary: str | Path, path: str) -> None:
    """Give the file `temporary` its final name: `path` below `root`, whose folder is made if need be.

    Raises
    ------
    OSError
    OutputError
        A link leads from `root` to elsewhere.
    """
    check_real(root, path)
    target = f"{root}/{path}"
    try:
        os.replace(temporary, target)  # noqa: PTH105
    except FileNotFoundError:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary, target)  # noqa: PTH105


def file_digest(path: Path) -> str:
    """SHA-256 of a regular file, in hexadecimal, read in pieces."""
    with open_regular(path) as file:
        return stream_digest(file)


def stream_digest(file: IO[bytes]) -> str:
    """SHA-256 of what is left to read of an open file, in hexadecimal."""
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


# --- nothing but regular files, and nothing by way of a link -----------------------------------------


def open_to_append(path: Path) -> IO[bytes]:
    """Open a regular file for reading and appending; it is made if need be, and never reached by a link.

    Raises
    ------
    OSError
        There is something else, or it cannot be written.
    """
    return os.fdopen(open_descriptor(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW), "a+b")


def check_real(root: Path, path: str) -> None:
    """Refuse `path` below `root` if a folder on its way is a link, which may lead anywhere.

    Raises
    ------
    OutputError
        The message names the link.
    """
    end = path.find("/")
    while end >= 0:
        place = f"{root}/{path[:end]}"
        try:
            mode = os.lstat(place).st_mode
        except FileNotFoundError:
            return
        if stat.S_ISLNK(mode):
            raise OutputError(f"{place}: is a link; an output is written into real folders only")
        end = path.find("/", end + 1)


@contextmanager
def open_folder(root: Path, path: str) -> Iterator[tuple[int, str]]:
    """A handle of the folder that `path` below `root` lies in, and the name in it.

    Raises
    ------
    OSError
        There is no such folder, or a link on the way to it.
    """
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or PurePosixPath(path).is_absolute():
        raise OSError(errno.EINVAL, f"{path!r} is not below the output", str(root))
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, parts[-1]
    finally:
        os.close(folder)


def remove_file(root: Path, path: str) -> None:
    """Remove the file at `path` below `root`, if there is one; nothing elsewhere, whatever links there are.

    Raises
    ------
    OutputError
        A link leads to elsewhere.
    """
    check_real(root, path)
    with suppress(FileNotFoundError, NotADirectoryError), open_folder(root, path) as (folder, name):
        os.unlink(name, dir_fd=folder)


def remove_folder(root: Path, path: str) -> None:
    """Remove the folder at `path` below `root` if it is empty; whatever the user keeps there stays."""
    with suppress(OSError), open_folder(root, path) as (folder, name):
        os.rmdir(name, dir_fd=folder)


def remove_tree(root: Path, path: str) -> None:
    """Remove the folder at `path` below `root` with all that is in it, but nothing that a link leads to.

    Raises
    ------
    OutputError
        A link leads to elsewhere.
    """
    check_real(root, f"{path}/")
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            shutil.rmtree(root / path)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            # Workers outlive a run that is killed by a moment, in which they may write there.
            if error.errno != errno.ENOTEMPTY or not attempts_left:
                raise
        time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
