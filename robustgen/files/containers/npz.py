"""Arrays in NumPy archives, read in pieces."""

import io
import math
import zipfile
import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.files.containers.compressed import HARMLESS_BYTES, MOST_GROWTH
from robustgen.files.containers.npy import read_header

ZLIB: Final = zlib.ZLIB_RUNTIME_VERSION
"""Release of the compression library."""
_MOST_LABEL_BYTES: Final = 1 << 26


def find_array(archive: zipfile.ZipFile, name: str) -> tuple[zipfile.ZipInfo, tuple[int, ...], np.dtype[Any]]:
    """Return the member of the array called `name`, its shape and its dtype.

    Raises
    ------
    ValueError
        There is no such array of plain values in C order, its size does not match its shape, or it is too
        large.
    """
    if f"{name}.npy" not in archive.namelist():
        there = ", ".join(each.removesuffix(".npy") for each in archive.namelist()[:10]) or "nothing"
        raise ValueError(f"contains no {name} (arrays: {there})")
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        try:
            shape, dtype, offset = read_header(file)
        except ValueError as error:
            raise ValueError(f"{member.filename}: {error}") from error
    size = offset + math.prod(shape) * dtype.itemsize
    if member.file_size != size:
        raise ValueError(f"{member.filename}: {member.file_size} bytes, but its shape needs {size}")
    if size > max(HARMLESS_BYTES, MOST_GROWTH * member.compress_size):
        raise ValueError(f"{member.filename}: unpacks to {size} bytes, too large for images")
    return member, shape, dtype


def read_labels(archive: zipfile.ZipFile, name: str) -> NDArray[np.int64]:
    """Read the labels array `name`, (images, labels); raise a ValueError if it is invalid or too large."""
    member, shape, dtype = find_array(archive, name)
    if dtype.kind not in "biu" or len(shape) > 2 or member.file_size > _MOST_LABEL_BYTES:
        raise ValueError(f"{name}.npy: {dtype} {shape} is not an array of labels")
    labels = np.load(io.BytesIO(archive.read(member)), allow_pickle=False)
    return np.asarray(labels, np.int64).reshape(len(labels), -1)
