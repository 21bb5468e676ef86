"""Charts with matplotlib: checks, colours, and files."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from robustgen.errors import ConfigError, MissingDependencyError
from robustgen.files.storage import save

CHART_SUFFIXES: Final = (".png", ".svg", ".pdf")
# Okabe and Ito's colours, which most colour-blind people can distinguish.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_METADATA: Final = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


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
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise MissingDependencyError("charts need matplotlib: pip install 'robustgen[plot]'") from error
    return matplotlib


def draw_chart(path: Path, draw: Callable[[Any], None]) -> None:
    """Call `draw` on a figure, and save it as a PNG, SVG or PDF file.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    matplotlib = _matplotlib()
    # A fixed salt gives every SVG the same names; a `$` in a name begins no formula.
    style = {"svg.hashsalt": "robustgen", "font.size": 10, "text.parse_math": False}
    with matplotlib.rc_context(style):
        figure = matplotlib.figure.Figure(figsize=(12, 3.8), layout="constrained")
        draw(figure)
        suffix, buffer = path.suffix.lower(), io.BytesIO()
        figure.savefig(buffer, format=suffix[1:], dpi=150, metadata=_METADATA[suffix])
    save(path, buffer.getvalue(), f"--output {path}")
