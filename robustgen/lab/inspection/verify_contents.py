"""Comparison of an output with its checksums or another output, folder by folder to limit memory."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from robustgen.display.text import Table, format_tables
from robustgen.errors import ArgumentError
from robustgen.files.set_files import ERRORS, FRAMES, MANIFEST, MANIFEST_SUMS, NOTES, STATE, SUMS
from robustgen.files.storage import Store, open_store, prefetch
from robustgen.files.text_files import read_sums, split_names
from robustgen.sets.dataset.manifest import find_checksums, list_checksums
from robustgen.sets.dataset.outputs import file_digest, measure_file
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.sources.classes import KEYS
from robustgen.sets.sources.trees import is_video

# The names of all files of each are in memory.
_FOLDERS_AHEAD = 4


@dataclass(frozen=True, order=True)
class Finding:
    """One problem of an output.

    Attributes
    ----------
    fault : {"missing", "extra", "changed", "truncated", "differs", "damaged", "unfinished"}
    path : str
        POSIX path below the output.
    detail : str
        Details of the problem, or empty.
    """

    fault: str
    path: str
    detail: str = ""


@dataclass(frozen=True)
class Findings:
    """Result of `verify`.

    Attributes
    ----------
    problems : list of Finding
    failed : list of str
        Source images that failed when the set was created, if nothing else is missing.
    images : int
        Number of source images of the set.
    checked : int
        Number of files that the checksums list.
    remade : int
        Number of images that were recreated and compared.
    digest : str
        Digest of the data set.
    known_as : str or None
        Sentence that names the canonical set with this digest, if any.
    published : dict of str to str
        Path of each file that is one of a published set, with the name of that set.
    notes : list of str
        Sentences on the source that are no problem.
    noun : str
        Name of one item of the source: image or clip.

    Examples
    --------
    >>> import robustgen
    >>> made = robustgen.make_c("demo", corruptions="contrast", limit=1, output="out", jobs=1, quiet=True)
    >>> robustgen.verify("out").checked
    6
    """

    problems: list[Finding]
    failed: list[str]
    images: int
    checked: int
    remade: int
    digest: str
    known_as: str | None
    published: dict[str, str]
    notes: list[str]
    noun: str = "image"

    def _repr_html_(self) -> str:
        told = [f"{each.fault}: {each.path} {each.detail}".rstrip() for each in self.problems] or ["none"]
        rows = [("problem", each) for each in told]
        rows += [(f"{self.noun}s", f"{self.images:,}"), ("files checked", f"{self.checked:,}")]
        rows += [(f"{self.noun}s created again", f"{self.remade:,}")] * bool(self.remade)
        rows += [("failed", each) for each in self.failed]
        rows += [("digest", self.digest), *[("known as", self.known_as or "")] * bool(self.known_as)]
        rows += [("note", note) for note in self.notes]
        return format_tables([Table("verify", ("", ""), rows, names=2)], "html")


# --- checksums -----------------------------------------------------------------------------------


Counts = dict[str, tuple[int, int]]
"""Folder with checksums to the number and the bytes of the files that they list."""


def read_listed(store: Store, prefix: str, name: str = SUMS) -> dict[str, str]:
    """Return path to digest from the checksums in one folder; empty if it has none."""
    try:
        listed = read_sums(store.read(f"{prefix}{name}"))
    except FileNotFoundError:
        return {}
    return {prefix + inside: digest for inside, digest in listed.items()}


class _Folder(NamedTuple):
    """A folder with checksums, or the whole set: a path prefix, its files, and what is no regular file.

    Folders without checksums belong to the one above.
    """

    prefix: str
    files: set[str]
    irregular: dict[str, str]


def _divide(store: Store) -> Iterator[_Folder]:
    """Walk through a set once, and yield its folders; the state belongs to none."""
    opened = [_Folder("", set(), {})]

    def close() -> Iterator[_Folder]:
        folder = opened.pop()
        if not opened or folder.prefix + SUMS in folder.files:
            yield folder
        else:
            opened[-1].files.update(folder.files)
            opened[-1].irregular.update(folder.irregular)

    for path, what in store.walk():
        parts = path.rstrip("/").split("/")[:-1][:2]
        if parts[:1] == [STATE]:
            continue
        prefixes = [f"{'/'.join(parts[:depth])}/" for depth in range(1, len(parts) + 1)]
        while opened[-1].prefix not in ("", *prefixes):
            yield from close()
        opened += [_Folder(each, set(), {}) for each in prefixes[len(opened) - 1 :]]
        if what:
            opened[-1].irregular[path] = what
        # A link to a file counts as that file too.
        if not what or store.exists(path):
            opened[-1].files.add(path)
    while opened:
        yield from close()


def check_contents(
    store: Store, jobs: int, about: Collection[str]
) -> tuple[list[Finding], Counts, tuple[list[str], list[str]]]:
    """Compare all files with the checksums, and find files that they do not list.

    Also returns the result of `find_checksums`.

    Parameters
    ----------
    store : Store
    jobs : int
        Number of threads that read files.
    about : collection of str
        Files about the set, which these checksums do not list.
    """
    found, counts, checksums = list[Finding](), Counts(), list[str]()
    keys = split_names(store.read(KEYS)) if store.exists(KEYS) else ()

    def look(folder: _Folder) -> tuple[_Folder, dict[str, str]]:
        return folder, read_listed(store, folder.prefix)

    for (prefix, there, irregular), listed in store.map(look, _divide(store), _FOLDERS_AHEAD):
        checksums += [path for path in there if path.endswith((SUMS, FRAMES))]
        there -= {MANIFEST_SUMS, ERRORS, *about}
        if prefix + SUMS in there:
            there -= {prefix + SUMS, prefix + FRAMES}
        found += [Finding("missing", path) for path in listed.keys() - there]
        found += [Finding("extra", path) for path in there - listed.keys() - irregular.keys()]
        for path, what in irregular.items():
            found.append(Finding("changed" if path in listed else "extra", path, f": {what}"))
        regular = [each for each in listed.items() if each[0] in there and each[0] not in irregular]
        total = 0
        for size, findings in prefetch(lambda each: _check_file(store, *each), regular, jobs):
            total += size
            found += findings
        counts[prefix] = len(listed), total
        found += _check_frames(store, prefix, listed, keys)
    _name_truncated(store, found)
    return found, counts, find_checksums(checksums)


def _check_file(store: Store, path: str, digest: str) -> tuple[int, list[Finding]]:
    """Return the size of a file, and a finding if its content has another `digest`."""
    try:
        size, found = measure_file(store, path)
    except (FileNotFoundError, NotADirectoryError):
        return 0, [Finding("missing", path)]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return 0, [Finding("changed", path, f": cannot be read: {reason}")]
    return size, [Finding("changed", path)] * (found != digest)


def _check_frames(
    store: Store, prefix: str, listed: Mapping[str, str], keys: Collection[str]
) -> Iterator[Finding]:
    """Yield a finding if frame digests of the videos are missing or incomplete."""
    videos = set(filter(is_video, listed))
    # Other videos may be repeated beside the clips.
    videos = videos.intersection(f"{prefix}{key}" for key in keys) if keys else videos
    if videos and read_listed(store, prefix, FRAMES).keys() != videos:
        yield Finding("changed", prefix + FRAMES, f": does not list the videos of {SUMS}")


def _name_truncated(store: Store, findings: list[Finding]) -> None:
    """Mark changed files as truncated if they are shorter than their records say."""
    changed = {finding.path: index for index, finding in enumerate(findings) if finding.fault == "changed"}
    if not changed:
        return
    for _, record in SetLedger(store).read_records():
        for file in record.files if record else ():
            if file.path in changed and -1 < next(store.sizes([file.path])) < file.size:
                findings[changed[file.path]] = Finding("truncated", file.path)


# --- another output ------------------------------------------------------------------------------


def compare_outputs(store: Store, sums: Sequence[str], other: str, digest: str) -> list[Finding]:
    """Return the differences of an output with the dataset `digest` from the `other` output or digest.

    `sums` are the paths of its checksums.

    Raises
    ------
    ArgumentError
        `other` is neither a folder nor a digest, or has no files in common with the output.
    """
    theirs = open_store(other)
    if next(iter(theirs.list()), None) or (theirs.is_local and Path(theirs.location).is_dir()):
        return _compare_folders(store, sums, theirs)
    if len(other) != 64 or set(other) - set("0123456789abcdef"):
        raise ArgumentError(f"--against: {other!r} is neither a folder nor a dataset digest")
    return [] if other == digest else [Finding("differs", ".", f": the digest is {digest}, not {other}")]


def _compare_folders(store: Store, sums: Sequence[str], other: Store) -> list[Finding]:
    """Return the differences, compared folder by folder to limit memory."""
    own, others = ([path.removesuffix(SUMS) for path in each] for each in (sums, list_checksums(other)[0]))
    findings: list[Finding] = []
    common = False

    def look(prefix: str) -> tuple[str, dict[str, str], dict[str, str]]:
        # A published set has no checksums.
        theirs = read_listed(other, prefix) if others else dict.fromkeys(_list_files(other, prefix), "")
        return prefix, read_listed(store, prefix), theirs

    slower = store if other.is_local else other
    for prefix, ours, theirs in slower.map(look, dict.fromkeys([*own, *others]), _FOLDERS_AHEAD):
        if not others:
            digests = other.map(partial(file_digest, other), theirs)
            theirs.update(zip(theirs, [*digests], strict=True))
        common = common or not ours.keys().isdisjoint(theirs)
        findings += _compare(store, other, prefix, ours, theirs)
    if not common:
        raise ArgumentError(f"--against: {other.location} contains no {SUMS} and none of these files")
    if not others:
        known = tuple(own)
        beside = (path for path in _list_files(other, "") if not path.startswith(known))
        findings += [Finding("missing", path, f": is in {other.location}") for path in beside]
    return findings


def _compare(
    store: Store, other: Store, prefix: str, ours: dict[str, str], theirs: dict[str, str]
) -> Iterator[Finding]:
    place = other.location
    yield from (Finding("missing", path, f": is in {place}") for path in theirs.keys() - ours.keys())
    yield from (Finding("extra", path, f": is not in {place}") for path in ours.keys() - theirs.keys())
    different = [path for path in ours.keys() & theirs if ours[path] != theirs[path]]
    videos = any(map(is_video, different))
    our_frames, their_frames = (
        read_listed(each, prefix, FRAMES) if videos else {} for each in (store, other)
    )
    for path in different:
        # Videos can differ in bytes but have the same frames.
        same = path in our_frames and our_frames[path] == their_frames.get(path)
        yield Finding("differs", path, f": from {place}" + ", with the same frames" * same)


def _list_files(store: Store, prefix: str) -> Iterator[str]:
    """Yield the files below `prefix`, except for hidden files and files about the set."""
    exempt = {MANIFEST, MANIFEST_SUMS, ERRORS, NOTES, KEYS, STATE}
    for path in (entry.path for entry in store.list(prefix.rstrip("/"))):
        if path not in exempt and not any(part.startswith(".") for part in path.split("/")):
            yield path
