"""Mistakes of a model: its errors, or its flips and top-5 distances, computed from its predictions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen import metrics
from robustgen.lab.evaluation.predictions import PredictionFile, Predictions, prefix_errors
from robustgen.metrics.classification import Floats
from robustgen.metrics.corruption_errors import IMAGENET_CLASSES, Formula
from robustgen.metrics.flips import frame_pairs
from robustgen.pixels.benchmarks.kinds import CLEAN, IMAGENET_C, Kind, parse_variant

FILES_AHEAD: Final = 4
"""Number of files on a server that are read at once; each takes up to 64 MB of memory."""


@dataclass(frozen=True)
class ModelScores:
    """Mistakes of one model, image by image, computed from its predictions.

    Attributes
    ----------
    model : str
    kind : {"c", "p"}
    count : int
        Number of images or sequences.
    missing : tuple of str
        Variants of a complete set that this one lacks.
    levels : tuple of int
        The severities that errors are averaged over.
    mistakes : dict
        Folder of a variant to whether each image is classified wrongly, (count,), by sorted keys.
    flips, distances : dict
        Perturbation to share of flips, and to mean top-5 distance, of each sequence, in the same order.
    labels : ndarray, optional
        True classes of the images, (count,), in the same order.
    superclass_mistakes : dict
        For families with a superclass accuracy, folder of a variant to whether each image of a superclass is
        mistaken for another one.
    settings : dict
        Content of the `predictions.json` beside them; empty without this file.
    seeds : tuple of ModelScores
        The runs of a model with several seeds, whose mistakes are means over them; empty for a single run.
    """

    model: str
    kind: Kind
    count: int
    missing: tuple[str, ...]
    levels: tuple[int, ...] = IMAGENET_C.levels
    mistakes: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    flips: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    distances: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    labels: NDArray[Any] | None = field(default=None, repr=False)
    superclass_mistakes: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    seeds: "tuple[ModelScores, ...]" = ()

    @property
    def runs(self) -> "tuple[ModelScores, ...]":
        """Return the seeds, or the only run."""
        return self.seeds or (self,)

    @cached_property
    def means(self) -> "ModelScores":
        """Return the scores with means over images in place of the images."""
        return self.reduce(lambda columns: {name: np.mean(each) for name, each in columns.items()})

    def reduce(self, function: Callable[[Mapping[str, NDArray[Any]]], Mapping[str, Any]]) -> "ModelScores":
        """Return the scores after applying `function` to the values of images, such as means of samples."""
        return replace(
            self,
            mistakes=function(self.mistakes),
            flips=function(self.flips),
            distances=function(self.distances),
        )

    def measured_mistakes(self, corruption: str) -> NDArray[Any]:
        """Return which images are classified wrongly at each of `levels`: (levels, count)."""
        return np.array(
            [self.mistakes[IMAGENET_C.variant(corruption, level).folder] for level in self.levels]
        )

    def measured(self, formula: Formula, name: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return a formula's inputs for an operation: values (levels, ...), and those on clean images."""
        if formula.quantity == "errors":
            return self.measured_mistakes(name), self.mistakes.get(CLEAN)
        values = self.flips if formula.quantity == "flip_probabilities" else self.distances
        return np.asarray(values[name])[None], None

    @property
    def clean_error(self) -> float | None:
        """Return the top-1 error on the clean images."""
        return float(self.means.mistakes[CLEAN]) if CLEAN in self.mistakes else None

    @cached_property
    def severities(self) -> dict[str, dict[float, float]]:
        """Return the top-1 error by corruption and severity."""
        found: dict[str, dict[float, float]] = {}
        for folder, error in self.means.mistakes.items():
            variant = parse_variant(folder, "c")
            if folder != CLEAN:
                found.setdefault(variant.name, {})[variant.level] = float(error)
        return found

    @cached_property
    def errors(self) -> dict[str, list[float]]:
        """Return the errors at `levels` of the corruptions that have all of them."""
        return {
            name: [by_level[level] for level in self.levels]
            for name, by_level in self.severities.items()
            if by_level.keys() >= {*self.levels}
        }

    @property
    def flip_probabilities(self) -> dict[str, float]:
        """Return the flip probability of each perturbation."""
        return {name: float(each) for name, each in self.means.flips.items()}

    @property
    def top5_distances(self) -> dict[str, float]:
        """Return the mean top-5 distance of each perturbation."""
        return {name: float(each) for name, each in self.means.distances.items()}

    @property
    def complete(self) -> bool:
        """Return whether errors are averaged over all five severities."""
        return self.levels == IMAGENET_C.levels

    def describe_levels(self) -> str:
        """Return the severities in the means, for titles."""
        word = "severity" if len(self.levels) == 1 else "severities"
        return "severities" if self.complete else f"{word} {', '.join(map(str, self.levels))} only"


