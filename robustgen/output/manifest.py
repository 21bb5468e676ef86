"""What a finished output says of itself: `SHA256SUMS` in every folder, `errors.jsonl` and `dataset.json`.

All is compiled from the state folder alone, so that a run that was cut off, or the
merged parts of several machines, get the same checksums and manifest as an
undisturbed run.
"""

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO, Any

from robustgen.name_lists import escape_name, unescape_name
from robustgen.output.failures import Failures, write_errors
from robustgen.output.files import FRAMES, MANIFEST, SUMS, file_digest, temporary_folder, write_whole
from robustgen.output.journal import sync_disk
from robustgen.output.records import Receipt, WrittenFile
from robustgen.output.state import State
from robustgen.output.writers import FORMATS
from robustgen.regular_file import open_regular


def read_sums(path: Path) -> dict[str, str]:
    """File name, relative to the folder of the sums, to digest."""
    sums = {}
    with open_regular(path) as binary, io.TextIOWrapper(binary, "utf-8", "surrogateescape", "\n") as file:
        for line in file:
            digest, _, name = line.rstrip("\n").partition("  ")
            if digest.startswith("\\"):
                name = unescape_name(name)
            sums[name] = digest.removeprefix("\\")
    return sums


def sums_files(root: Path, name: str = SUMS) -> list[Path]:
    """All the `SHA256SUMS` of an output, in order; or the files of another `name` beside them."""
    found = (path for depth in ("", "*/", "*/*/") for path in root.glob(f"{depth}{name}"))
    # The frames of an image that is called so lie in a folder; a link may lead anywhere.
    return sorted(path for path in found if path.is_file() and not _is_by_link(path, root))


def _is_by_link(path: Path, root: Path) -> bool:
    return any(
        place.is_symlink() for place in (path, *path.parents) if place != root and root in place.parents
    )


def dataset_digest(root: Path) -> str:
    """One SHA-256 for all files of an output: that of its `SHA256SUMS` files and where they are."""
    return _digest_all(root, sums_files(root))


def frames_digest(root: Path) -> str | None:
    """The same of the `FRAMES.SHA256` files; None where there are none."""
    paths = sums_files(root, FRAMES)
    return _digest_all(root, paths) if paths else None


