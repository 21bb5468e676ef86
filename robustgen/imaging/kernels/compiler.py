"""Compilation of loops: by numba on first use, cached on disk."""

from numba import config, njit

from robustgen.imaging.kernels.loop_cache import use_temporary_cache


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
