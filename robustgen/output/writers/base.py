"""What every format has to offer: the `Writer`, and the `TreeWriter` of formats with files of their own."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple

import numpy as np

from robustgen.benchmark import Arm
from robustgen.imaging.pixels import Rgb
from robustgen.output.files import FileWriter, remove_file, remove_folder
from robustgen.output.records import Written, WrittenFile
from robustgen.regular_file import open_regular


@dataclass(frozen=True)
class Listing:
    """The images of a set, in order.

    Attributes
    ----------
    keys : tuple of str
    label : callable
        Key to the index of its class.
    classes : callable
        Returns the names of the classes, in the order of the labels.
    """

    keys: tuple[str, ...]
    label: Callable[[str], int]
    classes: Callable[[], Sequence[str]]


class Writer(ABC):
    """Writes what is made of source images, in one format. Picklable; what is open stays behind.

    All that is particular to a format is answered here, but for the reading of finished sets.

    Attributes
    ----------
    images_per_task : int or None
        How many images a worker takes at once at most; None for as many as the recipe says.
    arrays : tuple of str
        Names of the files that hold a row for each image, as ``dataset.json`` lists them.
    """

    images_per_task: ClassVar[int | None] = None
    arrays: tuple[str, ...] = ()

    # --- what it is

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What decides the bytes, but for the pixels."""

    def versions(self) -> dict[str, str]:
        """Libraries that decide the bytes, beside those that every set depends on, with their versions."""
        return {}

    @abstractmethod
    def output_name(self, key: str) -> str | None:
        """POSIX path, below the folder of an arm, of what is made of the source image `key`.

        Two images of one name would overwrite each other. None where images have no files of their own.
        """

    # --- a run

    def start(self, root: Path) -> None:  # noqa: B027
        """Make ready for writing below `root`; called once by the process that leads the run."""

    @abstractmethod
    def write(self, root: Path, arm: Arm, index: int, key: str, pixels: Rgb) -> list[Written]:
        """Store `pixels`, made by `arm` from the image `key`, which is the plan's `index`-th.

        Returns
        -------
        list of Written
            What is now written; files that hold many images are whole only after `finish`.

        Raises
        ------
        ImageError
            The format cannot hold these pixels.
        OSError
        """

    def write_frames(
        self, root: Path, arm: Arm, index: int, key: str, frames: Iterator[Rgb]
    ) -> list[Written]:
        """As `write`, of the frames (H, W, 3) of a sequence, each of which is made when it is asked for."""
        return self.write(root, arm, index, key, np.stack([*frames]))

    def as_read(self, arm: Arm, key: str, pixels: Rgb) -> Rgb:
        """What is read again where `write` has stored `pixels`: the same, but for formats with loss.

        Raises
        ------
        ImageError
            The format cannot hold these pixels.
        """
        return pixels

    def measure(self, arm: Arm, key: str, pixels: Rgb) -> int:
        """How many bytes `pixels` would take, by writing them nowhere."""
        return pixels.nbytes

    def flush(self) -> None:  # noqa: B027
        """Let go of what is open after a batch of writes; receipts are written only after it."""

    def holds(self, root: Path, written: Written) -> bool:
        """Whether `written`, recorded by an earlier run, is still there, as far as its size tells."""
        try:
            # A plain call on a plain string: a whole set has millions of files.
            return os.stat(f"{root}/{written.path}").st_size == written.size  # noqa: PTH116
        except OSError:
            return False

    def remove(self, root: Path, written: Written) -> None:
        """Remove what was made of an image that has changed since, as it may not be made again."""
        remove_file(root, written.path)
        remove_folder(root, written.path.rpartition("/")[0])

    def reopen(self, root: Path, folders: frozenset[str]) -> None:  # noqa: B027
        """Make what is finished writable again, for the arms whose `folders` lack images after all."""

    def finish(
        self, root: Path, complete: frozenset[str], settled: frozenset[str], listing: Listing
    ) -> list[str]:
        """Bring to an end what was written for the arms whose folders are `complete`, or at least `settled`.

        Of a complete arm all images are there; of a settled one all that could be made.
        Called by one process, when no other writes; whatever this makes is recorded as assembled.

        Returns
        -------
        list of str
            Files that are withheld, because some of their images are lacking.
        """
        return []

    # --- checking

    @abstractmethod
    def differences(
        self, root: Path, arm: Arm, index: int, key: str, pixels: Rgb
    ) -> Iterator[tuple[str, str]]:
        """Path and detail of whatever at `root` is not what `write` would make of `pixels` now."""


