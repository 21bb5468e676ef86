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
