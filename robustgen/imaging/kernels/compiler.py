"""Compilation of loops by numba on first use, cached on disk."""

from contextlib import ExitStack

from numba import config, njit
from numba.core import event
from numba.np import linalg

from robustgen.files.storage.memory import pause_collection
from robustgen.imaging.kernels.loop_cache import tell_of_compiling, use_temporary_cache


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


def _choose_options():
    """Return the options of all loops, with a writable cache."""
    # No loop is called from C, so no wrappers are compiled for it.
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    cached = {"cache": True, **options}
    try:
        njit(**cached)(_choose_options)
    except RuntimeError:
        # Read-only site-packages and home, as in many containers.
        try:
            config.CACHE_DIR = use_temporary_cache()
        except OSError:
            return options
    return cached


_OPTIONS = _choose_options()

compiled = njit(**_OPTIONS)

# For functions that other loops call in one place: they are inlined, and compiled separately only if Python
# calls them. Long functions called in several places would take longer to compile.
inner = njit(inline="always", **_OPTIONS)
