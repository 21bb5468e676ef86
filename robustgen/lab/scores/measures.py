"""Formulas of the papers, applied to models, and the values that normalise them or compare with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from robustgen import metrics
from robustgen.display.text import format_count
from robustgen.errors import ConfigError, UnknownNameError
from robustgen.lab.scores.results import ModelScores
from robustgen.metrics import COMMON_CORRUPTIONS, COMMON_PERTURBATIONS
from robustgen.metrics.classification import Floats
from robustgen.metrics.corruption_errors import FORMULAS, Formula, read_published
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, Kind
from robustgen.settings.yaml_files import read_yaml

# --- baselines ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """The values of another model, which normalise scores.

    Attributes
    ----------
    name : str
    clean_error : float or None
    errors : mapping of str to float or sequence of five floats
    flip_probabilities, top5_distances : mapping of str to float
    images : ModelScores or None
        The mistakes of the model on the images that it is compared on; None for values without images, which
        count as constants.
    """

    name: str
    clean_error: float | None = None
    errors: Mapping[str, Any] = field(default_factory=dict)
    flip_probabilities: Mapping[str, float] = field(default_factory=dict)
    top5_distances: Mapping[str, float] = field(default_factory=dict)
    images: ModelScores | None = None


ALEXNET: Final = Baseline(
    "AlexNet",
    metrics.ALEXNET_CLEAN_ERROR,
    metrics.ALEXNET_ERROR,
    metrics.ALEXNET_FLIP_PROBABILITY,
    metrics.ALEXNET_TOP5_DISTANCE,
)
"""The baseline of the published ImageNet-C and ImageNet-P numbers."""


def take_baseline(model: ModelScores) -> Baseline:
    """Return the scores of a model as the baseline of others."""
    means = (model.clean_error, model.errors, model.flip_probabilities, model.top5_distances)
    return Baseline(model.model, *means, model)


_BASELINE_KEYS = ("clean_error", "errors", "flip_probabilities", "top5_distances")


def read_baseline(path: Path) -> Baseline:
    """Read a baseline: the JSON of one model from `robustgen score --format json`, or similar YAML.

    Raises
    ------
    ConfigError
        The file cannot be read, or has several models or invalid values; the message names file and key.
    """
    content = read_yaml(path)
    models = content.get("models", [content])
    if not isinstance(models, list) or len(models) != 1 or not isinstance(models[0], dict):
        raise ConfigError(f"{path}: models: a baseline is one model")
    values = {key: models[0][key] for key in _BASELINE_KEYS if models[0].get(key) is not None}
    if not values.keys() - {"clean_error"}:
        raise ConfigError(f"{path}: has none of {', '.join(_BASELINE_KEYS[1:])}")
    if "models" not in content and (unexpected := content.keys() - set(_BASELINE_KEYS) - {"model"}):
        raise ConfigError(f"{path}: {UnknownNameError('key', str(min(unexpected)), _BASELINE_KEYS)}")
    for key, value in values.items():
        _check_values(f"{path}: {key}", value, mapping=key != "clean_error")
    return Baseline(str(models[0].get("model", path.stem)), **values)


def _check_values(where: str, value: Any, *, mapping: bool) -> None:
    if mapping != isinstance(value, dict):
        raise ConfigError(
            f"{where}: must be {'names with numbers' if mapping else 'a number'}, not {value!r}"
        )
    for name, numbers in value.items() if mapping else [("", value)]:
        parts = numbers if isinstance(numbers, list) and where.endswith(": errors") else [numbers]
        if not all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in parts):
            raise ConfigError(f"{where}{'.' if name else ''}{name}: must be a number, not {numbers!r}")


# --- measures -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Measure:
    """A formula, applied to all models.

    Attributes
    ----------
    formula : Formula
    title : str
        Title of its table.
    divisors : dict of str to float
        The baseline's value for each operation; 1 without normalisation.
    values : tuple of dict
        For each model, the value of each operation.
    base : Baseline or None
        The model whose values normalise it, if there is one.
    """

    formula: Formula
    title: str
    divisors: dict[str, float]
    values: tuple[dict[str, float], ...]
    base: Baseline | None = None

    @property
    def baseline(self) -> str | None:
        """Return the name of the baseline, if there is one."""
        return self.base.name if self.base else None

    @property
    def is_ratio(self) -> bool:
        """Return whether it is divided by what a baseline does on the same images."""
        return self.base is not None and self.base.images is not None

    def is_own(self, model: ModelScores) -> bool:
        """Return whether a model and the baseline make the same mistakes."""
        assert self.base is not None and self.base.images is not None
        base, quantity = self.base.images, self.formula.quantity
        held = {"errors": "mistakes", "flip_probabilities": "flips", "top5_distances": "distances"}[quantity]
        own, other = getattr(model, held), getattr(base, held)
        return all(np.array_equal(each, other.get(name)) for name, each in own.items())

    @cached_property
    def key(self) -> str:
        """Return its name in CSV and JSON."""
        return self.formula.key

    def contributions(self, model: ModelScores, name: str) -> Floats:
        """Return the share of each image, sequence or sample of `model` in its value of an operation."""
        values, clean = model.measured(self.formula, name)
        return self.formula.combine(values, clean) / self.divisors[name]

    def influences(self, model: ModelScores, name: str) -> Floats:
        """Return values of images whose mean is the ratio, and which vary to first order as it does."""
        assert self.base is not None and self.base.images is not None
        own = self.contributions(model, name)
        other = self.contributions(replace(self.base.images, levels=model.levels), name)
        found: Floats = own - own.mean() * (other - 1)
        return found

    def average(self, model: ModelScores, names: Sequence[str]) -> float:
        """Return the mean of a model's values over some operations."""
        means = model.means
        return float(np.mean([self.contributions(means, name) for name in names]))


