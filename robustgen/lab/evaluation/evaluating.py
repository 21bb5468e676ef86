"""`robustgen evaluate`: from source images to predictions, without a set on disk.

The images are those that make-c or make-p would write, as a reader reads them, in the batches of
`robustgen predict`. So the prediction files are those of `predict`, unless an image fails: `predict` does not
know about images that a set lacks, and its later batches contain other images.

A batch contains the images at fixed positions of the plan, without those that cannot be made. A unit is one
or more batches in some variants; the plan alone decides the units. Its record contains its failures, and what
a unit writes depends on nothing else, so any number of runs can process the units in any order. A file of
predictions contains the images that have failed in no variant.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.display.progress import Meter, print_note
from robustgen.errors import ConfigError, OutputError, SourceError
from robustgen.files.ledger import Failure, Origin
from robustgen.files.set_files import START_OVER
from robustgen.files.storage import open_store, prefetch
from robustgen.lab.evaluation.predicting import Predictor, choose_saved, fit_classifier
from robustgen.lab.evaluation.predictions import EvaluateResult, digest_of
from robustgen.lab.evaluation.rendering import FrameSampling, Rendered, render_images, sample_clips
from robustgen.lab.evaluation.store import (
    PredictionStore,
    choose_unit_size,
    name_folders,
    open_prediction_store,
)
from robustgen.lab.models.base import Classifier, Model
from robustgen.lab.models.preprocessing import PRESETS, Preprocessing
from robustgen.pixels.benchmarks.editions import EDITIONS
from robustgen.pixels.benchmarks.kinds import Kind, Variant
from robustgen.pixels.imaging.arrays import check_alike
from robustgen.pixels.imaging.decode import Complaint, Loss
from robustgen.sets.dataset.changes import check_unchanged, keep_stamps, look_up
from robustgen.sets.dataset.manifest import source_digest
from robustgen.sets.dataset.plan import Making, check_output
from robustgen.sets.dataset.planning import open_making
from robustgen.sets.dataset.unit_jobs import describe_losses, describe_orientations
from robustgen.sets.executors import count_cores
from robustgen.sets.formats.base import cut
from robustgen.sets.formats.compression import describe_compression
from robustgen.sets.sources.classes import find_unlabelled, number_images
from robustgen.sets.sources.trees import describe_complaints
from robustgen.settings.config import Config
from robustgen.settings.models import ModelInput, OnTheFly, Outputs

# Settings that decide pixels, besides those in the settings of any run.
_CHOICES: Final = ("parameters", "libjpeg")


# --- the images ----------------------------------------------------------------------------------


def _list_keys(making: Making) -> dict[str, str]:
    """Return the key in the set for each source image, in the order of the set that is not written."""
    names = {key: making.writer.output_name(key) for key in making.keys}
    if None in names.values():
        return {key: key for key in names}
    suffix = making.source.medium.suffix
    keys = {key: str(name).removesuffix(suffix) for key, name in names.items()}
    # Trees are listed by name, shards in the order of the plan.
    is_tree = making.writer.file_per == "image"
    return dict(sorted(keys.items(), key=lambda pair: pair[1])) if is_tree else keys


# --- a run ---------------------------------------------------------------------------------------


def evaluate(
    config: Config, kind: Kind, models: Sequence[Model], output: str, options: OnTheFly, taken: ModelInput
) -> EvaluateResult:
    """Predict a set with `models` without writing it.

    Parameters
    ----------
    config : Config
        As for make-c or make-p.
    kind : {"c", "p"}
    models : sequence of Model
    output : path or URL
        Folder with a subfolder of predictions for each model.
    options : OnTheFly
    taken : ModelInput
        Input of the models, if it is not that of the models or of the edition.

    Raises
    ------
    RobustgenError
        Models, images and output do not match.
    """
    started = time.monotonic()
    if config.one_per_image:
        raise ConfigError("one_per_image: only make-c has it; evaluate uses all corruptions and severities")
    folders = tuple(name_folders(output, [model.folder for model in models]))
    # Other files of the source are only for readers of a set.
    config = config.model_copy(update={"mirror": None})
    if options.uncompressed:
        # Arrays have the pixels as made anyway.
        is_array = EDITIONS[config.base_edition].format != "jpeg"
        config = config.model_copy(update={"format": None if is_array else "png"})
    store = open_store(folders[0])
    making = open_making(config, kind, output=store)
    check_output(store, making.source)
    # Flips of P sets need no labels.
    unlabelled = find_unlabelled(making.source, making.keys, needed=kind == "c")
    labelled = tuple(key for key in making.keys if key not in unlabelled)
    making = replace(making, keys=labelled, refused=making.refused | unlabelled)
    source = making.source
    sampling = sample_clips(source.medium, options.frames, config.seed if options.random_offset else None)
    batch = options.batch_size if sampling is None else max(1, options.batch_size // options.frames)
    fit = taken, str(making.choices.get("edition")), source, source.location, options, sampling is not None
    classifiers = [fit_classifier(model, *fit) for model in models]
    for remark in source.remarks():
        print_note(remark)
    keys = _list_keys(making)
    first = _render_first(making, keys, classifiers, sampling)
    checked = [_try_out(making, kind, keys, each, first, options, batch) for each in classifiers]
    looked = {key: look_up(source, key) for key in making.keys}
    sizes = {key: size for key, (size, _) in looked.items()}
    described = _describe(making, kind, keys, sizes) | ({"frames": vars(sampling)} if sampling else {})
    with ExitStack() as stack:
        candidates = []
        for folder, (predictor, labels) in zip(folders, checked, strict=True):
            settings = described | predictor.settings()
            opened = open_prediction_store(
                folder, source.location, settings, sizes, overwrite=options.overwrite
            )
            candidates.append(Candidate(predictor, labels, stack.enter_context(opened)))
        for candidate in candidates:
            candidate.predictor.print_notes()
        run = _EvaluationRun(making, kind, keys, candidates, batch, looked, sampling)
        made, kept = run.predict_missing()
    noun, count = source.medium.name, len(making.keys)
    remarks = (
        *making.remarks,
        *source.remarks(),
        *describe_complaints(run.complaints, noun),
        *describe_losses(run.losses, count),
        *describe_orientations(run.orientations.values(), count, "models get the pixels as stored"),
    )
    failures, seconds = {**run.failures, **making.refused}, time.monotonic() - started
    return EvaluateResult(folders, made, kept, making.recipe.noun, noun, failures, seconds, remarks)


def _view(classifier: Classifier) -> Preprocessing:
    """Return the part of a model's preprocessing that workers apply: cleaning and resizing."""
    own = classifier.preprocessing
    return replace(
        PRESETS["imagenet"],
        input_size=own.input_size,
        clean_input=own.clean_input,
        interpolation=own.interpolation,
    )


