"""The papers of a finished output: `SHA256SUMS` in every folder, and `dataset.json` at the root.

They are compiled from the journals alone, so that a run that was cut off, or the
merged parts of several machines, get the same papers as an undisturbed run.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from robustgen.errors import OutputError
from robustgen.output.files import (
    COMPANIONS,
    ERRORS,
    FRAMES,
    MANIFEST,
    STATE,
    SUMS,
    Written,
    temporary_folder,
    write_whole,
)
from robustgen.output.journal import Receipt, read_journals, sync_disk


def escaped(path: str) -> tuple[str, str]:
    """Prefix and path as `sha256sum` writes them, which marks lines whose names it had to escape.

    Carriage returns stay as they are: releases before coreutils 9 do not know them escaped, and all take
    them as they are.
    """
    if not any(c in path for c in "\\\n"):
        return "", path
    return "\\", path.replace("\\", "\\\\").replace("\n", "\\n")


def read_sums(path: Path) -> dict[str, str]:
    """File name, relative to the folder of the sums, to digest."""
    sums = {}
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for line in file:
            digest, _, name = line.rstrip("\n").partition("  ")
            if digest.startswith("\\"):
                name = (
                    name.replace("\\\\", "\0").replace("\\n", "\n").replace("\\r", "\r").replace("\0", "\\")
                )
            sums[name] = digest.removeprefix("\\")
    return sums


def sums_files(root: Path, name: str = SUMS) -> list[Path]:
    """All the `SHA256SUMS` of an output, in order; or the files of another `name` beside them."""
    found = (path for depth in ("", "*/", "*/*/") for path in root.glob(f"{depth}{name}"))
    # The frames of an image that is called so lie in a folder.
    return sorted(path for path in found if path.is_file())


def dataset_digest(root: Path) -> str:
    """One SHA-256 for all files of an output: that of its `SHA256SUMS` files and where they are."""
    total = hashlib.sha256()
    for path in sums_files(root):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{digest}  {path.relative_to(root).as_posix()}\n".encode())
    return total.hexdigest()


def write_papers(root: Path) -> dict[str, Any]:
    """Compile and write the sums and `dataset.json` of the output at `root`, from its journals.

    Returns
    -------
    dict
        The manifest; its ``"complete"`` tells whether every image of the plan has all its files.

    Raises
    ------
    OutputError
        What the output knows of itself is damaged.
    """
    about, settings = (read_object(root / STATE / name) for name in ("about.json", "settings.json"))
    books = _Books(root, about["arrays"])
    for folder, written in books.by_folder():
        _write_sums(root, folder, written)
        books.count(written)
    manifest: dict[str, Any] = about | {
        "settings": settings,
        "counts": books.counts,
        "failures": _count_failures(root),
        "complete": books.complete(about["images"], frozenset(about["arms"])),
        "digest": dataset_digest(root),
    }
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    # Where there is a manifest, a run takes the sums for written; so they must outlive a power cut too.
    sync_disk(root)
    write_whole(root, MANIFEST, text.encode(), durable=True)
    return manifest


def _count_failures(root: Path) -> int:
    try:
        return len((root / ERRORS).read_bytes().splitlines())
    except FileNotFoundError:
        return 0


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in the file at `path`.

    Raises
    ------
    OutputError
        The file is damaged, or not robustgen's.
    """
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise OutputError(f"{path} is damaged: {error}") from error
    if not isinstance(content, dict):
        raise OutputError(f"{path} is damaged: it holds no object")
    return content


def _write_sums(root: Path, folder: str, written: dict[str, Written]) -> None:
    prefix = f"{folder}/" if folder else ""
    lines, frames = [], []
    for path in sorted(written):
        mark, name = escaped(path.removeprefix(prefix))
        lines.append(f"{mark}{written[path].sha256}  {name}\n")
        if written[path].frames:
            frames.append(f"{mark}{written[path].frames}  {name}\n")
    write_whole(root, f"{prefix}{SUMS}", "".join(lines).encode("utf-8", "surrogateescape"))
    if frames:
        write_whole(root, f"{prefix}{FRAMES}", "".join(frames).encode("utf-8", "surrogateescape"))


class _Books:
    """What the journals of an output add up to."""

    def __init__(self, root: Path, arrays: list[str]) -> None:
        self.counts = {"files": 0, "bytes": 0}
        self._root, self._array_names = root, arrays
        # Most images have the same arms; one object serves them all.
        self._known: dict[frozenset[str], frozenset[str]] = {}
        # Of each image, its size and the folders of the arms that are done.
        self._done: dict[str, tuple[int, frozenset[str]]] = {}

    def by_folder(self) -> Iterator[tuple[str, dict[str, Written]]]:
        """The files of each folder; spooled to disk on the way, because a full set has millions."""
        if self._array_names:
            for receipt in read_journals(self._root / STATE):
                self._take_note(receipt)
            yield "", self._arrays()
            return
        for folder, spool in self._spooled().items():
            with spool.open(encoding="utf-8") as lines:
                written = (Written(*json.loads(line)) for line in lines)
                yield folder, {each.path: each for each in written}

    def count(self, written: dict[str, Written]) -> None:
        """Add files to the totals."""
        self.counts["files"] += len(written)
        self.counts["bytes"] += sum(each.size for each in written.values())

    def complete(self, images: int, folders: frozenset[str]) -> bool:
        """Whether `images` images have what all `folders` ask for, and all arrays are finished."""
        finished = all((self._root / name).exists() for name in self._array_names)
        return finished and sum(done >= folders for _, done in self._done.values()) >= images

    def _take_note(self, receipt: Receipt) -> None:
        size, before = self._done.get(receipt.key, (receipt.size, frozenset()))
        # What was made of an image before it changed is no longer there.
        done = (before if size == receipt.size else frozenset()).union(receipt.files)
        self._done[receipt.key] = receipt.size, self._known.setdefault(done, done)

    def _receipts(self) -> Iterator[Receipt]:
        """The receipts whose files are still there."""
        latest = {receipt.key: receipt.size for receipt in read_journals(self._root / STATE)}
        for receipt in read_journals(self._root / STATE):
            self._take_note(receipt)
            if receipt.size == latest[receipt.key]:
                yield receipt

    def _spooled(self) -> dict[str, Path]:
        folder = temporary_folder(self._root) / "sums"
        folder.mkdir(parents=True, exist_ok=True)
        spools: dict[str, IO[str]] = {}
        with ExitStack() as stack:
            for receipt in self._receipts():
                for arm, files in receipt.files.items():
                    if arm not in spools:
                        path = folder / f"{len(spools)}.jsonl"
                        spools[arm] = stack.enter_context(path.open("w", encoding="utf-8"))
                    spools[arm].writelines(json.dumps(written) + "\n" for written in files)
        return {arm: Path(spool.name) for arm, spool in spools.items()}

    def _arrays(self) -> dict[str, Written]:
        """The finished arrays, and the small files that go with them, as they were when they were written."""
        arrays = {}
        for name in (*self._array_names, *COMPANIONS):
            record = self._root / STATE / "arrays" / f"{name}.json"
            if record.exists():
                held = json.loads(record.read_bytes())
                arrays[name] = Written(name, held["size"], held["sha256"])
        return arrays


def source_digest(sizes: Mapping[str, int]) -> str:
    """SHA-256 of the sorted source keys and the bytes of each image."""
    digest = hashlib.sha256()
    for key in sorted(sizes):
        digest.update(f"{sizes[key]} {key}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
