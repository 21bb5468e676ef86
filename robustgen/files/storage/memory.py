"""Memory settings for processes that run only robustgen."""

import atexit
import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

# Little cyclic garbage arises, while imports and compilation allocate millions of lasting objects.
_ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4


@cache
def collect_garbage_rarely() -> None:
    """Collect cyclic garbage less often than Python's default, and not at all at exit.

    One pass over the objects of numba and SciPy takes several times as long as an image.
    """
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    atexit.register(_leave_garbage)


@contextmanager
def pause_collection() -> Iterator[None]:
    """Collect no cyclic garbage while importing modules or compiling loops."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _ALLOCATIONS_BETWEEN_COLLECTIONS:
            # Nearly all new objects last, so later collections can skip them.
            _leave_garbage()
        if was_enabled:
            gc.enable()


def _leave_garbage() -> None:
    # Libraries that come with PyTorch print warnings about objects that remain.
    if "torch" not in sys.modules:
        gc.freeze()


def keep_freed_memory() -> None:
    """Make glibc keep freed memory, because returning and requesting it takes longer than the arithmetic."""
    # The kernel clears each separate mapping; M_MMAP_THRESHOLD could avoid this only up to 32 MB.
    _set_parameters({_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: 1 << 28})


def return_freed_memory() -> None:
    """Make glibc return freed memory at once; next to large frames, kept memory adds up to gigabytes."""
    _set_parameters({_M_MMAP_MAX: 1 << 16, _M_MMAP_THRESHOLD: 1 << 20, _M_TRIM_THRESHOLD: 1 << 20})
    with suppress(OSError, AttributeError):
        _load_libc().malloc_trim(0)


def _set_parameters(values: dict[int, int]) -> None:
    """Set the thresholds of glibc for memory mappings and for kept memory."""
    with suppress(OSError, AttributeError):
        for parameter, value in values.items():
            _load_libc().mallopt(parameter, value)


@cache
def _load_libc() -> Any:
    return ctypes.CDLL(None)
