"""Manifest and checksums: `SHA256SUMS` in every folder, and the files that describe the whole set.

All of them are pure functions of the output state.
"""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from robustgen.errors import OutputError, WriteError
from robustgen.files.ledger import Failure, Note, Record, Standing, index_notes
from robustgen.files.set_files import (
    ERRORS,
    FRAMES,
    MANIFEST,
    MANIFEST_SUMS,
    NOTES,
    SCHEMA,
    SUMS,
    read_described,
)
from robustgen.files.storage import AT_ONCE, Store, prefetch
from robustgen.files.text_files import escape_name, parse_object, read_sums
from robustgen.pixels.benchmarks.kinds import find_medium
from robustgen.sets.dataset.descriptions import CARD, CROISSANT, encode_croissant, make_croissant, write_card
from robustgen.sets.dataset.state import (
    COMPANIONS,
    Coverage,
    SetLedger,
    find_folder,
    find_largest,
    name_mirror,
)

# --- checksums -----------------------------------------------------------------------------------


def find_checksums(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the files `SHA256SUMS` and `FRAMES.SHA256` among `paths`, sorted, at most two folders deep."""
    found: dict[str, list[str]] = {SUMS: [], FRAMES: []}
    for path in paths:
        if path.endswith((SUMS, FRAMES)) and path.count("/") <= 2:
            found.setdefault(path.rpartition("/")[2], []).append(path)
    sums, frames = (sorted(found[name], key=lambda path: path.split("/")) for name in (SUMS, FRAMES))
    return sums, frames


def list_checksums(store: Store) -> tuple[list[str], list[str]]:
    """Return the paths of the files `SHA256SUMS` and `FRAMES.SHA256` of an output."""
    return find_checksums(entry.path for entry in store.list())


def digest_checksums(store: Store, sums: Sequence[str], frames: Sequence[str]) -> tuple[str, str | None]:
    """Return one SHA-256 for a whole output, and one for all of its frames, None if it has no digests.

    They are computed from paths and content of the files that `find_checksums` returns.
    """
    paths = [*sums, *frames]
    found = dict(zip(paths, store.map(lambda path: _sha256(store.read(path)), paths), strict=True))
    return _combine({path: found[path] for path in sums}), (
        _combine({path: found[path] for path in frames}) if frames else None
    )


def _combine(digests: Mapping[str, str]) -> str:
    paths = sorted(digests, key=lambda path: path.split("/"))
    return _sha256("".join(f"{digests[path]}  {path}\n" for path in paths).encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- the manifest --------------------------------------------------------------------------------


class RecordSummary:
    """Content of the records of an output, from one pass over them.

    Attributes
    ----------
    attempted : Coverage
    failures, notes : list of dict
        Sorted by key and variant.
    damaged : list of str
        Names of the damaged records.
    about : dict of str to Record
        Records of files about the whole set, without the files.
    """

    def __init__(self, state: SetLedger, files: sqlite3.Connection | None = None) -> None:
        self.attempted, self.damaged, self.about = Coverage(), list[str](), dict[str, Record]()
        failures: dict[tuple[str, str], Failure] = {}
        notes: dict[tuple[str, str], Note] = {}
        for name, record in state.read_records():
            if record is None:
                self.damaged.append(name)
                continue
            self.attempted.add(record.images, record.variants)
            if not record.images:
                self.about[name] = replace(record, files=())
            failures |= {(each["key"], each.get("variant", "")): each for each in record.failures}
            notes |= index_notes(record.notes)
            if files:
                folders = {*record.variants}
                # Bytes sort like their texts; names may contain bytes that are not UTF-8.
                rows = (
                    (find_folder(path, folders), path.encode("utf-8", "surrogatepass"), *described)
                    for path, *described in record.files
                )
                files.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?)", rows)
        self.failures = [failures[each] for each in sorted(failures)]
        self.notes = [notes[each] for each in sorted(notes)]

    def count(self, folders: Collection[str], without: Collection[str] = ()) -> int:
        """Return the number of images with all variants in `folders` attempted, `without` some images."""
        wanted = frozenset(folders)
        return sum(made >= wanted for key, made in self.attempted.items() if key not in without)

    def identify(self, name: str, folders: Iterable[str], keys: Iterable[str] = ()) -> str:
        """Return a digest of what the files of the record `name` describe: images, variants and failures."""
        failures = (each for each in self.failures if name == COMPANIONS and each["key"] in self.attempted)
        failed = (f"{failure['key']}\0{failure.get('variant', '')}" for failure in failures)
        text = "\0\0".join("\0".join(sorted(part)) for part in ({*self.attempted, *keys}, folders, failed))
        return _sha256(text.encode("utf-8", "surrogateescape"))

    def find_lacking(self, manifest: Mapping[str, Any], plans: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Yield what the set of these `plans` lacks to be finished, one phrase each.

        Only a set that lacks nothing is complete, whoever writes its `manifest`.
        """
        wanted = {COMPANIONS: manifest["variants"]}
        for plan in (each["manifest"] for each in plans):
            if plan["config"].get("mirror"):
                wanted |= {name_mirror(folder): [folder] for folder in plan["variants"]}
        if self.count(manifest["variants"]) < manifest["images"]:
            yield f"not all of the {manifest['images']} {find_medium(manifest['title']).name}s have all files"
        for name, folders in wanted.items():
            held = self.about.get(name, Record(shared="missing"))
            is_current = held.shared == self.identify(name, held.variants) and {*folders} <= {*held.variants}
            if held.shared and not is_current:
                yield f"the files of the record {name} are missing or outdated"


def _write_checksums(
    store: Store, files: sqlite3.Connection
) -> tuple[dict[str, dict[str, str]], int, int, list[str]]:
    """Write the checksum files of all folders.

    Returns
    -------
    digests : dict of str to dict
        Name of the checksum files to path to digest.
    count, size : int
        Number and bytes of the listed files.
    disputed : list of str
        Files for which records have different digests.
    """
    digests: dict[str, dict[str, str]] = {SUMS: {}, FRAMES: {}}
    count, size, disputed = 0, 0, list[str]()
    rows = files.execute(
        "SELECT *, MIN(sha256) < MAX(sha256) FROM files GROUP BY folder, path ORDER BY folder, path"
    )
    for folder, own in groupby(rows, key=itemgetter(0)):
        prefix = f"{folder}/" if folder else ""
        lines = {SUMS: bytearray(), FRAMES: bytearray()}
        for _, encoded, length, *sums, is_disputed in own:
            path = encoded.decode("utf-8", "surrogatepass")
            disputed += [path] * is_disputed
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
    return digests, count, size, disputed


def finish(state: SetLedger) -> list[Failure]:
    """Write the checksums, `errors.jsonl` and `dataset.json`; return the entries of `errors.jsonl`.

    Raises
    ------
    OutputError
        The output state is damaged.
    """
    store, fingerprints, plans = state.root, state.fingerprints(), state.plans()
    manifest = hide_paths(describe(state, plans))
    # A database without a name is a temporary file: a whole set has millions of files.
    try:
        with closing(sqlite3.connect("")) as files:
            files.execute("CREATE TABLE files (folder, path, size, sha256, frames)")
            summary = RecordSummary(state, files)
            with store.open_flight() as flight:
                digests, count, size, disputed = _write_checksums(flight, files)
    except sqlite3.Error as error:
        raise WriteError(f"the checksums need space in the folder for temporary files: {error}") from error
    failures = summary.failures
    lacking = [*summary.find_lacking(manifest, plans), *disputed]
    made = summary.count(manifest["variants"], {failure["key"] for failure in failures})
    has_arrays = min(store.sizes(manifest["arrays"]), default=0) >= 0
    manifest = manifest | {
        "counts": {"files": count, "bytes": size},
        "failures": len(failures),
        "complete": not lacking and has_arrays and made >= manifest["images"],
        "digest": _combine(digests[SUMS]),
    }
    if summary.notes:
        manifest["notes"] = len(summary.notes)
    if digests[FRAMES]:
        manifest["frames_digest"] = _combine(digests[FRAMES])
    about = {
        **make_cards(manifest),
        CROISSANT: encode_croissant(make_croissant(manifest, store)),
        ERRORS: _encode_lines(failures),
        NOTES: _encode_lines(summary.notes),
        MANIFEST: (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode(),
    }
    store.delete_all({ERRORS, NOTES}.difference(list_about(manifest)))
    if lacking:
        state.mark_unfinished()
    named = {name: about[name] for name in list_about(manifest)}
    with store.open_flight() as flight:
        flight.put(MANIFEST_SUMS, encode_sums({name: _sha256(data) for name, data in named.items()}))
        for name, data in named.items():
            if name != MANIFEST:
                flight.put(name, data)
    # The manifest comes last, because only a finished set has one.
    store.put(MANIFEST, named[MANIFEST])
    if not lacking:
        state.mark_finished([*fingerprints, _stamp_description(store, manifest)])
    return failures


def _encode_lines(entries: Iterable[Note]) -> bytes:
    return "".join(f"{json.dumps(entry)}\n" for entry in entries).encode()


def encode_sums(sums: Mapping[str, str]) -> bytes:
    """Return the content of `MANIFEST_SUMS`: a line for each name and digest."""
    return "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode()


def list_about(manifest: Mapping[str, Any]) -> list[str]:
    """Return the files that describe a finished set, and that `MANIFEST_SUMS` lists; the manifest is last."""
    optional = [name for name, key in ((ERRORS, "failures"), (NOTES, "notes")) if manifest.get(key)]
    return [*make_cards(manifest), CROISSANT, *optional, MANIFEST]


def check_about(store: Store, manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fault, "missing" or "changed", and the name of each damaged file that describes a set."""
    paths = [MANIFEST_SUMS, *list_about(manifest)]
    held, *contents = store.map(lambda path: store.read(path) if store.exists(path) else None, paths)
    sums = read_sums(held) if held is not None else {}
    if not sums:
        yield "missing", MANIFEST_SUMS
    for path, content in zip(paths[1:], contents, strict=True):
        if content is None:
            yield "missing", path
        elif sums and _sha256(content) != sums.get(path):
            yield "changed", path


def is_finished(state: SetLedger, least: Standing = Standing.COPIED) -> bool:
    """Return whether the set stands so far, and all files that describe it exist as they were written."""
    if state.standing() < least:
        return False
    store = state.root
    with suppress(FileNotFoundError, OutputError):
        manifest = read_manifest(store)
        if state.has_mark(_stamp_description(store, manifest)):
            return True
        listed = manifest["digest"], manifest.get("frames_digest")
        is_listed = digest_checksums(store, *list_checksums(store)) == listed
        return is_listed and next(check_about(store, manifest), None) is None
    return False


def _stamp_description(store: Store, manifest: Mapping[str, Any]) -> str:
    """Return a digest of the sizes and stamps of all files that describe a set; "" if a stamp is unknown."""
    names = [SUMS, FRAMES] if "frames_digest" in manifest else [SUMS]
    paths = [*list_about(manifest), MANIFEST_SUMS]
    paths += [f"{folder}/{name}".lstrip("/") for folder in ("", *manifest["variants"]) for name in names]
    entries = [entry for entry in prefetch(store.find, paths, AT_ONCE) if entry]
    return _sha256(repr(entries).encode()) if all(entry.stamp for entry in entries) else ""


def describe(state: SetLedger, plans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the description of the largest of these `plans`, with the variants of all, for the manifest.

    Raises
    ------
    OutputError
        The output state is damaged.
    """
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
    if isinstance(content, str):
        # A list of images is a path after an @.
        path = content.removeprefix("@")
        return content.replace(path, Path(path).name) if Path(path).is_absolute() else content
    return content


_TYPES: Final = {
    **dict.fromkeys(("citation", "dataset", "digest", "licence", "title"), str),
    **dict.fromkeys(("config", "counts", "settings", "source"), dict),
    **dict.fromkeys(("failures", "images"), int),
    **dict.fromkeys(("variants", "arrays"), list),
    **dict.fromkeys(("class_folders", "complete"), bool),
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
    wrong = [name for name, expected in _TYPES.items() if not isinstance(manifest.get(name), expected)]
    if not wrong:
        settings = manifest["settings"]
        wrong = [name for name in ("output", "versions") if not isinstance(settings.get(name), dict)]
        lists = {name: manifest[name] for name in ("variants", "arrays")}
        wrong += [name for name, held in lists.items() if not all(isinstance(each, str) for each in held)]
    if wrong:
        raise OutputError(f"{store.location}/{MANIFEST} is not robustgen's: it has no {wrong[0]!r}")
    return manifest


def make_cards(manifest: Mapping[str, Any]) -> Mapping[str, bytes]:
    """Return the card that describes the variants of a set, if it has any: path to content."""
    return {CARD: write_card(manifest)} if manifest["variants"] else {}


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
