"""`robustgen score-detection`: P, mPC and rPC of a detector from its result files.

pycocotools matches detections to objects and computes the published numbers. A bootstrap sample contains each
image a number of times; its precisions follow from the same matches with these numbers as weights. That is
exact if the scores within an image differ, because repeated detections are then adjacent.
"""

import contextlib
import copy
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from robustgen.display import text
from robustgen.display.charts import CurveGroup
from robustgen.display.text import format_count
from robustgen.errors import SourceError
from robustgen.lab.evaluation.detection.reading import (
    Annotations,
    keep_best,
    read_annotations,
    read_described,
    read_results,
)
from robustgen.lab.evaluation.processes import map_files
from robustgen.lab.models.masks import import_pycocotools
from robustgen.lab.scores.exhibits import Examples, caption, choose_cells, choose_images, draw_boxes
from robustgen.lab.scores.intervals import Interval, warn_of_few
from robustgen.lab.scores.result_grid import (
    GridCell,
    averaged_cells,
    check_cells,
    describe_averaged,
    divide_cells,
    find_cells,
    tabulate_severities,
)
from robustgen.lab.scores.scoring import PictureSet
from robustgen.lab.scores.table_page import group_curves
from robustgen.metrics.bootstrap import border_width, draw_weights, percentile_interval
from robustgen.metrics.classification import Floats
from robustgen.metrics.corruption_errors import read_published
from robustgen.pixels.benchmarks.kinds import CLEAN, CLEAN_VARIANT, IMAGENET_C
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.settings.scoring import DetectionScoring

# --- COCO's evaluation ----------------------------------------------------------------------------

IouType = Literal["bbox", "segm"]
AP_METRICS: Final = (
    *("AP", "AP50", "AP75", "APs", "APm", "APl"),
    *("AR1", "AR10", "AR100", "ARs", "ARm", "ARl"),
)
"""The twelve numbers of COCO's summary, in order."""
PRECISIONS: Final = AP_METRICS[:6]
"""The numbers with intervals."""
# Area range and threshold of each: all thresholds, or the one with that index (0.50, 0.75).
_PRECISION_PARTS: Final = ((0, None), (0, 0), (0, 5), (1, None), (2, None), (3, None))
_SAMPLES_AT_ONCE = 25


@dataclass(frozen=True)
class Matches:
    """The detections of one category and area range, best first, with their correctness.

    Attributes
    ----------
    area : int
    images : ndarray of shape (detections,)
        Index of each detection's image.
    hits, misses : bool ndarray of shape (thresholds, detections)
        Right and wrong detections; those matched to ignored objects are neither.
    objects : ndarray of shape (images,)
        Number of objects to find in each image.
    """

    area: int
    images: NDArray[np.intp]
    hits: NDArray[np.bool_]
    misses: NDArray[np.bool_]
    objects: NDArray[np.int64]


