"""COCO's evaluation by pycocotools, and bootstrap samples of its average precisions.

pycocotools matches detections to objects and computes the published numbers. A bootstrap sample contains each
image a number of times; its precisions follow from the same matches with these numbers as weights. That is
exact if the scores within an image differ, because repeated detections are then adjacent.
"""

import contextlib
import copy
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from robustgen.lab.evaluation.detection.reading import Annotations, keep_best
from robustgen.lab.models.masks import import_pycocotools
from robustgen.metrics.classification import Floats

IouType = Literal["bbox", "segm"]
METRICS: Final = (
    *("AP", "AP50", "AP75", "APs", "APm", "APl"),
    *("AR1", "AR10", "AR100", "ARs", "ARm", "ARl"),
)
"""The twelve numbers of COCO's summary, in order."""
PRECISIONS: Final = METRICS[:6]
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
        for name, value in zip(METRICS, evaluation.stats, strict=True)
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
