"""Checks an output: against its own sums, against the source, against another output."""

import errno
import os
import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robustgen.augmentation import TITLE as AUGMIX
from robustgen.benchmark import TITLES
from robustgen.datasets import EQUALISED
from robustgen.errors import ArgumentError, ImageError, OutputError, WriteError
from robustgen.generation.config import check
from robustgen.icons import TITLE as ICONS
from robustgen.output.files import ERRORS, FRAMES, KEYS, MANIFEST, STATE, SUMS, file_digest
from robustgen.output.manifest import (
    Tally,
    card_files,
    dataset_digest,
    read_sums,
    sums_files,
    write_errors,
    write_manifest,
)
from robustgen.output.records import WrittenFile
from robustgen.output.state import State, exclusive, read_object


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is not as it should be.

    Attributes
    ----------
    kind : {"missing", "extra", "changed", "truncated", "differs", "unfinished"}
    path : str
        POSIX path below the output.
    detail : str
        More about it, or empty.
    """

    kind: str
    path: str
    detail: str = ""


@dataclass(frozen=True)
class Findings:
    """What `verify` found: the problems, how many files it checked, and the dataset digest."""

    problems: list[Finding]
    checked: int
    digest: str


def verify(
    root: Path, *, jobs: int | None = None, deep: str | None = None, against: str | None = None
) -> Findings:
    """Check the output at `root`.

    Parameters
    ----------
    root : Path
    jobs : int, optional
        Threads that read files; default one a core.
    deep : str, optional
        How many images to make anew from the source, or ``"all"``.
    against : str, optional
        Folder of another output, or a dataset digest.

    Raises
    ------
    OutputError
        There is no output of robustgen at `root`.
    ArgumentError
        `deep` or `against` cannot be used.
    WriteError
        The disk is full.
    """
    if not root.is_dir():
        raise OutputError(f"{root}: no such folder")
    if State(root).has_about:
        _complete_manifest(root)
    manifest = _manifest(root)
    wanted, digest = _listed(root), dataset_digest(root)
    problems = [*_unfinished(manifest, digest), *_compared(root, wanted, jobs or os.cpu_count() or 1)]
    cards = card_files(manifest)
    problems += [*_changed_cards(root, cards), *_extra(root, {*wanted, *cards})]
    if deep:
        problems += _made_anew(root, manifest, wanted, deep)
    if against:
        problems += _against(root, wanted, digest, against)
    return Findings(sorted(problems), len(wanted), digest)


def _listed(root: Path, name: str = SUMS) -> dict[str, str]:
    """Every file that the sums list, POSIX path below `root`, with its digest; `name` as in `sums_files`."""
    listed = {}
    for sums in sums_files(root, name):
        folder = sums.parent.relative_to(root).as_posix()
        prefix = "" if folder == "." else f"{folder}/"
        listed.update({prefix + name: digest for name, digest in read_sums(sums).items()})
    return listed


def _is_complete(root: Path) -> bool:
    """Whether the manifest speaks of a complete output: then it is evidence, not to be touched."""
    return (root / MANIFEST).exists() and bool(read_object(root / MANIFEST).get("complete"))


def _complete_manifest(root: Path) -> None:
    """Write the checksums and the manifest of merged shards, unless all one may do here is read."""
    state = State(root)
    try:
        with exclusive(root):
            state.about()
            state.settings()
            if not _is_complete(root):
                tally = Tally(root)
                write_errors(root, (failure for each in tally.failures.values() for failure in each))
                write_manifest(root, tally)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise WriteError(f"{root}: {error.strerror or error}") from error


def _manifest(root: Path) -> dict[str, Any]:
    if not (root / MANIFEST).exists():
        raise OutputError(f"{root} holds no {MANIFEST}; it is not a finished output of robustgen")
    manifest = read_object(root / MANIFEST)
    if missing := {"complete", "config", "digest", "images", "kind", "source"} - manifest.keys():
        raise OutputError(f"{root / MANIFEST} is none of robustgen's: it has no {min(missing)!r}")
    return manifest


def _unfinished(manifest: dict[str, Any], digest: str) -> Iterator[Finding]:
    if not manifest["complete"]:
        yield Finding("unfinished", MANIFEST, f": not all of the {manifest['images']} images have all files")
    if manifest["digest"] != digest:
        yield Finding("changed", MANIFEST, f": the sums give the digest {digest}, not {manifest['digest']}")


def _compared(root: Path, wanted: dict[str, str], jobs: int) -> list[Finding]:
    def check(path: str) -> Finding | None:
        try:
            if file_digest(root / path) == wanted[path]:
                return None
        except FileNotFoundError:
            return Finding("missing", path)
        except OSError as error:
            return Finding("changed", path, f": cannot be read: {error.strerror}")
        return Finding("changed", path)

    with ThreadPoolExecutor(jobs) as pool:
        findings = [finding for finding in pool.map(check, wanted, chunksize=64) if finding]
    sizes = _sizes(root, {finding.path for finding in findings if finding.kind == "changed"})
    return [_truncated(root, finding, sizes.get(finding.path)) for finding in findings]


def _truncated(root: Path, finding: Finding, size: int | None) -> Finding:
    """`finding`, called truncated where the file is shorter than the `size` that was written."""
    if size is None or not (root / finding.path).is_file() or (root / finding.path).stat().st_size >= size:
        return finding
    return Finding("truncated", finding.path)


def _sizes(root: Path, paths: set[str]) -> dict[str, int]:
    """The sizes that were recorded of the files at `paths`."""
    if not paths:
        return {}
    state = State(root)
    recorded = (w for receipt in state.receipts() for files in receipt.files.values() for w in files)
    files = (each for each in recorded if isinstance(each, WrittenFile))
    return {each.path: each.size for each in (*files, *state.assembled_files()) if each.path in paths}


def _changed_cards(root: Path, cards: Mapping[str, bytes]) -> Iterator[Finding]:
    """The files about the set that do not say what the manifest gives."""
    for name, data in cards.items():
        if not (root / name).is_file():
            yield Finding("missing", name)
        elif (root / name).read_bytes() != data:
            yield Finding("changed", name)


def _extra(root: Path, wanted: Collection[str]) -> Iterator[Finding]:
    checksums = {SUMS, FRAMES}
    own = {MANIFEST, ERRORS}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != STATE]
        here = Path(folder).relative_to(root).as_posix()
        prefix = "" if here == "." else f"{here}/"
        for name in files:
            if name not in checksums and prefix + name not in wanted and prefix + name not in own:
                yield Finding("extra", prefix + name)


# --- against the source --------------------------------------------------------------------------


def _made_anew(root: Path, manifest: dict[str, Any], wanted: dict[str, str], deep: str) -> Iterator[Finding]:
    """Make a random sample of images, or all, once more from the source and compare."""
    given = manifest["config"].get("source")
    # What was given may have been relative to a folder that is not the current one.
    source = given if given is None or Path(given).is_absolute() else manifest["source"]["location"]
    content = manifest["config"] | {"output": str(root), "source": source}
    plan = _planned_anew(manifest["kind"], content, str(root / MANIFEST))
    arms = tuple(arm for arm in plan.recipe.all_arms() if arm.folder in manifest.get("arms", ()))
    plan = replace(plan, arms=arms or plan.arms)
    numbered = list(enumerate(plan.keys))
    for index, key in _sample(numbered, deep):
        yield from _image_anew(root, plan, index, key, wanted)


def _image_anew(root: Path, plan: Any, index: int, key: str, sums: dict[str, str]) -> Iterator[Finding]:
    shared: dict[str, Any] = {}
    try:
        image = plan.recipe.prepare(plan.source.load(key))
        for arm in plan.arms:
            pixels = plan.recipe.make(arm, key, image, shared)
            for path, detail in plan.writer.differences(root, arm, index, key, pixels, sums):
                yield Finding("differs", path, detail)
    except ImageError as error:
        yield Finding("differs", key, f": {error}")


def _planned_anew(title: str, content: dict[str, Any], name: str) -> Any:
    """The plan of a set of the kind called `title`, made from the choices that the file `name` holds."""
    from robustgen.generation.plan import plan_benchmark

    if title in TITLES:
        return plan_benchmark(check(content, name), TITLES[title].kind)
    if title == EQUALISED:
        from robustgen import preprocess

        return preprocess.plan_clahe(check(content, name, None, preprocess.ClaheChoices))
    if title == ICONS:
        from robustgen.icons import icon_set

        return icon_set.plan_icons(check(content, name, None, icon_set.IconChoices))
    if title == AUGMIX:
        from robustgen.augmentation import training_copies

        return training_copies.plan_copies(check(content, name, None, training_copies.AugMixChoices))
    raise OutputError(f"{name}: kind: sets of the kind {title!r} cannot be made anew")


def _sample(numbered: list[tuple[int, str]], deep: str) -> list[tuple[int, str]]:
    if deep == "all":
        return numbered
    if not deep.isdecimal() or int(deep) < 1:
        raise ArgumentError(f"--deep: must be a number of images, or all, not {deep!r}")
    # Seeded by the system: another sample each time finds more.
    return random.sample(numbered, min(int(deep), len(numbered)))


# --- against another output ----------------------------------------------------------------------


def _digests(root: Path) -> dict[str, str]:
    """Every file below `root`, POSIX path, with its digest, but for hidden files and those about the set."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    named = {path.relative_to(root).as_posix(): path for path in files}
    about = {MANIFEST, ERRORS, KEYS}
    return {
        name: file_digest(path)
        for name, path in named.items()
        if name not in about and not any(part.startswith(".") for part in Path(name).parts)
    }


