"""Ledger of an output: its settings, records of finished units, and claims of running ones.

    .robustgen/settings.json        everything that decides the content; written once, by the first run
    .robustgen/records/<unit>.json  record of a finished unit, written after all its files
    .robustgen/claims/<unit>        a hint: who is working on a unit, so that others start elsewhere
    .robustgen/finished             digests of the records behind the files about the whole output

Records are the only state. Runs of the same command on one output `agree` on the settings and `share` the
units without a record, so a run resumes what another one left, on any machine. No byte depends on claims.

The first line of a record is the SHA-256 of the second, which is a JSON object:

    {"images": {"cat/a.JPEG": [110230, "9f86d081884c7d65"]}, "variants": ["fog/3"],
     "files": [["fog/3/cat/a.JPEG", 8123, "5891b5b5...", ""]],
     "failures": [{"key": "dog/b.png", "reason": "truncated"}], "shared": "", "values": {}}
"""

import hashlib
import json
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from itertools import chain
from typing import Any

from robustgen.errors import OutputError
from robustgen.files.set_files import SCHEMA, START_OVER, STATE, AnotherSetError, WrittenFile, read_described
from robustgen.files.storage import Store
from robustgen.files.storage.host import HOST_ID, is_alive

_SECONDS_BETWEEN_LOOKS = 0.5
# Seconds, and multiples of this run's mean time for a unit, for which claims of other machines are respected.
_PATIENCE, _PATIENT_UNITS = 30.0, 8.0
_MOST_LETTERS = 100

Failure = dict[str, str]
"""An entry of `errors.jsonl`: ``key``, ``variant`` if only one variant failed, ``reason``."""
Note = dict[str, Any]
"""An entry of `notes.jsonl`: ``key``, ``variant``, and what was noted about this output."""
Origin = tuple[int, str]
"""Bytes of a source image, and its identity at the time of reading (empty if it could not be read)."""
Differences = Mapping[str, tuple[Any, Any]]
"""Dotted name of each setting that differs, to its value in the output and in this run."""


def index_notes(notes: Iterable[Note]) -> dict[tuple[str, str], Note]:
    """Return the notes by key and variant."""
    return {(note["key"], note["variant"]): note for note in notes}


@dataclass(frozen=True)
class Record:
    """Record of a work unit, or of files that belong to the output as a whole.

    Attributes
    ----------
    images : mapping of str to Origin
        Key to bytes and identity of the source image; empty for files of the whole output.
    variants : sequence of str
        Folders of the variants that were attempted.
    files : sequence of WrittenFile
        Files, with their paths below the output.
    failures : sequence of dict
        Failures of the images that the files lack.
    shared : str
        Part of the content of the files that depends on the whole set; empty if there is none. For files
        about the set, a digest of what they describe.
    values : mapping of str to list
        Lists of JSON values by name: results of units that compute instead of writing files,
        ``losses`` of images in 8 bits and three channels, ``orientations`` of files with an EXIF tag, and
        ``notes`` about outputs.
    """

    images: Mapping[str, Origin] = field(default_factory=dict)
    variants: Sequence[str] = ()
    files: Sequence[WrittenFile] = ()
    failures: Sequence[Failure] = ()
    shared: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def notes(self) -> Sequence[Note]:
        """Return the notes about outputs."""
        noted: Sequence[Note] = self.values.get("notes", ())
        return noted

    def to_bytes(self) -> bytes:
        """Return the bytes of a file; equal records give equal bytes."""
        body = json.dumps(vars(self), separators=(",", ":"))
        return f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}\n".encode()


def parse_record(data: bytes, *, any_version: bool = False) -> Record:
    """Return the record in the bytes of a file; with `any_version`, only its files.

    Raises
    ------
    ValueError, TypeError, KeyError
        The file is damaged, or another version wrote it.
    """
    digest, _, body = data.partition(b"\n")
    if hashlib.sha256(body.removesuffix(b"\n")).hexdigest().encode() != digest:
        raise ValueError("its checksum does not match")
    content: dict[str, Any] = json.loads(body)
    files = [WrittenFile(*file) for file in content["files"]]
    return Record(files=files) if any_version else Record(**content | {"files": files})


