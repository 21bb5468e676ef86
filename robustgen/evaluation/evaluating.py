"""`robustgen evaluate`: from source images to predictions, without a set on disk.

The images are those that make-c or make-p would write, as a reader reads them, in the batches of
`robustgen predict`. So the prediction files are those of `predict`.

A unit is a fixed number of consecutive source images, without failed ones, in all variants; its record names
the images. Any number of runs share the units. A failed image shifts all later batches, so units are started
in order, and units whose images have changed are predicted again. Failures have their own records; failed
images are not tried again.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmarks.kinds import BENCHMARKS, Benchmark, Kind, Variant
from robustgen.dataset.manifest import source_digest
from robustgen.dataset.plan import Plan, plan_benchmark
from robustgen.dataset.records import Origin, Record
from robustgen.dataset.sharing import share, share_each
from robustgen.dataset.state import START_OVER
from robustgen.display.progress import Meter
from robustgen.errors import ConfigError, ImageError, OutputError, SourceError
from robustgen.evaluation.predicting import Predictor, choose_saved
from robustgen.evaluation.predictions import Saved, digest_of
from robustgen.evaluation.rendering import Rendered, Renderer
from robustgen.evaluation.store import PredictionStore, choose_unit_size, name_parts, open_prediction_store
from robustgen.files.storage import open_store
from robustgen.formats import FORMATS
from robustgen.formats.base import stack_images
from robustgen.formats.prefetch import prefetch
from robustgen.models import preprocessing as presets
from robustgen.models.base import Model, Runtime
from robustgen.models.classifier import Classifier
from robustgen.models.opening import open_model
from robustgen.models.preprocessing import PRESETS, Preprocessing
from robustgen.settings.config import Config
from robustgen.sources.base import class_of

_VIDEO: Final = ".mp4"
# Settings that decide pixels, besides those in the settings of any run.
_CHOICES: Final = ("size", "parameters", "libjpeg", "motion_blur")
# The rows of these images, for all variants, are in memory until the unit is done.
_MOST_IMAGES: Final[Mapping[Kind, int]] = {"c": 256, "p": 32}


@dataclass(frozen=True)
class EvaluateResult:
    """Result of a run.

    Attributes
    ----------
    folders : tuple of str
        Path or URL of the predictions of each model.
    made, kept : int
        Images or sequences predicted now, and earlier, by all models.
    noun : str
        Which of the two, in the singular.
    failures : dict of str to str
        Source image to reason.
    seconds : float
    """

    folders: tuple[str, ...]
    made: int
    kept: int
    noun: str
    failures: dict[str, str]
    seconds: float


@dataclass(frozen=True)
class ModelOptions:
    """Settings of the models.

    Attributes
    ----------
    preprocessing : str, optional
        A preset or a YAML file; default the model's own, or the one for the edition.
    flags : mapping
        Fields of `Preprocessing`, as text, which override it.
    save : {"logits", "top5"}, optional
        As in `predict`.
    batch : int
        Images or frames per batch.
    runtime : Runtime
    """

    preprocessing: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    save: Saved | None = None
    batch: int = 64
    runtime: Runtime = field(default_factory=Runtime)


# --- the images ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subjects:
    """The images of a plan, in the order of the set that is not written.

    Attributes
    ----------
    plan : Plan
    benchmark : Benchmark
    keys : dict of str to str
        Source image to key in the set, in the order of the set.
    classes : tuple of str or None
        Class folders in the order of the labels; None to use the source's labels.
    """

    plan: Plan
    benchmark: Benchmark
    keys: dict[str, str]
    classes: tuple[str, ...] | None

    def labels(self, sources: Sequence[str]) -> NDArray[np.int64]:
        """Return the true classes of the images; raise a SourceError if the class list lacks one."""
        if self.classes is None:
            return np.array([self.plan.source.label(key) for key in sources], np.int64)
        index = {name: place for place, name in enumerate(self.classes)}
        folders = [class_of(self.keys[key]) for key in sources]
        unknown = {*folders} - index.keys()
        if unknown:
            raise SourceError(f"{self.root}: class folder {min(unknown)!r} is not in the class list")
        return np.array([index[folder] for folder in folders], np.int64)

    @property
    def root(self) -> str:
        """Return the path or URL of the source."""
        return self.plan.source.location


def list_subjects(plan: Plan, benchmark: Benchmark, listed: tuple[str, ...] | None) -> Subjects:
    """Return the images of `plan`; `listed` are the class folders in the order of a model's outputs.

    Raises
    ------
    ConfigError
        Classes are given for arrays, which have no class folders.
    """
    names = {key: plan.writer.output_name(key) for key in plan.keys}
    if any(name is None for name in names.values()):
        if listed:
            raise ConfigError("--classes needs class folders; these images become rows of arrays")
        return Subjects(plan, benchmark, {key: key for key in plan.keys}, None)
    keys = {key: str(name).removesuffix(_VIDEO) for key, name in names.items()}
    # Trees are listed by name, shards in the order of the plan.
    row = FORMATS.get(plan.writer.settings()["format"])
    ordered = keys if row and row.joint else dict(sorted(keys.items(), key=lambda pair: pair[1]))
    folders = {class_of(key) for key in ordered.values()}
    own = tuple(sorted(plan.source.classes))
    classes = listed or (own if folders <= {*own} else tuple(sorted(folders)))
    return Subjects(plan, benchmark, ordered, classes)


# --- one model -----------------------------------------------------------------------------------


@dataclass
class Candidate:
    """One model under evaluation.

    Attributes
    ----------
    predictor : Predictor
    store : PredictionStore
    view : int
        Index of the preprocessing that it uses.
    subjects : Subjects
    pending : list of Variant
        Variants to predict.
    units : dict of str to Record
        Records of units that this run has read.
    rows : dict of Variant to list
        Predictions for the images of the current unit.
    failed : set of str
        Images recorded as failed.
    """

    predictor: Predictor
    store: PredictionStore
    view: int
    subjects: Subjects
    pending: list[Variant] = field(default_factory=list)
    units: dict[str, Record] = field(default_factory=dict)
    rows: dict[Variant, list[NDArray[Any]]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def predict(self, variant: Variant, group: Sequence[Rendered]) -> None:
        """Predict the images in `variant`, in the batches of `robustgen predict`."""
        # Each sequence is a batch by itself, or several.
        size = self.predictor.batch if self.subjects.benchmark.kind == "c" else 1
        for start in range(0, len(group), size):
            part = group[start : start + size]
            keys = [self.subjects.keys[each.key] for each in part]
            images = [each.pixels[variant.folder][self.view] for each in part]
            pixels = stack_images(images, variant.folder, "--input-size resizes them")
            values = self.predictor.predict(pixels, keys, variant)
            known = self.rows.setdefault(variant, [])
            if known and known[0].shape[1:] != values.shape[1:]:
                raise SourceError(f"{variant.folder}: its sequences differ in length")
            known.append(values)

    def lacks(self, name: str, keys: Sequence[str]) -> bool:
        """Return whether pending variants of `keys`, the images of the unit `name`, need predictions."""
        record = self.units.get(name)
        if not keys or not self.pending:
            return False
        return (
            record is None
            or [*record.images] != [*keys]
            or not {variant.folder for variant in self.pending} <= self.store.list_parts(record).keys()
        )

    def put_unit(self, name: str, images: Mapping[str, Origin]) -> None:
        """Write the rows of the pending variants, and the record of `images`."""
        parts = {
            variant.folder: self.store.put_part(
                variant, name.rpartition("/")[2], np.concatenate(self.rows[variant])
            )
            for variant in self.pending
        }
        held = self.store.state.read_record(name)
        if held and [*held.images] == [*images]:
            # For variants that another run predicts.
            parts = self.store.list_parts(held) | parts
        self.units[name] = Record(images, [*parts], [*parts.values()])
        self.store.state.put_record(name, self.units[name])

    def put_failures(self, failures: Mapping[str, str]) -> None:
        """Write a record of the `failures` that have none."""
        new = [{"key": key, "reason": failures[key]} for key in failures if key not in self.failed]
        if new:
            digest = digest_of([each["key"] for each in new])[:16]
            self.store.state.put_record(f"failures/{digest}", Record({}, [], [], new))
            self.failed |= failures.keys()

    def finish(self, units: Sequence[str], sources: Sequence[str]) -> None:
        """Write the files of the pending variants from the parts of all `units`, unless other runs do."""
        state, pending = self.store.state, {variant.folder: variant for variant in self.pending}
        keys, labels = [self.subjects.keys[key] for key in sources], self.subjects.labels(sources)

        def write(folder: str) -> None:
            parts = [name_parts(self.units[name])[folder] for name in units]
            self.store.finish(pending[folder], keys, labels, parts, self.predictor.entries)

        for _ in share_each(state, pending, write, state.has_record):
            pass
        # The records of units stay: variants added later must use the same images.
        state.delete_claims()


# --- a run ---------------------------------------------------------------------------------------


def evaluate(
    config: Config,
    kind: Kind,
    models: Sequence[str],
    output: str | Path,
    options: ModelOptions | None = None,
    *,
    overwrite: bool = False,
) -> EvaluateResult:
    """Predict a set with `models` without writing it.

    Parameters
    ----------
    config : Config
        As for make-c or make-p.
    kind : {"c", "p"}
    models : sequence of str
        As in `open_model`.
    output : path or URL
        Folder with a subfolder of predictions for each model.
    options : ModelOptions, optional
    overwrite : bool
        Remove other predictions of robustgen.

    Raises
    ------
    RobustgenError
        Models, images and output do not match.
    """
    started = time.monotonic()
    options = options or ModelOptions()
    opened = [open_model(name, options.runtime) for name in models]
    folders = tuple(f"{open_store(output).location}/{name}" for name in _name_folders(opened))
    # Other files of the source are only for readers of a set.
    config = config.model_copy(update={"mirror": None})
    plan = plan_benchmark(config, kind, overwrite=True, store=open_store(folders[0]))
    edition = str(plan.choices.get("edition"))
    default = edition if edition in PRESETS else "imagenet"
    classifiers = [
        Classifier(
            model,
            presets.load_preprocessing(options.preprocessing, options.flags, default, model.preprocessing),
        )
        for model in opened
    ]
    views, places = _list_views(classifiers)
    subjects = [list_subjects(plan, BENCHMARKS[kind], each.preprocessing.classes) for each in classifiers]
    predictors = _try_out(plan, classifiers, views, places, subjects, options)
    described = _describe(plan, subjects[0])
    with ExitStack() as stack:
        stores = [
            stack.enter_context(
                open_prediction_store(
                    folder, plan.source.location, described | each.settings(), overwrite=overwrite
                )
            )
            for folder, each in zip(folders, predictors, strict=True)
        ]
        candidates = [Candidate(*each) for each in zip(predictors, stores, places, subjects, strict=True)]
        run = _Run(plan, candidates, views, options.batch)
        made, kept = run.carry_out()
    failures = {**run.failures, **plan.refused}
    return EvaluateResult(folders, made, kept, plan.recipe.noun, failures, time.monotonic() - started)


def _list_views(classifiers: Sequence[Classifier]) -> tuple[tuple[Preprocessing, ...], list[int]]:
    """Return the distinct preprocessings of the models, and the index of each model's."""
    wanted = [
        replace(
            PRESETS["imagenet"], input_size=own.input_size, clahe=own.clahe, interpolation=own.interpolation
        )
        for own in (classifier.preprocessing for classifier in classifiers)
    ]
    views = tuple(dict.fromkeys(wanted))
    return views, [views.index(each) for each in wanted]


