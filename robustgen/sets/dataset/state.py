"""Output state: the settings of an output, and the records of its work units.

    .robustgen/settings.json        all that decides the bytes; written once, by the first run
    .robustgen/plans/<number>-<digest>.json  the content of dataset.json for each plan executed here
    .robustgen/records/<unit>.json  records, see `robustgen.sets.dataset.records`
    .robustgen/claims/<unit>        a hint: who is working on a unit, so that others start elsewhere
    .robustgen/finished             digests of the plans and records behind the checksums and dataset.json,
                                    and of the times of the files that describe the set
    .robustgen/source-index         listing of the source's archives, see `robustgen.sets.sources`

If the folders at the root of an output are classes, a state folder would count as a class too. The state of
the output ``icons`` is then the folder ``.icons.robustgen`` next to it.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from robustgen.errors import OutputError
from robustgen.files.set_files import SCHEMA, START_OVER, STATE, AnotherSetError, read_described
from robustgen.files.storage import Store, open_store
from robustgen.files.storage.host import HOST_ID, is_alive
from robustgen.sets.dataset.records import Record, from_bytes, to_bytes

_READERS = 32


class OutputState:
    """State of the output `root`. Picklable.

    Parameters
    ----------
    root : Store
    beside : bool
        Whether to create a new state next to the output rather than in it.

    Attributes
    ----------
    location : str
        Location of the state itself.
    is_ours : bool
        Whether this object wrote the settings.
    """

    is_ours = False

    def __init__(self, root: Store, *, beside: bool = False) -> None:
        self.root = root
        # Workers receive this object, so they claim units in the name of the run.
        self._owner = f"{os.getpid()} {HOST_ID}"
        inside, sibling = root.folder(STATE), _open_beside(root)
        found = next((each for each in (inside, sibling) if each.exists("settings.json")), None)
        self.store = found or (sibling if beside else inside)
        self.location = self.store.location

    @property
    def index_place(self) -> tuple[Store, str]:
        """Return where to cache the listing of the source for workers and later runs."""
        return self.store, "source-index"

    # --- settings and plans

    @property
    def exists(self) -> bool:
        """Return whether a run has started here."""
        return self.store.exists("settings.json")

    def settings(self) -> dict[str, Any]:
        """Return the settings of the output; empty if there is no output yet.

        Raises
        ------
        AnotherSetError
            The settings are damaged, or another version wrote them.
        """
        try:
            content = read_described(self.store, "settings.json")
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return {key: value for key, value in content.items() if key != "schema"}

    def _read_text(self, path: str) -> str:
        """Return the text of a hint; empty if there is none."""
        try:
            return self.store.read(path).decode()
        except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
            return ""

    def agree(self, settings: Mapping[str, Any]) -> None:
        """Write the settings of this run if there are none yet, or else compare them.

        Raises
        ------
        OutputError
            The output was created with other settings.
        """
        wanted = json.loads(json.dumps(settings))
        self._expect("")
        # A finished set may be read-only.
        if not (held := self.settings()):
            try:
                self.store.put("settings.json", _to_bytes({"schema": SCHEMA} | wanted), exclusive=True)
                self.is_ours = True
            except (FileExistsError, NotADirectoryError):
                if not (held := self.settings()):
                    raise OutputError(
                        f"{self.location}: is in the way of robustgen's state folder; move it, "
                        "or choose another output"
                    ) from None
        self._compare(held, wanted)
        self._expect(f"{self.location}/settings.json")

    def _expect(self, location: str) -> None:
        for store in (self.root, self.store):
            store.expect(location)

    def add_plan(self, manifest: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        """Write the plan of this run, unless it is part of another.

        Raises
        ------
        OutputError
            The output was created with other parameters.
        """
        plan = json.loads(json.dumps({"manifest": manifest, "parameters": parameters}))
        held = self.plans()
        self._compare_parameters(held, plan)
        # The latest plan tells how many images the source has now.
        is_other = not held or held[-1]["manifest"]["source"]["images"] != manifest["source"]["images"]
        if not is_other and any(_is_part(manifest, each["manifest"]) for each in held):
            return
        data = _to_bytes(plan)
        path = f"plans/{len(held):04d}-{_digest(data)}.json"
        self.store.put(path, data)
        try:
            # If two runs start at once, at least one sees the plan of the other.
            self._compare_parameters(self.plans(), plan)
        except OutputError:
            self.store.delete(path)
            raise

    def _compare_parameters(self, held: Sequence[dict[str, Any]], plan: Mapping[str, Any]) -> None:
        for each in held:
            self._compare(each["parameters"], plan["parameters"], "parameters.")

    def _compare(self, held: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> None:
        if differences := [*_differences(held, wanted, prefix)]:
            raise AnotherSetError(
                f"{self.root.location}: created with different settings: {'; '.join(differences)}. "
                f"{START_OVER}"
            )

    def plans(self) -> list[dict[str, Any]]:
        """Return the plans started here, the latest last, each with ``"manifest"`` and ``"parameters"``.

        A damaged plan does not count; the same command writes it again.

        Raises
        ------
        AnotherSetError
            The settings are damaged, or another version wrote the state.
        """
        self.settings()
        contents = [(entry.path, self.store.read(entry.path)) for entry in self.store.list("plans")]
        return [json.loads(data) for path, data in contents if path.endswith(f"-{_digest(data)}.json")]

    # --- records

    def list_records(self) -> list[str]:
        """Return the names of all records, sorted."""
        return [
            entry.path.removeprefix("records/").removesuffix(".json") for entry in self.store.list("records")
        ]

    def read_records(self, *, any_version: bool = False) -> Iterator[tuple[str, Record | None]]:
        """Yield the name of each record, and the record or None if it is damaged; see `read_record`."""
        names, read = self.list_records(), partial(self.read_record, any_version=any_version)
        if self.store.is_local:
            yield from zip(names, map(read, names), strict=True)
            return
        with ThreadPoolExecutor(_READERS) as pool:
            for start in range(0, len(names), 8 * _READERS):
                some = names[start : start + 8 * _READERS]
                yield from zip(some, pool.map(read, some), strict=True)

    def read_record(self, name: str, *, any_version: bool = False) -> Record | None:
        """Return a record; None if it is damaged or missing. With `any_version`, return only its files."""
        try:
            return from_bytes(self.store.read(f"records/{name}.json"), any_version=any_version)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def has_record(self, name: str) -> bool:
        """Return whether the unit `name` has a record."""
        return self.store.exists(f"records/{name}.json")

    def put_record(self, name: str, record: Record) -> None:
        """Write a record; all its files must exist."""
        self.store.put(f"records/{name}.json", to_bytes(record))

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
        claim = self._read_text(f"claims/{name}")
        process, _, host = claim.partition(" ")
        return claim != self._owner and process.isdecimal() and (host != HOST_ID or is_alive(int(process)))

    def has_live_claims(self) -> bool:
        """Return whether another run may be working here."""
        return any(map(self.is_claimed, self.list_claims()))

    def release(self, name: str) -> None:
        """Release the claim of the unit `name`, whoever has it."""
        self.store.delete(f"claims/{name}")

    def list_claims(self) -> list[str]:
        """Return the names of the units that have been started."""
        return [entry.path.removeprefix("claims/") for entry in self.store.list("claims")]

    # --- the end

    def fingerprints(self) -> tuple[str, str]:
        """Return digests of all plans and records: of names and sizes, as copies have, and of times too."""
        entries = [entry for folder in ("plans", "records") for entry in self.store.list(folder)]
        names = "\0".join(f"{entry.path} {entry.size}" for entry in entries)
        times = "\0".join(entry.stamp for entry in entries)
        return _digest(names.encode()), _digest(f"{names}\0{times}".encode())

    def is_finished(self, *, exactly: bool = False) -> bool:
        """Return whether the manifest was written for these plans and records; `exactly`: not for a copy."""
        return self.has_mark(self.fingerprints()[exactly])

    def has_mark(self, mark: str) -> bool:
        """Return whether `mark_finished` has written `mark`."""
        return mark in self._read_text("finished").split()

    def mark_unfinished(self) -> None:
        """Delete the fingerprints of an earlier manifest."""
        self.store.delete("finished")

    def mark_finished(self, marks: Sequence[str]) -> None:
        """Delete all claims, and write the fingerprints and other marks of the finished set."""
        # Claims first: a run that finds `finished` deletes none.
        self.delete_claims()
        self.store.put("finished", " ".join(marks).encode())

    def delete_claims(self) -> None:
        """Delete all claims, after the last unit."""
        for name in self.list_claims():
            self.release(name)

    def clear(self) -> None:
        """Delete the whole state."""
        for entry in [*self.store.list()]:
            self.store.delete(entry.path)


def find_largest(plans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the plan with the most images and variants; the last one of several.

    It describes the set, because other plans are parts of it, unless the source has lost images since.
    """
    there = plans[-1]["manifest"]["source"]["images"] if plans else 0
    held = [plan for plan in plans if plan["manifest"]["images"] <= there]
    return max(
        reversed(held or plans),
        key=lambda plan: (plan["manifest"]["images"], len(plan["manifest"]["variants"])),
    )


def _is_part(manifest: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether the plan of `manifest` has no images and variants that the `other` one lacks."""
    ours, theirs = manifest["source"], other["source"]
    # The digest covers only the images of a plan, so a part has another digest.
    is_smaller = manifest["images"] < other["images"] and ours["images"] == theirs["images"]
    has_same = manifest["images"] == other["images"] and ours == theirs
    return (is_smaller or has_same) and {*manifest["variants"]} <= {*other["variants"]}


def _open_beside(root: Store) -> Store:
    parent, _, name = root.location.rpartition("/")
    place = f"{parent}/.{name}{STATE}"
    store = open_store(place)
    if store.is_local and store.location != place:
        raise OutputError(f"{place}: is a link; the state of an output needs a real folder")
    return store


def _to_bytes(content: Any) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _differences(held: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the differences among the keys that both mappings have; a key in only one is an addition."""
    for key in sorted(held.keys() & wanted.keys()):
        name, old, new = f"{prefix}{key}", held[key], wanted[key]
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{name}.")
        elif old != new:
            yield f"{name} was {old!r} and is now {new!r}"
