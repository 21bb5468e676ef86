"""Comparison of the manifest and `errors.jsonl` of an output with each other and with its records."""

from collections.abc import Iterator, Mapping
from typing import Any

from robustgen.dataset.manifest import Summary, describe, frames_digest, hide_paths, read_errors
from robustgen.dataset.names import ERRORS, FRAMES, MANIFEST, STATE
from robustgen.dataset.opening import name_command
from robustgen.dataset.state import OutputState
from robustgen.dataset.verify.contents import Contents
from robustgen.dataset.verify.findings import Finding
from robustgen.storage import Store


def check_manifest(
    store: Store, manifest: Mapping[str, Any], digest: str, contents: Contents
) -> Iterator[Finding]:
    """Yield the differences of the manifest from the files and the failures."""
    entries, damage = read_errors(store)
    if not manifest["complete"] and not entries:
        yield _name_unfinished(manifest)
    if not manifest["complete"] and entries:
        for array, size in zip(manifest["arrays"], store.sizes(manifest["arrays"]), strict=True):
            if size < 0:
                yield Finding("unfinished", array, ": was not written, because some of its images failed")
    if manifest["digest"] != digest:
        yield Finding(
            "changed", MANIFEST, f": the checksums give the digest {digest}, not {manifest['digest']}"
        )
    # Some sets have separate checksums of small files, which do not count.
    arms = {f"{arm}/" if arm else "" for arm in ("", *manifest.get("arms", ()))}
    found = [count for folder, count in contents.counts.items() if folder in arms]
    counts = {"files": sum(files for files, _ in found), "bytes": sum(size for _, size in found)}
    if manifest["counts"] != counts and not contents.findings:
        yield Finding(
            "changed", MANIFEST, f": the counts are {manifest['counts']!r}, the files have {counts!r}"
        )
    if manifest.get("frames_digest") != frames_digest(store):
        yield Finding("changed", FRAMES, f": {MANIFEST} has another digest of the frames")
    for detail in damage:
        yield Finding("damaged", ERRORS, f": {detail}")
    if manifest["failures"] != len(entries) and not damage:
        yield Finding(
            "changed", ERRORS, f": lists {len(entries)} failures, {MANIFEST} {manifest['failures']}"
        )


def check_state(state: OutputState, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the differences of manifest and failures from the records, and damaged records."""
    recorded, summary = hide_paths(describe(state)), Summary(state)
    for name in sorted(recorded):
        for key, here, there in _differences(name, manifest.get(name), recorded[name]):
            yield Finding("changed", MANIFEST, f": {key} is {here!r}, the record has {there!r}")
    for name in summary.damaged:
        remedy = "run the same make command to create its images again"
        yield Finding("damaged", f"{STATE}/records/{name}.json", f": is damaged; {remedy}")
    if not manifest["complete"] and summary.count(recorded["arms"]) < recorded["images"]:
        yield _name_unfinished(manifest)
    failures = {*map(_as_text, summary.failures)}
    for entry in read_errors(state.root)[0]:
        if _as_text(entry) not in failures:
            yield Finding("changed", ERRORS, f": no run recorded the failure of {entry['key']!r}")


def _name_unfinished(manifest: Mapping[str, Any]) -> Finding:
    remedy = f"{name_command(manifest['kind'])} resumes its run"
    return Finding(
        "unfinished", MANIFEST, f": not all of the {manifest['images']} images have all files; {remedy}"
    )


def _as_text(failure: Mapping[str, Any]) -> str:
    return repr(sorted(failure.items()))


def _differences(name: str, here: Any, there: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted(here.keys() | there.keys()):
            yield from _differences(f"{name}.{key}", here.get(key), there.get(key))
    elif here != there:
        yield name, here, there
