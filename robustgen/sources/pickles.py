"""Pickles of arrays, read without running any code."""

import io
import pickle
from collections.abc import Callable
from typing import Any


class Pickled:
    """Stands in for NumPy's classes in a pickle: only remembers what it was made from and its state."""

    def __init__(self, *made_from: Any) -> None:
        self.made_from = made_from

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _latin1(text: str, _encoding: str) -> bytes:
    """Stand-in for `_codecs.encode`, with which Python 3 writes bytes into old pickles."""
    return text.encode("latin-1")


_STAND_INS: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy", "ndarray"): Pickled,
    ("numpy", "dtype"): Pickled,
    ("numpy.core.multiarray", "_reconstruct"): Pickled,
    ("numpy._core.multiarray", "_reconstruct"): Pickled,
    ("_codecs", "encode"): _latin1,
}


class _Unpickler(pickle.Unpickler):
    """Gives pickles the stand-ins and no other global, so that they can run no code."""

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"asks for the global {module}.{name}, which is refused") from None


def unpickle(content: bytes) -> object:
    """Read a pickle whose arrays become `Pickled`; whatever is wrong with it is some exception."""
    return _Unpickler(io.BytesIO(content), encoding="bytes").load()
