"""Formulas of the papers, applied to models, and the values that normalise them or compare with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from robustgen import metrics
from robustgen.display.text import format_count
from robustgen.errors import ConfigError, UnknownNameError
from robustgen.lab.scores.intervals import (
    BOOTSTRAP_T,
    MEAN,
    RATIO,
    WILSON,
    Contribution,
    PublishedScore,
    Score,
    Unit,
)
from robustgen.lab.scores.results import ModelScores
from robustgen.metrics import COMMON_CORRUPTIONS, COMMON_PERTURBATIONS
from robustgen.metrics.classification import Floats
from robustgen.metrics.corruption_errors import FORMULAS, LARGEST, Formula, read_published
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, IMAGENET_C, Kind
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


def make_measures(
    models: Sequence[ModelScores],
    baseline: Baseline | None,
    partial: bool = False,
    *,
    common: Sequence[str] = COMMON_CORRUPTIONS,
    replicates: int = 0,
    published: Sequence["PublishedModel"] = (),
) -> list[Score]:
    """Return the scores of all formulas for `models`, all of one benchmark.

    `partial` omits operations without a baseline value, also common ones. Means are over the `common`
    operations that all models have.

    Raises
    ------
    ArgumentError
        The baseline lacks a value, or contains one that cannot be a divisor.
    """
    base = baseline or Baseline("")
    made = [_apply(formula, models, base, partial, common) for formula in FORMULAS]
    return [
        replace(
            score,
            replicates=replicates,
            published=tuple(each.score(formula, baseline, score.names) for each in published),
        )
        for formula, score in zip(FORMULAS, made, strict=True)
        if any(score.values)
    ]


def _apply(
    formula: Formula, models: Sequence[ModelScores], baseline: Baseline, partial: bool, common: Sequence[str]
) -> Score:
    """Return a formula's values of all models, each image's share in them, and the means."""
    chosen = [_select(formula, model, baseline, partial) for model in models]
    of_baseline, images = getattr(baseline, formula.quantity), baseline.images if formula.normalised else None
    divisors = {
        name: formula.divisor(name, of_baseline, baseline.clean_error)
        for name in dict.fromkeys(name for own in chosen for name in own)
    }
    averaged = tuple(name for name in common if all(name in own for own in chosen))

    def divide(model: ModelScores, name: str) -> Floats:
        """Return the share of each image, sequence or sample of `model` in its value of an operation."""
        values, clean = model.measured(formula, name)
        return formula.combine(values, clean) / divisors[name]

    def influence(model: ModelScores, name: str) -> Floats:
        """Return values of images whose mean is the ratio, and which vary to first order as it does."""
        own = divide(model, name)
        if images is None:
            return own
        found: Floats = own - own.mean() * (divide(replace(images, levels=model.levels), name) - 1)
        return found

    def combine(index: int, names: Sequence[str]) -> Contribution:
        model = models[index]
        ends = np.mean([divide(_take_extremes(model, name), name) for name in names], axis=0)
        rows = np.mean([influence(model, name) for name in names], axis=0)
        return Contribution(rows, float(ends.min()), float(ends.max()), is_own(index))

    @cache
    def is_own(index: int) -> bool:
        """Return whether a model and the baseline make the same mistakes."""
        held = {"errors": "mistakes", "flip_probabilities": "flips", "top5_distances": "distances"}
        quantity = held[formula.quantity]
        own, other = getattr(models[index], quantity), getattr(images, quantity, {})
        return bool(images) and all(np.array_equal(each, other.get(name, ())) for name, each in own.items())

    # All intervals and differences need the means.
    average = cache(lambda index: combine(index, averaged))
    values = tuple(
        {name: float(divide(model.means, name)) for name in own}
        for model, own in zip(models, chosen, strict=True)
    )
    return Score(
        formula.key,
        formula.mean if averaged == (*common,) else f"{formula.symbol} ({len(averaged)}/{len(common)})",
        Unit(formula.factor, formula.digits),
        averaged,
        values,
        tuple(float(np.mean([row[name] for name in averaged])) if averaged else None for row in values),
        lambda index, name: average(index) if name == MEAN else combine(index, [name]),
        title=formula.title.format(baseline.name if formula.normalised else models[0].describe_levels()),
        symbol=formula.symbol,
        base=baseline.name if formula.normalised else "",
        method=WILSON if images is None else BOOTSTRAP_T if formula.clean else RATIO,
    )


_SEQUENCES: Final = ("flip_probabilities", "top5_distances")


def _take_extremes(model: ModelScores, name: str) -> ModelScores:
    """Return the scores with the extreme values of images on an operation in place of the images."""
    # Relative scores are smallest where the clean error is largest.
    folders = [IMAGENET_C.variant(name, level).folder for level in model.levels]
    mistakes = {folder: np.array([0, 1, 0, 1]) for folder in folders} | {CLEAN: np.array([0, 1, 1, 0])}
    flips, distances = ({name: np.array([0, LARGEST[each], 0, LARGEST[each]])} for each in _SEQUENCES)
    return replace(model, mistakes=mistakes, flips=flips, distances=distances)


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

    def score(self, formula: Formula, baseline: Baseline | None, names: Sequence[str]) -> PublishedScore:
        """Return a formula's values, as published or from published errors, and their mean over `names`."""
        values = self._list_values(formula, baseline)
        printed = self.content.get("scores", {}).get(formula.key)
        if printed and _is_alexnet(baseline) and len(names) == len(printed["values"] or names):
            return PublishedScore(self.model, float(printed["mean"]), values)
        known = names and {*names} <= values.keys()
        return PublishedScore(self.model, fmean(values[name] for name in names) if known else None, values)

    def _list_values(self, formula: Formula, baseline: Baseline | None) -> dict[str, float]:
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