def _try_out(
    plan: Plan,
    classifiers: Sequence[Classifier],
    views: tuple[Preprocessing, ...],
    places: Sequence[int],
    subjects: Sequence[Subjects],
    options: ModelOptions,
) -> list[Predictor]:
    """Run each model on the first usable image, to check now that they match."""
    arm, reason = plan.arms[0], "there is no image"
    for key in subjects[0].keys:
        (first,) = Renderer(replace(plan, jobs=1), (arm,), views).make([key])
        if first.reason is None:
            break
        reason = f"{key!r}: {first.reason}"
    else:
        raise SourceError(f"{plan.source.location}: none of the images can be made ({reason})")
    predictors = []
    for classifier, place, subject in zip(classifiers, places, subjects, strict=True):
        pixels = first.pixels[arm.folder][place]
        folders = None if subject.classes is None else len(subject.classes)
        classes = classifier.count_classes(pixels, subject.root, folders)
        save = choose_saved(options.save, subject.benchmark.kind, classes)
        predictor = Predictor(classifier, classes, save, options.batch)
        predictor.check_labels(subject.labels([*subject.keys]), subject.root)
        predictor.predict(pixels[None], [subject.keys[first.key]], arm)
        predictors.append(predictor)
    return predictors


def _name_folders(models: Sequence[Model]) -> list[str]:
    """Return a folder name for each model: its label, without characters that are unsuitable for folders."""
    plain = [Path(model.label.partition("@")[0].replace(":", "-")).name for model in models]
    plain = [name.removesuffix(".onnx").removesuffix(".pt2") for name in plain]
    return [name if plain.count(name) == 1 else f"{name}-{i}" for i, name in enumerate(plain, 1)]


