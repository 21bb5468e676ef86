"""Confidence and accuracy of a model on each variant, from its logits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from robustgen.lab.evaluation.predictions import PredictionFile, Predictions, prefix_errors
from robustgen.metrics import brier_scores, rms_calibration_error, softmax
from robustgen.metrics.classification import Floats
from robustgen.pixels.benchmarks.kinds import CLEAN

BINS: Final = 15
"""Number of bins, of equal width, of a reliability diagram."""


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


def read_calibration(predictions: Predictions) -> dict[str, Calibration]:
    """Return the calibration on the clean images and on each corruption, over its severities.

    Errors and scores are means over severities, bins are sums. Empty if the files have no logits.
    """
    files = predictions.files
    if predictions.kind == "p" or not all(file.has_logits for file in files.values()):
        return {}
    by_name: dict[str, list[Calibration]] = {}
    for folder, file in files.items():
        by_name.setdefault(CLEAN if folder == CLEAN else file.variant.name, []).append(_measure(file))
    return {name: _join(parts) for name, parts in by_name.items()}


def _measure(file: PredictionFile) -> Calibration:
    with prefix_errors(file.path):
        parts = [*_read(file)]
    confidence, right, brier = (np.concatenate(each) for each in zip(*parts, strict=True))
    index = np.minimum((confidence * BINS).astype(int), BINS - 1)
    columns = (np.ones_like(confidence), confidence, right.astype(float))
    bins = np.stack([np.bincount(index, weights, BINS).astype(np.float64) for weights in columns], axis=1)
    return Calibration(rms_calibration_error(confidence, right), float(brier.mean()), bins)


def _read(file: PredictionFile) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield confidences, correctness and Brier scores of pieces of a file."""
    labels, start = file.labels, 0
    assert labels is not None  # checked by `open_predictions`
    for rows in file.logits():
        own = labels[start : start + len(rows)]
        probabilities = softmax(rows)
        yield probabilities.max(axis=1), rows.argmax(axis=1) == own, brier_scores(probabilities, own)
        start += len(rows)


def _join(parts: list[Calibration]) -> Calibration:
    return Calibration(
        float(np.mean([each.rms for each in parts])),
        float(np.mean([each.brier for each in parts])),
        np.sum([each.bins for each in parts], axis=0),
    )


def describe_calibration(found: Mapping[str, Calibration]) -> dict[str, object]:
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
