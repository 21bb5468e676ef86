"""Pickles of arrays, the format of CIFAR, read without calling anything and with bounded memory."""

import io
import pickle
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# A batch of 99 999 images and their file names needs some 500 000.
MOST_STEPS: Final = 2_000_000
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
        kind, order = dtype.made_from[0], dtype.state[1]
        kind, order = (each.decode() if isinstance(each, bytes) else each for each in (kind, order))
        if not re.fullmatch("[fiu][1248]", kind):
            raise ValueError(f"an array of {kind} instead of numbers")
        numbers = np.frombuffer(content, f"{order}{kind}")
        return numbers.reshape(shape, order="F" if by_columns else "C")


class _Operations(dict[int, Callable[[Any], None]]):
    """Operations of pickles; counts the steps."""

    steps = 0

    def __getitem__(self, code: int) -> Callable[[Any], None]:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise ValueError(f"more than {MOST_STEPS} steps to unpickle")
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
