"""`robustgen score-segmentation`: mIoU, mCD and rCD from label maps.

Images are read one by one and added to counts of pixels, so memory does not grow with their number.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.display import text
from robustgen.display.charts import CurveGroup
from robustgen.errors import ArgumentError, ConfigError, ImageError, SourceError
from robustgen.files.text_files import describe_difference, read_json
from robustgen.lab.evaluation.processes import map_files
from robustgen.lab.scores.exhibits import Examples, caption, choose_cells, choose_images, colour_map
from robustgen.lab.scores.intervals import Interval
from robustgen.lab.scores.palettes import Palette, compose_voc, find_classes, read_palette
from robustgen.lab.scores.result_grid import (
    GridCell,
    averaged_cells,
    check_cells,
    describe_averaged,
    divide_cells,
    find_cells,
    tabulate_severities,
)
from robustgen.lab.scores.table_page import group_curves
from robustgen.metrics.classification import (
    IGNORED,
    Floats,
    count_pixels,
    intersections_over_union,
    mean_intersection_over_union,
)
from robustgen.metrics.corruption_errors import CORRUPTION_ERROR, RELATIVE_CORRUPTION_ERROR
from robustgen.metrics.intervals import jackknife_interval
from robustgen.pixels.benchmarks.kinds import CLEAN
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import read_label_map
from robustgen.settings.scoring import SegmentationScoring

# Label ids of Cityscapes' 19 classes, of 34, in the order of their train ids.
_CITYSCAPES: Final = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
CITYSCAPES_CLASSES: Final = len(_CITYSCAPES)
_LARGEST: Final = (1 << 16) - 1
# Groups of images, each of which is left out once.
_GROUPS: Final = 200
# Images of which one looks at the agreement of shifted labels.
_LOOKED_AT: Final = 20
_SUFFIXES: Final = (".png", ".tif", ".tiff", ".bmp", ".gif", ".npy")
# Suffixes that data sets and tools add to the name of an image.
_TAIL: Final = re.compile(r"_(gtFine_labelTrainIds|gtFine_labelIds|leftImg8bit)$")


def to_train_ids(labels: NDArray[Any], ignored: int = IGNORED) -> NDArray[Any]:
    """Return Cityscapes' label ids as its 19 train ids, and all others as `ignored`."""
    table = np.full(1 << 16, ignored, np.int64)
    table[list(_CITYSCAPES)] = range(CITYSCAPES_CLASSES)
    return table[labels.astype(np.uint16)]


@dataclass(frozen=True)
class LabelFormat:
    """Meaning of the values of label maps.

    Attributes
    ----------
    classes : int
    ignored : int
        Label of pixels to ignore.
    label_ids : {"none", "truth", "results", "both"}
        Maps that contain Cityscapes' 34 label ids instead of its 19 train ids.
    one_based : {"none", "truth", "results", "both"}
        Maps whose classes begin at 1, and whose 0 is ignored.
    white : {"none", "truth", "results", "both"}
        Maps in which 255 is class 1.
    palette : Palette, optional
        Classes of the colours, if maps have colours.
    """

    classes: int
    ignored: int
    label_ids: str
    one_based: str = "none"
    white: str = "none"
    palette: Palette | None = None

    @property
    def void(self) -> int:
        """Return the label of ignored pixels in what `read` returns."""
        if self.one_based == "none":
            return self.ignored
        return IGNORED if self.classes <= IGNORED else _LARGEST

    def read(self, path: Path, of: str) -> NDArray[Any]:
        """Return the classes of the pixels of a file, a ``"truth"`` or one of the ``"results"``."""
        try:
            labels = read_label_map(path)
        except ImageError as error:
            raise SourceError(str(error)) from error
        if labels.ndim > len("HW"):
            labels = find_classes(labels, self.palette, path)
        if self.label_ids in (of, "both"):
            labels = to_train_ids(labels, self.ignored)
        if self.white in (of, "both"):
            labels = np.where(labels == IGNORED, 1, labels)
        return labels if self.one_based == "none" else self._shift(labels, of)

    def _shift(self, labels: NDArray[Any], of: str) -> NDArray[Any]:
        """Return labels that begin at 0, where some maps begin at 1."""
        begins_at_1 = self.one_based in (of, "both")
        is_void = labels == 0 if begins_at_1 else np.zeros(labels.shape, bool)
        # In the other side's maps, the truth's label for no class may be that of a class.
        if of == "truth" or begins_at_1 or self.ignored >= self.classes:
            is_void |= labels == self.ignored
        return np.where(is_void, self.void, labels.astype(np.int64) - begins_at_1)


