"""Pictures and curves of a finished set: for each category rows of pictures, and similarities."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from robustgen.lab.inspection.report.facts import group_variants
from robustgen.lab.inspection.report.sampling import FRAMES_SHOWN, SetSample, VariantView
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, Kind, Variant
from robustgen.pixels.benchmarks.registry import CATEGORIES
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.formats.base import WrittenSet


class Picture(NamedTuple):
    """One picture of a row; `image` is None if it cannot be read."""

    caption: str
    image: Rgb | None


@dataclass(frozen=True)
class PictureRow:
    """Pictures of one corruption or perturbation: for each image shown its severities, or some frames."""

    name: str
    strips: list[list[Picture]]


@dataclass(frozen=True)
class Curve:
    """Similarity against severity or frame number.

    Attributes
    ----------
    name : str
    x : list of int
    mean, low, high : list of float
        Mean, smallest and largest value of the sampled images at each `x`.
    """

    name: str
    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Category:
    """The rows and curves of noise, blur, weather, digital or other operations."""

    name: str
    rows: list[PictureRow]
    curves: list[Curve]

    @property
    def heads(self) -> list[str]:
        """Return the captions of the longest row."""
        return max(([picture.caption for picture in row.strips[0]] for row in self.rows), key=len)


def draw_categories(dataset: WrittenSet, sample: SetSample) -> Iterator[Category]:
    """Return the categories noise, blur, weather, digital and other, as far as present."""
    kind = dataset.kind
    rows = group_variants([variant for variant in dataset if variant.name != CLEAN], kind)
    known = {name: operation.category for name, operation in BENCHMARKS[kind].operations.items()}
    for category in (*CATEGORIES, "other"):
        own = [variants for variants in rows if known.get(variants[0].name, "other") == category]
        curves = [curve for variants in own if (curve := _curve(variants, sample, kind))]
        if own:
            yield Category(category, [_row(variants, sample, kind) for variants in own], curves)


def _row(variants: list[Variant], sample: SetSample, kind: Kind) -> PictureRow:
    if kind == "p":
        view = sample.views[variants[0]]
        # There are no numbers if no sequence of this kind can be read.
        captions = [str(number) for number in view.frames] or [""] * FRAMES_SHOWN
        return PictureRow(variants[0].folder, [_caption(captions, strip) for strip in view.strips])
    captions = [str(variant.level) for variant in variants]
    by_image = zip(*(sample.views[variant].strips for variant in variants), strict=True)
    return PictureRow(
        variants[0].name, [_caption(captions, [image for (image,) in strips]) for strips in by_image]
    )


def _caption(captions: list[str], images: list[Rgb | None]) -> list[Picture]:
    return [Picture(caption, image) for caption, image in zip(captions, images, strict=False)]


def list_faces(sample: SetSample) -> list[Picture]:
    """Return the first variant's picture of each image shown; that is the clean one, if it exists."""
    first: VariantView = next(iter(sample.views.values()))
    return [Picture(key, strip[0]) for key, strip in zip(sample.shown, first.strips, strict=True)]


def _curve(variants: list[Variant], sample: SetSample, kind: Kind) -> Curve | None:
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
    return Curve(BENCHMARKS[kind].array_name(variants[0]), x, [*map(fmean, points)], low, high)
