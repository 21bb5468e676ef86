"""Verification of an output against its checksums, manifest, records, source or another output.

`describe_set` is the last step before a set is published: the user's own fields in `croissant.json`.
"""

import hashlib
import os
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, Final, NamedTuple

from robustgen.display.text import format_count
from robustgen.errors import (
    ArgumentError,
    ConfigError,
    MissingDependencyError,
    OutputError,
    SourceError,
    explain_failure,
)
from robustgen.files.ledger import Standing
from robustgen.files.set_files import ERRORS, MANIFEST, MANIFEST_SUMS, STATE, check_folder
from robustgen.files.storage import AT_ONCE, Store, is_url, open_store, prefetch
from robustgen.files.text_files import read_sums
from robustgen.lab.inspection.verify_contents import Counts, check_contents, compare_outputs
from robustgen.lab.inspection.verify_contents import Finding as Finding
from robustgen.lab.inspection.verify_contents import Findings as Findings
from robustgen.lab.plans import plan_again
from robustgen.pixels.benchmarks.canonical import PUBLISHED_FILES, recognise
from robustgen.pixels.benchmarks.kinds import (
    BENCHMARKS,
    CLEAN_VARIANT,
    CLIPS_C,
    IMAGENET_C,
    TITLES,
    Variant,
    find_medium,
)
from robustgen.pixels.imaging.decode import collect_complaints
from robustgen.pixels.imaging.file_tags import NO_TAGS, FileTags
from robustgen.sets.dataset.descriptions import (
    CARD,
    CROISSANT,
    add_fields,
    encode_croissant,
    make_croissant,
    write_card,
)
from robustgen.sets.dataset.manifest import (
    RecordSummary,
    check_about,
    describe,
    digest_checksums,
    encode_sums,
    finish,
    hide_paths,
    list_about,
    read_errors,
    read_manifest,
)
from robustgen.sets.dataset.opening import name_command, open_set
from robustgen.sets.dataset.outputs import file_digest, name_output_in_errors
from robustgen.sets.dataset.plan import Plan
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.formats.base import Encoded, Writer
from robustgen.sets.sources.base import read_ahead
from robustgen.settings.fields import make_absolute

# Choices that select all images.
_EVERY: Final = {"subset": "*", "limit": None, "sample": None}


def verify(
    root: str | Path,
    *,
    jobs: int | None = None,
    deep: int | str | None = None,
    source: str | None = None,
    against: str | None = None,
) -> Findings:
    """Check the output at `root`.

    Parameters
    ----------
    root : path or URL
    jobs : int, optional
        Number of threads that read files; default one per core, or 32 for an object store.
    deep : int or str, optional
        Number of images to recreate from the source, or ``"all"``.
    source : path or URL, optional
        Current location of the source, if it has moved.
    against : str, optional
        Another output, or a dataset digest.

    Raises
    ------
    OutputError
        `root` is not an output of robustgen.
    ArgumentError
        `deep`, `source` or `against` cannot be used.
    WriteError
        The manifest of merged shards cannot be written.
    """
    if source and deep is None:
        raise ConfigError("--source needs --deep: it is the current location of the source")
    store = open_store(root)
    try:
        check_folder(store)
    except SourceError as error:
        raise OutputError(str(error)) from None
    state = SetLedger(store)
    if state.exists and not store.exists(MANIFEST):
        if state.standing() >= Standing.COPIED:
            remedy = f"{name_command(describe(state, state.plans())['title'])} writes it again"
            raise OutputError(f"{store.location}: its {MANIFEST} was deleted, or a run was stopped; {remedy}")
        # Merged shards have no manifest yet.
        with name_output_in_errors(store):
            finish(state)
            store.clean()
    manifest = read_finished(store)
    jobs = jobs or (os.cpu_count() or 1 if store.is_local else AT_ONCE)
    problems, counts, checksums = check_contents(store, jobs, list_about(manifest))
    digest, of_frames = digest_checksums(store, *checksums)
    published = find_published(store, manifest, {finding.path for finding in problems}, jobs)
    problems += check_manifest(store, manifest, (digest, of_frames), None if problems else counts)
    detailed = {(each.fault, each.path) for each in problems}
    problems += (Finding(*each) for each in check_about(store, manifest) if each not in detailed)
    remade, notes = 0, list[str]()
    if deep is not None:
        remade, differing, notes = remake_images(store, manifest, str(deep), source)
        problems += differing
    if against:
        problems += compare_outputs(store, checksums[0], against, digest)
    unfinished = any(finding.fault == "unfinished" for finding in problems)
    failed = [] if unfinished else sorted({entry["key"] for entry in read_errors(store)[0]})
    known_as = None if problems else recognise(digest, manifest.get("frames_digest"))
    checked = sum(files for files, _ in counts.values())
    problems = sorted(set(problems))
    noun = find_medium(manifest["title"]).name
    return Findings(
        problems, failed, manifest["images"], checked, remade, digest, known_as, published, notes, noun
    )


