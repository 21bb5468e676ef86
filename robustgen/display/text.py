"""Formatting: counts, sizes, times, paths and names; tables of numbers; JSON and CSV for programs."""

import csv
import html
import io
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Final


def format_count(number: int, noun: str) -> str:
    """Return ``"1 image"``, ``"50,000 images"``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def format_size(size: float) -> str:
    """Return `size`, in bytes, with a unit and three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def format_time(seconds: float) -> str:
    """Return `seconds` in a suitable unit."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def format_path(path: Path | str) -> str:
    """Return a path, escaped, and relative to the current folder if it is below that."""
    here = Path.cwd().as_posix()
    return escape(str(path).removeprefix(f"{here}/"))


def escape(text: object) -> str:
    """Return `text` with invisible characters, line breaks and direction marks as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def format_json(content: Any) -> str:
    """Return `content` as JSON; NaN and infinity become null, because JSON has neither."""
    return json.dumps(replace_nan(content), indent=1)


def replace_nan(value: Any) -> Any:
    """Return JSON content with None in place of NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: replace_nan(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [replace_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_constant(value: object) -> str:
    """Return a constant of a corruption: ``"0.5"``, ``"3"``, ``"exact"``, ``"0.1, 0.9"``."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(format_constant, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def format_signed(value: float, digits: int) -> str:
    """Return `value` with its sign and so many digits; what rounds to zero has a plus."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def format_name(name: str) -> str:
    """Return ``"glass blur"`` for ``glass_blur``."""
    return name.replace("_", " ")


# --- tables of numbers: text, Markdown, LaTeX and HTML for people, CSV for programs ----------------

# In LaTeX, in points: the 345 of an article's page less a margin, the gap between columns, and a character.
_PAGE, _GAP, _CHARACTER = 340, 6, 5
# Names and headings are not shortened below this number of characters.
_SHORTEST: Final = 12
# Intervals whose shorter side is less than this share of the longer one are printed with both ends.
_LOPSIDED: Final = 0.6


@dataclass(frozen=True)
class Cell:
    """A number in a table.

    Attributes
    ----------
    value : float or None
        None if it is missing.
    interval : tuple of (float, float), optional
        Ends of its 95 % interval, which is printed as plus or minus half of its width, or with both ends if
        one is much nearer.
    form : str
        Format in print.
    factor : float
        Factor in print: 100 for per cent.
    sense : {-1, 0, 1}
        1 if the highest value of the column is the best, -1 if the lowest is, 0 if none is.
    """

    value: float | None
    interval: tuple[float, float] | None = None
    form: str = ".1f"
    factor: float = 100
    sense: int = 0

    def format(self, missing: str, between: str) -> str:
        """Return the number as text, with `between` before half of the interval."""
        number = self.format_value(missing)
        if self.value is None or self.interval is None:
            return number
        low, high = self.interval
        if self.is_lopsided:
            return f"{number} [{', '.join(self.format_ends())}]"
        return f"{number}{between}{self.factor * (high - low) / 2:{self.form.lstrip('+')}}"

    def format_value(self, missing: str) -> str:
        """Return the number as text, without its interval."""
        return missing if self.value is None else f"{self.factor * self.value:{self.form}}"

    def format_ends(self) -> list[str]:
        """Return the ends of the interval as text."""
        return [f"{self.factor * end:{self.form}}" for end in self.interval or ()]

    @property
    def is_lopsided(self) -> bool:
        """Return whether the interval goes much further to one side, so that half of it says too little."""
        if self.value is None or self.interval is None:
            return False
        sides = sorted((self.value - self.interval[0], self.interval[1] - self.value))
        return sides[0] < _LOPSIDED * sides[1]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    title : str
        Description of the numbers; empty for none.
    heads : sequence of str
        Headings of all columns.
    rows : sequence of sequences
        For each row, a `Cell` or a text for each column.
    groups : sequence of str
        Headings above those of the columns, one for each; equal neighbours share one. Empty for none.
    names : int
        Number of the first columns, to the left, which name the rows; numbers are to the right.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    groups: Sequence[str] = ()
    names: int = 1

    @property
    def group_counts(self) -> list[tuple[str, int]]:
        """Return the headings above those of the columns, and the number of columns below each."""
        return [(group, len([*columns])) for group, columns in groupby(self.groups)]

    @property
    def full_title(self) -> str:
        """Return the title, which explains the intervals if there are any."""
        cells = [cell for row in self.rows for cell in row if isinstance(cell, Cell) and cell.interval]
        half = ", ± half a 95 % interval" * any(not cell.is_lopsided for cell in cells)
        ends = ", [95 % interval]" * any(cell.is_lopsided for cell in cells)
        return f"{self.title}{half}{ends}"

    def format(self, missing: str = "-", between: str = " ±") -> list[list[str]]:
        """Return the headings and the rows as text; `between` stands before half of an interval."""
        rows = [
            [cell.format(missing, between) if isinstance(cell, Cell) else escape(cell) for cell in row]
            for row in self.rows
        ]
        return [[*self.heads], *rows]

    @cached_property
    def grid(self) -> list[list[str]]:
        """Return the headings and the rows as text, with the intervals of a column below each other."""
        heads, *rows = self.format()
        columns = []
        for column in zip(*rows, strict=True):
            pieces = [text.partition(" ±" if " ±" in text else " [") for text in column]
            room = max((len(half) for _, mark, half in pieces if mark == " ±"), default=0)
            ends = [mark + (half.rjust(room) if mark == " ±" else half) for _, mark, half in pieces]
            widest = max(map(len, ends))
            columns.append([piece[0] + end.ljust(widest) for piece, end in zip(pieces, ends, strict=True)])
        return [heads, *map(list, zip(*columns, strict=True))]

    @property
    def widths(self) -> list[int]:
        """Return the widths of the columns as text."""
        return [max(map(len, column)) for column in zip(*self.grid, strict=True)]

    def fit(self, width: int) -> "list[Table]":
        """Return the table at most `width` wide.

        What does not fit goes in this order: the beginnings of names and headings, then the intervals. If it
        is still too wide, its columns are divided among several tables.
        """
        rows = [[replace(c, interval=None) if isinstance(c, Cell) else c for c in row] for row in self.rows]
        plain = replace(self, rows=rows)
        for table in (self, self._shorten(width), plain, plain._shorten(width)):
            if _span(table.widths) <= width:
                return [table]
        shortened = plain._shorten(width, max(_SHORTEST, width // 3))
        return shortened.divide(width, shortened.widths)

    def _shorten(self, width: int, least: int = _SHORTEST) -> "Table":
        """Return the table with the ends only of headings, and of names if necessary: `least` characters."""
        table = replace(self, heads=[self.heads[0], *(_cut(head, least) for head in self.heads[1:])])
        room = max(least, width - _span([0, *table.widths[1:]]))
        return replace(table, rows=[[_cut(str(name), room), *cells] for name, *cells in self.rows])

    def divide(self, width: int, widths: Sequence[int], gap: int = 2) -> "list[Table]":
        """Return tables of some of the columns each, after those that name the rows.

        Groups stay whole if they fit.
        """
        start, parts = self.names, list[Table]()
        while start < len(widths):
            end = start + 1
            while end < len(widths) and (
                _span([*widths[: self.names], *widths[start : end + 1]], gap) <= width
            ):
                end += 1
            breaks = [
                n for n in range(start + 1, end + 1) if [*self.groups[n - 1 : n]] != [*self.groups[n : n + 1]]
            ]
            end = breaks[-1] if breaks and end < len(widths) else end
            heads, groups = ([*row[: self.names], *row[start:end]] for row in (self.heads, self.groups))
            rows = [[*row[: self.names], *row[start:end]] for row in self.rows]
            parts.append(Table("" if parts else self.title, heads, rows, groups, self.names))
            start = end
        return parts


def _cut(text: str, room: int) -> str:
    # The end of a path is more informative than its beginning.
    return text if len(text) <= room else "…" + text[-(room - 1) :]


def _span(widths: Sequence[int], gap: int = 2) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def format_tables(tables: Sequence[Table], form: str = "table", width: int = 0) -> str:
    """Return tables as text, Markdown, LaTeX or HTML; text fits into `width`, unless that is 0."""
    if form == "table":
        parts = [part for table in tables for part in (table.fit(width) if width else [table])]
        return "\n\n".join("\n".join(_list_lines(part, width)) for part in parts)
    if form == "latex":
        parts = [part for table in tables for part in table.divide(_PAGE, _measure_latex(table), _GAP)]
        return "\n\n".join(map(_latex, parts))
    style = _HTML_STYLE if form == "html" else ""
    return style + "\n\n".join(map({"markdown": _markdown, "html": _html}[form], tables))


def _measure_latex(table: Table) -> list[int]:
    """Return the widths of the columns in points."""
    return [_CHARACTER * max(map(len, column)) for column in zip(*table.format("--", " ± "), strict=True)]


def _list_lines(table: Table, width: int) -> Iterator[str]:
    yield from textwrap.wrap(table.full_title, width or len(table.full_title) + 1)
    widths = table.widths
    if any(table.groups):
        pieces, start = [], 0
        for label, count in table.group_counts:
            end = start + count
            pieces.append(f" {label} ".center(_span(widths[start:end]), "-" if label else " "))
            start = end
        yield "  ".join(pieces).rstrip()
    for row in table.grid:
        cells = [
            cell.ljust(room) if index < table.names else cell.rjust(room)
            for index, (cell, room) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _markdown(table: Table) -> str:
    """Return a pipe table below its title in bold."""
    heads, *rows = table.format("", " ± ")
    rule = ["---"] * table.names + ["---:"] * (len(heads) - table.names)
    texts = [[*map(_escape_markdown, row)] for row in (heads, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in (texts[0], rule, *texts[1:])]
    return "\n".join([f"**{_escape_markdown(table.full_title)}**", "", *lines])


def _escape_markdown(text: str) -> str:
    """Escape what Markdown would read as marks, a cell's end or HTML; inside words, `_` is none of these."""
    return re.sub(r"[\\`*\[\]<|~$&]|\b_|_\b", lambda found: f"\\{found[0]}", text)


