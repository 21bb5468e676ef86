"""Where pixels become files: JPEG trees, MP4 trees, PNG files, NumPy arrays."""

import fcntl
import glob
import hashlib
import json
import math
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
from PIL import Image

from robustgen.benchmark import Arm
from robustgen.errors import ArgumentError, ImageError
from robustgen.imaging import video
from robustgen.imaging.jpeg import Libjpeg, encode_jpeg
from robustgen.imaging.pixels import Rgb
from robustgen.output.files import STATE, Written, file_digest, rename, temporary_folder, write_whole


class Sink(ABC):
    """Writes what is made of one image by one arm."""

    @abstractmethod
    def write(self, root: Path, arm: Arm, index: int, name: str, pixels: Rgb) -> list[Written]:
        """Store `pixels`, made by `arm` from the image at `index`, whose output name is `name`.

        Returns
        -------
        list of Written
            The files that are now whole; an array is so only after `finish`.
        """

    def item_name(self, name: str) -> str:
        """What tells the output of one source image from another's, given its output name."""
        return name

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What decides the bytes, but for the pixels."""

    def start(self, root: Path) -> None:  # noqa: B027
        """Make ready for writing."""

    def flush(self) -> None:  # noqa: B027
        """Let go of what is open after a batch of writes."""

    def holds(self, root: Path, written: Written) -> bool:
        """Whether what was written is still there, as far as its size tells."""
        try:
            return (root / written.path).stat().st_size == written.size
        except OSError:
            return False

    def bytes_of(self, written: Written) -> int:
        """How many bytes were written."""
        return written.size

    def reopen(self, root: Path, folders: frozenset[str]) -> None:  # noqa: B027
        """Make what is finished writable again, for the arms whose `folders` lack images after all."""

    def finish(self, root: Path, complete: frozenset[str]) -> list[str]:
        """Bring to an end what was written for the arms whose folders are `complete`.

        Returns
        -------
        list of str
            Files that are withheld, because some of their images are lacking.
        """
        return []


@dataclass(frozen=True)
class JpegTree(Sink):
    """`<corruption>/<severity>/<class>/<name>`, JPEG, optimised Huffman tables, Pillow's 4:2:0.

    `quality` is the published 85 and `libjpeg` libjpeg-turbo, unless the config says otherwise.
    """

    quality: int = 85
    libjpeg: Libjpeg = "turbo"

    def encode(self, pixels: Rgb) -> bytes:
        """The JPEG file of uint8 `pixels` (H, W, 3)."""
        return encode_jpeg(pixels, self.quality, optimise=True, library=self.libjpeg)

    def write(self, root: Path, arm: Arm, index: int, name: str, pixels: Rgb) -> list[Written]:
        """Write one JPEG file."""
        return [write_whole(root, arm.path(name), self.encode(pixels))]

    def settings(self) -> dict[str, Any]:
        """Format, quality and library."""
        return {"format": "jpeg", "quality": self.quality, "libjpeg": self.libjpeg}


def without_suffix(name: str) -> str:
    """`name` (POSIX) without its last suffix."""
    return str(PurePosixPath(name).with_suffix(""))


@dataclass(frozen=True)
class Mp4Tree(Sink):
    """`<perturbation>/<class>/<stem>.mp4`, one frame per second, H.264."""

    encoding: video.Encoding = field(default_factory=video.Encoding)
    noise_encoding: video.Encoding = field(default_factory=lambda: video.Encoding(crf=None, tune="grain"))
    noises: frozenset[str] = frozenset()

    def item_name(self, name: str) -> str:
        """`name` without its suffix."""
        return without_suffix(name)

    def write(self, root: Path, arm: Arm, index: int, name: str, pixels: Rgb) -> list[Written]:
        """Encode one sequence, decode it again to count its frames, and take their digest."""
        try:
            data = video.encode(pixels, self.noise_encoding if arm.name in self.noises else self.encoding)
        except ArgumentError as error:
            raise ImageError(str(error)) from error
        frames = video.read_frames(data)
        if len(frames) != len(pixels):
            raise ImageError(f"the encoder kept {len(frames)} of {len(pixels)} frames")
        written = write_whole(root, arm.path(f"{without_suffix(name)}.mp4"), data)
        return [written._replace(frames=video.frames_digest(frames))]

    def settings(self) -> dict[str, Any]:
        """Format and encoder settings."""
        return {
            "format": "mp4",
            "video": vars(self.encoding),
            "noise_video": vars(self.noise_encoding),
        }


@dataclass(frozen=True)
class PngFrames(Sink):
    """`<perturbation>/<class>/<stem>/<frame>.png`, frames counted from 0."""

    def item_name(self, name: str) -> str:
        """`name` without its suffix."""
        return without_suffix(name)

    def write(self, root: Path, arm: Arm, index: int, name: str, pixels: Rgb) -> list[Written]:
        """Write one file per frame."""
        folder = arm.path(without_suffix(name))
        return [write_whole(root, f"{folder}/{i}.png", _png(frame)) for i, frame in enumerate(pixels)]

    def settings(self) -> dict[str, Any]:
        """Format."""
        return {"format": "png"}


@dataclass(frozen=True)
class PngTree(Sink):
    """`<arm>/<class>/<name>`, PNG."""

    def write(self, root: Path, arm: Arm, index: int, name: str, pixels: Rgb) -> list[Written]:
        """Write one PNG file."""
        return [write_whole(root, arm.path(name), _png(pixels))]

    def settings(self) -> dict[str, Any]:
        """Format."""
        return {"format": "png"}


_LOSSLESS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    ".png": ("PNG", {}),
    ".bmp": ("BMP", {}),
    ".ppm": ("PPM", {}),
    ".tif": ("TIFF", {"compression": "tiff_lzw"}),
    ".tiff": ("TIFF", {"compression": "tiff_lzw"}),
    ".webp": ("WEBP", {"lossless": True}),
}


@dataclass(frozen=True)
class SameFormat(Sink):
    """Files of the names and formats of the source: JPEG of `quality`, the others without loss."""

    quality: int

    def write(self, root: Path, arm: Arm, index: int, name: str, pixels: Rgb) -> list[Written]:
        """Write one file."""
        suffix = PurePosixPath(name).suffix.lower()
        if suffix in _LOSSLESS:
            data = _encoded(pixels, *_LOSSLESS[suffix])
        elif suffix in (".jpg", ".jpeg"):
            data = encode_jpeg(pixels, self.quality, optimise=True)
        else:
            raise ImageError(f"{suffix[1:].upper()} files cannot hold the result; convert them to PNG first")
        return [write_whole(root, arm.path(name), data)]

    def settings(self) -> dict[str, Any]:
        """Format and quality."""
        return {"format": "as in the source", "quality": self.quality}


def _encoded(pixels: Rgb, format: str, options: Mapping[str, Any]) -> bytes:
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, format, **options)
    return buffer.getvalue()


def _png(pixels: Rgb) -> bytes:
    return _encoded(pixels, *_LOSSLESS[".png"])


_MOST_PENDING = 1 << 18


class _RowWriter:
    """Writes rows of a `.npy` in place, so that the array need never be in memory.

    Not through a memory map: where the disk is full, that ends the process without a word. A task fills the
    rows one after the other, so that collecting them spares most of the system calls.
    """

    def __init__(self, path: Path) -> None:
        rows = np.lib.format.open_memmap(path, "r")
        self._start, self._step, self._shape = rows.offset, rows.strides[0], rows.shape[1:]
        self._file = os.open(path, os.O_WRONLY)
        self._first, self._pending = 0, bytearray()

    def write(self, row: int, values: Rgb) -> None:
        if values.shape != self._shape:
            raise ImageError(f"of shape {values.shape}, where the array has rows of {self._shape}")
        if self._first * self._step + len(self._pending) != row * self._step:
            self._flush()
            self._first = row
        self._pending += np.ascontiguousarray(values).data
        if len(self._pending) >= _MOST_PENDING:
            self._flush()
            self._first = row + 1

    def _flush(self) -> None:
        at = self._start + self._first * self._step
        view = memoryview(self._pending)
        while view:
            done = os.pwrite(self._file, view, at)
            view, at = view[done:], at + done
        self._pending = bytearray()

    def close(self) -> None:
        try:
            self._flush()
        finally:
            os.close(self._file)


class Arrays(Sink):
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
            files.setdefault(f"{arm.name if per_name else arm.folder}.npy", []).append(arm.folder)
        self._files = files
        self._places = {
            folder: (file, i) for file, folders in files.items() for i, folder in enumerate(folders)
        }
        listing = hashlib.sha256("\0".join(keys).encode("utf-8", "surrogateescape")).hexdigest()
        # Rows written for another list of images or levels must not pass for these.
        self._layouts = {file: _short_digest(listing, *folders) for file, folders in files.items()}
        # Nor rows of an array that was lost: each that is laid out has a tag of its own.
        self._tags: dict[str, str] = {}
        self._open: dict[str, _RowWriter] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": {}}

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the arrays."""
        return tuple(self._files)

    @property
    def folders(self) -> Mapping[str, list[str]]:
        """Of each array, the folders of the arms that fill it."""
        return self._files

    def settings(self) -> dict[str, Any]:
        """Format."""
        return {"format": "npy"}

    def start(self, root: Path) -> None:
        """Find the arrays that are finished or begun, and lay out the others."""
        partial = root / STATE / "partial"
        partial.mkdir(parents=True, exist_ok=True)
        with (partial / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for file in self._files:
                self._tags[file] = self._held_tag(root, file) or self._lay_out(root, file)
                self._remove_other_layouts(partial, file)

    def _remove_other_layouts(self, partial: Path, file: str) -> None:
        """Remove what was begun for another list of images or levels; nothing will complete it."""
        stem = file.removesuffix(".npy")
        for begun in partial.glob(f"{glob.escape(stem)}-*.npy"):
            if begun.stem != f"{stem}-{self._tags[file]}":
                begun.unlink()

    def _held_tag(self, root: Path, file: str) -> str | None:
        """The tag of the array `file` of this layout that is finished or begun, if there is one."""
        if finished := self._finished(root, file):
            return str(finished["tag"])
        stem, layout = file.removesuffix(".npy"), self._layouts[file]
        begun = sorted((root / STATE / "partial").glob(f"{glob.escape(stem)}-{layout}-*.npy"))
        return begun[0].stem.removeprefix(f"{stem}-") if begun else None

    def _lay_out(self, root: Path, file: str) -> str:
        self._tags[file] = f"{self._layouts[file]}-{secrets.token_hex(4)}"
        partial = self._partial(root, file)
        blank = temporary_folder(root) / partial.name
        folders = self._files[file]
        shape = (len(folders) * self.images, *self._shapes[folders[0]])
        np.lib.format.open_memmap(blank, "w+", np.uint8, shape).flush()
        blank.replace(partial)
        return self._tags[file]

    def write(self, root: Path, arm: Arm, index: int, name: str, pixels: Rgb) -> list[Written]:
        """Fill one row."""
        file, row = self.place(arm, index)
        if file not in self._open:
            self._open[file] = _RowWriter(self._partial(root, file))
        self._open[file].write(row, pixels)
        return [Written(file, row, self._tags[file])]

    def place(self, arm: Arm, index: int) -> tuple[str, int]:
        """File and row of what `arm` makes of the image at `index`."""
        file, stretch = self._places[arm.folder]
        return file, stretch * self.images + index

    def bytes_of(self, written: Written) -> int:
        """The bytes of one row."""
        return math.prod(self._shapes[self._files[written.path][0]])

    def flush(self) -> None:
        """Close the files, all of them even if the disk is full."""
        with ExitStack() as closing:
            while self._open:
                closing.callback(self._open.popitem()[1].close)

    def holds(self, root: Path, written: Written) -> bool:
        """Whether the row is in an array of this layout."""
        return self._tags.get(written.path) == written.sha256

    def reopen(self, root: Path, folders: frozenset[str]) -> None:
        """Take back the finished arrays that `folders` belong to."""
        for file, own in self._files.items():
            if folders.intersection(own) and self._finished(root, file):
                (root / self._record(file)).unlink()
                (root / file).replace(self._partial(root, file))

    def finish(self, root: Path, complete: frozenset[str]) -> list[str]:
        """Give the arrays whose folders are all `complete` their final names; return the others."""
        withheld = []
        for file, folders in self._files.items():
            partial = self._partial(root, file)
            if not complete.issuperset(folders):
                withheld.append(file)
            elif partial.exists():
                record = {
                    "tag": self._tags[file],
                    "size": partial.stat().st_size,
                    "sha256": file_digest(partial),
                }
                rename(partial, root / file)
                write_whole(root, self._record(file), json.dumps(record).encode(), durable=True)
        return withheld

    def _partial(self, root: Path, file: str) -> Path:
        return root / STATE / "partial" / f"{file.removesuffix('.npy')}-{self._tags[file]}.npy"

    @staticmethod
    def _record(file: str) -> str:
        return f"{STATE}/arrays/{file}.json"

    def _finished(self, root: Path, file: str) -> dict[str, Any] | None:
        """The record of the finished `file`, if it has this layout and is still there."""
        try:
            record: dict[str, Any] = json.loads((root / self._record(file)).read_bytes())
            whole = (
                record["tag"].startswith(self._layouts[file])
                and (root / file).stat().st_size == record["size"]
            )
        except (OSError, ValueError):
            return None
        return record if whole else None


def _short_digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
