"""Comparison of models: the tables of the papers.

Normalised and raw scores are in separate tables, each of which says so. Tables for people use per cent; CSV
and JSON contain fractions.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from robustgen.benchmarks.kinds import BENCHMARKS, CLEAN, Benchmark, Kind
from robustgen.display.text import format_count, format_csv
from robustgen.errors import ArgumentError
from robustgen.scores.baselines import Baseline
from robustgen.scores.family_means import FamilyMean, compute_family_means
from robustgen.scores.intervals import MEAN, Difference, Interval, Resampling, plan_images
from robustgen.scores.measures import Measure, make_measures
from robustgen.scores.published import PublishedModel, describe_differences
from robustgen.scores.results import Scores
from robustgen.scores.tables import LAYOUTS, Cells, ScoreTable, head_of

# The rows below a model's: the ends of the intervals.
_ENDS: Final = ("  95 % from", "  95 % to")


# --- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """A comparison of models.

    Attributes
    ----------
    models : list of Scores
    baseline : Baseline or None
    difficulty : int
    notes : list of str
        Notes for readers of the tables.
    intervals : bool
        Whether to compute bootstrap intervals.
    partial : bool
        Whether to omit operations without a baseline value.
    published : sequence of PublishedModel
        Published models to compare with.
    origin : str
        Creator of the images, for these.
    edition : str
        Edition of the images; empty if unknown.
    """

    models: list[Scores]
    baseline: Baseline | None
    difficulty: int
    notes: list[str]
    intervals: bool = True
    partial: bool = False
    published: Sequence[PublishedModel] = ()
    origin: str = ""
    edition: str = ""

    @property
    def kind(self) -> Kind:
        """Return the kind of the sets: c or p."""
        return self.models[0].kind

    @property
    def benchmark(self) -> Benchmark:
        """Return the benchmark of the sets."""
        return BENCHMARKS[self.kind]

    @cached_property
    def measures(self) -> list[Measure]:
        """Return the measures that are possible for the scores."""
        return make_measures(self.models, self.baseline, self.partial)

    @cached_property
    def families(self) -> list[FamilyMean]:
        """Return the means of other families of corruptions, if all of their severities exist."""
        return compute_family_means(self.models, self.edition) if self.kind == "c" else []

    @cached_property
    def resampling(self) -> Resampling | None:
        """Return bootstrap samples of all values, if intervals are wanted."""
        measures = {measure: self.averaged(measure) for measure in self.measures}
        return Resampling(self.models, measures) if self.intervals else None

    def averaged(self, measure: Measure) -> tuple[str, ...]:
        """Return the common operations that every model has, which the means include."""
        return tuple(name for name in self.benchmark.common if all(name in row for row in measure.values))

    def mean(self, measure: Measure, model: Scores) -> float | None:
        """Return the mean over `averaged`."""
        names = self.averaged(measure)
        return measure.average(model, names) if names else None

    def render(self, layout: str) -> str:
        """Return the report as one of `LAYOUTS`, as csv or as json."""
        if layout == "json":
            return json.dumps(self.as_dict(), indent=1)
        if layout == "csv":
            return format_csv(self._records())
        tables = [
            self._table(measure) for measure in self.measures if self.averaged(measure) or not self.families
        ]
        tables += [*self.family_tables(), *self._difference_tables()]
        return LAYOUTS[layout]([*tables, *self.published_tables(), *self.family_rankings()])

    def family_tables(self) -> list[ScoreTable]:
        """Return the errors and scores of all models on other families."""
        return [*map(self._family_table, self.families)]

    def family_rankings(self) -> list[ScoreTable]:
        """Return the scores of families together with published ones, from the best down."""
        tables = []
        for family in self.families:
            for score in (each for each in family.scores if each.published):
                own = [(f"> {m.model}", (value,)) for m, value in zip(self.models, score.values, strict=True)]
                rows = [*own, *((name, (value,)) for name, value in score.published.items())]
                rows.sort(key=lambda row: -(row[1][0] or 0))
                title = f"{family.title}: accuracy over 16 superclasses in %, among published ones"
                tables.append(ScoreTable(title, (score.head,), (("", 1),), tuple(rows)))
        return tables

    def published_tables(self) -> list[ScoreTable]:
        """Return the means of the models together with published ones, from the best down."""
        if not self.published:
            return []
        measures = [measure for measure in self.measures if self.averaged(measure)]
        rows: list[tuple[str, Cells]] = []
        for model in self.models:
            rows.append((f"> {model.model}", tuple(self.mean(m, model) for m in measures)))
        for each in self.published:
            rows.append((each.model, tuple(each.mean(m, self.baseline, self.averaged(m)) for m in measures)))
        worst = float("inf")
        rows.sort(key=lambda row: next((value for value in row[1] if value is not None), worst))
        heads = tuple(measure.formula.mean for measure in measures)
        title = "Means among published ones in % (yours are marked with >)"
        factors = [measure.formula.factor for measure in measures]
        scaled = [
            (name, tuple(v and v * f for v, f in zip(cells, factors, strict=True))) for name, cells in rows
        ]
        return [ScoreTable(title, heads, (("", len(heads)),), tuple(scaled), factor=1, digits=1)]

    def describe_published(self) -> list[str]:
        """Return lines on the differences between the published values and these."""
        if not self.published:
            return []
        return describe_differences(self.published, self.kind, self.models[0].count, self.origin)

    def interval(self, place: int, measure: str, name: str) -> Interval | None:
        """Return the interval of a value of the model with index `place`; None if it has none."""
        return self.resampling.interval(place, measure, name) if self.resampling else None

    # --- tables

    def _table(self, measure: Measure) -> ScoreTable:
        names, used = self.names(measure), self.averaged(measure)
        whole = used == self.benchmark.common and self.models[0].complete
        mean = measure.formula.mean if whole else f"Mean of {len(used)}"
        rows = [row for place in range(len(self.models)) for row in self._rows(measure, names, place)]
        heads = tuple(head_of(name) for name in names)
        lead = ("Error", mean) if self.benchmark.has_clean else (mean,)
        title = measure.title if whole else f"{measure.title} (incomplete: no {measure.formula.mean})"
        groups = (("", len(lead)), *self._groups(names))
        return ScoreTable(
            title, (*lead, *heads), groups, tuple(rows), measure.formula.factor, measure.formula.digits
        )

    def _rows(self, measure: Measure, names: Sequence[str], place: int) -> Iterator[tuple[str, Cells]]:
        """Yield the values of a model, and below them the ends of their intervals."""
        model, values = self.models[place], measure.values[place]
        # The clean error is a raw error, in per cent, in every table.
        clean = [model.clean_error] if self.benchmark.has_clean else []
        yield model.model, (*clean, self.mean(measure, model), *(values.get(name) for name in names))
        if self.resampling is None:
            return
        lead = [self.interval(place, "", CLEAN)] if self.benchmark.has_clean else []
        found = [*lead, *(self.interval(place, measure.key, name) for name in (MEAN, *names))]
        for end, label in enumerate(_ENDS):
            yield label, tuple(None if each is None else each[end] for each in found)

    def _family_table(self, family: FamilyMean) -> ScoreTable:
        """Return the errors of all models on another family, and their mean."""
        places = range(len(self.models))
        normalised = [family.normalised_mean(place) for place in places]
        lead = ["Mean" if family.whole else f"Mean of {len(family.names)}"]
        lead += [f"/ {family.reference}"] if any(normalised) else []
        lead += [score.head for score in family.scores]
        rows = tuple(
            (
                self.models[place].model,
                (
                    family.mean(place),
                    *([normalised[place]] if any(normalised) else []),
                    *(score.values[place] for score in family.scores),
                    *(family.errors[place][name] for name in family.names),
                ),
            )
            for place in places
        )
        title = f"{family.title}: top-1 error in %, mean over severities, unnormalised"
        groups = (("", len(lead)), (family.title, len(family.names)))
        heads = (*lead, *(name.rpartition(":")[2] for name in family.names))
        return ScoreTable(title, heads, groups, rows, 100, 1)

    def _difference_tables(self) -> Iterator[ScoreTable]:
        """Yield for each measure a table of the differences of the other models' means from the first's."""
        first = self.models[0].model
        for measure in self.measures:
            found = [each for each in self.differences() if each.measure == measure.key]
            rows = [
                row
                for each in found
                for row in (
                    (each.model, (each.value,)),
                    *zip(_ENDS, ((end,) for end in each.interval), strict=True),
                )
            ]
            title = f"Difference from the mean of {first}, on the same images: {measure.title}"
            if rows:
                yield ScoreTable(
                    title,
                    ("Difference",),
                    (("", 1),),
                    tuple(rows),
                    measure.formula.factor,
                    measure.formula.digits + 1,
                )

    def differences(self) -> list[Difference]:
        """Return the differences of the means of all other models from those of the first."""
        return self.resampling.differences() if self.resampling else []

    def names(self, measure: Measure) -> list[str]:
        """Return the common operations, and others that some model has."""
        there = {name for row in measure.values for name in row}
        extra = [name for name in self.benchmark.extra if name in there]
        return [*self.benchmark.common, *extra, *sorted(there - {*self.benchmark.names})]

    def _groups(self, names: Sequence[str]) -> list[tuple[str, int]]:
        others = len(names) - len(self.benchmark.common)
        groups = [(category.title(), len(own)) for category, own in self.benchmark.categories.items()]
        return [*groups, *([("In no mean", others)] if others else [])]

    # --- records

    def _records(self) -> list[dict[str, object]]:
        """Return the rows of the CSV: all have the same columns."""
        columns = [*dict.fromkeys(name for measure in self.measures for name in self.names(measure))]
        records = [
            record
            for measure in self.measures
            for place in range(len(self.models))
            for record in self._records_of(measure, place, columns)
        ]
        records += [
            dict.fromkeys(records[0])
            | {"model": each.model, "measure": measure.key, "normalised_by": measure.baseline or ""}
            | {"statistic": "published", "mean_over": len(self.averaged(measure))}
            | ({"clean_error": each.clean_error} if self.benchmark.has_clean else {})
            | {MEAN: each.mean(measure, self.baseline, self.averaged(measure))}
            | {name: value for name, value in each.values(measure, self.baseline).items() if name in columns}
            for each in self.published
            for measure in self.measures
        ]
        records += [
            dict.fromkeys(records[0])
            | {"model": model.model, "measure": f"{score.key} of {family.family}", "normalised_by": ""}
            | {"statistic": "value", "clean_error": model.clean_error, MEAN: score.values[place]}
            | {"mean_over": len(family.names)}
            for family in self.families
            for score in family.scores
            for place, model in enumerate(self.models)
        ]
        return records + [
            dict.fromkeys(records[0])
            | {"model": model.model, "measure": f"error of {family.family}", "normalised_by": ""}
            | {"statistic": "value", "clean_error": model.clean_error, MEAN: family.mean(place)}
            | {"mean_over": len(family.names), **family.errors[place]}
            for family in self.families
            for place, model in enumerate(self.models)
        ]

    def _records_of(self, measure: Measure, place: int, columns: Sequence[str]) -> list[dict[str, object]]:
        """Return the values of a model, and the lower and upper ends of their intervals."""
        model, row = self.models[place], measure.values[place]
        start = {"model": model.model, "measure": measure.key, "normalised_by": measure.baseline or ""}
        over = {"mean_over": len(self.averaged(measure))}
        extra: dict[str, object] = {} if self.benchmark.has_clean else {"difficulty": self.difficulty}
        values = {CLEAN: model.clean_error, MEAN: self.mean(measure, model), **row}
        found = {name: self.interval(place, measure.key, name) for name in (MEAN, *columns)}
        found[CLEAN] = self.interval(place, "", CLEAN)
        statistics: dict[str, Mapping[str, float | None]] = {"value": values}
        if self.resampling:
            for end, label in enumerate(Interval._fields):
                statistics[label] = {name: each and each[end] for name, each in found.items()}
        return [
            {
                **start,
                "statistic": label,
                **({"clean_error": each[CLEAN]} if self.benchmark.has_clean else extra),
                MEAN: each[MEAN],
                **over,
                **{name: each.get(name) for name in columns},
            }
            for label, each in statistics.items()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON; those of one model can serve as a baseline."""
        differences = [{**vars(each), "interval": [*each.interval]} for each in self.differences()]
        return {
            "kind": self.benchmark.title,
            "baseline": self.baseline.name if self.baseline else None,
            **({} if self.benchmark.has_clean else {"difficulty": self.difficulty}),
            **({"severities": [*self.models[0].levels]} if self.benchmark.has_clean else {}),
            "models": [self._model(place) for place in range(len(self.models))],
            **({"differences": differences} if differences else {}),
            **({"published": [*map(self._describe_published, self.published)]} if self.published else {}),
        }

    def _describe_published(self, model: PublishedModel) -> dict[str, Any]:
        return {
            "model": model.model,
            **vars(model.table),
            "clean_error": model.clean_error,
            "measures": {
                measure.key: {
                    "mean": model.mean(measure, self.baseline, self.averaged(measure)),
                    "values": model.values(measure, self.baseline),
                }
                for measure in self.measures
            },
        }

    def _family_record(self, family: FamilyMean, place: int) -> dict[str, Any]:
        normalised = family.normalised_mean(place)
        found: dict[str, Any] = {"mean_error": family.mean(place), "mean_over": [*family.names]}
        if normalised is not None:
            found |= {"normalised_by": family.reference, "normalised_mean": normalised}
        for score in family.scores:
            found |= {score.key: score.values[place]}
            found |= {"published": dict(score.published)} if score.published else {}
        return found

    def _model(self, place: int) -> dict[str, Any]:
        model = self.models[place]
        own: dict[str, Any] = {"model": model.model, "count": model.count, "missing": list(model.missing)}
        if self.benchmark.has_clean:
            own |= {"clean_error": model.clean_error, "errors": model.errors}
            if self.families:
                own["families"] = {each.family: self._family_record(each, place) for each in self.families}
        else:
            own |= {"flip_probabilities": model.flip_probabilities, "top5_distances": model.top5_distances}
        if self.resampling and model.mistakes:
            arms = {folder: self.interval(place, "", folder) for folder in model.mistakes}
            own["error_intervals"] = {folder: each and [*each] for folder, each in arms.items()}
        own["measures"] = {measure.key: self._describe(measure, place) for measure in self.measures}
        return own

    def _describe(self, measure: Measure, place: int) -> dict[str, Any]:
        values = measure.values[place]
        described: dict[str, Any] = {
            "normalised_by": measure.baseline,
            "mean": self.mean(measure, self.models[place]),
            "mean_over": list(self.averaged(measure)),
            "values": values,
        }
        if self.resampling:
            found = {name: self.interval(place, measure.key, name) for name in (MEAN, *values)}
            intervals = {name: each and [*each] for name, each in found.items()}
            described |= {"mean_interval": intervals.pop(MEAN), "intervals": intervals}
        return described

    # --- planning

    def describe_plan(self, half_width: float) -> Iterator[str]:
        """Yield for each model how many images determine its mean to plus or minus `half_width`.

        The mean is that of the first measure, in the unit of its table. Raises an ArgumentError if it has no
        mean.
        """
        measure = self.measures[0]
        names, unit = self.averaged(measure), " %" if measure.formula.factor == 100 else ""
        if not names:
            raise ArgumentError(f"--plan: the models share none of the common {self.benchmark.operation}s")
        for model in self.models:
            mean = measure.average(model, names) * measure.formula.factor
            needed = plan_images(model, measure, names, half_width / measure.formula.factor)
            yield (
                f"{model.model}: {measure.formula.mean} {mean:.1f}{unit} from "
                f"{format_count(model.count, self.benchmark.noun)}; "
                f"+- {half_width:g}{unit} (95 %) needs {format_count(needed, self.benchmark.noun)}"
            )
