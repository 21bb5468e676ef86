"""Two sets of the same images, read side by side and measured, and the results of their comparison."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from robustgen.display.text import format_count
from robustgen.errors import ImageError, RobustgenError, SourceError
from robustgen.files.set_files import check_folder
from robustgen.files.storage import Store, open_store
from robustgen.lab.inspection.compare.equivalence import METRICS, Effect, find_quantiles
from robustgen.pixels.benchmarks.kinds import CLEAN, CLEAN_VARIANT, Kind, Variant
from robustgen.pixels.imaging.arrays import Pixels
from robustgen.pixels.imaging.frames import spread_frames, stills
from robustgen.pixels.imaging.similarity import Alignment, Reference, Similarity, mean_square
from robustgen.pixels.imaging.third_party import cv2
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.formats.base import WrittenSet
from robustgen.sets.formats.trees import SequenceFolder, TreeSet, VariantClips, VariantFolder
from robustgen.sets.sources.base import Source, read_ahead
from robustgen.sets.sources.clip_folder import ClipFolder
from robustgen.sets.sources.files import EncodedSource
from robustgen.sets.sources.trees import without_video_suffix
from robustgen.settings.inspecting import Comparing

Name = Literal["A", "B", "clean"]
_Result = TypeVar("_Result")

# Enough to characterise a sequence; measuring all 31 frames would take four times as long.
_FRAMES_MEASURED: Final = 8

# PSNR, SSIM, MS-SSIM, and the displacement across and down.
_Likeness = tuple[float, float, float, float, float]
_UNKNOWN: Final[_Likeness] = (np.nan,) * 5
_UNMEASURED: Final = np.full((2, len(METRICS)), np.nan)

# A lossy link may lose whole frames; frames of wrong bits may not be decoded.
_LOSES_FRAMES: Final = frozenset({"video-c:packet_loss", "video-c:bit_error"})

# The names of 50 000 images take 10 MB.
_LISTED_AHEAD: Final = 8


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
        # Keys of clips with the suffix of their videos, by those without.
        self._videos: dict[str, str] = {}

    @property
    def noun(self) -> str:
        """Return the name of an item: image, sequence or clip."""
        return self.written.benchmark.noun

    def open(self, folders: Iterable[str]) -> None:
        """Open the variants in `folders`, and list their items; on a server, a few at once."""
        for folder, source, listed in self.written.store.map(self._list, folders, _LISTED_AHEAD):
            if isinstance(source, ClipFolder):
                self._videos |= {without_video_suffix(key): key for key in listed}
                listed = tuple(map(without_video_suffix, listed))
            keys = frozenset(listed)
            # Variants share their names if possible: 50 000 in each of 75 would take a gigabyte.
            self._keys[folder] = next((each for each in self._keys.values() if each == keys), keys)
            # A folder needs no listing to load an image; a server is asked less about listed sequences.
            is_listed = type(source) is not VariantFolder
            self._sources[folder] = source if is_listed else self.written.open(self.variants[folder])

    def _list(self, folder: str) -> tuple[str, Source, Sequence[str]]:
        """Return a folder, its images, sequences or clips, and their names."""
        source = self.written.open(self.variants[folder])
        try:
            return folder, source, source.keys()
        except SourceError:  # An empty folder: all of its images are missing.
            return folder, source, ()

    def keys(self, folder: str) -> frozenset[str]:
        """Return the images, sequences or clips of the variant in `folder`; clips without suffix."""
        if folder not in self._keys:
            self.open([folder])
        return self._keys[folder]

    def source(self, folder: str) -> Source:
        """Return the images or sequences of the variant in `folder`, open."""
        self.keys(folder)
        return self._sources[folder]

    def load(self, folder: str, key: str) -> Pixels:
        """Return the pixels of an image, sequence or clip of the variant in `folder`."""
        return self.source(folder).load(self._videos.get(key, key))

    def read(self, folder: str, key: str) -> "_Read":
        """Read the files of an item, and return them with their bytes and what decodes them."""
        source, own = self.source(folder), self._videos.get(key, key)
        if isinstance(source, EncodedSource):
            data = source.read_encoded(own)
            size = len(data) if isinstance(data, bytes) else sum(len(frame) for _, frame in data)
            has_file = isinstance(self.written, TreeSet)
            return _Read(
                (type(source), data), size if has_file else math.nan, partial(source.decode, data, own)
            )
        if isinstance(source, VariantClips):
            clip, identity = source.read(own)
            return _Read(identity, source.size(own), clip.stack)
        return _Read(None, math.nan, partial(source.load, own))

    def is_video(self, folder: str, key: str) -> bool | None:
        """Return whether an item is a video, not a folder of frames; None for images."""
        source, own = self.source(folder), self._videos.get(key, key)
        return not source.has_frames(own) if isinstance(source, SequenceFolder | ClipFolder) else None


def open_clean_side(root: str | Path, title: str) -> Side:
    """Open the clean images at `root`: an output of make-c that has them, or a folder of prepared images.

    `title` is that of the sets that are compared, which decides between images and clips.
    """
    store = open_store(root)
    if store.exists(f"{CLEAN}.npy") or next(iter(store.list(CLEAN)), None):
        return Side(open_set(store))
    try:
        check_folder(store)
    except SourceError as error:
        raise SourceError(f"--clean-images {error}") from None
    side = Side(TreeSet(store, "c", {"title": title}, {CLEAN_VARIANT: ""}))
    if not side.keys(CLEAN):
        raise SourceError(f"--clean-images {root}: contains no {side.noun}s")
    return side


@dataclass(frozen=True)
class Pair:
    """One image or sequence in both sets.

    Attributes
    ----------
    key : str
    values : ndarray, (2, metrics)
        Measurements in A and in B; NaN if not available, all NaN if they were not wanted.
    offset, spread : float
        Mean and standard deviation over the pixels of B - A, in grey levels.
    equal : bool
        Whether all pixels are equal.
    cut : bool
        Whether only the first frames were measured, because one clip is longer.
    """

    key: str
    values: NDArray[np.float64]
    offset: float
    spread: float
    equal: bool
    cut: bool

    @property
    def is_measured(self) -> bool:
        """Return whether the metrics were measured."""
        return self.values is not _UNMEASURED

    @property
    def distance(self) -> float:
        """Return the root mean square of B - A over the pixels, in grey levels."""
        return math.hypot(self.offset, self.spread)


class _Read(NamedTuple):
    """The files of an item as read.

    Attributes
    ----------
    identity
        Equal only for items with equal pixels; None if unknown.
    size : float
        Bytes of the file or of all frames; NaN without a file.
    decode : callable
        Returns the pixels.
    """

    identity: Any
    size: float
    decode: Callable[[], Pixels]

    def is_same(self, other: "_Read") -> bool:
        """Return whether the pixels of `other` are known to be the same before any are decoded."""
        return self.identity is not None and bool(self.identity == other.identity)


@dataclass(frozen=True)
class Problem:
    """An image that is missing from a side, or unusable there."""

    side: Name
    folder: str
    key: str
    reason: str = "missing"


class _UnusableError(Exception):
    """Error: an image cannot be read from one side."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


