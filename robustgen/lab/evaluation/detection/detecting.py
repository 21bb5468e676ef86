"""`robustgen evaluate --annotations FILE`: detectors on images corrupted on the fly.

Each image is read once, and all detectors see it in all variants. A unit is a few images: its detections in a
variant are a part below ``.robustgen``. The parts of all images become the result file of the variant. The
same command resumes with the missing parts, and several runs can share the units.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from robustgen.display.progress import Meter, print_note
from robustgen.errors import SourceError
from robustgen.files.ledger import Differences, Ledger, Record
from robustgen.files.set_files import STATE, AnotherSetError
from robustgen.files.storage import Store, locate
from robustgen.lab.evaluation.detection.images import CorruptedImages, open_images
from robustgen.lab.evaluation.detection.reading import ABOUT, Annotations, read_annotations
from robustgen.lab.evaluation.store import name_folders
from robustgen.lab.models.detectors import Detection, Detector, check_detections, open_detector
from robustgen.lab.models.masks import import_pycocotools
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.dataset.changes import check_unchanged, keep_stamps, look_up
from robustgen.sets.dataset.outputs import file_digest, open_output
from robustgen.settings.config import Config
from robustgen.settings.models import Runtime

RESTRICTED: Final = "annotations.json"
"""The annotations of the chosen images, if these are not all."""
_PARTS: Final = f"{STATE}/parts"
# Name of the record of the images.
_IMAGES: Final = "images"
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
    names = [each.label for each in detectors]
    images = open_images(config, truth, output)
    for line in images.orientations.describe(len(images.keys)):
        print_note(line)
    size = -(-len(images.keys) // _MOST_UNITS)
    starts = range(0, len(images.keys), size)
    units = {f"units/{i}": [*images.keys][start : start + size] for i, start in enumerate(starts)}
    with ExitStack() as stack:
        runs = list[_Results]()
        for detector, folder in zip(detectors, name_folders(output, names), strict=True):
            store = stack.enter_context(open_output(folder, images.making.source.location))
            runs.append(_Results(detector, images, truth, store, overwrite))
        _detect_missing(images, units, runs)
        return [run.finish([*units]) for run in runs]


def _detect_missing(
    images: CorruptedImages, units: Mapping[str, Sequence[int]], runs: Sequence["_Results"]
) -> None:
    """Have the missing parts written by this run or others."""
    # All runs of this command know the first detector, so its claims count for all.
    ledger = runs[0].ledger
    lacking = {unit: {run: some for run in runs if (some := run.list_lacking(unit))} for unit in units}
    outputs = {unit: len(units[unit]) * sum(map(len, some.values())) for unit, some in lacking.items()}

    def claim(names: Sequence[str]) -> Iterator[tuple[str, int, Sequence[Variant]]]:
        for unit in filter(ledger.claim, names):
            lacking[unit] = {run: some for run in runs if (some := run.find_lacking(unit))}
            wanted = {variant for some in lacking[unit].values() for variant in some}
            for image in units[unit] if wanted else ():
                yield unit, image, [variant for variant in images.variants if variant in wanted]

    def detect(names: Sequence[str]) -> Iterator[str]:
        for unit, made in groupby(images.stream(claim(names)), lambda each: each[0]):
            found = {
                (run, variant): list[Detection]() for run, some in lacking[unit].items() for variant in some
            }
            for _, image, variant, pixels in made:
                for run in runs:
                    if (run, variant) in found:
                        found[run, variant] += run.detect(image, pixels)
                        meter.update()
            for (run, variant), detections in found.items():
                run.put_part(variant, unit, detections)
            own.add(unit)
            yield unit

    own = set[str]()
    with Meter(sum(outputs.values()), "images") as meter:
        for unit in ledger.share(
            filter(outputs.get, units), detect, lambda unit: not any(run.find_lacking(unit) for run in runs)
        ):
            meter.update(0 if unit in own else outputs[unit])


class _Results:
    """The result files of one detector, finished or in parts."""

    def __init__(
        self, detector: Detector, images: CorruptedImages, truth: Annotations, store: Store, overwrite: bool
    ) -> None:
        self._detector, self._categories, self._store = detector, truth.categories, store
        self._annotations, self._made, self._dropped = truth.path, 0, 0
        self.ledger = Ledger(store, ABOUT, schema=None)
        if not self.ledger.exists:
            self.ledger.refuse_unrecorded(entry.path for entry in store.list() if entry.path != ABOUT)
        settings = {
            "images": images.settings(),
            "keys": len(images.keys),
            "annotations": file_digest(*locate(truth.path)),
            "detector": detector.settings(),
        }
        plain = json.loads(json.dumps(settings, default=str))
        self.ledger.agree(plain, start_over=self._start_over if overwrite else None)
        try:
            self._check_images(images)
        except AnotherSetError:
            if not overwrite:
                raise
            self._start_over({})
            self.ledger.agree(plain)
            self._check_images(images)
        if len(images.keys) < len(truth.sizes):
            self._annotations = Path(store.location, RESTRICTED)
            kept = truth.content | {
                name: [each for each in truth.content[name] if each[field] in images.keys]
                for name, field in (("images", "id"), ("annotations", "image_id"))
            }
            store.put(RESTRICTED, json.dumps(kept).encode())
        self._parts = {entry.path for entry in store.list(_PARTS)}
        self._variants = images.variants
        self._missing = [each for each in images.variants if not self._has_file(each.folder)]

    def _check_images(self, images: CorruptedImages) -> None:
        """Record the identities of the images, or raise an AnotherSetError if one has changed since."""
        source = images.making.source
        looked = {key: look_up(source, key) for key in images.keys.values()}
        stamps = {key: stamp for key, (_, stamp) in looked.items()}
        if held := self.ledger.read_record(_IMAGES):
            check_unchanged(source, self.ledger, {key: held.images[key][1] for key in looked}, stamps)
        else:
            origins = {key: (size, images.identities[key]) for key, (size, _) in looked.items()}
            self.ledger.put_record(_IMAGES, Record(origins))
            keep_stamps(self.ledger, {}, stamps)

    def _start_over(self, _: Differences) -> None:
        for entry in [*self._store.list()]:
            if entry.path.endswith(".json") and entry.path.count("/") < 2:
                self._store.delete(entry.path)
        self.ledger.clear()

    def _has_file(self, folder: str) -> bool:
        return self._store.exists(f"{folder}.json")

    def list_lacking(self, unit: str) -> list[Variant]:
        """Return the variants without known detections in the images of a unit."""
        return [each for each in self._missing if _name_part(each.folder, unit) not in self._parts]

    def find_lacking(self, unit: str) -> list[Variant]:
        """Return what `list_lacking` returns, after a look at what other runs have written since."""
        for variant in self.list_lacking(unit):
            part = _name_part(variant.folder, unit)
            # A part is deleted after the file is written.
            if self._store.exists(part) or self._has_file(variant.folder):
                self._parts.add(part)
        return self.list_lacking(unit)

    def detect(self, image: int, pixels: Rgb) -> list[Detection]:
        """Return the detections in an image, in the categories of the annotations."""
        found = self._detector.detect(pixels)
        check_detections(self._detector, found)
        known = [{"image_id": image, **each} for each in found if each["category_id"] in self._categories]
        self._dropped += len(found) - len(known)
        return known

    def put_part(self, variant: Variant, unit: str, detections: list[Detection]) -> None:
        """Write the detections in the images of a unit."""
        try:
            data = json.dumps(detections).encode()
        except TypeError as error:
            name = self._detector.name
            raise SourceError(f"--model {name}: its detections are not valid JSON ({error})") from error
        part = _name_part(variant.folder, unit)
        self._store.put(part, data)
        self._parts.add(part)

    def finish(self, units: Sequence[str]) -> DetectionRun:
        """Have the missing result files written by this run or others, and delete their parts."""

        def write(folder: str) -> None:
            try:
                lists = [self._store.read(_name_part(folder, unit))[1:-1] for unit in units]
            except FileNotFoundError:
                if not self._has_file(folder):
                    raise
                return
            self._store.put(f"{folder}.json", b"[" + b", ".join(filter(None, lists)) + b"]")
            self._made += 1

        folders = [variant.folder for variant in self._missing]
        for _ in self.ledger.share_one_by_one(folders, write, self._has_file):
            pass
        for variant in self._variants:
            for entry in [*self._store.list(f"{_PARTS}/{variant.folder}")]:
                self._store.delete(entry.path)
        self.ledger.delete_claims()
        kept, folder = len(self._variants) - self._made, Path(self._store.location)
        return DetectionRun(folder, self._annotations, self._made, kept, self._dropped)


def _name_part(folder: str, unit: str) -> str:
    return f"{_PARTS}/{folder}/{unit.rpartition('/')[2]}.json"
