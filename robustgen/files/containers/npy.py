"""Arrays in NumPy's format: headers and rows."""

import io
import math
from collections.abc import Sequence
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


def header_bytes(shape: Sequence[int], dtype: Any = np.uint8) -> bytes:
    """Return the header that `numpy.save` writes for an array in C order."""
    buffer = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False}
    np.lib.format.write_array_header_1_0(buffer, described | {"shape": tuple(shape)})
    return buffer.getvalue()


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Read shape, dtype and the offset of the first row.

    Raises
    ------
    ValueError
        The file is not an array of plain values in C order.
    """
    is_first = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(file)
    if by_columns or dtype.hasobject or not shape:
        raise ValueError("not an array of plain values in C order")
    return shape, dtype, file.tell()


class StoredArray:
    """An array in a file, whose rows are read on demand.

    Raises
    ------
    ValueError
        The file is truncated, or not an array of plain values in C order.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.shape, self.dtype, self._start = read_header(file)
        self.ndim, self._file = len(self.shape), file
        self._row = math.prod(self.shape[1:]) * self.dtype.itemsize
        # Threads that read ahead share the file, and its position.
        self._lock = Lock()
        if file.seek(0, io.SEEK_END) < self._start + len(self) * self._row:
            raise ValueError("the array ends within its rows")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> NDArray[Any]:
        return np.asarray(self.read(row, 1)[0])

    def read(self, start: int = 0, count: int | None = None) -> NDArray[Any]:
        """Return `count` rows from row `start`, or all remaining rows."""
        count = len(self) - start if count is None else count
        with self._lock:
            self._file.seek(self._start + start * self._row)
            data = self._file.read(count * self._row)
        if len(data) != count * self._row:
            raise ValueError("the array ends within its rows")
        return np.frombuffer(data, self.dtype).reshape(count, *self.shape[1:]).copy()
