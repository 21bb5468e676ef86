"""Pickles of arrays, as CIFAR is published in: nothing in them is called, and memory is bounded.

Python's own reader would call what a pickle names, and gives a few bytes gigabytes: by a far place in its
memo, or by a tuple of tuples of tuples, each twice, as a key.
"""

import io
import pickle
import pickletools
from collections.abc import Callable
from functools import partial
from typing import Any, Final

# A batch of 99 999 images and their file names takes some 500 000.
MOST_STEPS: Final = 2_000_000
# One text can be encoded many times.
_MOST_ENCODED: Final = 1 << 29
_NUMPY: Final = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
}
# By its loops in Python, where the memo is a dict and each step can be counted.
_Unpickler: Any = pickle._Unpickler
_RECALLING: Final = frozenset(pickle.GET + pickle.BINGET + pickle.LONG_BINGET)
_NAMES: Final = """
PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 UNICODE BINUNICODE SHORT_BINUNICODE
BINUNICODE8 TUPLE EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 LIST EMPTY_LIST APPEND APPENDS DICT EMPTY_DICT SETITEM
SETITEMS PUT BINPUT LONG_BINPUT MEMOIZE GLOBAL STACK_GLOBAL REDUCE BUILD BYTEARRAY8
"""
_ALLOWED: Final = _RECALLING | {getattr(pickle, name)[0] for name in _NAMES.split()}


class Pickled:
    """A NumPy object of a pickle: the arguments that it was made from, and its state."""

    def __init__(self, *made_from: Any) -> None:
        self.made_from = made_from
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Operations(dict[int, Callable[[Any], None]]):
    """The operations that arrays need, counted."""

    steps = 0

    def __getitem__(self, code: int) -> Callable[[Any], None]:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise ValueError(f"more than {MOST_STEPS} steps to unpickle")
        if code not in _ALLOWED:
            name = next((each.name for each in pickletools.opcodes if ord(each.code) == code), code)
            raise ValueError(f"{name} is nothing that a pickle of arrays needs")
        return super().__getitem__(code)


class _Reader(_Unpickler):  # type: ignore[misc]
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")
        self.dispatch = _Operations(_Unpickler.dispatch)
        for code in _RECALLING:
            self.dispatch[code] = partial(_Reader.recall, load=_Unpickler.dispatch[code])
        self.dispatch[pickle.BYTEARRAY8[0]] = _Reader.load_bytes
        self._encoded = 0

    def find_class(self, module: Any, name: Any) -> Callable[..., Any]:
        """Return a stand-in: what is in a pickle must not come to what it names."""
        if (module, name) == ("_codecs", "encode"):
            return lambda text, _: self._encode(text)
        if (module, name) not in _NUMPY:
            raise ValueError(f"asks for the global {module}.{name}, which is refused")
        return lambda *made_from: Pickled(*made_from)

    def _encode(self, text: str) -> bytes:
        self._encoded += len(text)
        if self._encoded > _MOST_ENCODED:
            raise ValueError(f"more than {_MOST_ENCODED} bytes of text")
        return text.encode("latin-1")

    def load_bytes(self) -> None:
        """Push the bytes of an array; Python's own reader would take as much memory as a file says."""
        self.append(self.read(int.from_bytes(self.read(8), "little")))

    def recall(self, load: Callable[[Any], None]) -> None:
        """Push a value of the memo; containers within each other, each twice, would grow without measure."""
        load(self)
        value = self.stack[-1]
        if isinstance(value, list | dict | tuple) and value:
            raise ValueError(f"uses a {type(value).__name__} twice")


def unpickle(content: bytes) -> object:
    """Read a pickle of plain values and NumPy arrays.

    Returns
    -------
    None, bool, int, float, bytes, str, tuple, list, dict or Pickled
        Strings of Python 2 are bytes; arrays and dtypes are `Pickled`.

    Raises
    ------
    Exception
        It is damaged, or asks for more than arrays need.
    """
    return _Reader(content).load()
