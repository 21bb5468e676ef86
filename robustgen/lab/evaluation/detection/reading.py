"""COCO annotations and result files, checked before pycocotools reads them."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from robustgen.errors import SourceError, quote
from robustgen.files.storage.host import open_regular
from robustgen.pixels.imaging.geometry import MOST_PIXELS

ABOUT: Final = "detections.json"
"""File next to the results of a detector that describes them."""
MOST_DETECTIONS: Final = 100
"""Number of detections per image and category that COCO's evaluation uses."""
# Twice the size of a result file for COCO's 5000 images with a hundred masks each.
_MOST_BYTES = 4 << 30
_MOST_SHIFT = 60
_LARGEST = 1e15
# Above this, ids are no longer distinct in pycocotools' floating-point numbers.
_MOST_ID = 1 << 53


@dataclass(frozen=True)
class Annotations:
    """Content of a COCO annotation file.

    Attributes
    ----------
    path : Path
    content : dict
        Content of the file.
    sizes : dict of int to (int, int)
        Image id to height and width.
    categories : frozenset of int
    """

    path: Path
    content: dict[str, Any]
    sizes: Mapping[int, tuple[int, int]]
    categories: frozenset[int]


def _read_json(path: Path) -> Any:
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise SourceError(f"{path}: is larger than {_MOST_BYTES >> 30} GB")
        return json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"{path}: cannot be read as JSON ({error})") from error


def read_described(path: Path) -> dict[str, Any]:
    """Return the content of the `detections.json` above a result file; empty without this file."""
    about = path.absolute().parents[1] / ABOUT
    content = _read_json(about) if about.is_file() else {}
    if not isinstance(content, dict):
        raise SourceError(f"{about}: is not an object of JSON")
    return content


def read_annotations(path: Path, masks: bool = False) -> Annotations:
    """Read a COCO annotation file such as ``instances_val2017.json``.

    With `masks`, the outlines of all objects are checked too.

    Raises
    ------
    SourceError
        The file is invalid; the message says why.
    """
    content = _read_json(path)
    if not isinstance(content, dict):
        raise SourceError(f"{path}: not COCO annotations (a result file? it belongs to --results)")
    try:
        sizes = {int(each["id"]): (int(each["height"]), int(each["width"])) for each in content["images"]}
        for part in ("images", "categories"):
            _check_distinct(path, part, content[part])
        categories = frozenset(int(each["id"]) for each in content["categories"])
        for number, each in enumerate(content["annotations"]):
            _check_annotation(path, number, each, sizes, categories, masks)
        ids = [each["id"] for each in content["annotations"]]
    except SourceError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path}: not COCO annotations ({type(error).__name__}: {error})") from error
    for image, (height, width) in sizes.items():
        if not (height > 0 < width and height * width <= MOST_PIXELS):
            raise SourceError(f"{path}: image {image} is {width} x {height} pixels")
    if not sizes or not categories:
        raise SourceError(f"{path}: names no {'images' if not sizes else 'categories'}")
    if len({*ids}) < len(ids) or not 1 <= min(ids, default=1) <= max(ids, default=1) < _MOST_ID:
        # pycocotools keeps one object per id, and treats 0 as "not matched".
        raise SourceError(f"{path}: the ids of annotations must be distinct and positive")
    return Annotations(path, content, sizes, categories)


def _check_distinct(path: Path, part: str, entries: list[dict[str, Any]]) -> None:
    """Raise a SourceError if two images or categories have the same id, of which readers keep the last."""
    number, count = Counter(int(each["id"]) for each in entries).most_common(1)[0] if entries else (0, 1)
    if count > 1:
        same = (each.get("file_name", each.get("name")) for each in entries if each["id"] == number)
        listed = ", ".join(map(str, same))
        raise SourceError(f"{path}: {count} {part} have the id {number} ({listed}): give each its own id")


def _check_annotation(
    path: Path,
    number: int,
    each: dict[str, Any],
    sizes: Mapping[int, tuple[int, int]],
    categories: frozenset[int],
    masks: bool,
) -> None:
    where = f"{path}: annotation {number}"
    for key, known, listed in (("image_id", sizes, "images"), ("category_id", categories, "categories")):
        if each[key] not in known:
            raise SourceError(f"{where}: {key} {quote(each[key])} is not in {listed!r}")
    if not (_is_box(each["bbox"]) and _finite(each["area"]) and isinstance(each["id"], int)):
        raise SourceError(f"{where}: bbox, area or id is malformed")
    each.setdefault("iscrowd", 0)
    if masks:
        _check_outline(where, each.get("segmentation"), sizes[each["image_id"]])