def read_finished(store: Store) -> dict[str, Any]:
    """Return the manifest of a finished output.

    Raises
    ------
    OutputError
        There is no manifest, or robustgen did not write it.
    """
    try:
        return read_manifest(store)
    except FileNotFoundError:
        raise OutputError(f"{store.location}: no {MANIFEST}: not a finished output of robustgen") from None


# --- manifest -------------------------------------------------------------------------------------


def check_manifest(
    store: Store, manifest: Mapping[str, Any], digests: tuple[str, str | None], counts: Counts | None
) -> Iterator[Finding]:
    """Yield the differences of manifest and failures from the files and the records.

    `digests`, of all files and of frames, and `counts` are those of the checksums; without `counts`, files
    are missing or changed.
    """
    entries, damage = read_errors(store)
    state = SetLedger(store, beside="" in manifest["variants"])
    remedy = f"{name_command(manifest['title'])} resumes its run"
    yield from (Finding("damaged", ERRORS, f": {detail}") for detail in damage)
    expected: dict[str, Any] = dict(zip(("digest", "frames_digest"), digests, strict=True))
    expected |= {} if damage else {"failures": len(entries)}
    if counts:
        # Some sets have separate checksums of small files, which do not count.
        variants = {f"{variant}/" if variant else "" for variant in ("", *manifest["variants"])}
        found = [count for folder, count in counts.items() if folder in variants]
        files, sizes = (sum(values) for values in zip(*found, strict=True))
        expected["counts"] = {"files": files, "bytes": sizes}
    lacking = list[str]()
    if state.exists:
        plans = state.plans()
        expected |= hide_paths(describe(state, plans))
        summary = RecordSummary(state)
        if not summary.damaged:
            lacking += summary.find_lacking(expected, plans)
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
        lacking.append(
            f"not all of the {manifest['images']} {find_medium(manifest['title']).name}s have all files"
        )
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


# --- published files ------------------------------------------------------------------------------


def find_published(
    store: Store, manifest: Mapping[str, Any], wrong: Collection[str], jobs: int
) -> dict[str, str]:
    """Return the files with the content of a published set's: path to the name of that set.

    `wrong` names paths with findings, and `jobs` is the number of threads that read files.
    """
    if manifest["title"] != BENCHMARKS["c"].title or manifest["dataset"] not in PUBLISHED_FILES:
        return {}
    title, digests = PUBLISHED_FILES[manifest["dataset"]]
    listed = [path for path in digests if path not in wrong]
    paths = [*compress(listed, store.map(store.exists, listed))]
    found = prefetch(lambda path: file_digest(store, path, "md5"), paths, jobs)
    return {path: title for path, digest in zip(paths, found, strict=True) if digest == digests[path]}


# --- recreated images -----------------------------------------------------------------------------


