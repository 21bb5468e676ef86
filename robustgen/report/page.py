"""What the page of `robustgen report` shows of a finished C or P set: facts, pictures, curves, failures."""

import json
import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from robustgen import metrics
from robustgen.benchmark import BENCHMARKS, CLEAN, TITLES, Arm, Kind
from robustgen.datasets import EQUALISED, Dataset, open_dataset
from robustgen.display.html import check_place, render
from robustgen.display.text import format_count
from robustgen.errors import SourceError
from robustgen.imaging.pixels import Rgb
from robustgen.output.files import ERRORS, MANIFEST, save
from robustgen.registry import CATEGORIES
from robustgen.report.sampling import FRAMES, Sample, View, look_at

BIBTEX: Final = """\
@inproceedings{hendrycks2019robustness,
  title     = {Benchmarking Neural Network Robustness to Common Corruptions and Perturbations},
  author    = {Dan Hendrycks and Thomas Dietterich},
  booktitle = {International Conference on Learning Representations},
  year      = {2019}
}"""
_FAILURES_SHOWN: Final = 50
# What `dataset.json` says of a set to which no config gave a name.
_UNNAMED: Final = (None, "", "custom", "folder")


class Picture(NamedTuple):
    """One picture of a row; `image` is None where it cannot be read."""

    caption: str
    image: Rgb | None


@dataclass(frozen=True)
class Row:
    """What one corruption or perturbation makes: for each image shown its severities, or some frames."""

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
        Of the sampled images: mean, smallest and largest at each `x`.
    """

    name: str
    x: list[int]
    mean: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Category:
    """The rows and curves of noise, blur, weather, digital or what is none of these."""

    name: str
    rows: list[Row]
    curves: list[Curve]

    @property
    def heads(self) -> list[str]:
        """Captions of the longest row."""
        return max(([picture.caption for picture in row.strips[0]] for row in self.rows), key=len)


class Table(NamedTuple):
    """Constants of one scale: a row per corruption or perturbation, a cell per level."""

    scale: str
    rows: list[tuple[str, str, list[str]]]


@dataclass(frozen=True)
class Summary:
    """A finished set, as far as it can be told.

    Attributes
    ----------
    name : str
        Of its folder.
    title : str
        What the set is called.
    kind : {"c", "p"}
    known : bool
        Whether there is a `dataset.json`.
    complete : bool
        Whether it says that every image has all its files.
    facts : list of (str, str)
        Label and value, to be read from top to bottom.
    coverage : list of str
        How much of the benchmark is there, in sentences.
    sample : Sample
    has_clean : bool
        Whether the set holds the uncorrupted images.
    faces : list of Picture
        The images shown: uncorrupted, or the first picture that there is of each.
    categories : list of Category
    failures : list of dict
        The first entries of `errors.jsonl`: key, arm (or empty) and reason.
    failed : int
        How many there are in all.
    versions : dict
        Library to version.
    constants : list of Table
    digest, verify, licence, bibtex : str
        The dataset digest, the command that checks it, and terms; empty where not known.
    """

    name: str
    title: str
    kind: Kind
    known: bool
    complete: bool
    facts: list[tuple[str, str]]
    coverage: list[str]
    sample: Sample
    has_clean: bool
    faces: list[Picture]
    categories: list[Category]
    failures: list[dict[str, str]]
    failed: int
    versions: dict[str, str]
    constants: list[Table]
    digest: str
    verify: str
    licence: str
    bibtex: str

    @property
    def lead(self) -> str:
        """What the set is, in one line."""
        names = {row.name for category in self.categories for row in category.rows}
        images, title = format_count(self.sample.total, "image"), BENCHMARKS[self.kind].title
        if self.kind == "p":
            return f"{title}, {format_count(len(names), 'sequence')} of each of {images}"
        levels = len({head for category in self.categories for head in category.heads})
        severities = f"{levels} severit{'y' if levels == 1 else 'ies'}"
        return f"{title}, {format_count(len(names), 'corruption')} at {severities} of {images}"

    @property
    def columns(self) -> int:
        """Most pictures in a row, the clean one included."""
        return max((len(category.heads) for category in self.categories), default=0) + self.has_clean

    @property
    def floor(self) -> float:
        """Where the axis of the curves begins: at 0, or higher where all of them stay high."""
        values = [value for category in self.categories for curve in category.curves for value in curve.low]
        return max(0.0, math.floor(5 * min(values, default=0)) / 5) if self.kind == "p" else 0.0

    @property
    def has_curves(self) -> bool:
        """Whether there was anything to compare with."""
        return any(category.curves for category in self.categories)


def report(root: Path, output: Path | None = None, images: int = 3) -> tuple[Path, int]:
    """Write the page about the set in the folder `root`.

    Parameters
    ----------
    root : Path
    output : Path, optional
        Default ``<name>-report.html`` beside the folder.
    images : int
        How many images to show.

    Returns
    -------
    Path
        The page.
    int
        Its size in bytes.

    Raises
    ------
    SourceError, OutputError
        There is no finished set, or the page cannot be written.
    """
    path = output or root.resolve().parent / f"{root.resolve().name or 'dataset'}-report.html"
    check_place(path, root)
    page = render("report.html", summary=summarise(root, images))
    save(path, page)
    return path, len(page)


def summarise(root: Path, images: int = 3) -> Summary:
    """Look at the set in the folder `root`, and at some of its `images` closely.

    Raises
    ------
    SourceError
        There is no finished C or P set, or what it says of itself is damaged.
    """
    dataset = open_dataset(root)
    about = dataset.about
    if about and about.get("kind") not in TITLES:
        raise SourceError(f"{root / MANIFEST}: a report is for ImageNet-C and -P, not {about.get('kind')!r}")
    name = root.resolve().name or "dataset"
    sample = look_at(dataset, images)
    failures, failed = _failures(root / ERRORS)
    return Summary(
        name=name,
        title=name if about.get("dataset") in _UNNAMED else str(about["dataset"]),
        kind=dataset.kind,
        known=bool(about),
        complete=bool(about.get("complete")),
        facts=[*_facts(dataset, sample)],
        coverage=[*_coverage(dataset)],
        sample=sample,
        has_clean=dataset.arms[0].name == CLEAN,
        faces=_faces(sample),
        categories=[*_categories(dataset, sample)],
        failures=failures,
        failed=failed,
        versions={key: str(value) for key, value in _part(about, "settings", "versions").items()},
        constants=[*_constants(_part(about, "settings", "parameters"), dataset)],
        digest=str(about.get("digest", "")),
        verify=f"robustgen verify {shlex.quote(name)}",
        licence=str(about.get("licence", "")),
        bibtex=BIBTEX,
    )


def _part(content: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The mapping that lies under `keys`; an empty one where there is something else."""
    for key in keys:
        inner = content.get(key)
        content = inner if isinstance(inner, dict) else {}
    return content