def _render_first(
    making: Making, keys: Mapping[str, str], classifiers: Sequence[Classifier], sampling: FrameSampling | None
) -> Rendered:
    """Return the first image that can be made, in the first variant."""
    noun, location = making.source.medium.name, making.source.location
    variant, reason = making.variants[0], f"there is no {noun}"
    for key in keys:
        views = tuple({*map(_view, classifiers)})
        rendered = render_images(making, [key], (variant,), views, 1, sampling=sampling)[key]
        if rendered.pixels:
            return rendered
        reason = f"{key!r}: {rendered.failures[variant.folder]}"
    raise SourceError(f"{location}: none of the {noun}s can be made ({reason})")


def _try_out(
    making: Making,
    kind: Kind,
    keys: Mapping[str, str],
    classifier: Classifier,
    first: Rendered,
    options: Outputs,
    batch: int,
) -> tuple[Predictor, dict[str, int]]:
    """Run a model on the image `first`, to check now that they match; return also the labels."""
    variant, root = making.variants[0], making.source.location
    pixels = first.pixels[variant.folder][_view(classifier)]
    listed = None if options.only_classes else classifier.preprocessing.classes
    classes = classifier.count_classes(pixels, root, len(listed) if listed else making.source.class_count)
    predictor = Predictor(classifier, classes, choose_saved(options.save, kind, classes), batch)
    labels = number_images(making.source, keys, listed)
    predictor.check_labels(np.array([*labels.values()]), root)
    predictor.predict(pixels[None], [keys[first.key]], variant)
    return predictor, labels


