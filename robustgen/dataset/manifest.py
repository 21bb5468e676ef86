"""Manifest and checksums: `SHA256SUMS` in every folder, `errors.jsonl` and `dataset.json`.

All of them are pure functions of the output state.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final

from robustgen.dataset.croissant import CROISSANT, encode_croissant, make_croissant
from robustgen.dataset.names import ERRORS, FRAMES, MANIFEST, SUMS
from robustgen.dataset.records import Failure, FilesRecord, Record
from robustgen.dataset.state import OutputState, find_largest
from robustgen.errors import OutputError
from robustgen.formats import FORMATS
from robustgen.json_files import parse_object
from robustgen.name_lists import escape_name
from robustgen.storage import Store


class Tally:
    """Sum of the records of an output.

    Attributes
    ----------
    attempted : dict
        Key to the folders of the variants that were created or failed.
    made : dict
        Key to the folders of the variants that were created.
    """

    def __init__(self) -> None:
        self.attempted: dict[str, frozenset[str]] = {}
        self.made: dict[str, frozenset[str]] = {}
        self._failures: dict[tuple[str, str], tuple[int, Failure]] = {}
        # Most images have the same variants and share one object.
        self._known: dict[frozenset[str], frozenset[str]] = {}

    def add(self, record: Record) -> None:
        """Add a record."""
        failed = {(failure["key"], failure.get("arm", "")) for failure in record.failures}
        for key, folders in record.list_attempts():
            self._add(self.attempted, key, folders)
            if failed:
                folders = frozenset(f for f in folders if not {(key, f), (key, "")} & failed)
            self._add(self.made, key, folders)
        for failure in record.failures:
            place, size = (failure["key"], failure.get("arm", "")), len(record.images)
            # A later attempt has fewer images; keep its reason.
            if place not in self._failures or size <= self._failures[place][0]:
                self._failures[place] = size, failure

    def _add(self, known: dict[str, frozenset[str]], key: str, folders: frozenset[str]) -> None:
        every = known.get(key, frozenset()) | folders
        known[key] = self._known.setdefault(every, every)

    def list_failures(self) -> list[Failure]:
        """Return the failures that no later attempt has repaired, sorted by key."""
        standing = []
        for (key, folder), (_, failure) in sorted(self._failures.items(), key=lambda pair: pair[0][0]):
            made = self.made.get(key, frozenset())
            # A failure without a folder needs all attempted variants.
            if not (made and (made >= self.attempted[key] or folder in made)):
                standing.append(failure)
        return standing

    def count_complete(self, folders: frozenset[str]) -> int:
        """Return the number of images with the variants in all `folders`."""
        return sum(made >= folders for made in self.made.values())


# --- checksums -----------------------------------------------------------------------------------


def list_sums(store: Store, name: str = SUMS) -> list[str]:
    """Return the sorted paths of all files called `name`, at most two folders deep."""
    found = (entry.path for entry in store.list())
    return sorted(
        (path for path in found if path.rpartition("/")[2] == name and path.count("/") <= 2),
        key=lambda path: path.split("/"),
    )


def dataset_digest(store: Store) -> str:
    """Return one SHA-256 for a whole output, computed from paths and content of its `SHA256SUMS` files."""
    return _combine({path: _sha256(store.read(path)) for path in list_sums(store)})


def frames_digest(store: Store) -> str | None:
    """Return one SHA-256 for all `FRAMES.SHA256` files of an output; None if there are none."""
    digests = {path: _sha256(store.read(path)) for path in list_sums(store, FRAMES)}
    return _combine(digests) if digests else None


def _combine(digests: Mapping[str, str]) -> str:
    paths = sorted(digests, key=lambda path: path.split("/"))
    return _sha256("".join(f"{digests[path]}  {path}\n" for path in paths).encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class _SumsByFolder:
    """Files of each folder with checksums, kept on disk because a whole set has millions."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._texts: dict[str, IO[str]] = {}

    def add(self, record: Record) -> None:
        """Add the files of a record."""
        for folder, (path, size, sha256, frames) in record.files():
            if not path.startswith(f"{folder}/"):
                folder = ""
            if folder not in self._texts:
                text = self._place / str(len(self._texts))
                self._texts[folder] = text.open("w+", encoding="utf-8", errors="surrogatepass", newline="\n")
            # A name may contain a line feed, but never a zero.
            self._texts[folder].write(f"{size} {sha256} {frames} {path}".replace("\n", "\0") + "\n")

    def read(self) -> Iterator[tuple[str, dict[str, tuple[int, str, str]]]]:
        """Yield each folder, and its files: path to size, SHA-256 and digest of frames."""
        for folder, text in self._texts.items():
            text.seek(0)
            files = {}
            for line in text:
                size, sha256, frames, path = line[:-1].split(" ", 3)
                files[path.replace("\0", "\n")] = int(size), sha256, frames
            text.close()
            yield folder, files