@dataclass(frozen=True)
class Sides:
    """The two sets, and the location of the clean images of each, if any."""

    a: Side
    b: Side
    clean: tuple[Side | None, Side | None]

    @property
    def _slower(self) -> Store:
        """Return the store of a set on a server, if there is one."""
        return self.b.written.store if self.a.written.store.is_local else self.a.written.store

    def measure(
        self, key: str, folders: Sequence[str], unequal: set[str]
    ) -> list[tuple[str, Pair | Problem]]:
        """Read and measure the image `key` in each of the variants; on a server, read the next ones ahead.

        Equal pairs are measured only of operations in `unequal`, to which those of unequal pairs are added.
        """
        references = _References(self.clean, key)
        reads = read_ahead(self._slower.location, partial(self._read, key), folders)
        return [
            (folder, self._pair(key, folder, read, references, unequal))
            for folder, read in zip(folders, reads, strict=True)
        ]

    def _read(self, key: str, folder: str) -> tuple[Pixels, Pixels, tuple[float, float]]:
        """Return the pixels in A and in B, and the bytes of both; raise an `_UnusableError`."""

        def attempt(side: Side, act: Callable[[], _Result]) -> _Result:
            try:
                return act()
            except RobustgenError as error:
                # Folder and key are printed separately.
                reason = error.reason if isinstance(error, ImageError) else str(error)
                name: Name = "A" if side is self.a else "B"
                raise _UnusableError(Problem(name, folder, key, reason)) from error

        first, second = self._slower.map(
            lambda side: attempt(side, partial(side.read, folder, key)), (self.a, self.b), 2
        )
        a = attempt(self.a, first.decode)
        b = a if first.is_same(second) else attempt(self.b, second.decode)
        # Arrays have no sizes, and files of several kinds cannot be compared.
        is_unlike = math.isnan(first.size + second.size) or self.unlike_files(folder, key)
        return a, b, (math.nan, math.nan) if is_unlike else (first.size, second.size)

    def _pair(
        self,
        key: str,
        folder: str,
        read: Callable[[], tuple[Pixels, Pixels, tuple[float, float]]],
        references: "_References",
        unequal: set[str],
    ) -> Pair | Problem:
        try:
            a, b, sizes = read()
        except _UnusableError as error:
            return error.problem
        cut = len(a) != len(b)
        if self.a.variants[folder].name in _LOSES_FRAMES and a.shape[1:] == b.shape[1:]:
            a, b = (each[: min(len(a), len(b))] for each in (a, b))
        if a.shape != b.shape:
            return Problem("B", folder, key, f"{_size(b)}, but {_size(a)} in A")
        equal, name = a is b or (not cut and np.array_equal(a, b)), self.a.variants[folder].name
        if not equal:
            unequal.add(name)
        try:
            # Comparing a clean image with itself is useless.
            originals = (None, None) if folder == CLEAN else references.open(a, b, equal)
            if equal and name not in unequal and all(e is None or e.shape == a.shape for e in originals):
                return Pair(key, _UNMEASURED, 0, 0, equal, cut)
            alike = _compare((a, b), originals, equal)
        except RobustgenError as error:
            return Problem("clean", folder, key, str(error))
        # Frames are stacked vertically, because OpenCV does not support four axes.
        flat_a, flat_b = (each.reshape(-1, *each.shape[-2:]) for each in (a, b))
        levels = [float(np.mean(cv2.mean(each)[:3])) for each in (flat_a, flat_b)]
        values = [[level, *like, size] for level, like, size in zip(levels, alike, sizes, strict=True)]
        offset = levels[1] - levels[0]
        spread = float(np.sqrt(max(mean_square(flat_a, flat_b) - offset**2, 0)))
        return Pair(key, np.array(values), offset, spread, equal, cut)

    def unlike_files(self, folder: str, key: str) -> bool:
        """Return whether one side has a video and the other a folder of frames."""
        a, b = (side.is_video(folder, key) for side in (self.a, self.b))
        return None not in (a, b) and a != b