# As the tables of pages; a notebook decides the colours, and stripes tables unless told otherwise.
_HTML_STYLE: Final = """\
<style>
table.robustgen { border-collapse: collapse; font: .92em/1.5 system-ui; font-variant-numeric: tabular-nums; }
table.robustgen caption { text-align: left; font-weight: 600; padding: .4rem 0; color: inherit; }
table.robustgen tr { background: none; border: 0; }
table.robustgen :is(th, td) { padding: .25rem .7rem .25rem 0; text-align: right; }
table.robustgen :is(th, td) { border: 0; border-bottom: 1px solid #8885; }
table.robustgen th:first-child, table.names2 td:nth-child(2) { text-align: left; font-weight: 400; }
</style>
"""


def _html(table: Table) -> str:
    """Return a table for a notebook, below its title."""
    heads, *rows = ([html.escape(cell) for cell in row] for row in table.format("", " ± "))
    lines = [f"<tr><th>{'</th><th>'.join(heads)}</th></tr>"]
    lines += [f"<tr><th>{row[0]}</th><td>{'</td><td>'.join(row[1:])}</td></tr>" for row in rows]
    start = f'<table class="robustgen names{table.names}"><caption>{html.escape(table.full_title)}</caption>'
    return f"{start}{''.join(lines)}</table>"


