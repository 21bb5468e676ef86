"""The manifest and `errors.jsonl` of an output against each other, and against what its runs recorded."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from robustgen.errors import OutputError
from robustgen.output.failures import read_errors
from robustgen.output.files import ERRORS, FRAMES, MANIFEST
from robustgen.output.manifest import Tally, frames_digest
from robustgen.output.state import State, read_object
from robustgen.verify.contents import Contents
from robustgen.verify.findings import Finding

_NEEDED = {
    **dict.fromkeys(("citation", "dataset", "digest", "kind", "licence"), str),
    **dict.fromkeys(("config", "counts", "settings", "source"), dict),
    "arms": list,
    "complete": bool,
    "failures": int,
    "images": int,
}


def read_manifest(root: Path) -> dict[str, Any]:
    """The manifest of the output at `root`.

    Raises
    ------
    OutputError
        There is none, or it is none of this tool's.
    """
    if not (root / MANIFEST).exists():
        raise OutputError(f"{root} holds no {MANIFEST}; it is not a finished output of robustgen")
    manifest = read_object(root / MANIFEST)
    for name, kind in _NEEDED.items():
        if not isinstance(manifest.get(name), kind):
            raise OutputError(f"{root / MANIFEST} is none of robustgen's: it has no {name!r}")
    for name in ("output", "versions"):
        if not isinstance(manifest["settings"].get(name), dict):
            raise OutputError(f"{root / MANIFEST} is none of robustgen's: its settings have no {name!r}")
    return manifest


def check_manifest(
    root: Path, manifest: Mapping[str, Any], digest: str, contents: Contents
) -> Iterator[Finding]:
    """Whether the manifest says of the files and failures what there is."""
    if not manifest["complete"]:
        yield Finding("unfinished", MANIFEST, f": not all of the {manifest['images']} images have all files")
    if manifest["digest"] != digest:
        yield Finding("changed", MANIFEST, f": the sums give the digest {digest}, not {manifest['digest']}")
    # Small files of some sets have checksums of their own, which are not counted.
    arms = {f"{arm}/" if arm else "" for arm in ("", *manifest.get("arms", ()))}
    found = [count for folder, count in contents.counts.items() if folder in arms]
    counts = {"files": sum(files for files, _ in found), "bytes": sum(size for _, size in found)}
    if manifest["counts"] != counts and not contents.findings:
        yield Finding(
            "changed", MANIFEST, f": the counts are {manifest['counts']!r}, where there are {counts!r}"
        )
    if manifest.get("frames_digest") != frames_digest(root):
        yield Finding("changed", FRAMES, f": {MANIFEST} has another digest of the frames")
    entries, damage = read_errors(root / ERRORS)
    for detail in damage:
        yield Finding("damaged", ERRORS, f": {detail}")
    listed = len(entries)
    if manifest["failures"] != listed and not damage:
        yield Finding("changed", ERRORS, f": lists {listed} failures, {MANIFEST} {manifest['failures']}")


def check_state(root: Path, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether manifest and failures are those that the runs recorded, and the journals whole."""
    state = State(root)
    recorded = state.about() | {"settings": state.settings()}
    for name in sorted(recorded):
        for key, here, there in _differences(name, manifest.get(name), recorded[name]):
            yield Finding("changed", MANIFEST, f": {key} is {here!r}, where {there!r} was recorded")
    tally = Tally(root, with_files=False)
    yield from name_damaged(root, tally)
    failures = {*map(_as_text, tally.failures.entries())}
    for entry in read_errors(root / ERRORS)[0]:
        if _as_text(entry) not in failures:
            yield Finding("changed", ERRORS, f": no run recorded the failure of {entry['key']!r}")


def _as_text(failure: Mapping[str, Any]) -> str:
    return json.dumps(failure, sort_keys=True)


def name_damaged(root: Path, tally: Tally) -> Iterator[Finding]:
    """The lines of journals that are not as they were written."""
    folder = State(root).folder.name
    for line in tally.damaged:
        name, _, number = line.partition(", ")
        remedy = "give the make command again, which makes what it told of once more"
        yield Finding("damaged", f"{folder}/{name}", f": {number} is not as it was written; {remedy}")


def _differences(name: str, here: Any, there: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted(here.keys() | there.keys()):
            yield from _differences(f"{name}.{key}", here.get(key), there.get(key))
    elif here != there:
        yield name, here, there