class _References:
    """The clean image of one key for both sides; the same object if the pixels are the same."""

    def __init__(self, sides: tuple[Side | None, Side | None], key: str) -> None:
        self._sides, self._key = sides, key

    @cached_property
    def _both(self) -> tuple["_Original | None", "_Original | None"]:
        a, b = (
            side.read(CLEAN, self._key) if side and self._key in side.keys(CLEAN) else None
            for side in self._sides
        )
        own = a.decode() if a else None
        first = None if own is None else _open_original(own)
        if b is None:
            return first, None
        other = own if a and own is not None and a.is_same(b) else b.decode()
        is_same = own is not None and np.array_equal(own, other)
        return first, first if is_same else _open_original(other)

    def open(self, a: Pixels, b: Pixels, equal: bool) -> tuple["_Original | None", "_Original | None"]:
        """Return what `a` and `b` are compared with: clean images or clips, or their own first frames."""
        first, second = self._both
        if a.ndim == 4 and first is second is None:
            first = _FirstFrame(a.shape, Reference(a[0]))
            second = first if equal else _FirstFrame(b.shape, Reference(b[0]))
        return first, second


def _compare(
    pixels: tuple[Pixels, Pixels], originals: tuple["_Original | None", "_Original | None"], equal: bool
) -> tuple[_Likeness, _Likeness]:
    """Compare both with their originals. Only images have a displacement."""
    first, second = originals
    found = first.compare(pixels[0]) if first else _UNKNOWN
    if equal and first is second:
        return found, found
    return found, second.compare(pixels[1]) if second else _UNKNOWN