def _digest_all(root: Path, paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in paths:
        digest = file_digest(path)
        total.update(f"{digest}  {path.relative_to(root).as_posix()}\n".encode())
    return total.hexdigest()


def write_manifest(root: Path, tally: "Tally | None" = None) -> dict[str, Any]:
    """Compile and write the checksums, `errors.jsonl` and `dataset.json` of the output at `root`.

    Parameters
    ----------
    root : Path
    tally : Tally, optional
        What its journals add up to, if they have been read already.

    Returns
    -------
    dict
        The manifest; its ``"complete"`` tells whether every image of the plan has all its files.

    Raises
    ------
    OutputError
        What the output knows of itself is damaged.
    """
    state = State(root)
    about, settings = state.about(), state.settings()
    tally = tally or Tally(root)
    write_errors(root, tally.failures)
    counts = {"files": 0, "bytes": 0}
    for folder, written in tally.by_folder(about["arms"]):
        _write_checksums(root, folder, written)
        counts["files"] += len(written)
        counts["bytes"] += sum(each.size for each in written.values())
    finished = all((root / name).exists() for name in about["arrays"])
    manifest: dict[str, Any] = about | {
        "settings": settings,
        "counts": counts,
        "failures": len(tally.failures.entries()),
        "complete": finished and tally.is_complete(about["images"], frozenset(about["arms"])),
        "digest": dataset_digest(root),
    }
    if frames := frames_digest(root):
        manifest["frames_digest"] = frames
    for name, data in card_files(manifest).items():
        write_whole(root, name, data)
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    # Where there is a manifest, a run takes the sums for written; so they must outlive a power cut too.
    sync_disk(root)
    write_whole(root, MANIFEST, text.encode(), durable=True)
    return manifest


def card_files(manifest: Mapping[str, Any]) -> Mapping[str, bytes]:
    """Files that tell people of the set, as its format asks for them: names, below the output, to bytes."""
    row = FORMATS.get(manifest["settings"].get("output", {}).get("format", ""))
    return row.card(manifest) if row and row.card else {}


def _write_checksums(root: Path, folder: str, written: Mapping[str, WrittenFile]) -> None:
    prefix = f"{folder}/" if folder else ""
    lines, frames = [], []
    for path in sorted(written):
        mark, name = escape_name(path.removeprefix(prefix))
        lines.append(f"{mark}{written[path].sha256}  {name}\n")
        if written[path].frames:
            frames.append(f"{mark}{written[path].frames}  {name}\n")
    write_whole(root, f"{prefix}{SUMS}", "".join(lines).encode("utf-8", "surrogateescape"))
    if frames:
        write_whole(root, f"{prefix}{FRAMES}", "".join(frames).encode("utf-8", "surrogateescape"))


class Tally:
    """What the journals of the output at `root` add up to; they are read once, when this is made.

    Parameters
    ----------
    root : Path
    with_files : bool
        Whether `by_folder` will be asked for.

    Attributes
    ----------
    done : dict
        Of each image, its size and the folders of the arms that are done.
    failures : Failures
        Those that still stand.
    damaged : list of str
        The lines of journals that are not as they were written.
    """

    def __init__(self, root: Path, *, with_files: bool = True) -> None:
        self.done: dict[str, tuple[int, frozenset[str]]] = {}
        self.failures = Failures()
        self._state = State(root)
        # Most images have the same arms; one object serves them all.
        self._known: dict[frozenset[str], frozenset[str]] = {}
        # A full set has millions of files; they wait on the disk.
        self._spools: dict[str, Path] = {}
        self._numbers: dict[str, int] = {}
        journals = self._state.journals()
        self.damaged = journals.damaged
        if with_files:
            self._spool(journals.receipts(), temporary_folder(root) / "checksums")
        else:
            for receipt in journals.receipts():
                self._take_note(receipt)

    def _spool(self, receipts: Iterable[Receipt], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        open_spools: dict[str, IO[str]] = {}
        with ExitStack() as stack:
            for receipt in receipts:
                self._take_note(receipt)
                number = self._numbers[receipt.key]
                for arm, file in _files_by_arm(receipt):
                    if arm not in open_spools:
                        self._spools[arm] = folder / f"{len(open_spools)}.txt"
                        open_spools[arm] = stack.enter_context(_open_spool(self._spools[arm], "w"))
                    open_spools[arm].write(_spool_line(number, receipt.size, file))

    def _take_note(self, receipt: Receipt) -> None:
        size, before = self.done.get(receipt.key, (receipt.size, frozenset()))
        # What was made of an image before it changed is no longer there.
        done = (before if size == receipt.size else frozenset()).union(receipt.files)
        self.done[receipt.key] = receipt.size, self._known.setdefault(done, done)
        self.failures.take_note(receipt)
        self._numbers.setdefault(receipt.key, len(self._numbers))

    def by_folder(self, arms: Iterable[str]) -> Iterator[tuple[str, dict[str, WrittenFile]]]:
        """The files of each folder by path; what was made of images that have changed since is left out.

        Assembled files belong to the folders of the `arms` that they lie in, others to the root.
        """
        folders = set(arms)
        sizes = [self.done[key][0] for key in self._numbers]
        assembled: dict[str, dict[str, WrittenFile]] = {}
        for file in self._state.assembled_files():
            above = [parent.as_posix() for parent in PurePosixPath(file.path).parents]
            folder = next((parent for parent in above if parent in folders), "")
            assembled.setdefault(folder, {})[file.path] = file
        for folder in [*self._spools, *(assembled.keys() - self._spools.keys())]:
            yield (
                folder,
                {file.path: file for file in self._read_spool(folder, sizes)} | assembled.get(folder, {}),
            )

    def _read_spool(self, folder: str, sizes: list[int]) -> Iterator[WrittenFile]:
        if folder in self._spools:
            with _open_spool(self._spools[folder], "r") as lines:
                for number, size, file in map(_read_spool_line, lines):
                    if sizes[number] == size:
                        yield file

    def is_complete(self, images: int, folders: frozenset[str]) -> bool:
        """Whether `images` images have what all `folders` ask for."""
        return sum(done >= folders for _, done in self.done.values()) >= images


def _files_by_arm(receipt: Receipt) -> list[tuple[str, WrittenFile]]:
    """Arm's folder and record of each file; rows have no checksums of their own."""
    files = receipt.files.items()
    return [(arm, each) for arm, written in files for each in written if type(each) is WrittenFile]


def _open_spool(path: Path, mode: str) -> IO[str]:
    return path.open(mode, encoding="utf-8", errors="surrogatepass", newline="\n")


def _spool_line(number: int, size: int, file: WrittenFile) -> str:
    """A line about `file`, which was made of the image `number` when that had `size` bytes."""
    # Unlike a line feed, a zero cannot be in a name.
    path = file.path.replace("\n", "\0")
    return f"{number} {size} {file.size} {file.sha256} {file.frames} {path}\n"


def _read_spool_line(line: str) -> tuple[int, int, WrittenFile]:
    number, size, written, sha256, frames, path = line[:-1].split(" ", 5)
    return int(number), int(size), WrittenFile(path.replace("\0", "\n"), int(written), sha256, frames)


def source_digest(sizes: Mapping[str, int]) -> str:
    """SHA-256 of the sorted source keys and the bytes of each image."""
    digest = hashlib.sha256()
    for key in sorted(sizes):
        digest.update(f"{sizes[key]} {key}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