def _check_outline(where: str, outline: Any, size: tuple[int, int]) -> None:
    """Raise unless `outline` is a list of polygons, or a run-length mask of the image's size."""
    if isinstance(outline, list):
        good = bool(outline) and all(
            isinstance(each, list) and len(each) >= 6 and len(each) % 2 == 0 and all(map(_finite, each))
            for each in outline
        )
        if not good:
            raise SourceError(f"{where}: its polygons are malformed")
    else:
        check_mask(where, outline, size)


def check_mask(where: str, mask: Any, size: tuple[int, int]) -> None:
    """Raise unless `mask` is a run-length mask of `size`, whose runs fill the image."""
    if not isinstance(mask, dict) or "size" not in mask or "counts" not in mask:
        raise SourceError(f"{where}: its segmentation is not a run-length mask")
    if list(mask["size"]) != list(size):
        height, width = size
        raise SourceError(f"{where}: a mask of size {mask['size']} for an image of size [{height}, {width}]")
    counts = mask["counts"]
    try:
        runs = counts if isinstance(counts, list) else decode_runs(counts)
        whole = all(isinstance(run, int) and run >= 0 for run in runs) and sum(runs) == math.prod(size)
    except (ValueError, TypeError, IndexError):
        whole = False
    if not whole:
        raise SourceError(f"{where}: the runs of its mask do not fill the image")


def decode_runs(counts: str | bytes) -> list[int]:
    """Return the run lengths of COCO's compressed form.

    Each character has five bits from 48 up, and a sixth if more follow; from the fourth run on, values are
    differences from the run two before.
    """
    runs: list[int] = []
    value = shift = 0
    for code in counts.encode("ascii") if isinstance(counts, str) else counts:
        bits = code - 48
        # No run of an image that fits into memory has more digits.
        if not 0 <= bits < 64 or shift > _MOST_SHIFT:
            raise ValueError(f"character {code}")
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            value -= (bits & 16) and 1 << shift
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
    if shift:
        raise ValueError("cut off")
    return runs


def read_results(path: Path, annotations: Annotations) -> list[dict[str, Any]]:
    """Read a COCO result file: a list of boxes, with masks if the detector returns them.

    Raises
    ------
    SourceError
        The file is invalid, or has other images or categories than the annotations.
    """
    content = _read_json(path)
    if not isinstance(content, list):
        raise SourceError(f"{path}: not COCO results, which are a list of detections")
    for number, each in enumerate(content):
        _check_detection(f"{path}: detection {number}", each, annotations)
    return content


def _check_detection(where: str, each: Any, annotations: Annotations) -> None:
    if not isinstance(each, dict) or not each.keys() >= {"image_id", "category_id", "score"}:
        raise SourceError(f"{where}: has no image_id, category_id and score")
    image, category = each["image_id"], each["category_id"]
    if not isinstance(image, int) or image not in annotations.sizes:
        raise SourceError(f"{where}: image_id {image!r} is not among the images of {annotations.path}")
    if not isinstance(category, int) or category not in annotations.categories:
        raise SourceError(f"{where}: category_id {category!r} is not among those of {annotations.path}")
    if not _finite(each["score"]):
        raise SourceError(f"{where}: score {each['score']!r} is not a finite number")
    if "bbox" not in each and "segmentation" not in each:
        raise SourceError(f"{where}: has neither bbox nor segmentation")
    if "bbox" in each and not _is_box(each["bbox"]):
        raise SourceError(f"{where}: bbox {each['bbox']!r} is not [x, y, width, height]")
    if "segmentation" in each:
        check_mask(where, each["segmentation"], annotations.sizes[image])


def _finite(value: Any) -> bool:
    # Huge whole numbers are finite but cannot be converted to floating point.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_LARGEST < value < _LARGEST


def _is_box(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(map(_finite, value)) and min(value[2:]) >= 0


def keep_best(detections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the hundred best detections of each image and category, in their order; others are ignored."""
    groups: dict[tuple[int, int], list[int]] = {}
    for index, each in enumerate(detections):
        groups.setdefault((each["image_id"], each["category_id"]), []).append(index)
    kept = (
        sorted(places, key=lambda index: -detections[index]["score"])[:MOST_DETECTIONS]
        for places in groups.values()
    )
    return [detections[index] for index in sorted(index for places in kept for index in places)]
