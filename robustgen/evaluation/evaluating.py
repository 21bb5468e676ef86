"""`robustgen evaluate`: from source images to predictions, without a set on disk.

The images are those that make-c or make-p would write and a reader would read, in the batches in which
`robustgen predict` would give them to the model. So the files of predictions are those of `predict`.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import BENCHMARKS, Arm, Benchmark, Kind
from robustgen.datasets.base import stack_images
from robustgen.display.progress import Meter
from robustgen.errors import ConfigError, ImageError, OutputError, SourceError
from robustgen.evaluation import preprocessing as presets
from robustgen.evaluation.models.base import Model, Runtime
from robustgen.evaluation.models.classifier import Classifier
from robustgen.evaluation.models.opening import open_model
from robustgen.evaluation.predicting import Predictor, choose_saved
from robustgen.evaluation.preprocessing import PRESETS, Preprocessing
from robustgen.evaluation.rendering import Rendered, Renderer
from robustgen.evaluation.store import PartialRows, PredictionStore, hold_store
from robustgen.generation.config import Config
from robustgen.generation.plan import Plan, plan_benchmark
from robustgen.generation.selection import make_source_ready
from robustgen.output.files import temporary_folder, write_whole
from robustgen.output.manifest import source_digest
from robustgen.output.state import FAILED, State, read_object
from robustgen.output.writers import FORMATS
from robustgen.predictions import Saved, digest_of
from robustgen.sources.base import class_of

_VIDEO: Final = ".mp4"
# Choices that decide pixels, beside those that settings name anyway.
_CHOICES: Final = ("size", "parameters", "libjpeg", "motion_blur")


@dataclass(frozen=True)
class EvaluateResult:
    """What a run did.

    Attributes
    ----------
    folders : tuple of Path
        The predictions of each model.
    made, kept : int
        Images or sequences predicted now, and earlier, by all models.
    noun : str
        Which of the two, in the singular.
    failures : dict of str to str
        Source image to reason.
    seconds : float
    """

    folders: tuple[Path, ...]
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
    def root(self) -> Path:
        """Where the source is."""
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
        Which of the views of the images it sees.
    subjects : Subjects
    rows : dict
        Arm to what is predicted of it.
    """

    predictor: Predictor
    store: PredictionStore
    view: int
    subjects: Subjects
    rows: dict[Arm, PartialRows] = field(default_factory=dict)
    _seen: int = 0
    _wrong: int = 0

    def predict(self, arm: Arm, group: Sequence[Rendered]) -> None:
        """Predict what `arm` has of the images, in batches as `robustgen predict` would."""
        # Of sequences each is a batch of its own, or several.
        size = self.predictor.batch if self.subjects.benchmark.kind == "c" else 1
        for start in range(0, len(group), size):
            part = group[start : start + size]
            keys = [self.subjects.keys[each.key] for each in part]
            images = [each.pixels[arm.folder][self.view] for each in part]
            pixels = stack_images(images, arm.folder, "--input-size resizes them")
            values = self.predictor.predict(pixels, keys, arm)
            self.rows[arm].append(values, keys)
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

    def finish(self, arm: Arm, sources: Sequence[str]) -> None:
        """Write the file of `arm`, of which all images are predicted."""
        rows, keys = self.rows[arm], [self.subjects.keys[key] for key in sources]
        labels = self.subjects.labels(sources)
        self.store.finish(arm, keys, labels, self.predictor.entries(rows.read()), rows)
        del self.rows[arm]


# --- a run ---------------------------------------------------------------------------------------