@dataclass(frozen=True)
class _Counter:
    """Counts the pixels of one image in all cells.

    Attributes
    ----------
    truth : dict of str to Path
    cells : list of dict of str to Path
    format : LabelFormat
    """

    truth: Mapping[str, Path]
    cells: Sequence[Mapping[str, Path]]
    format: LabelFormat

    def __call__(self, name: str) -> NDArray[np.int64]:
        """Return the counts of the image `name`: (cells, 3, classes)."""
        true = self.format.read(self.truth[name], "truth")
        return np.stack([self._count(true, files[name]) for files in self.cells])

    def _count(self, true: NDArray[Any], path: Path) -> NDArray[np.int64]:
        labels = self.format.read(path, "results")
        try:
            return count_pixels(true, labels, self.format.classes, self.format.void)
        except ArgumentError as error:
            hint = self._hint_at({"truth": true, "results": labels}) if true.shape == labels.shape else ""
            raise SourceError(f"{path}: {error}{hint}") from error

    def _hint_at(self, maps: Mapping[str, NDArray[Any]]) -> str:
        """Return the flags with which unknown labels would fit; "" if there are none."""
        if self.format.one_based != "none":
            return ""
        highest = {
            side: int(labels[labels != self.format.void].max(initial=0)) for side, labels in maps.items()
        }
        side = next((side for side, label in highest.items() if label == self.format.classes), "")
        if side:
            return f"; if the classes of the {side} begin at 1, give --one-based {side}"
        label = max(highest.values())
        way = f"; give --class-count {label + 1} if {label} is a class, or --ignore {label} if it is none"
        return way if label > self.format.classes else ""


