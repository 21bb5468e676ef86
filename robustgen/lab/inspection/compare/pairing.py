"""Two sets of the same images, read side by side and measured."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ImageError, RobustgenError, SourceError
from robustgen.files.set_files import check_folder
from robustgen.files.storage import open_store
from robustgen.pixels.benchmarks.kinds import CLEAN, CLEAN_VARIANT
from robustgen.pixels.imaging.arrays import Pixels
from robustgen.pixels.imaging.similarity import Alignment, Reference, mean_square
from robustgen.pixels.imaging.third_party import cv2
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.formats.base import WrittenSet
from robustgen.sets.formats.trees import SequenceFolder, Tree
from robustgen.sets.sources.base import Source

Name = Literal["A", "B", "clean"]

# Enough to characterise a sequence; measuring all 31 frames would take four times as long.
_FRAMES_MEASURED: Final = 8

# PSNR, SSIM, MS-SSIM, and the displacement across and down.
_Likeness = tuple[float, float, float, float, float]
_UNKNOWN: Final[_Likeness] = (np.nan,) * 5


class Side:
    """A set whose variants may lack images.

    Parameters
    ----------
    written : WrittenSet
    """

    def __init__(self, written: WrittenSet) -> None:
        self.written, self.root = written, written.root
        self.variants = {variant.folder: variant for variant in written}
        self._sources: dict[str, Source] = {}
        self._keys: dict[str, frozenset[str]] = {}

    def keys(self, folder: str) -> frozenset[str]:
        """Return the images or sequences of the variant in `folder`."""
        if folder not in self._keys:
            source = self.written.open(self.variants[folder])
            try:
                keys = frozenset(source.keys())
            except SourceError:  # An empty folder: all of its images are missing.
                keys = frozenset()
            # Variants share their names if possible: 50 000 in each of 75 would take a gigabyte.
            self._keys[folder] = next((each for each in self._keys.values() if each == keys), keys)
            # A folder needs no listing to load an image.
            listed = not isinstance(self.written, Tree)
            self._sources[folder] = source if listed else self.written.open(self.variants[folder])
        return self._keys[folder]

    def source(self, folder: str) -> Source:
        """Return the images or sequences of the variant in `folder`, open."""
        self.keys(folder)
        return self._sources[folder]

    def size(self, folder: str, key: str) -> float:
        """Return the bytes of the file, or of all frames; NaN if the image has no file."""
        return float(self.source(folder).size(key)) if isinstance(self.written, Tree) else math.nan


def open_clean_side(root: str | Path) -> Side:
    """Open the clean images at `root`: an output of make-c that has them, or a folder of prepared images."""
    store = open_store(root)
    if store.exists(f"{CLEAN}.npy") or next(iter(store.list(CLEAN)), None):
        return Side(open_set(store))
    try:
        check_folder(store)
    except SourceError as error:
        raise SourceError(f"--clean-images {error}") from None
    side = Side(Tree(store, "c", {}, {CLEAN_VARIANT: ""}))
    if not side.keys(CLEAN):
        raise SourceError(f"--clean-images {root}: contains no images")
    return side


@dataclass(frozen=True)
class Pair:
    """One image or sequence in both sets.

    Attributes
    ----------
    key : str
    values : ndarray, (2, metrics)
        Measurements in A and in B; NaN if not available.
    offset, spread : float
        Mean and standard deviation over the pixels of B - A, in grey levels.
    equal : bool
        Whether all pixels are equal.
    """

    key: str
    values: NDArray[np.float64]
    offset: float
    spread: float
    equal: bool

    @property
    def distance(self) -> float:
        """Return the root mean square of B - A over the pixels, in grey levels."""
        return math.hypot(self.offset, self.spread)


@dataclass(frozen=True)
class Problem:
    """An image that is missing from a side, or unusable there."""

    side: Name
    folder: str
    key: str
    reason: str = "missing"


@dataclass(frozen=True)
class Sides:
    """The two sets, and the location of the clean images of each, if any."""

    a: Side
    b: Side
    clean: tuple[Side | None, Side | None]

    def measure(self, key: str, folders: Iterable[str]) -> list[tuple[str, Pair | Problem]]:
        """Read and measure the image `key` in each of the variants."""
        references = _References(self.clean, key)
        return [(folder, self._pair(key, folder, references)) for folder in folders]

    def _pair(self, key: str, folder: str, references: "_References") -> Pair | Problem:
        pixels = []
        sides: tuple[tuple[Name, Side], ...] = (("A", self.a), ("B", self.b))
        for name, side in sides:
            try:
                pixels.append(side.source(folder).load(key))
            except RobustgenError as error:
                # Folder and key are printed separately.
                reason = error.reason if isinstance(error, ImageError) else str(error)
                return Problem(name, folder, key, reason)
        a, b = pixels
        if a.shape != b.shape:
            return Problem("B", folder, key, f"{_size(b)}, but {_size(a)} in A")
        equal = np.array_equal(a, b)
        try:
            # Comparing a clean image with itself is useless.
            alike = (_UNKNOWN, _UNKNOWN) if folder == CLEAN else references.compare(a, b, equal)
        except RobustgenError as error:
            return Problem("clean", folder, key, str(error))
        return _measure_pair(key, (a, b), equal, alike, self._sizes(folder, key))

    def unlike_files(self, folder: str, key: str) -> bool:
        """Return whether one side has a video and the other a folder of frames."""
        a, b = (side.source(folder) for side in (self.a, self.b))
        if not (isinstance(a, SequenceFolder) and isinstance(b, SequenceFolder)):
            return False
        return a.has_frames(key) != b.has_frames(key)

    def _sizes(self, folder: str, key: str) -> tuple[float, float]:
        """Return the bytes in A and in B; NaN for arrays, and if the files cannot be compared."""
        sizes = self.a.size(folder, key), self.b.size(folder, key)
        is_unlike = np.isnan(sizes).any() or self.unlike_files(folder, key)
        return (np.nan, np.nan) if is_unlike else sizes


class _References:
    """The clean image of one key for both sides; the same object if the pixels are the same."""

    def __init__(self, sides: tuple[Side | None, Side | None], key: str) -> None:
        self._sides, self._key = sides, key

    @cached_property
    def _both(self) -> tuple["_Original | None", "_Original | None"]:
        a, b = (
            side.source(CLEAN).load(self._key) if side and self._key in side.keys(CLEAN) else None
            for side in self._sides
        )
        first = None if a is None else _Original(Reference(a), Alignment(a))
        if a is not None and b is not None and np.array_equal(a, b):
            return first, first
        return first, None if b is None else _Original(Reference(b), Alignment(b))

    def compare(self, a: Pixels, b: Pixels, equal: bool) -> tuple[_Likeness, _Likeness]:
        """Compare `a` and `b` with the clean image; frames with the first, without displacement."""
        first, second = self._both
        if a.ndim == 4:
            first, second = (_Original(Reference(each[0]), None) for each in (a, b))
        found = _compare(first, a)
        return found, found if equal and (a.ndim == 4 or first is second) else _compare(second, b)


class _Original(NamedTuple):
    """An image that others are compared with."""

    reference: Reference
    alignment: Alignment | None


def _compare(original: _Original | None, pixels: Pixels) -> _Likeness:
    if original is None:
        return _UNKNOWN
    places = np.linspace(1, len(pixels) - 1, _FRAMES_MEASURED).round().astype(int).tolist()
    images = [pixels[i] for i in dict.fromkeys(places)] if pixels.ndim == 4 else [pixels]
    found = [original.reference.similarity(image) for image in images]
    moved = original.alignment.displacement(pixels) if original.alignment else (np.nan, np.nan)
    return fmean(s.psnr for s in found), fmean(s.ssim for s in found), fmean(s.ms_ssim for s in found), *moved


def _measure_pair(
    key: str,
    pixels: tuple[Pixels, Pixels],
    equal: bool,
    alike: tuple[_Likeness, _Likeness],
    sizes: tuple[float, float],
) -> Pair:
    # Frames are stacked vertically, because OpenCV does not support four axes.
    a, b = (each.reshape(-1, *each.shape[-2:]) for each in pixels)
    levels = [float(np.mean(cv2.mean(each)[:3])) for each in (a, b)]
    values = np.array([[level, *like, size] for level, like, size in zip(levels, alike, sizes, strict=True)])
    offset = levels[1] - levels[0]
    square = mean_square(a, b)
    return Pair(key, values, offset, float(np.sqrt(max(square - offset**2, 0))), equal)


def _size(pixels: Pixels) -> str:
    frames = f"{len(pixels)} frames of " if pixels.ndim == 4 else ""
    return f"{frames}{pixels.shape[-2]} x {pixels.shape[-3]} pixels"