def _describe(
    making: Making, kind: Kind, keys: Mapping[str, str], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """Return everything that decides the images, for `predictions.json`."""
    settings = {**making.settings()}
    # The variants are omitted: the rest decides their pixels, and variants can be added.
    del settings["parameters"]
    own, edition = {name: making.choices.get(name) for name in _CHOICES}, making.choices.get("edition")
    return {
        "title": making.recipe.title,
        "dataset": making.dataset,
        "edition": edition,
        "digest": None,
        "source_digest": source_digest(sizes),
        "keys": digest_of([*keys.values()]),
        "made": json.loads(json.dumps(settings | own)),
        "compression": describe_compression(settings["output"], kind, edition),
    }


@dataclass(frozen=True)
class Candidate:
    """One model under evaluation.

    Attributes
    ----------
    predictor : Predictor
    labels : dict of str to int
        True class of each source image.
    store : PredictionStore
    """

    predictor: Predictor
    labels: dict[str, int]
    store: PredictionStore


Lacking = list[tuple[Candidate, list[Variant]]]
"""Candidates that lack predictions of a unit, and the variants that they lack."""

_Part = tuple[Candidate, dict[Variant, list[NDArray[Any]]], list[Failure]]
# A unit, its source images, and what each candidate predicts in it.
_Predicted = tuple[str, dict[str, Origin], list[_Part]]


class _EvaluationRun:
    """One run over all images that some model lacks, shared with other runs."""

    def __init__(
        self,
        making: Making,
        kind: Kind,
        keys: dict[str, str],
        candidates: Sequence[Candidate],
        batch: int,
        looked: Mapping[str, tuple[int, str]],
        sampling: FrameSampling | None,
    ) -> None:
        self._sampling = sampling
        self._making, self._keys, self._candidates, self._made = making, keys, candidates, 0
        self._looked, self._read = looked, set[str]()
        self._workers = making.jobs or count_cores()
        self.complaints, self.losses = list[Complaint](), dict[str, Loss | None]()
        self.orientations = dict[str, int]()
        self._meter: Meter | None = None
        self._step, count = choose_unit_size(len(keys) * len(making.variants), kind, batch)
        some = min(count, len(making.variants))
        groups = [making.variants[start : start + some] for start in range(0, len(making.variants), some)]
        units = cut([*keys], count // some * self._step, groups, f"batches of {batch}")
        self._units = {f"units/{unit.name}": unit for unit in units}
        self._identities, self._held = dict[str, str](), list[dict[str, str]]()
        stamps = {key: stamp for key, (_, stamp) in looked.items()}
        for candidate in candidates:
            records = candidate.store.records.values()
            origins = [each for record in records for each in record.images.items() if each[0] in looked]
            identities = {key: identity for key, (_, identity) in origins if identity}
            state = candidate.store.state
            self._held.append(check_unchanged(making.source, state, identities, stamps))
            self._identities |= identities

    @property
    def failures(self) -> dict[str, str]:
        """Return all failures: source image to reason."""
        return {key: reason for each in self._candidates for key, reason in each.store.failures.items()}

    def predict_missing(self) -> tuple[int, int]:
        """Predict everything missing; return the number of outputs predicted by this run, and by others."""
        making, candidates = self._making, self._candidates
        for each in candidates:
            each.store.find_pending(
                making.variants, [*self._list_kept(each).values()], making.source.location
            )
        if waiting := [each for each in candidates if each.store.pending]:
            self._state = waiting[0].store.state
            making.source.make_ready()
            making.recipe.make_ready()
            counts = {
                name: len(unit.keys) * sum(len(each.store.list_lacking(name, unit)) for each in waiting)
                for name, unit in self._units.items()
            }
            lacking = {name: count for name, count in counts.items() if count}
            with Meter(sum(lacking.values()), f"{making.recipe.noun}s") as meter:
                self._meter = meter
                for name in self._state.share(lacking, self._make, self._is_done):
                    meter.update(lacking[name])
            stamps = {key: self._looked[key][1] for key in self._read}
            for each, held in zip(candidates, self._held, strict=True):
                if each.store.pending:
                    keep_stamps(each.store.state, held, stamps)
                    self._finish(each)
        total = len(making.variants) * sum(len(self._list_kept(each)) for each in candidates)
        return self._made, max(0, total - self._made)

    def _list_kept(self, candidate: Candidate) -> dict[str, str]:
        """Return source image and key of all images that have not failed."""
        failures = candidate.store.failures
        return {source: key for source, key in self._keys.items() if source not in failures}

    # --- predicting

    def _find_lacking(self, name: str) -> Lacking:
        found = [(each, each.store.find_lacking(name, self._units[name])) for each in self._candidates]
        return [(each, variants) for each, variants in found if variants]

    def _is_done(self, name: str) -> bool:
        return not self._find_lacking(name)

    def _make(self, names: Sequence[str]) -> Iterator[str]:
        """Predict units one after another; the last ones are recorded meanwhile."""
        behind = self._candidates[0].store.unrecorded
        for name, made in prefetch(self._record, self._predict_claimed(names), behind):
            self._made += made
            yield name

    def _predict_claimed(self, names: Sequence[str]) -> Iterator[_Predicted]:
        """Predict units one after another; the images of the next ones are prepared meanwhile."""
        # Units of the same images are predicted together, so that the images are read once.
        for claimed, rendered in prefetch(self._render, self._claim(names), 1):
            for name, lacking in claimed.items():
                yield self._predict(name, lacking, rendered)

    def _claim(self, names: Sequence[str]) -> Iterator[dict[str, Lacking]]:
        """Claim units, and yield them in groups with enough images to keep all workers busy."""
        group, images = dict[str, Lacking](), set[str]()
        for name in names:
            keys = self._units[name].keys
            # The frames of clips fill memory.
            most = self._workers * (4 if self._sampling is None else 1)
            if len(images) >= most and keys[0] not in images:
                yield group
                group, images = {}, set()
            if self._state.claim(name) and (lacking := self._find_lacking(name)):
                group[name] = lacking
                images.update(keys)
        if group:
            yield group

    def _render(self, claimed: dict[str, Lacking]) -> tuple[dict[str, Lacking], dict[str, Rendered]]:
        keys = dict.fromkeys(key for name in claimed for key in self._units[name].keys)
        views = tuple({_view(each.predictor.classifier) for each in self._candidates})
        wanted = {each for lacking in claimed.values() for _, variants in lacking for each in variants}
        variants = tuple(each for each in self._making.variants if each in wanted)
        how = variants, views, self._workers, self._meter, self._sampling
        rendered = render_images(self._making, [*keys], *how)
        self.complaints += [each for one in rendered.values() for each in one.complaints]
        return claimed, rendered

    def _predict(self, name: str, lacking: Lacking, rendered: Mapping[str, Rendered]) -> _Predicted:
        """Predict one unit in the batches of `robustgen predict`, without failed images."""
        keys = self._units[name].keys
        images = {key: (self._looked[key][0], rendered[key].identity) for key in keys}
        self._read.update(keys)
        self.losses |= {key: rendered[key].loss for key in keys}
        self.orientations |= {key: rendered[key].orientation for key in keys}
        for key, (_, identity) in images.items():
            if identity and identity != self._identities.setdefault(key, identity):
                known = self._candidates[0].store.root.location
                raise OutputError(f"{key!r} has changed since {known} was written. {START_OVER}")
        parts = list[_Part]()
        for candidate, variants in lacking:
            rows = {
                variant: [*self._predict_variant(candidate, variant, keys, rendered)] for variant in variants
            }
            failures = [
                {"key": key, "variant": variant.folder, "reason": rendered[key].failures[variant.folder]}
                for variant in variants
                for key in keys
                if variant.folder in rendered[key].failures
            ]
            parts.append((candidate, rows, failures))
        return name, images, parts

    def _record(self, predicted: _Predicted) -> tuple[str, int]:
        """Record a unit; return its name, and how many outputs were predicted."""
        name, images, parts = predicted
        for candidate, rows, failures in parts:
            self._check_new(candidate.store, failures)
            candidate.store.put_unit(name, rows, images, failures)
        return name, sum(len(batch) for _, rows, _ in parts for batches in rows.values() for batch in batches)

    def _check_new(self, store: PredictionStore, failures: Sequence[Failure]) -> None:
        """Raise an OutputError if one of the `failures` is of an image of variants finished earlier."""
        known = store.failures if failures and store.finished else None
        for each in failures:
            if known is not None and each["key"] not in known:
                raise OutputError(
                    f"{self._making.source.location}: {each['key']!r} cannot be made in {each['variant']} "
                    f"({each['reason']}), but {store.root.location}/{store.finished[0]}.npz contains it. "
                    f"Repair the image, or start over with --overwrite"
                )

    def _predict_variant(
        self, candidate: Candidate, variant: Variant, keys: Sequence[str], rendered: Mapping[str, Rendered]
    ) -> Iterator[NDArray[Any]]:
        """Yield the predictions of each batch."""
        folder, view = variant.folder, _view(candidate.predictor.classifier)
        for start in range(0, len(keys), self._step):
            made = [key for key in keys[start : start + self._step] if folder in rendered[key].pixels]
            if made:
                images = [rendered[key].pixels[folder][view] for key in made]
                check_alike(images, folder, "--input-size resizes them")
                yield candidate.predictor.predict(images, [self._keys[key] for key in made], variant)

    # --- the end

    def _finish(self, candidate: Candidate) -> None:
        """Write the files of the pending variants, for the images that have failed in no variant."""
        store, location, kept = candidate.store, self._making.source.location, self._list_kept(candidate)
        if not kept:
            raise SourceError(f"{location}: none of the {self._making.source.medium.name}s can be made")
        labels = np.array([candidate.labels[key] for key in kept])

        def write(folder: str) -> None:
            store.finish(store.pending[folder], self._units, kept, labels, candidate.predictor.entries)

        # The records of units stay, for variants that are added later.
        store.finish_pending(write)
