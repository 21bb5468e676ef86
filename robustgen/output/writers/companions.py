"""Small files that go with those that hold many images: labels, keys, names of classes, counts."""

import hashlib
from pathlib import Path

from robustgen.output.files import MANIFEST, write_whole
from robustgen.output.records import WrittenFile
from robustgen.output.state import State
from robustgen.regular_file import open_regular


def write_unless_there(root: Path, name: str, data: bytes) -> WrittenFile:
    """Write `data` to `name` below `root` unless it is there; return its record."""
    if not _holds(root / name, data):
        write_whole(root, name, data)
    return WrittenFile(name, len(data), hashlib.sha256(data).hexdigest())


def keep_companion(root: Path, name: str, data: bytes) -> None:
    """Write a file of its own record at the root of the output unless it is there."""
    state, written = State(root), WrittenFile(name, len(data), hashlib.sha256(data).hexdigest())
    held = state.assembled(name)
    recorded = held is not None and held.files == [written]
    if not recorded or not _holds(root / name, data):
        write_whole(root, name, data)
    if not recorded:
        # A manifest must never be older than this.
        (root / MANIFEST).unlink(missing_ok=True)
        state.record_assembled(name, [written])


def _holds(path: Path, data: bytes) -> bool:
    """Whether there is a regular file of this content at `path`."""
    try:
        with open_regular(path) as file:
            return file.read(len(data) + 1) == data
    except OSError:
        return False
