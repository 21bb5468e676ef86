"""`robustgen score-ood`: detection of unknown classes by confidence, by OpenOOD's definitions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from robustgen.display.charts import Curve, CurveGroup
from robustgen.display.text import Cell, Table, format_count
from robustgen.errors import ArgumentError, SourceError
from robustgen.files.storage import locate, open_store
from robustgen.lab.evaluation.predictions import PredictionFile, prefix_errors, read_settings
from robustgen.lab.scores.intervals import Interval, warn_of_few
from robustgen.metrics import DetectionRates, detection_rates, top1_mistakes
from robustgen.metrics.bootstrap import draw_weights
from robustgen.metrics.classification import Floats, log_odds, logits_of, round_digits
from robustgen.metrics.intervals import clustered_interval, logit_interval
from robustgen.pixels.benchmarks.kinds import CLEAN_VARIANT
from robustgen.settings.scoring import UnknownClassScoring

CONFIDENCES: Final[Mapping[str, Callable[[NDArray[Any]], Floats]]] = {
    "msp": log_odds,
    "max-logit": lambda logits: logits_of(logits, "images classes").max(axis=1).astype(np.float64),
    "energy": lambda logits: round_digits(
        special.logsumexp(logits_of(logits, "images classes").astype(np.float64), axis=1)
    ),
}
"""Confidences computed from logits: maximum softmax probability by its log-odds, maximum logit, negative free
energy."""
_STEP: Final = 5
"""Distance in per cent of the points of curves."""
_HEADS: Final = ("FPR@95", "AUROC", "AUPR in", "AUPR out")


@dataclass(frozen=True)
class UnknownClassesReport:
    """The rates of one model.

    Attributes
    ----------
    model : str
        The folder of its predictions.
    accuracy : float
        Top-1 accuracy on the ID images.
    images : int
        Number of these, each as often as it is in the files.
    rates : dict of str to DetectionRates
        Rates for each OOD set.
    accuracy_interval : Interval or None
    intervals : dict of str to list of Interval
        Intervals of the rates of each OOD set and of their mean; empty if none are wanted.
    notes : list of str
    recorded : dict of str to dict
        Content of `predictions.json` beside each file, by the model and the OOD sets.
    found : dict of str to list of float
        For each OOD set, the share below the confidence that 0, 5, ... 100 % of the ID images do not exceed.
    """

    model: str
    accuracy: float
    images: int
    rates: dict[str, DetectionRates]
    accuracy_interval: Interval | None
    intervals: dict[str, list[Interval]]
    notes: list[str]
    recorded: Mapping[str, Mapping[str, Any]]
    found: Mapping[str, list[float]]

    @property
    def mean(self) -> DetectionRates:
        """Return the mean over the OOD sets."""
        return DetectionRates(*(fmean(each) for each in zip(*self.rates.values(), strict=True)))

    title = "images of unknown classes"
    method = (
        "Intervals of rates are symmetric on the logit scale, with the standard error of "
        "bootstrap samples of the images, and that of FPR@95 reaches at least over the interval "
        "of its threshold, by order statistics; that of the accuracy is Wilson's with the effective "
        "number of images."
    )

    @property
    def lead(self) -> str:
        """Return the numbers of ID images and of OOD sets."""
        return f"{format_count(self.images, 'ID image')}, {format_count(len(self.rates), 'OOD set')}"

    @property
    def _rows(self) -> dict[str, DetectionRates]:
        return {**self.rates, "mean": self.mean} if len(self.rates) > 1 else self.rates

    def list_scores(self) -> dict[str, float]:
        """Return the accuracy, the mean rates, and those of each OOD set, in %."""
        found = {"accuracy": 100 * self.accuracy}
        found |= {head: 100 * value for head, value in zip(_HEADS, self.mean, strict=True)}
        for name, rates in self.rates.items():
            found |= {f"{name}.{head}": 100 * value for head, value in zip(_HEADS, rates, strict=True)}
        return found

    def list_tables(self) -> list[Table]:
        """Return the rates of each OOD set and their mean."""
        ends = self.intervals
        cells = [
            [
                name,
                *(
                    Cell(value, own, ".2f")
                    for value, own in zip(each, ends.get(name, [None] * len(each)), strict=True)
                ),
            ]
            for name, each in self._rows.items()
        ]
        accuracy = Cell(self.accuracy, self.accuracy_interval, ".2f").format("", " ±")
        title = (
            f"Images of unknown classes in %; accuracy on {format_count(self.images, 'ID image')} {accuracy}"
        )
        return [Table(title, ("OOD set", *_HEADS), cells)]

    def list_curves(self) -> list[CurveGroup]:
        """Return the share of each OOD set that is found, against that of ID images taken for unknown."""
        steps = [*range(0, 101, _STEP)]
        curves = [Curve(name, [*steps], found, found, found) for name, found in self.found.items()]
        return [CurveGroup("Unknown images found in % (ROC)", "False positives in %", {"": curves})]

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON."""
        sets = {name: each._asdict() for name, each in self._rows.items()}
        ends = {name: dict(zip(sets[name], each, strict=True)) for name, each in self.intervals.items()}
        own = {"accuracy": self.accuracy, "accuracy_interval": self.accuracy_interval, "images": self.images}
        return own | {
            "sets": sets,
            "intervals": ends or None,
            "interval_method": self.method if ends else None,
        }


