"""Page of `robustgen score --output`: HTML with its numbers as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.display.charts import COLOURS, DASHES
from robustgen.display.html import check_page_path, embed_picture, render_page
from robustgen.display.sheets import fit_picture
from robustgen.display.text import escape, format_count, format_name
from robustgen.files.storage import is_url, open_store, save
from robustgen.lab.evaluation.predictions import PredictionFile, Predictions, open_predictions, prefix_errors
from robustgen.lab.scores.gates import NO_EVIDENCE, Evidence
from robustgen.lab.scores.intervals import MEAN, SIGNIFICANT, PublishedScore, Score
from robustgen.lab.scores.measures import describe_differences, read_models
from robustgen.lab.scores.results import FILES_AHEAD, ModelScores, flip_curves
from robustgen.lab.scores.scoreboard import Scoreboard
from robustgen.lab.scores.scoring import PictureSet
from robustgen.metrics import brier_scores, rms_calibration_error, softmax
from robustgen.metrics.classification import Floats
from robustgen.metrics.corruption_errors import ERROR
from robustgen.pixels.benchmarks.kinds import CLEAN, IMAGENET_C, parse_variant

# --- predictions, read again ----------------------------------------------------------------------

BINS: Final = 15
"""Number of bins, of equal width, of a reliability diagram."""
_NAMED, _PICTURED, _CONFUSED = 12, 6, 5
"""Numbers of images and of pairs of classes that the page tells of each variant."""


@dataclass(frozen=True)
class Calibration:
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


def read_files(runs: Sequence[Predictions]) -> tuple[dict[str, list[list[int]]], dict[str, object]]:
    """Return what the page says of the predictions of a model, whose seeds have one run each.

    Returns
    -------
    confused : dict of str to list
        For each variant the most frequent mistakes: true class, predicted class, number of images.
    calibration : dict of str to dict
        For the clean images and each corruption, RMS calibration error and Brier score, means over severities
        and seeds, and bins: count, mean confidence and accuracy. Empty if a file has no logits.
    """
    folders = [folder for folder in runs[0].files if all(folder in run.files for run in runs)]
    measured = runs[0].store.map(
        lambda folder: _measure([run.files[folder] for run in runs]), folders, FILES_AHEAD
    )
    confused, by_name = dict[str, list[list[int]]](), dict[str, list[Calibration | None]]()
    for folder, (pairs, found) in zip(folders, measured, strict=True):
        confused[folder] = pairs
        by_name.setdefault(parse_variant(folder, "c").name, []).extend(found)
    known = {name: [each for each in parts if each] for name, parts in by_name.items()}
    has_all = all(len(known[name]) == len(parts) for name, parts in by_name.items())
    return confused, {name: _join(parts) for name, parts in known.items()} if has_all else {}


def _measure(files: Sequence[PredictionFile]) -> tuple[list[list[int]], list[Calibration | None]]:
    """Return the most frequent mistakes in the files of a variant, and the calibration of each."""
    wrong, found = [], list[Calibration | None]()
    for file in files:
        labels, parts = file.labels, []
        assert labels is not None  # checked by `open_predictions`
        with prefix_errors(file.path):
            if file.has_logits:
                parts = [*_read(file, labels)]
                confidence, best, brier = (np.concatenate(each) for each in zip(*parts, strict=True))
                found.append(_calibrate(confidence, best == labels, brier))
            else:
                best = np.concatenate([rows[:, 0] for rows in file.best(1)])
                found.append(None)
        is_wrong = best != labels
        # Pairs as numbers are sorted in a tenth of the time of rows.
        wrong.append(labels[is_wrong].astype(np.int64) << 32 | best[is_wrong].astype(np.int64))
    codes, counts = np.unique(np.concatenate(wrong), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_CONFUSED]
    return [[*map(int, divmod(codes[place], 1 << 32)), int(counts[place])] for place in order], found


def _read(file: PredictionFile, labels: NDArray[Any]) -> Iterator[tuple[Floats, NDArray[Any], Floats]]:
    """Yield confidences, best classes and Brier scores of pieces of a file."""
    start = 0
    for rows in file.logits():
        probabilities = softmax(rows)
        own = labels[start : start + len(rows)]
        yield probabilities.max(axis=1), rows.argmax(axis=1), brier_scores(probabilities, own)
        start += len(rows)


def _calibrate(confidence: Floats, right: NDArray[np.bool_], brier: Floats) -> Calibration:
    index = np.minimum((confidence * BINS).astype(int), BINS - 1)
    columns = (np.ones_like(confidence), confidence, right.astype(float))
    bins = np.stack([np.bincount(index, weights, BINS).astype(np.float64) for weights in columns], axis=1)
    return Calibration(rms_calibration_error(confidence, right), float(brier.mean()), bins)


def _join(parts: Sequence[Calibration]) -> dict[str, object]:
    bins = np.sum([each.bins for each in parts], axis=0).tolist()
    return {
        "rms": round(float(np.mean([each.rms for each in parts])), 5),
        "brier": round(float(np.mean([each.brier for each in parts])), 5),
        "bins": [[int(n), round(total / n, 4), round(right / n, 4)] for n, total, right in bins if n],
    }


# --- failures -------------------------------------------------------------------------------------

_THUMB: Final = 96


def describe_failures(model: ModelScores, confused: Mapping[str, list[list[int]]]) -> dict[str, Any]:
    """Return for each variant which images are classified wrongly, and which classes are confused.

    Images are their places among sorted keys; those that are right when clean come first. Of several seeds,
    more than half classify them wrongly.
    """
    clean = np.asarray(model.mistakes.get(CLEAN, np.zeros(model.count))) > 0.5
    found = {}
    for folder, each in model.mistakes.items():
        wrong = np.asarray(each) > 0.5
        images = [*np.flatnonzero(wrong & ~clean), *np.flatnonzero(wrong & clean)][:_NAMED]
        found[folder] = {
            "count": int(wrong.sum()),
            "images": [int(image) for image in images],
            "confused": confused.get(folder, []),
        }
    return found


def _name_classes(predictions: Predictions) -> dict[int, str]:
    """Return the folders of classes in the keys, by class; empty if keys have none."""
    file = next(iter(predictions.files.values()))
    assert file.labels is not None
    folders = {
        (int(label), key.rpartition("/")[0]) for key, label in zip(file.keys, file.labels, strict=True)
    }
    named = dict(folders)
    return named if len(named) == len(folders) and all(named.values()) else {}


def _read_thumbs(dataset: PictureSet, keys: Sequence[str], found: Mapping[str, Any]) -> dict[str, str]:
    """Return small pictures of the first images of each variant, by its folder and the place of the image."""
    thumbs = {}
    for folder, each in found.items():
        variant = parse_variant(folder, "c")
        for image in each["images"][:_PICTURED] if variant in dataset.variants else ():
            picture = dataset.load(variant, keys[image])
            still = picture[len(picture) // 2] if picture.ndim == 4 else picture
            thumbs[f"{folder} {image}"] = str(embed_picture(fit_picture(still, _THUMB), 70))
    return thumbs


# --- page -----------------------------------------------------------------------------------------

# Minimal number of models for a fitted line.
_FEWEST_FOR_LINE: Final = 4


def write_page(
    report: Scoreboard, path: Path, dataset: PictureSet | None = None, evidence: Evidence = NO_EVIDENCE
) -> int:
    """Write the page about a report.

    Parameters
    ----------
    report : Scoreboard
        Its folders are read again for calibration, confusions and flip curves.
    path : Path
    dataset : PictureSet, optional
        The set, for pictures of images that fail.
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
    folders = iter(report.folders)
    for model, entry in zip(report.models if report.folders else (), data["models"], strict=False):
        runs = [open_predictions(next(folders)) for _ in model.runs]
        if report.kind == "c":
            confused, calibration = read_files(runs)
            entry |= {"failures": describe_failures(model, confused), "calibration": calibration}
        else:
            curves = [flip_curves(run, report.difficulty) for run in runs]
            entry["curves"] = {
                name: _shorten(np.mean([each[name] for each in curves], axis=0).tolist())
                for name in curves[0]
                if all(name in each for each in curves)
            }
    data |= {"thumbs": {}, "classes": {}, "keys": {}}
    if report.folders and report.kind == "c":
        opened = open_predictions(report.folders[0])
        shown = [entry["failures"] for entry in data["models"] if "failures" in entry]
        places = sorted({image for each in shown for own in each.values() for image in own["images"]})
        data |= {"classes": _name_classes(opened), "keys": {place: opened.keys[place] for place in places}}
        if dataset:
            data["thumbs"] = _read_thumbs(dataset, opened.keys, shown[report.leading.rank()[0]])
    sources = data["sources"]
    data["sources"] = _name_models(report, sources)
    every = [note for note in (*report.inputs, *report.notes) if note not in sources]
    notes = _name_models(report, every)
    context = {
        "heading": _name_page(report),
        "lead": _lead(report),
        "conclusion": _conclude(report),
        "warnings": [note for note in notes if note.startswith("warning")],
        "notes": [note for note in notes if not note.startswith("warning")],
        "colours": COLOURS,
        # In widths of the line, which is two pixels wide.
        "dashes": [" ".join(f"{2 * length:g}" for length in dashes) for dashes in DASHES],
        "intervals": report.replicates,
        "conditions": evidence.list_tables(),
    }
    page = render_page("scores.html", data=data, **context)
    save(path, page, f"--output {path}")
    return len(page)


