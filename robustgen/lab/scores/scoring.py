"""`robustgen score`: checks that predictions match each other and are complete, and reports on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from robustgen.display.text import escape, format_count
from robustgen.errors import ArgumentError, ConfigError, SourceError, UnfinishedError
from robustgen.files.storage import is_url
from robustgen.files.text_files import describe_difference
from robustgen.lab.evaluation.predictions import (
    ABOUT,
    Predictions,
    describe_outputs,
    digest_of,
    find_folders,
    is_unfinished,
    list_treatments,
    map_labels,
    open_predictions,
)
from robustgen.lab.models.preprocessing import read_recorded
from robustgen.lab.scores.measures import (
    ALEXNET,
    Baseline,
    PublishedModel,
    read_baseline,
    read_models,
    take_baseline,
)
from robustgen.lab.scores.result_grid import shorten_missing
from robustgen.lab.scores.results import ModelScores, has_common, join_seeds, list_missing, read_scores
from robustgen.lab.scores.scoreboard import Scoreboard
from robustgen.metrics import COMMON_PERTURBATIONS
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, IMAGENET_C, TITLES, Benchmark, Kind, Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.settings.scoring import ModelFacts, Scoring, SeedGroup

_NAMED_BASELINES: Final = ("alexnet", "none")
_IMAGENET_CLASSES: Final = 1000
# Accuracy on clean images below which labels may be wrong, if there are so many.
_MORE_THAN_A_GUESS, _FEWEST_IMAGES = 0.02, 50
# Editions with the images of AlexNet's numbers, except for the crop.
_ALEXNET_EDITIONS: Final = ("imagenet", "imagenet-inception")


class PictureSet(Protocol):
    """A C or P set, as far as scores need it; `robustgen.open_set` returns one."""

    kind: Kind

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Return the variants of the set."""

    @property
    def root(self) -> str:
        """Return the path or URL of the set."""

    @property
    def benchmark(self) -> Benchmark:
        """Return the benchmark of the set."""

    def keys_of(self, variant: Variant) -> tuple[str, ...]:
        """Return the names of the images or sequences of `variant`."""

    def load(self, variant: Variant, key: str) -> Rgb:
        """Return the image, uint8 (H, W, 3), or the frames called `key`."""


def choices_of(options: Scoring) -> dict[str, Any]:
    """Return the choices that `score` takes."""
    names = ("baseline", "partial", "difficulty", "replicates", "compare_with", "group", "models")
    return {name: getattr(options, name) for name in names}


