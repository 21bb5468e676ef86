"""The files of an output against its checksums, folder by folder, so that memory stays as it is."""

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from robustgen.output.files import ERRORS, FRAMES, MANIFEST, STATE, SUMS, stream_digest
from robustgen.output.manifest import read_sums, sums_files
from robustgen.output.records import WrittenFile
from robustgen.output.state import State
from robustgen.regular_file import open_regular
from robustgen.verify.findings import Finding

_AT_ONCE = 1024
_VIDEO = ".mp4"


@dataclass
class Contents:
    """What the files of an output are found to be.

    Attributes
    ----------
    findings : list of Finding
    counts : dict
        Of each folder with checksums: the files that they list, and the bytes that these have.
    """

    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """Files that the checksums list."""
        return sum(files for files, _ in self.counts.values())


def list_folders(root: Path) -> list[str]:
    """The folders that have checksums, as prefixes of paths, in order."""
    folders = (path.parent.relative_to(root).as_posix() for path in sums_files(root))
    return ["" if folder == "." else f"{folder}/" for folder in folders]


def read_listed(root: Path, prefix: str, name: str = SUMS) -> dict[str, str]:
    """Path below `root` to digest of all that the checksums in one folder list; nothing if it has none."""
    path = root / f"{prefix}{name}"
    listed = read_sums(path) if path.is_file() else {}
    return {prefix + inside: digest for inside, digest in listed.items()}


def check_contents(root: Path, jobs: int, cards: Mapping[str, bytes] | None = None) -> Contents:
    """Compare all files with the checksums, and look for what they do not list.

    Parameters
    ----------
    root : Path
    jobs : int
        Threads that read files.
    cards : mapping of str to bytes, optional
        Files about the set that need not be listed, as they follow from its manifest.
    """
    contents, cards = Contents(), cards or {}
    contents.findings += _check_cards(root, cards)
    folders = list_folders(root)
    with ThreadPoolExecutor(jobs) as pool:
        for prefix in dict.fromkeys(["", *folders]):
            listed = read_listed(root, prefix)
            inside = {
                path: digest for path, digest in listed.items() if _is_inside(path.removeprefix(prefix))
            }
            for path in listed.keys() - inside.keys():
                contents.findings.append(
                    Finding("changed", prefix + SUMS, f": names {path!r}, which lies outside")
                )
            contents.counts[prefix] = len(inside), _check_listed(root, inside, pool, contents.findings)
            contents.findings += _check_frames(root, prefix, inside)
            contents.findings += _find_unlisted(root, prefix, {*inside, *cards}, frozenset(folders))
    _tell_truncated(root, contents.findings)
    return contents


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts


# --- what is listed --------------------------------------------------------------------------------


def _check_listed(
    root: Path, listed: Mapping[str, str], pool: ThreadPoolExecutor, findings: list[Finding]
) -> int:
    """Add what is wrong with the files to `findings`; return their bytes."""

    def check(path: str) -> tuple[int, Finding | None]:
        return _check_file(root, path, listed[path])

    paths, total = iter(listed), 0
    while some := list(islice(paths, _AT_ONCE)):
        for size, finding in pool.map(check, some):
            total += size
            findings += [finding] if finding else []
    return total


def _check_file(root: Path, path: str, digest: str) -> tuple[int, Finding | None]:
    try:
        with open_regular(root / path) as file:
            size = os.fstat(file.fileno()).st_size
            same = stream_digest(file) == digest
    except (FileNotFoundError, NotADirectoryError):
        return 0, Finding("missing", path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return 0, Finding("changed", path, f": cannot be read: {reason}")
    return size, None if same else Finding("changed", path)


def _check_frames(root: Path, prefix: str, listed: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the digests of frames are there, of the videos that there are."""
    videos = {path for path in listed if path.endswith(_VIDEO)}
    if not videos:
        return
    if not (root / f"{prefix}{FRAMES}").is_file():
        yield Finding("missing", prefix + FRAMES)
    elif read_listed(root, prefix, FRAMES).keys() != videos:
        yield Finding("changed", prefix + FRAMES, f": does not list the videos of {SUMS}")


def _check_cards(root: Path, cards: Mapping[str, bytes]) -> Iterator[Finding]:
    """Whether the files about the set say what its manifest gives."""
    for name, data in cards.items():
        _, finding = _check_file(root, name, hashlib.sha256(data).hexdigest())
        if finding:
            yield finding


def _tell_truncated(root: Path, findings: list[Finding]) -> None:
    """Call those changed files truncated that are shorter than what was written."""
    changed = {finding.path: place for place, finding in enumerate(findings) if finding.kind == "changed"}
    if not changed:
        return
    state = State(root)
    recorded = (each for receipt in state.receipts() for files in receipt.files.values() for each in files)
    files = (each for each in recorded if isinstance(each, WrittenFile))
    sizes = {each.path: each.size for each in (*files, *state.assembled_files()) if each.path in changed}
    for path, size in sizes.items():
        if (root / path).is_file() and (root / path).stat().st_size < size:
            findings[changed[path]] = Finding("truncated", path)


# --- what is not -----------------------------------------------------------------------------------


def _find_unlisted(
    root: Path, prefix: str, listed: Collection[str], folders: frozenset[str]
) -> Iterator[Finding]:
    """What lies in one folder, and below it as far as no other folder has checksums, and is not listed."""
    for entry in _walk(root, prefix, folders):
        path = entry.path.removeprefix(f"{root}/")
        if entry.is_symlink():
            yield Finding("changed" if path in listed else "extra", path, ": is a link")
        elif entry.is_dir():
            yield Finding("extra", f"{path}/", ": is an empty folder")
        elif path not in listed and not _is_own(path, prefix, folders, entry):
            yield Finding("extra", path)


def _is_own(path: str, prefix: str, folders: frozenset[str], entry: "os.DirEntry[str]") -> bool:
    """Whether a file that is not listed is one about the set, where it belongs."""
    checksums = {prefix + SUMS, prefix + FRAMES} if prefix in folders else set()
    return entry.is_file() and path in {MANIFEST, ERRORS} | checksums


def _walk(root: Path, prefix: str, folders: frozenset[str]) -> Iterator["os.DirEntry[str]"]:
    """Files, links and empty folders below `prefix`, but for the state and `folders` of their own."""
    with os.scandir(f"{root}/{prefix}") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            inside = f"{prefix}{entry.name}/"
            if not entry.is_symlink() and (inside in folders or inside == f"{STATE}/"):
                continue
            if entry.is_dir(follow_symlinks=False) and not _is_empty(entry.path):
                yield from _walk(root, inside, folders)
            else:
                yield entry


def _is_empty(folder: str) -> bool:
    with os.scandir(folder) as entries:
        return not any(entries)
