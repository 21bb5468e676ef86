"""`robustgen score-ood`: detection of unknown classes by confidence, by OpenOOD's definitions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from robustgen.display.text import Cell, Table
from robustgen.errors import ArgumentError, SourceError
from robustgen.files.storage import locate
from robustgen.lab.evaluation.predictions import PredictionFile, prefix_errors
from robustgen.metrics import DetectionRates, confidences, detection_rates, top1_mistakes
from robustgen.metrics.classification import Floats, logits_of
from robustgen.pixels.benchmarks.kinds import CLEAN_VARIANT
from robustgen.settings.scoring import UnknownClassScoring

CONFIDENCES: Final[Mapping[str, Callable[[NDArray[Any]], Floats]]] = {
    "msp": confidences,
    "max-logit": lambda logits: logits_of(logits, "images classes").max(axis=1).astype(np.float64),
    "energy": lambda logits: special.logsumexp(
        logits_of(logits, "images classes").astype(np.float64), axis=1
    ),
}
"""Confidences computed from logits: maximum softmax probability, maximum logit, negative free energy."""
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
        Number of these.
    rates : dict of str to DetectionRates
        Rates for each OOD set.
    """

    model: str
    accuracy: float
    images: int
    rates: dict[str, DetectionRates]

    @property
    def mean(self) -> DetectionRates:
        """Return the mean over the OOD sets."""
        return DetectionRates(*(fmean(each) for each in zip(*self.rates.values(), strict=True)))

    title, notes = "images of unknown classes", ()

    @property
    def lead(self) -> str:
        """Return the number of ID images and the accuracy on them."""
        return f"accuracy on {self.images:,} ID images {100 * self.accuracy:.2f}"

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
        cells = [[name, *(Cell(value, form=".2f") for value in each)] for name, each in self._rows.items()]
        return [Table(f"Images of unknown classes in %; {self.lead}", ("OOD set", *_HEADS), cells)]

    def list_records(self) -> list[dict[str, object]]:
        """Return the rows of the CSV."""
        return [{"ood": name, **each._asdict()} for name, each in self._rows.items()]

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON."""
        sets = {name: each._asdict() for name, each in self._rows.items()}
        return {"accuracy": self.accuracy, "images": self.images, "sets": sets}


def score_unknown_classes(options: UnknownClassScoring) -> UnknownClassesReport:
    """Compare the confidences of one model on images of its classes and on others.

    Files of known classes are taken together; each file of unknown classes is a set.

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
    rates = {name: detection_rates(values, _confidence(file, confidence)) for name, file in others.items()}
    model = options.known[0].absolute().parent.name
    return UnknownClassesReport(model, 1 - float(wrong.mean()), len(values), rates)


def _open(path: Path) -> PredictionFile:
    file = PredictionFile(*locate(path), CLEAN_VARIANT)
    if not file.has_logits:
        raise SourceError(f"{path}: has no logits; predict --save logits stores them")
    if len(file.outputs) != 1:
        raise SourceError(f"{path}: contains sequences, not images")
    return file


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