def score(
    folders: Sequence[str | Path],
    *,
    baseline: str | None = None,
    partial: bool = False,
    difficulty: int = 1,
    dataset: PictureSet | None = None,
    replicates: int = 1000,
    compare_with: str | None = None,
    group: Sequence[SeedGroup] = (),
    models: Mapping[str, ModelFacts] | None = None,
) -> Scoreboard:
    """Score the predictions in `folders`, on the same images.

    Parameters
    ----------
    folders : sequence of path or URL
        Folders of predictions, one model each, or folders of such folders.
    baseline : str, optional
        ``"alexnet"``, ``"none"``, a file for `read_baseline`, or a folder of predictions; default AlexNet for
        predictions of ImageNet's classes at its size, otherwise none.
    partial : bool
        Whether to score sets that are not complete.
    difficulty : int
        Difficulty of the perturbations.
    dataset : PictureSet, optional
        The C or P set, to compare its keys with those of the predictions.
    replicates : int
        Bootstrap samples of what is resampled; 0 for no intervals.
    compare_with : {"published"}, optional
        Published models to compare with.
    group : sequence of SeedGroup
        Runs of one model with several seeds, each of which becomes a row.
    models : mapping of str to ModelFacts, optional
        What is known of the models, by their names.

    Raises
    ------
    RobustgenError
        A file is missing, malformed, or does not match; the message says which.
    """
    notes: list[str] = []
    folders = [*dict.fromkeys(each for folder in folders for each in find_folders(folder))]
    found = _open_finished(folders, partial, difficulty, notes)
    unfinished = [folder for folder in folders if folder not in found]
    folders, opened = [*found], [*found.values()]
    _check_mixture(opened)
    if dataset:
        _check_keys(opened[0], dataset, notes)
    is_common = opened[0].kind == "p" or any(map(has_common, opened))
    chosen = _choose_baseline(baseline, opened, difficulty, notes)
    names = _names(folders, opened)
    usual = BENCHMARKS[opened[0].kind]
    benchmark = TITLES.get(str(opened[0].settings.get("title")), usual)
    _tell_compression(names, opened, f"{benchmark.medium.name}s", notes)
    runs = [read_scores(each, name, difficulty) for each, name in zip(opened, names, strict=True)]
    for folder, each, run in zip(folders, opened, runs, strict=True):
        _check_complete(folder, each, run, partial, notes)
        _doubt_labels(each, run, notes)
    runs = _choose_levels(runs, chosen, notes if is_common else [])
    rows = _group_seeds(runs, group, notes)
    # The folders of a model's seeds are beside each other.
    folder_of = dict(zip(names, folders, strict=True))
    folders = [folder_of[run.model] for row in rows for run in row.runs]
    _say_averaged(opened, notes)
    _say_treatments(names, opened, notes)
    if partial and chosen:
        _say_undivided(runs, chosen, notes)
    compares = compare_with is not None and is_common and benchmark is usual
    published = choose_published(runs, difficulty, notes) if compares else []
    if published and "only_classes" in opened[0].settings:
        notes.append("published values are of all outputs of the models: none is compared")
        published = []
    if published and any(list_treatments(each.settings) for each in opened):
        notes.append("published values are of images without any cleaning")
    if models and (lacking := [row.model for row in rows if row.model not in models]):
        notes.append(f"no facts of models are given for {', '.join(lacking)}")
    report = Scoreboard(
        rows,
        chosen,
        difficulty=difficulty,
        remarks=notes,
        replicates=replicates,
        partial=partial,
        published=published,
        origin=_describe_origin(opened[0]),
        folders=folders,
        unfinished=unfinished,
        inputs=_describe_inputs(names, opened),
        compares=compare_with is not None,
        facts=models or {},
    )
    try:
        values = [score.values for score in report.measures]
    except ArgumentError as error:
        raise ConfigError(f"--baseline {baseline or 'alexnet'}: {error}") from error
    shared = any(set.intersection(*map(set, each)) for each in values)
    if not shared and not any(group.name for group in report.groups):
        raise SourceError("the folders share no corruption or perturbation that could be scored")
    return report


def _group_seeds(
    runs: Sequence[ModelScores], groups: Sequence[SeedGroup], notes: list[str]
) -> list[ModelScores]:
    """Return a row for each group of seeds, at the place of its first one, and for each other run."""
    of, names = dict[str, SeedGroup](), [run.model for run in runs]
    for each in groups:
        found = [name for name in names if fnmatchcase(name, each.pattern)]
        shared = [name for name in found if name in of]
        problem = (
            "" if len(found) > 1 else f"matches {format_count(len(found), 'model')} of {', '.join(names)}"
        )
        problem = f"{shared[0]} is also in {of[shared[0]].name}" if shared else problem
        taken = {*names} - {*found} | {other.name for other in groups if other is not each}
        if problem or each.name in taken:
            problem = problem or "another model has this name"
            raise ConfigError(f"group {each.name}={each.pattern}: {problem}")
        of |= dict.fromkeys(found, each)
        few = "; an interval of two seeds is wide, and holds roughly" * (len(found) == 2)
        notes.append(f"{each.name}: mean of {len(found)} seeds ({', '.join(found)}){few}")
    rows = dict[str, list[ModelScores]]()
    for run in runs:
        rows.setdefault(of[run.model].name if run.model in of else run.model, []).append(run)
    return [join_seeds(name, own) if len(own) > 1 else own[0] for name, own in rows.items()]


def _open_finished(
    folders: Sequence[str | Path], partial: bool, difficulty: int, notes: list[str]
) -> dict[str | Path, Predictions]:
    """Open the folders with complete predictions, and name the others in a note.

    If none is complete, all are returned, for the message about the first one.
    """
    opened, reasons = dict[str | Path, Predictions](), dict[str | Path, str]()
    errors = list[UnfinishedError]()
    for folder in folders:
        try:
            opened[folder] = open_predictions(folder)
        except UnfinishedError as error:
            errors.append(error)
            reasons[folder] = f"{folder}"
            continue
        if not partial and (missing := list_missing(opened[folder], difficulty)):
            reasons[folder] = f"{folder} (lacks {shorten_missing(missing)})"
    finished = {folder: each for folder, each in opened.items() if folder not in reasons}
    if not opened:
        raise errors[0]
    if finished and reasons:
        notes.append(
            f"not scored, because unfinished: {', '.join(reasons.values())}; the same command resumes a run"
        )
    return finished or opened


