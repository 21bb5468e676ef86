"""Charts with matplotlib: sizes and letters as papers print them, looks of lines, legends, and files."""

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from robustgen.errors import ConfigError, explain_import
from robustgen.files.storage import save

CHART_SUFFIXES: Final = (".png", ".svg", ".pdf")
WIDTHS: Final = {"column": 3.3, "page": 6.9}
"""Widths in inches: of a column, and of a page with two columns."""


class Look(NamedTuple):
    """Look of a line and its points.

    Attributes
    ----------
    color : str
    marker : str
        As matplotlib names it.
    dashes : tuple of float
        Lengths of dashes and gaps, in widths of the line; empty for a solid line.
    """

    color: str
    marker: str
    dashes: tuple[float, ...]


# Okabe and Ito's colours, which most colour-blind people can distinguish.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
DASHES: Final[tuple[tuple[float, ...], ...]] = (
    (),
    (4, 1.5),
    (1, 1.2),
    (6, 1.5, 1, 1.5),
    (3, 1, 1, 1, 1, 1),
    (2, 2),
    (8, 2),
)
MOST_LINES: Final = len(COLOURS)
"""Number of lines in a chart that differ in colour, marker and dashes."""
_LETTERS: Final = 7
# Heights in inches: a panel with its axis, a line of a legend, and the margin of a legend.
_PANEL: Final = 2.0
_LINE: Final = 0.155
_MARGIN: Final = 0.35
_METADATA: Final = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_STYLE: Final = {
    **{"font.size": _LETTERS, "axes.titlesize": _LETTERS + 1, "axes.labelsize": _LETTERS},
    **{"xtick.labelsize": _LETTERS, "ytick.labelsize": _LETTERS, "legend.fontsize": _LETTERS},
    **{
        "legend.title_fontsize": _LETTERS,
        "legend.frameon": False,
        "legend.handlelength": 2.6,
        "legend.labelspacing": 0.35,
    },
    **{"axes.linewidth": 0.5, "xtick.major.width": 0.5, "ytick.major.width": 0.5, "grid.linewidth": 0.4},
    **{"xtick.major.size": 2.5, "ytick.major.size": 2.5, "lines.linewidth": 1, "lines.markersize": 3.5},
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#DDDDDD"},
    # Names are no formulas. Publishers refuse fonts of type 3. A fixed salt gives every SVG the same names.
    **{"axes.axisbelow": True, "text.parse_math": False, "pdf.fonttype": 42, "svg.hashsalt": "robustgen"},
}