def _write_checksums(
    store: Store, folder: str, files: Mapping[str, tuple[int, str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Write the checksum files of a folder; yield the name, path and digest of each."""
    prefix = f"{folder}/" if folder else ""
    lines: dict[str, list[str]] = {SUMS: [], FRAMES: []}
    for path in sorted(files):
        mark, name = escape_name(path.removeprefix(prefix))
        _, sha256, frames = files[path]
        lines[SUMS].append(f"{mark}{sha256}  {name}\n")
        if frames:
            lines[FRAMES].append(f"{mark}{frames}  {name}\n")
    for about, content in lines.items():
        if content:
            data = "".join(content).encode("utf-8", "surrogateescape")
            store.put(f"{prefix}{about}", data)
            yield about, f"{prefix}{about}", _sha256(data)


# --- the manifest --------------------------------------------------------------------------------


class Summary:
    """Content of an output, from one pass over its records; a context manager with temporary files.

    Parameters
    ----------
    state : OutputState
    stale : mapping of str to sequence of str
        Name of each replaced record to its files, which `finish` deletes.

    Attributes
    ----------
    names : set of str
        Names of the records.
    tally : Tally
    """

    def __init__(self, state: OutputState, stale: Mapping[str, Sequence[str]] | None = None) -> None:
        self._state, self._stale = state, stale or {}
        self._fingerprint = state.fingerprint(self._stale)
        self._folder = TemporaryDirectory(prefix="robustgen-")
        # Name of checksum files to path to digest.
        self._digests: dict[str, dict[str, str]] = {SUMS: {}, FRAMES: {}}
        self._sums, self.names, self.tally = _SumsByFolder(Path(self._folder.name)), set[str](), Tally()

    def __enter__(self) -> "Summary":
        for name, record in self._state.read_records():
            if record and name not in self._stale:
                self.names.add(name)
                self.tally.add(record)
                self._sums.add(record)
                for _, file in record.files() if isinstance(record, FilesRecord) else ():
                    if file.path.rpartition("/")[2] in self._digests and file.path.count("/") <= 2:
                        # --mirror also repeats checksum files of the source.
                        self._digests[file.path.rpartition("/")[2]][file.path] = file.sha256
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def finish(self) -> list[Failure]:
        """Write the checksums, `errors.jsonl` and `dataset.json`; return the entries of `errors.jsonl`.

        Raises
        ------
        OutputError
            The output state is damaged.
        """
        state, store, about = self._state, self._state.root, hide_paths(describe(self._state))
        counts = {"files": 0, "bytes": 0}
        replaced = {path for files in self._stale.values() for path in files}
        for folder, files in self._sums.read():
            for name, path, digest in _write_checksums(store, folder, files):
                self._digests[name][path] = digest
            counts["files"] += len(files)
            counts["bytes"] += sum(size for size, *_ in files.values())
            replaced -= files.keys()
        for path in replaced:
            store.delete(path)
        for name in self._stale:
            state.delete_record(name)
        failures = self.tally.list_failures()
        if failures:
            store.put(ERRORS, "".join(json.dumps(failure) + "\n" for failure in failures).encode())
        else:
            store.delete(ERRORS)
        manifest = about | {
            "counts": counts,
            "failures": len(failures),
            "complete": all(size >= 0 for size in store.sizes(about["arrays"]))
            and self.tally.count_complete(frozenset(about["arms"])) >= about["images"],
            "digest": _combine(self._digests[SUMS]),
        }
        if self._digests[FRAMES]:
            manifest["frames_digest"] = _combine(self._digests[FRAMES])
        for name, data in make_cards(manifest).items():
            store.put(name, data)
        store.put(CROISSANT, encode_croissant(make_croissant(manifest, store)))
        store.put(MANIFEST, (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode())
        state.mark_finished(self._fingerprint)
        return failures


def describe(state: OutputState) -> dict[str, Any]:
    """Return the description of the largest executed plan, with the variants of all plans, for the manifest.

    Raises
    ------
    OutputError
        The output state is damaged.
    """
    plans = state.plans()
    if not plans:
        raise OutputError(f"{state.location}: contains no plan; run the same make command again")
    abouts = [plan["about"] for plan in plans]
    parameters: dict[str, Any] = {}
    for plan in plans:
        parameters |= plan["parameters"]
    largest: dict[str, Any] = find_largest(plans)["about"]
    return largest | {
        "arms": sorted({arm for about in abouts for arm in about["arms"]}),
        "arrays": sorted({array for about in abouts for array in about["arrays"]}),
        "settings": state.settings() | {"parameters": parameters},
    }


def hide_paths(content: Any) -> Any:
    """Return JSON `content` with every absolute path cut to its last part, for publishing."""
    if isinstance(content, dict):
        return {key: hide_paths(value) for key, value in content.items()}
    if isinstance(content, list):
        return [hide_paths(value) for value in content]
    if isinstance(content, str) and Path(content).is_absolute():
        return Path(content).name
    return content


_TYPES: Final = {
    **dict.fromkeys(("citation", "dataset", "digest", "kind", "licence"), str),
    **dict.fromkeys(("config", "counts", "settings", "source"), dict),
    **dict.fromkeys(("failures", "images"), int),
    **dict.fromkeys(("arms", "arrays"), list),
    "complete": bool,
}


def read_manifest(store: Store) -> dict[str, Any]:
    """Return the manifest of an output.

    Raises
    ------
    FileNotFoundError
        There is no manifest.
    OutputError
        The manifest is damaged, or was not written by robustgen.
    """
    path = f"{store.location}/{MANIFEST}"
    try:
        manifest = parse_object(store.read(MANIFEST))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: cannot be read ({error})") from error
    wrong = [name for name, kind in _TYPES.items() if not isinstance(manifest.get(name), kind)]
    if not wrong:
        settings = manifest["settings"]
        wrong = [name for name in ("output", "versions") if not isinstance(settings.get(name), dict)]
        lists = {name: manifest[name] for name in ("arms", "arrays")}
        wrong += [name for name, held in lists.items() if not all(isinstance(each, str) for each in held)]
    if wrong:
        raise OutputError(f"{path} is not robustgen's: it has no {wrong[0]!r}")
    return manifest


def make_cards(manifest: Mapping[str, Any]) -> Mapping[str, bytes]:
    """Return the cards that describe the set, if its format has any: path to content."""
    row = FORMATS.get(manifest["settings"].get("output", {}).get("format", ""))
    return row.card(manifest) if row and row.card else {}


def source_digest(sizes: Mapping[str, int]) -> str:
    """Return the SHA-256 of the sorted source keys and the size of each image."""
    digest = hashlib.sha256()
    for key in sorted(sizes):
        digest.update(f"{sizes[key]} {key}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def read_errors(store: Store) -> tuple[list[Failure], list[str]]:
    """Read `errors.jsonl`; return empty lists if it does not exist.

    Returns
    -------
    entries : list of dict
        Entries of the valid lines.
    damage : list of str
        Problems of other lines or of the file, such as ``"line 7 is not a robustgen entry"``.
    """
    try:
        lines = store.read(ERRORS).splitlines()
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"cannot be read: {error.strerror or error}"]
    entries = [_parse_entry(line) for line in lines]
    damage = [f"line {i} is not a robustgen entry" for i, entry in enumerate(entries, 1) if entry is None]
    return [entry for entry in entries if entry is not None], damage


def _parse_entry(line: bytes) -> Failure | None:
    try:
        entry = parse_object(line)
    except ValueError:
        return None
    texts = all(isinstance(text, str) for text in entry.values())
    return entry if texts and entry.keys() >= {"key", "reason"} else None
