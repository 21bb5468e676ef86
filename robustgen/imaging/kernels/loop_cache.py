"""Cache of compiled loops, and the notice that some are compiled."""

import os
import sys
from collections.abc import Callable

from robustgen.storage.host import private_folder

VARIABLE = "NUMBA_CACHE_DIR"

_tell: Callable[[], None] | None = None


def call_before_compiling(tell: Callable[[], None]) -> None:
    """Have `tell` called when this process first compiles a loop, which takes seconds and is done once."""
    global _tell
    _tell = tell


def tell_of_compiling() -> None:
    """Call what `call_before_compiling` was given, the first time."""
    global _tell
    if _tell:
        tell, _tell = _tell, None
        tell()


def use_temporary_cache() -> str:
    """Name a temporary folder in the environment, for worker processes too, say so in a line, and return it.

    Raises
    ------
    OSError
        There is no folder for temporary files either.
    """
    # What lies there is run.
    folder = str(private_folder("robustgen-numba"))
    os.environ[VARIABLE] = folder
    sys.stderr.write(
        f"robustgen: compiled loops are kept in {folder}, as no other folder can be written; "
        f"{VARIABLE} names one that lasts\n"
    )
    return folder