class Standing(IntEnum):
    """State of an output, in ascending order."""

    NEW = 0
    """No run has started here."""
    ORPHANED = 1
    """The output was removed, but not the ledger next to it."""
    BEGUN = 2
    """This ledger wrote the settings, and no unit has started."""
    STARTED = 3
    """Some units may be unfinished."""
    COPIED = 4
    """Finished, and copied since: the same records with other times."""
    FINISHED = 5
    """Finished, and unchanged since."""


class Ledger:
    """Ledger of the output `root`. Picklable.

    Parameters
    ----------
    root : Store
    about : str
        Path below `root` of the file with the settings; by default ``settings.json`` in the ledger.
    store : Store, optional
        Location of the ledger, by default the folder ``.robustgen`` in the output.
    schema : int, optional
        Schema number in the file with the settings.

    Attributes
    ----------
    location : str
        Location of the ledger itself.
    """

    def __init__(
        self, root: Store, about: str = "", *, store: Store | None = None, schema: int | None = SCHEMA
    ) -> None:
        self.root, self.store, self._schema = root, store or root.folder(STATE), schema
        self.location = self.store.location
        self._about = (root, about) if about else (self.store, "settings.json")
        self._has_begun = False
        # Workers receive this object, so they claim units in the name of the run.
        self._owner = f"{os.getpid()} {HOST_ID}"

    # --- settings

    @property
    def exists(self) -> bool:
        """Return whether a run has started here."""
        store, path = self._about
        return store.exists(path)

    def settings(self) -> dict[str, Any]:
        """Return the settings of the output; empty if there is no output yet.

        Raises
        ------
        AnotherSetError
            The settings are damaged, or another version wrote them.
        """
        try:
            content = read_described(*self._about, self._schema)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return {key: value for key, value in content.items() if key != "schema"}

    def agree(
        self,
        settings: Mapping[str, Any],
        notes: Mapping[str, Any] | None = None,
        *,
        describe: Callable[[Differences], str] | None = None,
        start_over: Callable[[Differences], object] | None = None,
    ) -> None:
        """Write the settings of this run if there are none yet, or else compare them.

        Parameters
        ----------
        settings : mapping
        notes : mapping, optional
            Further content of the file, which decides nothing.
        describe : callable, optional
            Describes the differences, instead of `describe_differences`.
        start_over : callable, optional
            Removes what was created with other settings, which is then no error, given the differences;
            there are none if the settings cannot be read.

        Raises
        ------
        AnotherSetError
            The output was created with other settings.
        """
        wanted, notes, (store, path) = json.loads(json.dumps(settings)), notes or {}, self._about
        found: Differences = {}
        self._expect("")
        try:
            # A finished output may be read-only.
            held = self.settings() or self._begin(wanted | notes)
            found = find_differences({key: held[key] for key in held.keys() - notes.keys()}, wanted)
            refuse_differences(self.root.location, found, describe)
        except AnotherSetError:
            if not start_over:
                raise
            start_over(found)
            store.delete(path)
            self.agree(settings, notes, describe=describe)
        self._expect(f"{store.location}/{path}")

    def _begin(self, content: dict[str, Any]) -> dict[str, Any]:
        """Write the settings; return them, or those of another run that was faster."""
        described, (store, path) = {"schema": self._schema} if self._schema else {}, self._about
        try:
            store.put(path, to_json(described | content), exclusive=True)
            self._has_begun = True
        except (FileExistsError, NotADirectoryError):
            if not (held := self.settings()):
                raise OutputError(f"{self.location}: is in the way of the state folder; move it") from None
            return held
        return content

    def _expect(self, location: str) -> None:
        for store in (self.root, self.store):
            store.expect(location)

    def refuse_unrecorded(self, paths: Iterable[str], hint: str = "") -> None:
        """Raise an OutputError that names the first of these `paths`, if there are any."""
        if path := next(iter(paths), None):
            raise OutputError(f"{self.root.location}: no run recorded {path}; choose another output{hint}")

    # --- records

    def list_records(self) -> list[str]:
        """Return the names of all records, sorted."""
        return [
            entry.path.removeprefix("records/").removesuffix(".json") for entry in self.store.list("records")
        ]

    def read_records(self, *, any_version: bool = False) -> Iterator[tuple[str, Record | None]]:
        """Yield the name of each record, and the record or None if it is damaged; see `read_record`."""
        names, read = self.list_records(), partial(self.read_record, any_version=any_version)
        return zip(names, self.store.map(read, names), strict=True)

    def read_record(self, name: str, *, any_version: bool = False) -> Record | None:
        """Return a record; None if it is damaged or missing. With `any_version`, return only its files."""
        try:
            return parse_record(self.store.read(f"records/{name}.json"), any_version=any_version)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def has_record(self, name: str) -> bool:
        """Return whether the unit `name` has a record."""
        return self.store.exists(f"records/{name}.json")

    def put_record(self, name: str, record: Record) -> None:
        """Write a record; all its files must exist."""
        self.store.put(f"records/{name}.json", record.to_bytes())
        self._has_begun = False

    def delete_record(self, name: str) -> None:
        """Delete a record."""
        self.store.delete(f"records/{name}.json")

    # --- claims

    def claim(self, name: str) -> bool:
        """Claim the unit `name` for this run; return False if another run that may be alive has it."""
        for _ in range(2):
            try:
                self.store.put(f"claims/{name}", self._owner.encode(), exclusive=True)
                return True
            except FileExistsError:
                if self.is_claimed(name):
                    return False
                self.release(name)
        return False

    def is_claimed(self, name: str) -> bool:
        """Return whether another run that may be alive has claimed the unit `name`."""
        claim = self._read_hint(f"claims/{name}")
        process, _, host = claim.partition(" ")
        return claim != self._owner and process.isdecimal() and (host != HOST_ID or is_alive(int(process)))

    def _read_hint(self, path: str) -> str:
        try:
            return self.store.read(path).decode()
        except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
            return ""

    def has_live_claims(self) -> bool:
        """Return whether another run may be working here."""
        return any(self.store.map(self.is_claimed, self.list_claims()))

    def release(self, name: str) -> None:
        """Release the claim of the unit `name`, whoever has it."""
        self.store.delete(f"claims/{name}")

    def list_claims(self) -> list[str]:
        """Return the names of the units that have been started."""
        return [entry.path.removeprefix("claims/") for entry in self.store.list("claims")]

    def delete_claims(self) -> None:
        """Delete all claims, after the last unit."""
        deque(self.store.map(self.release, self.list_claims()), maxlen=0)

    def share(
        self,
        names: Iterable[str],
        make: Callable[[Sequence[str]], Iterable[str]],
        is_done: Callable[[str], bool] | None = None,
        *,
        at_once: int = 1,
    ) -> Iterator[str]:
        """Process all units, or wait for other runs to do so; yield the name of each finished unit.

        Parameters
        ----------
        names : iterable of str
        make : callable
            Processes units, except for those that another run has claimed; yields the name of each.
        is_done : callable, optional
            Returns whether the unit of that name is finished, by this run or another; by default, whether
            it has a record.
        at_once : int
            Number of units that this run processes at the same time.
        """
        free = [*names]
        # A run that joins others starts at a random unit.
        if free and self.has_live_claims():
            start = random.randrange(len(free))
            free = free[start:] + free[:start]
        left, patience, changed = dict.fromkeys(free), _PATIENCE, time.monotonic()
        while left:
            started, before = time.monotonic(), len(left)
            for name in make(free) if free else ():
                del left[name]
                yield name
            if made := before - len(left):
                mean = (time.monotonic() - started) * at_once / made
                patience = max(patience, _PATIENT_UNITS * mean)
            for name in filter(is_done or self.has_record, [*left]):
                del left[name]
                yield name
            taken = self.store.map(self.is_claimed, left)
            free = [name for name, is_taken in zip(left, taken, strict=True) if not is_taken]
            now = time.monotonic()
            if free or len(left) < before:
                changed = now
            elif now - changed < patience:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
            else:
                # The other runs may have died on other machines.
                changed, free = now, [*left][:at_once]
                for name in free:
                    self.release(name)

    def share_one_by_one(
        self,
        names: Iterable[str],
        make: Callable[[str], None],
        is_done: Callable[[str], bool] | None = None,
        *,
        at_once: int = 1,
    ) -> Iterator[str]:
        """Process units with `make`, one after another, or `at_once` on a server; see `share`."""

        def attempt(name: str) -> str:
            if not self.claim(name):
                return ""
            # The previous owner of the claim may have finished meanwhile.
            if not (is_done or self.has_record)(name):
                make(name)
            return name

        def make_all(names: Sequence[str]) -> Iterator[str]:
            made = map(attempt, names) if at_once == 1 else self.store.map(attempt, names, at_once)
            return filter(None, made)

        return self.share(names, make_all, is_done)

    # --- the end

    def standing(self) -> Standing:
        """Return the state of the output, as this run sees it."""
        if not self.exists:
            return Standing.NEW
        is_beside = not f"{self.location}/".startswith(f"{self.root.location}/")
        if is_beside and next(iter(self.root.list()), None) is None and self.list_records():
            return Standing.ORPHANED
        marks = self._read_hint("finished").split()
        names, times = self.fingerprints() if marks else ("", "")
        if marks:
            if times in marks:
                return Standing.FINISHED
            if names in marks:
                return Standing.COPIED
        is_empty = self._has_begun and not self.list_records() and not self.list_claims()
        return Standing.BEGUN if is_empty else Standing.STARTED

    def fingerprints(self) -> tuple[str, str]:
        """Return digests of all plans and records: of names and sizes, as copies have, and of times too."""
        folders = self.store.map(lambda folder: [*self.store.list(folder)], ("plans", "records"))
        entries = [*chain(*folders)]
        names = "\0".join(f"{entry.path} {entry.size}" for entry in entries)
        times = "\0".join(entry.stamp for entry in entries)
        return digest(names.encode()), digest(f"{names}\0{times}".encode())

    def mark_unfinished(self) -> None:
        """Delete the fingerprints of earlier files about the whole output."""
        self.store.delete("finished")

    def has_mark(self, mark: str) -> bool:
        """Return whether `mark_finished` has written `mark`."""
        return mark in self._read_hint("finished").split()

    def mark_finished(self, marks: Sequence[str]) -> None:
        """Delete all claims, and write `marks`, such as the fingerprints of a finished output."""
        # Claims first: a run that finds `finished` deletes none.
        self.delete_claims()
        self.store.put("finished", " ".join(marks).encode())

    @contextmanager
    def discard_if_unused(self) -> Iterator[None]:
        """Delete the ledger again if the block raises before any unit has started."""
        try:
            yield
        except BaseException:
            if self.standing() is Standing.BEGUN:
                self.clear()
            raise

    def clear(self) -> None:
        """Delete the whole ledger, last the settings, if they are outside it."""
        self.store.delete_all([entry.path for entry in self.store.list()])
        store, path = self._about
        store.delete(path)
        self.store.withdraw()
        if (folder := self.location.removeprefix(f"{self.root.location}/")) != self.location:
            # Deletes the empty folder too, whoever created it.
            self.root.delete(f"{folder}/settings.json")


