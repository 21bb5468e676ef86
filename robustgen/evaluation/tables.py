"""Tables of scores as text, Markdown, CSV, LaTeX."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Cell = float | None


@dataclass(frozen=True)
class Table:
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
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    factor: float = 100
    digits: int = 1

    def printed(self, empty: str) -> list[list[str]]:
        """All rows as text, `empty` where there is no value."""
        return [
            [name, *(empty if v is None else f"{self.factor * v:.{self.digits}f}" for v in values)]
            for name, values in self.rows
        ]


def as_text(tables: Sequence[Table]) -> str:
    """Columns in line, for a terminal."""
    return "\n\n".join(map(_text, tables))


def _text(table: Table) -> str:
    rows = table.printed("-")
    grid = [["Model", *table.columns], *rows]
    widths = [max(len(row[i]) for row in grid) for i in range(len(grid[0]))]
    lines = [_spanned(table.groups, widths)] if any(label for label, _ in table.groups) else []
    for name, *cells in grid:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *padded]).rstrip())
    return "\n".join([table.title, *lines])


def _spanned(groups: Sequence[tuple[str, int]], widths: Sequence[int]) -> str:
    """The line of the groups, each in the middle over its columns."""
    line, at = " " * widths[0], 1
    for label, span in groups:
        room = sum(widths[at : at + span]) + 2 * (span - 1)
        line += "  " + (f" {label} ".center(room, "-") if label else " " * room)
        at += span
    return line.rstrip()


def as_markdown(tables: Sequence[Table]) -> str:
    """Pipe tables, each under its title in bold."""
    return "\n\n".join(map(_markdown, tables))


def _markdown(table: Table) -> str:
    grid = [["Model", *table.columns], ["---", *["---:"] * len(table.columns)], *table.printed("")]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in grid]
    return "\n".join([f"**{table.title}**", "", *lines])


def as_latex(tables: Sequence[Table]) -> str:
    r"""`tabular` environments with the rules of the package booktabs."""
    return "\n\n".join(map(_latex, tables))


_LATEX: Final[Mapping[str, str]] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _escaped(text: str) -> str:
    return re.sub(r"[\\~^&%$#_{}]", lambda found: _LATEX[found[0]], text)


def _latex(table: Table) -> str:
    heads = [rf"\multicolumn{{{span}}}{{c}}{{{_escaped(label)}}}" for label, span in table.groups]
    grid = [["Model", *table.columns], *table.printed("--")]
    head, *rows = [" & ".join(map(_escaped, row)) + r" \\" for row in grid]
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


def as_csv(records: Sequence[Mapping[str, object]]) -> str:
    """One line a record; the first names the columns."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue().rstrip("\n")


LAYOUTS: Final[Mapping[str, Callable[[Sequence[Table]], str]]] = {
    "table": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
}
"""How tables can be laid out, by the names that the command line has for it."""