@dataclass(frozen=True)
class SegmentationReport:
    """The scores of one model.

    Attributes
    ----------
    model : str
    images : int
    counts : dict of (str, int) or None to ndarray of shape (3, classes)
        For each corruption and severity; None is the clean set.
    averaged : list of (str, int)
        The cells in the means.
    reference : dict or None
        The dictionary from `as_dict` of the reference model.
    notes : list of str
    left : dict to ndarray of shape (groups, 3, classes)
        Counts without each group of images, mostly of one; empty without intervals.
    examples : Examples, optional
        Pictures of true and predicted maps.
    """

    model: str
    images: int
    counts: Mapping[GridCell | None, NDArray[np.int64]]
    averaged: Sequence[GridCell]
    reference: Mapping[str, Any] | None
    notes: list[str]
    left: Mapping[GridCell | None, NDArray[np.int64]] = field(default_factory=dict, repr=False)
    examples: Examples | None = None

    def miou(self, cell: GridCell | None) -> float:
        """Return the mean intersection over union of a cell; for None, on the clean images."""
        return float(mean_intersection_over_union(self.counts[cell]))

    def summary(self, left: bool = False) -> dict[str, Any]:
        """Return the clean and the mean mIoU, and mCD and rCD if there is a reference.

        With `left`, returns them without each group of images.
        """
        counts = self.left if left else self.counts
        degradation = {
            cell: 1 - mean_intersection_over_union(counts[cell]) for cell in (None, *self.averaged)
        }
        by_name: dict[str, list[Floats]] = {}
        for cell in self.averaged:
            by_name.setdefault(cell[0], []).append(degradation[cell])
        values = {
            "clean": 1 - degradation[None],
            "mean": 1 - np.mean([degradation[cell] for cell in self.averaged], axis=0),
        }
        if self.reference:
            known, clean = self._reference_degradations()
            for name, formula in (("mCD", CORRUPTION_ERROR), ("rCD", RELATIVE_CORRUPTION_ERROR)):
                parts = [
                    formula.combine(rows, degradation[None]) / formula.combine(known[corruption], clean)
                    for corruption, rows in by_name.items()
                ]
                values[name] = np.mean(parts, axis=0)
        return values

    def _reference_degradations(self) -> tuple[dict[str, list[float]], float]:
        assert self.reference is not None
        found: dict[str, list[float]] = {}
        for name, level in self.averaged:
            found.setdefault(name, []).append(1 - self.reference["corruptions"][name][str(level)])
        return found, 1 - self.reference["clean"]

    def divide(self) -> "dict[str, SegmentationReport]":
        """Return the report of each category of corruptions in the mean; empty if there is one alone."""
        parts = divide_cells(self.averaged)
        return {name: replace(self, averaged=own) for name, own in parts.items() if len(parts) > 1}

    def intervals(self) -> dict[str, Interval]:
        """Return the 95 % intervals of `summary`."""
        if not self.left:
            return {}
        values, bounds = self.summary(), {"mCD": (0.0, np.inf), "rCD": (-np.inf, np.inf)}
        return {
            name: Interval(
                *jackknife_interval(float(values[name]), rows, self.images, *bounds.get(name, (0.0, 1.0)))
            )
            for name, rows in self.summary(left=True).items()
        }

    def by_corruption(self) -> dict[str, dict[int, float]]:
        """Return the mIoU of each corruption and severity."""
        found: dict[str, dict[int, float]] = {}
        for cell in self.counts:
            if cell:
                found.setdefault(cell[0], {})[cell[1]] = self.miou(cell)
        return found

    title = "segmentation"
    method = "Intervals are Student's with the standard error of the jackknife over images."
    recorded: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @property
    def lead(self) -> str:
        """Return the number of images."""
        return text.format_count(self.images, "image")

    def list_scores(self) -> dict[str, float]:
        """Return clean and mean mIoU, mCD and rCD, then the mean mIoU of each corruption, in %."""
        means = {name: 100 * float(value) for name, value in self.summary().items()}
        found = {name: list(levels.values()) for name, levels in self.by_corruption().items()}
        return means | {name: 100 * sum(each) / len(each) for name, each in found.items()}

    def list_tables(self) -> list[text.Table]:
        """Return the summary, that of each category, and mIoU by corruption and severity."""
        heads = {"clean": "mIoU, clean", "mean": "mIoU, corrupted", "mCD": "mCD", "rCD": "rCD"}
        rows = []
        for part, report in {"all": self, **self.divide()}.items():
            values, ends = report.summary(), report.intervals()
            cells = [text.Cell(float(value), ends.get(name)) for name, value in values.items()]
            rows.append([part.capitalize(), *cells])
        base = f"; mCD and rCD divided by {self.reference['model']}" if self.reference else ""
        title = f"Mean intersection over union in %{base}{describe_averaged(self.averaged)}"
        by_cell = {cell: self.miou(cell) for cell in self.counts if cell}
        return [
            text.Table(title, ["", *(heads[name] for name in self.summary())], rows),
            tabulate_severities("mIoU in % by severity", by_cell),
        ]

    def list_curves(self) -> list[CurveGroup]:
        """Return mIoU by severity, for each corruption."""
        cells = {cell: self.miou(cell) for cell in self.counts if cell}
        return [group_curves("mIoU in % by severity", self.miou(None), cells, {})]

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON, which can serve as a reference."""
        return {
            "model": self.model,
            "images": self.images,
            "reference": self.reference and self.reference["model"],
            "clean": self.miou(None),
            "corruptions": self.by_corruption(),
            "class_iou": {
                CLEAN if cell is None else "/".join(map(str, cell)): intersections_over_union(each).tolist()
                for cell, each in self.counts.items()
            },
            "mean_over": [f"{name}/{level}" for name, level in self.averaged],
            "summary": self.summary(),
            "categories": {name: own.summary() for name, own in self.divide().items()},
            "intervals": {name: [*ends] for name, ends in self.intervals().items()},
            "interval_method": self.method if self.left else None,
            "notes": self.notes,
        }


def score_segmentation(options: SegmentationScoring) -> SegmentationReport:
    """Score the label maps that one model predicts.

    Maps are matched by name, without folders and without the suffixes of Cityscapes.

    Raises
    ------
    RobustgenError
        A file is missing or malformed, or files do not match; the message says which.
    """
    cells = find_cells(options.results, "--results")
    notes = check_cells(cells, "--results", options.partial)
    averaged = averaged_cells(cells)
    if not averaged:
        raise SourceError(f"--results {options.results}: the corruptions have no severity in common")
    known = _read_reference(options.reference, averaged) if options.reference else None
    if not known:
        notes.append("no --reference: mCD and rCD need another model's results")
    ignored = IGNORED if options.ignore is None else options.ignore
    palette = read_palette(options.palette) if options.palette else None
    labels = LabelFormat(options.classes, ignored, options.label_ids, options.one_based, palette=palette)
    maps = _find_maps(options.truth, labels)
    names = sorted(maps)
    folders = [options.clean, *cells.values()]
    found = [_find_maps(folder, labels) for folder in folders]
    for folder, files in zip(folders, found, strict=True):
        if files.keys() != maps.keys():
            reason = describe_difference(tuple(sorted(files)), tuple(names), "maps")
            raise SourceError(f"{folder}: not the images of {options.truth}: {reason}")
    if options.classes == 2 and options.ignore is None and options.one_based == "none":
        labels = replace(labels, white=_find_white(labels, {"truth": [maps], "results": found}))
        if labels.white != "none":
            sides = "truth and results" if labels.white == "both" else labels.white
            notes.append(f"255 is class 1: {sides} have only labels 0 and 255; --ignore 255 leaves it out")
    counter = _Counter(maps, found, labels)
    # A group for each image, but no more than memory and intervals need.
    count = min(len(names), _GROUPS) if options.replicates else 1
    groups = np.zeros((count, 1 + len(cells), 3, options.classes), np.int64)
    for index, counts in enumerate(map_files(counter, names, options.jobs or 1)):
        groups[index % count] += counts
    total = groups.sum(axis=0)
    if hint := _notice_shift(counter, names, total[0]):
        notes.append(hint)
    places = [None, *cells]
    left = dict(zip(places, (total - groups).swapaxes(0, 1), strict=True)) if options.replicates else {}
    counted = dict(zip(places, total, strict=True))
    report = SegmentationReport(options.name, len(names), counted, averaged, known, notes, left)
    shown = options.output and _draw_maps(report, maps, dict(zip(places, found, strict=True)), labels)
    return replace(report, examples=shown or None)


def _draw_maps(
    report: SegmentationReport,
    truth: Mapping[str, Path],
    found: Mapping[GridCell | None, Mapping[str, Path]],
    labels: LabelFormat,
) -> Examples:
    """Return the maps of a few images, clean and under the corruption with the lowest mIoU."""
    cells = choose_cells({cell: report.miou(cell) for cell in report.counts if cell})
    given = {label: colour for colour, label in (labels.palette or {}).items()}
    colours = {label: compose_voc(label % 256) for label in range(labels.classes)} | given

    def draw(path: Path, of: str) -> Rgb:
        return colour_map(labels.read(path, of), colours, labels.void)

    rows = {
        name: {"truth": draw(truth[name], "truth")}
        | {caption(cell): draw(found[cell][name], "results") for cell in cells}
        for name in choose_images(sorted(truth))
    }
    named = "of --palette" if labels.palette else "that Pascal VOC gives their numbers"
    return Examples(f"Classes have the colours {named}; white pixels are ignored.", rows)


def _read_reference(path: Path, cells: Sequence[GridCell]) -> dict[str, Any]:
    """Return the reference model's values, as printed by ``score-segmentation --format json``.

    Raises
    ------
    ConfigError
        The file is invalid, lacks one of the `cells`, or is no worse on a corruption than on clean images.
    """
    try:
        content = read_json(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--reference {path}: cannot be read as JSON ({error})") from error
    if not isinstance(content, dict) or not content.keys() >= {"model", "clean", "corruptions"}:
        raise ConfigError(f"--reference {path}: must contain model, clean and corruptions")
    values: dict[GridCell | None, Any] = {None: content["clean"]}
    for name, level in cells:
        by_level = content["corruptions"].get(name) if isinstance(content["corruptions"], dict) else None
        if not isinstance(by_level, dict) or str(level) not in by_level:
            raise ConfigError(f"--reference {path}: has no value for {name}/{level}")
        values[name, level] = by_level[str(level)]
    for value in values.values():
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
            raise ConfigError(f"--reference {path}: mIoU must be from 0 to 1, not {value!r}")
    for name in dict(cells):
        if sum(value - content["clean"] for cell, value in values.items() if cell and cell[0] == name) >= 0:
            raise ConfigError(f"--reference {path}: is no worse on {name} than on clean images")
    return content


def _find_white(labels: LabelFormat, sides: Mapping[str, Sequence[Mapping[str, Path]]]) -> str:
    """Return the sides whose maps have the labels 0 and 255 and no other: truth, results, both or none."""
    white = []
    for side, folders in sides.items():
        seen = set[int]()
        for path in (path for files in folders for path in files.values()):
            seen.update(np.unique(labels.read(path, side)).tolist())
            if seen - {0, IGNORED}:
                break
        if IGNORED in seen and seen <= {0, IGNORED}:
            white.append(side)
    return "both" if len(white) == len(sides) else white[0] if white else "none"


def _notice_shift(counter: _Counter, names: Sequence[str], clean: NDArray[np.int64]) -> str:
    """Return a hint if the clean maps agree with the truth once one side is shifted by a label; else ""."""
    correct, true = clean[0].sum(), clean[1].sum()
    if counter.format.one_based != "none" or 2 * correct >= true:
        return ""
    agreed = dict.fromkeys(("truth", "results"), 0)
    pixels = 0
    for name in names[:_LOOKED_AT]:
        truth = counter.format.read(counter.truth[name], "truth").astype(np.int64)
        guess = counter.format.read(counter.cells[0][name], "results").astype(np.int64)
        counted = truth != counter.format.void
        pixels += int(counted.sum())
        agreed["truth"] += int((counted & (truth == guess + 1)).sum())
        agreed["results"] += int((counted & (truth == guess - 1)).sum())
    side = max(agreed, key=lambda each: agreed[each])
    if 2 * agreed[side] <= pixels:
        return ""
    return (
        f"{correct / true:.0%} of the pixels agree, {agreed[side] / pixels:.0%} if the classes of the {side} "
        f"begin at 1: give --one-based {side}"
    )


def _find_maps(folder: Path, labels: LabelFormat) -> dict[str, Path]:
    """Return the label maps below a folder by the names of their images: of one format."""
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder of label maps")
    wanted = "_labelIds" if labels.label_ids in ("truth", "both") else "_labelTrainIds"
    found: dict[str, Path] = {}
    paths = sorted(path for path in folder.rglob("*.*") if path.suffix.lower() in _SUFFIXES)
    # Beside PNG files, others may be something else.
    paths = [path for path in paths if path.suffix.lower() == ".png"] or paths
    # Cityscapes has colours, instances, ids and train ids in one folder.
    if any(path.stem.endswith(wanted) for path in paths):
        paths = [path for path in paths if path.stem.endswith(wanted)]
    for path in paths:
        name = _TAIL.sub("", path.stem)
        if name in found:
            raise SourceError(f"{folder}: {found[name].name} and {path.name} are of the same image")
        found[name] = path
    if not found:
        raise SourceError(f"{folder}: contains no label maps ({', '.join(_SUFFIXES)})")
    return found
