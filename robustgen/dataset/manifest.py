"""Manifest and checksums: `SHA256SUMS` in every folder, `errors.jsonl` and `dataset.json`.

All of them are pure functions of the output state.
"""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from robustgen.dataset.croissant import CROISSANT, encode_croissant, make_croissant
from robustgen.dataset.names import ERRORS, FRAMES, MANIFEST, SUMS
from robustgen.dataset.records import Coverage, Failure, find_folder
from robustgen.dataset.state import SCHEMA, OutputState, find_largest, read_described
from robustgen.errors import OutputError, WriteError
from robustgen.files.json_files import parse_object
from robustgen.files.name_lists import escape_name
from robustgen.files.storage import Store
from robustgen.formats import FORMATS

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


# --- the manifest --------------------------------------------------------------------------------


class Summary:
    """Content of the records of an output, from one pass over them.

    Attributes
    ----------
    attempted : Coverage
    failures : list of dict
        Sorted by key.
    damaged : list of str
        Names of the damaged records.
    """

    def __init__(self, state: OutputState, files: sqlite3.Connection | None = None) -> None:
        self.attempted, self.damaged = Coverage(), list[str]()
        failures: dict[tuple[str, str], Failure] = {}
        for name, record in state.read_records():
            if record is None:
                self.damaged.append(name)
                continue
            self.attempted.add(record.images, record.variants)
            failures |= {(each["key"], each.get("variant", "")): each for each in record.failures}
            if files:
                folders = {*record.variants}
                # Bytes sort like their texts; names may contain bytes that are not UTF-8.
                rows = (
                    (find_folder(path, folders), path.encode("utf-8", "surrogatepass"), *described)
                    for path, *described in record.files
                )
                files.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?)", rows)
        self.failures = sorted(failures.values(), key=lambda failure: failure["key"])

    def count(self, folders: Collection[str], without: Collection[str] = ()) -> int:
        """Return the number of images with all variants in `folders` attempted, `without` some images."""
        wanted = frozenset(folders)
        return sum(made >= wanted for key, made in self.attempted.items() if key not in without)


def _write_checksums(store: Store, files: sqlite3.Connection) -> tuple[dict[str, dict[str, str]], int, int]:
    """Write the checksum files of all folders.

    Returns
    -------
    digests : dict of str to dict
        Name of the checksum files to path to digest.
    count, size : int
        Number and bytes of the listed files.
    """
    digests: dict[str, dict[str, str]] = {SUMS: {}, FRAMES: {}}
    count = size = 0
    rows = files.execute("SELECT * FROM files GROUP BY folder, path ORDER BY folder, path")
    for folder, own in groupby(rows, key=itemgetter(0)):
        prefix = f"{folder}/" if folder else ""
        lines = {SUMS: bytearray(), FRAMES: bytearray()}
        for _, encoded, length, *sums in own:
            path = encoded.decode("utf-8", "surrogatepass")
            mark, name = escape_name(path.removeprefix(prefix))
            for text, digest in zip(lines.values(), sums, strict=True):
                if digest:
                    text += f"{mark}{digest}  {name}\n".encode("utf-8", "surrogateescape")
            if path.rpartition("/")[2] in digests and path.count("/") <= 2:
                # `mirror` also repeats checksum files of the source.
                digests[path.rpartition("/")[2]][path] = sums[0]
            count, size = count + 1, size + length
        for name, content in lines.items():
            if content:
                data = bytes(content)
                store.put(f"{prefix}{name}", data)
                digests[name][f"{prefix}{name}"] = _sha256(data)
    return digests, count, size


def finish(state: OutputState) -> list[Failure]:
    """Write the checksums, `errors.jsonl` and `dataset.json`; return the entries of `errors.jsonl`.

    Raises
    ------
    OutputError
        The output state is damaged.
    """
    store, fingerprint, manifest = state.root, state.fingerprint(), hide_paths(describe(state))
    # A database without a name is a temporary file: a whole set has millions of files.
    try:
        with closing(sqlite3.connect("")) as files:
            files.execute("CREATE TABLE files (folder, path, size, sha256, frames)")
            summary = Summary(state, files)
            digests, count, size = _write_checksums(store, files)
    except sqlite3.Error as error:
        raise WriteError(f"the checksums need space in the folder for temporary files: {error}") from error
    failures = summary.failures
    if failures:
        store.put(ERRORS, "".join(json.dumps(failure) + "\n" for failure in failures).encode())
    else:
        store.delete(ERRORS)
    made = summary.count(manifest["variants"], {failure["key"] for failure in failures})
    manifest = manifest | {
        "counts": {"files": count, "bytes": size},
        "failures": len(failures),
        "complete": min(store.sizes(manifest["arrays"]), default=0) >= 0 and made >= manifest["images"],
        "digest": _combine(digests[SUMS]),
    }
    if digests[FRAMES]:
        manifest["frames_digest"] = _combine(digests[FRAMES])
    for name, data in make_cards(manifest).items():
        store.put(name, data)
    store.put(CROISSANT, encode_croissant(make_croissant(manifest, store)))
    store.put(MANIFEST, (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode())
    state.mark_finished(fingerprint)
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
    parts = [plan["manifest"] for plan in plans]
    parameters: dict[str, Any] = {}
    for plan in plans:
        parameters |= plan["parameters"]
    largest: dict[str, Any] = find_largest(plans)["manifest"]
    return largest | {
        "schema": SCHEMA,
        "variants": sorted({variant for part in parts for variant in part["variants"]}),
        "arrays": sorted({array for part in parts for array in part["arrays"]}),
        "licence": " ".join(dict.fromkeys(sentence for part in parts for sentence in part["licence"])),
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
    **dict.fromkeys(("variants", "arrays"), list),
    "complete": bool,
}


def read_manifest(store: Store) -> dict[str, Any]:
    """Return the manifest of an output.

    Raises
    ------
    FileNotFoundError
        There is no manifest.
    OutputError
        The manifest is damaged, or was not written by this version of robustgen.
    """
    manifest = read_described(store, MANIFEST)
    wrong = [name for name, kind in _TYPES.items() if not isinstance(manifest.get(name), kind)]
    if not wrong:
        settings = manifest["settings"]
        wrong = [name for name in ("output", "versions") if not isinstance(settings.get(name), dict)]
        lists = {name: manifest[name] for name in ("variants", "arrays")}
        wrong += [name for name, held in lists.items() if not all(isinstance(each, str) for each in held)]
    if wrong:
        raise OutputError(f"{store.location}/{MANIFEST} is not robustgen's: it has no {wrong[0]!r}")
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
    entries, damage = list[Failure](), list[str]()
    for number, line in enumerate(lines, 1):
        with suppress(ValueError):
            entry = parse_object(line)
            if entry.keys() >= {"key", "reason"} and all(isinstance(text, str) for text in entry.values()):
                entries.append(entry)
                continue
        damage.append(f"line {number} is not a robustgen entry")
    return entries, damage
