"""The compiled loops, and nothing else.

Each is a plain loop over arrays that NumPy cannot express in one pass. Floating-point operations
stand in the order in which the published functions take them, so that results
agree to the last bit; numba neither reorders nor fuses them. What is done for every pixel stands in
loops without branches over a line, so that the compiler takes many pixels at once; what has to be looked
up, in loops of its own.

A module of loops, and numba with it, is imported when the first of its loops is called.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from robustgen.storage.memory import pause_collection


class _Loops:
    """Stands for a module of loops until one of them is called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        with pause_collection():
            value = getattr(import_module(self._name), attribute)
        # Found here from now on.
        setattr(self, attribute, value)
        return value


def __getattr__(name: str) -> Any:
    full = f"{__name__}.{name}"
    if name.startswith("_") or find_spec(full) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _Loops(full)
