"""Charts by matplotlib: whether they can be drawn, their colours, and their files."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from robustgen.errors import ConfigError, MissingDependencyError
from robustgen.storage import save

CHART_SUFFIXES: Final = (".png", ".svg", ".pdf")
# Okabe and Ito's colours, which most colour-blind people can tell apart.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_METADATA: Final = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def check_chart_path(path: Path) -> None:
    """Find out before the work whether a chart can be drawn at all.

    Raises
    ------
    ConfigError
        The name ends in nothing we know.
    MissingDependencyError
        matplotlib is not installed.
    """
    if path.suffix.lower() not in CHART_SUFFIXES:
        raise ConfigError(f"--plot {path}: must end in {', '.join(CHART_SUFFIXES)}")
    _matplotlib()


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise MissingDependencyError("--plot needs matplotlib: pip install 'robustgen[plot]'") from error
    return matplotlib


def draw_chart(path: Path, draw: Callable[[Any], None]) -> None:
    """Have `draw` draw into a figure, and save that as a PNG, SVG or PDF file.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    matplotlib = _matplotlib()
    # Without a salt of ours every SVG would have other names in it.
    with matplotlib.rc_context({"svg.hashsalt": "robustgen", "font.size": 10}):
        figure = matplotlib.figure.Figure(figsize=(12, 3.8), layout="constrained")
        draw(figure)
        kind, buffer = path.suffix.lower(), io.BytesIO()
        figure.savefig(buffer, format=kind[1:], dpi=150, metadata=_METADATA[kind])
    save(path, buffer.getvalue(), f"--plot {path}")