def _describe_inputs(names: Sequence[str], opened: Sequence[Predictions]) -> list[str]:
    """Return lines on what the models were given, as their folders record it; equal ones share a line."""

    def describe(each: Predictions) -> str:
        own = read_recorded(each.settings, f"{each.root}/{ABOUT}: preprocessing")
        return own.describe() + describe_outputs(each.settings) if own else ""

    return [f"input of {alike}: {text}" for text, alike in _group_names(names, map(describe, opened)).items()]


def _group_names(names: Sequence[str], texts: Iterable[str]) -> dict[str, str]:
    """Return each text with the names of the models that have it; empty texts are left out."""
    found = dict[str, list[str]]()
    for name, text in zip(names, texts, strict=True):
        found.setdefault(text, []).append(name)
    return {text: ", ".join(alike) for text, alike in found.items() if text}


def _tell_compression(
    names: Sequence[str], opened: Sequence[Predictions], nouns: str, notes: list[str]
) -> None:
    """Add notes on how the models' images were compressed, if not all as published or not all alike."""
    found = _group_names(names, [str(each.settings.get("compression") or "") for each in opened])
    told = [text for text in found if len(found) > 1 or "; published: " in text]
    notes += [f"{nouns} of {found[text]}: {escape(text)}" for text in told]
    if len(found) > 1:
        notes.append(f"warning: the models' {nouns} differ in compression, and so may their scores")


def _names(folders: Sequence[str | Path], opened: Sequence[Predictions]) -> list[str]:
    """Return the folders' own names, or their paths if the names are not unique."""
    names = [escape(each.root.rpartition("/")[2]) for each in opened]
    return names if len(set(names)) == len(names) else [escape(folder) for folder in folders]


def _check_mixture(opened: Sequence[Predictions]) -> None:
    first = opened[0]
    for other in opened[1:]:
        if other.kind != first.kind:
            named = {"c": "a C set", "p": "a P set"}
            raise SourceError(
                f"{first.root} is of {named[first.kind]}, {other.root} of {named[other.kind]}: "
                f"score them one after the other"
            )
        if other.keys != first.keys:
            reason = describe_difference(other.keys, first.keys, "keys")
            raise SourceError(f"{other.root}: not the images of {first.root}: {reason}")
        own, known = (each.settings.get("source_digest") for each in (other, first))
        if own and known and own != known:
            same = "of the same names, but of other sizes"
            raise SourceError(f"{other.root}: made from other source images than {first.root}: {same}")
        _check_outputs(first, other)
        _check_labels(first, other)


def _check_outputs(first: Predictions, other: Predictions) -> None:
    """Raise a SourceError if two models choose among different classes, which one of them says."""
    known, own = (each.settings.get("only_classes") for each in (first, other))
    says = [bool(each.settings) for each in (first, other)]
    if known != own and (all(says) or first.classes != other.classes):
        texts = [f"{len(each)} classes" if each else "all of its outputs" for each in (own, known)]
        raise SourceError(
            f"{other.root}: predicted among {texts[0]}, {first.root} among {texts[1]}: score them one after "
            "the other, or use predict --only-classes for both or for neither"
        )


def _check_labels(first: Predictions, other: Predictions) -> None:
    """Raise a SourceError if two models have different true classes for the same images."""
    files = [next(iter(each.files.values())) for each in (first, other)]
    if any(file.labels is None for file in files):
        return
    known, own = map(map_labels, files)
    pairs = {(label, known[key]): key for key, label in own.items()}
    # Of two models with class lists, each numbers the same classes in its own order.
    lists = [each.settings.get("preprocessing", {}).get("classes") for each in (first, other)]
    counts = {len(pairs), *(len({*each}) for each in zip(*pairs, strict=True))}
    is_another_order = lists[0] != lists[1] and len(counts) == 1
    for (label, there), key in pairs.items() if not is_another_order else ():
        if label != there:
            raise SourceError(
                f"{other.root}: {key!r} is of class {label}, in {first.root} of class {there}; predict both "
                "on the same set, and list the classes of each model with predict --classes"
            )


