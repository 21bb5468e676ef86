"""What an output folder knows of itself: who writes in it, its settings, what is done.

<output>/.robustgen/lock             held while a run writes here; dies with its process
<output>/.robustgen/settings.json    all that decides the bytes
<output>/.robustgen/journal.jsonl    receipts, one journal per shard
<output>/.robustgen/tmp/             files that are not whole yet
<output>/errors.jsonl                source images that failed, and why
"""

import errno
import fcntl
import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from robustgen.benchmark import Arm
from robustgen.errors import OutputError, RobustgenError, WriteError
from robustgen.output.files import (
    COMPANIONS,
    ERRORS,
    FRAMES,
    MANIFEST,
    STATE,
    SUMS,
    Written,
    temporary_folder,
    write_whole,
)
from robustgen.output.journal import Failure, Journal, Receipt, read_journals
from robustgen.output.writers import Sink


@dataclass(frozen=True)
class Shard:
    """Part `number` (from 1) of `count` of the plan with the digest `plan`."""

    number: int
    count: int
    plan: str

    @property
    def lock_name(self) -> str:
        """Its lock file; shards of other plans have other names."""
        return f"shard-{self.number}-of-{self.count}-{self.plan}.lock"


_FINISHING = "finishing"


class Ledger:
    """The state of one output folder, locked while it is open.

    Parameters
    ----------
    root : Path
    sink : Sink
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
        sink: Sink,
        settings: dict[str, Any],
        *,
        shard: Shard | None = None,
        overwrite: bool = False,
    ) -> None:
        self.root, self.sink, self.settings, self.shard = root, sink, settings, shard
        self._overwrite = overwrite
        self._state = root / STATE
        self._done: dict[str, tuple[int, frozenset[str]]] = {}
        self._failures: dict[str, tuple[Failure, ...]] = {}
        # Arrays that `finish` could not complete.
        self.withheld: list[str] = []
        self._locks: list[IO[str]] = []
        self._journal: Journal | None = None
        # A shard can only be sure of that at its end.
        self._exclusive = shard is None

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

    # --- opening and closing

    def _open(self) -> None:
        self._state.mkdir(parents=True, exist_ok=True)
        self._lock()
        if not self.shard:
            shutil.rmtree(temporary_folder(self.root), ignore_errors=True)
        temporary_folder(self.root).mkdir(exist_ok=True)
        # Shards that start together settle one after the other what the output is.
        with _locked(self._state / "agreement.lock", fcntl.LOCK_EX, self.root, wait=True):
            self._agree()
        part = f"-{self.shard.number}-of-{self.shard.count}" if self.shard else ""
        self._journal = Journal(self._state / f"journal{part}.jsonl")
        self.sink.start(self.root)

    def _close(self) -> None:
        if self._journal:
            self._journal.close()
            if self._exclusive:
                (self._state / _FINISHING).unlink(missing_ok=True)
                shutil.rmtree(temporary_folder(self.root), ignore_errors=True)
        for lock in self._locks:
            lock.close()
        self._journal, self._locks = None, []

    def _lock(self) -> None:
        """Keep all others out; as a shard, all but the other shards of the same plan."""
        if not self.shard:
            self._locks.append(_locked(self._state / "lock", fcntl.LOCK_EX, self.root))
            return
        if self._overwrite:
            raise OutputError("--overwrite and --shard exclude each other: shards share one output")
        self._locks.append(_locked(self._state / "lock", fcntl.LOCK_SH, self.root, wait=self._is_finishing()))
        for path in self._state.glob("shard-*.lock"):
            if not path.name.endswith(f"-of-{self.shard.count}-{self.shard.plan}.lock"):
                _locked(path, fcntl.LOCK_EX, self.root).close()
        self._locks.append(_locked(self._state / self.shard.lock_name, fcntl.LOCK_EX, self.root))

    def alone(self) -> bool:
        """Whether no other shard is at work; from then on none can start."""
        if not self.shard:
            return True
        # Let go first: two shards that end together would else wait for each other in vain.
        self._locks.pop(0).close()
        try:
            self._locks.insert(0, _locked(self._state / "lock", fcntl.LOCK_EX, self.root))
        except OutputError:
            return False
        (self._state / _FINISHING).touch()
        self._exclusive = True
        shutil.rmtree(temporary_folder(self.root), ignore_errors=True)
        temporary_folder(self.root).mkdir()
        return True

    def _is_finishing(self) -> bool:
        """Whether a shard holds the lock only for its last steps, so that waiting is worth it."""
        return (self._state / _FINISHING).exists()

    def _clear(self) -> None:
        """Remove what earlier runs recorded here, and nothing else."""
        folders: set[str] = set()
        for receipt in read_journals(self._state):
            folders.update(receipt.files)
            for written in (w for files in receipt.files.values() for w in files):
                (self.root / written.path).unlink(missing_ok=True)
        for name in (MANIFEST, ERRORS, SUMS, *COMPANIONS):
            (self.root / name).unlink(missing_ok=True)
        for folder in folders:
            _remove_emptied(self.root / folder, self.root)
        for entry in self._state.iterdir():
            if entry.suffix != ".lock" and entry.name != "lock":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    # --- settings

    def _agree(self) -> None:
        """Hold the settings against those the output was made with, and record what is new."""
        held = self.held_settings(self.root)
        if not held:
            self._refuse_strangers()
        differences = list(_differences(held, json.loads(json.dumps(self.settings))))
        if differences and self._overwrite:
            self._clear()
            temporary_folder(self.root).mkdir(exist_ok=True)
            held = {}
        elif differences:
            raise OutputError(
                f"{self.root} was made otherwise: {'; '.join(differences)}. "
                "Choose another output, or begin anew with --overwrite"
            )
        parameters = held.get("parameters", {}) | self.settings["parameters"]
        self.settings = self.settings | {"parameters": parameters}
        if self.settings != held:
            merged = json.dumps(self.settings, indent=1, sort_keys=True)
            write_whole(self.root, f"{STATE}/settings.json", merged.encode(), durable=True)

    @staticmethod
    def held_settings(root: Path) -> dict[str, Any]:
        """The settings that the output at `root` was made with; empty where there are none."""
        try:
            held: dict[str, Any] = json.loads((root / STATE / "settings.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise OutputError(f"{root / STATE / 'settings.json'} is damaged: {error}") from error
        return held

    def _refuse_strangers(self) -> None:
        folders = self.settings["parameters"]
        names = {folder.split("/")[0] for folder in folders}
        if "" in folders:
            # Files go to the output itself, under any name.
            names = {entry.name for entry in self.root.iterdir() if entry.name != STATE}
        taken = sorted(path for n in names for path in (n, f"{n}.npy") if (self.root / path).exists())
        if taken and not self._overwrite:
            raise OutputError(
                f"{self.root} already holds {taken[0]}, which no run of robustgen recorded; "
                "choose another output, or write over it with --overwrite"
            )

    # --- receipts

    def load(self, sizes: dict[str, int], arms: Iterable[Arm]) -> None:
        """Find out what is done of the images in `sizes`: key to the bytes the source image has now.

        A file counts as done when its receipt can be relied on and it is there with its full size.
        """
        folders = frozenset(arm.folder for arm in arms)
        known: dict[frozenset[str], frozenset[str]] = {}
        outdated: dict[str, set[str]] = {}
        for receipt in read_journals(self._state):
            paths = {written.path for files in receipt.files.values() for written in files}
            if sizes.get(receipt.key, receipt.size) != receipt.size:
                self._done.pop(receipt.key, None)
                outdated.setdefault(receipt.key, set()).update(paths)
            elif receipt.key in sizes:
                # What was made anew since then lies in the same places.
                outdated.get(receipt.key, set()).difference_update(paths)
                before = self._done.get(receipt.key, (0, frozenset()))[1]
                there = {f for f in folders & receipt.files.keys() if self._holds(receipt.files[f])}
                now = frozenset((before - receipt.files.keys()) | there)
                # Most images have the same set; one object serves them all.
                self._done[receipt.key] = receipt.size, known.setdefault(now, now)
        self._remove_outdated(outdated.values())

    def _remove_outdated(self, outdated: Iterable[set[str]]) -> None:
        """Remove what was made of images that have changed since, as it may not be made again."""
        if not self.shard and "npy" not in str(self.settings["output"].get("format")):
            for path in (path for paths in outdated for path in paths):
                (self.root / path).unlink(missing_ok=True)

    def _holds(self, files: list[Written]) -> bool:
        return all(self.sink.holds(self.root, written) for written in files)

    def pending(self, key: str, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        """The `arms` that the image `key` still lacks."""
        done = self._done.get(key, (0, frozenset()))[1]
        return tuple(arm for arm in arms if arm.folder not in done) if done else arms

    def record(self, receipt: Receipt) -> None:
        """Take note of a finished source image, and of its failures."""
        assert self._journal is not None
        self._failures[receipt.key] = receipt.failures
        if receipt.files or receipt.failures:
            # Where there is a manifest it must be that of all receipts, should this run be killed.
            (self.root / MANIFEST).unlink(missing_ok=True)
            self._journal.append(receipt)
        before = self._done.get(receipt.key, (0, frozenset()))[1]
        self._done[receipt.key] = receipt.size, before.union(receipt.files)

    def failures(self) -> list[Failure]:
        """All failures of this run, by key."""
        return [failure for key in sorted(self._failures) for failure in self._failures[key]]

    def finish(self, keys: Collection[str], arms: tuple[Arm, ...], known: Collection[str]) -> bool:
        """Sync, complete the arrays and write `errors.jsonl`; False where other shards are still at work.

        What earlier runs recorded of the `known` images of the source that are not among `keys` stays.
        """
        assert self._journal is not None
        self._journal.sync()
        if not self.alone():
            return False
        if self.shard:
            self._read_other_shards()
        lacking = {arm.folder for key in keys for arm in self.pending(key, arms)}
        self.withheld = self.sink.finish(self.root, frozenset(arm.folder for arm in arms) - lacking)
        self._write_errors(set(known) - set(keys))
        return True

    def _read_other_shards(self) -> None:
        for receipt in read_journals(self._state):
            size, before = self._done.get(receipt.key, (receipt.size, frozenset()))
            # What was made of an image before it changed does not count.
            done = (before if size == receipt.size else frozenset()).union(receipt.files)
            self._done[receipt.key] = receipt.size, done
            self._failures[receipt.key] = receipt.failures

    def _write_errors(self, untouched: Collection[str]) -> None:
        others = [f for f in _read_errors(self.root / ERRORS) if f["key"] in untouched]
        write_errors(self.root, [*(f for f in others if f["key"] not in self._failures), *self.failures()])


def write_errors(root: Path, failures: list[Failure]) -> None:
    """Write the `errors.jsonl` of the output at `root`, or remove it where there are no `failures`."""
    lines = [json.dumps(failure) + "\n" for failure in sorted(failures, key=lambda failure: failure["key"])]
    if lines:
        write_whole(root, ERRORS, "".join(lines).encode("utf-8", "surrogateescape"))
    else:
        (root / ERRORS).unlink(missing_ok=True)


def _read_errors(path: Path) -> list[Failure]:
    """The entries of an `errors.jsonl`, if there is one."""
    try:
        entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return []
    return [entry for entry in entries if isinstance(entry, dict) and "key" in entry]


def _remove_emptied(folder: Path, root: Path) -> None:
    """Remove the papers of an arm's `folder`, and the folders in and above it that hold nothing any more."""
    for paper in (SUMS, FRAMES):
        (folder / paper).unlink(missing_ok=True)
    below = sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True)
    for path in [*below, folder, *folder.parents]:
        if path == root:
            break
        # Whatever else the user keeps there stays.
        with suppress(OSError):
            path.rmdir()


