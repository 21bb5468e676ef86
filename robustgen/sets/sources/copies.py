"""Unpacked copies of compressed files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from robustgen.errors import SourceError
from robustgen.files.storage.local import LocalStore, TemporaryFolder


class Copies:
    """Temporary folder of unpacked files, which worker processes of this machine use too."""

    def __init__(self) -> None:
        self._own: TemporaryFolder | None = None
        self._path: Path | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_own": None}

    def find(self, name: str, unpack: Callable[[BinaryIO], Any], where: str) -> LocalStore:
        """Return the store of the copy `name`; if it is missing, ``unpack(file)`` writes it.

        Raises
        ------
        SourceError
            The copy cannot be written; the message names the file `where`.
        """
        try:
            # The folder of the process that sent this object may be on another machine.
            if not self._path or not self._path.is_dir():
                self._own = TemporaryFolder()
                self._path = self._own.path
            store = LocalStore(self._path, self._path)
            if not store.exists(name):
                with store.create(name) as target:
                    unpack(target)
            return store
        except (ConnectionError, FileNotFoundError):
            raise
        except OSError as error:
            problem = f"cannot be unpacked to a temporary file ({error.strerror or error})"
            raise SourceError(f"{where}: {problem}; set TMPDIR to another folder") from error
