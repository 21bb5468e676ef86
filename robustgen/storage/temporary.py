"""Temporary folders that every process of this machine can read, and that nothing leaves behind for long."""

import os
import shutil
import weakref
from contextlib import suppress
from pathlib import Path

from robustgen.storage.host import is_left_over, private_folder
from robustgen.storage.local import name_temporary


class TemporaryFolder:
    """A folder below that of temporary files (`TMPDIR`), removed with this object or with the process.

    If the process is killed, the next one that makes such a folder removes it.

    Raises
    ------
    OSError
        There is no place for it.
    """

    def __init__(self) -> None:
        self.path = Path()
        while not self.path.name:
            parent = private_folder("robustgen")
            # Another process may remove it at this moment.
            with suppress(FileNotFoundError):
                for left in parent.iterdir():
                    if is_left_over(left.name):
                        shutil.rmtree(left, ignore_errors=True)
                (parent / (name := name_temporary())).mkdir()
                self.path = parent / name
        # Now or at the end of the process.
        self.remove = weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path: Path, process: int) -> None:
    # A forked process inherits the finalizer, but not the folder.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.parent.rmdir()