def _name_models(report: Scoreboard, notes: Sequence[str]) -> list[str]:
    """Return notes with the names of models in place of their folders, which a published page hides."""
    for folder, model in zip(report.folders, report.runs, strict=False):
        root = open_store(folder).location
        notes = [note.replace(root, model.model) for note in notes]
    return [*notes]


def _lead(report: Scoreboard) -> str:
    base = f", normalised by {report.baseline.name}" if report.baseline and not report.leading.group else ""
    titles = ", ".join(group.title for group in report.groups)
    count = format_count(report.count, report.benchmark.noun)
    return f"{format_count(len(report.models), 'model')} on {titles}, {count}{base}"


def _name_page(report: Scoreboard) -> str:
    """Return the heading of the page: the benchmark, or its families, and the data set."""
    first, *others = (group.title for group in report.groups)
    if others:
        first += f" and {others[0] if len(others) == 1 else format_count(len(others), 'other set')}"
    named = report.settings.get("dataset")
    return f"{first}{f' of {escape(named)}' if named else ''}: scores"


_BARS: Final = 5
"""Number of operations in the chart beside the conclusion."""


def _conclude(report: Scoreboard) -> dict[str, Any] | None:
    """Return a sentence on the best model, and the operations on which it is worst."""
    score = report.leading
    best = score.rank()[0]
    values = score.values[best]
    if score.means[best] is None or not values:
        return None
    model, cell = report.models[best].model, score.cell(best)
    ends = f" [{', '.join(cell.format_ends())}]" * bool(cell.interval)
    names = [name for name in values if name in score.names]
    worst = sorted(names, key=lambda name: score.unit.sense * values[name])
    text = f"{model}: {score.head} {cell.format_value('')}{ends}"
    if (count := len(report.models)) > 1:
        alike = sum(chance >= SIGNIFICANT for chance in score.chances[best]) - 1 if score.can_compare else 0
        text += f", best of {count}" + f" (not told apart from {format_count(alike, 'other')})" * (alike > 0)
    most = max(abs(values[name]) for name in names) or 1
    bars = [
        (
            format_name(name.rpartition(":")[2]),
            score.cell(best, name).format_value(""),
            abs(values[name]) / most,
        )
        for name in worst[:_BARS]
    ]
    caption = f"Weakest {report.benchmark.operation}s: {score.symbol}"
    return {"text": f"{text}; weakest: {bars[0][0]}.", "caption": caption, "bars": bars}