# --- facts -----------------------------------------------------------------------------------------


def _facts(dataset: Dataset, sample: Sample) -> Iterator[tuple[str, str]]:
    about, settings = dataset.about, _part(dataset.about, "settings")
    yield "Size", _sizes(sample)
    if not about:
        yield "Images" if dataset.kind == "c" else "Sequences", f"{sample.total:,}"
        return
    if clahe := _part(about, EQUALISED):
        yield (
            "Preprocessing",
            f"CLAHE, clip limit {clahe.get('clip_limit')}, {clahe.get('tiles')} tiles a side",
        )
    if "scale" in settings:
        yield "Edition", f"{about.get('edition')}, constants of {_scale(settings['scale'])}"
    yield "Images", _images(about)
    yield "Source", str(_part(about, "source").get("location", "not recorded"))
    yield "Files", _files(_part(about, "counts"))
    yield "Format", _format(_part(settings, "output"))
    if "seed" in settings:
        yield "Seed", str(settings["seed"])
    if own := sorted(_part(about, "config", "parameters")):
        yield "Own constants", ", ".join(own)
    yield "Made by", f"robustgen {_part(settings, 'versions').get('robustgen', '')}"


def _sizes(sample: Sample) -> str:
    """Width x height in pixels of the images looked at, frames counted where there are several."""
    shapes = sorted({shape for view in sample.views.values() for shape in view.shapes})
    named = dict.fromkeys(f"{width} x {height}" for *_, height, width, _ in shapes)
    return " or ".join([*named][:2]) + ", and others" * (len(named) > 2) if named else "not readable"


def _scale(scale: object) -> str:
    return "the scale nearest to each image" if scale == "nearest" else f"scale {scale}"


def _images(about: Mapping[str, Any]) -> str:
    count, available = _number(about.get("images")), _number(_part(about, "source").get("images"))
    return count if count == available else f"{count} of {available} in the source"


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "not recorded"


def _files(counts: Mapping[str, Any]) -> str:
    size = counts.get("bytes")
    return _number(counts.get("files")) + (f", {size / 1e6:,.1f} MB" if isinstance(size, int) else "")


def _format(output: Mapping[str, Any]) -> str:
    kind, encoding = str(output.get("format", "not recorded")), _part(output, "video")
    if kind == "mp4":
        return f"MP4, H.264 {encoding.get('pixel_format')}, preset {encoding.get('preset')}"
    if kind == "jpeg":
        return f"JPEG, quality {output.get('quality')}"
    return {"npy": "NumPy arrays", "png": "PNG frames"}.get(kind, kind)


def _coverage(dataset: Dataset) -> Iterator[str]:
    """How much of the benchmark is there."""
    there = {arm.folder for arm in dataset.arms}
    for group, names in _GROUPS[dataset.kind].items():
        wanted = {name: _wanted(name, dataset.kind) for name in names}
        whole = [name for name, folders in wanted.items() if folders <= there]
        parts = [name for name, folders in wanted.items() if folders & there and name not in whole]
        yield f"{len(whole)} of {len(names)} {group}" + "; in part " * bool(parts) + ", ".join(parts)


