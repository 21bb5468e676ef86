"""Files of an output: what they are called, and how they come to be whole or not at all.

Every file is written under a temporary name in the output's own state folder and
then renamed.
"""

import hashlib
import itertools
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from robustgen.errors import OutputError
from robustgen.output.records import WrittenFile

STATE = ".robustgen"
SUMS, FRAMES, MANIFEST, ERRORS = "SHA256SUMS", "FRAMES.SHA256", "dataset.json", "errors.jsonl"
# Beside arrays: the class of each row. Beside arrays and shards: what the images are called, in order.
LABELS, KEYS = "labels.npy", "keys.txt"

_numbers = itertools.count()
# Workers of several machines may share the folder.
_OWN = secrets.token_hex(4)


def temporary_folder(root: Path) -> Path:
    """Where files lie until they are whole."""
    return root / STATE / "tmp"


def write_whole(root: Path, path: str, data: bytes, *, durable: bool = False) -> WrittenFile:
    """Write `data` to `path` below `root` by way of a temporary name; `durable` waits for the disk.

    Raises
    ------
    OSError
        The disk is full, or the folder cannot be written.
    """
    temporary = f"{temporary_folder(root)}/{_OWN}-{os.getpid()}-{next(_numbers)}"
    try:
        # Plain calls on plain strings: this runs 75 times an image.
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
            if durable:
                os.fsync(file)
        finally:
            os.close(file)
        rename(temporary, f"{root}/{path}")
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return WrittenFile(path, len(data), hashlib.sha256(data).hexdigest())


def save(path: Path, data: bytes, called: str = "") -> None:
    """Write a file of the user's choosing, whole or not at all; messages say what it is `called`.

    Raises
    ------
    OutputError
        It cannot be written.
    """
    save_parts(path, [data], called)


def save_parts(path: Path, parts: Iterable[bytes], called: str = "") -> None:
    """As `save`, of a file that is made in `parts`."""
    temporary = path.with_name(f".{_OWN}-{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.writelines(parts)
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f"{called or path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def rename(temporary: str | Path, target: str | Path) -> None:
    """Give `temporary` its final name `target`, whose folder is made if need be."""
    try:
        os.replace(temporary, target)  # noqa: PTH105
    except FileNotFoundError:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary, target)  # noqa: PTH105


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal, read in pieces."""
    with path.open("rb") as file:
        return stream_digest(file)


def stream_digest(file: IO[bytes]) -> str:
    """SHA-256 of what is left to read of an open file, in hexadecimal."""
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()