def evaluate(
    config: Config,
    kind: Kind,
    models: Sequence[str],
    output: Path,
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
    output : Path
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
    folders = tuple(output / name for name in _name_folders(opened))
    chosen = config.model_copy(update={"output": str(output)})
    plan = plan_benchmark(chosen, kind, anew=True, held=State(folders[0]).source_index)
    classifiers = [Classifier(model, _choose_preprocessing(model, options, plan)) for model in opened]
    views, places = _list_views(classifiers)
    subjects = [list_subjects(plan, BENCHMARKS[kind], each.preprocessing.classes) for each in classifiers]
    predictors = _try_out(plan, classifiers, views, places, subjects, options)
    described = _describe(plan, subjects[0])
    with ExitStack() as stack:
        stores = [
            stack.enter_context(
                hold_store(folder, plan.source.location, described | each.settings(), overwrite=overwrite)
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
    """What decides the images, for `predictions.json`."""
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
        held = [_read_failures(each.store.root) for each in candidates]
        self.failures = {key: reason for each in held for key, reason in each.items()}
        if any(each != self.failures for each in held):
            # What one model could not be shown, the others are not shown either.
            self._write_failures()

    def carry_out(self) -> tuple[int, int]:
        """Predict what is lacking; return the number of outputs predicted, and of those there already."""
        self._open_rows()
        arms = tuple(arm for arm in self._plan.arms if any(arm in each.rows for each in self._candidates))
        begun = min((rows.done for each in self._candidates for rows in each.rows.values()), default=0)
        pending = sum(len(each.rows) for each in self._candidates)
        state = State(self._candidates[0].store.root)
        make_source_ready(self._plan.source, state, reading=bool(arms))
        if arms:
            self._predict(arms, self._list_survivors(self._sources)[begun:], pending)
        images = len(self._list_survivors(self._sources))
        asked = len(self._plan.arms) * images * len(self._candidates)
        made = pending * (images - begun)
        return made, asked - made

    def _open_rows(self) -> None:
        """For each model, the rows of the arms that it lacks, all cut back to the shortest."""
        survivors = self._list_survivors(self._sources)
        for each in self._candidates:
            keys = [each.subjects.keys[key] for key in survivors]
            arms = [arm for arm in self._plan.arms if not each.store.has(arm, keys, each.subjects.root)]
            each.rows = {arm: each.store.rows(arm, keys) for arm in arms}
        every = [rows for each in self._candidates for rows in each.rows.values()]
        for rows in every:
            rows.rewind(min(other.done for other in every))

    def _list_survivors(self, sources: Sequence[str]) -> list[str]:
        """The images that are to be predicted; those that failed are not tried again."""
        return [key for key in sources if key not in self.failures]

    def _predict(self, arms: tuple[Arm, ...], left: Sequence[str], pending: int) -> None:
        plan = self._plan
        signs = temporary_folder(self._candidates[0].store.root)
        renderer = Renderer(plan, arms, self._views, signs)
        with Meter(len(left) * pending, f"{plan.recipe.noun}s") as meter, self._save_rows():
            held: list[Rendered] = []
            for group in renderer.render(left, self._group_size(renderer)):
                self._note_failures(group)
                held += [each for each in group if each.reason is None]
                # Whole batches alone, so that images that fail do not shift those of `predict`.
                whole = len(held) - len(held) % self._batch
                self._predict_group(arms, held[:whole], meter)
                held = held[whole:]
            self._predict_group(arms, held, meter)
            survivors = self._list_survivors(self._sources)
            if not survivors:
                raise SourceError(f"{plan.source.location}: none of the images can be made")
            for each in self._candidates:
                for arm in [*each.rows]:
                    each.finish(arm, survivors)

    def _group_size(self, renderer: Renderer) -> int:
        """Enough images to keep all workers busy, and whole batches of them."""
        if self._candidates[0].subjects.benchmark.kind == "p":
            return 4 * renderer.jobs
        return self._batch * max(1, -(-8 * renderer.jobs // self._batch))

    def _note_failures(self, group: Sequence[Rendered]) -> None:
        failed = {each.key: each.reason for each in group if each.reason is not None}
        if failed:
            self.failures |= failed
            self._write_failures()

    def _write_failures(self) -> None:
        for each in self._candidates:
            write_whole(each.store.root, FAILED, json.dumps(self.failures, indent=1).encode())

    def _predict_group(self, arms: Sequence[Arm], group: Sequence[Rendered], meter: Meter) -> None:
        for arm in arms if group else ():
            for each in self._candidates:
                if arm in each.rows:
                    each.predict(arm, group)
                    meter.update(len(group))
            errors = [each.running_error for each in self._candidates]
            shown = ", ".join(f"{100 * error:.1f} %" for error in errors if error is not None)
            meter.name(f"{arm.folder}, error so far {shown}")

    @contextmanager
    def _save_rows(self) -> Iterator[None]:
        """Save what is predicted, should the run end before its time; waiting for the disk takes long."""
        try:
            yield
        except BaseException:
            for each in self._candidates:
                for rows in each.rows.values():
                    rows.save()
            raise


def _read_failures(root: Path) -> dict[str, str]:
    path = root / FAILED
    try:
        held = read_object(path) if path.exists() else {}
        return {str(key): str(reason) for key, reason in held.items()}
    except (OSError, OutputError) as error:
        raise OutputError(f"{path}: cannot be read; choose another --output, or --overwrite") from error
