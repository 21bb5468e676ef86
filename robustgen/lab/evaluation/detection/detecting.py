"""`robustgen evaluate --annotations FILE`: detectors on images corrupted on the fly.

Each image is read once, and all detectors see it in all variants. A unit is a few images: its detections in a
variant are a part below ``.robustgen``. The parts of all images become the result file of the variant. The
same command resumes with the missing parts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from robustgen.display.progress import Meter
from robustgen.errors import OutputError, SourceError
from robustgen.files.set_files import STATE
from robustgen.files.storage import locate, open_store, save
from robustgen.files.text_files import read_json
from robustgen.lab.evaluation.detection.images import CorruptedImages, open_images
from robustgen.lab.evaluation.detection.reading import Annotations, read_annotations
from robustgen.lab.evaluation.store import name_folders
from robustgen.lab.models.detectors import Detection, Detector, check_detections, open_detector
from robustgen.lab.models.masks import import_pycocotools
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.dataset.outputs import file_digest
from robustgen.settings.config import Config
from robustgen.settings.models import Runtime

ABOUT: Final = "detections.json"
"""File next to the results that describes them."""
RESTRICTED: Final = "annotations.json"
"""The annotations of the chosen images, if these are not all."""
_PARTS: Final = f"{STATE}/parts"
# So many parts of each result file at most.
_MOST_UNITS: Final = 256


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
    size = -(-len(images.keys) // _MOST_UNITS)
    units = [[*images.keys][start : start + size] for start in range(0, len(images.keys), size)]
    runs = [
        _Results(detector, images, truth, folder, overwrite)
        for detector, folder in zip(detectors, folders, strict=True)
    ]
    lacking = {(run, number): run.find_lacking(number) for run in runs for number in range(len(units))}
    wanted = [
        (number, image, [variant for variant in images.variants if variant in some])
        for number, unit in enumerate(units)
        if (some := {variant for run in runs for variant in lacking[run, number]})
        for image in unit
    ]
    total = sum(len(units[number]) * len(variants) for (_, number), variants in lacking.items())
    with Meter(total, "images") as meter:
        for number, made in groupby(images.stream(wanted), lambda each: each[0]):
            found = {(run, variant): list[Detection]() for run in runs for variant in lacking[run, number]}
            for _, image, variant, pixels in made:
                for run in runs:
                    if (run, variant) in found:
                        found[run, variant] += run.detect(image, pixels)
                        meter.update()
            for (run, variant), detections in found.items():
                run.put_part(variant, number, detections)
    return [run.finish(len(units)) for run in runs]


class _Results:
    """The result files of one detector, finished or in parts."""

    def __init__(
        self, detector: Detector, images: CorruptedImages, truth: Annotations, folder: Path, overwrite: bool
    ) -> None:
        settings = {
            "images": images.settings(),
            "keys": len(images.keys),
            "annotations": file_digest(*locate(truth.path)),
            "detector": detector.settings(),
        }
        _claim(folder, json.loads(json.dumps(settings, default=str)), overwrite)
        self._detector, self._categories, self._folder = detector, truth.categories, folder
        self._annotations, self._dropped = truth.path, 0
        if len(images.keys) < len(truth.sizes):
            self._annotations = folder / RESTRICTED
            kept = truth.content | {
                name: [each for each in truth.content[name] if each[field] in images.keys]
                for name, field in (("images", "id"), ("annotations", "image_id"))
            }
            save(self._annotations, json.dumps(kept).encode(), str(self._annotations))
        self._store = open_store(folder)
        self._parts = {entry.path for entry in self._store.list(_PARTS)}
        self._variants = images.variants
        self._missing = [each for each in images.variants if not self._store.exists(f"{each.folder}.json")]

    def find_lacking(self, number: int) -> list[Variant]:
        """Return the variants without detections in the images of unit `number`."""
        return [each for each in self._missing if _name_part(each, number) not in self._parts]

    def detect(self, image: int, pixels: Rgb) -> list[Detection]:
        """Return the detections in an image, in the categories of the annotations."""
        found = self._detector.detect(pixels)
        check_detections(self._detector, found)
        known = [{"image_id": image, **each} for each in found if each["category_id"] in self._categories]
        self._dropped += len(found) - len(known)
        return known

    def put_part(self, variant: Variant, number: int, detections: list[Detection]) -> None:
        """Write the detections in the images of unit `number`."""
        try:
            data = json.dumps(detections).encode()
        except TypeError as error:
            name = self._detector.name
            raise SourceError(f"--model {name}: its detections are not valid JSON ({error})") from error
        self._store.put(_name_part(variant, number), data)

    def finish(self, units: int) -> DetectionRun:
        """Write the missing result files, and delete their parts."""
        for variant in self._missing:
            lists = (self._store.read(_name_part(variant, number))[1:-1] for number in range(units))
            self._store.put(f"{variant.folder}.json", b"[" + b", ".join(filter(None, lists)) + b"]")
        for variant in self._variants:
            for entry in [*self._store.list(f"{_PARTS}/{variant.folder}")]:
                self._store.delete(entry.path)
        made, kept = len(self._missing), len(self._variants) - len(self._missing)
        return DetectionRun(self._folder, self._annotations, made, kept, self._dropped)


def _name_part(variant: Variant, number: int) -> str:
    return f"{_PARTS}/{variant.folder}/{number}.json"


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
    for result in [*folder.glob("*.json"), *folder.glob("*/*.json"), *folder.glob(f"{_PARTS}/**/*.json")]:
        result.unlink()
    save(path, json.dumps(settings, indent=1).encode(), str(path))
