"""NumPy arrays, as CIFAR-10-C and CIFAR-10-P have them: a row for each image."""

import glob
import hashlib
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from robustgen.benchmark import Arm
from robustgen.errors import ImageError, OutputError
from robustgen.imaging.pixels import Rgb
from robustgen.name_lists import join_names
from robustgen.output.files import LABELS, file_digest, move_into, temporary_folder
from robustgen.output.records import Written, WrittenFile, WrittenRow
from robustgen.output.state import State
from robustgen.output.writers.base import Listing, Writer
from robustgen.output.writers.companions import keep_companion
from robustgen.regular_file import open_regular
from robustgen.sources.sample_names import KEYS

_MOST_PENDING = 1 << 17


class _RowWriter:
    """Writes rows of a `.npy` in place, so that the array need never be in memory.

    Not through a memory map: where the disk is full, that ends the process without a word. A task fills the
    rows one after the other, so that collecting them spares most of the system calls.
    """

    def __init__(self, path: Path, rows: int, shape: tuple[int, ...]) -> None:
        self._shape, self._step = shape, math.prod(shape)
        self._file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        self._start = _header_size(os.pread(self._file, 10, 0))
        self._first: int = 0
        self._pending: list[bytes] = []
        self._most = max(1, _MOST_PENDING // self._step)
        if os.fstat(self._file).st_size != self._start + rows * self._step:
            os.close(self._file)
            raise OutputError(f"{path} is damaged; remove it and give the command again")

    def write(self, row: int, values: Rgb) -> None:
        if values.shape != self._shape:
            raise ImageError(f"of shape {values.shape}, where the array has rows of {self._shape}")
        if row != self._first + len(self._pending) or len(self._pending) == self._most:
            self._flush()
            self._first = row
        self._pending.append(values.tobytes())

    def _flush(self) -> None:
        view, at = memoryview(b"".join(self._pending)), self._start + self._first * self._step
        self._pending.clear()
        while view:
            done = os.pwrite(self._file, view, at)
            view, at = view[done:], at + done

    def close(self) -> None:
        try:
            self._flush()
        finally:
            os.close(self._file)


def _header_size(beginning: bytes) -> int:
    """Bytes before the rows of a `.npy` file of version 1.0, of which `beginning` are the first ten."""
    return 10 + int.from_bytes(beginning[8:], "little")


class Arrays(Writer):
    """One `.npy` per corruption (severity-major) or per perturbation, written row by row.

    Parameters
    ----------
    arms : tuple of Arm
    keys : tuple of str
        The images, in the order of the rows.
    shapes : mapping of str to tuple of int
        Arm's folder to the shape of one item: (H, W, 3), or (T, H, W, 3).
    per_name : bool
        Whether all levels of an operation share a file, as the published CIFAR-10-C has it.
    """

    # Rows are small; a task is long enough to hide its dispatch, and lost workers cost little.
    images_per_task: ClassVar[int | None] = 128

    def __init__(
        self,
        arms: tuple[Arm, ...],
        keys: tuple[str, ...],
        shapes: Mapping[str, tuple[int, ...]],
        per_name: bool,
    ) -> None:
        self.images = len(keys)
        self._shapes = dict(shapes)
        files: dict[str, list[str]] = {}
        for arm in arms:
            stem = arm.folder.partition("/")[0] if per_name else arm.folder
            files.setdefault(f"{stem}.npy", []).append(arm.folder)
        self._files = files
        self.arrays = tuple(files)
        self._places = {
            folder: (file, i) for file, folders in files.items() for i, folder in enumerate(folders)
        }
        listing = hashlib.sha256("\0".join(keys).encode("utf-8", "surrogateescape")).hexdigest()
        # Rows written for another list of images or levels must not pass for these.
        self._lists = {file: _short_digest(listing, *folders) for file, folders in files.items()}
        # Nor rows of an array that was lost: each that is laid out has a layout of its own.
        self._layouts: dict[str, str] = {}
        self._open: dict[str, _RowWriter] = {}
        # Equal for all rows of an array; one object serves them all.
        self._records: dict[str, list[Written]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": {}, "_records": {}}

    def settings(self) -> dict[str, Any]:
        """Format."""
        return {"format": "npy"}

    def output_name(self, key: str) -> None:
        """A row has no name."""

    # --- a run

    def start(self, root: Path) -> None:
        """Find the arrays that are finished or begun, and lay out the others."""
        state = State(root)
        with state.lock_partial():
            for file in self._files:
                self._layouts[file] = self._find_layout(root, file) or self._lay_out(root, file)
                self._remove_other_layouts(state.partial, file)

    def _remove_other_layouts(self, partial: Path, file: str) -> None:
        """Remove what was begun for another list of images or levels; nothing will complete it."""
        stem = file.removesuffix(".npy")
        for begun in partial.glob(f"{glob.escape(stem)}-*.npy"):
            if begun.stem != f"{stem}-{self._layouts[file]}":
                begun.unlink()

    def _find_layout(self, root: Path, file: str) -> str | None:
        """The layout of the array `file` that is finished or begun for this list, if there is one."""
        if finished := self._find_finished_layout(root, file):
            return finished
        stem, own = file.removesuffix(".npy"), self._lists[file]
        begun = sorted(State(root).partial.glob(f"{glob.escape(stem)}-{own}-*.npy"))
        return begun[0].stem.removeprefix(f"{stem}-") if begun else None

    def _lay_out(self, root: Path, file: str) -> str:
        self._layouts[file] = f"{self._lists[file]}-{secrets.token_hex(4)}"
        partial = self._partial(root, file)
        blank = temporary_folder(root) / partial.name
        folders = self._files[file]
        shape = (len(folders) * self.images, *self._shapes[folders[0]])
        np.lib.format.open_memmap(blank, "w+", np.uint8, shape).flush()
        blank.replace(partial)
        return self._layouts[file]

    def write(self, root: Path, arm: Arm, index: int, key: str, pixels: Rgb) -> list[Written]:
        """Fill one row."""
        file, row = self._place(arm, index)
        if file not in self._open:
            rows, shape = len(self._files[file]) * self.images, self._shapes[arm.folder]
            self._open[file] = _RowWriter(self._partial(root, file), rows, shape)
            self._records[file] = [WrittenRow(file, math.prod(shape), self._layouts[file])]
        self._open[file].write(row, pixels)
        return self._records[file]

    def _place(self, arm: Arm, index: int) -> tuple[str, int]:
        """File and row of what `arm` makes of the image at `index`."""
        file, stretch = self._places[arm.folder]
        return file, stretch * self.images + index

    def flush(self) -> None:
        """Close the files, all of them even if the disk is full."""
        with ExitStack() as closing:
            while self._open:
                closing.callback(self._open.popitem()[1].close)

    def holds(self, root: Path, written: Written) -> bool:
        """Whether the row is in an array of this layout."""
        return isinstance(written, WrittenRow) and self._layouts.get(written.path) == written.layout

    def remove(self, root: Path, written: Written) -> None:
        """Nothing: the row will be filled anew, or the array withheld."""

    def reopen(self, root: Path, folders: frozenset[str]) -> None:
        """Take back the finished arrays that `folders` belong to."""
        state = State(root)
        # Shards that start together would all take back the same array.
        with state.lock_partial():
            for file, own in self._files.items():
                if folders.intersection(own) and self._find_finished_layout(root, file):
                    state.forget_assembled(file)
                    (root / file).replace(self._partial(root, file))

    def finish(
        self, root: Path, complete: frozenset[str], settled: frozenset[str], listing: Listing
    ) -> list[str]:
        """Give the arrays whose folders are all `complete` their final names; write labels and keys."""
        withheld = []
        for file, folders in self._files.items():
            partial = self._partial(root, file)
            if not complete.issuperset(folders):
                withheld.append(file)
            elif partial.exists():
                whole = WrittenFile(file, partial.stat().st_size, file_digest(partial))
                # What is recorded of an array of other images must not pass for this one.
                State(root).forget_assembled(file)
                move_into(root, partial, file)
                State(root).record_assembled(file, [whole], self._layouts[file])
        for name, data in self._companions(listing).items():
            keep_companion(root, name, data)
        return withheld

    def _companions(self, listing: Listing) -> dict[str, bytes]:
        """The labels of the rows, and the source images behind them."""
        labels = np.array([listing.label(key) for key in listing.keys])
        # Of a C set all severities of a corruption share an array.
        repeats = max(map(len, self._files.values()))
        dtype = np.uint8 if labels.max(initial=0) < 256 else np.int64
        buffer = BytesIO()
        np.save(buffer, np.tile(labels, repeats).astype(dtype))
        return {LABELS: buffer.getvalue(), KEYS: join_names(listing.keys)}

    def _partial(self, root: Path, file: str) -> Path:
        return State(root).partial / f"{file.removesuffix('.npy')}-{self._layouts[file]}.npy"

    def _find_finished_layout(self, root: Path, file: str) -> str | None:
        """The layout of the finished `file`, if it is of this list and still there."""
        record = State(root).assembled(file)
        if record is None or not record.layout.startswith(self._lists[file]):
            return None
        return record.layout if all(super(Arrays, self).holds(root, each) for each in record.files) else None

    # --- checking

    def differences(
        self, root: Path, arm: Arm, index: int, key: str, pixels: Rgb
    ) -> Iterator[tuple[str, str]]:
        """Whether the row holds `pixels`."""
        file, row = self._place(arm, index)
        try:
            open_regular(root / file).close()
            rows = np.load(root / file, mmap_mode="r")
        except (OSError, ValueError):
            return  # the sums have told of that
        if row >= len(rows) or not np.array_equal(rows[row], pixels):
            yield file, f": row {row} ({key}, {arm.folder}) from what the source gives now"


def _short_digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
