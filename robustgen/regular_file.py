"""Opening files that someone else may have put there: regular ones only, and nothing is waited for."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; of a pipe or a device, nothing is waited for.

    Raises
    ------
    OSError
        It is none, or cannot be read.
    """
    return os.fdopen(open_descriptor(path, os.O_RDONLY), "rb")


def read_regular(path: Path, most: int | None = None) -> bytes:
    """The content of a regular file, of `most` bytes at most.

    Raises
    ------
    OSError
        It is none, cannot be read, or has more.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise OSError(errno.EFBIG, f"has {size} bytes, where at most {most} are expected", str(path))
        return file.read()


def open_descriptor(path: Path, flags: int) -> int:
    """A descriptor of the regular file at `path`, opened with the `flags` of `os.open`.

    Raises
    ------
    OSError
        It is no regular file, or the system refuses.
    """
    # Opening a pipe would wait for whoever is at its other end.
    file = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    return file
