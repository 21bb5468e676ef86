"""Comparison of the manifest and `errors.jsonl` of an output with each other and with its records."""

from collections.abc import Iterator, Mapping
from typing import Any

from robustgen.files.ledger import Standing
from robustgen.files.set_files import ERRORS, MANIFEST, STATE
from robustgen.files.storage import Store
from robustgen.lab.inspection.verify.contents import Counts, Finding
from robustgen.sets.dataset.manifest import Summary, describe, frames_digest, hide_paths, read_errors
from robustgen.sets.dataset.opening import name_command
from robustgen.sets.dataset.state import SetLedger


def check_manifest(
    store: Store, manifest: Mapping[str, Any], digest: str, counts: Counts | None
) -> Iterator[Finding]:
    """Yield the differences of manifest and failures from the files and the records.

    `digest` and `counts` are those of the checksums; without `counts`, files are missing or changed.
    """
    entries, damage = read_errors(store)
    state = SetLedger(store, beside="" in manifest["variants"])
    remedy = f"{name_command(manifest['kind'])} resumes its run"
    yield from (Finding("damaged", ERRORS, f": {detail}") for detail in damage)
    expected: dict[str, Any] = {"digest": digest, "frames_digest": frames_digest(store)}
    expected |= {} if damage else {"failures": len(entries)}
    if counts:
        # Some sets have separate checksums of small files, which do not count.
        variants = {f"{variant}/" if variant else "" for variant in ("", *manifest["variants"])}
        found = [count for folder, count in counts.items() if folder in variants]
        files, sizes = (sum(values) for values in zip(*found, strict=True))
        expected["counts"] = {"files": files, "bytes": sizes}
    lacking = list[str]()
    if state.exists:
        expected |= hide_paths(describe(state))
        summary = Summary(state)
        if not summary.damaged:
            lacking += summary.find_lacking(expected, state.plans())
        if not summary.damaged and not lacking and state.standing() < Standing.COPIED:
            detail = f": plans or records have changed since the set was finished; {remedy}"
            yield Finding("changed", STATE, detail)
        for name in summary.damaged:
            detail = ": is damaged; run the same make command to create its images again"
            yield Finding("damaged", f"{STATE}/records/{name}.json", detail)
        recorded = {*map(repr, summary.failures)}
        for entry in entries:
            if repr(entry) not in recorded:
                yield Finding("changed", ERRORS, f": no run recorded the failure of {entry['key']!r}")
    elif next(iter(state.store.list()), None):
        detail = ": restore it, or delete the whole folder, which a finished set does not need"
        yield Finding("missing", f"{STATE}/settings.json", detail)
    if not manifest["complete"] and not entries and not lacking:
        lacking.append(f"not all of the {manifest['images']} images have all files")
    if lacking:
        yield Finding("unfinished", MANIFEST, f": {lacking[0]}; {remedy}")
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