def join_seeds(name: str, seeds: Sequence[ModelScores]) -> ModelScores:
    """Return a model whose mistakes are means over those of its seeds, where all have them."""

    def average(columns: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        shared = [key for key in columns[0] if all(key in each for each in columns)]
        return {key: np.mean([each[key] for each in columns], axis=0) for key in shared}

    return replace(
        seeds[0],
        model=name,
        missing=tuple(dict.fromkeys(folder for each in seeds for folder in each.missing)),
        mistakes=average([each.mistakes for each in seeds]),
        flips=average([each.flips for each in seeds]),
        distances=average([each.distances for each in seeds]),
        seeds=tuple(seeds),
    )


def read_scores(predictions: Predictions, model: str, difficulty: int = 1) -> ModelScores:
    """Reduce all predictions of one model to errors, or to flip probabilities and top-5 distances.

    Raises
    ------
    SourceError
        Predictions are not numbers or classes; the message names the file.
    """
    read = _read_corruptions if predictions.kind == "c" else _read_perturbations
    return replace(read(predictions, model, difficulty), settings=predictions.settings)


def _read_corruptions(predictions: Predictions, model: str, _: int) -> ModelScores:
    files = predictions.files
    found = predictions.store.map(_find_mistakes, files.values(), FILES_AHEAD)
    mistakes = dict(zip(files, found, strict=True))
    first = next(iter(files.values()))
    assert first.labels is not None
    by_superclass = {
        folder: file
        for folder, file in files.items()
        if _has_superclass_accuracy(file) and file.has_logits and file.classes == IMAGENET_CLASSES
    }
    found = predictions.store.map(_find_superclass_mistakes, by_superclass.values(), FILES_AHEAD)
    superclass_mistakes = dict(zip(by_superclass, found, strict=True))
    return ModelScores(
        model,
        "c",
        len(predictions.keys),
        list_missing(predictions),
        mistakes=mistakes,
        labels=first.labels[_sort_places(first.keys)],
        superclass_mistakes=superclass_mistakes,
    )


def has_common(predictions: Predictions) -> bool:
    """Return whether any predictions are of the benchmark's corruptions, not only of other families."""
    names = {file.variant.name for file in predictions.files.values()} - {CLEAN}
    return not names or any(name in IMAGENET_C.names for name in names)


def list_missing(predictions: Predictions, difficulty: int = 1) -> tuple[str, ...]:
    """Return the folders of a complete set that the predictions lack.

    These are of the common operations, or of other families the available corruptions.
    """
    return tuple(
        folder for folder in _list_wanted(predictions, difficulty) if folder not in predictions.files
    )


def _list_wanted(predictions: Predictions, difficulty: int) -> list[str]:
    if predictions.kind == "p":
        return [_variant_at(name, difficulty) for name in metrics.COMMON_PERTURBATIONS]
    if has_common(predictions):
        pairs = [(name, level) for name in IMAGENET_C.common for level in IMAGENET_C.levels]
    else:
        from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS

        names = dict.fromkeys(file.variant.name for file in predictions.files.values())
        known = {name: ALL_CORRUPTIONS[name].severities for name in names if name in ALL_CORRUPTIONS}
        pairs = [(name, level) for name, levels in known.items() for level in levels if level]
    return [IMAGENET_C.variant(name, level).folder for name, level in pairs]


def _has_superclass_accuracy(file: PredictionFile) -> bool:
    if ":" not in file.variant.name:
        return False
    from robustgen.pixels.benchmarks.corruptions import find_family
    from robustgen.pixels.benchmarks.registry import SUPERCLASS_ACCURACY

    family = find_family(file.variant.name)
    return family is not None and family.measure == SUPERCLASS_ACCURACY


def _find_superclass_mistakes(file: PredictionFile) -> NDArray[np.bool_]:
    """Return which images of the sixteen superclasses are mistaken for another one.

    Class folders may be the superclasses themselves, as in the published set, or those of ImageNet.
    """
    names = {name: number for number, name in enumerate(metrics.list_superclasses())}
    folders = [key.partition("/")[0] for key in file.keys]
    assert file.labels is not None
    truth = (
        np.array([names[folder] for folder in folders])
        if {*folders} <= names.keys()
        else metrics.superclass_labels(file.labels)
    )
    found = [metrics.superclass_predictions(metrics.softmax(rows)) for rows in file.logits()]
    return np.asarray(np.concatenate(found) != truth)[truth >= 0]


def _find_mistakes(file: PredictionFile) -> NDArray[np.bool_]:
    """Return which images are classified wrongly, in the order of sorted keys."""
    labels = file.labels
    assert labels is not None  # checked by `open_predictions`
    best = np.concatenate([rows[:, 0] for rows in file.best(1)])
    return np.asarray(best != labels)[_sort_places(file.keys)]


@lru_cache(maxsize=2)
def _sort_places(keys: tuple[str, ...]) -> NDArray[np.intp]:
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.intp)


