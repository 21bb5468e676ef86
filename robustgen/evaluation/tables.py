"""Tables of scores as text, Markdown, LaTeX."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Cells = tuple[float | None, ...]


@dataclass(frozen=True)
class ScoreTable:
    """One measure of several models, in the layout of the papers.

    Attributes
    ----------
    title : str
        What the numbers are, and whether they are normalised.
    columns : tuple of str
        Heads of the columns after the model's name.
    groups : tuple of (str, int)
        What stands over the columns, and over how many; together over all of them.
    rows : tuple of (str, tuple of float or None)
        Model, and its values; None where there is none.
    factor : float
        What the values are multiplied by for print: 100 for per cent.
    digits : int
        Decimals in print.
    """

    title: str
    columns: tuple[str, ...]
    groups: tuple[tuple[str, int], ...]
    rows: tuple[tuple[str, Cells], ...]
    factor: float = 100
    digits: int = 1

    def format_rows(self, empty: str) -> list[list[str]]:
        """All rows as text, `empty` where there is no value."""
        return [
            [name, *(empty if v is None else f"{self.factor * v:.{self.digits}f}" for v in values)]
            for name, values in self.rows
        ]


def as_text(tables: Sequence[ScoreTable]) -> str:
    """Columns in line, for a terminal."""
    return "\n\n".join(map(_text, tables))


def _text(table: ScoreTable) -> str:
    rows = table.format_rows("-")
    grid = [["Model", *table.columns], *rows]
    widths = [max(len(row[i]) for row in grid) for i in range(len(grid[0]))]
    lines = [_span_groups(table.groups, widths)] if any(label for label, _ in table.groups) else []
    for name, *cells in grid:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *padded]).rstrip())
    return "\n".join([table.title, *lines])


def _span_groups(groups: Sequence[tuple[str, int]], widths: Sequence[int]) -> str:
    """The line of the groups, each in the middle over its columns."""
    line, at = " " * widths[0], 1
    for label, span in groups:
        room = sum(widths[at : at + span]) + 2 * (span - 1)
        line += "  " + (f" {label} ".center(room, "-") if label else " " * room)
        at += span
    return line.rstrip()


def as_markdown(tables: Sequence[ScoreTable]) -> str:
    """Pipe tables, each under its title in bold."""
    return "\n\n".join(map(_markdown, tables))


def _markdown(table: ScoreTable) -> str:
    grid = [["Model", *table.columns], ["---", *["---:"] * len(table.columns)], *table.format_rows("")]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in grid]
    return "\n".join([f"**{table.title}**", "", *lines])


def as_latex(tables: Sequence[ScoreTable]) -> str:
    r"""`tabular` environments with the rules of the package booktabs."""
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
    grid = [["Model", *table.columns], *table.format_rows("--")]
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
"""How tables can be laid out, by the names that the command line has for it."""
