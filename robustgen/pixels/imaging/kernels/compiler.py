"""Compiling loops with numba, once for all processes."""

import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version
from pathlib import Path

from numba import njit
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.np import linalg

from robustgen.files.storage.host import cache_folder, lock, pause_collection, private_folder

# --- cache of compiled loops, and a notice before compilation --------------------------------------

VARIABLE = "NUMBA_CACHE_DIR"

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
    digest = hashlib.sha256(version("numba").encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    try:
        parent = Path(os.environ.get(VARIABLE) or cache_folder("robustgen"))
        return _make_writable(parent / f"loops-{digest.hexdigest()[:16]}")
    except OSError:
        # Read-only site-packages and home, as in many containers.
        return _make_writable(_use_temporary_cache() / f"loops-{digest.hexdigest()[:16]}")


def _make_writable(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} cannot be written")
    return folder


def _use_temporary_cache() -> Path:
    """Create a temporary cache folder, set it for worker processes too, log it, and return it."""
    folder = private_folder("robustgen-numba")
    os.environ[VARIABLE] = str(folder)
    sys.stderr.write(
        f"robustgen: compiled loops are kept in {folder}, as no other folder can be written; "
        f"{VARIABLE} names one that lasts\n"
    )
    return folder


# --- compilation of loops by numba on first use, cached on disk ------------------------------------


class _Listener(event.Listener):  # type: ignore[misc,unused-ignore]
    """Listener for loops that are compiled, not read from the cache."""

    def __init__(self):
        self._depth, self._pause = 0, ExitStack()

    def on_start(self, event):
        """Disable garbage collection for the outermost loop, which saves a sixth of the time."""
        if not self._depth:
            tell_of_compiling()
            self._pause.enter_context(pause_collection())
        self._depth += 1

    def on_end(self, event):
        """Enable garbage collection after the outermost loop."""
        self._depth -= 1
        if not self._depth:
            self._pause.close()


event.register("numba:compile", _Listener())


def _skip_blas_check():
    """Let numba assume that SciPy is installed: its check would import all of `scipy.linalg`."""
    check, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        # Other packages' loops that multiply matrices import it when compiled.
        linalg.ensure_blas = check


_skip_blas_check()


class _Locator(_CacheLocator):
    """Place of the compiled loops of a function: one folder for all functions."""

    def __init__(self, function, file):
        self._py_file, self._line = file, function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function, file):
        """Return the place of a function that is written in `file`."""
        return cls(function, file)

    def get_cache_path(self):
        """Return the folder."""
        return str(loop_folder())

    def get_source_stamp(self):
        """Return nothing, because the folder is named after all sources."""

    def get_disambiguator(self):
        """Return what tells functions of one name apart."""
        return str(self._line)


class _LoopFiles(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _LoopCache(FunctionCache):
    """Compiled loops on disk, each compiled by one process, for which the others wait.

    Without a lock, numba could also store two loops of one function under one name.
    """

    _impl_class = _LoopFiles

    def __init__(self, function):
        super().__init__(function)
        self._lock = ExitStack()

    def load_overload(self, signature, target):
        """Return the loop from the cache; None if this process has to compile it, and then save it."""
        # A compilation that failed has saved nothing.
        self._lock.close()
        loop = super().load_overload(signature, target)
        if loop is None:
            tell_of_compiling()
            self._lock.enter_context(lock(f"{self.cache_path}/{self._impl.filename_base}.lock"))
            loop = super().load_overload(signature, target)
        if loop is not None:
            self._lock.close()
        return loop

    def save_overload(self, signature, loop):
        """Save the loop that this process compiled, for all that wait."""
        with self._lock:
            super().save_overload(signature, loop)


# No loop is called from C, so no wrappers are compiled for it.
_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def _keep(loop):
    """Return `loop` with a cache, if any folder can be written."""
    with suppress(OSError):
        loop._cache = _LoopCache(loop.py_func)
    return loop


def compiled(function):
    """Compile a function when it is first called with arguments of some types."""
    return _keep(njit(**_OPTIONS)(function))


def inner(function):
    """Inline a function that other loops call in one place; compile it separately only if Python calls it.

    Long functions called in several places would take longer to compile.
    """
    return _keep(njit(inline="always", **_OPTIONS)(function))
