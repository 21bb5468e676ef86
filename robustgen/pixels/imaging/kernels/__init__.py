"""Compiled loops.

Each is a plain loop over arrays that NumPy cannot express in one pass. Floating-point operations have the
order of the published functions, so that results agree to the last bit; numba neither reorders nor fuses
them. Arithmetic is in loops over a line without branches, which the compiler vectorises; table look-ups are
in separate loops.

The first call of a loop imports its module and numba.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from threading import Lock
from typing import Any, Final

from robustgen.files.storage.host import (
    cache_folder,
    check_address_space,
    find_log_stream,
    pause_collection,
    private_folder,
)


class _Loops:
    """Placeholder of a module of loops until the first call."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        check_address_space()
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


# --- cache of compiled loops, and a notice before compilation --------------------------------------

VARIABLE = "NUMBA_CACHE_DIR"
# Loops that `make wheel` compiles are for processors with these features: those of x86-64-v3, since 2013, and
# those of every aarch64.
_SHIPPED_FOR: Final = {
    "x86_64": (
        "x86-64-v3",
        "+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sahf,+sse,+sse2,"
        "+sse3,+sse4.1,+sse4.2,+ssse3,+xsave",
    ),
    "aarch64": ("generic", "+fp-armv8,+neon"),
}
SHIPPED_PROCESSOR, SHIPPED_FEATURES = _SHIPPED_FOR.get(machine(), ("", ""))
# Folder of these loops in the wheel.
SHIPPED: Final = "compiled"
# File in it of the releases that can read them.
CONSTRAINTS: Final = "constraints.txt"

_choosing: Final = Lock()
_tell: ContextVar[Callable[[], None]] = ContextVar("tell", default=lambda: None)


def call_before_compiling(tell: Callable[[], None]) -> None:
    """Call `tell` whenever this thread begins to compile a loop, or to wait for it, which takes seconds."""
    _tell.set(tell)


def tell_of_compiling() -> None:
    """Call what was passed to `call_before_compiling`."""
    _tell.get()()


@cache
def loop_folder() -> Path:
    """Create and return the folder of all loops compiled from these sources by this release of numba.

    It is named after their digest: checkouts with the same sources share it, and no change of a loop leaves
    another loop that calls it outdated. numba tells processors and releases of Python apart itself.

    Raises
    ------
    OSError
        No folder can be written.
    """
    # Of several threads, one finds out and tells.
    with _choosing:
        try:
            parent = Path(os.environ.get(VARIABLE) or cache_folder("robustgen"))
            return _make_writable(parent / name_loops())
        except OSError:
            # Read-only site-packages and home, as in many containers.
            return _make_writable(_use_temporary_cache() / name_loops())


@cache
def name_loops() -> str:
    """Return the name of the folder of the loops, after the digest of these sources and numba's release."""
    digest = hashlib.sha256(version("numba").encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return f"loops-{digest.hexdigest()[:16]}"


@cache
def tell_of_other_loops() -> None:
    """Say, once for each folder of loops, that those in the wheel are for another machine or numba."""
    shipped = (Path(__file__).parent / SHIPPED).glob(f"*/{CONSTRAINTS}")
    pinned = " ".join(each for path in shipped for each in path.read_text(encoding="utf-8").split())
    with suppress(OSError):
        (loop_folder() / "told").touch(exist_ok=False)
        tell(
            f"the compiled loops of this wheel are for {SHIPPED_PROCESSOR} processors and another numba; "
            "compiling loops for this machine, once. To use those of the wheel on such a processor: "
            f"pip install {pinned}"
        )


def _make_writable(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} cannot be written")
    return folder


def _use_temporary_cache() -> Path:
    """Create a temporary cache folder, set it for worker processes too, log it, and return it."""
    folder = private_folder("robustgen-numba")
    os.environ[VARIABLE] = str(folder)
    tell(f"compiled loops are kept in {folder}, as no other can be written; {VARIABLE} names one that lasts")
    return folder


def tell(line: str) -> None:
    """Write a line about loops to standard error, if there is any."""
    if stream := find_log_stream():
        stream.write(f"robustgen: {line}\n")
