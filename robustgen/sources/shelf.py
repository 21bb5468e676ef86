"""What is found out once about a source and then read by every worker process."""

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

Kept = TypeVar("Kept")
_NAME = "index"
# Of this process: what was read or built, by the folder that the first builder kept it in.
_KNOWN: dict[Path, Any] = {}
_MOST_KNOWN = 4


class Shelf(Generic[Kept]):
    """Builds something when it is first asked for, and keeps it in a private temporary folder.

    Pickled, it takes the folder's name along, not the content: a worker process reads what is there, or
    builds it anew on another machine. The folder goes when the shelf does.

    Parameters
    ----------
    build : callable
        Takes the folder, where it may leave files of its own, and returns what is kept. Picklable.
    """

    def __init__(self, build: Callable[[Path], Kept]) -> None:
        self._build = build
        self._folder: Path | None = None

    def get(self) -> Kept:
        """Return what is kept."""
        if self._folder in _KNOWN:
            kept: Kept = _KNOWN[self._folder]
        elif self._folder and (self._folder / _NAME).is_file():
            # Nobody else can write there: mkdtemp keeps the folder to its owner.
            kept = pickle.loads((self._folder / _NAME).read_bytes())
        else:
            kept = self._make()
        return self._remember(kept)

    def _make(self) -> Kept:
        folder = Path(tempfile.mkdtemp(prefix="robustgen-"))
        self._folder = self._folder or folder
        weakref.finalize(self if self._folder == folder else _KNOWN_OWNER, _remove, folder, os.getpid())
        kept = self._build(folder)
        (folder / _NAME).write_bytes(pickle.dumps(kept))
        return kept

    def _remember(self, kept: Kept) -> Kept:
        if self._folder is not None:
            _KNOWN[self._folder] = kept
            while len(_KNOWN) > _MOST_KNOWN:
                del _KNOWN[next(iter(_KNOWN))]
        return kept


class _Owner:
    """Owns what is built for a shelf of another machine, until the process ends."""


_KNOWN_OWNER = _Owner()


def _remove(folder: Path, process: int) -> None:
    # A forked process inherits the finalizer, but not the folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