def _check_keys(predictions: Predictions, dataset: PictureSet, notes: list[str]) -> None:
    if dataset.kind != predictions.kind:
        raise SourceError(
            f"{predictions.root}: not predictions of {dataset.root}, which is of kind {dataset.kind}"
        )
    wanted = tuple(sorted(dataset.keys_of(dataset.variants[0])))
    asked = predictions.settings.get("keys") == digest_of(next(iter(predictions.files.values())).keys)
    if asked and {*predictions.keys} < {*wanted}:
        # Of a sample, or of the first images.
        count, all_ = len(predictions.keys), format_count(len(wanted), dataset.benchmark.noun)
        where = f"{all_} of {dataset.root}"
        notes.append(f"the predictions are of {count:,} of the {where}, as their command chose")
    elif predictions.keys != wanted:
        reason = describe_difference(predictions.keys, wanted, "keys")
        raise SourceError(f"{predictions.root}: not the images of {dataset.root}: {reason}")


def _choose_baseline(
    text: str | None, opened: Sequence[Predictions], difficulty: int, notes: list[str]
) -> Baseline | None:
    if text and text not in _NAMED_BASELINES:
        if not (own := _open_baseline(text)):
            if not Path(text).exists():
                names = " or ".join(_NAMED_BASELINES)
                raise ConfigError(f"--baseline {text}: no such file or folder; it may also be {names}")
            return read_baseline(Path(text))
        _check_mixture([opened[0], own])
        _say_treatments([opened[0].root, own.root], [opened[0], own], notes)
        if (read := own.settings.get("compression")) != opened[0].settings.get("compression"):
            notes.append(f"images of the baseline: {read or 'compression not recorded'}")
        return take_baseline(read_scores(own, _names([text], [own])[0], difficulty))
    why = _doubt_alexnet(opened, difficulty)
    if text == "alexnet" and why:
        raise ConfigError(f"--baseline alexnet: {why}; give a file, a folder of predictions, or none")
    return None if text == "none" or why else ALEXNET


def _open_baseline(text: str) -> Predictions | None:
    """Return the predictions in the folder or at the URL that `--baseline` names; None if it names a file."""
    if not (is_url(text) or Path(text).is_dir()):
        return None
    folders = find_folders(text)
    if len(folders) > 1:
        raise ConfigError(f"--baseline {text}: a baseline is one model; name one of {', '.join(folders)}")
    return open_predictions(folders[0])


def read_other(folder: str, report: Scoreboard) -> ModelScores:
    """Return the scores of another model's predictions, on the images of a report.

    Raises
    ------
    RobustgenError
        The folder has no predictions of one model on these images.
    """
    opened = _open_baseline(folder)
    if not opened:
        raise ConfigError(f"{folder}: no such folder of predictions")
    _check_mixture([open_predictions(report.folders[0]), opened])
    own = read_scores(opened, opened.root.rpartition("/")[2], report.difficulty)
    return replace(own, levels=report.models[0].levels)


def check_baseline(text: str | None) -> None:
    """Check before the work that `--baseline` names a readable baseline."""
    if text and text not in _NAMED_BASELINES and not _open_baseline(text):
        read_baseline(Path(text))


def _doubt_alexnet(opened: Sequence[Predictions], difficulty: int) -> str | None:
    """Return why AlexNet's numbers do not apply to these predictions, if so."""
    if opened[0].kind == "p" and difficulty > 1:
        return "AlexNet's numbers are those of difficulty 1"
    for each in opened:
        # Some models have an extra output for the background.
        if (each.classes or _IMAGENET_CLASSES) not in (_IMAGENET_CLASSES, _IMAGENET_CLASSES + 1):
            return f"AlexNet's numbers are for ImageNet's 1000 classes, {each.root} has {each.classes}"
        edition = each.settings.get("edition")
        if edition and edition not in _ALEXNET_EDITIONS:
            return f"AlexNet's numbers are for ImageNet at 224 pixels, {each.root} is of edition {edition}"
    return None


