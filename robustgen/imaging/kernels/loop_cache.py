"""The place of compiled loops if neither the package's folder nor the user's cache can be written."""

import os
import sys

from robustgen.storage.host import private_folder

VARIABLE = "NUMBA_CACHE_DIR"


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