_LATEX: Final[Mapping[str, str]] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # The usual fonts have other characters in the place of these.
    "…": r"\ldots{}",
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _escape(text: str) -> str:
    return re.sub(r"[\\~^<>|&%$#_{}…]", lambda found: _LATEX[found[0]], text)


def _latex(table: Table) -> str:
    """Return a `tabular` environment of the package booktabs, with the best of each column in bold."""
    columns = [_column(column) for column in zip(*table.rows, strict=True)]
    grid = [map(_escape, table.heads), *zip(*columns, strict=True)]
    head, *rows = [" & ".join(row) + r" \\" for row in grid]
    groups, rules, end = list[str](), list[str](), 0
    for label, count in table.group_counts:
        start, end = end + 1, end + count
        groups.append(rf"\multicolumn{{{count}}}{{c}}{{{_escape(label)}}}" if label else " & " * (count - 1))
        rules += [rf"\cmidrule(lr){{{start}-{end}}}"] * bool(label)
    lines = [
        *[f"% {table.full_title}; needs the package booktabs"] * bool(table.title),
        rf"{{\setlength{{\tabcolsep}}{{{_GAP / 2:g}pt}}%",
        rf"\begin{{tabular}}{{@{{}}{'l' * table.names}{'r' * (len(table.heads) - table.names)}@{{}}}}",
        r"\toprule",
        *([" & ".join(groups) + r" \\", " ".join(rules)] if rules else []),
        head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}}",
    ]
    return "\n".join(lines)


