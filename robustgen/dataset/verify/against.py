"""Comparison of an output with another, or with a dataset digest."""

from collections.abc import Iterator
from pathlib import Path

from robustgen.dataset.names import ERRORS, FRAMES, MANIFEST, STATE, SUMS
from robustgen.dataset.outputs import file_digest
from robustgen.dataset.verify.contents import list_folders, read_listed
from robustgen.dataset.verify.findings import Finding
from robustgen.errors import ArgumentError
from robustgen.sources.sample_names import KEYS
from robustgen.storage import Store, open_store


def compare_outputs(store: Store, other: str, digest: str) -> list[Finding]:
    """Return the differences of an output with the dataset `digest` from the `other` output or digest.

    Raises
    ------
    ArgumentError
        `other` is neither a folder nor a digest, or has no files in common with the output.
    """
    theirs = open_store(other)
    if next(iter(theirs.list()), None) or (theirs.is_local and Path(theirs.location).is_dir()):
        return _compare_folders(store, theirs)
    if len(other) != 64 or set(other) - set("0123456789abcdef"):
        raise ArgumentError(f"--against: {other!r} is neither a folder nor a dataset digest")
    return [] if other == digest else [Finding("differs", ".", f": the digest is {digest}, not {other}")]


def _compare_folders(store: Store, other: Store) -> list[Finding]:
    """Return the differences, compared folder by folder to limit memory."""
    own, others = list_folders(store), list_folders(other)
    findings: list[Finding] = []
    common = False
    for prefix in dict.fromkeys([*own, *others]):
        ours = read_listed(store, prefix)
        if others:
            theirs = read_listed(other, prefix)
        else:
            # A published set has no checksums, so compute them from its files.
            theirs = {path: file_digest(other, path) for path in _list_files(other, prefix)}
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
    if different:
        our_frames, their_frames = (read_listed(each, prefix, FRAMES) for each in (store, other))
        for path in different:
            # Videos can differ in bytes but have the same frames.
            same = path in our_frames and our_frames[path] == their_frames.get(path)
            yield Finding("differs", path, f": from {place}" + ", with the same frames" * same)


def _list_files(store: Store, prefix: str) -> Iterator[str]:
    """Yield the files below `prefix`, except for hidden files and files about the set."""
    about = {MANIFEST, ERRORS, KEYS, STATE}
    for path in (entry.path for entry in store.list(prefix.rstrip("/"))):
        if path not in about and not any(part.startswith(".") for part in path.split("/")):
            yield path
