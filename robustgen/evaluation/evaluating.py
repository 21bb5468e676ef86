"""`robustgen evaluate`: from source images to predictions, without a set on disk.

The images are those that make-c or make-p would write and a reader would read, in the batches in which
`robustgen predict` would give them to the model. So the files of predictions are those of `predict`.

A unit is some consecutive source images and all variants. As images that fail must not shift the batches,
units are predicted in order; the record of each names its source images, and those that failed. A run resumes
behind the last unit of an unbroken row.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import BENCHMARKS, Benchmark, Kind, Variant
from robustgen.dataset.config import Config
from robustgen.dataset.manifest import source_digest
from robustgen.dataset.plan import Plan, plan_benchmark
from robustgen.dataset.records import FilesRecord, Origin
from robustgen.dataset.state import START_OVER
from robustgen.display.progress import Meter
from robustgen.errors import ConfigError, ImageError, OutputError, SourceError
from robustgen.evaluation import preprocessing as presets
from robustgen.evaluation.models.base import Model, Runtime
from robustgen.evaluation.models.classifier import Classifier
from robustgen.evaluation.models.opening import open_model
from robustgen.evaluation.predicting import Predictor, choose_saved
from robustgen.evaluation.preprocessing import PRESETS, Preprocessing
from robustgen.evaluation.rendering import Rendered, Renderer
from robustgen.evaluation.store import PredictionStore, choose_unit_size, name_parts, open_prediction_store
from robustgen.formats import FORMATS
from robustgen.formats.base import stack_images
from robustgen.predictions import Saved, digest_of
from robustgen.sources.base import class_of
from robustgen.storage import open_store

_VIDEO: Final = ".mp4"
# Choices that decide pixels, beside those that settings name anyway.
_CHOICES: Final = ("size", "parameters", "libjpeg", "motion_blur")
# Their rows, of all variants, are in memory until the unit is done.
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
    """How the models are to be used.

    Attributes
    ----------
    preprocessing : str, optional
        A preset or a YAML file; otherwise the model's own, or what fits the edition.
    flags : mapping
        Fields of `Preprocessing`, as text, that win over it.
    save : {"logits", "top5"}, optional
        As for `predict`.
    batch : int
        Images or frames that a model sees at once.
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
    """The images of a plan as the set that is not written would list them.

    Attributes
    ----------
    plan : Plan
    benchmark : Benchmark
    keys : dict of str to str
        Source image to key in the set, in the order of the set.
    classes : tuple of str or None
        Class folders that the labels count; None where the source counts.
    """

    plan: Plan
    benchmark: Benchmark
    keys: dict[str, str]
    classes: tuple[str, ...] | None

    def labels(self, sources: Sequence[str]) -> NDArray[np.int64]:
        """The true classes of the images; a SourceError where the class list lacks one."""
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
        """Path or URL of the source."""
        return self.plan.source.location


