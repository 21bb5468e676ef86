"""Page of `robustgen score --output`: HTML with its numbers as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.display.charts import COLOURS, DASHES
from robustgen.display.html import check_page_path, render_page
from robustgen.display.sheets import fit_picture
from robustgen.display.text import format_count
from robustgen.files.storage import is_url, open_store, save
from robustgen.lab.evaluation.predictions import PredictionFile, Predictions, open_predictions, prefix_errors
from robustgen.lab.scores.gates import NO_EVIDENCE, Evidence
from robustgen.lab.scores.intervals import Score
from robustgen.lab.scores.measures import describe_differences, read_models
from robustgen.lab.scores.results import FILES_AHEAD, ModelScores, flip_curves
from robustgen.lab.scores.scoreboard import Scoreboard
from robustgen.lab.scores.scoring import PictureSet
from robustgen.lab.scores.text_forms import head_of, list_group_tables
from robustgen.metrics import brier_scores, rms_calibration_error, softmax
from robustgen.metrics.classification import Floats
from robustgen.metrics.corruption_errors import ERROR
from robustgen.pixels.benchmarks.kinds import CLEAN, CLEAN_VARIANT, Variant, parse_variant
from robustgen.pixels.imaging.arrays import Rgb

# --- calibration ----------------------------------------------------------------------------------

BINS: Final = 15
"""Number of bins, of equal width, of a reliability diagram."""


@dataclass(frozen=True)
class ModelCalibration:
    """Calibration of a model's confidence on some images.

    Attributes
    ----------
    rms, brier : float
        RMS calibration error and Brier score, as fractions.
    bins : ndarray of shape (15, 3)
        Number of predictions, sum of their confidences, and number of correct ones, by confidence.
    """

    rms: float
    brier: float
    bins: Floats


def read_calibration(predictions: Predictions) -> dict[str, ModelCalibration]:
    """Return the calibration on the clean images and on each corruption, over its severities.

    Errors and scores are means over severities, bins are sums. Empty if the files have no logits.
    """
    files = predictions.files
    if predictions.kind == "p" or not all(file.has_logits for file in files.values()):
        return {}
    by_name: dict[str, list[ModelCalibration]] = {}
    measured = predictions.store.map(_measure, files.values(), FILES_AHEAD)
    for (folder, file), each in zip(files.items(), measured, strict=True):
        by_name.setdefault(CLEAN if folder == CLEAN else file.variant.name, []).append(each)
    return {name: _join(parts) for name, parts in by_name.items()}


def _measure(file: PredictionFile) -> ModelCalibration:
    with prefix_errors(file.path):
        parts = [*_read(file)]
    confidence, right, brier = (np.concatenate(each) for each in zip(*parts, strict=True))
    index = np.minimum((confidence * BINS).astype(int), BINS - 1)
    columns = (np.ones_like(confidence), confidence, right.astype(float))
    bins = np.stack([np.bincount(index, weights, BINS).astype(np.float64) for weights in columns], axis=1)
    return ModelCalibration(rms_calibration_error(confidence, right), float(brier.mean()), bins)


def _read(file: PredictionFile) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield confidences, correctness and Brier scores of pieces of a file."""
    labels, start = file.labels, 0
    assert labels is not None  # checked by `open_predictions`
    for rows in file.logits():
        own = labels[start : start + len(rows)]
        probabilities = softmax(rows)
        yield probabilities.max(axis=1), rows.argmax(axis=1) == own, brier_scores(probabilities, own)
        start += len(rows)


def _join(parts: list[ModelCalibration]) -> ModelCalibration:
    return ModelCalibration(
        float(np.mean([each.rms for each in parts])),
        float(np.mean([each.brier for each in parts])),
        np.sum([each.bins for each in parts], axis=0),
    )


def describe_calibration(found: Mapping[str, ModelCalibration]) -> dict[str, object]:
    """Return calibrations as lists, for JSON: for each bin its count, mean confidence and accuracy."""
    described: dict[str, object] = {}
    for name, each in found.items():
        bins = [
            [int(count), round(confidence / count, 4), round(right / count, 4)]
            for count, confidence, right in each.bins.tolist()
            if count
        ]
        described[name] = {"rms": round(each.rms, 5), "brier": round(each.brier, 5), "bins": bins}
    return described