@dataclass(frozen=True)
class _Original(ABC):
    """Original that outputs are compared with."""

    shape: tuple[int, ...]

    @abstractmethod
    def compare(self, pixels: Pixels) -> _Likeness:
        """Return the likeness of an output to it."""


@dataclass(frozen=True)
class _OriginalImage(_Original):
    """The clean image."""

    reference: Reference

    @cached_property
    def _alignment(self) -> Alignment:
        return Alignment(self.reference.image)

    def compare(self, pixels: Pixels) -> _Likeness:
        return _average([self.reference.similarity(pixels)], self._alignment.displacement(pixels))


@dataclass(frozen=True)
class _FirstFrame(_Original):
    """The first frame of a sequence."""

    reference: Reference

    def compare(self, pixels: Pixels) -> _Likeness:
        chosen = spread_frames(len(pixels), _FRAMES_MEASURED, 1)
        return _average([self.reference.similarity(pixels[i]) for i in chosen])


@dataclass(frozen=True)
class _OriginalClip(_Original):
    """The clean clip, with some of its frames."""

    references: Sequence[Reference]

    def compare(self, pixels: Pixels) -> _Likeness:
        # Frames at another rate or of another size have no clean ones beside them.
        if self.shape != pixels.shape:
            return _UNKNOWN
        pairs = zip(self.references, stills(pixels, _FRAMES_MEASURED), strict=True)
        return _average([reference.similarity(frame) for reference, frame in pairs])


def _open_original(pixels: Pixels) -> _Original:
    if pixels.ndim == 3:
        return _OriginalImage(pixels.shape, Reference(pixels))
    return _OriginalClip(pixels.shape, [*map(Reference, stills(pixels, _FRAMES_MEASURED))])


def _average(found: Sequence[Similarity], moved: tuple[float, float] = (np.nan, np.nan)) -> _Likeness:
    return fmean(s.psnr for s in found), fmean(s.ssim for s in found), fmean(s.ms_ssim for s in found), *moved


def _size(pixels: Pixels) -> str:
    frames = f"{len(pixels)} frames of " if pixels.ndim == 4 else ""
    return f"{frames}{pixels.shape[-2]} x {pixels.shape[-3]} pixels"


SIDES: Final[tuple[Name, ...]] = ("A", "B", "clean")
Verdict = Literal["identical", "equivalent", "too few images", "different"]
_FROM_BEST: Final[tuple[Verdict, ...]] = ("identical", "equivalent", "too few images", "different")
Quantiles = tuple[float, ...]
Missing = Mapping[Name, tuple[str, ...]]


def judge(effects: Sequence[Effect]) -> Verdict:
    """Return the verdict of all tests of one variant, or of the means over several."""
    if any(each.significant for each in effects):
        return "different"
    return "equivalent" if effects and all(each.within for each in effects) else "too few images"


