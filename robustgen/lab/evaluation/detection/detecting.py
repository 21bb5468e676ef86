"""`robustgen evaluate --annotations FILE`: detectors on images corrupted on the fly.

A result file for each variant appears when it is complete; the same command resumes with the missing files.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from robustgen.display.progress import Meter
from robustgen.errors import OutputError, SourceError
from robustgen.files.storage import locate, save
from robustgen.files.text_files import read_json
from robustgen.lab.evaluation.detection.images import CorruptedImages, open_images
from robustgen.lab.evaluation.detection.reading import Annotations, read_annotations
from robustgen.lab.evaluation.store import name_folders
from robustgen.lab.models.detectors import Detection, Detector, check_detections, open_detector
from robustgen.lab.models.masks import import_pycocotools
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.sets.dataset.outputs import file_digest
from robustgen.settings.config import Config
from robustgen.settings.models import Runtime

ABOUT: Final = "detections.json"
"""File next to the results that describes them."""
RESTRICTED: Final = "annotations.json"
"""The annotations of the chosen images, if these are not all."""


@dataclass(frozen=True)
class DetectionRun:
    """The result files of one detector.

    Attributes
    ----------
    folder : Path
        Folder with ``clean.json`` and ``<corruption>/<severity>.json``.
    annotations : Path
        Annotations of the chosen images.
    made, kept : int
        Files written now, and earlier.
    dropped : int
        Detections of categories that the annotations do not have.
    """

    folder: Path
    annotations: Path
    made: int
    kept: int
    dropped: int


def evaluate_detectors(
    config: Config,
    annotations: Path,
    models: Sequence[str],
    output: Path,
    runtime: Runtime | None = None,
    *,
    overwrite: bool = False,
) -> list[DetectionRun]:
    """Write the COCO result files of some detectors on all variants of the images.

    Parameters
    ----------
    config : Config
        As for make-c; its source contains the images of the annotations.
    annotations : Path
        Such as ``instances_val2017.json``.
    models : sequence of str
        As in `open_detector`.
    output : Path
        Folder with a subfolder for each detector.
    runtime : Runtime, optional
    overwrite : bool
        Remove results created with other settings.

    Raises
    ------
    RobustgenError
        Images, annotations, models and output do not match, or an image fails.
    """
    import_pycocotools()
    truth = read_annotations(annotations)
    detectors = [open_detector(name, runtime or Runtime()) for name in models]
    folders = map(Path, name_folders(output, [each.label for each in detectors]))
    images = open_images(config, truth, output)
    return [
        _run(detector, images, truth, folder, overwrite)
        for detector, folder in zip(detectors, folders, strict=True)
    ]


def _run(
    detector: Detector, images: CorruptedImages, truth: Annotations, folder: Path, overwrite: bool
) -> DetectionRun:
    settings = {
        "images": images.settings(),
        "keys": len(images.keys),
        "annotations": file_digest(*locate(truth.path)),
        "detector": detector.settings(),
    }
    _claim(folder, json.loads(json.dumps(settings, default=str)), overwrite)
    own = truth.path
    if len(images.keys) < len(truth.sizes):
        own = folder / RESTRICTED
        kept = truth.content | {
            name: [each for each in truth.content[name] if each[field] in {*images.keys}]
            for name, field in (("images", "id"), ("annotations", "image_id"))
        }
        save(own, json.dumps(kept).encode(), str(own))
    missing = [variant for variant in images.variants if not _path(folder, variant).is_file()]
    results: list[Detection] = []
    dropped = 0
    with Meter(len(missing) * len(images.keys), "images") as meter:
        last = [*images.keys][-1]
        for variant, image, pixels in images.stream(missing):
            found = detector.detect(pixels)
            check_detections(detector, found)
            known = [each for each in found if each["category_id"] in truth.categories]
            dropped += len(found) - len(known)
            results += [{"image_id": image, **each} for each in known]
            meter.update()
            if image == last:
                path = _path(folder, variant)
                save(path, _encode(results, detector), str(path))
                results = []
    return DetectionRun(folder, own, len(missing), len(images.variants) - len(missing), dropped)


def _path(folder: Path, variant: Variant) -> Path:
    return folder / f"{variant.folder}.json"


def _encode(results: list[Detection], detector: Detector) -> bytes:
    try:
        return json.dumps(results).encode()
    except TypeError as error:
        raise SourceError(f"--model {detector.name}: its detections are not valid JSON ({error})") from error


def _claim(folder: Path, settings: dict[str, Any], overwrite: bool) -> None:
    """Write the settings of the results in `folder`, or check that they are the same.

    Raises
    ------
    OutputError
        There are results with other settings, or files of another command.
    """
    path = folder / ABOUT
    if not folder.exists() or not any(folder.iterdir()):
        save(path, json.dumps(settings, indent=1).encode(), str(path))
        return
    try:
        known = read_json(path)
    except (OSError, ValueError) as error:
        raise OutputError(f"{folder}: contains files of another command ({error})") from error
    if known == settings:
        return
    if not overwrite:
        raise OutputError(
            f"{folder}: results were created with different settings; choose another --output, or --overwrite"
        )
    for result in [*folder.glob("*.json"), *folder.glob("*/*.json")]:
        result.unlink()
    save(path, json.dumps(settings, indent=1).encode(), str(path))
