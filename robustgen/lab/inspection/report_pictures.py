"""Pictures and curves of a finished set, from a sample of its images.

The images are evenly spaced in the list of all, which comes from `SHA256SUMS` if that exists. So the same set
gives the same sample, and 50 000 images take no longer than fifty.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from robustgen import metrics
from robustgen.display.charts import Curve
from robustgen.display.progress import track
from robustgen.display.sheets import fit_picture
from robustgen.errors import ImageError
from robustgen.files.storage import AT_ONCE
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, Content, Kind, Variant
from robustgen.pixels.benchmarks.registry import CATEGORIES
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.frames import spread_frames, stills
from robustgen.pixels.imaging.geometry import centre_crop
from robustgen.pixels.imaging.similarity import WINDOW, Reference
from robustgen.sets.formats.base import WrittenSet
from robustgen.sets.sources.base import Source

# --- sample ---------------------------------------------------------------------------------------

# This number of frames is evenly spaced for the published lengths 16, 21, 31 and 41.
FRAMES_SHOWN: Final = 6
_MOST_SAMPLED: Final = {"c": 16, "p": 6}
# Fewer large images are sampled, because reading them takes long.
_SAMPLED_PIXELS: Final = {"c": 4_000_000, "p": 10_000_000}
# Limit for all pictures of a page together; as JPEG about two megabytes.
_PAGE_PIXELS: Final = 5_000_000
_SIDES: Final = (48, 256)
# Frames of a moving picture and of a strip.
_MOVING, _STRIP = 12, 5
# Only the middle is compared: photographs of many megapixels would take seconds each.
_WINDOW: Final = 512


class VariantView(NamedTuple):
    """Outputs of one variant for the sampled images.

    Attributes
    ----------
    strips : list of sequence
        For each image shown its pictures: one, or `FRAMES_SHOWN` frames; of a clip at the highest severity, a
        moving picture, uint8 (T, H, W, 3), and some frames. None for an unreadable picture.
    frames : list of int
        Numbers of these frames.
    similarities : list of list of float
        For each comparable sampled image: MS-SSIM to the clean one; or for each frame except the first,
        SSIM to the frame that the scores compare it with.
    shapes : set of tuple of int
        Shapes of the images that were read.
    """

    strips: list[Sequence[Rgb | None]]
    frames: list[int]
    similarities: list[list[float]]
    shapes: set[tuple[int, ...]]


@dataclass(frozen=True)
class SetSample:
    """Some images of a set.

    Attributes
    ----------
    total : int
        Number of images or sequences of the set.
    keys : list of str
        Those that were sampled.
    shown : list of str
        Those that are shown.
    views : dict of Variant to View
    """

    total: int
    keys: list[str]
    shown: list[str]
    views: dict[Variant, VariantView]


def sample_set(dataset: WrittenSet, images: int) -> SetSample:
    """Sample some images of `dataset`, and create pictures of `images` of them.

    Raises
    ------
    SourceError
        The list of its images cannot be read, or is empty.
    """
    look = _LOOKS[dataset.benchmark.content](dataset, images)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = track(pool.map(look.at, dataset), len(dataset), "variants")
        views = dict(zip(dataset, found, strict=True))
    keys = [look.keys[index] for index in look.indices]
    return SetSample(len(look.keys), keys, [keys[index] for index in look.shown], views)


def spread_evenly(count: int, wanted: int) -> list[int]:
    """Return at most `wanted` indices below `count`, from the middles of that many equal parts."""
    parts = min(wanted, count)
    return [(2 * i + 1) * count // (2 * parts) for i in range(parts)]


class _Look:
    """Samples images and prepares pictures of them; `across` is the number of pictures of an output."""

    across = 1

    def __init__(self, dataset: WrittenSet, images: int) -> None:
        leading = dataset.variants[0]
        self.dataset, self.keys = dataset, dataset.keys_of(leading)
        kind, first = dataset.kind, self._read(dataset[leading], 0)
        affordable = 1 if first is None else min(_MOST_SAMPLED[kind], 3 * _SAMPLED_PIXELS[kind] // first.size)
        wanted = max(images, affordable)
        self.indices = spread_evenly(len(self.keys), wanted)
        self.shown = spread_evenly(len(self.indices), images)
        # The clean images, which all severities are compared with.
        has_clean = leading.name == CLEAN
        threads = os.cpu_count() or 1
        self._ahead = max(1, AT_ONCE // threads)
        # All threads together hold as much.
        self._held = 0 if first is None else threads * first.nbytes
        originals = [*self._read_all(dataset[leading])] if has_clean else [None] * len(self.indices)
        self._lengths = [0 if image is None else len(image) for image in originals]
        self._originals = [
            None
            if image is None or min(image.shape[-3:-1]) < WINDOW
            else Reference(_cut_middle(stills(image, 1)[0]))
            for image in originals
        ]

    # --- reading

    def _read(self, source: Source, index: int) -> Rgb | None:
        try:
            return source.load(self.keys[index])
        except ImageError:
            return None

    def _read_all(self, source: Source) -> Iterator[Rgb | None]:
        """Yield the sampled images; on a server, the next ones are read ahead, fewer if they are large."""
        read = partial(self._read, source)
        return self.dataset.store.map(read, self.indices, self._ahead, lambda _: self._held)

    # --- comparison

    def at(self, variant: Variant) -> VariantView:
        """Return the pictures and similarities of one variant; of a local set, one image is in memory."""
        strips: list[Sequence[Rgb | None]] = []
        similarities: list[list[float]] = []
        frames: list[int] = []
        shapes: set[tuple[int, ...]] = set()
        source = self.dataset[variant]
        for position, pixels in enumerate(self._read_all(source)):
            if pixels is not None:
                shapes.add(pixels.shape)
                similarities += self._compare(variant, pixels, position)
                frames = self._number(pixels)
            if position in self.shown:
                strips.append([None] * self.across if pixels is None else self._show(variant, pixels))
        return VariantView(strips, frames, similarities, shapes)

    @cached_property
    def _side(self) -> int:
        """Return the side of the pictures, which limits the size of the page."""
        pictures = max(1, sum(map(self._count, self.dataset)) * len(self.shown))
        return min(max(int((_PAGE_PIXELS / pictures) ** 0.5), _SIDES[0]), _SIDES[1])

    def _count(self, variant: Variant) -> int:
        """Return the number of pictures of an output."""
        return self.across

    def _fit(self, pictures: Iterable[Rgb]) -> list[Rgb]:
        return [fit_picture(each, self._side) for each in pictures]

    def _number(self, pixels: Rgb) -> list[int]:
        """Return the numbers of the frames that are shown."""
        return [0]

    def _show(self, variant: Variant, pixels: Rgb) -> Sequence[Rgb]:
        """Return the pictures of an output."""
        return self._fit([pixels])

    def _compare(self, variant: Variant, pixels: Rgb, position: int) -> Iterator[list[float]]:
        """Yield one list of similarities, or nothing if there is nothing to compare with."""
        original, middle = self._originals[position], _cut_middle(pixels)
        if variant.name != CLEAN and original is not None and middle.shape == original.image.shape:
            yield [original.similarity(middle).ms_ssim]

    @staticmethod
    def list_rows(name: str, variants: list[Variant], sample: SetSample) -> Iterator["PictureRow"]:
        """Yield the rows of an operation: its severities."""
        captions = [str(variant.level) for variant in variants]
        by_image = zip(*(sample.views[variant].strips for variant in variants), strict=True)
        strips = [_caption(captions, [image for image, *_ in strips]) for strips in by_image]
        yield PictureRow(name, strips)


class _SequenceLook(_Look):
    """Samples sequences, and shows some frames of each."""

    across = FRAMES_SHOWN

    def _number(self, pixels: Rgb) -> list[int]:
        return spread_frames(len(pixels), FRAMES_SHOWN)

    def _show(self, variant: Variant, pixels: Rgb) -> Sequence[Rgb]:
        return self._fit(stills(pixels, FRAMES_SHOWN))

    def _compare(self, variant: Variant, pixels: Rgb, position: int) -> Iterator[list[float]]:
        if min(pixels.shape[1:3]) >= WINDOW:
            yield [*_steps([*map(_cut_middle, pixels)], variant.name in metrics.NOISE_PERTURBATIONS)]

    @staticmethod
    def list_rows(name: str, variants: list[Variant], sample: SetSample) -> Iterator["PictureRow"]:
        """Yield the row of a perturbation: its frames."""
        view = sample.views[variants[0]]
        # There are no numbers if no such sequence can be read.
        captions = [str(number) for number in view.frames] or [""] * FRAMES_SHOWN
        yield PictureRow(name, [_caption(captions, strip) for strip in view.strips])


class _ClipLook(_Look):
    """Samples clips, and shows a frame of each; of the highest severity a moving picture and some frames."""

    across = 1 + _STRIP

    @cached_property
    def _moving(self) -> set[Variant]:
        return {severities[-1] for severities in group_variants([*self.dataset], "c")}

    def _count(self, variant: Variant) -> int:
        return _MOVING + _STRIP if variant in self._moving else 1

    def _number(self, pixels: Rgb) -> list[int]:
        return spread_frames(len(pixels), _STRIP)

    def _show(self, variant: Variant, pixels: Rgb) -> Sequence[Rgb]:
        if variant not in self._moving:
            return self._fit(stills(pixels, 1))
        return [np.stack(self._fit(stills(pixels, _MOVING))), *self._fit(stills(pixels, _STRIP))]

    def _compare(self, variant: Variant, pixels: Rgb, position: int) -> Iterator[list[float]]:
        # Frames of another rate, or those that are left of a blurred clip, show other moments.
        if len(pixels) == self._lengths[position]:
            yield from super()._compare(variant, stills(pixels, 1)[0], position)

    @staticmethod
    def list_rows(name: str, variants: list[Variant], sample: SetSample) -> Iterator["PictureRow"]:
        """Yield the severities of a corruption, and its frames at the highest severity."""
        yield from _Look.list_rows(name, variants, sample)
        last = variants[-1]
        view = sample.views[last]
        captions = [str(number) for number in view.frames] or [""] * _STRIP
        strips = [_caption(captions, frames) for _, *frames in view.strips]
        yield PictureRow(f"{name}, frames at severity {last.level}", strips, is_strip=True)


_LOOKS: Final[Mapping[Content, type[_Look]]] = {"c": _Look, "p": _SequenceLook, "clip": _ClipLook}


def _steps(frames: Sequence[Rgb], noise: bool) -> Iterator[float]:
    """Return the SSIM of each frame to the previous one, or for noise to the first, as the scores compare."""
    reference = Reference(frames[0], scales=1)
    for frame in frames[1:]:
        yield reference.similarity(frame).ssim
        if not noise:
            reference = Reference(frame, scales=1)


def _cut_middle(pixels: Rgb) -> Rgb:
    height, width = pixels.shape[:2]
    return centre_crop(pixels, min(width, _WINDOW), min(height, _WINDOW))


# --- pictures and curves --------------------------------------------------------------------------


class Picture(NamedTuple):
    """One picture of a row; `image` is None if it cannot be read. Without a caption, there is none."""

    caption: str
    image: Rgb | None


_GAP: Final = Picture("", None)


@dataclass(frozen=True)
class PictureRow:
    """Pictures of one corruption or perturbation: for each image shown its severities, or some frames.

    Attributes
    ----------
    name : str
    strips : list of list of Picture
    is_strip : bool
        Whether they are frames of a clip at its highest severity.
    """

    name: str
    strips: list[list[Picture]]
    is_strip: bool = False


@dataclass(frozen=True)
class Category:
    """The rows and curves of noise, blur, weather, digital or other operations."""

    name: str
    rows: list[PictureRow]
    curves: list[Curve]

    @property
    def heads(self) -> list[str]:
        """Return the captions of the longest rows."""
        rows = [[picture.caption for picture in row.strips[0]] for row in self.rows if not row.is_strip]
        longest = [row for row in rows if len(row) == max(map(len, rows))]
        return [next(filter(None, column)) for column in zip(*longest, strict=True)]


def draw_categories(dataset: WrittenSet, sample: SetSample) -> Iterator[Category]:
    """Return the categories noise, blur, weather, digital and other, as far as present."""
    kind, look = dataset.kind, _LOOKS[dataset.benchmark.content]
    rows = group_variants([variant for variant in dataset if variant.name != CLEAN], kind)
    known = {name: operation.category for name, operation in BENCHMARKS[kind].operations.items()}
    name = name_variants(dataset)
    for category in (*CATEGORIES, "other"):
        own = {
            name(variants[0].name if kind == "c" else variants[0].folder): variants
            for variants in rows
            if known.get(variants[0].name, "other") == category
        }
        curves = [curve for each in own.items() if (curve := _curve(*each, sample, kind))]
        if own:
            shown = [row for each in own.items() for row in look.list_rows(*each, sample)]
            yield Category(category, [*_align(shown)] if kind == "c" else shown, curves)


def _align(rows: list[PictureRow]) -> Iterator[PictureRow]:
    """Yield the rows with equal severities below each other, and gaps at those that a row lacks."""
    captions = {picture.caption for row in rows if not row.is_strip for picture in row.strips[0]}
    for row in rows:
        strips = [{picture.caption: picture for picture in strip} for strip in row.strips]
        placed = [[own.get(head, _GAP) for head in sorted(captions, key=float)] for own in strips]
        yield row if row.is_strip else replace(row, strips=placed)


def _caption(captions: list[str], images: Sequence[Rgb | None]) -> list[Picture]:
    return [Picture(caption, image) for caption, image in zip(captions, images, strict=False)]


def list_faces(sample: SetSample) -> list[Picture]:
    """Return the first variant's picture of each image shown; that is the clean one, if it exists."""
    first: VariantView = next(iter(sample.views.values()))
    return [Picture(key, strip[0]) for key, strip in zip(sample.shown, first.strips, strict=True)]


def _curve(name: str, variants: list[Variant], sample: SetSample, kind: Kind) -> Curve | None:
    """Return the curve of one row; None if nothing was measured."""
    views = [sample.views[variant] for variant in variants]
    if kind == "c":
        points = [[value for (value,) in view.similarities] for view in views]
        x = [variant.level for variant in variants]
    else:
        points = [list(values) for values in zip(*views[0].similarities, strict=False)]
        x = list(range(1, len(points) + 1))
    if not points or not all(points):
        return None
    low, high = [min(values) for values in points], [max(values) for values in points]
    return Curve(name, x, [*map(fmean, points)], low, high)


def name_variants(dataset: WrittenSet) -> Callable[[str], str]:
    """Return a function from the name of an operation to its name without the family that all have."""
    families = {variant.name.rpartition(":")[0] for variant in dataset if variant.name != CLEAN}
    prefix = f"{min(families)}:" if len(families) == 1 else ""
    return lambda name: name.removeprefix(prefix)


def group_variants(variants: list[Variant], kind: Kind) -> list[list[Variant]]:
    """Return the severities of each corruption, or each perturbation by itself."""
    return [list(same) for _, same in groupby(variants, lambda variant: BENCHMARKS[kind].array_name(variant))]
