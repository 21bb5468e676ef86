"""Temporary folders that all processes of this machine can read, and that are removed even after a kill."""

import os
import shutil
import weakref
from pathlib import Path

from robustgen.files.storage.host import is_left_over, private_folder
from robustgen.files.storage.local import name_temporary


class TemporaryFolder:
    """Folder in the folder for temporary files (`TMPDIR`), removed with this object or at process exit.

    If the process is killed, the next process that creates such a folder removes it.

    Raises
    ------
    OSError
        No temporary folder can be created.
    """

    def __init__(self) -> None:
        parent = private_folder("robustgen")
        for left in parent.iterdir():
            if is_left_over(left.name):
                shutil.rmtree(left, ignore_errors=True)
        self.path = parent / name_temporary()
        self.path.mkdir()
        # Callable now; otherwise runs at process exit.
        self.remove = weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path: Path, process: int) -> None:
    # A forked process inherits the finalizer, but not the folder.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
