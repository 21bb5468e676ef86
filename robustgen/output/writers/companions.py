"""Small files that go with those that hold many images: labels, keys, names of classes, counts."""

import hashlib
from pathlib import Path

from robustgen.output.files import MANIFEST, file_digest, write_whole
from robustgen.output.records import WrittenFile
from robustgen.output.state import State


def write_unless_there(root: Path, name: str, data: bytes) -> WrittenFile:
    """Write `data` to `name` below `root` unless it is there; return its record."""
    digest = hashlib.sha256(data).hexdigest()
    if not (root / name).is_file() or file_digest(root / name) != digest:
        write_whole(root, name, data)
    return WrittenFile(name, len(data), digest)


def keep_companion(root: Path, name: str, data: bytes) -> None:
    """Write a file of its own record at the root of the output unless it is there."""
    state, written = State(root), WrittenFile(name, len(data), hashlib.sha256(data).hexdigest())
    held = state.assembled(name)
    recorded = held is not None and held.files == [written]
    if not recorded or not (root / name).exists():
        write_whole(root, name, data)
    if not recorded:
        # A manifest must never be older than this.
        (root / MANIFEST).unlink(missing_ok=True)
        state.record_assembled(name, [written])
