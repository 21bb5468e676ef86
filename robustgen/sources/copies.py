"""Unpacked copies of compressed files."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, BinaryIO

from robustgen.errors import SourceError
from robustgen.storage.local import LocalStore
from robustgen.storage.temporary import TemporaryFolder


class Copies:
    """Temporary folder of unpacked files, which worker processes of this machine read too."""

    def __init__(self) -> None:
        # Folder of the process that sent this object.
        self._lent = ""

    def __getstate__(self) -> dict[str, str]:
        return {"_lent": str(self._folder.path) if "_folder" in vars(self) else self._lent}

    @cached_property
    def _folder(self) -> TemporaryFolder:
        return TemporaryFolder()

    def find(self, name: str, unpack: Callable[[BinaryIO], Any], where: str) -> LocalStore:
        """Return the store of the copy `name`; if it is missing, ``unpack(file)`` writes it.

        Raises
        ------
        SourceError
            The copy cannot be written; the message names the file `where`.
        """
        if self._lent and (lent := LocalStore(self._lent, self._lent)).exists(name):
            return lent
        try:
            store = LocalStore(self._folder.path, self._folder.path)
            if not store.exists(name):
                with store.create(name) as target:
                    unpack(target)
            return store
        except (ConnectionError, FileNotFoundError):
            raise
        except OSError as error:
            problem = f"cannot be unpacked to a temporary file ({error.strerror or error})"
            raise SourceError(f"{where}: {problem}; set TMPDIR to another folder") from error