# --- gallery --------------------------------------------------------------------------------------

IMAGES: Final = 8
"""Number of images in each row of the gallery."""
_CELL: Final = 150


@dataclass(frozen=True)
class Exhibit:
    """One image of the gallery.

    Attributes
    ----------
    key : str
    variant : str
        Folder of the variant.
    model : str
        The model in question.
    clean : uint8 ndarray of shape (H, W, 3) or None
    picture : uint8 ndarray of shape (H, W, 3)
    """

    key: str
    variant: str
    model: str
    clean: Rgb | None
    picture: Rgb


@dataclass(frozen=True)
class Gallery:
    """The images to show.

    Attributes
    ----------
    flipped, lone : list of Exhibit
        Those that fail first, and those that only one model gets right.
    """

    flipped: list[Exhibit]
    lone: list[Exhibit]


def choose_images(models: Sequence[ModelScores], dataset: PictureSet, keys: Sequence[str]) -> Gallery:
    """Choose the most informative images of a C set, and read them.

    Parameters
    ----------
    models : sequence of ModelScores
        The best first.
    dataset : PictureSet
        The set.
    keys : sequence of str
        Sorted keys of the predicted images, which may be a part of it.
    """
    flipped = [
        _show(dataset, keys[image], folder, models[0])
        for image, folder in find_first_flips(models[0], IMAGES)
    ]
    lone = [
        _show(dataset, keys[image], folder, models[index])
        for index, image, folder in find_lone_successes(models, IMAGES)
    ]
    return Gallery(flipped, lone)


def find_first_flips(model: ModelScores, count: int) -> Iterator[tuple[int, str]]:
    """Yield indices of images that are right when clean and wrong at low severities, and the variants.

    An image is ranked by its lowest wrong severity of each corruption, summed over the corruptions.
    """
    names = [*model.errors]
    rows = np.stack([model.measured_mistakes(name) for name in names]).astype(bool)
    levels = len(model.levels)
    # Index of the first wrong severity; the number of severities if there is none.
    first = np.where(rows.any(axis=1), rows.argmax(axis=1), levels)
    order = np.argsort(first.sum(axis=0), kind="stable")
    clean = np.asarray(model.mistakes.get(CLEAN, np.zeros(rows.shape[-1], bool)))
    for image in [index for index in order.tolist() if not clean[index]][:count]:
        if (lowest := first[:, image]).min() < levels:
            name = names[int(lowest.argmin())]
            yield image, f"{name}/{model.levels[int(lowest.min())]:g}"


