"""Temporary files that every process of this machine can read, and that nothing leaves behind."""

import os
import tempfile
import weakref
from pathlib import Path
from typing import IO

from robustgen.sources.listed_file import Stamp, stamp_of

# Here the system shows the files that a process has open.
_OPEN_FILES = Path("/proc/self/fd")


class Scratch:
    """A temporary file, made when it is first written to; `TMPDIR` says where.

    It has no name, and so is gone with this process, even if that is killed. Processes that it started reach
    it through ``/proc``; on systems that have none it has a name, which is removed at the end.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path = Path()

    @property
    def file(self) -> IO[bytes]:
        """The file, open for reading and writing; an OSError if there can be none."""
        if self._file is None:
            self._open()
        assert self._file is not None
        return self._file

    @property
    def path(self) -> Path:
        """Where processes of this machine find it while this one lives."""
        return self._path

    @property
    def stamp(self) -> Stamp:
        """Tells that it is still the same and that nothing was added."""
        self.file.flush()
        return stamp_of(os.fstat(self.file.fileno()))

    def _open(self) -> None:
        if _OPEN_FILES.is_dir():
            self._file = tempfile.TemporaryFile(prefix="robustgen-")  # noqa: SIM115
            self._path = Path(f"/proc/{os.getpid()}/fd/{self._file.fileno()}")
        else:
            number, name = tempfile.mkstemp(prefix="robustgen-")
            self._file, self._path = os.fdopen(number, "w+b"), Path(name)
            weakref.finalize(self, _remove, self._path, os.getpid())


def _remove(path: Path, process: int) -> None:
    # A forked process inherits the finalizer, but not the file.
    if os.getpid() == process:
        path.unlink(missing_ok=True)
