"""Comparison of models: all values of the tables of the papers."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from robustgen.display.text import format_count
from robustgen.lab.scores.family_means import list_families
from robustgen.lab.scores.intervals import (
    FEW_IMAGES,
    SIGNIFICANT,
    Contribution,
    Difference,
    Score,
    ScoreGroup,
    Unit,
    warn_of_few,
)
from robustgen.lab.scores.measures import Baseline, PublishedModel, describe_differences, make_measures
from robustgen.lab.scores.results import ModelScores
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, IMAGENET_C, TITLES, Benchmark, Kind
from robustgen.settings.scoring import ModelFacts


@dataclass(frozen=True)
class Scoreboard:
    """A comparison of models.

    Attributes
    ----------
    models : list of ModelScores
    baseline : Baseline or None
    difficulty : int
    remarks : sequence of str
        Notes for readers of the tables, in addition to those that follow from the scores.
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
    facts : mapping of str to ModelFacts
        What is known of the models, by their names.
    """

    models: Sequence[ModelScores]
    baseline: Baseline | None = None
    _: KW_ONLY
    difficulty: int = 1
    remarks: Sequence[str] = ()
    replicates: int = 1000
    partial: bool = False
    published: Sequence[PublishedModel] = ()
    origin: str = ""
    folders: Sequence[str | Path] = ()
    unfinished: Sequence[str | Path] = ()
    inputs: Sequence[str] = ()
    compares: bool = False
    facts: Mapping[str, ModelFacts] = field(default_factory=dict)

    @cached_property
    def runs(self) -> list[ModelScores]:
        """Return the models, and of those with several seeds each of these."""
        return [run for model in self.models for run in model.runs]

    def _join(self, scores: Sequence[Score]) -> list[Score]:
        """Return scores of the runs as those of the models."""
        if len(self.runs) == len(self.models):
            return [*scores]
        ends = [*accumulate((len(model.runs) for model in self.models), initial=0)]
        places = [range(*pair) for pair in pairwise(ends)]
        return [score.join(places) for score in scores]

    @property
    def kind(self) -> Kind:
        """Return the letter of the benchmark."""
        return self.models[0].kind

    @property
    def count(self) -> int:
        """Return the number of images or sequences."""
        return self.models[0].count

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the content of `predictions.json` of the first model; empty without this file."""
        return self.models[0].settings

    @property
    def notes(self) -> list[str]:
        """Return the notes for readers of the tables, also those on published values and intervals."""
        told = format_count(self.count, self.benchmark.noun)
        few = f"{told}: so few that intervals are wide, and those of means only approximate"
        too_few = f"too few to tell the models apart ({told}): no difference could be significant"
        is_few = self.replicates > 0 and self.count < FEW_IMAGES
        sources = describe_differences(self.published, self.kind, self.count, self.origin)
        lacking = [note for group in self.groups for note in group.notes]
        more = [*[few] * is_few, *[too_few] * self.has_too_few, *warn_of_few(self.replicates)]
        return [*self.remarks, *sources, *lacking, *more]

    @property
    def has_too_few(self) -> bool:
        """Return whether the images are too few for any difference of models to be significant."""
        comparisons = (len(self.models) - 1) * (self.replicates > 0)
        return comparisons * 2.0 ** (1 - self.count) >= SIGNIFICANT

    @property
    def benchmark(self) -> Benchmark:
        """Return the benchmark of the sets."""
        return TITLES.get(str(self.settings.get("title")), BENCHMARKS[self.kind])

    @cached_property
    def clean(self) -> Score:
        """Return the top-1 error on the clean images."""
        score = Score(
            "clean_error",
            "Clean",
            Unit(),
            (),
            tuple({} for _ in self.runs),
            tuple(run.clean_error for run in self.runs),
            lambda index, _: Contribution(np.asarray(self.runs[index].mistakes[CLEAN], np.float64), 0, 1),
            self.replicates,
        )
        return self._join([score])[0]

    @cached_property
    def measures(self) -> list[Score]:
        """Return the benchmark's scores that are possible."""
        made = make_measures(
            self.runs,
            self.baseline,
            self.partial,
            common=self.benchmark.common,
            replicates=self.replicates,
            published=self.published,
        )
        return self._join(made)

    @cached_property
    def groups(self) -> list[ScoreGroup]:
        """Return the scores that have means: the benchmark's, and those of other families.

        The scores of sets without any mean are the benchmark's.
        """
        edition = str(self.settings.get("edition") or "")
        # Clips have further scores, which include ImageNet-C's corruptions.
        named = [each for each in self.measures if each.names]
        apart = IMAGENET_C.names if self.benchmark is IMAGENET_C and named else ()
        found = list_families(self.runs, edition, self.replicates, apart) if self.kind == "c" else []
        families = [replace(each, scores=tuple(self._join(each.scores))) for each in found]
        own = named or ([] if families else self.measures)
        if not own:
            return families
        categories, used, common = self.benchmark.categories, own[0].names, self.benchmark.common
        panels = {title: tuple(name for name in names if name in used) for title, names in categories.items()}
        of = format_count(len(common), self.benchmark.operation)
        lacking = f" (incomplete: mean over {len(used)} of {of})" * (used != common)
        group = ScoreGroup("", self.benchmark.title, tuple(own), panels, self.models[0].levels, lacking)
        return [group, *families]

    @property
    def scores(self) -> list[Score]:
        """Return all scores but the clean error: the benchmark's, then those of families."""
        return [*self.measures, *(score for group in self.groups if group.name for score in group.scores)]

    @property
    def leading(self) -> Score:
        """Return the score that ranks the models."""
        return self.groups[0].scores[0]

    def names(self, score: Score) -> list[str]:
        """Return the common operations, and others that some model has."""
        there = {name for row in score.values for name in row}
        extra = [name for name in self.benchmark.extra if name in there]
        return [*self.benchmark.common, *extra, *sorted(there - {*self.benchmark.names})]

    def list_differences(self) -> list[Difference]:
        """Return the differences of the benchmark's means of all other models from those of the first."""
        return [each for score in self.measures for each in score.list_differences(self.models)]
