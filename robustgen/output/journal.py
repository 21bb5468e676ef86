"""Receipts on disk: an append-only journal of what was made of each source image.

A receipt is written after its files. It is handed to the operating system at
once, which outlives a killed process; a power cut it outlives once the whole
file system has been brought to the disk, which happens every half minute and is
marked in the journal. After a reboot, receipts behind the last mark are void.

Each line is a JSON object that ends with the CRC-32 of what is before it:

    {"boot": "0c2f...", "run": 2, "crc": "5f3a90c1"}
    {"key": "a.JPEG", "size": 1519, "files": {"fog/3": [["file", "fog/3/a.JPEG", 812, ...]]}, "crc": ...}
    {"images": {"7": 3072, "8": 3072}, "rows": [["fog.npy", 3072, "f3a9...", ["fog/2", "fog/3"]]], "crc": ...}
    {"synced": true, "crc": "09d1f6aa"}

The first of each run says which boot of the system and which run of the output it is; of all journals of an
output, the run with the highest number has the last word.
"""

import ctypes
import heapq
import json
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from robustgen.output.files import open_to_append
from robustgen.output.records import Failure, Receipt, receipts_from_json, receipts_to_json
from robustgen.regular_file import open_regular

SECONDS_BETWEEN_SYNCS = 30.0
_SEAL: Final = ', "crc": "{:08x}"}}\n'
_SEAL_SIZE: Final = len(_SEAL.format(0))


class Entry(NamedTuple):
    """A receipt as the journal takes it, made by the worker, and what the run wants to know of it.

    Attributes
    ----------
    key : str
    size : int
        As in the receipt.
    folders : tuple of str
        Of the arms that are done.
    written : int
        Bytes of all that was written.
    failures : tuple of dict
        As in the receipt.
    line : bytes
        Empty where the line of an entry before it is for this one too.
    """

    key: str
    size: int
    folders: tuple[str, ...]
    written: int
    failures: tuple[Failure, ...]
    line: bytes


def enter_receipts(receipts: Iterable[Receipt]) -> list[Entry]:
    """The entries for `receipts`. Where one line is for several in a row, the first entry has it."""
    entries: list[Entry] = []
    for files, alike in groupby(receipts, key=attrgetter("files")):
        group, folders = [*alike], tuple(files)
        size = sum(written.size for each in files.values() for written in each)
        lines = [*map(seal, receipts_to_json(group))]
        lines += [b""] * (len(group) - len(lines))
        entries += [
            Entry(receipt.key, receipt.size, folders, size, receipt.failures, line)
            for receipt, line in zip(group, lines, strict=True)
        ]
    return entries


class Journal:
    """One journal, open for appending; what a cut-off run left of its last line is dropped.

    Parameters
    ----------
    path : Path
    run : int
        Number of the run, higher than those of all earlier runs in the same output.
    """

    def __init__(self, path: Path, run: int) -> None:
        self._file: IO[bytes] = open_to_append(path)
        self._file.truncate(_end_of_whole_lines(self._file))
        self._synced = time.monotonic()
        self._append(seal({"boot": _boot(), "run": run}))

    def append(self, entries: Iterable[Entry]) -> None:
        """Add `entries`, whose files are written.

        Raises
        ------
        OSError
            The disk is full.
        """
        self._append(b"".join(entry.line for entry in entries))
        if time.monotonic() - self._synced > SECONDS_BETWEEN_SYNCS:
            self.sync()

    def sync(self) -> None:
        """Bring all files, and then the receipts for them, to the disk."""
        _sync_file_system(self._file.fileno())
        self._append(seal({"synced": True}))
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        """Let go of the file."""
        # All is flushed, unless the disk was full, of which the caller knows.
        with suppress(OSError):
            self._file.close()

    def _append(self, lines: bytes) -> None:
        self._file.write(lines)
        self._file.flush()


