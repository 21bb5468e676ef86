"""Comparison of the manifest and `errors.jsonl` of an output with each other and with its records."""

from collections.abc import Iterator, Mapping
from typing import Any

from robustgen.dataset.manifest import Summary, describe, frames_digest, hide_paths, read_errors
from robustgen.dataset.names import ERRORS, MANIFEST, STATE
from robustgen.dataset.opening import name_command
from robustgen.dataset.state import OutputState
from robustgen.files.storage import Store
from robustgen.inspection.verify.contents import Counts, Finding


def check_manifest(
    store: Store, manifest: Mapping[str, Any], digest: str, counts: Counts | None
) -> Iterator[Finding]:
    """Yield the differences of manifest and failures from the files and the records.

    `digest` and `counts` are those of the checksums; without `counts`, files are missing or changed.
    """
    (entries, damage), state = read_errors(store), OutputState(store)
    yield from (Finding("damaged", ERRORS, f": {detail}") for detail in damage)
    expected: dict[str, Any] = {"digest": digest, "frames_digest": frames_digest(store)}
    expected |= {} if damage else {"failures": len(entries)}
    if counts:
        # Some sets have separate checksums of small files, which do not count.
        variants = {f"{variant}/" if variant else "" for variant in ("", *manifest["variants"])}
        found = [count for folder, count in counts.items() if folder in variants]
        files, sizes = (sum(values) for values in zip(*found, strict=True))
        expected["counts"] = {"files": files, "bytes": sizes}
    is_unfinished = not manifest["complete"] and not entries
    if state.exists:
        expected |= hide_paths(describe(state))
        summary = Summary(state)
        if not manifest["complete"]:
            is_unfinished |= summary.count(expected["variants"]) < expected["images"]
        for name in summary.damaged:
            remedy = "run the same make command to create its images again"
            yield Finding("damaged", f"{STATE}/records/{name}.json", f": is damaged; {remedy}")
        recorded = {*map(repr, summary.failures)}
        for entry in entries:
            if repr(entry) not in recorded:
                yield Finding("changed", ERRORS, f": no run recorded the failure of {entry['key']!r}")
    if is_unfinished:
        remedy = f"{name_command(manifest['kind'])} resumes its run"
        lacking = f"not all of the {manifest['images']} images have all files"
        yield Finding("unfinished", MANIFEST, f": {lacking}; {remedy}")
    elif not manifest["complete"]:
        for array, size in zip(manifest["arrays"], store.sizes(manifest["arrays"]), strict=True):
            if size < 0:
                yield Finding("unfinished", array, ": was not written, because some of its images failed")
    for key, here, there in _differences("", manifest, {**manifest, **expected}):
        yield Finding("changed", MANIFEST, f": {key} is {here!r}, files and records give {there!r}")


def _differences(name: str, here: Any, there: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted(here.keys() | there.keys()):
            yield from _differences(f"{name}.{key}", here.get(key), there.get(key))
    elif here != there:
        yield name.removeprefix("."), here, there
