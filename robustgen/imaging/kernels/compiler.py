"""Compilation of loops: by numba on first use, cached on disk."""

from numba import config, njit
from numba.core import event
from numba.np import linalg

from robustgen.imaging.kernels.loop_cache import tell_of_compiling, use_temporary_cache


class _Listener(event.Listener):  # type: ignore[misc,unused-ignore]
    """Hears of each loop that is compiled, rather than read from the cache."""

    def on_start(self, event):
        tell_of_compiling()

    def on_end(self, event):
        """Nobody needs to know."""


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


def _choose_compiler():
    """Return the decorator of all loops, with a cache that can be written."""
    # None of them is called from C, so that the wrappers for that need not be compiled.
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    cached = njit(cache=True, **options)
    try:
        cached(_choose_compiler)
    except RuntimeError:
        # Read-only site-packages and home, as in many containers.
        try:
            config.CACHE_DIR = use_temporary_cache()
        except OSError:
            return njit(**options)
    return cached


compiled = _choose_compiler()

# For functions that only other loops call: they become part of those, and are not compiled by themselves.
inner = njit(inline="always")