class Encoded(NamedTuple):
    """One file to be: its name below the folder of the arm, its bytes, and of a video its frames' digest."""

    name: str
    data: bytes
    frames: str = ""


@dataclass(frozen=True)
class TreeWriter(Writer):
    """Writes files of their own for each image, in the folder of the arm."""

    # What writes them, of each output; made at the first file of a task.
    _open: dict[Path, FileWriter] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": {}}

    @abstractmethod
    def encode(self, arm: Arm, key: str, pixels: Rgb) -> list[Encoded]:
        """The files of `pixels`.

        Raises
        ------
        ImageError
            The format cannot hold them.
        """

    def measure(self, arm: Arm, key: str, pixels: Rgb) -> int:
        """The bytes of the files."""
        return sum(len(encoded.data) for encoded in self.encode(arm, key, pixels))

    def write(self, root: Path, arm: Arm, index: int, key: str, pixels: Rgb) -> list[Written]:
        """Write the files, each whole or not at all."""
        return self._write_all(root, arm, self.encode(arm, key, pixels))

    def _write_all(self, root: Path, arm: Arm, files: Iterable[Encoded]) -> list[Written]:
        """Write all `files`, or none of them if they cannot all be made."""
        written: list[Written] = []
        try:
            for encoded in files:
                written.append(self._write(root, arm, encoded))
        except BaseException:
            for each in written:
                remove_file(root, each.path)
            for folder in {each.path.rpartition("/")[0] for each in written}:
                remove_folder(root, folder)
            raise
        return written

    def _write(self, root: Path, arm: Arm, encoded: Encoded) -> WrittenFile:
        if root not in self._open:
            self._open[root] = FileWriter(root)
        written = self._open[root].write(arm.path(encoded.name), encoded.data)
        return written._replace(frames=encoded.frames) if encoded.frames else written

    def flush(self) -> None:
        """Let go of the folders written to."""
        while self._open:
            self._open.popitem()[1].close()

    def differences(
        self, root: Path, arm: Arm, index: int, key: str, pixels: Rgb
    ) -> Iterator[tuple[str, str]]:
        """The files that hold something else, or are not there."""
        for encoded in self.encode(arm, key, pixels):
            path = arm.path(encoded.name)
            try:
                with open_regular(root / path) as file:
                    same = file.read() == encoded.data
            except OSError:
                same = False
            if not same:
                yield path, ": from what the source gives now"


class FrameWriter(TreeWriter):
    """Writes sequences frame by frame, as they are made."""

    @abstractmethod
    def encode_frames(self, arm: Arm, key: str, frames: Iterable[Rgb]) -> Iterator[Encoded]:
        """The files of a sequence of uint8 frames (H, W, 3).

        Raises
        ------
        ImageError
            The format cannot hold them.
        """

    def encode(self, arm: Arm, key: str, pixels: Rgb) -> list[Encoded]:
        """The files of uint8 frames (T, H, W, 3)."""
        return [*self.encode_frames(arm, key, pixels)]

    def write_frames(
        self, root: Path, arm: Arm, index: int, key: str, frames: Iterator[Rgb]
    ) -> list[Written]:
        """Write the files while the frames are made."""
        return self._write_all(root, arm, self.encode_frames(arm, key, frames))


def without_suffix(name: str) -> str:
    """`name` (POSIX) without its last suffix."""
    return str(PurePosixPath(name).with_suffix(""))