def remake_images(
    store: Store, manifest: Mapping[str, Any], deep: str, source: str | None = None
) -> tuple[int, list[Finding], list[str]]:
    """Recreate a random sample of the set's images, or all, from the source.

    Parameters
    ----------
    store : Store
    manifest : mapping
    deep : str
        Number of images, or ``"all"``.
    source : path or URL, optional
        Current location of the source images.

    Returns
    -------
    count : int
        Number of images that were compared.
    findings : list of Finding
        The differences, and all images that the source lacks.
    notes : list of str
        A sentence on images that were added to the source since.

    Raises
    ------
    ArgumentError
        `deep` is invalid, or the location of the source is neither in the state nor given as `source`.
    SourceError
        The source cannot be found.
    """
    plan = _plan_again(store, manifest, source)
    failed = {(entry["key"], entry.get("variant", "")) for entry in read_errors(store)[0]}
    recorded, there = _list_recorded(store, plan), frozenset(plan.source.keys())
    known = {*recorded, *(key for key, variant in failed if not variant)}
    lacking = [key for key in recorded if key not in there and (key, "") not in failed]
    numbered = [
        (index, key) for index, key in enumerate(recorded) if key in there and (key, "") not in failed
    ]
    differing = [Finding("differs", key, ": the source has no such image now") for key in lacking]
    chosen, compared = _choose_sample(numbered, deep), set[str]()
    for output, path, is_same in store.map(
        partial(_find_output, store, plan.writer), _remake(plan, chosen), count_bytes=_count_bytes
    ):
        of = f" {output.key} in {output.variant.folder}" if plan.writer.file_per != "image" else ""
        if path:
            compared.add(output.key)
        if path and not is_same:
            differing.append(Finding("differs", path, f":{of} from what the source gives now"))
        elif output.failure and (output.key, output.variant.folder) not in failed:
            differing.append(Finding("differs", output.key, f": {output.failure}"))
    added = [key for key in plan.keys if key not in known]
    if plan.choices.get("limit") or plan.choices.get("sample"):
        # Others take the places of images that are gone.
        added = added[: max(0, len(added) - len(lacking))]
    examples = (
        f"{format_count(len(added), 'image')} added to the source since, such as {min(added, default='')!r}"
    )
    return len(compared), differing, [examples] if added else []


def _list_recorded(store: Store, plan: Plan) -> list[str]:
    """Return the keys of the images of a set, in the order of its files: as recorded, or as it has them."""
    state, every = SetLedger(store), plan.source.keys()
    if state.exists:
        attempted = RecordSummary(state).attempted
        ordered = [key for key in every if key in attempted]
        # Keys that the source lacks are sorted among the others.
        return ordered if len(ordered) == len(attempted) else sorted(attempted)
    is_table = plan.writer.file_per == "shard" and plan.writer.output_name(every[0]) is None
    if is_table and any(plan.choices.get(key) for key in ("limit", "sample", "subset")):
        # The rows have other numbers in the set.
        return [*plan.keys]
    try:
        held = open_set(store.location)[plan.variants[0]].keys()
    except (SourceError, KeyError):
        return [*plan.keys]
    # Of images with one output name, the plan has only one.
    names = {(plan.writer.output_name(key) or key).removesuffix(".mp4"): key for key in (*every, *plan.keys)}
    return [names.get(name, name) for name in held]


def _plan_again(store: Store, manifest: Mapping[str, Any], source: str | None) -> Plan:
    state = SetLedger(store)
    # Only the state names folders of this machine; dataset.json is published.
    config = describe(state, state.plans())["config"] if state.exists else manifest["config"]
    held = config.get("source")
    if held and not source and not is_url(held) and not Path(held).is_absolute():
        raise ArgumentError(f"--deep: {MANIFEST} does not locate {held!r}; pass it with --source")
    content = config | {"output": store.location, "source": make_absolute(source) if source else held}
    name = f"{store.location}/{MANIFEST}"
    if manifest["title"] not in TITLES:
        return plan_again(manifest["title"], content, name)
    variants = tuple(filter(None, map(TITLES[manifest["title"]].variant_in, manifest["variants"])))
    if manifest["title"] in (IMAGENET_C.title, CLIPS_C.title) and {*variants} - {CLEAN_VARIANT}:
        # Another run may have added corruptions with more needs, such as tiles of other sizes.
        own = defaultdict[str, list[float]](list)
        for variant in variants:
            if variant != CLEAN_VARIANT:
                own[variant.name].append(variant.level)
        content |= {"corruptions": [*own], "severities_of": own}
    try:
        plan = plan_again(manifest["title"], content, name)
    except ConfigError:
        if not content.get("subset"):
            raise
        # The source may lack what the subset names, or its file be gone.
        plan = replace(plan_again(manifest["title"], content | _EVERY, name), keys=())
    return replace(plan, variants=variants)


