"""Chart of a `Comparison`: the differences by corruption, with intervals and margins."""

from pathlib import Path
from typing import Any, Final

from robustgen.display.charts import COLOURS, Point, add_legend, arrange_legend, draw_chart, measure_whiskers
from robustgen.display.text import format_name
from robustgen.lab.inspection.compare.equivalence import METRICS
from robustgen.lab.inspection.compare.results import Comparison, Verdict

# Colour and marker of each verdict.
_LOOKS: Final[dict[Verdict, tuple[str, str]]] = {
    "identical": (COLOURS[6], "s"),
    "equivalent": (COLOURS[2], "o"),
    "too few images": (COLOURS[4], "D"),
    "different": (COLOURS[1], "X"),
}
# Inches: a panel, a row, and an axis with its title.
_PANEL: Final = 1.3
_ROW: Final = 0.13
_AXIS: Final = 0.5


def plot_comparison(comparison: Comparison, path: Path, width: float) -> None:
    """Draw the mean differences, a panel for each metric, into a PNG, SVG or PDF file.

    `width` is in inches. Rows are corruptions or perturbations, bars 95 % intervals, grey areas the margins.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    operations = comparison.operations
    # Of identical sets, all differences are shown to be zero.
    shown = [each for each in METRICS if any(o.overall(each.key) for o in operations)] or [*METRICS]
    columns = min(len(shown), round(width / _PANEL) - 1)
    rows = -(-len(shown) // columns)
    verdicts = [verdict for verdict in _LOOKS if any(each.verdict == verdict for each in operations)]
    names = [*verdicts, "margin"]
    height = rows * (_ROW * len(operations) + _AXIS) + arrange_legend(names, width)[2]

    def draw(figure: Any) -> None:
        panels = [*figure.subplots(rows, columns, sharey=True, squeeze=False).flat]
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        handles: dict[str, Any] = {}
        for axes, metric in zip(panels, shown, strict=False):
            for at, operation in enumerate(operations):
                effect = operation.overall(metric.key)
                point = Point(effect.difference, effect.interval) if effect else Point(0)
                if effect or operation.verdict == "identical":
                    colour, marker = _LOOKS[operation.verdict]
                    handles[operation.verdict] = axes.errorbar(
                        point.value,
                        at,
                        xerr=measure_whiskers([point]),
                        color=colour,
                        marker=marker,
                        linestyle="none",
                        markeredgewidth=0,
                        elinewidth=0.9,
                        zorder=3,
                    )
            margin = comparison.options.margin.get(metric.key, metric.margin)
            handles["margin"] = axes.axvspan(-margin, margin, color="#ECEEF1", linewidth=0, zorder=0)
            axes.axvline(0, color="grey", linewidth=0.5, zorder=1)
            axes.set_xlabel(f"{metric.title} ({metric.unit})" if metric.unit else metric.title)
            axes.set_yticks(range(len(operations)), [format_name(each.name) for each in operations])
            axes.set_ylim(len(operations) - 0.5, -0.5)
            axes.grid(visible=False, axis="y")
            axes.tick_params(axis="y", length=0)
            axes.locator_params(axis="x", nbins=3)
        there = [name for name in names if name in handles]
        add_legend(figure, [handles[name] for name in there], there, "B - A with 95 % intervals")

    draw_chart(path, (width, height), draw)