# --- data ----------------------------------------------------------------------------------------


def collect_data(report: Scoreboard) -> dict[str, Any]:
    """Return all scores on the page, for JSON."""
    rows = _list_operations(report)
    names = [str(each["name"]) for each in rows]
    own = report.groups[0]
    scores = [
        *(report.measures if not own.name else own.scores),
        *(s for g in report.groups[1:] for s in g.scores),
    ]
    compared = [score for score in scores if score.can_compare]
    places = {group.name: place for place, group in enumerate(report.groups)}
    models = [_describe_model(report, scores, index, rows) for index in range(len(report.models))]
    published = [*_list_published(report, scores, names)]
    return {
        "kind": report.kind,
        "title": report.benchmark.title,
        "baseline": report.baseline.name if report.baseline else None,
        "images": report.count,
        "groups": [{"title": group.title, "levels": [*group.levels]} for group in report.groups],
        "operations": rows,
        "measures": [
            {"key": score.full_key, "title": score.title, "mean": score.head, "base": score.base}
            | {"averages": score.has_mean, "values": any(score.values), "group": places[score.group]}
            | score.unit._asdict()
            for score in scores
        ],
        "models": [*models, *published],
        "facts": [*[["source", "Source"]] * bool(published), *_FACTS],
        "reference": _choose_reference(report),
        "sources": describe_differences(report.published, report.kind, report.count, report.origin),
        "pairs": {score.full_key: _shorten(score.pairs.tolist()) for score in compared},
        "chances": {score.full_key: _shorten(score.chances) for score in compared},
        "tooFew": report.has_too_few,
        "gain": {s.full_key: _describe_gain(s, names) for s in compared if len(report.models) == 2},
        "line": _fit_line(report),
    }