def _choose_sample(numbered: list[tuple[int, str]], deep: str) -> list[tuple[int, str]]:
    if deep == "all":
        return numbered
    if not deep.isdecimal() or int(deep) < 1:
        raise ArgumentError(f"--deep: must be a number of images, or all, not {deep!r}")
    # A new sample each time finds more; the caller's seed has no part in it.
    return sorted(random.SystemRandom().sample(numbered, min(int(deep), len(numbered))))


class _Output(NamedTuple):
    """An output that was made again: number and key of its image, its variant, and a file or a failure."""

    number: int
    key: str
    variant: Variant
    encoded: Encoded | None
    failure: str = ""


def _remake(plan: Plan, chosen: Sequence[tuple[int, str]]) -> Iterator[_Output]:
    """Yield all outputs of some images, given by number and key."""

    def read(key: str) -> tuple[Any, ...]:
        # The run that created the set has counted the warnings of decoders.
        with collect_complaints():
            return (plan.source.open(key),)

    reads = read_ahead(plan.source.location, read, [key for _, key in chosen])
    step = plan.recipe.images_at_once
    for start in range(0, len(chosen), step):
        images = [
            (*each, *_prepare(plan, each[1], next(reads)), dict[str, Any]())
            for each in chosen[start : start + step]
        ]
        # Variant by variant, because images that follow each other are neighbours in a shard.
        for variant in plan.variants:
            for index, key, image, tags, failure, shared in images:
                try:
                    if not failure:
                        pixels = plan.recipe.make(variant, key, image, shared)
                        for encoded in plan.writer.encoder.encode_with_tags(variant, key, pixels, tags):
                            yield _Output(index, key, variant, encoded)
                except MissingDependencyError:
                    raise
                except Exception as error:
                    failure = explain_failure(error, key)
                if failure:
                    yield _Output(index, key, variant, None, failure)
        # Free the pixels before reading the next images.
        del images, image


def _prepare(plan: Plan, key: str, read: Callable[[], tuple[Any, ...]]) -> tuple[Any, FileTags, str]:
    """Return a prepared image with the tags of its file, or the reason why there is none."""
    try:
        (loaded,) = read()
        return plan.recipe.prepare(loaded), plan.source.find_tags(key, loaded), ""
    except MissingDependencyError:
        raise
    except Exception as error:
        return None, NO_TAGS, explain_failure(error, key)


def _count_bytes(output: _Output) -> int:
    """Return the bytes in memory while an output is compared with its file."""
    return 2 * len(output.encoded.data) if output.encoded else 0


def _find_output(store: Store, writer: Writer, output: _Output) -> tuple[_Output, str, bool]:
    """Return the path of the file with an output, "" if it cannot be read, and whether it is the same."""
    if output.encoded:
        # The checksums report files that cannot be read.
        with suppress(OSError, ValueError):
            return output, *writer.find_output(
                store, output.variant, output.number, output.key, output.encoded
            )
    return output, "", False


def describe_set(root: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Write `croissant.json` of the finished set at `root` with the user's own fields, and return it.

    A licence among them is that of the set's `README.md` too.

    Parameters
    ----------
    root : path or URL
    fields : mapping
        Values of `descriptions.USER_FIELDS`; dates may be date objects.

    Raises
    ------
    SourceError
        There is no set.
    OutputError
        The set is not finished.
    ConfigError
        A field cannot be set.
    """
    store = open_store(root)
    check_folder(store)
    texts = {name: value.isoformat() if isinstance(value, date) else value for name, value in fields.items()}
    manifest = read_finished(store)
    content = add_fields(make_croissant(manifest, store), texts)
    files = {CROISSANT: encode_croissant(content)}
    if "license" in texts and manifest["variants"]:
        files[CARD] = write_card(manifest, str(texts["license"]))
    sums = read_sums(store.read(MANIFEST_SUMS))
    for name, data in files.items():
        store.put(name, data)
        sums[name] = hashlib.sha256(data).hexdigest()
    store.put(MANIFEST_SUMS, encode_sums(sums))
    return content
