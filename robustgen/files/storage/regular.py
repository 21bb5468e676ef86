"""Regular files, opened without waiting for pipes or devices."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

_FLAGS: Final = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises
    ------
    OSError
        The file is a pipe, a device or a folder, or cannot be read.
    """
    # Opening a pipe would otherwise wait for a process at its other end.
    file = os.open(path, os.O_RDONLY | _FLAGS)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return os.fdopen(file, "rb")


def read_regular(path: str | Path, most: int | None = None) -> bytes:
    """Read a regular file of at most `most` bytes.

    Raises
    ------
    OSError
        The file is not regular, cannot be read, or has more than `most` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise OSError(errno.EFBIG, f"has {size} bytes; at most {most} are allowed", str(path))
        return file.read()