def _describe(plan: Plan, subjects: Subjects) -> dict[str, Any]:
    """Return everything that decides the images, for `predictions.json`."""
    settings = {**plan.settings()}
    # The arms are omitted: the rest decides their pixels, and arms can be added.
    del settings["parameters"]
    own = {name: plan.choices.get(name) for name in _CHOICES}
    sizes = {key: _size(plan, key) for key in plan.keys}
    return {
        "kind": plan.recipe.title,
        "dataset": plan.dataset,
        "edition": plan.choices.get("edition"),
        "digest": None,
        "source_digest": source_digest(sizes),
        "keys": digest_of([*subjects.keys.values()]),
        "made": json.loads(json.dumps(settings | own)),
    }


def _size(plan: Plan, key: str) -> int:
    try:
        return plan.source.size(key)
    except ImageError:
        # Corrupting the image will report the error.
        return 0


class _Run:
    """One run over all images that some model lacks, shared with other runs."""

    def __init__(
        self, plan: Plan, candidates: Sequence[Candidate], views: tuple[Preprocessing, ...], batch: int
    ) -> None:
        self._plan, self._candidates, self._views, self._batch = plan, candidates, views, batch
        self._sources = self._survivors = [*candidates[0].subjects.keys]
        kind = candidates[0].subjects.benchmark.kind
        # Each sequence is a batch by itself.
        self._step = batch if kind == "c" else 1
        self._unit_size = choose_unit_size(len(self._sources), self._step, _MOST_IMAGES[kind])
        # Images that failed for one model are skipped for the others.
        self.failures: dict[str, str] = {}
        self._origins: dict[str, Origin] = {}
        # For the current unit: images still to predict, and keys of the others.
        self._rendered: list[Rendered] = []
        self._predicted: list[str] = []
        self._made = 0
        self._look()

    def carry_out(self) -> tuple[int, int]:
        """Predict everything missing; return the number of outputs predicted by this run, and by others."""
        for each in self._candidates:
            keys = [each.subjects.keys[key] for key in self._survivors]
            each.pending = [v for v in self._plan.arms if not each.store.has(v, keys, each.subjects.root)]
        if waiting := [each for each in self._candidates if each.pending]:
            self._plan.source.make_ready()
            self._plan.recipe.make_ready()
            self._predict(waiting)
        total = len(self._plan.arms) * len(self._survivors) * len(self._candidates)
        return self._made, total - self._made

    # --- units

    def _list_units(self) -> list[str]:
        starts = range(0, len(self._survivors), self._unit_size)
        return [f"units/{start:08d}-{self._unit_size}" for start in starts]

    def _list_images(self, name: str) -> list[str]:
        """Return the images of a unit, without those that failed."""
        start = int(name.removeprefix("units/").partition("-")[0])
        return self._survivors[start : start + self._unit_size]

    def _look(self) -> None:
        """Load the records that other runs have written since."""
        for each in self._candidates:
            names = {*each.store.state.list_records()}
            each.pending = [variant for variant in each.pending if variant.folder not in names]
            for name in names - each.units.keys():
                if name.startswith(("units/", "failures/")):
                    self._read(each, name)
        self._survivors = [key for key in self._sources if key not in self.failures]

    def _read(self, candidate: Candidate, name: str) -> None:
        record = candidate.store.state.read_record(name)
        if record:
            candidate.units[name] = record
            self._origins |= record.images
            own = {failure["key"]: failure["reason"] for failure in record.failures}
            candidate.failed |= own.keys()
            self.failures |= own

    def _is_done(self, name: str) -> bool:
        # Missing parts may be in a file, which is recorded before they are deleted.
        self._look()
        keys = self._list_images(name)
        lacking = [each for each in self._candidates if each.lacks(name, keys)]
        for each in lacking:
            self._read(each, name)
        return not any(each.lacks(name, keys) for each in lacking)

    def _list_lacking(self) -> list[str]:
        self._look()
        names = self._list_units()
        return [n for n in names if any(each.lacks(n, self._list_images(n)) for each in self._candidates)]

    # --- predicting

    def _predict(self, waiting: Sequence[Candidate]) -> None:
        for each in waiting:
            each.put_failures(self.failures)
        pending = {variant for each in waiting for variant in each.pending}
        self._arms = tuple(variant for variant in self._plan.arms if variant in pending)
        self._state = waiting[0].store.state
        lacking = self._list_lacking()
        images = sum(len(self._list_images(name)) for name in lacking)
        with Meter(
            images * sum(len(each.pending) for each in waiting), f"{self._plan.recipe.noun}s"
        ) as self._meter:
            while lacking:
                for name in share(self._state, lacking, self._make, self._is_done, in_order=True):
                    self._meter.name(name)
                # Images that failed in another run may have shifted those of later units.
                lacking = self._list_lacking()
        if not self._survivors:
            raise SourceError(f"{self._plan.source.location}: none of the images can be made")
        for each in waiting:
            each.finish(self._list_units(), self._survivors)
            for variant in self._arms:
                # Another run may have finished it while this one predicted units of it again.
                each.store.delete_parts(variant.folder)

    def _make(self, names: Sequence[str]) -> Iterator[str]:
        """Predict units one after another; the images of the next group are prepared meanwhile."""
        renderer = Renderer(self._plan, self._arms, self._views)
        # Enough images to keep all workers busy.
        size = (
            self._step * max(1, -(-8 * renderer.jobs // self._step)) if self._step > 1 else 4 * renderer.jobs
        )
        done = list[str]()

        def claim() -> Iterator[tuple[str, list[str], bool]]:
            for name in names:
                if not self._is_done(name) and not self._state.claim(name):
                    continue
                # The owner of the claim may have finished since.
                if self._is_done(name):
                    done.append(name)
                    continue
                keys = self._list_images(name)
                for start in range(0, len(keys), size):
                    yield name, keys[start : start + size], start + size >= len(keys)

        def render(group: tuple[str, list[str], bool]) -> tuple[str, list[Rendered], bool]:
            return group[0], renderer.make(group[1]), group[2]

        for name, group, is_last in prefetch(render, claim(), 1):
            self._take(name, group)
            if is_last:
                self._complete(name, renderer)
                done.append(name)
            yield from done
            done.clear()
        yield from done

    def _take(self, name: str, group: Sequence[Rendered]) -> None:
        """Record the failed images of a group, and predict the others in whole batches."""
        for each in group:
            held = self._origins.get(each.key, (0, ""))[1]
            if each.reason is not None:
                self.failures[each.key] = each.reason
            elif held and each.identity and held != each.identity:
                raise OutputError(
                    f"{self._plan.source.location}: {each.key!r} has changed since the "
                    f"predictions in {self._plan.store.location} were made. {START_OVER}"
                )
            self._origins[each.key] = _size(self._plan, each.key), each.identity
        for candidate in self._candidates:
            if candidate.pending:
                candidate.put_failures(self.failures)
        self._survivors = [key for key in self._survivors if key not in self.failures]
        wanted = {*self._list_images(name)}
        self._rendered += [each for each in group if each.key in wanted]
        self._predict_some(len(self._rendered) // self._batch * self._batch)

    def _predict_some(self, count: int) -> None:
        group, self._rendered = self._rendered[:count], self._rendered[count:]
        for variant in self._arms if group else ():
            for each in self._candidates:
                if variant in each.pending:
                    each.predict(variant, group)
                    self._meter.update(len(group))
            self._meter.name(variant.folder)
        self._predicted += [each.key for each in group]

    def _complete(self, name: str, renderer: Renderer) -> None:
        """Predict the rest of a unit and write it, unless its images have changed."""
        while missing := self._list_images(name)[len(self._predicted) + len(self._rendered) :]:
            self._take(name, renderer.make(missing))
        self._predict_some(len(self._rendered))
        if self._predicted and self._predicted == self._list_images(name):
            for each in self._candidates:
                if each.pending:
                    each.put_unit(name, {key: self._origins[key] for key in self._predicted})
                    self._made += len(each.pending) * len(self._predicted)
        for each in self._candidates:
            each.rows.clear()
        self._predicted = []
