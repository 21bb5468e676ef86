"""Tables of scores as text, Markdown, LaTeX."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Headings as the papers print them.
_HEADS: Final = {
    **{"gaussian_noise": "Gauss.", "shot_noise": "Shot", "impulse_noise": "Impulse"},
    **{"speckle_noise": "Speckle", "defocus_blur": "Defocus", "glass_blur": "Glass"},
    **{"motion_blur": "Motion", "zoom_blur": "Zoom", "gaussian_blur": "Gauss. blur"},
    **{"snow": "Snow", "frost": "Frost", "fog": "Fog", "brightness": "Bright", "spatter": "Spatter"},
    **{"contrast": "Contrast", "elastic_transform": "Elastic", "pixelate": "Pixel"},
    **{"jpeg_compression": "JPEG", "saturate": "Saturate", "translate": "Translate"},
    **{"rotate": "Rotate", "tilt": "Tilt", "scale": "Scale", "shear": "Shear"},
}


def head_of(operation: str) -> str:
    """Return the heading of the column of an operation, as the papers abbreviate it."""
    return _HEADS.get(operation, operation)


Cells = tuple[float | None, ...]


@dataclass(frozen=True)
class ScoreTable:
    """One measure of several models, in the layout of the papers.

    Attributes
    ----------
    title : str
        Description of the numbers, including whether they are normalised.
    columns : tuple of str
        Headings of the columns after the model's name.
    groups : tuple of (str, int)
        Headings above the columns, and the number of columns of each; together they cover all columns.
    rows : tuple of (str, tuple of float or None)
        Model, and its values; None for a missing value.
    factor : float
        Factor of the values in print: 100 for per cent.
    digits : int
        Decimals in print.
    head : str
        Heading of the first column.
    """

    title: str
    columns: tuple[str, ...]
    groups: tuple[tuple[str, int], ...]
    rows: tuple[tuple[str, Cells], ...]
    factor: float = 100
    digits: int = 1
    head: str = "Model"

    def format_rows(self, empty: str) -> list[list[str]]:
        """Return all rows as text, with `empty` for a missing value."""
        return [
            [name, *(empty if v is None else f"{self.factor * v:.{self.digits}f}" for v in values)]
            for name, values in self.rows
        ]


def as_text(tables: Sequence[ScoreTable]) -> str:
    """Return tables as text with aligned columns, for a terminal."""
    return "\n\n".join(map(_text, tables))


def _text(table: ScoreTable) -> str:
    grid = [[table.head, *table.columns], *table.format_rows("-")]
    groups = [_span_groups(table.groups, _widths(grid))] if any(label for label, _ in table.groups) else []
    return "\n".join([table.title, *groups, *align_grid(grid)])


def _widths(grid: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*grid, strict=True)]


def align_grid(grid: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a grid of text: the first column to the left, all others to the right."""
    first, *others = _widths(grid)
    return ["  ".join([name.ljust(first), *map(str.rjust, cells, others)]).rstrip() for name, *cells in grid]


def _span_groups(groups: Sequence[tuple[str, int]], widths: Sequence[int]) -> str:
    """Return the line of the groups, each centred over its columns."""
    line, at = " " * widths[0], 1
    for label, span in groups:
        room = sum(widths[at : at + span]) + 2 * (span - 1)
        line += "  " + (f" {label} ".center(room, "-") if label else " " * room)
        at += span
    return line.rstrip()


def as_markdown(tables: Sequence[ScoreTable]) -> str:
    """Return tables as pipe tables, each below its title in bold."""
    return "\n\n".join(map(_markdown, tables))


def _markdown(table: ScoreTable) -> str:
    grid = [[table.head, *table.columns], ["---", *["---:"] * len(table.columns)], *table.format_rows("")]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in grid]
    return "\n".join([f"**{table.title}**", "", *lines])


def as_latex(tables: Sequence[ScoreTable]) -> str:
    r"""Return tables as `tabular` environments with the rules of the package booktabs."""
    return "\n\n".join(map(_latex, tables))


_LATEX: Final[Mapping[str, str]] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _escape(text: str) -> str:
    return re.sub(r"[\\~^&%$#_{}]", lambda found: _LATEX[found[0]], text)


def _latex(table: ScoreTable) -> str:
    heads = [rf"\multicolumn{{{span}}}{{c}}{{{_escape(label)}}}" for label, span in table.groups]
    grid = [[table.head, *table.columns], *table.format_rows("--")]
    head, *rows = [" & ".join(map(_escape, row)) + r" \\" for row in grid]
    lines = [
        f"% {table.title}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        *([" & ".join(["", *heads]) + r" \\"] if any(label for label, _ in table.groups) else []),
        head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


LAYOUTS: Final[Mapping[str, Callable[[Sequence[ScoreTable]], str]]] = {
    "table": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
}
"""Layouts of tables, by their names on the command line."""