class Evaluator:
    """COCO's evaluation of result files against one annotation file.

    Raises
    ------
    MissingDependencyError
        pycocotools is not installed.
    """

    def __init__(self, annotations: Annotations, iou_type: IouType) -> None:
        self._coco, self._eval, self._mask = import_pycocotools()
        self.annotations, self.iou_type = annotations, iou_type
        self._truth = self._index(copy.deepcopy(annotations.content["annotations"]))

    def _index(self, items: list[dict[str, Any]]) -> Any:
        made = self._coco.COCO()
        made.dataset = self.annotations.content | {"annotations": items}
        with contextlib.redirect_stdout(io.StringIO()):
            made.createIndex()
        return made

    def evaluate(self, detections: Sequence[dict[str, Any]]) -> Any:
        """Return pycocotools' ``COCOeval`` of `detections`, with its ``stats`` computed."""
        found = self._index(list(self._complete(keep_best(list(detections)))))
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation = self._eval.COCOeval(self._truth, found, self.iou_type)
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        return evaluation

    def _complete(self, detections: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield detections with ids and areas: those of boxes, or of masks."""
        for number, each in enumerate(detections, 1):
            own = {name: each[name] for name in ("image_id", "category_id", "score")}
            own |= {"id": number, "iscrowd": 0}
            if self.iou_type == "bbox":
                *_, width, height = each["bbox"]
                yield own | {"bbox": each["bbox"], "area": width * height}
            else:
                size = self.annotations.sizes[each["image_id"]]
                mask = each["segmentation"]
                if isinstance(mask["counts"], list):
                    mask = self._mask.frPyObjects(mask, *size)
                yield own | {"segmentation": mask, "area": float(self._mask.area(mask))}


def stats_of(evaluation: Any) -> dict[str, float | None]:
    """Return the twelve numbers of COCO's summary; None if there are no such objects."""
    return {
        name: None if value < 0 else float(value)
        for name, value in zip(AP_METRICS, evaluation.stats, strict=True)
    }


def collect_matches(evaluation: Any) -> list[Matches]:
    """Return the matches of a ``COCOeval`` by category and area range, for categories that have objects."""
    parameters = evaluation.params
    images, areas = len(parameters.imgIds), len(parameters.areaRng)
    found = []
    for start in range(0, len(evaluation.evalImgs), images):
        entries = [(i, e) for i, e in enumerate(evaluation.evalImgs[start : start + images]) if e is not None]
        objects = np.zeros(images, np.int64)
        for index, entry in entries:
            objects[index] = np.count_nonzero(entry["gtIgnore"] == 0)
        if not objects.any():
            continue
        scores = np.concatenate([entry["dtScores"] for _, entry in entries])
        order = np.argsort(-scores, kind="mergesort")
        matched = np.concatenate([entry["dtMatches"] for _, entry in entries], axis=1)[:, order] != 0
        counted = ~np.concatenate([entry["dtIgnore"] for _, entry in entries], axis=1)[:, order]
        indices = np.repeat([i for i, _ in entries], [len(entry["dtScores"]) for _, entry in entries])
        hits, misses = matched & counted, ~matched & counted
        # Detections after the last correct one do not change the precision.
        last = hits.any(axis=0).nonzero()[0].max(initial=-1) + 1
        area = start // images % areas
        found.append(Matches(area, indices[order][:last], hits[:, :last], misses[:, :last], objects))
    return found


def weighted_precisions(matches: Sequence[Matches], weights: NDArray[np.int64]) -> Floats:
    """Return the average precisions of samples.

    Parameters
    ----------
    matches : sequence of Matches
    weights : integer ndarray of shape (samples, images)
        Number of times that each sample contains each image.

    Returns
    -------
    ndarray of shape (samples, 6), float64
        `PRECISIONS`; NaN if a sample has no such objects.
    """
    total = np.zeros((4, 10, len(weights)))
    count = np.zeros((4, len(weights)))
    for each in matches:
        objects = (weights @ each.objects).astype(np.float64)
        there = objects > 0
        count[each.area] += there
        for start in range(0, len(weights), _SAMPLES_AT_ONCE):
            part = slice(start, start + _SAMPLES_AT_ONCE)
            total[each.area, :, part] += _average_precisions(each, weights[part], objects[part])
    with np.errstate(invalid="ignore"):
        means = np.where(count > 0, 1, np.nan)[:, None] * total / np.maximum(count, 1)[:, None]
    parts = [
        means[area].mean(axis=0) if threshold is None else means[area, threshold]
        for area, threshold in _PRECISION_PARTS
    ]
    return np.stack(parts, axis=1)


# COCO's recall thresholds, as pycocotools computes them.
_RECALLS: Final = np.linspace(0.0, 1.0, 101)


def _average_precisions(each: Matches, weights: NDArray[np.int64], objects: Floats) -> Floats:
    """Return average precisions of one category: (thresholds, samples); 0 if a sample has no objects."""
    own = weights[:, each.images].astype(np.float64)
    found = np.zeros((len(each.hits), len(weights)))
    if not each.images.size:
        return found
    scale = np.maximum(objects, 1)[:, None]
    for threshold, (hits, misses) in enumerate(zip(each.hits, each.misses, strict=True)):
        right, wrong = (own * hits).cumsum(axis=1), (own * misses).cumsum(axis=1)
        precision = right / (right + wrong + np.spacing(1))
        envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        # A recall threshold uses the precision of the first detection that reaches it.
        reached = np.searchsorted(_RECALLS, right / scale, side="right")
        steps = np.diff(reached, axis=1, prepend=0)
        found[threshold] = (steps * envelope).sum(axis=1) / len(_RECALLS)
    return found * (objects > 0)


# --- scores ---------------------------------------------------------------------------------------

IOU_TITLES: Final[Mapping[IouType, str]] = {"bbox": "Box", "segm": "Mask"}
_SUMMARY: Final = ("P", "mPC", "rPC")
_MANY_BOXES: Final = 1_000_000

Stats = Mapping[str, float | None]
_Scored = tuple[int, list[tuple[Stats, Floats | None]]]


@dataclass(frozen=True)
class DetectionScores:
    """The metrics of one detector on boxes or masks.

    Attributes
    ----------
    iou_type : {"bbox", "segm"}
    clean : dict of str to float or None
        `AP_METRICS` on the clean images; None if there are no such objects.
    cells : dict of (str, int) to the same
        The same for each corruption and severity.
    averaged : list of (str, int)
        The cells in the mean mPC.
    images : int
    samples : dict of (str, int) or None to ndarray of shape (samples, 6)
        `PRECISIONS` of bootstrap samples; the key None stands for the clean images. Empty without intervals.
    """

    iou_type: IouType
    clean: Stats
    cells: Mapping[GridCell, Stats]
    averaged: Sequence[GridCell]
    images: int
    samples: Mapping[GridCell | None, Floats] = field(default_factory=dict, repr=False)

    def summary(self, metric: str) -> dict[str, float | None]:
        """Return P, mPC and rPC of a metric."""
        values = [value for cell in self.averaged if (value := self.cells[cell][metric]) is not None]
        mean = fmean(values) if values else None
        clean = self.clean[metric]
        relative = mean / clean if clean and mean is not None else None
        return dict(zip(_SUMMARY, (clean, mean, relative), strict=True))

    def divide(self) -> "dict[str, DetectionScores]":
        """Return the scores of each category of corruptions in the mean; empty if there is one alone."""
        parts = divide_cells(self.averaged)
        return {name: replace(self, averaged=own) for name, own in parts.items() if len(parts) > 1}

    def cell_intervals(self) -> dict[GridCell, Interval]:
        """Return the 95 % interval of AP of each corruption and severity; empty without samples."""
        samples = {cell: rows[:, 0][np.isfinite(rows[:, 0])] for cell, rows in self.samples.items() if cell}
        return {
            cell: _find_interval(value, samples[cell], self.images, 1)
            for cell, stats in self.cells.items()
            if cell in samples and len(samples[cell]) and (value := stats["AP"]) is not None
        }

    def intervals(self, metric: str) -> dict[str, Interval | None]:
        """Return the 95 % intervals of P, mPC and rPC; None without samples."""
        values = self.summary(metric)
        if not self.samples or metric not in PRECISIONS or values["P"] is None:
            return dict.fromkeys(_SUMMARY)
        index = PRECISIONS.index(metric)
        clean = self.samples[None][:, index]
        corrupted = np.mean([self.samples[cell][:, index] for cell in self.averaged], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = np.stack([clean, corrupted, corrupted / clean], axis=1)
        # Few samples of few images may lack small, medium or large objects.
        rows = rows[np.isfinite(rows).all(axis=1)]
        if not len(rows):
            return dict.fromkeys(_SUMMARY)
        largest = 1 / (self.clean[metric] or 1)
        most = dict(zip(_SUMMARY, (1.0, 1.0, largest), strict=True))
        return {
            name: None if value is None else _find_interval(value, column, self.images, most[name])
            for (name, value), column in zip(values.items(), rows.T, strict=True)
        }


def _find_interval(value: float, samples: Floats, images: int, most: float) -> Interval:
    """Return the percentile interval of an average precision, from 0 to `most`; Wilson's if none differs.

    Average precision is higher or lower in samples of few images, which repeat some. Their mean is therefore
    moved to the value.
    """
    low, high = percentile_interval(samples - samples.mean() + value)
    half = border_width(images) * most if np.ptp(samples) < 1e-9 else 0
    return Interval(max(0.0, float(low) - half), min(most, float(high) + half))


@dataclass(frozen=True)
class DetectionReport:
    """The scores of one detector, and notes for the reader.

    Attributes
    ----------
    model : str
    images : int
    scores : list of DetectionScores
    notes : list of str
    published : dict, optional
        A table of published values to compare with.
    recorded : dict of str to dict
        Content of the `detections.json` of the results, by the name of the detector.
    examples : Examples, optional
        Pictures with boxes.
    """

    model: str
    images: int
    scores: list[DetectionScores]
    notes: list[str]
    published: Mapping[str, Any] | None = None
    recorded: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    examples: Examples | None = None

    title = "detection"
    method = (
        "Intervals contain the middle 95 % of bootstrap samples of the images, moved so that "
        "their mean is the number."
    )

    @property
    def lead(self) -> str:
        """Return the number of images."""
        return format_count(self.images, "image")

    def list_scores(self) -> dict[str, float]:
        """Return P, mPC and rPC of AP, then those of all types and metrics, in %."""
        found: dict[str, float] = {}
        for each in self.scores:
            for metric in AP_METRICS:
                values = {name: 100 * v for name, v in each.summary(metric).items() if v is not None}
                found = (values if metric == "AP" and each is self.scores[0] else {}) | found
                found |= {f"{each.iou_type}.{metric}.{name}": value for name, value in values.items()}
        return found

    def list_tables(self) -> list[text.Table]:
        """Return P, mPC and rPC of all metrics, AP by corruption and severity, and published detectors."""
        found = [table for each in self.scores for table in _tabulate(each)]
        return found + [self._rank(each, self.published) for each in self.scores if self.published]

    def _rank(self, scores: DetectionScores, published: Mapping[str, Any]) -> text.Table:
        """Return P, mPC and rPC of the published detectors and of this one, from the best mPC down."""
        found = {each["model"]: each.get(scores.iou_type) for each in published["models"]}
        found[f"> {self.model}"] = scores.summary("AP")
        ranked = sorted(
            ((name, values) for name, values in found.items() if values),
            key=lambda row: -(row[1]["mPC"] or 0),
        )
        rows = [[name, *(text.Cell(values[key], sense=1) for key in _SUMMARY)] for name, values in ranked]
        title = f"{IOU_TITLES[scores.iou_type]} AP in % among published detectors (yours is marked with >)"
        return text.Table(title, ["Model", *_SUMMARY], rows)

    def list_curves(self) -> list[CurveGroup]:
        """Return AP by severity, for each corruption."""
        return [
            group_curves(
                f"{IOU_TITLES[each.iou_type]} AP in % by severity",
                each.clean["AP"],
                {cell: stats["AP"] for cell, stats in each.cells.items()},
                each.cell_intervals(),
            )
            for each in self.scores
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON."""
        return {
            "model": self.model,
            "images": self.images,
            "types": {each.iou_type: self._describe(each) for each in self.scores},
            "interval_method": self.method if any(each.samples for each in self.scores) else None,
            "notes": self.notes,
            **({"published": self.published} if self.published else {}),
        }

    def _describe(self, scores: DetectionScores) -> dict[str, Any]:
        by_name: dict[str, dict[str, Stats]] = {}
        for (name, level), stats in scores.cells.items():
            by_name.setdefault(name, {})[str(level)] = stats
        return {
            "clean": scores.clean,
            "corruptions": by_name,
            "mean_over": [f"{name}/{level}" for name, level in scores.averaged],
            "summary": {metric: scores.summary(metric) for metric in AP_METRICS},
            "categories": {
                name: {metric: own.summary(metric) for metric in AP_METRICS}
                for name, own in scores.divide().items()
            },
            "intervals": {metric: scores.intervals(metric) for metric in PRECISIONS}
            if scores.samples
            else None,
        }


def _tabulate(scores: DetectionScores) -> list[text.Table]:
    """Return P, mPC and rPC of all metrics, and AP by corruption and severity."""

    def list_row(head: str, scores: DetectionScores, metric: str, names: Sequence[str]) -> list[object]:
        found, ends = scores.summary(metric), scores.intervals(metric)
        return [head, *(text.Cell(found[name], ends[name]) for name in names)]

    rows = [list_row(metric, scores, metric, _SUMMARY) for metric in AP_METRICS]
    parts = [list_row(name.capitalize(), own, "AP", _SUMMARY[1:]) for name, own in scores.divide().items()]
    shape = IOU_TITLES[scores.iou_type]
    over = describe_averaged(scores.averaged)
    title = f"{shape}: clean (P), mean under corruption (mPC), and rPC = mPC / P, in %{over}"
    cells = {cell: stats["AP"] for cell, stats in scores.cells.items()}
    return [
        text.Table(title, ["", *_SUMMARY], rows),
        *[text.Table(f"{shape} AP in % by category", ["", *_SUMMARY[1:]], parts)] * bool(parts),
        tabulate_severities(f"{shape} AP in % by severity", cells),
    ]


def score_detections(options: DetectionScoring, dataset: PictureSet | None = None) -> DetectionReport:
    """Score the COCO result files of one detector, and draw boxes on images of `dataset` for its page.

    Raises
    ------
    RobustgenError
        A file is missing or malformed, or files do not match; the message says which.
    """
    cells, clean = find_cells(options.results, "--results"), options.clean
    notes = [*check_cells(cells, "--results", options.partial), *warn_of_few(options.replicates)]
    truth = read_annotations(options.annotations)
    found = read_results(clean, truth)
    chosen = list(options.type or _types_of(found, clean))
    if "segm" in chosen:
        truth = read_annotations(options.annotations, masks=True)
    scorer = _Scorer(truth, chosen, draw_weights(len(truth.sizes), options.replicates))
    for iou_type in chosen:
        _check_has(iou_type, clean, found)
    stats: list[dict[GridCell | None, Stats]] = [{} for _ in chosen]
    samples: list[dict[GridCell | None, Floats]] = [{} for _ in chosen]
    places, paths = [None, *cells], [clean, *cells.values()]
    scored = map_files(scorer, paths, options.jobs or 1)
    empty = []
    for cell, path, (count, values) in zip(places, paths, scored, strict=True):
        empty += [f"{cell[0]}/{cell[1]}" if cell else CLEAN] * (not count)
        if count > _MANY_BOXES:
            number = format_count(count, "detection")
            notes.append(f"{path}: {number}; the hundred best of each image and category count")
        for index, (own, drawn) in enumerate(values):
            stats[index][cell] = own
            if drawn is not None:
                samples[index][cell] = drawn
    if empty:
        notes.append(f"{format_count(len(empty), 'result')} without detections: {', '.join(empty)}")
    averaged = averaged_cells(cells)
    if not averaged:
        raise SourceError(f"--results {options.results}: the corruptions have no severity in common")
    scores = [
        DetectionScores(
            iou_type, own.pop(None), {cell: own[cell] for cell in cells}, averaged, len(truth.sizes), drawn
        )
        for iou_type, own, drawn in zip(chosen, stats, samples, strict=True)
    ]
    for each in scores:
        if not each.clean["AP"]:
            noun = IOU_TITLES[each.iou_type].lower()
            notes.append(f"{clean}: {noun} AP is 0 on clean images, so there is no rPC")
    published = read_published("mmdetection") if options.compare_with else None
    if published:
        notes.append("{title}: {images}. {source}. {terms}.".format(**published))
    recorded = {options.name: read_described(next(iter(cells.values())))}
    files = dict(zip(places, paths, strict=True))
    examples = _draw_boxes(truth, files, scores[0], dataset) if options.output else None
    return DetectionReport(options.name, len(truth.sizes), scores, notes, published, recorded, examples)


# Score from which a detection is drawn.
_DRAWN: Final = 0.5


def _draw_boxes(
    truth: Annotations,
    files: Mapping[GridCell | None, Path],
    scores: DetectionScores,
    dataset: PictureSet | None,
) -> Examples | None:
    """Return the boxes of a few images, clean and under the corruption with the lowest AP."""
    boxes: dict[int, list[Sequence[float]]] = {}
    for each in truth.content["annotations"]:
        boxes.setdefault(each["image_id"], []).append(each["bbox"])
    names = {each["id"]: str(each.get("file_name", each["id"])) for each in truth.content["images"]}
    chosen = choose_images(sorted(boxes, key=names.__getitem__))
    rows: dict[str, dict[str, Rgb]] = {names[image]: {} for image in chosen}
    keys = {Path(key).stem: key for key in dataset.keys_of(dataset.variants[0])} if dataset else {}
    for cell in choose_cells({cell: stats["AP"] for cell, stats in scores.cells.items()}):
        detections = read_results(files[cell], truth)
        variant = IMAGENET_C.variant(*cell) if cell else CLEAN_VARIANT
        for image in chosen:
            mine = (each for each in detections if each["image_id"] == image and each["score"] >= _DRAWN)
            found, key = [each["bbox"] for each in mine if "bbox" in each], keys.get(Path(names[image]).stem)
            picture = np.full((*truth.sizes[image], 3), 128, np.uint8)
            if dataset and key and variant in dataset.variants:
                picture = dataset.load(variant, key)
            rows[names[image]][caption(cell)] = draw_boxes(picture, boxes[image], found)
    about = f"Green boxes are true, orange ones are detections with a score of at least {_DRAWN}."
    return Examples(about + " --predicted-set SET shows the pictures below them." * (not dataset), rows)


@dataclass(frozen=True)
class _Scorer:
    """Scores result files one by one, in this process or in several.

    Attributes
    ----------
    annotations : Annotations
    types : list of {"bbox", "segm"}
    weights : integer ndarray of shape (samples, images)
    """

    annotations: Annotations
    types: Sequence[IouType]
    weights: NDArray[np.int64]

    @cached_property
    def _evaluators(self) -> list[Evaluator]:
        return [Evaluator(self.annotations, each) for each in self.types]

    def __call__(self, path: Path) -> _Scored:
        """Return a file's number of detections, and its metrics and samples (or None) for each type."""
        detections = read_results(path, self.annotations)
        found: list[tuple[Stats, Floats | None]] = []
        for evaluator in self._evaluators:
            _check_has(evaluator.iou_type, path, detections)
            evaluation = evaluator.evaluate(detections)
            drawn = (
                weighted_precisions(collect_matches(evaluation), self.weights) if len(self.weights) else None
            )
            found.append((stats_of(evaluation), drawn))
        return len(detections), found


def _types_of(detections: Sequence[Mapping[str, Any]], path: Path) -> list[IouType]:
    """Return what all detections have: boxes, masks or both."""
    names: list[tuple[IouType, str]] = [("bbox", "bbox"), ("segm", "segmentation")]
    found = [iou_type for iou_type, name in names if all(name in each for each in detections)]
    if not detections:
        raise SourceError(f"{path}: has no detections; give --type")
    if not found:
        raise SourceError(f"{path}: some detections lack bbox, and some segmentation")
    return found


def _check_has(iou_type: IouType, path: Path, detections: Sequence[Mapping[str, Any]]) -> None:
    name = "bbox" if iou_type == "bbox" else "segmentation"
    if lacking := sum(name not in each for each in detections):
        raise SourceError(f"{path}: {format_count(lacking, 'detection')} without {name}")
