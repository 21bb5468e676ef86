"""One output against another, or against a dataset digest."""

from collections.abc import Iterator
from pathlib import Path

from robustgen.errors import ArgumentError
from robustgen.output.files import ERRORS, FRAMES, MANIFEST, STATE, SUMS, file_digest
from robustgen.sources.sample_names import KEYS
from robustgen.verify.contents import list_folders, read_listed
from robustgen.verify.findings import Finding


def compare_outputs(root: Path, other: str, digest: str) -> list[Finding]:
    """How the output at `root`, which has the dataset `digest`, differs from the `other` folder or digest.

    Raises
    ------
    ArgumentError
        `other` is neither, or has nothing in common with the output.
    """
    if Path(other).is_dir():
        return _compare_folders(root, Path(other))
    if len(other) != 64 or set(other) - set("0123456789abcdef"):
        raise ArgumentError(f"--against: {other!r} is neither a folder nor a dataset digest")
    return [] if other == digest else [Finding("differs", ".", f": the digest is {digest}, not {other}")]


def _compare_folders(root: Path, other: Path) -> list[Finding]:
    """Folder by folder, so that memory does not grow with the set."""
    own, others = list_folders(root), list_folders(other)
    # A published set has no sums; its files speak for themselves.
    folders = dict.fromkeys([*own, *others] if others else own)
    findings: list[Finding] = []
    common = False
    for prefix in folders:
        ours = read_listed(root, prefix)
        theirs = read_listed(other, prefix) if others else _digest_files(other, prefix)
        common = common or not ours.keys().isdisjoint(theirs)
        findings += _compare(root, other, prefix, ours, theirs)
    if not common:
        raise ArgumentError(f"--against: {other} holds no {SUMS} and none of these files")
    if not others:
        known = tuple(own)
        beside = (path for path in _list_files(other, "") if not path.startswith(known))
        findings += [Finding("missing", path, f": is in {other}") for path in beside]
    return findings


def _compare(
    root: Path, other: Path, prefix: str, ours: dict[str, str], theirs: dict[str, str]
) -> Iterator[Finding]:
    yield from (Finding("missing", path, f": is in {other}") for path in theirs.keys() - ours.keys())
    yield from (Finding("extra", path, f": is not in {other}") for path in ours.keys() - theirs.keys())
    different = [path for path in ours.keys() & theirs if ours[path] != theirs[path]]
    if different:
        our_frames, their_frames = (read_listed(each, prefix, FRAMES) for each in (root, other))
        for path in different:
            # Of videos, whether their frames differ too.
            same = path in our_frames and our_frames[path] == their_frames.get(path)
            yield Finding("differs", path, f": from {other}" + ", with the same frames" * same)


def _digest_files(root: Path, prefix: str) -> dict[str, str]:
    return {path: file_digest(root / path) for path in _list_files(root, prefix)}


def _list_files(root: Path, prefix: str) -> Iterator[str]:
    """Files below `prefix`, POSIX path below `root`, but for hidden files and those about the set."""
    about = {MANIFEST, ERRORS, KEYS, STATE}
    for path in sorted((root / prefix).rglob("*")):
        name = path.relative_to(root).as_posix()
        if (
            path.is_file()
            and name not in about
            and not any(part.startswith(".") for part in Path(name).parts)
        ):
            yield name