def _different(root: Path, other: Path, paths: Iterable[str]) -> Iterator[Finding]:
    """Findings for the `paths` at which two outputs differ: of videos, whether their frames do."""
    ours, theirs = _listed(root, FRAMES), _listed(other, FRAMES)
    for path in paths:
        same = ", with the same frames" * (path in ours and ours[path] == theirs.get(path))
        yield Finding("differs", path, f": from {other}{same}")


def _against(root: Path, wanted: dict[str, str], digest: str, other: str) -> Iterable[Finding]:
    if Path(other).is_dir():
        # A published set has no sums; its files speak for themselves.
        theirs = _listed(Path(other)) or _digests(Path(other))
        if not wanted.keys() & theirs.keys():
            raise ArgumentError(f"--against: {other} holds no {SUMS} and none of these files")
        return [
            *(Finding("missing", path, f": is in {other}") for path in theirs.keys() - wanted.keys()),
            *(Finding("extra", path, f": is not in {other}") for path in wanted.keys() - theirs.keys()),
            *_different(root, Path(other), [p for p in wanted.keys() & theirs if wanted[p] != theirs[p]]),
        ]
    if len(other) != 64 or set(other) - set("0123456789abcdef"):
        raise ArgumentError(f"--against: {other!r} is neither a folder nor a dataset digest")
    return [] if other == digest else [Finding("differs", ".", f": the digest is {digest}, not {other}")]
