"""Scores as Python users get them: values, a table for pandas, HTML for notebooks, the page of a report."""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from PIL import Image

from robustgen.display.text import format_count, format_tables
from robustgen.errors import ArgumentError, MissingDependencyError, UnknownNameError
from robustgen.files.storage.local import TemporaryFolder
from robustgen.lab.evaluation.predictions import EvaluateResult
from robustgen.lab.scores.intervals import MEAN, Interval, Score
from robustgen.lab.scores.score_charts import plot
from robustgen.lab.scores.score_page import write_page
from robustgen.lab.scores.scoreboard import Scoreboard
from robustgen.lab.scores.scoring import PictureSet
from robustgen.lab.scores.text_forms import format_report, list_tables
from robustgen.settings.loading import load
from robustgen.settings.scoring import ChartForm

_WIDTH: Final = 110

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Row:
    """Values of one model on one corruption or perturbation; errors are fractions.

    Attributes
    ----------
    model, name : str
    values : dict of str to float
        Measure to value, with the names of ``score --format json``: ``error``, ``corruption_error``, ...
    intervals : dict of str to Interval
        Measure to the ends of its 95 % interval.
    severities : dict of float to float
        Severity to top-1 error; empty for perturbations.
    """

    model: str
    name: str
    values: Mapping[str, float]
    intervals: Mapping[str, Interval]
    severities: Mapping[float, float]


