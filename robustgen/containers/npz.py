"""Arrays in NumPy's archives, read in pieces."""

import math
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.containers.npy import NpyHeader, read_header

ZLIB: Final = zlib.ZLIB_RUNTIME_VERSION
"""Release of the library that compresses."""
_PIECE: Final = 1 << 20
# Images hardly shrink; what unpacks to a hundred times its size and more is there to fill a disk.
_MOST_GROWTH, _HARMLESS_BYTES = 100, 1 << 30
_MOST_SMALL_BYTES: Final = 1 << 26


def find_array(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Find the array called `name`; a ValueError that says what there is instead."""
    if f"{name}.npy" not in archive.namelist():
        there = ", ".join(each.removesuffix(".npy") for each in archive.namelist()[:10]) or "nothing"
        raise ValueError(f"holds no {name} (it has {there})")
    return archive.getinfo(f"{name}.npy")


def read_array_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NpyHeader:
    """Read the header of an array.

    Raises
    ------
    ValueError
        It is no array of plain values in rows, has another size than it says, or grows beyond measure.
    """
    with archive.open(member) as file:
        try:
            header = read_header(file)
        except ValueError as error:
            raise ValueError(f"{member.filename}: {error}") from error
    size = header.offset + math.prod(header.shape) * header.dtype.itemsize
    if member.file_size != size:
        raise ValueError(f"{member.filename}: {member.file_size} bytes, where its shape takes {size}")
    if size > max(_HARMLESS_BYTES, _MOST_GROWTH * member.compress_size):
        raise ValueError(f"{member.filename}: unpacks to {size} bytes, which no images do")
    return header


def read_image_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NpyHeader:
    """Read the header of an array of images; a ValueError, too, if it holds no images."""
    header = read_array_header(archive, member)
    shape = header.shape
    if header.dtype != np.uint8 or len(shape) not in (3, 4) or shape[3:] not in ((), (3,)) or 0 in shape:
        found = f"{header.dtype} {shape}"
        raise ValueError(f"{member.filename}: {found} is not uint8 (N, H, W) or (N, H, W, 3)")
    return header


def copy_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, write: Callable[[bytes], Any]) -> None:
    """Unpack an array in pieces, as the `.npy` file that it is."""
    with archive.open(member) as file:
        while piece := file.read(_PIECE):
            write(piece)


def read_labels(archive: zipfile.ZipFile, name: str) -> NDArray[np.int64]:
    """Read the array `name` of labels, (images, labels); a ValueError if it holds none, or too many."""
    member = find_array(archive, name)
    header = read_array_header(archive, member)
    if member.file_size > _MOST_SMALL_BYTES:
        raise ValueError(f"{member.filename}: {member.file_size} bytes are more than labels have")
    with archive.open(member) as file:
        data = file.read()
    labels = np.frombuffer(data, header.dtype, offset=header.offset).reshape(header.shape)
    if labels.dtype.kind not in "biu" or labels.ndim not in (1, 2):
        raise ValueError(f"{name} {labels.dtype} {labels.shape} are no labels")
    return labels.reshape(len(labels), -1).astype(np.int64)
