"""The chart of `robustgen score --output chart.png`: errors against severity, or flip probabilities."""

from pathlib import Path
from statistics import fmean
from typing import Any

from robustgen.display.charts import COLOURS, draw_chart
from robustgen.lab.scores.reporting import Report
from robustgen.lab.scores.results import ModelScores


def plot(report: Report, path: Path) -> None:
    """Draw `report` into a PNG, SVG or PDF file: the means of each category for every model.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    draw = _draw_errors if report.kind == "c" else _draw_flips
    draw_chart(path, lambda figure: draw(figure, report))


def _draw_errors(figure: Any, report: Report) -> None:
    panels = figure.subplots(1, len(report.benchmark.categories), sharey=True)
    for axes, (category, names) in zip(panels, report.benchmark.categories.items(), strict=True):
        for i, model in enumerate(report.models):
            _draw_model(axes, model, [*names], COLOURS[i % len(COLOURS)], alone=len(report.models) == 1)
        axes.set(
            title=category.title(), xlabel="Severity", ylim=(0, 100), xticks=(0, *report.models[0].levels)
        )
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("Top-1 error in % (unnormalised)")
    if len(report.models) > 1:
        panels[0].legend(frameon=False)


def _draw_model(axes: Any, model: ModelScores, names: list[str], colour: str, *, alone: bool) -> None:
    """Draw the mean of a category, and each corruption if there is only one model; severity 0 is clean."""
    there = [name for name in names if name in model.errors]
    if alone:
        for i, name in enumerate(there):
            x, y = _curve(model, [name])
            label = name.replace("_", " ")
            axes.plot(x, y, color=COLOURS[1 + i], linewidth=1, linestyle="--", label=label)
    if there:
        label = "mean" if alone else model.model
        look: dict[str, Any] = {"linewidth": 2, "marker": "o", "markersize": 4}
        # Points at 0 and 100 % should not be cut off.
        axes.plot(*_curve(model, there), color=colour, label=label, clip_on=False, zorder=3, **look)
    if alone and there:
        axes.legend(frameon=False, fontsize=8)


def _curve(model: ModelScores, names: list[str]) -> tuple[list[float], list[float]]:
    errors = [100 * fmean(each) for each in zip(*(model.errors[name] for name in names), strict=True)]
    if model.clean_error is None:
        return [*model.levels], errors
    return [0, *model.levels], [100 * model.clean_error, *errors]


def _draw_flips(figure: Any, report: Report) -> None:
    axes = figure.subplots()
    names = report.benchmark.common
    width = 0.8 / len(report.models)
    for i, model in enumerate(report.models):
        places = [at + (i - (len(report.models) - 1) / 2) * width for at in range(len(names))]
        heights = [100 * model.flip_probabilities.get(name, 0) for name in names]
        axes.bar(places, heights, width, color=COLOURS[i % len(COLOURS)], label=model.model)
    axes.set_xticks(range(len(names)), [name.replace("_", " ") for name in names], rotation=30, ha="right")
    axes.set(ylabel="Flip probability in % (unnormalised)")
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)
    axes.legend(frameon=False)