def _read_perturbations(predictions: Predictions, model: str, difficulty: int) -> ModelScores:
    # Noises have harder sequences; for the others, frames further apart are compared.
    variants = {name: _variant_at(name, difficulty) for name in _perturbations(predictions)}
    found = {
        name: predictions.files[variant] for name, variant in variants.items() if variant in predictions.files
    }
    values = predictions.store.map(
        lambda name: _instability(found[name], name, difficulty), found, FILES_AHEAD
    )
    measured = dict(zip(found, values, strict=True))
    flips = {name: own for name, (own, _) in measured.items()}
    distances = {name: own for name, (_, own) in measured.items() if own is not None}
    if len(distances) < len(flips):
        # Their means would be over other perturbations than those of other columns.
        distances = {}
    missing = list_missing(predictions, difficulty)
    return ModelScores(model, "p", len(predictions.keys), missing, flips=flips, distances=distances)


def _perturbations(predictions: Predictions) -> list[str]:
    return list(dict.fromkeys(file.variant.name for file in predictions.files.values()))


def flip_curves(predictions: Predictions, difficulty: int = 1) -> dict[str, list[float]]:
    """Return the share of sequences that flip at each pair of frames, for each perturbation."""
    variants = {name: _variant_at(name, difficulty) for name in _perturbations(predictions)}
    names = [name for name, variant in variants.items() if variant in predictions.files]
    curves = predictions.store.map(
        lambda name: _flip_curve(predictions.files[variants[name]], name, difficulty), names, FILES_AHEAD
    )
    return dict(zip(names, curves, strict=True))


def _flip_curve(file: PredictionFile, name: str, difficulty: int) -> list[float]:
    total, count = np.zeros(0), 0
    for best in file.best(1):
        with prefix_errors(file.path):
            before, after = frame_pairs(best[..., 0], name in metrics.NOISE_PERTURBATIONS, difficulty)
        flips = (before != after).sum(axis=0)
        total, count = (flips if not count else total + flips), count + len(best)
    curve: list[float] = (total / count).tolist()
    return curve


def _variant_at(name: str, difficulty: int) -> str:
    harder = difficulty > 1 and name in metrics.NOISE_PERTURBATIONS
    return f"{name}_{difficulty}" if harder else name


def _instability(file: PredictionFile, name: str, difficulty: int) -> tuple[Floats, Floats | None]:
    """Return flips, and distances if five classes are known, of the sequences in order of their keys."""
    flips: list[Floats] = []
    distances: list[Floats] = []
    how: Any = {"noise": name in metrics.NOISE_PERTURBATIONS, "difficulty": difficulty}
    for best in file.best(file.lists):
        with prefix_errors(file.location):
            flips.append(metrics.sequence_flips(best[..., 0], **how))
            if file.lists == 5:
                distances.append(metrics.sequence_top5_distances(best, **how))
    order = _sort_places(file.keys)
    return np.concatenate(flips)[order], np.concatenate(distances)[order] if distances else None
