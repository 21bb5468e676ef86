"""The charts of `robustgen score --plot` (errors, flip probabilities) and `robustgen calibrate --plot`."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from robustgen.errors import ConfigError, MissingDependencyError, OutputError
from robustgen.reporting import CATEGORIES, COMMON, Report
from robustgen.results import Scores

if TYPE_CHECKING:
    from robustgen.viewing.calibrating import Calibration

FORMATS: Final = (".png", ".svg", ".pdf")
# Okabe and Ito's colours, which most colour-blind people can tell apart.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_METADATA: Final = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def check(path: Path) -> None:
    """Find out before the work whether a chart can be drawn at all.

    Raises
    ------
    ConfigError
        The name ends in nothing we know.
    MissingDependencyError
        matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"--plot {path}: must end in {', '.join(FORMATS)}")
    _matplotlib()


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise MissingDependencyError("--plot needs matplotlib: pip install 'robustgen[plot]'") from error
    return matplotlib


def plot(report: Report, path: Path) -> None:
    """Draw `report` into a PNG, SVG or PDF file: the means of each category for every model.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    draw = _draw_errors if report.kind == "c" else _draw_flips
    _save(path, lambda figure: draw(figure, report))


def plot_strengths(calibration: "Calibration", path: Path) -> None:
    """Draw MS-SSIM against severity, a panel for each category, into a PNG, SVG or PDF file.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    _save(path, lambda figure: _draw_strengths(figure, calibration))


def _save(path: Path, draw: Callable[[Any], None]) -> None:
    matplotlib = _matplotlib()
    # Without a salt of ours every SVG would have other names in it.
    with matplotlib.rc_context({"svg.hashsalt": "robustgen", "font.size": 10}):
        figure = matplotlib.figure.Figure(figsize=(12, 3.8), layout="constrained")
        draw(figure)
        kind, buffer = path.suffix.lower(), io.BytesIO()
        figure.savefig(buffer, format=kind[1:], dpi=150, metadata=_METADATA[kind])
    _write(path, buffer.getvalue())


def _categories(report: Report) -> Iterator[tuple[str, list[str]]]:
    """Each category with its common operations."""
    names = iter(COMMON[report.kind])
    for category, count in CATEGORIES[report.kind].items():
        yield category, list(islice(names, count))


def _draw_errors(figure: Any, report: Report) -> None:
    panels = figure.subplots(1, len(CATEGORIES["c"]), sharey=True)
    for axes, (category, names) in zip(panels, _categories(report), strict=True):
        for i, model in enumerate(report.models):
            _draw_model(axes, model, names, _COLOURS[i % len(_COLOURS)], alone=len(report.models) == 1)
        axes.set(title=category, xlabel="Severity", ylim=(0, 100), xticks=range(6))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("Top-1 error in % (unnormalised)")
    if len(report.models) > 1:
        panels[0].legend(frameon=False)


def _draw_model(axes: Any, model: Scores, names: list[str], colour: str, *, alone: bool) -> None:
    """The mean of a category, and of a model that is alone each corruption too; severity 0 is clean."""
    there = [name for name in names if name in model.errors]
    if alone:
        for i, name in enumerate(there):
            x, y = _curve(model, [name])
            label = name.replace("_", " ")
            axes.plot(x, y, color=_COLOURS[1 + i], linewidth=1, linestyle="--", label=label)
    if there:
        label = "mean" if alone else model.model
        axes.plot(*_curve(model, there), color=colour, linewidth=2, marker="o", markersize=4, label=label)
    if alone and there:
        axes.legend(frameon=False, fontsize=8)


def _curve(model: Scores, names: list[str]) -> tuple[list[int], list[float]]:
    errors = [100 * fmean(each) for each in zip(*(model.errors[name] for name in names), strict=True)]
    if model.clean_error is None:
        return list(range(1, 6)), errors
    return list(range(6)), [100 * model.clean_error, *errors]


def _draw_flips(figure: Any, report: Report) -> None:
    axes = figure.subplots()
    names = COMMON["p"]
    width = 0.8 / len(report.models)
    for i, model in enumerate(report.models):
        places = [at + (i - (len(report.models) - 1) / 2) * width for at in range(len(names))]
        heights = [100 * model.flip_probabilities.get(name, 0) for name in names]
        axes.bar(places, heights, width, color=_COLOURS[i % len(_COLOURS)], label=model.model)
    axes.set_xticks(range(len(names)), [name.replace("_", " ") for name in names], rotation=30, ha="right")
    axes.set(ylabel="Flip probability in % (unnormalised)")
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)
    axes.legend(frameon=False)


def _draw_strengths(figure: Any, calibration: "Calibration") -> None:
    panels = figure.subplots(1, len(CATEGORIES["c"]), sharey=True)
    for axes, category in zip(panels, CATEGORIES["c"], strict=True):
        members = [each for each in calibration.strengths if each.category == category.lower()]
        for i, name in enumerate(dict.fromkeys(each.arm.name for each in members)):
            points = [(each.arm.level, each.mean) for each in members if each.arm.name == name]
            label = name.replace("_", " ")
            axes.plot(*zip(*points, strict=True), color=_COLOURS[i], marker="o", markersize=4, label=label)
        # What the 2018 draft wants at severity 1, and for most at severity 5.
        for level, wanted in ((1, 0.9), (5, 0.5)):
            axes.plot(level, wanted, "x", color="grey", markersize=9)
        axes.set(title=category, xlabel="Severity", ylim=(0, 1.02), xticks=range(1, 6))
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, fontsize=8, loc="lower left")
    panels[0].set_ylabel("MS-SSIM to the clean image")


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise OutputError(f"--plot {path}: {error.strerror}") from error