@contextmanager
def exclusive(root: Path) -> Iterator[None]:
    """Keep every run out of the output at `root`; temporary files can be made there meanwhile.

    Raises
    ------
    OutputError
        A run is writing there.
    """
    with _locked(root / STATE / "lock", fcntl.LOCK_EX, root):
        # What a killed run left there is of no use.
        shutil.rmtree(temporary_folder(root), ignore_errors=True)
        temporary_folder(root).mkdir()
        try:
            yield
        finally:
            shutil.rmtree(temporary_folder(root), ignore_errors=True)


@contextmanager
def claimed(output: Path, source: Path, check: Callable[[Path], None]) -> Iterator[None]:
    """As `exclusive`, of a folder that may not be there yet; what the disk refuses becomes a WriteError.

    `check` is called with `output` before anything is made, to refuse what is not of an earlier run.

    Raises
    ------
    OutputError
        `output` cannot be written, lies inside `source`, or is held by another run.
    """
    if output.resolve().is_relative_to(source.resolve()):
        raise OutputError(f"{output}: lies inside the source {source}")
    if output.exists() and not output.is_dir():
        raise OutputError(f"{output}: is a file")
    try:
        check(output)
        (output / STATE).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if isinstance(error, RobustgenError):
            raise
        raise OutputError(f"{output}: cannot be written: {error.strerror}") from error
    try:
        with exclusive(output):
            yield
    except OSError as error:
        if isinstance(error, RobustgenError):
            raise
        raise WriteError(f"{output}: {error.strerror or error}") from error


def _locked(path: Path, how: int, root: Path, *, wait: bool = False) -> IO[str]:
    lock = path.open("a")
    try:
        fcntl.flock(lock, how if wait else how | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        raise OutputError(f"{root}: another run is writing here") from error
    return lock


def _differences(held: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """What differs among the keys that both have; keys that one lacks are additions, not differences."""
    for key in sorted(held.keys() & wanted.keys()):
        name, old, new = f"{prefix}{key}", held[key], wanted[key]
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{name}.")
        elif old != new:
            yield f"{name} is {old!r} there and {new!r} here"
