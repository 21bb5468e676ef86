"""What a model did: its errors, or its flip probabilities and top-5 distances, from its predictions alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen import metrics
from robustgen.benchmark import CLEAN, IMAGENET_C, Kind
from robustgen.metrics import RunningMean
from robustgen.metrics.checks import Floats
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
    levels : tuple of int
        The severities that errors are averaged over.
    mistakes : dict
        Folder of an arm to whether each image is classified wrongly, (count,), in the order of sorted keys.
    flips, distances : dict
        Perturbation to share of flips, and to mean top-5 distance, of each sequence, likewise.
    """

    model: str
    kind: Kind
    count: int
    missing: tuple[str, ...]
    clean_error: float | None = None
    severities: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    flip_probabilities: Mapping[str, float] = field(default_factory=dict)
    top5_distances: Mapping[str, float] = field(default_factory=dict)
    levels: tuple[int, ...] = IMAGENET_C.levels
    mistakes: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    flips: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    distances: Mapping[str, Floats] = field(default_factory=dict, repr=False)

    @property
    def errors(self) -> dict[str, list[float]]:
        """Errors at `levels` of the corruptions that have all of them."""
        return {
            name: [by_level[level] for level in self.levels]
            for name, by_level in self.severities.items()
            if by_level.keys() >= {*self.levels}
        }

    @property
    def complete(self) -> bool:
        """Whether errors are averaged over all five severities."""
        return self.levels == IMAGENET_C.levels

    def mistakes_on(self, corruption: str) -> NDArray[Any]:
        """Which images are classified wrongly at each of `levels`: (levels, count)."""
        return np.stack([self.mistakes[IMAGENET_C.arm(corruption, level).folder] for level in self.levels])


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
    mistakes = {folder: _find_mistakes(file) for folder, file in predictions.files.items()}
    errors = {folder: float(wrong.mean()) for folder, wrong in mistakes.items()}
    clean = errors.pop(CLEAN, None)
    by_name: dict[str, dict[float, float]] = {}
    for folder, error in errors.items():
        arm = predictions.files[folder].arm
        by_name.setdefault(arm.name, {})[arm.level] = error
    levels = range(1, metrics.SEVERITIES + 1)
    wanted = [f"{name}/{level}" for name in metrics.COMMON_CORRUPTIONS for level in levels]
    missing = tuple(arm for arm in wanted if arm not in errors)
    return Scores(model, "c", len(predictions.keys), missing, clean, by_name, mistakes=mistakes)


def _find_mistakes(file: PredictionFile) -> NDArray[np.bool_]:
    """Which images are classified wrongly, in the order of sorted keys."""
    labels = file.labels
    assert labels is not None  # which `open_predictions` has seen to
    best = np.concatenate([rows[:, 0] for rows in file.best(1)])
    return np.asarray(best != labels)[_sort_places(file)]


def _sort_places(file: PredictionFile) -> NDArray[np.intp]:
    keys = file.keys
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.intp)


def _read_perturbations(predictions: Predictions, model: str, difficulty: int) -> Scores:
    flips: dict[str, Floats] = {}
    distances: dict[str, Floats] = {}
    # Noises have harder sequences of their own; of the others, frames further apart are compared.
    arms = {name: _arm_at(name, difficulty) for name in _perturbations(predictions)}
    found = {name: predictions.files[arm] for name, arm in arms.items() if arm in predictions.files}
    for name, file in found.items():
        flips[name], distance = _instability(file, name, difficulty)
        if distance is not None:
            distances[name] = distance
    if len(distances) < len(flips):
        # They would be means over other perturbations than those beside them.
        distances = {}
    wanted = (_arm_at(name, difficulty) for name in metrics.COMMON_PERTURBATIONS)
    missing = tuple(arm for arm in wanted if arm not in predictions.files)
    return Scores(
        model,
        "p",
        len(predictions.keys),
        missing,
        flip_probabilities={name: _mean(each) for name, each in flips.items()},
        top5_distances={name: _mean(each) for name, each in distances.items()},
        flips=flips,
        distances=distances,
    )


def _mean(values: Floats) -> float:
    mean = RunningMean()
    mean.update(values)
    return mean.mean


def _perturbations(predictions: Predictions) -> list[str]:
    return list(dict.fromkeys(file.arm.name for file in predictions.files.values()))


def _arm_at(name: str, difficulty: int) -> str:
    harder = difficulty > 1 and name in metrics.NOISE_PERTURBATIONS
    return f"{name}_{difficulty}" if harder else name


def _instability(file: PredictionFile, name: str, difficulty: int) -> tuple[Floats, Floats | None]:
    """Flips, and distances where five classes are known, of the sequences in the order of their keys."""
    flips: list[Floats] = []
    distances: list[Floats] = []
    how: Any = {"noise": name in metrics.NOISE_PERTURBATIONS, "difficulty": difficulty}
    for best in file.best(file.lists):
        with prefix_errors(file.path):
            flips.append(metrics.sequence_flips(best[..., 0], **how))
            if file.lists == 5:
                distances.append(metrics.sequence_top5_distances(best, **how))
    order = _sort_places(file)
    return np.concatenate(flips)[order], np.concatenate(distances)[order] if distances else None
