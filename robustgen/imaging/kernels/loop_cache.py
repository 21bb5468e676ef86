"""Where the compiled loops are kept if neither the package's folder nor the user's cache can be written."""

import os
import sys
import tempfile
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


def use_temporary_cache() -> str:
    """Name a temporary folder in the environment, for worker processes too, say so in a line, and return it.

    Raises
    ------
    OSError
        There is no folder for temporary files either.
    """
    folder = str(_own_folder())
    os.environ[VARIABLE] = folder
    sys.stderr.write(
        f"robustgen: compiled loops are kept in {folder}, as no other folder can be written; "
        f"{VARIABLE} names one that lasts\n"
    )
    return folder


def _own_folder() -> Path:
    """A folder that nobody else can have put anything into: what lies there is run."""
    folder = Path(tempfile.gettempdir()) / f"robustgen-numba-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if folder.is_symlink() or about.st_uid != os.getuid() or about.st_mode & 0o077:
        return Path(tempfile.mkdtemp(prefix="robustgen-numba-"))
    return folder
