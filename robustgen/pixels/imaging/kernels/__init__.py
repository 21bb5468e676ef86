"""Compiled loops.

Each is a plain loop over arrays that NumPy cannot express in one pass. Floating-point operations have the
order of the published functions, so that results agree to the last bit; numba neither reorders nor fuses
them. Arithmetic is in loops over a line without branches, which the compiler vectorises; table look-ups are
in separate loops.

The first call of a loop imports its module and numba.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from robustgen.files.storage.host import pause_collection


class _Loops:
    """Placeholder of a module of loops until the first call."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        with pause_collection():
            value = getattr(import_module(self._name), attribute)
        # Later look-ups find it here.
        setattr(self, attribute, value)
        return value


def __getattr__(name: str) -> Any:
    full = f"{__name__}.{name}"
    if name.startswith("_") or find_spec(full) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _Loops(full)
