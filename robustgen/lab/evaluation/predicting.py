"""`robustgen predict`: runs a model on a C or P set and writes its predictions.

A unit is some consecutive batches of one variant; its rows become a part and then a record in the state of
the output. Several runs can share the units. The run that finds a variant complete writes its file.
"""

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.display.progress import Meter, print_note
from robustgen.errors import ConfigError, SourceError
from robustgen.files.storage import prefetch
from robustgen.lab.evaluation.predictions import (
    EvaluateResult,
    Pieces,
    Saved,
    describe_outputs,
    digest_of,
    top5_entries,
)
from robustgen.lab.evaluation.rendering import FrameSampling, sample_clips
from robustgen.lab.evaluation.store import (
    VARIANTS_AT_ONCE,
    PredictionStore,
    choose_unit_size,
    name_folders,
    open_prediction_store,
)
from robustgen.lab.models.base import Classifier, Images, Model, explain_binary, is_finite, name_class_flag
from robustgen.lab.models.hugging_face import fit_class_names
from robustgen.lab.models.opening import open_model
from robustgen.lab.models.preprocessing import PRESETS, Pixels, Preprocessing, load_preprocessing
from robustgen.metrics import top_classes
from robustgen.pixels.benchmarks.kinds import Kind, Variant
from robustgen.sets.dataset.opening import CLEANED, open_set
from robustgen.sets.executors import count_cores
from robustgen.sets.formats.base import WorkUnit, WrittenSet, cut
from robustgen.sets.formats.compression import describe_compression
from robustgen.sets.sources.base import Items
from robustgen.sets.sources.classes import place_classes
from robustgen.settings.models import ModelInput, Outputs, Predicting, Runtime

# Editions of published sets, which have no manifest, by format.
_USUAL_EDITIONS: Final = {"npy": "cifar-10", "npz": "pathmnist"}
# Batches that are decoded at the same time; more than eight threads hinder each other.
_MOST_AHEAD: Final = 8


# --- from pixels to rows -------------------------------------------------------------------------


@dataclass(frozen=True)
class Predictor:
    """A classifier, and the part of its outputs to store.

    Attributes
    ----------
    classifier : Classifier
    classes : int
    save : {"logits", "top5"}
    batch : int
        Images or frames per batch.
    """

    classifier: Classifier
    classes: int
    save: Saved
    batch: int

    def predict(self, items: Images, keys: Sequence[str], variant: Variant) -> NDArray[Any]:
        """Return the stored part of the outputs for images, sequences or clips.

        Raises
        ------
        ConfigError
            The model returns NaN or infinity; the message names the key. Minus infinity excludes a class.
        """
        images = self.classifier.as_inputs(items)
        parts = [images[at : at + self.batch] for at in range(0, len(images), self.batch)]
        outputs = [self.classifier(part) for part in parts]
        name = self.classifier.model.name
        if wrong := {each.shape[1] for each in outputs} - {self.classes}:
            raise ConfigError(f"{name}: returns {min(wrong)} classes for some images, not {self.classes}")
        logits = np.concatenate(outputs)
        if not self.classifier.of_clips:
            logits = logits.reshape(len(items), *items[0].shape[:-3], logits.shape[-1])
        finite = is_finite(logits)
        if not finite.all():
            key = keys[int(finite.argmin())]
            raise ConfigError(f"{name}: returns NaN or infinity for {key!r} of {variant.folder}")
        return logits if self.save == "logits" else top_classes(logits).astype(np.int32)

    def entries(self, rows: Pieces) -> dict[str, NDArray[Any] | Pieces]:
        """Return the entries of a variant's file, from all of its rows."""
        if self.save == "logits":
            return {"logits": rows}
        return {**top5_entries(np.concatenate([*rows.pieces]), self.classes)}

    def settings(self) -> dict[str, Any]:
        """Return everything that decides the predictions, except for the images."""
        outputs, names = self.classifier.outputs, self.classifier.preprocessing.classes or ()
        return {
            "model": self.classifier.model.settings(),
            "preprocessing": self.classifier.preprocessing.settings(),
            "origins": dict(self.classifier.preprocessing.origins),
            "save": self.save,
            # Defaults are omitted, so that predictions from before they existed can be resumed.
            **({"only_classes": [names[output] for output in outputs]} if outputs else {}),
        }

    def print_notes(self) -> None:
        """Print the line about the input and the outputs of the model, and a hint if they look wrong."""
        own, outputs = self.classifier, describe_outputs(self.settings())
        print_note(f"input of {own.model.folder}: {own.preprocessing.describe()}{outputs}")
        if hint := own.preprocessing.hint_at_order():
            print_note(f"{own.model.folder}: {hint}")

    def check_labels(self, labels: NDArray[Any] | None, root: str) -> None:
        """Raise a SourceError if the set at `root` has labels outside the model's classes."""
        if labels is not None and (labels.min() < 0 or labels.max() >= self.classes):
            name = self.classifier.model.name
            if self.classifier.model.is_binary:
                raise SourceError(explain_binary(root, f"labels {labels.min()} to {labels.max()}", name))
            raise SourceError(
                f"{root}: labels {labels.min()} to {labels.max()} are out of range for the "
                f"{self.classes} classes of {name}: list the classes, in the order of "
                f"the model's outputs, with {name_class_flag(self.classes)}"
            )