def _list_operations(report: Scoreboard) -> list[dict[str, Any]]:
    """Return the operations that some model has, with their category and the place of their group."""
    own = report.benchmark.categories.items() if not report.groups[0].name else ()
    panels = [(0, title, names) for title, names in own]
    # The heading names the family if there is one alone.
    alone = len(report.groups) == 1
    panels += [
        (place, title.removeprefix(f"{group.title}, " * alone), names)
        for place, group in enumerate(report.groups)
        if group.name
        for title, names in group.panels.items()
    ]
    there = {name for score in report.measures for row in score.values for name in row}
    there |= {name for group in report.groups for row in group.scores[0].values for name in row}
    known = {name: (place, title) for place, title, names in panels for name in names if name in there}
    rest = [name for score in report.measures for name in report.names(score) if name in there - known.keys()]
    return [
        {"name": name, "label": name.rpartition(":")[2], "category": title, "group": place}
        | {"folder": IMAGENET_C.variant(name, 1).folder.partition("/")[0]}
        for name, (place, title) in (known | dict.fromkeys(rest, (0, "in no mean"))).items()
    ]


def _choose_reference(report: Scoreboard) -> str:
    """Return the model that others are compared with: the baseline, one of such a name, or the best."""
    names = [model.model for model in report.models]
    told = [name for name in names if report.baseline and name == report.baseline.name]
    told += [name for name in names if "baseline" in name.lower()]
    return (told or [names[report.leading.rank()[0]]])[0]