def _check_complete(
    folder: str | Path, predictions: Predictions, model: ModelScores, partial: bool, notes: list[str]
) -> None:
    if model.kind == "c" and model.clean_error is None:
        notes.append(f"{folder}: no {CLEAN}.npz, so no clean error and no score that needs it")
    if not model.missing:
        return
    missing = shorten_missing(model.missing)
    if not partial:
        resume = "the command that predicted resumes its run; " * is_unfinished(predictions.store)
        raise SourceError(f"{folder}: incomplete: {missing} missing ({resume}--partial scores the rest)")
    notes.append(f"{folder}: incomplete: {missing} missing; means are over the rest")


def _doubt_labels(predictions: Predictions, model: ModelScores, notes: list[str]) -> None:
    """Add a note if a model is no better on clean images than a guess."""
    if model.clean_error is None or model.labels is None or model.count < _FEWEST_IMAGES:
        return
    classes = predictions.classes or np.unique(model.labels).size
    if classes > 1 and (right := 1 - model.clean_error) < 1 / classes + _MORE_THAN_A_GUESS:
        notes.append(
            f"warning: {model.model} is right on {right:.1%} of the clean images, no more than a guess. The "
            "labels may be wrong: check the order of the classes (predict --classes) and the preprocessing"
        )


def _choose_levels(
    models: list[ModelScores], baseline: Baseline | None, notes: list[str]
) -> list[ModelScores]:
    """Return the models with the severities that errors are averaged over: five, or those that all have."""
    if models[0].kind == "p" or any(model.errors for model in models):
        return models
    found = [by_level.keys() for model in models for by_level in model.severities.values()]
    levels = tuple(level for level in IMAGENET_C.levels if all(level in each for each in found))
    if levels:
        listed = " and ".join(filter(None, [", ".join(map(str, levels[:-1])), str(levels[-1])]))
        word = "severity" if len(levels) == 1 else "severities"
        why = "; nothing is normalised, because baselines are means over five" if baseline else ""
        notes.append(f"no corruption has five severities: means are over {word} {listed} only{why}")
    return [replace(model, levels=levels or model.levels) for model in models]


def _say_averaged(opened: Sequence[Predictions], notes: list[str]) -> None:
    """Add a note on the ten perturbations in the means of a CIFAR set, which others choose differently."""
    first = opened[0]
    edition = str(first.settings.get("edition") or "")
    if first.kind == "p" and edition.startswith("cifar"):
        ten = ", ".join(COMMON_PERTURBATIONS)
        notes.append(f"means are over {ten}; the published cifar-p-eval has spatter instead of snow")


def _say_treatments(names: Sequence[str], opened: Sequence[Predictions], notes: list[str]) -> None:
    """Add a note if some models were given cleaned images, and others were not."""
    treatments = [" and ".join(list_treatments(each.settings)) or "images as they are" for each in opened]
    found = _group_names(names, treatments)
    if len(found) > 1:
        texts = (f"{alike}: {text}" for text, alike in found.items())
        notes.append(f"the inputs of the models differ: {'; '.join(texts)}")


def _describe_origin(predictions: Predictions) -> str:
    """Return who created the images of the predictions, if the folder says so."""
    manifest = predictions.settings
    if not manifest.get("edition"):
        return f"{predictions.root} does not say who created them"
    return f"created by robustgen, edition {escape(manifest['edition'])}"


def choose_published(
    models: Sequence[ModelScores], difficulty: int, notes: list[str]
) -> list[PublishedModel]:
    """Return the published models of the benchmark, if their values have the same severities."""
    if not models[0].complete or difficulty > 1:
        notes.append("published values are for five severities and difficulty 1: none is compared")
        return []
    # RobustBench's AlexNet is that of the paper, on fewer images.
    return [each for each in read_models(models[0].kind) if each.model != "AlexNet (RobustBench)"]


def _say_undivided(models: Sequence[ModelScores], baseline: Baseline, notes: list[str]) -> None:
    """Add a note on the common operations without a baseline value."""
    common = BENCHMARKS[models[0].kind].common
    known = {*baseline.errors} if models[0].kind == "c" else {*baseline.flip_probabilities}
    measured = {name for model in models for name in (*model.errors, *model.flips)}
    lacking = [name for name in common if name in measured - known]
    if known and lacking:
        notes.append(f"{baseline.name} has no value for {', '.join(lacking)}: not normalised")
