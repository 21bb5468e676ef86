"""Files of arrays: NumPy's, read and written in pieces, and pickles."""

import io
import math
import pickle
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.files.containers.archives import HARMLESS_BYTES, MOST_GROWTH

# --- arrays in NumPy's format: headers and rows ----------------------------------------------------

_MAGIC: Final = len(np.lib.format.MAGIC_PREFIX) + 2
_MOST_HEADER_BYTES: Final = 1 << 16


def header_bytes(shape: Sequence[int]) -> bytes:
    """Return the header that `numpy.save` writes for an array of bytes in C order."""
    buffer = io.BytesIO()
    described = {"descr": "|u1", "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(buffer, described)
    return buffer.getvalue()


# The files of many models have the same headers.
@lru_cache(maxsize=64)
def _parse_header(header: bytes, width: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and dtype in a header, whose length stands first, in `width` bytes."""
    read = np.lib.format.read_array_header_1_0 if width == 2 else np.lib.format.read_array_header_2_0
    return read(io.BytesIO(header))


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Read shape, dtype and the offset of the first row.

    Raises
    ------
    ValueError
        The file is not an array of plain values in C order.
    """
    magic = file.read(_MAGIC)
    width = 2 if np.lib.format.read_magic(io.BytesIO(magic)) == (1, 0) else 4
    length = file.read(width)
    size = int.from_bytes(length, "little")
    if size > _MOST_HEADER_BYTES:
        raise ValueError(f"claims a header of {size} bytes")
    shape, by_columns, dtype = _parse_header(length + file.read(size), width)
    if by_columns and len(shape) > 1:
        raise ValueError("its arrays must be in C order (np.ascontiguousarray)")
    if dtype.hasobject:
        raise ValueError("contains Python objects, so is not an array of plain values in C order")
    if min(shape, default=0) < 0:
        raise ValueError(f"an array of the shape {shape}")
    return shape, dtype, _MAGIC + width + size


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
        if not self.shape or file.seek(0, io.SEEK_END) < self._start + len(self) * self._row:
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


# --- arrays in NumPy archives, read in pieces ------------------------------------------------------

ZLIB: Final = zlib.ZLIB_RUNTIME_VERSION
"""Release of the compression library."""


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


# --- pickles of arrays, the format of CIFAR, read without calling anything and with bounded memory ---

# A batch of 99 999 images and their file names needs some 500 000.
_MOST_STEPS: Final = 2_000_000
# One text may be encoded many times.
_MOST_ENCODED: Final = 1 << 29
_NUMPY: Final = re.compile(
    r"numpy\.(ndarray|dtype|_?core\.multiarray\._reconstruct|_?core\.numeric\._frombuffer)"
)
# In the Python implementation, the memo is a dict and each step can be counted.
_Unpickler: Any = pickle._Unpickler


class Pickled:
    """A NumPy object of a pickle: its constructor arguments and its state."""

    def __init__(self, *made_from: Any) -> None:
        self.made_from = made_from
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def to_array(self) -> NDArray[Any]:
        """Return the array; raise an exception if this is not an array of numbers."""
        if self.state is None:
            # As of protocol 5.
            content, dtype, shape, axes = self.made_from
            by_columns = axes == "F"
        else:
            _, shape, dtype, by_columns, content = self.state
        code, order = dtype.made_from[0], dtype.state[1]
        code, order = (each.decode() if isinstance(each, bytes) else each for each in (code, order))
        if not re.fullmatch("[fiu][1248]", code):
            raise ValueError(f"an array of {code} instead of numbers")
        numbers = np.frombuffer(content, f"{order}{code}")
        return numbers.reshape(shape, order="F" if by_columns else "C")


class _Operations(dict[int, Callable[[Any], None]]):
    """Operations of pickles; counts the steps."""

    steps = 0

    def __getitem__(self, code: int) -> Callable[[Any], None]:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise ValueError(f"more than {_MOST_STEPS} steps to unpickle")
        return super().__getitem__(code)


class _Reader(_Unpickler):  # type: ignore[misc]
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")
        # Python's own operation would allocate any size stated in the file.
        read_bytes = {pickle.BYTEARRAY8[0]: _Unpickler.dispatch[pickle.BINBYTES8[0]]}
        self.dispatch = _Operations(_Unpickler.dispatch | read_bytes)
        self._encoded = 0

    def find_class(self, module: Any, name: Any) -> Callable[..., Any]:
        """Return a stand-in, so that the pickle cannot reach the object that it names."""
        if (module, name) == ("_codecs", "encode"):
            return self._encode
        if not _NUMPY.fullmatch(f"{module}.{name}"):
            raise ValueError(f"asks for the global {module}.{name}, which is refused")
        return Pickled

    def _encode(self, text: str, _: str) -> bytes:
        self._encoded += len(text)
        if self._encoded > _MOST_ENCODED:
            raise ValueError(f"more than {_MOST_ENCODED} bytes of text")
        return text.encode("latin-1")


def unpickle(content: bytes) -> object:
    """Read a pickle of plain values and NumPy arrays.

    Returns
    -------
    None, bool, int, float, bytes, str, tuple, list, dict or Pickled
        Strings of Python 2 are bytes; arrays and dtypes are `Pickled`.

    Raises
    ------
    Exception
        The pickle is damaged, or needs more than arrays do.
    """
    return _Reader(content).load()
