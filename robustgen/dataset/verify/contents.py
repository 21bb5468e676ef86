"""Comparison of an output with its checksums, folder by folder to limit memory."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from robustgen.dataset.croissant import CROISSANT
from robustgen.dataset.manifest import list_sums
from robustgen.dataset.names import ERRORS, FRAMES, MANIFEST, STATE, SUMS
from robustgen.dataset.outputs import measure_file
from robustgen.dataset.records import find_folder
from robustgen.dataset.state import OutputState
from robustgen.dataset.verify.findings import Finding
from robustgen.formats.prefetch import prefetch
from robustgen.name_lists import read_sums
from robustgen.storage import Store

_VIDEO = ".mp4"


@dataclass
class Contents:
    """Result of a check of the files of an output.

    Attributes
    ----------
    findings : list of Finding
    counts : dict
        Folder with checksums to the number and the bytes of the files that they list.
    """

    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """Return the number of files that the checksums list."""
        return sum(files for files, _ in self.counts.values())


def list_folders(store: Store) -> list[str]:
    """Return the sorted folders with checksums, as path prefixes."""
    return [path.removesuffix(SUMS) for path in list_sums(store)]


def read_listed(store: Store, prefix: str, name: str = SUMS) -> dict[str, str]:
    """Return path to digest from the checksums in one folder; empty if it has none."""
    try:
        listed = read_sums(store.read(f"{prefix}{name}"))
    except FileNotFoundError:
        return {}
    return {prefix + inside: digest for inside, digest in listed.items()}


def check_contents(store: Store, jobs: int, cards: Mapping[str, bytes] | None = None) -> Contents:
    """Compare all files with the checksums, and find files that they do not list.

    Parameters
    ----------
    store : Store
    jobs : int
        Number of threads that read files.
    cards : mapping of str to bytes, optional
        Files about the set that need no checksums, because they follow from its manifest.
    """
    contents, cards = Contents(), cards or {}
    for name, data in cards.items():
        _, finding = _check_file(store, name, hashlib.sha256(data).hexdigest())
        contents.findings += [finding] if finding else []
    folders = list_folders(store)
    for prefix in dict.fromkeys(["", *folders]):
        listed = read_listed(store, prefix)
        inside = {
            path: digest
            for path, digest in listed.items()
            if path.removeprefix(prefix)[:1] not in ("", "/") and ".." not in path.split("/")
        }
        for path in listed.keys() - inside.keys():
            contents.findings.append(
                Finding("changed", prefix + SUMS, f": names {path!r}, which is outside the folder")
            )
        total = 0
        for size, finding in prefetch(lambda listed: _check_file(store, *listed), inside.items(), jobs):
            total += size
            contents.findings += [finding] if finding else []
        contents.counts[prefix] = len(inside), total
        contents.findings += _check_frames(store, prefix, inside)
    contents.findings += _find_unlisted(store, folders, cards)
    _name_truncated(store, contents.findings)
    return contents


def _check_file(store: Store, path: str, digest: str) -> tuple[int, Finding | None]:
    try:
        size, found = measure_file(store, path)
    except (FileNotFoundError, NotADirectoryError):
        return 0, Finding("missing", path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return 0, Finding("changed", path, f": cannot be read: {reason}")
    return size, None if found == digest else Finding("changed", path)


def _check_frames(store: Store, prefix: str, listed: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding if frame digests of the videos are missing or incomplete."""
    videos = {path for path in listed if path.endswith(_VIDEO)}
    if not videos:
        return
    if not store.exists(f"{prefix}{FRAMES}"):
        yield Finding("missing", prefix + FRAMES)
    elif read_listed(store, prefix, FRAMES).keys() != videos:
        yield Finding("changed", prefix + FRAMES, f": does not list the videos of {SUMS}")


def _find_unlisted(store: Store, prefixes: Collection[str], cards: Collection[str]) -> Iterator[Finding]:
    """Yield files that no checksums list, links, and empty folders."""
    own = {MANIFEST, ERRORS, CROISSANT, *cards}
    own |= {prefix + name for prefix in prefixes for name in (SUMS, FRAMES)}
    folders = {prefix.rstrip("/") for prefix in prefixes}

    def list_in(folder: str) -> dict[str, str]:
        return read_listed(store, f"{folder}/" if folder else "")

    outside = (entry.path for entry in store.list() if not entry.path.startswith(f"{STATE}/"))
    irregular = dict(store.list_irregular())
    for folder, paths in groupby(outside, key=lambda path: find_folder(path, folders)):
        known = own | irregular.keys() | list_in(folder).keys()
        yield from (Finding("extra", path) for path in paths if path not in known)
    for path, what in irregular.items():
        if not path.startswith(f"{STATE}/"):
            is_known = path in list_in(find_folder(path, folders))
            yield Finding("changed" if is_known else "extra", path, f": {what}")


def _name_truncated(store: Store, findings: list[Finding]) -> None:
    """Mark changed files as truncated if they are shorter than their records say."""
    changed = {finding.path: place for place, finding in enumerate(findings) if finding.kind == "changed"}
    if not changed:
        return
    for _, record in OutputState(store).read_records():
        for file in record.files if record else ():
            if file.path in changed and -1 < next(store.sizes([file.path])) < file.size:
                findings[changed[file.path]] = Finding("truncated", file.path)
