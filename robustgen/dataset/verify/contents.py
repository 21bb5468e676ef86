"""Comparison of an output with its checksums, folder by folder to limit memory."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from robustgen.dataset.croissant import CROISSANT
from robustgen.dataset.manifest import list_sums
from robustgen.dataset.names import ERRORS, FRAMES, MANIFEST, STATE, SUMS
from robustgen.dataset.outputs import measure_file
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
    contents, cards, folders = Contents(), cards or {}, list_folders(store)
    about = {MANIFEST, ERRORS, CROISSANT, *cards}
    about |= {prefix + name for prefix in folders for name in (SUMS, FRAMES)}
    irregular = {path: what for path, what in store.list_irregular() if not path.startswith(f"{STATE}/")}
    for path, data in cards.items():
        contents.findings += _check_file(store, path, hashlib.sha256(data).hexdigest())[1]
    for prefix in dict.fromkeys(["", *folders]):
        listed = read_listed(store, prefix)
        others = (f"{STATE}/", *(each for each in folders if each.startswith(prefix) and each != prefix))
        paths = (entry.path for entry in store.list(prefix.rstrip("/")))
        there = {path for path in paths if path not in about and not path.startswith(others)}
        contents.findings += [Finding("missing", path) for path in listed.keys() - there]
        contents.findings += [Finding("extra", path) for path in there - listed.keys() - irregular.keys()]
        for path, what in irregular.items():
            if path.startswith(prefix) and not path.startswith(others):
                kind = "changed" if path in listed else "extra"
                contents.findings.append(Finding(kind, path, f": {what}"))
        regular, total = [(path, listed[path]) for path in listed if path in there - irregular.keys()], 0
        for size, findings in prefetch(lambda each: _check_file(store, *each), regular, jobs):
            total += size
            contents.findings += findings
        contents.counts[prefix] = len(listed), total
        contents.findings += _check_frames(store, prefix, listed)
    _name_truncated(store, contents.findings)
    return contents


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


def _check_frames(store: Store, prefix: str, listed: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding if frame digests of the videos are missing or incomplete."""
    videos = {path for path in listed if path.endswith(_VIDEO)}
    if videos and read_listed(store, prefix, FRAMES).keys() != videos:
        yield Finding("changed", prefix + FRAMES, f": does not list the videos of {SUMS}")


def _name_truncated(store: Store, findings: list[Finding]) -> None:
    """Mark changed files as truncated if they are shorter than their records say."""
    changed = {finding.path: place for place, finding in enumerate(findings) if finding.kind == "changed"}
    if not changed:
        return
    for _, record in OutputState(store).read_records():
        for file in record.files if record else ():
            if file.path in changed and -1 < next(store.sizes([file.path])) < file.size:
                findings[changed[file.path]] = Finding("truncated", file.path)
