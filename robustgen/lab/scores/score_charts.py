"""Charts of `robustgen score --output`: error against severity, and values by corruption."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from robustgen.display.charts import (
    MOST_LINES,
    WIDTHS,
    Point,
    add_legend,
    arrange_legend,
    count_panels,
    draw_chart,
    draw_lines,
    list_below,
    look_of,
    measure_panels,
    measure_whiskers,
)
from robustgen.display.text import format_count, format_name
from robustgen.errors import ConfigError, UnknownNameError
from robustgen.lab.scores.intervals import MEAN, Score, error_interval
from robustgen.lab.scores.results import ModelScores
from robustgen.lab.scores.scoreboard import Scoreboard
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.settings.scoring import ChartForm

# Height in inches of an axis with its title.
_AXIS: Final = 0.55
_INTERVALS: Final = "with 95 % intervals"


class ChartContent(NamedTuple):
    """Content of a chart.

    Attributes
    ----------
    form : str
        ``"curves"`` or ``"dots"``.
    indices : list of int
        The models to draw, the best first.
    sentence : str
        Which ones these are; empty if they are all.
    """

    form: str
    indices: list[int]
    sentence: str


def choose_chart(report: Scoreboard, form: ChartForm) -> ChartContent:
    """Return what a chart of a report shows.

    Raises
    ------
    ConfigError
        The report has no such chart, or the chart has no room for the named models.
    UnknownNameError
        A named model is not in the report.
    """
    chosen = form.chart or ("curves" if report.kind == "c" else "dots")
    if chosen == "curves" and report.kind == "p":
        raise ConfigError("--chart curves: a P set has no severities; --chart dots shows its perturbations")
    most = MOST_LINES if chosen == "curves" else len(report.models)
    return ChartContent(chosen, *_choose_models(report, form.chart_models, most))


def plot(report: Scoreboard, path: Path, form: ChartForm) -> list[str]:
    """Draw a report into a PNG, SVG or PDF file, and return sentences on what the chart leaves out.

    Raises
    ------
    ConfigError, UnknownNameError
        As `choose_chart`.
    OutputError
        The file cannot be written.
    """
    chart, width = choose_chart(report, form), WIDTHS[form.chart_width]
    (_plot_curves if chart.form == "curves" else _plot_dots)(report, path, width, chart)
    more = "; --chart dots shows all" * (chart.form == "curves" and not form.chart_models)
    return [f"{path}: {chart.sentence}{more}"] * bool(chart.sentence)


def _choose_models(report: Scoreboard, names: Sequence[str], most: int) -> tuple[list[int], str]:
    """Return the indices of the models to draw, the best first, and a sentence on those that are left out."""
    ranked, known = report.leading.rank(), [model.model for model in report.models]
    for name in names:
        if name not in known:
            raise UnknownNameError("model", name, known)
    if len(names) > most:
        raise ConfigError(f"--chart-models: at most {most} in one chart, not {len(names)}; or --chart dots")
    named = [index for index in ranked if known[index] in names] if names else ranked[:most]
    if len(named) == len(ranked):
        return named, ""
    if names:
        return named, f"{len(named)} of {format_count(len(ranked), 'model')}, as named"
    head = report.leading.head.replace("Mean", "mean") if not report.leading.group else "mean error"
    return named, f"the {len(named)} of {format_count(len(ranked), 'model')} with the lowest {head}"


# --- error against severity -----------------------------------------------------------------------


# Curves of single corruptions in a panel, beside their mean.
_MEMBERS: Final = MOST_LINES - 1


class _Group(NamedTuple):
    """Corruptions whose mean is a panel, its severities, and the corruptions with curves of their own."""

    title: str
    names: tuple[str, ...]
    levels: tuple[float, ...]
    members: tuple[str, ...] = ()

    def divide(self) -> "list[_Group]":
        """Return the panels of a single model, in each of which all curves have their own colours."""
        count = -(-len(self.names) // _MEMBERS)
        parts = [self.names[at * _MEMBERS : (at + 1) * _MEMBERS] for at in range(count)]
        titles = [f"{self.title} {at}/{count}" if count > 1 else self.title for at in range(1, count + 1)]
        return [self._replace(title=t, members=part) for t, part in zip(titles, parts, strict=True)]


def _list_groups(report: Scoreboard, models: Sequence[ModelScores]) -> list[_Group]:
    """Return the categories and other families, with the corruptions and severities that all models have."""
    groups = []
    for title, names in report.benchmark.categories.items():
        shared = tuple(name for name in names if all(name in model.errors for model in models))
        part = f" ({len(shared)} of {len(names)})" * (len(shared) < len(names))
        groups.append(_Group(f"{title.title()}{part}", shared, models[0].levels))
    for each in (group for group in report.groups if group.name):
        groups += [_Group(title, names, each.levels) for title, names in each.panels.items()]
    return [group for group in groups if group.names and group.levels]


def _measure_curve(
    report: Scoreboard, index: int, names: Sequence[str], levels: Sequence[float]
) -> list[Point]:
    """Return the mean error of some corruptions in %, clean and at each severity."""
    model = report.models[index]
    points = [] if model.clean_error is None else [Point(model.clean_error, report.clean.interval(index))]
    for level in levels:
        folders = [IMAGENET_C.variant(name, level).folder for name in names]
        interval = error_interval(model, folders) if report.replicates else None
        points.append(Point(fmean(model.severities[name][level] for name in names), interval))
    return [point.scale(100) for point in points]


def _plot_curves(report: Scoreboard, path: Path, width: float, chart: ChartContent) -> None:
    indices = chart.indices
    models = [report.models[index] for index in indices]
    groups, names = _list_groups(report, models), [model.model for model in models]
    alone = len(models) == 1
    if alone and width == WIDTHS["column"]:
        _plot_means(report, path, width, indices[0], groups)
        return
    groups = [panel for group in groups for panel in group.divide()] if alone else groups
    rows, columns = count_panels(len(groups), width)
    most = 1 + max(len(group.members) for group in groups)
    height = measure_panels(len(groups), width, most if alone else 0)
    ticks = ["clean"] * (models[0].clean_error is not None)
    label = "\n".join(["Top-1 error in %", *[("means " * alone) + _INTERVALS] * bool(report.replicates)])

    def draw(figure: Any) -> None:
        panels = [*figure.subplots(rows, columns, sharey=True, squeeze=False).flat]
        for axes in panels[len(groups) :]:
            axes.set_visible(False)
        for at, (axes, group) in enumerate(zip(panels, groups, strict=False)):
            lines = [_measure_curve(report, index, group.names, group.levels) for index in indices]
            if alone:
                members = [_measure_curve(report, indices[0], [name], group.levels) for name in group.members]
                lines += [[Point(point.value) for point in points] for points in members]
            handles = draw_lines(axes, lines)
            marks = [*ticks, *(f"{level:g}" for level in group.levels)]
            axes.set_xticks(range(len(marks)), marks)
            axes.set(title=group.title, xlabel="Severity", ylabel=label if at % columns == 0 else "")
            if alone:
                list_below(axes, handles, ["mean", *map(_shorten_name, group.members)])
        # The panels share an axis, whose upper end is found only before it is set for any of them.
        panels[0].set_ylim(bottom=0)
        if not alone:
            add_legend(figure, handles, names, chart.sentence)

    draw_chart(path, (width, height + (0 if alone else arrange_legend(names, width)[2])), draw)


def _plot_means(report: Scoreboard, path: Path, width: float, index: int, groups: Sequence[_Group]) -> None:
    """Draw the means of all groups in one panel: a column has no room for the legends of all corruptions."""
    groups = [group for group in groups if group.levels == groups[0].levels]
    titles = [group.title for group in groups]
    clean = ["clean"] * (report.models[index].clean_error is not None)
    marks = [*clean, *(f"{level:g}" for level in groups[0].levels)]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        handles = draw_lines(axes, [_measure_curve(report, index, own.names, own.levels) for own in groups])
        axes.set_xticks(range(len(marks)), marks)
        label = "\n".join(["Mean top-1 error in %", *[_INTERVALS] * bool(report.replicates)])
        axes.set(xlabel="Severity", ylabel=label, title=report.models[index].model)
        axes.set_ylim(bottom=0)
        add_legend(figure, handles, titles)

    draw_chart(path, (width, measure_panels(1, width) + arrange_legend(titles, width)[2]), draw)


def _shorten_name(name: str) -> str:
    return format_name(name.rpartition(":")[2])


# --- values by corruption -------------------------------------------------------------------------


class _Row(NamedTuple):
    """A row of dots: one for each model that has the value."""

    title: str
    points: list[Point | None]


class _Section(NamedTuple):
    """Rows with one unit. The first is a mean."""

    unit: str
    rows: list[_Row]
    border: float | None


def _list_section(report: Scoreboard, score: Score, indices: Sequence[int]) -> _Section:
    """Return the mean of a score and its values."""

    def point(index: int, name: str) -> Point | None:
        value, factor = score.value(index, name), score.unit.factor
        return None if value is None else Point(value, score.interval(index, name)).scale(factor)

    names = score.names if score.group else report.benchmark.common
    rows = [_Row(score.head, [point(i, MEAN) for i in indices])] * score.has_mean
    rows += [_Row(_shorten_name(name), [point(i, name) for i in indices]) for name in names]
    return _Section(
        score.title, [row for row in rows if any(row.points)], score.unit.factor if score.base else None
    )


def _plot_dots(report: Scoreboard, path: Path, width: float, chart: ChartContent) -> None:
    indices = chart.indices
    sections = [_list_section(report, group.scores[0], indices) for group in report.groups]
    names = [report.models[index].model for index in indices]
    row = 0.15 + 0.0125 * len(names)
    heights = [row * len(section.rows) + _AXIS for section in sections]
    legend = arrange_legend(names, width)[2] if len(names) > 1 else 0
    gap = " " if width == WIDTHS["page"] else "\n"

    def draw(figure: Any) -> None:
        panels = figure.subplots(len(sections), 1, squeeze=False, height_ratios=heights).flat
        for axes, section in zip(panels, sections, strict=True):
            handles = _draw_section(axes, section, len(names))
            end = f",{gap}{_INTERVALS}" * bool(report.replicates)
            axes.set_xlabel(f"{section.unit}{end}", wrap=True)
        if len(names) > 1:
            add_legend(figure, handles, names, chart.sentence)

    draw_chart(path, (width, sum(heights) + legend), draw)


def _draw_section(axes: Any, section: _Section, count: int) -> list[Any]:
    """Draw the rows; in each the models stand below each other in the order of the legend."""
    handles: list[Any] = []
    step = min(0.22, 0.8 / count)
    for place in range(count):
        look = look_of(place)
        found = [(at, row.points[place]) for at, row in enumerate(section.rows)]
        known = [(at + (place - (count - 1) / 2) * step, point) for at, point in found if point]
        handles.append(
            axes.errorbar(
                [point.value for _, point in known],
                [height for height, _ in known],
                xerr=measure_whiskers([point for _, point in known]),
                color=look.color,
                marker=look.marker,
                linestyle="none",
                markersize=3.2 if count <= MOST_LINES else 2.4,
                zorder=3,
                markeredgewidth=0,
                elinewidth=0.9 if count <= MOST_LINES else 0.5,
            )
        )
    for at in range(0, len(section.rows), 2):
        axes.axhspan(at - 0.5, at + 0.5, color="#F4F5F7", linewidth=0, zorder=0)
    axes.axhline(0.5, color="black", linewidth=0.5)
    if section.border is not None and axes.get_xlim()[0] < section.border < axes.get_xlim()[1]:
        axes.axvline(section.border, color="grey", linewidth=0.7, linestyle=":")
    axes.set_yticks(range(len(section.rows)), [row.title for row in section.rows])
    axes.set_ylim(len(section.rows) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    return handles
