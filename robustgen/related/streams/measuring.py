"""Accuracies of a network under pairs of corruptions, measured on a sample: the table for CCC's walk.

Images are prepared as for ImageNet-C, without the random crops of a run, as for the original's table. A unit
is all cells with the same first corruption and severity. Several runs can share the units, in a ledger next
to the file of measurements, which they write after each unit. The run that ends last removes the ledger.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.display.progress import Meter, print_note
from robustgen.errors import ArgumentError, MissingDependencyError, SourceError, explain_failure
from robustgen.files.ledger import Ledger, Record, find_differences, refuse_differences
from robustgen.files.set_files import START_OVER, STATE, AnotherSetError
from robustgen.files.storage import locate, save
from robustgen.files.storage.host import keep_freed_memory
from robustgen.files.text_files import parse_object
from robustgen.lab.evaluation.predicting import fit_classifier
from robustgen.lab.evaluation.predictions import digest_of
from robustgen.lab.models.base import Classifier, is_finite
from robustgen.lab.models.opening import open_model
from robustgen.lab.models.preprocessing import Pixels, Preprocessing
from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import IMAGE, require
from robustgen.pixels.imaging.decode import warn_of_few_greys
from robustgen.pixels.imaging.jpeg import round_trip
from robustgen.related.streams.accuracy_files import Measurements, parse_measurements
from robustgen.related.streams.ccc import QUALITY, StreamCell, apply_corruption, list_measurements
from robustgen.related.streams.settings import AccuracyMeasuring
from robustgen.sets.dataset.outputs import name_output_in_errors
from robustgen.sets.dataset.recipes import item_rng
from robustgen.sets.dataset.selection import open_chosen_source, select_keys
from robustgen.sets.executors import count_cores, submit_jobs
from robustgen.sets.executors.progress import Progress, Reporter
from robustgen.sets.sources.base import Items
from robustgen.sets.sources.classes import find_unlabelled, number_images
from robustgen.settings.config import Config
from robustgen.settings.models import Outputs, Runtime

_EDITION: Final = "imagenet"
# Limit of images that wait for the model: each comes in all cells of a unit, which take ten megabytes.
_AHEAD: Final = 4


class Shown(NamedTuple):
    """One image in all cells of a unit, as model input, (cells, H, W, 3); or the reason of its failure."""

    key: str
    pixels: Pixels | None
    reason: str = ""


@dataclass(frozen=True)
class ImageJob:
    """One image in the cells of a unit, which share the first corruption: a job for an executor."""

    source: Items[Any]
    key: str
    cells: tuple[StreamCell, ...]
    seed: int
    view: Preprocessing

    def run(self, reporter: Reporter) -> Shown:
        """Corrupt the image for all cells."""
        keep_freed_memory()
        reporter.tell(0)
        try:
            return Shown(self.key, np.stack([*self._make()]))
        except MissingDependencyError:
            raise
        # A bad image does not stop the others, whatever its error.
        except Exception as error:
            return Shown(self.key, None, explain_failure(error, self.key))

    def _make(self) -> Iterator[Pixels]:
        prepared = get_edition(_EDITION).prepared(self.source.read(self.key)[0])
        first, severity = self.cells[0].first, self.cells[0].first_severity
        once = apply_corruption(prepared, first, severity, self._rng(first, severity))
        for cell in self.cells:
            rng = self._rng(f"{first} {severity} {cell.second}", cell.second_severity)
            twice = apply_corruption(once, cell.second, cell.second_severity, rng)
            yield self.view.prepare(round_trip(twice, QUALITY))

    def _rng(self, name: str, severity: float) -> np.random.Generator:
        return item_rng(self.seed, "ccc", _EDITION, name, severity, self.key)


@dataclass(frozen=True)
class MeasureResult:
    """Result of a run.

    Attributes
    ----------
    made, kept : int
        Number of accuracies measured by this run, and by earlier ones.
    images : int
    failures : dict of str to str
        Source image to reason.
    """

    made: int
    kept: int
    images: int
    failures: dict[str, str]


def measure_accuracies(config: Config, options: AccuracyMeasuring, runtime: Runtime) -> MeasureResult:
    """Measure the accuracies for runs of a baseline that the output does not contain yet.

    Parameters
    ----------
    config : Config
        Defines images, seed and number of workers.
    options : AccuracyMeasuring
    runtime : Runtime

    Raises
    ------
    RobustgenError
        Model, images and output do not match.
    """
    opened, output = open_model(options.model, runtime), options.output
    source = open_chosen_source(config)
    require(source.medium, (IMAGE,), "stream measure")
    classifier = fit_classifier(opened, options, _EDITION, source, source.location, Outputs())
    preprocessing = classifier.preprocessing
    keys = select_keys(source, config)
    for remark in source.remarks():
        print_note(remark)
    unlabelled = find_unlabelled(source, keys)
    keys = tuple(key for key in keys if key not in unlabelled)
    labels = number_images(source, keys, preprocessing.classes)
    made_of = {
        "model": opened.settings(),
        "preprocessing": preprocessing.settings(),
        "images": len(keys),
        "keys": digest_of(keys),
        "seed": config.seed,
        **({"levels": [*config.levels]} if config.levels else {}),
    }
    table = _Table(Measurements(made_of, options.target, options.grid, {}), output)
    with name_output_in_errors(table.ledger.root), table.ledger.discard_if_unused():
        table.agree(overwrite=options.overwrite)
        workers = config.jobs or count_cores()
        run = _MeasuringRun(source, labels, classifier, config.seed, options.batch_size, workers)
        run.try_out(len(preprocessing.classes) if preprocessing.classes else source.class_count)
        made = _measure_missing(table, run, len(keys))
    return MeasureResult(made, len(table.cells) - made, len(keys), run.failures | unlabelled)


def _measure_missing(table: "_Table", run: "_MeasuringRun", images: int) -> int:
    """Have all units measured by this run or others; return the number of accuracies of this run."""
    units, known, made = dict[str, list[StreamCell]](), table.read(), dict[StreamCell, float]()
    for cell in table.cells:
        if cell not in known:
            units.setdefault(f"{cell.first or 'clean'}-{cell.first_severity:g}", []).append(cell)
    with Meter(sum(map(len, units.values())) * images, "images") as meter:

        def measure(unit: str) -> None:
            meter.name(unit)
            accuracies = dict(zip(units[unit], run.measure(tuple(units[unit]), meter), strict=True))
            table.add(unit, accuracies)
            made.update(accuracies)

        for unit in table.ledger.share_one_by_one(units, measure, lambda unit: table.has(unit, units[unit])):
            if not made.keys() >= {*units[unit]}:
                meter.update(len(units[unit]) * images)
    table.write()
    table.ledger.clear()
    return len(made)


class _Table:
    """File of measurements, and the ledger next to it of the runs that write it."""

    def __init__(self, wanted: Measurements, output: str) -> None:
        self.wanted, self.output = wanted, output
        self.cells = list_measurements(wanted.baseline, wanted.severities)
        self._store, self._name = locate(output)
        self.ledger = Ledger(self._store, store=self._store.folder(f".{self._name}{STATE}"))

    def agree(self, *, overwrite: bool) -> None:
        """Begin, or compare the settings with those of the file and of simultaneous runs."""
        settings = self.wanted.settings()
        try:
            if held := self._parse():
                plain = json.loads(json.dumps(settings))
                refuse_differences(self.output, find_differences(held.settings(), plain))
            self.ledger.agree(settings)
        except AnotherSetError:
            if not overwrite:
                raise
            self._store.delete(self._name)
            self.ledger.clear()
            self.ledger.agree(settings)

    def _parse(self) -> Measurements | None:
        try:
            return parse_measurements(parse_object(self._store.read(self._name)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise AnotherSetError(f"{self.output}: {error}. {START_OVER}") from error

    def read(self) -> dict[StreamCell, float]:
        """Return what all runs have measured, in the order of the cells."""
        # In this order, because a run that ends writes the file, and then deletes the records.
        records = [record for _, record in self.ledger.read_records() if record]
        known = dict((self._parse() or self.wanted).measured)
        for record in records:
            known |= {StreamCell(*row[:-1]): row[-1] for row in record.values["measured"]}
        return {cell: known[cell] for cell in self.cells if cell in known}

    def has(self, unit: str, cells: Sequence[StreamCell]) -> bool:
        """Return whether any run has measured the `cells` of a unit."""
        return self.ledger.has_record(unit) or (self._parse() or self.wanted).measured.keys() >= {*cells}

    def add(self, unit: str, measured: Mapping[StreamCell, float]) -> None:
        """Record the measurements of a unit, and write the file."""
        rows = [[*cell, accuracy] for cell, accuracy in measured.items()]
        self.ledger.put_record(unit, Record(values={"measured": rows}))
        self.write()

    def write(self) -> None:
        """Write the file of what all runs have measured."""
        save(self.output, replace(self.wanted, measured=self.read()).to_bytes(), f"--output {self.output}")


@dataclass
class _MeasuringRun:
    """Runs a model on the images of one unit after another.

    Attributes
    ----------
    failures : dict of str to str
        Source image to reason; failed images are not counted.
    """

    source: Items[Any]
    labels: Mapping[str, int]
    classifier: Classifier
    seed: int
    batch: int
    workers: int
    failures: dict[str, str] = field(default_factory=dict)

    def try_out(self, count: int | None) -> None:
        """Run the model on the first usable image, to check now that they match."""
        self.source.make_ready()
        for key in self.labels:
            shown = self._job(key, (StreamCell("", 0, "", 0),)).run(Reporter())
            if shown.pixels is not None:
                break
            self.failures[key] = shown.reason
        else:
            reason = f"{key!r}: {self.failures[key]}"
            raise SourceError(f"{self.source.location}: none of the images can be made ({reason})")
        warn_of_few_greys(self.source.read(key)[0])
        classes = self.classifier.count_classes(shown.pixels[0], self.source.location, count)
        if max(self.labels.values()) >= classes:
            name = self.classifier.model.name
            raise SourceError(f"{self.source.location}: has more classes than the {classes} of {name}")

    def _job(self, key: str, cells: tuple[StreamCell, ...]) -> ImageJob:
        return ImageJob(self.source, key, cells, self.seed, self.classifier.preprocessing)

    def measure(self, cells: tuple[StreamCell, ...], meter: Meter) -> list[float]:
        """Return the accuracies in % in the `cells` of a unit."""
        hits, seen, keys = np.zeros(len(cells), np.int64), 0, [*self.labels]
        size = _AHEAD * self.workers
        for start in range(0, len(keys), size):
            jobs = {key: self._job(key, cells) for key in keys[start : start + size]}
            # Observed group by group, so that workers that wait for the model do not count as silent.
            with Progress(meter, counts=False) as progress:
                for shown in submit_jobs(jobs, lambda each: each.key, self.workers, progress):
                    if shown.pixels is None:
                        self.failures[shown.key] = shown.reason
                    else:
                        hits += self._predict(shown.pixels, shown.key) == self.labels[shown.key]
                        seen += 1
                    meter.update(len(cells))
        if not seen:
            raise SourceError(f"{self.source.location}: none of the images can be made")
        return [100 * int(each) / seen for each in hits]

    def _predict(self, pixels: Pixels, key: str) -> NDArray[np.int64]:
        parts = [pixels[start : start + self.batch] for start in range(0, len(pixels), self.batch)]
        logits = np.concatenate([self.classifier(part) for part in parts])
        if not is_finite(logits).all():
            raise ArgumentError(f"{self.classifier.model.name}: returns NaN or infinity for {key!r}")
        best: NDArray[np.int64] = logits.argmax(axis=1)
        return best