# --- settings ------------------------------------------------------------------------------------


def find_differences(held: Any, wanted: Any, name: str = "") -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ; one that is missing is like null."""
    if isinstance(held, list) and isinstance(wanted, list) and len(held) == len(wanted):
        held, wanted = dict(enumerate(held)), dict(enumerate(wanted))
    if not (isinstance(held, dict) and isinstance(wanted, dict)):
        return {} if held == wanted else {name: (held, wanted)}
    found: dict[str, tuple[Any, Any]] = {}
    for key in sorted(held.keys() | wanted.keys()):
        found |= find_differences(held.get(key), wanted.get(key), f"{name}.{key}".lstrip("."))
    return found


def describe_differences(found: Differences) -> str:
    """Return what was and what is now, setting by setting."""
    texts = {name: [repr(value)[:_MOST_LETTERS] for value in values] for name, values in found.items()}
    return "; ".join(f"{name} was {old} and is now {new}" for name, (old, new) in texts.items())


def refuse_differences(
    location: str, found: Differences, describe: Callable[[Differences], str] | None = None
) -> None:
    """Raise an AnotherSetError if there are differences from the settings of the output at `location`."""
    if found:
        reason = (describe or describe_differences)(found)
        raise AnotherSetError(f"{location}: created with different settings: {reason}. {START_OVER}")


def to_json(content: Any) -> bytes:
    """Return `content` as the bytes of a small file for people."""
    return json.dumps(content, indent=1, sort_keys=True).encode()


def digest(data: bytes) -> str:
    """Return a short digest."""
    return hashlib.sha256(data).hexdigest()[:16]