# --- a run ---------------------------------------------------------------------------------------


class _PredictionRun:
    """Predicts the missing part of a set, shared with other runs.

    Attributes
    ----------
    made : int
        Images or sequences predicted by this run.
    """

    def __init__(
        self,
        written: WrittenSet,
        predictor: Predictor,
        store: PredictionStore,
        sampling: FrameSampling | None,
    ) -> None:
        self._set, self._predictor, self._store, self._sampling = written, predictor, store, sampling
        keys, batch = written.keys_of(written.variants[0]), predictor.batch
        self._step, self._batches = choose_unit_size(len(keys) * len(written), written.kind, batch)
        store.find_pending(written, keys, written.root)
        self._units = dict[str, WorkUnit]()
        for variant in store.pending.values():
            predictor.check_labels(written.labels(variant), written.root)
            for unit in cut(
                written.keys_of(variant), self._batches * self._step, [(variant,)], f"batches of {batch}"
            ):
                self._units[f"units/{variant.folder}/{unit.name}"] = unit
        self.made = 0

    def predict_missing(self) -> None:
        """Predict all units, and write the files of their variants; on a server, both at the same time."""
        total = sum(len(unit.keys) for unit in self._units.values())
        with Meter(total, f"{self._set.benchmark.noun}s") as meter:
            predicted = self._predict_variants(meter)
            # If another run writes a file, this run waits at its own end.
            claimed = filter(self._store.state.claim, predicted)
            deque(self._store.root.map(self._finish, claimed, VARIANTS_AT_ONCE), maxlen=0)
            self._store.finish_pending(self._finish)

    def _predict_variants(self, meter: Meter) -> Iterator[str]:
        """Predict all units, and yield the folder of each variant after its last one."""
        left = Counter(unit.variants[0] for unit in self._units.values())
        for name in self._store.state.share(self._units, self._make, self._is_done, at_once=2):
            (variant,) = self._units[name].variants
            meter.name(variant.folder)
            meter.update(len(self._units[name].keys))
            left[variant] -= 1
            if not left[variant]:
                yield variant.folder

    def _is_done(self, name: str) -> bool:
        return not self._store.find_lacking(name, self._units[name])

    def _make(self, names: Sequence[str]) -> Iterator[str]:
        """Predict units one after another; the last ones are recorded meanwhile."""
        for name in prefetch(self._record, self._predict_claimed(names), self._store.unrecorded):
            self.made += len(self._units[name].keys)
            yield name

    def _predict_claimed(self, names: Sequence[str]) -> Iterator[tuple[str, list[NDArray[Any]]]]:
        """Predict units one after another; the next batches are read meanwhile, also those of other units."""
        # A store far away reads the images of a batch at once. No unit after the next is claimed.
        ahead = min(count_cores(), _MOST_AHEAD) if self._set.store.is_local else 1
        ahead = min(ahead, self._batches - 1)
        rows = list[NDArray[Any]]()
        for (name, start), pixels in prefetch(self._read, self._claim(names), ahead + 1):
            unit = self._units[name]
            (variant,) = unit.variants
            rows.append(self._predictor.predict(pixels, unit.keys[start:], variant))
            if start + self._step >= len(unit.keys):
                yield name, rows
                rows = []

    def _record(self, predicted: tuple[str, list[NDArray[Any]]]) -> str:
        name, rows = predicted
        (variant,) = self._units[name].variants
        self._store.put_unit(name, {variant: rows})
        return name

    def _claim(self, names: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Claim units, and yield the first image of each of their batches."""
        for name in names:
            if self._store.state.claim(name) and not self._is_done(name):
                yield from ((name, start) for start in range(0, len(self._units[name].keys), self._step))

    def _read(self, place: tuple[str, int]) -> tuple[tuple[str, int], Pixels]:
        """Return the images of a batch, with its place."""
        name, start = place
        unit = self._units[name]
        (variant,) = unit.variants
        stop = min(start + self._step, len(unit.keys))
        return place, self._set.batch(variant, unit.start + start, unit.start + stop, self._prepare)

    def _prepare(self, pixels: Pixels) -> Pixels:
        """Return an image or a sequence, or the sampled frames of a clip, as the model gets it."""
        pixels = self._sampling.take("", pixels) if self._sampling else pixels
        return self._predictor.classifier.preprocessing.prepare(pixels)

    def _finish(self, folder: str) -> None:
        """Write the file of a variant."""
        variant = self._store.pending[folder]
        keys, labels = self._set.keys_of(variant), self._set.labels(variant)
        named = dict(zip(keys, keys, strict=True))
        self._store.finish(variant, self._units, named, labels, self._predictor.entries)


def predict(options: Predicting, taken: ModelInput, runtime: Runtime) -> EvaluateResult:
    """Predict all variants of a set that are not predicted yet.

    Parameters
    ----------
    options : Predicting
    taken : ModelInput
        Input of the model, if it is not that of the model or of the set.
    runtime : Runtime

    Raises
    ------
    RobustgenError
        Model, set and output do not match.
    """
    started = time.monotonic()
    data = open_set(options.dataset)
    sampling = sample_clips(data.benchmark.medium, options.frames)
    batch = options.batch_size if sampling is None else max(1, options.batch_size // options.frames)
    # Without an edition, the one of published sets with this layout.
    edition = str(data.manifest.get("edition") or _USUAL_EDITIONS.get(data.format, "imagenet"))
    opened = open_model(options.model, runtime)
    (folder,) = name_folders(options.output, [opened.folder])
    classifier = fit_classifier(opened, taken, edition, data, data.root, options, sampling is not None)
    chosen = classifier.preprocessing
    if chosen.classes and not options.only_classes:
        data = open_set(options.dataset, chosen.classes)
        classifier = replace(classifier, is_single=data.class_count == 1)
    for remark in data.remarks():
        print_note(remark)
    if chosen.clean_input and CLEANED in data.manifest:
        (earlier,) = data.manifest[CLEANED]
        raise ConfigError(f"{options.dataset}: {earlier} cleaned it; --clean-input none takes it as it is")
    first = data.variants[0]
    keys = data.keys_of(first)
    pixels = data.load(first, keys[0])
    sample = classifier.preprocessing.clean(sampling.take(keys[0], pixels) if sampling else pixels)
    classes = classifier.count_classes(sample, data.root, data.class_count)
    saved = choose_saved(options.save, data.kind, classes)
    predictor = Predictor(classifier, classes, saved, batch)
    settings = _describe_set(data) | ({"frames": vars(sampling)} if sampling else {}) | predictor.settings()
    with open_prediction_store(folder, data.root, settings, overwrite=options.overwrite) as store:
        predictor.print_notes()
        run = _PredictionRun(data, predictor, store, sampling)
        run.predict_missing()
    kept, noun, medium = len(data) * len(keys) - run.made, data.benchmark.noun, data.benchmark.medium.name
    return EvaluateResult((folder,), run.made, kept, noun, medium, {}, time.monotonic() - started)


def fit_classifier(
    model: Model,
    taken: ModelInput,
    edition: str,
    images: Items[Any] | WrittenSet,
    location: str,
    options: Outputs,
    of_clips: bool = False,
) -> Classifier:
    """Return a model with its preprocessing, and with the outputs for the classes of the set at `location`.

    Raises
    ------
    ConfigError, SourceError
        The preprocessing or the classes do not fit, or images have several labels each, as in ChestMNIST.
    """
    if images.class_labels is not None and images.class_labels.shape[1] > 1:
        raise SourceError(f"{location}: several labels each; see metrics.multi_label_balanced_error")
    default, given = edition if edition in PRESETS else "imagenet", (taken.preprocessing, taken.overrides())
    own = load_preprocessing(*given, default, model.preprocessing)
    own = fit_class_names(own, model, images.classes or ())
    outputs = choose_outputs(own, images.classes, location) if options.only_classes else None
    return Classifier(model, own, outputs, images.class_count == 1, of_clips)


def choose_outputs(
    preprocessing: Preprocessing, names: Sequence[str] | None, location: str
) -> tuple[int, ...]:
    """Return the number of the model's output for each of the classes `names` of the set at `location`.

    Raises
    ------
    ConfigError, SourceError
        The set or the model has no class names, or the model lacks a class of the set.
    """
    if not names or not any(names):
        raise ConfigError(f"--only-classes: {location} does not name its classes")
    if len(names) == 1:
        raise ConfigError(f"--only-classes: {location} has only one class")
    if preprocessing.classes is None:
        raise ConfigError("--only-classes: list the classes of all outputs of the model with --classes")
    return tuple(place_classes(location, names, range(len(names)), preprocessing.classes).values())


def choose_saved(wanted: Saved | None, kind: Kind, classes: int) -> Saved:
    """Return what to store for a model with that many `classes`: `wanted`, or the set's default."""
    if wanted == "top5" and classes < 5:
        raise ConfigError(f"--save top5: the model has only {classes} classes")
    return wanted or ("top5" if kind == "p" and classes >= 5 else "logits")


def _describe_set(written: WrittenSet) -> dict[str, Any]:
    """Return the identity of the images of a set."""
    manifest = written.manifest
    output, edition = manifest.get("settings", {}).get("output"), manifest.get("edition")
    return {
        "title": written.benchmark.title,
        "dataset": manifest.get("dataset"),
        "edition": edition,
        "digest": manifest.get("digest"),
        "source_digest": manifest.get("source", {}).get("digest"),
        "keys": digest_of(written.keys_of(written.variants[0])),
        **{key: value for key, value in manifest.items() if key == CLEANED},
        "compression": describe_compression(output, written.kind, edition) if output else None,
    }
