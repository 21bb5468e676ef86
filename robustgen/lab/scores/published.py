"""Published scores for comparison, and the differences in how they were measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

import numpy as np

from robustgen.display.text import format_count
from robustgen.lab.scores.baselines import Baseline
from robustgen.lab.scores.measures import Measure
from robustgen.metrics.corruption_errors import read_published
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, Kind

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
