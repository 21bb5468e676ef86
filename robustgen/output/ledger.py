"""The ledger of a run: what is done already, what is recorded of what it makes, which other runs share it."""

import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Any

from robustgen.benchmark import Arm
from robustgen.errors import OutputError
from robustgen.output.failures import Failures
from robustgen.output.files import (
    ERRORS,
    FRAMES,
    MANIFEST,
    STATE,
    SUMS,
    check_real,
    remove_file,
    remove_folder,
)
from robustgen.output.journal import Entry, Journal, enter_receipts
from robustgen.output.manifest import Tally
from robustgen.output.records import Failure, Receipt, Written
from robustgen.output.state import ANEW, State
from robustgen.output.writers.base import Listing, Writer


@dataclass(frozen=True)
class Shard:
    """Part `number` (from 1) of `count` of the plan with the digest `plan`."""

    number: int
    count: int
    plan: str

    @property
    def name(self) -> str:
        """The name of its journal."""
        return f"{self.number}-of-{self.count}"


class Ledger:
    """The state of one output folder, locked while it is open.

    Parameters
    ----------
    root : Path
    writer : Writer
    settings : dict
        What decides the bytes of this run; its ``"parameters"`` are per arm.
    shard : Shard, optional
        The part of the plan that this run does; other parts may run at the same time.
    overwrite : bool
        Begin anew where the output holds something else, instead of refusing.
    """

    def __init__(
        self,
        root: Path,
        writer: Writer,
        settings: dict[str, Any],
        *,
        shard: Shard | None = None,
        overwrite: bool = False,
    ) -> None:
        self.root, self.writer, self.settings, self.shard = root, writer, settings, shard
        self._overwrite, self._wanted = overwrite, settings
        # Every folder in an output that images lie in directly is a class.
        self._beside = "" in settings["parameters"]
        self._state = State(root, beside=self._beside)
        self._done: dict[str, tuple[int, frozenset[str]]] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        # Those of this run, and those of all runs that still stand.
        self._failures: dict[str, tuple[Failure, ...]] = {}
        self._standing = Failures()
        # Files that `finish` could not complete.
        self.withheld: list[str] = []
        # What all journals add up to, once `finish` has had to read them.
        self.tally: Tally | None = None
        self._locks: list[IO[bytes]] = []
        self._journal: Journal | None = None
        # A shard can only be sure of that at its end.
        self._exclusive = shard is None
        # The folders that there were not before this run.
        self._new: list[Path] = []
        self._recorded = False

    def __enter__(self) -> "Ledger":
        places = dict.fromkeys((self._state.folder, self.root, *self.root.parents))
        self._new = [path for path in places if not path.exists()]
        try:
            self._open()
        except OutputError:
            self._remove_new()
            self._close()
            raise
        except OSError as error:
            self._remove_new()
            self._close()
            raise OutputError(f"{self.root}: cannot be written: {error.strerror or error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind and not self._recorded:
            self._remove_new()
        self._close()

    # --- opening and closing

    def _open(self) -> None:
        self._state.establish()
        self._check_folders()
        self._lock()
        if not self.shard:
            self._state.remove_temporary()
        self._state.make_temporary()
        # Shards that start together settle one after the other what the output is.
        with self._state.lock_agreement():
            self._agree()
            if self._beside and not self.shard:
                self._state.move_beside()
            self._journal = self._state.journal(self.shard.name if self.shard else "")
        self.writer.start(self.root)

    def _check_folders(self) -> None:
        """Refuse links in the place of the arms' folders, which would lead what is written elsewhere."""
        for folder in self.settings["parameters"]:
            check_real(self.root, f"{folder}/" if folder else "")

    def _close(self) -> None:
        if self._journal:
            self._journal.close()
            if self._exclusive:
                self._state.mark_finishing(False)
                self._state.remove_temporary()
        for lock in self._locks:
            lock.close()
        self._journal, self._locks = None, []

    def _remove_new(self) -> None:
        """Leave nothing behind of a run that failed before its first image; called while it is locked."""
        if self._state.folder not in self._new or (self.shard and self._locks):
            return
        with suppress(OSError):
            if not self._locks:
                # What is in it is of the run that began at the same time and has the lock.
                for folder in self._new:
                    folder.rmdir()
                return
            # Workers may have written files whose receipts never came.
            if not self._state.has_settings or {path.name for path in self.root.iterdir()} <= {STATE}:
                self._state.remove()
                for folder in self._new[1:]:
                    folder.rmdir()

    def _lock(self) -> None:
        """Keep all others out; as a shard, all but the other shards of the same plan."""
        if not self.shard:
            self._locks.append(self._state.lock())
            return
        if self._overwrite:
            raise OutputError("--overwrite and --shard exclude each other: shards share one output")
        self._locks.append(self._state.lock(shared=True, wait=self._state.is_finishing))
        self._locks.append(self._state.lock_shard(self.shard.number, self.shard.count, self.shard.plan))

    def alone(self) -> bool:
        """Whether no other shard is at work; from then on none can start."""
        if not self.shard:
            return True
        # Let go first: two shards that end together would else wait for each other in vain.
        self._locks.pop(0).close()
        try:
            self._locks.insert(0, self._state.lock())
        except OutputError:
            return False
        self._state.mark_finishing(True)
        self._exclusive = True
        self._state.clear_temporary()
        return True

    def _clear(self) -> None:
        """Remove what earlier runs recorded here, and nothing else."""
        folders: set[str] = set()
        for receipt in self._state.receipts():
            folders.update(receipt.files)
            for written in (each for files in receipt.files.values() for each in files):
                remove_file(self.root, written.path)
        for name in self._state.assembled_names():
            record = self._state.assembled(name)
            # One that cannot be read tells at least the name of an array.
            for path in [file.path for file in record.files] if record else [name]:
                remove_file(self.root, path)
        for name in (MANIFEST, ERRORS, SUMS, FRAMES):
            remove_file(self.root, name)
        for folder in folders:
            _remove_emptied(self.root, folder)
        self._state.remove_all()

    # --- settings

    def _agree(self) -> None:
        """Hold the settings against those the output was made with, and record what is new."""
        held, damage = self._read_settings()
        if not held and not damage:
            self._refuse_unrecorded()
        differences = damage or list(_differences(held, json.loads(json.dumps(self.settings))))
        if self._is_gone(differences) or (differences and self._overwrite):
            self._clear()
            held = {}
        elif differences:
            raise OutputError(f"{self.root} was made otherwise: {'; '.join(differences)}. {ANEW}")
        parameters = held.get("parameters", {}) | self.settings["parameters"]
        self.settings = self.settings | {"parameters": parameters}
        if self.settings != held:
            self._state.write_settings(self.settings)

    def _is_gone(self, differences: list[str]) -> bool:
        """Whether all that is left of an earlier output is the record beside it."""
        if not self._state.is_beside or any(self.root.iterdir()):
            return False
        # What another shard has just recorded differs in nothing.
        return not self.shard or bool(differences)

    def _read_settings(self) -> tuple[dict[str, Any], list[str]]:
        """The settings that the output was made with, and what is wrong with them."""
        try:
            held = self._state.settings()
        except OutputError as error:
            if self._overwrite:
                return {}, [str(error)]
            raise
        if held or not self._state.has_journals:
            return held, []
        lost = f"{self._state.folder / 'settings.json'} is lost, and so what the files there are"
        if self._overwrite:
            return {}, [lost]
        raise OutputError(f"{lost}. {ANEW}")

    def _refuse_unrecorded(self) -> None:
        """Refuse to write where there are files that no run recorded."""
        folders = self.settings["parameters"]
        names = {folder.split("/")[0] for folder in folders}
        if "" in folders:
            # Files go to the output itself, under any name.
            names = {entry.name for entry in self.root.iterdir() if entry.name != STATE}
        taken = sorted(path for n in names for path in (n, f"{n}.npy") if (self.root / path).exists())
        if taken and not self._overwrite:
            raise OutputError(
                f"{self.root} already holds {taken[0]}, which no run of robustgen recorded"
                f"{self._explain_moved()}; choose another output, or write over it with --overwrite"
            )

    def _explain_moved(self) -> str:
        moved = self._beside and (self.root / MANIFEST).exists()
        return (
            f" (a set that was moved goes on where {self._state.folder.name} lies beside it)" if moved else ""
        )

    # --- receipts

    def load(self, sizes: dict[str, int], arms: Iterable[Arm], known: Collection[str]) -> None:
        """Find out what is done of the images in `sizes`: key to the bytes the source image has now.

        A file counts as done when its receipt can be relied on and it is there with its full size.

        Raises
        ------
        OutputError
            There are files of an image that is not among the `known` ones of the source: it was another one.
        """
        journals = self._state.journals()
        folders = frozenset(arm.folder for arm in arms)
        holds = partial(self.writer.holds, self.root)
        outdated: dict[str, dict[str, Written]] = {}
        for receipt in journals.receipts():
            if receipt.files and receipt.key not in known:
                self._refuse_source(receipt.key, known)
                self._done.clear()
                self._standing = Failures()
                return
            self._standing.take_note(receipt)
            if sizes.get(receipt.key, receipt.size) != receipt.size:
                self._done.pop(receipt.key, None)
                outdated.setdefault(receipt.key, {}).update(_map_by_path(receipt))
            elif receipt.key in sizes:
                if receipt.key in outdated:
                    # What was made anew since then lies in the same places.
                    for path in _map_by_path(receipt):
                        outdated[receipt.key].pop(path, None)
                before = self._done.get(receipt.key, (0, frozenset()))[1]
                there = {f for f in folders & receipt.files.keys() if all(map(holds, receipt.files[f]))}
                now = frozenset((before - receipt.files.keys()) | there)
                self._done[receipt.key] = receipt.size, self._share(now)
        if journals.damaged and not self.shard:
            self._mend_journals()
        # It may not be made again; but where there are shards, another one may be just making it.
        for written in (written for each in outdated.values() for written in each.values()):
            if not self.shard:
                self.writer.remove(self.root, written)

    def _mend_journals(self) -> None:
        """Drop the damaged lines, of which the images will be made again."""
        assert self._journal is not None
        self._journal.close()
        self._state.mend_journals()
        self._journal = self._state.journal()

    def _refuse_source(self, unknown: str, known: Collection[str]) -> None:
        if not self._overwrite:
            raise OutputError(
                f"{self.root} was made from another source: it holds {unknown!r}, where this one has "
                f"{min(known, default='nothing')!r}. {ANEW}"
            )
        assert self._journal is not None
        self._journal.close()
        self._clear()
        self.settings = self._wanted
        self._state.write_settings(self.settings)
        self._journal = self._state.journal()
        self.writer.start(self.root)

    def pending(self, key: str, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        """The `arms` that the image `key` still lacks."""
        done = self._done.get(key, (0, frozenset()))[1]
        return tuple(arm for arm in arms if arm.folder not in done) if done else arms

    def record(self, entries: Collection[Entry]) -> None:
        """Take note of finished source images, and of their failures."""
        assert self._journal is not None
        if not entries:
            return
        # Where there is a manifest it must be that of all receipts, should this run be killed.
        (self.root / MANIFEST).unlink(missing_ok=True)
        self._journal.append(entries)
        for entry in entries:
            self._failures[entry.key] = entry.failures
            self._standing.take_note(entry)
            self._recorded = self._recorded or bool(entry.folders)
            before = self._done.get(entry.key, (0, frozenset()))[1]
            self._done[entry.key] = entry.size, self._share(before.union(entry.folders))

    def _share(self, folders: frozenset[str]) -> frozenset[str]:
        """An equal set; most images have the same, and one object serves them all."""
        return self._sets.setdefault(folders, folders)

    def failures(self) -> list[Failure]:
        """All failures of this run, by key; at the end of the last shard, those of all shards."""
        return [failure for key in sorted(self._failures) for failure in self._failures[key]]

    def finish(self, listing: Listing, arms: tuple[Arm, ...], known: Collection[str]) -> bool:
        """Sync and let the writer finish; False where other shards are still at work.

        Failures of what is not among the `known` images of the source any more are forgotten.
        """
        assert self._journal is not None
        self._journal.sync()
        if not self.alone():
            return False
        if self.shard:
            self._learn_of_other_shards()
        folders = frozenset(arm.folder for arm in arms)
        lacking = [(key, arm.folder) for key in listing.keys for arm in self.pending(key, arms)]
        complete = folders - {folder for _, folder in lacking}
        settled = folders - {folder for key, folder in lacking if not self._has_failed(key, folder)}
        self.withheld = self.writer.finish(self.root, complete, settled, listing)
        self._forget_failures(known)
        if self.shard:
            self._failures = {**self._standing.by_key}
        return True

    def _has_failed(self, key: str, folder: str) -> bool:
        """Whether it was tried to make the arm in `folder` of the image `key`, in vain."""
        return any(failure.get("arm", folder) == folder for failure in self._standing.by_key.get(key, ()))

    def _learn_of_other_shards(self) -> None:
        self.tally = Tally(self.root)
        self._done |= self.tally.done
        self._standing = self.tally.failures

    def _forget_failures(self, known: Collection[str]) -> None:
        """Record that what failed in earlier runs, and is gone from the source since, fails no more."""
        gone = self._standing.by_key.keys() - known - self._failures.keys()
        self.record(enter_receipts(Receipt(key, 0) for key in sorted(gone)))


def _map_by_path(receipt: Receipt) -> dict[str, Written]:
    return {written.path: written for files in receipt.files.values() for written in files}


def _remove_emptied(root: Path, folder: str) -> None:
    """Remove the checksums of an arm's `folder`, and the folders in and above it that are empty then."""
    for name in (SUMS, FRAMES):
        remove_file(root, f"{folder}/{name}" if folder else name)
    below = sorted(
        (Path(place).relative_to(root).as_posix() for place, _, _ in os.walk(root / folder)), reverse=True
    )
    for path in [*below, *(parent.as_posix() for parent in PurePosixPath(folder).parents)]:
        if path != ".":
            remove_folder(root, path)


def _differences(held: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """What differs among the keys that both have; keys that one lacks are additions, not differences."""
    for key in sorted(held.keys() & wanted.keys()):
        name, old, new = f"{prefix}{key}", held[key], wanted[key]
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{name}.")
        elif old != new:
            yield f"{name} is {old!r} there and {new!r} here"