_GROUPS: Final[Mapping[Kind, Mapping[str, tuple[str, ...]]]] = {
    "c": {
        "common corruptions at all five severities": metrics.COMMON_CORRUPTIONS,
        "extra corruptions": metrics.EXTRA_CORRUPTIONS,
    },
    "p": {
        "common perturbations": metrics.COMMON_PERTURBATIONS,
        "extra perturbations": metrics.EXTRA_PERTURBATIONS,
    },
}


def _wanted(name: str, kind: Kind) -> set[str]:
    levels = range(1, metrics.SEVERITIES + 1)
    return {f"{name}/{level}" for level in levels} if kind == "c" else {name}


def _failures(path: Path) -> tuple[list[dict[str, str]], int]:
    """The first entries of an `errors.jsonl`, and how many there are; none where there is no such file."""
    if not path.exists():
        return [], 0
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as lines:
            first = [_failure(json.loads(line)) for line in islice(lines, _FAILURES_SHOWN)]
            return first, len(first) + sum(1 for _ in lines)
    except (OSError, ValueError, AttributeError) as error:
        raise SourceError(f"{path}: cannot be read ({error})") from error


def _failure(entry: dict[str, Any]) -> dict[str, str]:
    failure = {key: str(entry.get(key, "")) for key in ("key", "arm", "reason")}
    # Many reasons begin with the name, which stands beside them.
    return failure | {"reason": failure["reason"].removeprefix(f"{failure['key']!r}: ")}


# --- constants -------------------------------------------------------------------------------------


def _constants(parameters: Mapping[str, Any], dataset: Dataset) -> Iterator[Table]:
    """One table; or one for each scale, where each image has that nearest to it."""
    arms = [arm for arm in dataset.arms if arm.folder in parameters and arm.name != CLEAN]
    first: Any = next((parameters[arm.folder] for arm in arms), {})
    scales = [*first] if isinstance(first, dict) and all(map(str.isdecimal, first)) else [""]
    for scale in scales if arms else []:
        values = {arm: _part(parameters, arm.folder, *filter(None, [scale])) for arm in arms}
        yield Table(scale, [_constants_of(same, values) for same in _rows(arms, "c")])


def _constants_of(arms: list[Arm], values: Mapping[Arm, Mapping[str, Any]]) -> tuple[str, str, list[str]]:
    names = ", ".join(values[arms[0]])
    return arms[0].name, names, [", ".join(map(_short, values[arm].values())) for arm in arms]


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- pictures and curves -----------------------------------------------------------------------------


def _rows(arms: list[Arm], kind: Kind) -> list[list[Arm]]:
    """The severities of each corruption, or each perturbation by itself."""
    return [list(same) for _, same in groupby(arms, lambda arm: BENCHMARKS[kind].array_name(arm))]


def _categories(dataset: Dataset, sample: Sample) -> Iterator[Category]:
    kind = dataset.kind
    rows = _rows([arm for arm in dataset.arms if arm.name != CLEAN], kind)
    for category in (*CATEGORIES, "other"):
        own = [arms for arms in rows if _category(arms[0], kind) == category]
        curves = [curve for arms in own if (curve := _curve(arms, sample, kind))]
        if own:
            yield Category(category, [_row(arms, sample, kind) for arms in own], curves)


def _category(arm: Arm, kind: Kind) -> str:
    known = BENCHMARKS[kind].operations
    return known[arm.name].category if arm.name in known else "other"


def _row(arms: list[Arm], sample: Sample, kind: Kind) -> Row:
    if kind == "p":
        view = sample.views[arms[0]]
        # There are no numbers where no sequence of this kind can be read.
        captions = [str(number) for number in view.frames] or [""] * FRAMES
        return Row(arms[0].folder, [_captioned(captions, strip) for strip in view.strips])
    captions = [str(arm.level) for arm in arms]
    by_image = zip(*(sample.views[arm].strips for arm in arms), strict=True)
    return Row(arms[0].name, [_captioned(captions, [image for (image,) in strips]) for strips in by_image])


def _captioned(captions: list[str], images: list[Rgb | None]) -> list[Picture]:
    return [Picture(caption, image) for caption, image in zip(captions, images, strict=False)]


def _faces(sample: Sample) -> list[Picture]:
    """What the first arm has of each image shown; that is the clean one, where there is one."""
    first: View = next(iter(sample.views.values()))
    return [Picture(key, strip[0]) for key, strip in zip(sample.shown, first.strips, strict=True)]


def _curve(arms: list[Arm], sample: Sample, kind: Kind) -> Curve | None:
    """The curve of one row; None where there was nothing to compare with."""
    views = [sample.views[arm] for arm in arms]
    if kind == "c":
        points = [[value for (value,) in view.similarities] for view in views]
        x = [arm.level for arm in arms]
    else:
        points = [list(values) for values in zip(*views[0].similarities, strict=False)]
        x = list(range(1, len(points) + 1))
    if not points or not all(points):
        return None
    low, high = [min(values) for values in points], [max(values) for values in points]
    return Curve(BENCHMARKS[kind].array_name(arms[0]), x, [*map(fmean, points)], low, high)
