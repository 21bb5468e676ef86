"""Arrays in NumPy's format: their header, and their rows."""

import io
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class NpyHeader(NamedTuple):
    """The header of an array: its shape, its dtype, and the offset of its first row."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int


def header_bytes(shape: Sequence[int], dtype: Any = np.uint8) -> bytes:
    """Return the header that `numpy.save` writes for an array in C order."""
    buffer = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False}
    np.lib.format.write_array_header_1_0(buffer, described | {"shape": tuple(shape)})
    return buffer.getvalue()


def read_header(file: IO[bytes]) -> NpyHeader:
    """Read the header; a ValueError if `file` holds no array of plain values in C order."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in read:
        raise ValueError(f"version {version} of NumPy's format is not read")
    shape, by_columns, dtype = read[version](file)
    if by_columns or dtype.hasobject or not shape:
        raise ValueError("no array of plain values in rows")
    return NpyHeader(shape, dtype, file.tell())


def read_rows(file: IO[bytes], header: NpyHeader, start: int, count: int) -> NDArray[Any]:
    """Read `count` rows from row `start` on; a ValueError if the file ends before."""
    row = int(np.prod(header.shape[1:], dtype=np.int64)) * header.dtype.itemsize
    file.seek(header.offset + start * row)
    data = file.read(count * row)
    if len(data) != count * row:
        raise ValueError("the array ends within its rows")
    return np.frombuffer(data, header.dtype).reshape(count, *header.shape[1:]).copy()
