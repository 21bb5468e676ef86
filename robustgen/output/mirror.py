"""What a source has beside its images (annotations, lists, masks), repeated in every arm of an output.

So each arm is a complete data set, which other tools read as they read the original.
"""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from robustgen.output.files import (
    FRAMES,
    MANIFEST,
    SUMS,
    file_digest,
    move_into,
    remove_file,
    temporary_folder,
)
from robustgen.output.records import Failure, WrittenFile
from robustgen.output.state import State
from robustgen.regular_file import open_regular


@dataclass(frozen=True)
class Mirror:
    """Repeats the other files of a source.

    Attributes
    ----------
    source : Path
        A folder.
    images : frozenset of str
        POSIX paths below it of the images, which are not repeated.
    link : bool
        Whether to make hard links, where the file system can; else copies.
    """

    source: Path
    images: frozenset[str]
    link: bool

    def list_files(self) -> tuple[list[str], list[Failure]]:
        """The files to repeat, POSIX paths below the source, and what cannot be, with the reasons.

        Hidden files and folders are passed over.
        """
        names, failures = [], []
        for name, reason in sorted(self._find()):
            if reason:
                failures.append({"key": name, "reason": reason})
            else:
                names.append(name)
        return names, failures

    def _find(self) -> Iterator[tuple[str, str]]:
        for folder, folders, files in os.walk(self.source):
            folders[:] = [name for name in folders if not name.startswith(".")]
            linked = [name for name in folders if Path(folder, name).is_symlink()]
            for entry in (*linked, *(name for name in files if not name.startswith("."))):
                path = Path(folder, entry)
                name = path.relative_to(self.source).as_posix()
                if name not in self.images:
                    yield name, _why_not(path, name)

    def fill(self, root: Path, folders: Iterable[str], names: Iterable[str]) -> None:
        """Repeat the files called `names` in all `folders` of the output at `root`, and record them.

        Raises
        ------
        OSError
            One cannot be read, or the disk is full.
        """
        files = [
            WrittenFile(name, _size(self.source / name), file_digest(self.source / name)) for name in names
        ]
        for folder in folders:
            self._fill_folder(root, folder, files)

    def _fill_folder(self, root: Path, folder: str, files: list[WrittenFile]) -> None:
        state, record = State(root), f"mirror/{folder}"
        wanted = [file._replace(path=f"{folder}/{file.path}") for file in files]
        held = state.assembled(record)
        recorded = held.files if held else []
        for file, target in zip(files, wanted, strict=True):
            if target not in recorded or _size(root / target.path) != target.size:
                self._place(root, file.path, target.path)
        for path in {file.path for file in recorded} - {file.path for file in wanted}:
            remove_file(root, path)
        if recorded != wanted:
            # A manifest must never be older than this.
            (root / MANIFEST).unlink(missing_ok=True)
            state.record_assembled(record, wanted)

    def _place(self, root: Path, name: str, target: str) -> None:
        temporary = temporary_folder(root) / f"mirror-{secrets.token_hex(8)}"
        try:
            if not (self.link and _is_linked(self.source / name, temporary)):
                with open_regular(self.source / name) as file, temporary.open("xb") as copy:
                    shutil.copyfileobj(file, copy, 1 << 20)
            move_into(root, temporary, target)
        finally:
            # Renaming one link to another of the same file does nothing.
            temporary.unlink(missing_ok=True)


def _why_not(path: Path, name: str) -> str:
    """Why a file is not repeated; empty if it is."""
    if path.is_symlink():
        return "is a link, which is not mirrored"
    if not path.is_file():
        return "is no regular file, and not mirrored"
    return f"its copy would lie where the set's own {name} belongs" if name in (SUMS, FRAMES) else ""


def _is_linked(path: Path, target: Path) -> bool:
    """Make a hard link, if the file system can."""
    with suppress(OSError):
        os.link(path, target, follow_symlinks=False)
        return True
    return False


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return -1
