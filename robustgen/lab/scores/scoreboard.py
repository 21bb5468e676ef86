"""Comparison of models: all values of the tables of the papers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from robustgen.display.text import format_count
from robustgen.lab.scores.family_means import FamilyMean, compute_family_means
from robustgen.lab.scores.intervals import (
    FEW_IMAGES,
    SIGNIFICANT,
    Difference,
    Interval,
    Uncertainty,
    warn_of_few,
)
from robustgen.lab.scores.measures import Baseline, Measure, PublishedModel, make_measures
from robustgen.lab.scores.results import ModelScores
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, IMAGENET_C, TITLES, Benchmark, Kind


@dataclass(frozen=True)
class Scoreboard:
    """A comparison of models.

    Attributes
    ----------
    models : list of ModelScores
    baseline : Baseline or None
    difficulty : int
    notes : list of str
        Notes for readers of the tables.
    replicates : int
        Bootstrap samples of what is resampled; 0 for no intervals.
    partial : bool
        Whether to omit operations without a baseline value.
    published : sequence of PublishedModel
        Published models to compare with.
    origin : str
        Creator of the images, for these.
    folders : sequence of path or URL
        The predictions of the models.
    unfinished : sequence of path or URL
        Folders that are not scored, because their predictions are incomplete.
    inputs : sequence of str
        Lines on what the models were given, if their folders record it.
    compares : bool
        Whether to compare with published values.
    """

    models: list[ModelScores]
    baseline: Baseline | None
    difficulty: int
    notes: list[str]
    replicates: int = 1000
    partial: bool = False
    published: Sequence[PublishedModel] = ()
    origin: str = ""
    folders: Sequence[str | Path] = ()
    unfinished: Sequence[str | Path] = ()
    inputs: Sequence[str] = ()
    compares: bool = False

    @property
    def kind(self) -> Kind:
        """Return the letter of the benchmark."""
        return self.models[0].kind

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the content of `predictions.json` of the first model; empty without this file."""
        return self.models[0].settings

    @property
    def all_notes(self) -> list[str]:
        """Return the notes for readers of the tables, also those on the intervals."""
        told = format_count(self.models[0].count, self.benchmark.noun)
        few = f"{told}: so few that intervals are wide, and those of means only approximate"
        too_few = f"too few to tell the models apart ({told}): no difference could be significant"
        is_few = self.replicates > 0 and self.models[0].count < FEW_IMAGES
        return [*self.notes, *[few] * is_few, *[too_few] * self.has_too_few, *warn_of_few(self.replicates)]

    @property
    def has_too_few(self) -> bool:
        """Return whether the images are too few for any difference of models to be significant."""
        comparisons = (len(self.models) - 1) * (self.replicates > 0)
        return comparisons * 2.0 ** (1 - self.models[0].count) >= SIGNIFICANT

    @property
    def benchmark(self) -> Benchmark:
        """Return the benchmark of the sets."""
        return TITLES.get(str(self.settings.get("title")), BENCHMARKS[self.kind])

    @cached_property
    def measures(self) -> list[Measure]:
        """Return the measures that are possible for the scores."""
        return make_measures(self.models, self.baseline, self.partial)

    @cached_property
    def families(self) -> list[FamilyMean]:
        """Return the means of other families of corruptions, if all of their severities exist."""
        edition = str(self.settings.get("edition") or "")
        if self.kind == "p":
            return []
        # Clips have further scores, which include ImageNet-C's corruptions.
        apart = IMAGENET_C.names if self.benchmark is IMAGENET_C else ()
        return compute_family_means(self.models, edition, lambda: self.uncertainty, apart=apart)

    @cached_property
    def uncertainty(self) -> Uncertainty | None:
        """Return the intervals and tests of all values, if they are wanted."""
        measures = {measure: self.averaged(measure) for measure in self.measures}
        return Uncertainty(self.models, measures, self.replicates) if self.replicates else None

    def names(self, measure: Measure) -> list[str]:
        """Return the common operations, and others that some model has."""
        there = {name for row in measure.values for name in row}
        extra = [name for name in self.benchmark.extra if name in there]
        return [*self.benchmark.common, *extra, *sorted(there - {*self.benchmark.names})]

    def averaged(self, measure: Measure) -> tuple[str, ...]:
        """Return the common operations that every model has, which the means include."""
        return tuple(name for name in self.benchmark.common if all(name in row for row in measure.values))

    def mean(self, measure: Measure, model: ModelScores) -> float | None:
        """Return the mean over `averaged`."""
        names = self.averaged(measure)
        return measure.average(model, names) if names else None

    def interval(self, index: int, measure: str, name: str) -> Interval | None:
        """Return the interval of a value of the model with index `index`; None if it has none."""
        return self.uncertainty.interval(index, measure, name) if self.uncertainty else None

    def family_interval(self, index: int, place: int, name: str = "") -> Interval | None:
        """Return the interval of a model's mean error on a family, or on one of its corruptions."""
        if not self.uncertainty:
            return None
        family = self.families[place]
        names = [name] if name else family.names
        folders = [IMAGENET_C.variant(each, level).folder for each in names for level in family.levels]
        return self.uncertainty.mean_interval(index, folders)

    def differences(self) -> list[Difference]:
        """Return the differences of the means of all other models from those of the first."""
        return self.uncertainty.differences() if self.uncertainty else []


def name_mean(report: Scoreboard, measure: Measure) -> str:
    """Return the symbol of a mean; one over fewer operations than the papers' has another."""
    used, common = report.averaged(measure), report.benchmark.common
    return measure.formula.mean if used == common else f"{measure.formula.symbol} ({len(used)}/{len(common)})"