def find_lone_successes(models: Sequence[ModelScores], count: int) -> Iterator[tuple[int, int, str]]:
    """Yield the index of a model, of an image that only it gets right in most variants, and one of these."""
    if len(models) < 2:
        return
    folders = [folder for folder in models[0].mistakes if all(folder in each.mistakes for each in models)]
    folders = [folder for folder in folders if folder != CLEAN]
    total = np.sum([_right(model, folders) for model in models], axis=0, dtype=np.int32)
    share = -(-count // min(len(models), count))
    for index, model in list(enumerate(models))[:count]:
        alone = _right(model, folders) & (total == 1)
        often = alone.sum(axis=0)
        for image in np.argsort(-often, kind="stable")[:share].tolist():
            if often[image]:
                # The highest severity is the most informative.
                best = max(
                    np.flatnonzero(alone[:, image]).tolist(), key=lambda i: folders[i].rpartition("/")[2]
                )
                yield index, image, folders[best]


def _right(model: ModelScores, folders: Sequence[str]) -> NDArray[np.bool_]:
    return ~np.stack([model.mistakes[folder] for folder in folders]).astype(bool)


def _show(dataset: PictureSet, key: str, folder: str, model: ModelScores) -> Exhibit:
    clean = _read_picture(dataset, CLEAN_VARIANT, key) if CLEAN_VARIANT in dataset.variants else None
    return Exhibit(key, folder, model.model, clean, _read_picture(dataset, parse_variant(folder, "c"), key))


def _read_picture(dataset: PictureSet, variant: Variant, key: str) -> Rgb:
    return fit_picture(dataset.load(variant, key), _CELL)


# --- page -----------------------------------------------------------------------------------------

# Minimal number of models for a fitted line.
_FEWEST_FOR_LINE: Final = 4


def write_page(
    report: Scoreboard,
    path: Path,
    folders: Sequence[str | Path],
    dataset: PictureSet | None = None,
    evidence: Evidence = NO_EVIDENCE,
) -> int:
    """Write the page about a report.

    Parameters
    ----------
    report : Scoreboard
    path : Path
    folders : sequence of path or URL
        The predictions of its models, in the same order, for calibration and flip curves.
    dataset : PictureSet, optional
        The set, for the gallery.
    evidence : Evidence, optional
        The conditions, with their verdicts.

    Returns
    -------
    int
        Size of the page in bytes.

    Raises
    ------
    OutputError, SourceError
        The page cannot be written, or predictions cannot be read again.
    """
    check_page_path(path, *([dataset.root] if dataset and not is_url(dataset.root) else []))
    data = collect_data(report) | evidence.as_dict()
    for folder, model, entry in zip(folders, report.models, data["models"], strict=False):
        opened = open_predictions(folder)
        if report.kind == "c":
            entry["calibration"] = describe_calibration(read_calibration(opened))
        else:
            entry["curves"] = {
                name: _shorten(each) for name, each in flip_curves(opened, report.difficulty).items()
            }
        assert model.model == entry["name"]
    gallery = None
    if dataset and report.kind == "c":
        ranked = [report.models[index] for index in report.leading.rank()]
        gallery = choose_images(ranked, dataset, open_predictions(folders[0]).keys)
    sources = data["sources"]
    data["sources"] = _name_models(report, folders, sources)
    every = [note for note in (*report.inputs, *report.notes) if note not in sources]
    notes = _name_models(report, folders, every)
    context = {
        "lead": _lead(report),
        "warnings": [note for note in notes if note.startswith("warning")],
        "notes": [note for note in notes if not note.startswith("warning")],
        "colours": COLOURS,
        # In widths of the line, which is two pixels wide.
        "dashes": [" ".join(f"{2 * length:g}" for length in dashes) for dashes in DASHES],
        "families": [t for group in report.groups if group.name for t in list_group_tables(report, group)],
        "intervals": report.replicates,
        "conditions": evidence.list_tables(),
    }
    page = render_page("scores.html", data=data, gallery=gallery, **context)
    save(path, page, f"--output {path}")
    return len(page)


def _name_models(report: Scoreboard, folders: Sequence[str | Path], notes: Sequence[str]) -> list[str]:
    """Return notes with the names of models in place of their folders, which a published page hides."""
    for folder, model in zip(folders, report.models, strict=False):
        root = open_store(folder).location
        notes = [note.replace(root, model.model) for note in notes]
    return [*notes]


def _lead(report: Scoreboard) -> str:
    base = f", normalised by {report.baseline.name}" if report.baseline and not report.leading.group else ""
    titles = ", ".join(group.title for group in report.groups)
    count = format_count(report.count, report.benchmark.noun)
    return f"{format_count(len(report.models), 'model')} on {titles}, {count}{base}"


# --- data ----------------------------------------------------------------------------------------


def collect_data(report: Scoreboard) -> dict[str, Any]:
    """Return all scores on the page, for JSON."""
    names = list(dict.fromkeys(name for score in report.measures for name in report.names(score)))
    there = {name for score in report.measures for row in score.values for name in row}
    names = [name for name in names if name in there]
    categories = {name: key for key, own in report.benchmark.categories.items() for name in own}
    models = [_describe_model(report, index, names) for index in range(len(report.models))]
    compared = [score for score in report.measures if score.can_compare]
    return {
        "kind": report.kind,
        "title": report.benchmark.title,
        "baseline": report.baseline.name if report.baseline else None,
        "images": report.count,
        "levels": [*report.models[0].levels],
        "operations": [
            {"name": name, "head": head_of(name), "category": categories.get(name, "in no mean")}
            for name in names
        ],
        "measures": [
            {"key": score.key, "title": score.title, "mean": score.head, "over": len(score.names)}
            | {**score.unit._asdict(), "normalised": bool(score.base)}
            for score in report.measures
        ],
        "models": models + [_describe_published(report, at, names) for at in range(len(report.published))],
        "sources": describe_differences(report.published, report.kind, report.count, report.origin),
        "pairs": {score.key: _shorten(score.pairs.tolist()) for score in compared},
        "chances": {score.key: _shorten(score.chances) for score in compared},
        "tooFew": report.has_too_few,
        "gain": {score.key: _describe_gain(score, names) for score in compared if len(report.models) == 2},
        "line": _fit_line(report),
    }


def _describe_model(report: Scoreboard, index: int, names: Sequence[str]) -> dict[str, Any]:
    model = report.models[index]
    measures = {
        score.key: {
            "mean": score.means[index],
            "interval": score.interval(index),
            "values": [score.value(index, name) for name in names],
            "intervals": [score.interval(index, name) for name in names],
        }
        for score in report.measures
    }
    described = {
        "name": model.model,
        "clean": model.clean_error,
        "cleanInterval": report.clean.interval(index),
        "measures": measures,
        "errors": [model.errors.get(name) for name in names] if report.kind == "c" else None,
    }
    return {key: _shorten(each) for key, each in described.items()}


def _describe_published(report: Scoreboard, place: int, names: Sequence[str]) -> dict[str, Any]:
    model = report.published[place]
    measures = {
        score.key: {
            "mean": _shorten(score.published[place].mean),
            "interval": None,
            "values": [_shorten(score.published[place].values.get(name)) for name in names],
            "intervals": [None] * len(names),
        }
        for score in report.measures
    }
    errors = model.content.get("errors", {})
    lists = [errors[name] if isinstance(errors.get(name), list) else None for name in names]
    return {
        "name": model.model,
        "published": model.table.title,
        "clean": model.clean_error if report.kind == "c" else None,
        "cleanInterval": None,
        "measures": measures,
        "errors": lists if report.kind == "c" else None,
    }


def _describe_gain(score: Score, names: Sequence[str]) -> list[Any]:
    """Return for two models the intervals of their differences by operation."""
    shared = {*score.values[0]} & {*score.values[1]}
    return [_shorten(score.difference(1, 0, name)) if name in shared else None for name in names]


def _fit_line(report: Scoreboard) -> dict[str, Any] | None:
    """Return the line of mean error against clean error, fitted to these models, or to published ones."""
    score = next((each for each in report.measures if each.key == ERROR.key and each.names), None)
    if score is None:
        return None
    points = [*zip(report.clean.means, score.means, strict=True)]
    source = f"these {len(points)} models"
    if len(points) < _FEWEST_FOR_LINE and report.baseline and score.names == report.benchmark.common:
        known = [each for each in read_models("c") if each.table.title.startswith("RobustBench")]
        points = [(each.clean_error, each.score(ERROR, report.baseline, score.names).mean) for each in known]
        source = f"the {len(points)} models of RobustBench's table (its 5000 images)"
    pairs = np.array([pair for pair in points if None not in pair], np.float64)
    if len(pairs) < _FEWEST_FOR_LINE or np.ptp(pairs[:, 0]) < 1e-6:
        return None
    slope, intercept = np.polyfit(pairs[:, 0], pairs[:, 1], 1)
    return {
        "slope": _shorten(float(slope)),
        "intercept": _shorten(float(intercept)),
        "source": source,
        "points": _shorten(pairs.tolist()) if "RobustBench" in source else [],
    }


def _shorten(value: Any) -> Any:
    """Return numbers with five digits, which is more than a page shows."""
    if isinstance(value, Mapping):
        return {key: _shorten(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shorten(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, (float, np.floating)) else value
