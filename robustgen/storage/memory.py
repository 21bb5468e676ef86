"""Memory of a process that does nothing else than the work of robustgen."""

import atexit
import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

# Nothing leaves much garbage in circles, while imports and compiling allocate millions of objects that stay.
_ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4

# Whether this process does nothing else.
_is_ours = False


@cache
def collect_garbage_rarely() -> None:
    """Look for circular garbage less often than Python does by itself, and not at all when the process ends.

    Going through all that numba and SciPy have imported takes longer than an image does, several times over.
    """
    global _is_ours
    _is_ours = True
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    leave_garbage_at_exit()


@contextmanager
def pause_collection() -> Iterator[None]:
    """Look for no circular garbage while modules are imported or loops compiled, and leave it at the end."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _is_ours:
            # Nearly all of what was allocated stays, and need not be gone through again.
            _leave_garbage()
        if was_enabled:
            gc.enable()
    leave_garbage_at_exit()


@cache
def leave_garbage_at_exit() -> None:
    """Do not look for circular garbage when the process ends: that takes longer than to corrupt an image."""
    atexit.register(_leave_garbage)


def _leave_garbage() -> None:
    # What PyTorch brings along complains of objects that are left.
    if "torch" not in sys.modules:
        gc.freeze()


def keep_freed_memory() -> None:
    """Tell glibc to keep what is freed: handing megabytes back and forth costs more than the arithmetic."""
    # What is mapped by itself the kernel clears every time; a threshold would be 32 MB at most.
    _set_parameters({_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: 1 << 28})


def return_freed_memory() -> None:
    """Tell glibc to hand back what is freed, at once: kept next to large frames, it adds up to gigabytes."""
    _set_parameters({_M_MMAP_MAX: 1 << 16, _M_MMAP_THRESHOLD: 1 << 20, _M_TRIM_THRESHOLD: 1 << 20})
    with suppress(OSError, AttributeError):
        _load_libc().malloc_trim(0)


def _set_parameters(values: dict[int, int]) -> None:
    """Tell glibc from how many bytes on, and how many times, memory is mapped, and how much free is kept."""
    with suppress(OSError, AttributeError):
        for parameter, value in values.items():
            _load_libc().mallopt(parameter, value)


@cache
def _load_libc() -> Any:
    return ctypes.CDLL(None)
