"""Arrays in NumPy archives, read in pieces."""

import io
import math
import shutil
import zipfile
import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.containers.npy import NpyHeader, read_header

ZLIB: Final = zlib.ZLIB_RUNTIME_VERSION
"""Release of the compression library."""
_PIECE: Final = 1 << 20
# Images hardly compress; a file that grows a hundredfold is meant to fill a disk.
_MOST_GROWTH, _HARMLESS_BYTES = 100, 1 << 30
_MOST_SMALL_BYTES: Final = 1 << 26


def find_array(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Find the array called `name`; if missing, raise a ValueError that lists the others."""
    if f"{name}.npy" not in archive.namelist():
        there = ", ".join(each.removesuffix(".npy") for each in archive.namelist()[:10]) or "nothing"
        raise ValueError(f"contains no {name} (arrays: {there})")
    return archive.getinfo(f"{name}.npy")


def read_array_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NpyHeader:
    """Read the header of an array.

    Raises
    ------
    ValueError
        It is not an array of plain values in C order, its size does not match its shape, or it is too large.
    """
    with archive.open(member) as file:
        try:
            header = read_header(file)
        except ValueError as error:
            raise ValueError(f"{member.filename}: {error}") from error
    size = header.offset + math.prod(header.shape) * header.dtype.itemsize
    if member.file_size != size:
        raise ValueError(f"{member.filename}: {member.file_size} bytes, but its shape needs {size}")
    if size > max(_HARMLESS_BYTES, _MOST_GROWTH * member.compress_size):
        raise ValueError(f"{member.filename}: unpacks to {size} bytes, too large for images")
    return header


def read_image_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NpyHeader:
    """Read the header of an array of images; raise a ValueError if shape or dtype is another."""
    header = read_array_header(archive, member)
    shape = header.shape
    if header.dtype != np.uint8 or len(shape) not in (3, 4) or shape[3:] not in ((), (3,)) or 0 in shape:
        found = f"{header.dtype} {shape}"
        raise ValueError(f"{member.filename}: {found} is not uint8 (N, H, W) or (N, H, W, 3)")
    return header


def copy_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Any) -> None:
    """Unpack the `.npy` file of an array in pieces."""
    read_array_header(archive, member)
    with archive.open(member) as file:
        shutil.copyfileobj(file, target, _PIECE)


def read_labels(archive: zipfile.ZipFile, name: str) -> NDArray[np.int64]:
    """Read the labels array `name`, (images, labels); raise a ValueError if it is invalid or too large."""
    member = find_array(archive, name)
    read_array_header(archive, member)
    if member.file_size > _MOST_SMALL_BYTES:
        raise ValueError(f"{member.filename}: too large for labels: {member.file_size} bytes")
    labels = np.load(io.BytesIO(archive.read(member)), allow_pickle=False)
    if labels.dtype.kind not in "biu" or labels.ndim not in (1, 2):
        raise ValueError(f"{name}: {labels.dtype} {labels.shape} is not an array of labels")
    return np.asarray(labels, np.int64).reshape(len(labels), -1)
