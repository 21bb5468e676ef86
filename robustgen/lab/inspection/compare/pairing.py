"""Two sets of the same images, read side by side and measured."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import RobustgenError, SourceError
from robustgen.files.set_files import check_folder
from robustgen.files.storage import open_store
from robustgen.pixels.benchmarks.kinds import CLEAN, CLEAN_VARIANT
from robustgen.pixels.imaging.arrays import Pixels
from robustgen.pixels.imaging.similarity import Alignment, Reference, mean_square
from robustgen.pixels.imaging.third_party import cv2
from robustgen.sets.dataset.opening import open_dataset
from robustgen.sets.formats.base import Dataset
from robustgen.sets.formats.trees import VIDEO, Tree

Name = Literal["A", "B", "clean"]

# Enough to characterise a sequence; measuring all 31 frames would take four times as long.
_FRAMES_MEASURED: Final = 8

_Places = Mapping[str, int]
# PSNR, SSIM, MS-SSIM, and the displacement across and down.
_Likeness = tuple[float, float, float, float, float]
_UNKNOWN: Final[_Likeness] = (np.nan,) * 5


class Side:
    """A set, read variant by variant, because some variants may lack images.

    Parameters
    ----------
    dataset : Dataset
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset, self.root = dataset, dataset.root
        self.variants = {variant.folder: variant for variant in dataset.variants}
        self._opened: dict[str, tuple[Dataset, _Places]] = {}
        self._shared: dict[tuple[str, ...], tuple[tuple[str, ...], _Places]] = {}

    def keys(self, folder: str) -> Mapping[str, int]:
        """Return the images or sequences of the variant in `folder`, and their positions in it."""
        if folder not in self._opened:
            variant = self.variants[folder]
            try:
                keys = self.dataset.restrict(variant).keys(variant)
            except SourceError:  # An empty folder: all of its images are missing.
                keys = ()
            # Variants share their names if possible: 50 000 in each of 75 would take a gigabyte.
            if keys not in self._shared:
                self._shared[keys] = keys, {key: i for i, key in enumerate(keys)}
            keys, places = self._shared[keys]
            self._opened[folder] = self.dataset.restrict(variant, keys), places
        return self._opened[folder][1]

    def load(self, folder: str, key: str) -> Pixels:
        """Return an image (H, W, 3), or frames (T, H, W, 3)."""
        index = self.keys(folder)[key]
        return self._opened[folder][0].load(self.variants[folder], index)

    def path(self, folder: str, key: str) -> str | None:
        """Return the path of the file or of the folder of frames; None if the image has no file."""
        return self.dataset.path(self.variants[folder], key)

    def has_frames(self, folder: str, key: str) -> bool:
        """Return whether the path is a folder of frames."""
        path = self.path(folder, key)
        return self.dataset.kind == "p" and path is not None and not path.endswith(VIDEO)

    def size(self, folder: str, key: str) -> float:
        """Return the bytes of the file, or of all frames; NaN if the image has no file."""
        path, store = self.path(folder, key), self.dataset.store
        if path is None:
            return math.nan
        if self.has_frames(folder, key):
            return float(sum(entry.size for entry in store.list(path) if entry.path.endswith(".png")))
        return float(store.stat(path).size)


def open_clean_side(root: str | Path) -> Side:
    """Open the clean images at `root`: an output of make-c that has them, or a folder of prepared images."""
    store = open_store(root)
    if store.exists(f"{CLEAN}.npy") or next(iter(store.list(CLEAN)), None):
        return Side(open_dataset(store))
    try:
        check_folder(store)
    except SourceError as error:
        raise SourceError(f"--clean-images {error}") from None
    side = Side(Tree(store, "c", (CLEAN_VARIANT,), {}, {CLEAN_VARIANT: ""}))
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
                pixels.append(side.load(folder, key))
            except (RobustgenError, OSError) as error:
                # Folder and key are printed separately, so the path is removed.
                reason = str(error).removeprefix(f"{f'{side.root}/{side.path(folder, key)}'!r}: ")
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
        has_files = self.a.path(folder, key) is not None and self.b.path(folder, key) is not None
        return has_files and self.a.has_frames(folder, key) != self.b.has_frames(folder, key)

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
            side.load(CLEAN, self._key) if side and self._key in side.keys(CLEAN) else None
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
