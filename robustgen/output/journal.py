"""Receipts on disk: an append-only journal of what was made of each source image.

A receipt is written after its files. It is handed to the operating system at
once, which outlives a killed process; a power cut it outlives once the whole
file system has been brought to the disk, which happens every half minute and is
marked in the journal. After a reboot, receipts behind the last mark are void.
"""

import ctypes
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from robustgen.errors import OutputError
from robustgen.output.records import Receipt, from_json, to_json

SECONDS_BETWEEN_SYNCS = 30.0


class Journal:
    """One journal, open for appending; what a cut-off run left of its last line is dropped."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            with path.open("rb+") as journal:
                journal.truncate(_end_of_whole_lines(journal))
        self._file: IO[str] = path.open("a", encoding="utf-8", errors="surrogateescape")
        self._synced = time.monotonic()
        self._append({"boot": _boot()})

    def append(self, receipt: Receipt) -> None:
        """Add `receipt`, whose files are written.

        Raises
        ------
        OSError
            The disk is full.
        """
        files = {folder: [to_json(each) for each in written] for folder, written in receipt.files.items()}
        entry = {"key": receipt.key, "size": receipt.size, "files": files}
        self._append(entry | ({"failures": receipt.failures} if receipt.failures else {}))
        if time.monotonic() - self._synced > SECONDS_BETWEEN_SYNCS:
            self.sync()

    def sync(self) -> None:
        """Bring all files, and then the receipts for them, to the disk."""
        _sync_file_system(self._file.fileno())
        self._append({"synced": True})
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        """Let go of the file."""
        # All is flushed, unless the disk was full, of which the caller knows.
        with suppress(OSError):
            self._file.close()

    def _append(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()


def read_journals(folder: Path) -> Iterator[Receipt]:
    """The receipts of all journals in `folder` that can be relied on, in the order written."""
    # The one written to last has the last word.
    paths = sorted(folder.glob("journal*.jsonl"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    for path in paths:
        yield from _read_journal(path)


def _read_journal(path: Path) -> Iterator[Receipt]:
    unsure: list[Receipt] = []
    boot = ""
    for entry in _entries(path):
        if "boot" in entry:
            # A reboot since then: the files of receipts not yet synced may never have reached the disk.
            if entry["boot"] != boot:
                unsure.clear()
            boot = entry["boot"]
        elif "synced" in entry:
            yield from unsure
            unsure.clear()
        else:
            unsure.append(_receipt(entry, path))
    if boot == _boot():
        yield from unsure


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="surrogateescape") as journal:
        for line in journal:
            # After a power cut there may be blocks of zeros.
            with suppress(ValueError):
                if line.endswith("\n") and isinstance(entry := json.loads(line), dict):
                    yield entry


def _receipt(entry: dict[str, Any], journal: Path) -> Receipt:
    try:
        files = {folder: [from_json(each) for each in written] for folder, written in entry["files"].items()}
        receipt = Receipt(entry["key"], entry["size"], files, tuple(entry.get("failures", ())))
        paths = {*files, *(written.path for each in files.values() for written in each)}
        outside = any(path.startswith("/") or ".." in path.split("/") for path in paths)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OutputError(f"{journal} is damaged: {error!r}") from error
    # Whoever made the output may have meant to have files elsewhere removed or listed.
    if outside:
        raise OutputError(f"{journal} is damaged: it names files outside the output")
    return receipt


def _end_of_whole_lines(journal: IO[bytes]) -> int:
    end = journal.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 65536)
        journal.seek(start)
        found = journal.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _boot() -> str:
    """What is different after every reboot; where the system does not tell, after every start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"{time.time_ns()}"


def sync_disk(folder: Path) -> None:
    """Bring the file system that `folder` is on to the disk."""
    file = os.open(folder, os.O_RDONLY)
    try:
        _sync_file_system(file)
    finally:
        os.close(file)


def _sync_file_system(file: int) -> None:
    """Bring the file system that `file` is on to the disk."""
    try:
        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        os.sync()
        return
    if syncfs(file):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