def list_subjects(plan: Plan, benchmark: Benchmark, listed: tuple[str, ...] | None) -> Subjects:
    """The images of `plan`; `listed` are the class folders in the order of a model's outputs, if given.

    Raises
    ------
    ConfigError
        Classes are given for arrays, which have no class folders.
    """
    names = {key: plan.writer.output_name(key) for key in plan.keys}
    if any(name is None for name in names.values()):
        if listed:
            raise ConfigError("--classes goes with class folders; these images become rows of arrays")
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
        Number of the view of the images that it sees.
    subjects : Subjects
    pending : list of Variant
        Those that are to be predicted.
    units : dict of str to FilesRecord
        Records of the units that earlier runs began.
    rows : dict of Variant to list
        Predictions for the images of the unit under way.
    """

    predictor: Predictor
    store: PredictionStore
    view: int
    subjects: Subjects
    pending: list[Variant] = field(default_factory=list)
    units: dict[str, FilesRecord] = field(default_factory=dict)
    rows: dict[Variant, list[NDArray[Any]]] = field(default_factory=dict)
    _seen: int = 0
    _wrong: int = 0

    def predict(self, variant: Variant, group: Sequence[Rendered]) -> None:
        """Predict what `variant` has of the images, in batches as `robustgen predict` would."""
        # Of sequences each is a batch of its own, or several.
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
            self._count(values, [each.key for each in part])

    def _count(self, values: NDArray[Any], sources: Sequence[str]) -> None:
        best = values.argmax(axis=-1) if self.predictor.save == "logits" else values[..., 0]
        labels = self.subjects.labels(sources)
        wrong = best != (labels if best.ndim == 1 else labels[:, None])
        self._seen, self._wrong = self._seen + wrong.size, self._wrong + int(wrong.sum())

    @property
    def running_error(self) -> float | None:
        """Share of wrong predictions in this run so far."""
        return self._wrong / self._seen if self._seen else None

    def put_unit(self, start: int, images: Mapping[str, Origin], failed: Mapping[str, str]) -> None:
        """Put the first rows of the pending variants, and the record of `images`, from the `start`-th on."""
        name, count = f"{start:08d}", len(images) - len(failed)
        failures = [{"key": key, "reason": reason} for key, reason in failed.items()]
        parts = {
            variant.folder: self.store.put_part(variant, name, np.concatenate(self.rows[variant])[:count])
            for variant in (self.pending if count else ())
        }
        held = self.units.get(f"units/{name}")
        if held and [*held.images] == [*images] and [*held.failures] == failures:
            # Of variants that another run was asked for.
            parts = self.store.list_parts(held) | parts
        record = FilesRecord(images, [*parts], [*parts.values()], failures)
        self.units[f"units/{name}"] = record
        self.store.state.put_record(f"units/{name}", record)
        self.rows.clear()

    def finish(self, units: Sequence[str], sources: Sequence[str]) -> None:
        """Write the files of the pending variants from the parts of all `units`."""
        keys, labels = [self.subjects.keys[key] for key in sources], self.subjects.labels(sources)
        parts = [name_parts(self.units[name]) for name in units]
        for variant in self.pending:
            own = [each[variant.folder] for each in parts if each]
            self.store.finish(variant, keys, labels, own, self.predictor.entries)
        folders = {variant.folder for variant in self.pending}
        for name, each in zip(units, parts, strict=True):
            left = {folder: file for folder, file in each.items() if folder not in folders}
            # The images stay on record: variants that are added must be made of the same.
            record = replace(self.units[name], variants=[*left], written=[*left.values()])
            self.store.state.put_record(name, record)


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
    """Predict what `models` say of a set that is made on the way.

    Parameters
    ----------
    config : Config
        As for make-c or make-p.
    kind : {"c", "p"}
    models : sequence of str
        As for `open_model`.
    output : path or URL
        Gets a folder of predictions for each model.
    options : ModelOptions, optional
    overwrite : bool
        Remove other predictions of this tool that are there.

    Raises
    ------
    RobustgenError
        Models, images and output do not fit each other.
    """
    started = time.monotonic()
    options = options or ModelOptions()
    opened = [open_model(name, options.runtime) for name in models]
    folders = tuple(f"{open_store(output).location}/{name}" for name in _name_folders(opened))
    # Other files of the source are for readers of a set.
    config = config.model_copy(update={"mirror": None})
    plan = plan_benchmark(config, kind, overwrite=True, store=open_store(folders[0]))
    classifiers = [Classifier(model, _choose_preprocessing(model, options, plan)) for model in opened]
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


def _choose_preprocessing(model: Model, options: ModelOptions, plan: Plan) -> Preprocessing:
    edition = str(plan.choices.get("edition"))
    default = edition if edition in PRESETS else "imagenet"
    return presets.load_preprocessing(options.preprocessing, options.flags, default, model.preprocessing)


def _list_views(classifiers: Sequence[Classifier]) -> tuple[tuple[Preprocessing, ...], list[int]]:
    """The different ways in which the models see the images, and the place of each model's among them."""
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
    """Show each model the first image that can be made, to find out now whether they fit each other."""
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
    """A name for the folder of each model: its label, without what folders should not have in their names."""
    plain = [Path(model.label.partition("@")[0].replace(":", "-")).name for model in models]
    plain = [name.removesuffix(".onnx").removesuffix(".pt2") for name in plain]
    return [name if plain.count(name) == 1 else f"{name}-{i}" for i, name in enumerate(plain, 1)]


def _describe(plan: Plan, subjects: Subjects) -> dict[str, Any]:
    """Return what decides the images, for `predictions.json`."""
    settings = {**plan.settings()}
    # Those of an arm follow from the rest; arms can be added.
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
        # Making it will say what is wrong.
        return 0


