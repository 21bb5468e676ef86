"""What an output folder knows of itself: its settings, its receipts, its failures.

    <output>/.robustgen/lock             held while a run writes here; dies with its process
    <output>/.robustgen/settings.json    all that decides the bytes
    <output>/.robustgen/journal.jsonl    one receipt a line: a source image and what was made of it
    <output>/.robustgen/tmp/             files that are not whole yet
    <output>/errors.jsonl                source images that failed, and why

A receipt is written after its files. So a run that is cut off repeats at most
what was under way, and writes the same bytes again.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from robustgen.errors import OutputError
from robustgen.plan import Arm
from robustgen.sinks import STATE, Sink, Written, temporary_folder, write_whole

Failure = dict[str, str]


@dataclass(frozen=True)
class Receipt:
    """What came of one source image.

    Attributes
    ----------
    key : str
    size : int
        Bytes of the source image, by which a changed one is noticed.
    files : mapping of str to list of Written
        Arm's folder to the files written.
    failures : tuple of dict
        Entries for `errors.jsonl`: key, arm (where it was one arm that failed) and reason.
    """

    key: str
    size: int
    files: Mapping[str, list[Written]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()


class Ledger:
    """The state of one output folder, locked while it is open.

    Parameters
    ----------
    root : Path
    sink : Sink
    settings : dict
        What decides the bytes of this run; its ``"parameters"`` are per arm.
    overwrite : bool
        Begin anew where the output holds something else, instead of refusing.
    """

    def __init__(self, root: Path, sink: Sink, settings: dict[str, Any], *, overwrite: bool = False) -> None:
        self.root, self.sink, self.settings, self._overwrite = root, sink, settings, overwrite
        self._state = root / STATE
        self._receipts: dict[str, Receipt] = {}
        self._failures: dict[str, tuple[Failure, ...]] = {}
        self._lock: IO[str] | None = None
        self._journal: IO[str] | None = None

    def __enter__(self) -> "Ledger":
        try:
            self._open()
        except OutputError:
            self._close()
            raise
        except OSError as error:
            self._close()
            raise OutputError(f"{self.root}: cannot be written: {error.strerror or error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _open(self) -> None:
        self._state.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self._state / "lock", self.root)
        if self._overwrite:
            self._clear()
        self._agree()
        shutil.rmtree(temporary_folder(self.root), ignore_errors=True)
        temporary_folder(self.root).mkdir()
        self._receipts = {receipt.key: receipt for receipt in read_journal(self._state / "journal.jsonl")}
        self._journal = _appending(self._state / "journal.jsonl")
        self.sink.start(self.root)

    def _close(self) -> None:
        if self._journal:
            os.fsync(self._journal.fileno())
            self._journal.close()
            shutil.rmtree(temporary_folder(self.root), ignore_errors=True)
        if self._lock:
            self._lock.close()
        self._journal = self._lock = None

    def _clear(self) -> None:
        """Remove what earlier runs recorded here, and nothing else."""
        for receipt in read_journal(self._state / "journal.jsonl"):
            for written in (w for files in receipt.files.values() for w in files):
                (self.root / written.path).unlink(missing_ok=True)
        for entry in self._state.iterdir():
            if entry.name != "lock":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def _agree(self) -> None:
        """Hold the settings against those the output was made with, and record what is new."""
        path = self._state / "settings.json"
        held = json.loads(path.read_text()) if path.exists() else {}
        if not held:
            self._refuse_strangers()
        if differences := list(_differences(held, _plain(self.settings))):
            raise OutputError(
                f"{self.root} was made otherwise: {'; '.join(differences)}. "
                "Choose another output, or begin anew with --overwrite"
            )
        parameters = held.get("parameters", {}) | self.settings["parameters"]
        merged = json.dumps(self.settings | {"parameters": parameters}, indent=1, sort_keys=True)
        temporary_folder(self.root).mkdir(exist_ok=True)
        write_whole(self.root, f"{STATE}/settings.json", merged.encode(), durable=True)

    def _refuse_strangers(self) -> None:
        names = {folder.split("/")[0] for folder in self.settings["parameters"]}
        taken = sorted(n for n in names for p in (n, f"{n}.npy") if (self.root / p).exists())
        if taken and not self._overwrite:
            raise OutputError(
                f"{self.root} already holds {taken[0]}, which no run of robustgen recorded; "
                "choose another output, or write over it with --overwrite"
            )

    def pending(self, key: str, size: int, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        """The `arms` that the source image `key`, now of `size` bytes, still lacks."""
        receipt = self._receipts.get(key)
        if receipt is None or receipt.size != size:
            return arms
        return tuple(arm for arm in arms if not self._holds(receipt.files.get(arm.folder)))

    def _holds(self, files: list[Written] | None) -> bool:
        return bool(files) and all(self.sink.holds(self.root, written) for written in files or ())

    def record(self, receipt: Receipt) -> None:
        """Take note of a finished source image; failures are remembered for `errors.jsonl`."""
        self._failures[receipt.key] = receipt.failures
        if not receipt.files:
            return
        held = self._receipts.get(receipt.key)
        files = {**(held.files if held and held.size == receipt.size else {}), **receipt.files}
        self._receipts[receipt.key] = Receipt(receipt.key, receipt.size, files)
        assert self._journal is not None
        line = {"key": receipt.key, "size": receipt.size, "files": receipt.files}
        self._journal.write(json.dumps(line) + "\n")
        self._journal.flush()

    def failures(self) -> list[Failure]:
        """All failures of this run, by key."""
        return [failure for key in sorted(self._failures) for failure in self._failures[key]]

    def finish(self, keys: tuple[str, ...], arms: tuple[Arm, ...]) -> None:
        """Complete arrays, and write or remove `errors.jsonl`."""
        lacking = {arm.folder for key in keys for arm in arms if not self._has(key, arm)}
        self.sink.finish(self.root, frozenset(arm.folder for arm in arms) - lacking)
        errors = self.root / "errors.jsonl"
        if failures := self.failures():
            lines = "".join(json.dumps(failure) + "\n" for failure in failures)
            write_whole(self.root, errors.name, lines.encode())
        else:
            errors.unlink(missing_ok=True)

    def _has(self, key: str, arm: Arm) -> bool:
        return key in self._receipts and arm.folder in self._receipts[key].files


def _locked(path: Path, root: Path) -> IO[str]:
    lock = path.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise OutputError(f"{root}: another run is writing here") from error
    return lock


def _appending(path: Path) -> IO[str]:
    """`path`, open for appending whole lines: what a cut-off run left of its last one is dropped."""
    if path.exists():
        with path.open("rb+") as journal:
            journal.truncate(_whole_lines(journal))
    return path.open("a", encoding="utf-8")


def _whole_lines(journal: IO[bytes]) -> int:
    """Where the last whole line of `journal` ends."""
    end = journal.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 65536)
        journal.seek(start)
        found = journal.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def read_journal(path: Path) -> Iterator[Receipt]:
    """The receipts in a journal, those of the same image merged, the later ones winning."""
    merged: dict[str, Receipt] = {}
    if path.exists():
        with path.open(encoding="utf-8") as journal:
            for line in journal:
                if line.endswith("\n"):
                    _merge(merged, json.loads(line))
    return iter(merged.values())


def _merge(merged: dict[str, Receipt], entry: dict[str, Any]) -> None:
    files = {folder: [Written(*written) for written in files] for folder, files in entry["files"].items()}
    held = merged.get(entry["key"])
    if held and held.size == entry["size"]:
        files = {**held.files, **files}
    merged[entry["key"]] = Receipt(entry["key"], entry["size"], files)


def _plain(settings: Any) -> Any:
    return json.loads(json.dumps(settings))


def _differences(held: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """What differs among the keys that both have; keys that one lacks are additions, not differences."""
    for key in held.keys() & wanted.keys():
        name, old, new = f"{prefix}{key}", held[key], wanted[key]
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{name}.")
        elif old != new:
            yield f"{name} is {old!r} there and {new!r} here"