@dataclass(frozen=True)
class VariantResult:
    """Result of one corruption at one severity, or of one perturbation.

    Attributes
    ----------
    variant : Variant
    pairs : tuple of Pair
        The images that were measured in both sets.
    effects : tuple of Effect
        One effect per metric; none if the pixels are the same or there are too few pairs.
    problems : tuple of Problem
        Images that cannot be used.
    missing : mapping of {"A", "B"} to tuple of str
        Images that a set lacks in this variant, although one of the sets has them elsewhere.
    """

    variant: Variant
    pairs: tuple[Pair, ...]
    effects: tuple[Effect, ...]
    problems: tuple[Problem, ...]
    missing: Missing

    @property
    def equal(self) -> int:
        """Return the number of pairs with equal pixels."""
        return sum(pair.equal for pair in self.pairs)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of the tests, or of the pixels if all are the same."""
        if self.pairs and self.equal == len(self.pairs):
            return "identical"
        return judge(self.effects)

    @property
    def offset(self) -> float:
        """Return the mean difference of the pixels, B - A, in grey levels; NaN without pairs."""
        return _mean(pair.offset for pair in self.pairs)

    @property
    def spread(self) -> float:
        """Return the standard deviation of the differences within an image; mean over the images."""
        return _mean(pair.spread for pair in self.pairs)

    def quantiles(self, metric: int, side: int) -> Quantiles | None:
        """Return a metric's values, by its index in `METRICS`, in A (0) or B (1); None if not measured."""
        return find_quantiles(np.array([pair.values[side, metric] for pair in self.pairs]))