def score_unknown_classes(options: UnknownClassScoring) -> UnknownClassesReport:
    """Compare the confidences of one model on images of its classes and on others.

    Files of known classes are taken together; each file of unknown classes is a set. Bootstrap samples
    contain all predictions of an image, which files of known classes may share, or none.

    Raises
    ------
    SourceError
        A file is missing, malformed, or has no logits; the message names it.
    """
    files, confidence = [_open(path) for path in options.known], options.confidence
    classes = files[0].classes
    for file in files:
        file.check()
    others = {str(path): _open(path) for path in options.unknown}
    for file in [*files, *others.values()]:
        if file.classes != classes:
            first = options.known[0]
            raise SourceError(f"{file.location}: {file.classes} classes, where {first} has {classes}")
    values = np.concatenate([_confidence(file, confidence) for file in files])
    wrong = np.concatenate([_mistakes(file) for file in files])
    found = {name: _confidence(file, confidence) for name, file in others.items()}
    rates = {name: detection_rates(values, each) for name, each in found.items()}
    accuracy, accuracy_interval, ends = 1 - float(wrong.mean()), None, dict[str, list[Interval]]()
    if options.replicates:
        keys, places = np.unique([key for file in files for key in file.keys], return_inverse=True)
        accuracy_interval = Interval(*clustered_interval(~wrong, places))
        weights = draw_weights(len(keys), options.replicates)[:, places]
        samples = {name: _resample(values, each, weights) for name, each in found.items()}
        ends = _find_intervals(rates, samples, len(keys), found, values)
    model = options.known[0].absolute().parent.name
    notes = warn_of_few(options.replicates)
    folders = {model: options.known[0], **dict(zip(others, options.unknown, strict=True))}
    recorded = {name: _read_recorded(path.absolute()) for name, path in folders.items()}
    limits = np.quantile(values, np.arange(0, 1.001, _STEP / 100), method="lower")
    curves = {name: [float(np.mean(each <= limit)) for limit in limits] for name, each in found.items()}
    return UnknownClassesReport(
        model, accuracy, len(values), rates, accuracy_interval, ends, notes, recorded, curves
    )


def _find_intervals(
    rates: Mapping[str, DetectionRates],
    samples: Mapping[str, Floats],
    known: int,
    others: Mapping[str, Floats],
    confidences: Floats,
) -> dict[str, list[Interval]]:
    """Return the intervals of the rates of each OOD set, and of their mean if there are several."""
    quantiles = {name: _bound_quantile(each, confidences) for name, each in others.items()}
    sizes = {name: len(each) for name, each in others.items()}
    pairs = {name: (np.array(rates[name]), samples[name], sizes[name], quantiles[name]) for name in rates}
    if len(pairs) > 1:
        values, rows, ends = (np.mean([*each.values()], axis=0) for each in (rates, samples, quantiles))
        pairs["mean"] = (values, rows, min(sizes.values()), ends)
    found = {}
    for name, (value, rows, unknown, (least, most)) in pairs.items():
        step = 0.5 / (known * unknown)
        low, high = logit_interval(value, rows, min(known, unknown), [0.5 / known, step, step, step])
        low[0], high[0] = min(low[0], least), max(high[0], most)
        found[name] = [Interval(*each) for each in np.transpose([low, high]).tolist()]
    return found


def _bound_quantile(unknown: Floats, known: Floats) -> tuple[float, float]:
    """Return FPR@95 at the ends of the interval of its threshold, by order statistics.

    The threshold is the 95 % quantile of the OOD images, and samples of few images do not go beyond their
    extremes; from at most 20, it is the largest, of which nothing tells how much larger it may be.
    """
    order, count = np.sort(unknown), len(unknown)
    chances = special.bdtr(np.arange(count + 1), count, 0.95)
    below, above = (chances <= 0.025).sum(), (chances < 0.975).sum()
    low = np.mean(known <= order[below - 1]) if below else 0
    high = np.mean(known <= order[min(above, count - 1)])
    return float(low), 1.0 if count <= 20 else float(high)


def _resample(known: Floats, unknown: Floats, weights: NDArray[np.int64]) -> Floats:
    """Return the rates of samples: (samples, 4); `weights` tells how often each contains each known image."""
    # Each sample is sorted as its images are, and sorting it again takes little time.
    order = np.argsort(known), np.argsort(unknown)
    drawn = draw_weights(len(unknown), len(weights), seed=1)
    rows = [
        detection_rates(
            np.repeat(known[order[0]], own[order[0]]), np.repeat(unknown[order[1]], other[order[1]])
        )
        for own, other in zip(weights, drawn, strict=True)
    ]
    return np.array(rows).reshape(len(rows), len(_HEADS))


def _open(path: Path) -> PredictionFile:
    if path.is_dir():
        raise SourceError(f"{path}: is a folder; name one of its files of predictions, such as clean.npz")
    file = PredictionFile(*locate(path), CLEAN_VARIANT)
    if not file.has_logits:
        raise SourceError(f"{path}: has no logits; predict --save logits stores them")
    if len(file.outputs) != 1:
        raise SourceError(f"{path}: contains sequences, not images")
    return file


def _read_recorded(path: Path) -> dict[str, Any]:
    """Return the `predictions.json` of a file for the clean images, or in the folder of a corruption."""
    return next(filter(None, (read_settings(open_store(each)) for each in path.parents[:2])), {})


def _confidence(file: PredictionFile, name: str) -> Floats:
    with prefix_errors(file.path):
        return np.concatenate([CONFIDENCES[name](rows) for rows in file.logits()])


def _mistakes(file: PredictionFile) -> NDArray[np.bool_]:
    labels, found, start = file.labels, [], 0
    if labels is None:
        raise ArgumentError(f"{file.path}: has no labels")
    for rows in file.logits():
        found.append(top1_mistakes(rows, labels[start : start + len(rows)]))
        start += len(rows)
    return np.concatenate(found)