def make_measures(
    models: Sequence[ModelScores], baseline: Baseline | None, partial: bool = False
) -> list[Measure]:
    """Return all measures for the scores of `models`, all of one benchmark.

    `partial` omits operations without a baseline value, also common ones.

    Raises
    ------
    ArgumentError
        The baseline lacks a value, or contains one that cannot be a divisor.
    """
    made = (_measure(formula, models, baseline or Baseline(""), partial) for formula in FORMULAS)
    return [measure for measure in made if any(measure.values)]


def _measure(formula: Formula, models: Sequence[ModelScores], baseline: Baseline, partial: bool) -> Measure:
    reduced = [model.means for model in models]
    names = [_select(formula, model, baseline, partial) for model in models]
    of_baseline = getattr(baseline, formula.quantity)
    every = dict.fromkeys(name for own in names for name in own)
    divisors = {name: formula.divisor(name, of_baseline, baseline.clean_error) for name in every}
    title = formula.title.format(baseline.name if formula.normalised else models[0].describe_levels())
    measure = Measure(formula, title, divisors, (), baseline if formula.normalised else None)
    values = tuple(
        {name: float(measure.contributions(model, name)) for name in own}
        for model, own in zip(reduced, names, strict=True)
    )
    return replace(measure, values=values)


def _select(formula: Formula, model: ModelScores, baseline: Baseline, partial: bool) -> list[str]:
    """Return the operations of `model` for which the formula is defined."""
    if not (model.complete or formula.any_severities) or (formula.clean and model.clean_error is None):
        return []
    names = [*getattr(model, formula.quantity)]
    if not formula.normalised:
        return names
    known = getattr(baseline, formula.quantity)
    if formula.clean:
        # Corruptions that do not make the baseline worse have no relative error.
        clean = baseline.clean_error
        return [] if clean is None else [n for n in names if n in known and np.mean(known[n]) > clean]
    # The user's operations have no baseline value; a missing value of the benchmark's is an error.
    common = set() if partial else {*COMMON_CORRUPTIONS, *COMMON_PERTURBATIONS}
    return [name for name in names if known and name in common | known.keys()]


# --- published values -----------------------------------------------------------------------------

TABLES: Final = ("paper", "robustbench")
"""Tables of classifiers, by the names of their files; AlexNet's is the baseline itself."""


@dataclass(frozen=True)
class PublishedTable:
    """Origin of published values.

    Attributes
    ----------
    title, source, terms : str
    images : str
        The images of the measurement.
    """

    title: str
    source: str
    terms: str
    images: str

    def describe(self) -> str:
        """Return the line with images, source and terms."""
        return f"{self.title}: {self.images}. {self.source}. {self.terms}."


@dataclass(frozen=True)
class PublishedModel:
    """The published values of a model.

    Attributes
    ----------
    model : str
    table : PublishedTable
    content : dict
        ``clean_error``, ``errors`` and ``scores``, as in the table's file.
    """

    model: str
    table: PublishedTable
    content: Mapping[str, Any]

    @property
    def clean_error(self) -> float | None:
        """Return the top-1 error on clean images."""
        return self.content.get("clean_error")

    def values(self, measure: Measure, baseline: Baseline | None) -> dict[str, float]:
        """Return the values of a measure by operation, as published or from published errors."""
        formula = measure.formula
        printed = self.content.get("scores", {}).get(formula.key)
        if printed:
            return dict(printed["values"]) if _is_alexnet(baseline) else {}
        measured = self.content.get(formula.quantity, {})
        base = getattr(baseline, formula.quantity, {})
        # Means over severities, such as AlexNet's, lack the separate last severity.
        whole = [name for name, each in measured.items() if isinstance(each, list) or not formula.last]
        names = [name for name in whole if not formula.normalised or name in base]
        clean = baseline.clean_error if baseline else None
        return {
            name: float(formula.combine(np.atleast_1d(measured[name]), self.clean_error))
            / formula.divisor(name, base, clean)
            for name in names
        }

    def mean(self, measure: Measure, baseline: Baseline | None, names: Sequence[str]) -> float | None:
        """Return the published mean of a measure, or that of its values over `names`."""
        printed = self.content.get("scores", {}).get(measure.formula.key)
        if printed and _is_alexnet(baseline) and len(names) == len(printed["values"] or names):
            return float(printed["mean"])
        values = self.values(measure, baseline)
        return fmean(values[name] for name in names) if names and {*names} <= values.keys() else None


def _is_alexnet(baseline: Baseline | None) -> bool:
    return baseline is not None and baseline.name == "AlexNet"


def read_models(kind: Kind) -> list[PublishedModel]:
    """Return the published models that have values on C or on P sets, AlexNet's first."""
    found = []
    keys = {"c": ("errors", "corruption_error"), "p": ("flip_probabilities", "flip_rate")}[kind]
    for name in ("alexnet", *TABLES):
        content = read_published(name)
        table = PublishedTable(*(content[key] for key in ("title", "source", "terms", "images")))
        for each in content["models"]:
            if any(key in each or key in each.get("scores", {}) for key in keys):
                label = each["model"] if name != "robustbench" else f"{each['model']} (RobustBench)"
                found.append(PublishedModel(label, table, each))
    return found


def describe_differences(models: Sequence[PublishedModel], kind: Kind, images: int, origin: str) -> list[str]:
    """Return lines on the differences between published values and the user's: images, files, sources.

    `origin` is the creator of the predicted images. Without `models` there are no lines.
    """
    if not models:
        return []
    noun = BENCHMARKS[kind].noun
    tables = dict.fromkeys(model.table for model in models)
    own = f"Yours: {format_count(images, noun)}, {origin}."
    return [own, *(table.describe() for table in tables)]
