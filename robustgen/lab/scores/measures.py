"""The formulas of the papers, applied to models: values of operations, their means, shares of images."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robustgen.lab.scores.baselines import Baseline
from robustgen.lab.scores.results import ModelScores
from robustgen.metrics import COMMON_CORRUPTIONS, COMMON_PERTURBATIONS
from robustgen.metrics.classification import Floats
from robustgen.metrics.corruption_errors import FORMULAS, Formula


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
    baseline : str or None
        Name of the baseline, if there is one.
    """

    formula: Formula
    title: str
    divisors: dict[str, float]
    values: tuple[dict[str, float], ...]
    baseline: str | None = None

    @cached_property
    def key(self) -> str:
        """Return its name in CSV and JSON."""
        return self.formula.key

    def contributions(self, model: ModelScores, name: str) -> Floats:
        """Return the share of each image, sequence or sample of `model` in its value of an operation."""
        values, clean = model.measured(self.formula, name)
        return self.formula.combine(values, clean) / self.divisors[name]

    def average(self, model: ModelScores, names: Sequence[str]) -> float:
        """Return the mean of a model's values over some operations."""
        means = model.means
        return float(np.mean([self.contributions(means, name) for name in names]))


def make_measures(
    models: Sequence[ModelScores], baseline: Baseline | None, partial: bool = False
) -> list[Measure]:
    """Return all measures for the scores of `models`, all of one kind.

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
    measure = Measure(formula, title, divisors, (), baseline.name if formula.normalised else None)
    values = tuple(
        {name: float(measure.contributions(model, name)) for name in own}
        for model, own in zip(reduced, names, strict=True)
    )
    return Measure(formula, title, divisors, values, measure.baseline)


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