class _Run:
    """One run over all images that some model lacks."""

    def __init__(
        self, plan: Plan, candidates: Sequence[Candidate], views: tuple[Preprocessing, ...], batch: int
    ) -> None:
        self._plan, self._candidates, self._views, self._batch = plan, candidates, views, batch
        self._sources = [*candidates[0].subjects.keys]
        self._places = {key: place for place, key in enumerate(self._sources)}
        # What one model could not be shown, the others are not shown either.
        self.failures: dict[str, str] = {}
        self._origins: dict[str, Origin] = {}
        for each in candidates:
            for name, record in each.store.state.read_records():
                if isinstance(record, FilesRecord) and name.startswith("units/"):
                    each.units[name] = record
                    self.failures |= {failure["key"]: failure["reason"] for failure in record.failures}
                    self._origins |= {key: origin for key, origin in record.images.items() if origin[1]}
        # The unit under way begins and ends here; of `_count` of its images all is predicted.
        self._begin = self._end = self._count = 0

    def carry_out(self) -> tuple[int, int]:
        """Predict what is lacking; return the number of outputs predicted, and of those there already."""
        for each in self._candidates:
            keys = [each.subjects.keys[key] for key in self._list_survivors(self._sources)]
            each.pending = [v for v in self._plan.arms if not each.store.has(v, keys, each.subjects.root)]
        waiting = [each for each in self._candidates if each.pending]
        self._begin = self._end = max(set.intersection(*map(self._list_ends, waiting))) if waiting else 0
        begun = len(self._list_survivors(self._sources[: self._begin]))
        if waiting:
            self._plan.source.make_ready()
            self._plan.recipe.make_ready()
            self._predict(waiting)
        images, pending = len(self._list_survivors(self._sources)), sum(len(each.pending) for each in waiting)
        made = pending * (images - begun)
        return made, len(self._plan.arms) * images * len(self._candidates) - made

    def _list_survivors(self, sources: Sequence[str]) -> list[str]:
        """Return the images that are to be predicted; those that failed are not tried again."""
        return [key for key in sources if key not in self.failures]

    def _list_units(self, candidate: Candidate, end: int) -> list[str]:
        """Return the names of the units that follow on each other until the image number `end`."""
        names, place = list[str](), 0
        while place < end and (record := candidate.units.get(f"units/{place:08d}")):
            names.append(f"units/{place:08d}")
            place += len(record.images)
        return names

    def _list_ends(self, candidate: Candidate) -> set[int]:
        """Return the numbers of images behind which the units end that are done, one after another."""
        ends, place, wanted = {0}, 0, {variant.folder for variant in candidate.pending}
        for name in self._list_units(candidate, len(self._sources)):
            record = candidate.units[name]
            keys, failed = [*record.images], {failure["key"] for failure in record.failures}
            is_same = keys == self._sources[place : place + len(keys)] and failed == self.failures.keys() & {
                *keys
            }
            if not is_same or (
                len(failed) < len(keys) and not wanted <= candidate.store.list_parts(record).keys()
            ):
                break
            place += len(keys)
            ends.add(place)
        return ends

    def _predict(self, waiting: Sequence[Candidate]) -> None:
        plan, total = self._plan, len(self._sources)
        arms = tuple(variant for variant in plan.arms if any(variant in each.pending for each in waiting))
        left = self._list_survivors(self._sources[self._begin :])
        pending = sum(len(each.pending) for each in waiting)
        renderer = Renderer(plan, arms, self._views)
        kind = self._candidates[0].subjects.benchmark.kind
        unit = choose_unit_size(total, self._batch if kind == "c" else 1, _MOST_IMAGES[kind])
        with Meter(len(left) * pending, f"{plan.recipe.noun}s") as meter:
            held: list[Rendered] = []
            try:
                for group in renderer.render(left, self._group_size(renderer)):
                    self._note(group)
                    held += [each for each in group if each.reason is None]
                    # Whole batches alone, so that images that fail do not shift those of `predict`.
                    whole = len(held) - len(held) % self._batch
                    self._predict_group(arms, held[:whole], meter)
                    held = held[whole:]
                    self._end = self._places[held[0].key if held else group[-1].key] + (not held)
                    if self._count >= unit:
                        self._put_unit(waiting)
                self._predict_group(arms, held, meter)
                self._end = total
            finally:
                self._put_unit(waiting)
        survivors = self._list_survivors(self._sources)
        if not survivors:
            raise SourceError(f"{plan.source.location}: none of the images can be made")
        for each in waiting:
            each.finish(self._list_units(each, total), survivors)

    def _group_size(self, renderer: Renderer) -> int:
        """Return enough images to keep all workers busy, and whole batches of them."""
        if self._candidates[0].subjects.benchmark.kind == "p":
            return 4 * renderer.jobs
        return self._batch * max(1, -(-8 * renderer.jobs // self._batch))

    def _note(self, group: Sequence[Rendered]) -> None:
        """Note which images failed, and what the others were when they were read."""
        for each in group:
            held = self._origins.get(each.key, (0, ""))[1]
            if each.reason is not None:
                self.failures[each.key] = each.reason
            elif held and each.identity and held != each.identity:
                raise OutputError(
                    f"{self._plan.source.location}: {each.key!r} is another image than the one that "
                    f"predictions in {self._plan.store.location} were made from. {START_OVER}"
                )
            self._origins[each.key] = _size(self._plan, each.key), each.identity

    def _predict_group(self, arms: Sequence[Variant], group: Sequence[Rendered], meter: Meter) -> None:
        for variant in arms if group else ():
            for each in self._candidates:
                if variant in each.pending:
                    each.predict(variant, group)
                    meter.update(len(group))
            errors = [each.running_error for each in self._candidates]
            shown = ", ".join(f"{100 * error:.1f} %" for error in errors if error is not None)
            meter.name(f"{variant.folder}, error so far {shown}")
        self._count += len(group)

    def _put_unit(self, waiting: Sequence[Candidate]) -> None:
        """Put the unit under way as far as it is predicted, and begin the next one."""
        keys = self._sources[self._begin : self._end]
        images = {key: self._origins.get(key, (0, "")) for key in keys}
        failed = {key: self.failures[key] for key in keys if key in self.failures}
        for each in waiting if keys else ():
            each.put_unit(self._begin, images, failed)
        self._begin, self._count = self._end, 0
