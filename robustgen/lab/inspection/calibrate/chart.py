"""Strengths of corruptions as a chart."""

from pathlib import Path
from typing import Any

from robustgen.display.charts import COLOURS, draw_chart
from robustgen.lab.inspection.calibrate.strengths import Calibration
from robustgen.pixels.benchmarks.registry import CATEGORIES


def plot_strengths(calibration: Calibration, path: Path) -> None:
    """Draw MS-SSIM against severity, a panel for each category, into a PNG, SVG or PDF file.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    draw_chart(path, lambda figure: _draw_strengths(figure, calibration))


def _draw_strengths(figure: Any, calibration: Calibration) -> None:
    panels = figure.subplots(1, len(CATEGORIES), sharey=True)
    for axes, category in zip(panels, CATEGORIES, strict=True):
        members = [each for each in calibration.strengths if each.category == category]
        for i, name in enumerate(dict.fromkeys(each.variant.name for each in members)):
            points = [(each.variant.level, each.mean) for each in members if each.variant.name == name]
            look = {"color": COLOURS[i % len(COLOURS)], "marker": "o", "markersize": 4}
            axes.plot(*zip(*points, strict=True), label=name.replace("_", " "), **look)
        # The values of the 2018 draft for severity 1, and for most corruptions at severity 5.
        for level, wanted in ((1, 0.9), (5, 0.5)):
            axes.plot(level, wanted, "x", color="grey", markersize=9)
        axes.set(title=category.capitalize(), xlabel="Severity", ylim=(0, 1.02), xticks=range(1, 6))
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, fontsize=8, loc="lower left")
    panels[0].set_ylabel("MS-SSIM to the clean image")