def _column(cells: Sequence[object]) -> list[str]:
    """Return a column in LaTeX; of several numbers the best, as printed, are bold."""
    known = [cell for cell in cells if isinstance(cell, Cell) and cell.value is not None and cell.sense]
    best = max(known, key=lambda cell: cell.sense * (cell.value or 0)) if len(known) > 1 else None
    column = []
    for cell in cells:
        if not isinstance(cell, Cell):
            column.append(_escape(escape(cell)))
            continue
        text = cell.format("--", r" $\pm$ ")
        # Equal in print is equal to the reader.
        bold = best and replace(cell, interval=None).format("", "") == replace(best, interval=None).format(
            "", ""
        )
        column.append(rf"\textbf{{{text}}}" if bold else text)
    return column


def list_numbers(tables: Sequence[Table]) -> list[dict[str, object]]:
    """Return a row for each number in tables: table, row, column, value, and the ends of its interval."""
    found = list[dict[str, object]]()
    for table in tables:
        groups = table.groups or [""] * len(table.heads)
        for row in table.rows:
            name = ", ".join(map(str, row[: table.names]))
            for group, head, cell in zip(groups, table.heads, row, strict=True):
                if isinstance(cell, Cell):
                    low, high = cell.interval or (None, None)
                    place = {
                        "table": table.title,
                        "row": name,
                        "column": f"{group}: {head}" if group else head,
                    }
                    found.append({**place, "value": cell.value, "low": low, "high": high})
    return found


def as_csv(records: Sequence[Mapping[str, object]]) -> str:
    """Return one line per record; the first line names the columns, which are those of all records."""
    buffer = io.StringIO()
    columns = dict.fromkeys(name for record in records for name in record)
    writer = csv.DictWriter(buffer, [*columns], lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({name: _disarm(value) for name, value in record.items()})
    return buffer.getvalue().removesuffix("\n")


def _disarm(value: object) -> object:
    """Return a text with an apostrophe before a sign with which a spreadsheet begins a formula."""
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
        else value
    )


def format_as(
    form: str,
    tables: Callable[[], Sequence[Table]],
    records: Callable[[], Sequence[Mapping[str, object]]],
    content: Callable[[], Any],
    width: int = 0,
) -> str:
    """Return a report in one of its text forms.

    Parameters
    ----------
    form : {"table", "markdown", "latex", "csv", "json"}
    tables, records, content : callable
        Return the tables for people, the rows of the CSV, and the content of the JSON.
    width : int
        Width of the terminal, which text fits; 0 for any.
    """
    if form == "json":
        return format_json(content())
    if form == "csv":
        return as_csv(records())
    return format_tables(tables(), form, width)