def seal(entry: dict[str, Any]) -> bytes:
    """The line for `entry`, with its checksum."""
    text = json.dumps(entry)[:-1]
    return (text + _SEAL.format(zlib.crc32(text.encode()))).encode()


def _unseal(line: bytes) -> dict[str, Any] | None:
    """The entry in a line; None if it is not as it was written."""
    text = line[:-_SEAL_SIZE]
    if line[-_SEAL_SIZE:] != _SEAL.format(zlib.crc32(text)).encode():
        return None
    try:
        entry: dict[str, Any] = json.loads(text + b"}")
    except ValueError:
        return None
    return entry if isinstance(entry.get("run", 0), int) else None


class JournalReader:
    """Reads all journals in `folder`, those of the latest runs last.

    Attributes
    ----------
    damaged : list of str
        Lines that were passed over, as ``"journal.jsonl, line 7"``, once all is read.
    """

    def __init__(self, folder: Path) -> None:
        self._paths = sorted(folder.glob("journal*.jsonl"))
        self.damaged: list[str] = []

    def receipts(self) -> Iterator[Receipt]:
        """The receipts that can be relied on, in the order of the runs that wrote them."""
        # Of equal runs, made in parts on different disks, each has images of its own.
        runs = [self._read(path) for path in self._paths]
        for _, receipt in heapq.merge(*runs, key=lambda each: each[0]):
            yield receipt

    def last_run(self) -> int:
        """The highest number of a run; 0 where there was none."""
        return max((run for path in self._paths for run in _runs(path)), default=0)

    def _read(self, path: Path) -> Iterator[tuple[int, Receipt]]:
        unsure: list[tuple[int, Receipt]] = []
        boot, run = "", 0
        for number, entry in self._entries(path):
            if "boot" in entry:
                # A reboot since then: the files of receipts not yet synced may never have reached the disk.
                if entry["boot"] != boot:
                    unsure.clear()
                boot, run = entry["boot"], max(run, int(entry.get("run", 0)))
            elif "synced" in entry:
                yield from unsure
                unsure.clear()
            elif receipts := _receipts(entry):
                unsure += [(run, receipt) for receipt in receipts]
            else:
                self.damaged.append(f"{path.name}, line {number}")
        if boot == _boot():
            yield from unsure

    def _entries(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        with open_regular(path) as journal:
            for number, line in enumerate(journal, 1):
                # A run that was cut off left no end; after a power cut there may be blocks of zeros.
                if not line.endswith(b"\n") or b"\0" in line:
                    continue
                entry = _unseal(line)
                if entry is None:
                    self.damaged.append(f"{path.name}, line {number}")
                else:
                    yield number, entry


def _runs(path: Path) -> Iterator[int]:
    """The numbers of the runs that wrote a journal."""
    with open_regular(path) as journal:
        for line in journal:
            # A full set has gigabytes of other lines.
            if line.startswith(b'{"boot"') and (entry := _unseal(line)):
                yield int(entry.get("run", 0))


def keep_whole_lines(path: Path) -> Iterator[bytes]:
    """The lines of a journal that are as they were written."""
    with open_regular(path) as journal:
        for line in journal:
            entry = _unseal(line)
            if entry is not None and ("boot" in entry or "synced" in entry or _receipts(entry)):
                yield line


def _receipts(entry: dict[str, Any]) -> list[Receipt]:
    """The receipts in an entry; empty if there are none that this tool wrote."""
    try:
        receipts = receipts_from_json(entry)
    except ValueError:
        return []
    # Whoever made the output may have meant to have files elsewhere removed or listed.
    files = receipts[0].files
    paths = (written.path for each in files.values() for written in each)
    return [] if _lead_outside([*files, *paths]) else receipts


def _lead_outside(paths: Sequence[str]) -> bool:
    """Whether one of `paths` may lead out of the output, or can name no file."""
    # Together they are searched in less time than one by one.
    text = "\0".join(["", *paths])
    if text.count("\0") != len(paths):
        return True
    return "\0/" in text or (".." in text and any(".." in path.split("/") for path in paths))


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
