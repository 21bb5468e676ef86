"""Compilation of loops: by numba on first use, cached on disk."""

from contextlib import ExitStack

from numba import config, njit
from numba.core import event
from numba.np import linalg

from robustgen.imaging.kernels.loop_cache import tell_of_compiling, use_temporary_cache
from robustgen.storage.memory import pause_collection


class _Listener(event.Listener):  # type: ignore[misc,unused-ignore]
    """Hears of each loop that is compiled, rather than read from the cache."""

    def __init__(self):
        self._depth, self._pause = 0, ExitStack()

    def on_start(self, event):
        """Look for no garbage before the outermost loop is compiled, which takes a sixth longer otherwise."""
        if not self._depth:
            tell_of_compiling()
            self._pause.enter_context(pause_collection())
        self._depth += 1

    def on_end(self, event):
        """Look for garbage again after the outermost loop."""
        self._depth -= 1
        if not self._depth:
            self._pause.close()


event.register("numba:compile", _Listener())


def _skip_blas_check():
    """Let numba take for granted that SciPy is there: to look, it would import all of `scipy.linalg`."""
    check, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        # Loops of others that multiply matrices import it when they are compiled.
        linalg.ensure_blas = check


_skip_blas_check()


def _choose_options():
    """Return the options of all loops, with a cache that can be written."""
    # None of them is called from C, so that the wrappers for that need not be compiled.
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

# For functions that other loops call in one place: they become part of those, and are compiled by themselves
# only where Python calls them. Long ones of two places or more take longer to compile so.
inner = njit(inline="always", **_OPTIONS)