class Scores:
    """Scores of one or more models on the same images: the result of `evaluate` and `score`.

    Errors are fractions, as in CSV and JSON. `print` shows the tables of the commands, in per cent.

    Attributes
    ----------
    models : tuple of str
    predictions : tuple of str
        Path or URL of the predictions of each model.
    baseline : str or None
        Name of the model whose errors normalise `mce`, if any.
    images : int
        Number of images or sequences.
    run : EvaluateResult or None
        For `evaluate`, the numbers of predictions made and kept, and the images that failed.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> def guess(pixels):  # one score for each class of the demo
    ...     return np.eye(8)[np.zeros(len(pixels), int)]
    >>> keys = {"corruptions": "contrast", "severities": 3, "limit": 2, "jobs": 1, "quiet": True}
    >>> scores = robustgen.evaluate(guess, "demo", **keys)
    >>> scores.models, scores.images
    (('guess',), 2)
    >>> scores.value("error", "contrast")
    0.5
    >>> scores.rows[0].severities
    {3: 0.5}
    """

    def __init__(
        self,
        report: Scoreboard,
        predictions: Sequence[str | Path],
        dataset: PictureSet | None = None,
        run: EvaluateResult | None = None,
        folder: TemporaryFolder | None = None,
        printed: Sequence[str] = (),
    ) -> None:
        self._report, self._dataset = report, dataset
        self.run: EvaluateResult | None = run
        self._printed = printed
        # Removes temporary predictions together with these scores.
        self._folder = folder
        self.models: tuple[str, ...] = tuple(each.model for each in report.models)
        self.predictions: tuple[str, ...] = tuple(map(str, predictions))
        self.baseline: str | None = report.baseline.name if report.baseline else None
        self.images: int = report.count

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Return notes for readers, such as what the models were given, and the images that failed."""
        place = f"{self._folder.path}/" if self._folder else ""
        notes = (each.replace(place, "") for each in [*self._report.inputs, *self._report.notes])
        failed, noun = (self.run.failures, self.run.source_noun) if self.run else ({}, "")
        told = [f"{format_count(len(failed), noun)} could not be made: {', '.join(sorted(failed))}"]
        return (*notes, *told * bool(failed), *(self.run.remarks if self.run else ()))

    # --- values

    @property
    def mce(self) -> float:
        """Return the mean corruption error of the only model, over all common corruptions and severities.

        It is normalised by the `baseline`. Without one, as in papers on CIFAR, it is the mean error.

        Raises
        ------
        ArgumentError
            Some corruptions or severities are missing, so that only `mean` is defined.
        """
        key = "corruption_error" if self.baseline else "error"
        found, common = self.mean(key), self._report.benchmark.common
        used = self._find_measure(key).names
        if used != common or not self._report.models[0].complete:
            count = f"{len(common)} corruptions at five severities, these scores {len(used)}"
            raise ArgumentError(f"mCE is a mean over {count}: use mean({key!r})")
        return found

    @property
    def clean_error(self) -> float | None:
        """Return the top-1 error of the only model on the clean images, if there are any."""
        return self._report.models[self._find_model(None)].clean_error

    def mean(self, measure: str, model: str | None = None) -> float:
        """Return the mean of a measure over the common corruptions or perturbations that all models have.

        If there are none, the mean ``"error"`` is that over the corruptions of the only other family, such as
        MNIST-C.

        Raises
        ------
        ArgumentError
            There is no such mean or model; the message says which there are.
        """
        found = self._find_mean(measure).means[self._find_model(model)]
        if found is None:
            operations = f"common {self._report.benchmark.operation}s"
            raise ArgumentError(f"{measure} has no mean, because the models share none of the {operations}")
        return found

    def value(self, measure: str, name: str, model: str | None = None) -> float:
        """Return the value of a measure on one corruption or perturbation; raises as `mean`."""
        values = self._find_measure(measure).values[self._find_model(model)]
        if name not in values:
            raise UnknownNameError(self._report.benchmark.operation, name, values)
        return values[name]

    def interval(self, measure: str, name: str = MEAN, model: str | None = None) -> Interval | None:
        """Return the 95 % interval of a value, or of a mean as `mean` finds it; None if it has none."""
        score = self._find_mean(measure) if name == MEAN else self._find_measure(measure)
        return score.interval(self._find_model(model), name)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return one row for each model and corruption or perturbation, in the order of the benchmark."""
        measures = self._report.measures
        names = dict.fromkeys(name for measure in measures for name in self._report.names(measure))
        return tuple(
            self._make_row(index, name)
            for index in range(len(self.models))
            for name in names
            if any(name in measure.values[index] for measure in measures)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything that ``score --format json`` prints."""
        content: dict[str, Any] = json.loads(format_report(self._report, "json"))
        return content

    def to_pandas(self) -> "DataFrame":
        """Return a data frame with the `rows`: each measure, the ends of its interval, and each severity.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingDependencyError("to_pandas needs pandas: pip install pandas") from error
        return pandas.DataFrame([self._flatten(row) for row in self.rows])

    def to_latex(self, *, verbose: bool = False) -> str:
        """Return the tables of ``score --format latex``, for the package booktabs; all if `verbose`."""
        return format_report(self._report, "latex", verbose=verbose)

    def to_markdown(self, *, verbose: bool = False) -> str:
        """Return the tables of ``score --format markdown``; all of the papers if `verbose`."""
        return format_report(self._report, "markdown", verbose=verbose)

    def to_csv(self) -> str:
        """Return what ``score --format csv`` prints."""
        return format_report(self._report, "csv")

    def report(self, path: str | Path) -> Path:
        """Write the page of ``score --output page.html``, and return its path.

        Raises
        ------
        OutputError
            The page cannot be written.
        """
        write_page(self._report, Path(path), self._dataset)
        return Path(path)

    def plot(
        self,
        chart: Literal["curves", "dots"] | None = None,
        *,
        models: Sequence[str] = (),
        width: Literal["column", "page"] = "page",
    ) -> Image.Image:
        """Return the chart of ``score --output chart.png``, which a notebook shows.

        Parameters
        ----------
        chart : {"curves", "dots"}, optional
            Curves of error against severity, the default of C sets, or values by corruption.
        models : sequence of str
            The models in the chart; by default all, in curves the best seven.
        width : {"column", "page"}
            3.3 or 6.9 inches, at 300 pixels per inch.

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        ConfigError, UnknownNameError
            There is no such chart or model.
        """
        form = load(ChartForm, None, {"chart": chart, "chart_models": [*models], "chart_width": width})
        folder = TemporaryFolder()
        path = folder.path / "chart.png"
        plot(self._report, path, form)
        return Image.open(BytesIO(path.read_bytes()))

    # --- texts

    def __str__(self) -> str:
        return "\n".join([format_report(self._report, "table", _WIDTH), *self.notes])

    def __repr__(self) -> str:
        return f"Scores({', '.join(self.models)}: {format_count(self.images, self._report.benchmark.noun)})"

    def _repr_html_(self) -> str:
        tables = format_tables([*list_tables(self._report, summary=True)], "html")
        # The others stand above the table already.
        notes = [note for note in self.notes if note not in self._printed]
        return tables + "".join(f"<p>{html.escape(note)}</p>" for note in notes)

    # --- parts

    def _find_model(self, name: str | None) -> int:
        if name is None and len(self.models) == 1:
            return 0
        if name is None:
            raise ArgumentError(f"name one of the models, as in mean('error', {self.models[0]!r})")
        if name not in self.models:
            raise UnknownNameError("model", name, self.models)
        return self.models.index(name)

    def _find_mean(self, key: str) -> Score:
        """Return the measure, or if its error has no mean, the mean error of the only other family."""
        score, families = self._find_measure(key), [each for each in self._report.groups if each.name]
        return families[0].scores[0] if key == "error" and not score.names and len(families) == 1 else score

    def _find_measure(self, key: str) -> Score:
        measures = {measure.key: measure for measure in self._report.measures}
        if key not in measures:
            raise UnknownNameError("measure", key, measures)
        return measures[key]

    def _make_row(self, index: int, name: str) -> Row:
        model = self._report.models[index]
        values = {m.key: m.values[index][name] for m in self._report.measures if name in m.values[index]}
        measures = self._report.measures
        known = {m.key: ends for m in measures if (ends := m.interval(index, name))}
        return Row(model.model, name, values, known, model.severities.get(name, {}))

    def _flatten(self, row: Row) -> dict[str, Any]:
        flat: dict[str, Any] = {"model": row.model, self._report.benchmark.operation: row.name}
        for key, value in row.values.items():
            ends = row.intervals.get(key)
            flat |= {key: value, **({f"{key}_low": ends.low, f"{key}_high": ends.high} if ends else {})}
        return flat | {f"severity_{level:g}": error for level, error in row.severities.items()}