@dataclass(frozen=True)
class OperationResult:
    """Result of a corruption or perturbation at all of its levels.

    Attributes
    ----------
    name : str
    variants : tuple of VariantResult
    pooled : tuple of Effect
        Effects on each image's means over the levels, which detect smaller differences than single levels.
    """

    name: str
    variants: tuple[VariantResult, ...]
    pooled: tuple[Effect, ...]

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict among its levels and their means."""
        levels = [each.verdict for each in self.variants]
        pooled = [judge(self.pooled)] if self.pooled else []
        return max(levels + pooled, key=_FROM_BEST.index)

    @property
    def reason(self) -> str:
        """Return the most certain difference, or the least certain equality, with its size and place."""
        if self.verdict == "too few images":
            return self._doubt
        found = [
            (each.p, -each.sureness, f"{each.describe()}{place}")
            for effects, place in self._placed
            for each in effects
            if each.significant
        ]
        return f"{min(found)[2]}{self._where}" if found else ""

    @property
    def _placed(self) -> list[tuple[tuple[Effect, ...], str]]:
        """Return the effects on the mean over the levels and at each level, with the words that name each."""
        levels = [
            (variant.effects, f" at severity {variant.variant.level}" * (len(self.variants) > 1))
            for variant in self.variants
        ]
        return [(self.pooled, " in the mean"), *levels]

    @property
    def _where(self) -> str:
        """Return the severities that differ, unless all do."""
        differing = [
            str(variant.variant.level) for variant in self.variants if variant.verdict == "different"
        ]
        if not 0 < len(differing) < len(self.variants):
            return ""
        return f"; different at severity {', '.join(differing)} only"

    @property
    def _doubt(self) -> str:
        """Return the metric that is farthest from being proven within its margin, and its place."""
        found = [
            (each.p_margin, f"{each.describe_doubt()}{place}")
            for effects, place in self._placed
            for each in effects
            if not each.within
        ]
        return max(found)[1] if found else ""

    def overall(self, metric: str) -> Effect | None:
        """Return the effect on a metric over all levels; None if all is equal or images are too few."""
        effects = self.pooled or (self.variants[0].effects if len(self.variants) == 1 else ())
        return next((each for each in effects if each.metric.key == metric), None)


@dataclass(frozen=True)
class Comparison:
    """Two sets, and how they differ.

    Attributes
    ----------
    a, b : Side
    kind : {"c", "p"}
    operations : tuple of OperationResult
        Operations of both sets; the clean images first.
    only : mapping of {"A", "B"} to tuple of str
        Folders of the variants that only one of the sets has.
    notes : tuple of str
        Notes for the reader.
    options : Comparing
    """

    a: Side
    b: Side
    kind: Kind
    operations: tuple[OperationResult, ...]
    only: Missing
    notes: tuple[str, ...]
    options: Comparing

    @property
    def variants(self) -> list[VariantResult]:
        """Return all variants of all operations."""
        return [variant for operation in self.operations for variant in operation.variants]

    @property
    def problems(self) -> list[Problem]:
        """Return all unusable images."""
        return [each for variant in self.variants for each in variant.problems]

    def missing(self, side: Name) -> int:
        """Return the number of images that a set lacks, in all variants together."""
        return sum(len(variant.missing.get(side, ())) for variant in self.variants)

    @property
    def whole(self) -> bool:
        """Return whether both sets have the same variants and images."""
        return not (any(self.only.values()) or self.missing("A") or self.missing("B"))

    @property
    def equivalent(self) -> bool:
        """Return whether nothing differs and, unless the scope is partial, nothing is missing."""
        settled = all(each.verdict in _FROM_BEST[:2] for each in self.operations)
        return settled and not self.problems and (self.whole or self.options.partial)

    @property
    def verdict(self) -> str:
        """Return the conclusion, with the number of operations that have each verdict."""
        verdicts = Counter(operation.verdict for operation in self.operations)
        counts = [f"{verdicts[each]} {each}" for each in _FROM_BEST if verdicts[each]]
        return f"{self._answer} ({', '.join(counts)})"

    @property
    def reasons(self) -> list[str]:
        """Return the operations that are not equivalent, and what is missing."""
        named = {v: [o.name for o in self.operations if o.verdict == v] for v in _FROM_BEST[:1:-1]}
        parts = [f"{verdict}: {', '.join(names)}" for verdict, names in named.items() if names]
        return [*parts, *self.lacking]

    @property
    def sentence(self) -> str:
        """Return the conclusion and its reasons."""
        return "; ".join([self.verdict, *self.reasons]) + "."

    @property
    def _answer(self) -> str:
        verdicts = {each.verdict for each in self.operations}
        if self.equivalent:
            return (
                "B is identical to A"
                if verdicts == {"identical"}
                else "B is equivalent to A within the margin"
            )
        if "different" in verdicts or "too few images" not in verdicts:
            return "B is not equivalent to A"
        return "too few images to tell whether B is equivalent to A"

    @property
    def lacking(self) -> list[str]:
        """Return what only one set has, and how many images are missing or unusable."""
        what = self.a.noun
        parts = [
            f"only in {side}: {shorten_folders(folders)}" for side, folders in self.only.items() if folders
        ]
        for side in SIDES:
            missing = self.missing(side)
            unusable = sum(each.side == side for each in self.problems)
            parts += [f"{format_count(missing, what)} missing from {side}"] * bool(missing)
            parts += [f"{format_count(unusable, what)} unusable in {side}"] * bool(unusable)
        return parts


def shorten_folders(folders: Iterable[str]) -> str:
    """Return folders of variants, with consecutive severities combined: ``fog/1-3, fog/5, tilt``."""
    runs: list[tuple[str, str, str]] = []
    for folder in folders:
        name, _, level = folder.partition("/")
        before, first, last = runs[-1] if runs else ("", "", "")
        # Fractional severities, such as 2.5, are never consecutive.
        if name == before and level.isdecimal() and last.isdecimal() and int(level) == int(last) + 1:
            runs[-1] = name, first, level
        else:
            runs.append((name, level, level))
    return ", ".join(
        f"{name}/{first}-{last}" if first != last else f"{name}/{first}".rstrip("/")
        for name, first, last in runs
    )


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return float(np.mean(known)) if known else float("nan")
