"""What a model did: its errors, or its flip probabilities and top-5 distances, from its predictions alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from robustgen import metrics
from robustgen.benchmark import CLEAN, Kind
from robustgen.metrics import RunningMean
from robustgen.predictions import PredictionFile, Predictions, prefix_errors


@dataclass(frozen=True)
class Scores:
    """The raw values of one model, from its predictions alone.

    Attributes
    ----------
    model : str
    kind : {"c", "p"}
    count : int
        Images or sequences.
    missing : tuple of str
        Arms that a complete set has and this one has not.
    clean_error : float or None
    severities : dict
        Corruption to severity to top-1 error.
    flip_probabilities, top5_distances : dict
        Of each perturbation.
    """

    model: str
    kind: Kind
    count: int
    missing: tuple[str, ...]
    clean_error: float | None = None
    severities: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    flip_probabilities: Mapping[str, float] = field(default_factory=dict)
    top5_distances: Mapping[str, float] = field(default_factory=dict)

    @property
    def errors(self) -> dict[str, list[float]]:
        """Errors at severities 1 to 5 of the corruptions that have all."""
        levels = range(1, metrics.SEVERITIES + 1)
        return {
            name: [by_level[level] for level in levels]
            for name, by_level in self.severities.items()
            if len(by_level) == metrics.SEVERITIES
        }


def read_scores(predictions: Predictions, model: str, difficulty: int = 1) -> Scores:
    """Reduce all predictions of one model to errors, or to flip probabilities and top-5 distances.

    Raises
    ------
    SourceError
        Predictions that are not numbers or classes; the message names the file.
    """
    read = _read_corruptions if predictions.kind == "c" else _read_perturbations
    return read(predictions, model, difficulty)


def _read_corruptions(predictions: Predictions, model: str, _: int) -> Scores:
    errors = {folder: _error(file) for folder, file in predictions.files.items()}
    clean = errors.pop(CLEAN, None)
    by_name: dict[str, dict[int, float]] = {}
    for folder, error in errors.items():
        arm = predictions.files[folder].arm
        by_name.setdefault(arm.name, {})[arm.level] = error
    levels = range(1, metrics.SEVERITIES + 1)
    wanted = [f"{name}/{level}" for name in metrics.COMMON_CORRUPTIONS for level in levels]
    missing = tuple(arm for arm in wanted if arm not in errors)
    return Scores(model, "c", len(predictions.keys), missing, clean, by_name)


def _error(file: PredictionFile) -> float:
    mean, labels, at = RunningMean(), file.labels, 0
    assert labels is not None  # which `open_predictions` has seen to
    for best in file.best(1):
        mean.update(best[:, 0] != labels[at : at + len(best)])
        at += len(best)
    return mean.mean


def _read_perturbations(predictions: Predictions, model: str, difficulty: int) -> Scores:
    flips: dict[str, float] = {}
    distances: dict[str, float] = {}
    # Noises have harder sequences of their own; of the others, frames further apart are compared.
    arms = {name: _arm_at(name, difficulty) for name in _perturbations(predictions)}
    found = {name: predictions.files[arm] for name, arm in arms.items() if arm in predictions.files}
    for name, file in found.items():
        flips[name], distance = _instability(file, name, difficulty)
        if distance is not None:
            distances[name] = distance
    wanted = (_arm_at(name, difficulty) for name in metrics.COMMON_PERTURBATIONS)
    missing = tuple(arm for arm in wanted if arm not in predictions.files)
    return Scores(
        model,
        "p",
        len(predictions.keys),
        missing,
        flip_probabilities=flips,
        # Fewer than all would be means over other perturbations than those beside them.
        top5_distances=distances if len(distances) == len(flips) else {},
    )


def _perturbations(predictions: Predictions) -> list[str]:
    return list(dict.fromkeys(file.arm.name for file in predictions.files.values()))


def _arm_at(name: str, difficulty: int) -> str:
    harder = difficulty > 1 and name in metrics.NOISE_PERTURBATIONS
    return f"{name}_{difficulty}" if harder else name


def _instability(file: PredictionFile, name: str, difficulty: int) -> tuple[float, float | None]:
    """Flip probability, and top-5 distance where five classes are known."""
    flips, distances = RunningMean(), RunningMean()
    how: Any = {"noise": name in metrics.NOISE_PERTURBATIONS, "difficulty": difficulty}
    for best in file.best(file.lists):
        with prefix_errors(file.path):
            flips.update(metrics.sequence_flips(best[..., 0], **how))
            if file.lists == 5:
                distances.update(metrics.sequence_top5_distances(best, **how))
    return flips.mean, distances.mean if file.lists == 5 else None
