"""Cache of compiled loops, and a notice before compilation."""

import os
import sys
from collections.abc import Callable

from robustgen.files.storage.host import private_folder

VARIABLE = "NUMBA_CACHE_DIR"

_tell: Callable[[], None] | None = None


def call_before_compiling(tell: Callable[[], None]) -> None:
    """Call `tell` once, before this process first compiles a loop, which takes seconds."""
    global _tell
    _tell = tell


def tell_of_compiling() -> None:
    """Call what was passed to `call_before_compiling`, the first time only."""
    global _tell
    if _tell:
        tell, _tell = _tell, None
        tell()


def use_temporary_cache() -> str:
    """Create a temporary cache folder, set it for worker processes too, log it, and return it.

    Raises
    ------
    OSError
        No folder for temporary files is writable either.
    """
    # Code in the cache is executed.
    folder = str(private_folder("robustgen-numba"))
    os.environ[VARIABLE] = folder
    sys.stderr.write(
        f"robustgen: compiled loops are kept in {folder}, as no other folder can be written; "
        f"{VARIABLE} names one that lasts\n"
    )
    return folder