def look_of(place: int) -> Look:
    """Return the look of the line with this number; the first seven share nothing.

    Later ones share colours with these, but in no case colour and marker.
    """
    colour, other = place % MOST_LINES, (place + place // MOST_LINES) % MOST_LINES
    return Look(COLOURS[colour], MARKERS[other], DASHES[other])


def check_chart_path(path: Path, *others: str) -> None:
    """Check before the work that a chart can be drawn; `others` are suffixes of other files.

    Raises
    ------
    ConfigError
        The name has an unknown suffix.
    MissingDependencyError
        matplotlib is not installed.
    """
    if path.suffix.lower() not in CHART_SUFFIXES:
        raise ConfigError(f"--output {path}: must end in {', '.join((*CHART_SUFFIXES, *others))}")
    _matplotlib()


def _matplotlib() -> Any:
    with explain_import("charts need matplotlib", "plot"):
        import matplotlib
        import matplotlib.figure
        import matplotlib.textpath
    return matplotlib


def draw_chart(path: Path, size: tuple[float, float], draw: Callable[[Any], None]) -> None:
    """Call `draw` on a figure of this size in inches, and save it as a PNG, SVG or PDF file.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    matplotlib = _matplotlib()
    with matplotlib.rc_context(_STYLE):
        figure = matplotlib.figure.Figure(figsize=size, layout="constrained")
        draw(figure)
        suffix, buffer = path.suffix.lower(), io.BytesIO()
        figure.savefig(buffer, format=suffix[1:], dpi=300, metadata=_METADATA[suffix])
    save(path, buffer.getvalue(), f"--output {path}")


class Point(NamedTuple):
    """A value, and the ends of its interval if it has one."""

    value: float
    interval: tuple[float, float] | None = None

    def scale(self, factor: float) -> "Point":
        """Return the point in another unit."""
        ends = self.interval and (factor * self.interval[0], factor * self.interval[1])
        return Point(factor * self.value, ends)


@dataclass(frozen=True)
class Curve:
    """A small chart of a page: values against severity, frame or visit.

    Attributes
    ----------
    name : str
    x : list of int
    mean, low, high : list of float
        Value and the ends of its band at each `x`: the smallest and largest value, or an interval.
    """

    name: str
    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


class CurveGroup(NamedTuple):
    """Curves of a page below one heading.

    Attributes
    ----------
    title : str
    label : str
        What the values are drawn against.
    parts : dict of str to list of Curve
        Curves by category; "" for none.
    """

    title: str
    label: str
    parts: dict[str, list[Curve]]


def measure_whiskers(points: Sequence[Point]) -> list[list[float]] | None:
    """Return the distances from values to both ends of their intervals; None if there are no intervals."""
    if not any(point.interval for point in points):
        return None
    ends = [point.interval or (point.value, point.value) for point in points]
    pairs = [
        (max(0, p.value - low), max(0, high - p.value)) for p, (low, high) in zip(points, ends, strict=True)
    ]
    return [list(each) for each in zip(*pairs, strict=True)]


def draw_lines(axes: Any, lines: Sequence[Sequence[Point]]) -> list[Any]:
    """Draw lines with whiskers and markers, and return them for a legend.

    They stand side by side, so that equal ones are seen.
    """
    drawn = []
    for place, points in enumerate(lines):
        look, aside = look_of(place), (place - (len(lines) - 1) / 2) * min(0.1, 0.5 / len(lines))
        drawn.append(
            axes.errorbar(
                [at + aside for at in range(len(points))],
                [point.value for point in points],
                measure_whiskers(points),
                color=look.color,
                marker=look.marker,
                linestyle=(0, look.dashes) if look.dashes else "-",
                elinewidth=0.7,
                markeredgewidth=0,
                clip_on=False,
                zorder=3,
            )
        )
    return drawn


def count_panels(count: int, width: float) -> tuple[int, int]:
    """Return the rows and columns of so many panels in a chart of this width."""
    columns = min(count, round(width / 1.7))
    return -(-count // columns), columns


def measure_panels(count: int, width: float, lines: int = 0) -> float:
    """Return the height of a chart of panels, each above a legend of so many lines; 0 for none."""
    return count_panels(count, width)[0] * (_PANEL + (_LINE * lines + 0.1 if lines else 0))


def list_below(axes: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Add a legend below the axis of a panel."""
    axes.legend(handles, names, loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4.6)


def arrange_legend(names: Sequence[str], width: float) -> tuple[list[str], int, float]:
    """Return names of a legend in lines that fit a chart, the number of its columns, and its height.

    `width` and the height are in inches.
    """
    matplotlib = _matplotlib()
    with matplotlib.rc_context(_STYLE):
        # A line before each name, and gaps.
        room, before = 72 * width - 12, 5.5 * _LETTERS
        lengths = [
            matplotlib.textpath.TextPath((0, 0), name, size=_LETTERS).get_extents().x1 for name in names
        ]
    longest = max(lengths)
    columns = max(1, min(len(names), int(room // (longest + before))))
    fitting = int((room - before) / longest * max(map(len, names))) if columns == 1 else max(map(len, names))
    wrapped = ["\n".join(textwrap.wrap(name, max(12, fitting)) or [name]) for name in names]
    lines = sum(name.count("\n") + 1 for name in wrapped)
    return wrapped, columns, -(-lines // columns) * _LINE + _MARGIN


def add_legend(figure: Any, handles: Sequence[Any], names: Sequence[str], title: str = "") -> None:
    """Add a legend below all axes: a name, whole, for each handle."""
    wrapped, columns, _ = arrange_legend(names, figure.get_figwidth())
    places = [f"{number}" for number in range(len(names))]
    legend = figure.legend(
        handles,
        places,
        title=f"{title[:1].upper()}{title[1:]}" or None,
        loc="outside lower center",
        ncols=columns,
        columnspacing=1.5,
    )
    # matplotlib would leave out names that begin with an underscore.
    for text, name in zip(legend.get_texts(), wrapped, strict=True):
        text.set_text(name)