def _describe_model(
    report: Scoreboard, scores: Sequence[Score], index: int, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    model = report.models[index]
    measures = {
        score.full_key: {
            "mean": score.means[index],
            "interval": score.interval(index),
            "deviation": score.deviations.get(index, {}).get(MEAN),
            "values": [score.value(index, row["name"]) for row in rows],
            "intervals": [score.interval(index, row["name"]) for row in rows],
        }
        for score in scores
    }
    errors = []
    for row in rows:
        found, levels = model.severities.get(row["name"], {}), report.groups[row["group"]].levels
        errors.append([found[level] for level in levels] if found.keys() >= {*levels} else None)
    described = {
        "name": model.model,
        "about": {"source": "yours"} | _describe_facts(report, model.model),
        "seeds": len(model.seeds),
        "clean": model.clean_error,
        "cleanInterval": report.clean.interval(index),
        "measures": measures,
        "errors": errors if report.kind == "c" else None,
    }
    return {key: _shorten(each) for key, each in described.items()}


_FACTS: Final = (
    ("paper", "Paper"),
    ("architecture", "Architecture"),
    ("parameters", "Parameters"),
    ("training_data", "Training data"),
    ("image_size", "Image size"),
    ("code", "Code"),
)
"""Columns of the models file."""


def _describe_facts(report: Scoreboard, name: str) -> dict[str, Any]:
    """Return what the models file says about a model: texts, or pairs of a text and an address."""
    if name not in report.facts:
        return {}
    facts = report.facts[name]
    found: dict[str, Any] = facts.model_dump(exclude_defaults=True)
    if facts.parameters:
        found["parameters"] = f"{facts.parameters / 1e6:.3g} M"
    if facts.url:
        found["paper"] = [facts.paper or "link", facts.url]
    return found | ({"code": ["code", facts.code]} if facts.code else {})


def _list_published(
    report: Scoreboard, scores: Sequence[Score], names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield published models: the benchmark's, and those of other families."""
    own = [score for score in scores if not score.group]
    for place, each in enumerate(report.published):
        errors = each.content.get("errors", {})
        lists = [errors[name] if isinstance(errors.get(name), list) else None for name in names]
        source = each.table.title.removeprefix("ImageNet-C and ImageNet-P, ").partition(",")[0]
        known = {score.full_key: score.published[place] for score in own}
        more = {"clean": each.clean_error, "errors": lists} if report.kind == "c" else {}
        name = each.model.removesuffix(" (RobustBench)")
        yield _describe_published(report, scores, names, name, source, known, **more)
    for group in (group for group in report.groups if group.name):
        found = dict[str, dict[str, PublishedScore]]()
        for score in (each for each in group.scores if report.compares or not each.on_demand):
            for printed in score.published:
                found.setdefault(printed.model, {})[score.full_key] = printed
        for name, values in found.items():
            yield _describe_published(report, scores, names, name, group.title, values)


def _describe_published(
    report: Scoreboard,
    scores: Sequence[Score],
    names: Sequence[str],
    name: str,
    source: str,
    known: Mapping[str, PublishedScore],
    **more: Any,
) -> dict[str, Any]:
    found = [(score.full_key, known.get(score.full_key, PublishedScore(name, None))) for score in scores]
    return {
        "name": f"{name} (published)" if name in [each.model for each in report.models] else name,
        "published": True,
        "about": {"source": source} | _describe_facts(report, name),
        "clean": None,
        "cleanInterval": None,
        "measures": {
            key: {
                "mean": _shorten(each.mean),
                "interval": None,
                "values": [_shorten(each.values.get(name)) for name in names],
                "intervals": [None] * len(names),
            }
            for key, each in found
        },
        "errors": None,
    } | more


def _describe_gain(score: Score, names: Sequence[str]) -> list[Any]:
    """Return for two models the intervals of their differences by operation."""
    shared = {*score.values[0]} & {*score.values[1]}
    return [_shorten(score.difference(1, 0, name)) if name in shared else None for name in names]


def _fit_line(report: Scoreboard) -> dict[str, Any] | None:
    """Return the line of mean error against clean error, fitted to these models, or to published ones."""
    found = [each for each in report.measures if each.key == ERROR.key and each.names]
    found += [group.scores[0] for group in report.groups if group.name]
    if not found:
        return None
    score = found[0]
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
