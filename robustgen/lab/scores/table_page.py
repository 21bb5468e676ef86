"""Page of the scores of one model: its tables, with a bar for each interval, and the numbers as JSON."""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Protocol

from robustgen.display.charts import Curve, CurveGroup
from robustgen.display.html import render_page
from robustgen.display.text import Cell, Table, format_as, format_count, format_name, list_numbers
from robustgen.files.storage import save
from robustgen.lab.scores.exhibits import Examples
from robustgen.lab.scores.gates import NO_EVIDENCE, Evidence
from robustgen.lab.scores.intervals import Interval
from robustgen.lab.scores.result_grid import GridCell, divide_cells


class TableReport(Protocol):
    """The scores of one model, as tables, and a dictionary for JSON."""

    @property
    def model(self) -> str:
        """Return the name of the model."""

    @property
    def title(self) -> str:
        """Return the title of the page."""

    @property
    def method(self) -> str:
        """Return a sentence on the method of the intervals."""

    @property
    def lead(self) -> str:
        """Return what was scored, in one line."""

    @property
    def recorded(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what is recorded beside the results of the model, and of each set, by their names."""

    def list_curves(self) -> list[CurveGroup]:
        """Return the small charts of the page."""

    @property
    def notes(self) -> Sequence[str]:
        """Return notes for readers."""

    def list_tables(self) -> list[Table]:
        """Return the tables."""

    def as_dict(self) -> dict[str, Any]:
        """Return all values."""

    def list_scores(self) -> Mapping[str, float]:
        """Return the scores that conditions can name, in the unit of the tables."""


def group_curves(
    title: str,
    clean: float | None,
    cells: Mapping[GridCell, float | None],
    ends: Mapping[GridCell, Interval],
) -> CurveGroup:
    """Return a curve for each corruption, by category: values of severities from 0, the clean images."""
    start = {} if clean is None else {0: (clean, clean, clean)}
    known = {
        cell: (value, *ends.get(cell, (value, value))) for cell, value in cells.items() if value is not None
    }
    parts: dict[str, list[Curve]] = {}
    for category, own in divide_cells(known).items():
        for name, group in groupby(own, itemgetter(0)):
            rows = start | {cell[1]: known[cell] for cell in group}
            columns = map(list, zip(*rows.values(), strict=True))
            parts.setdefault(category, []).append(Curve(format_name(name), [*rows], *columns))
    return CurveGroup(title, "Severity (0: clean)", parts)


def render_report(report: TableReport, layout: str, width: int = 0, evidence: Evidence = NO_EVIDENCE) -> str:
    """Return a report in a layout; text fits a terminal of that width, 0 for any."""
    return format_as(
        layout,
        report.list_tables,
        lambda: list_numbers(report.list_tables()),
        lambda: report.as_dict() | evidence.as_dict(),
        width,
    )


_MOST_COLUMNS: Final = 6
"""Number of columns of numbers that fit a printed page."""


def name_models(names: Collection[str]) -> str:
    """Return the names of models for the heading of a page, or their number if there are many."""
    return ", ".join(names) if len(names) < 4 else format_count(len(names), "model")


def divide_table(table: Table) -> list[Table]:
    """Return tables that fit a printed page."""
    columns = len(table.heads) - table.names
    return table.divide(_MOST_COLUMNS, [0] * table.names + [1] * columns, 0) if columns else [table]


def write_table_page(
    report: TableReport, evidence: Evidence, path: Path, examples: Examples | None = None
) -> int:
    """Write the page about a report, and return its size in bytes.

    Raises
    ------
    OutputError
        The page cannot be written.
    """
    tables = [part for table in report.list_tables() for part in divide_table(table)] + evidence.list_tables()
    cells = (cell for table in tables for row in table.rows for cell in row)
    page = render_page(
        "tables.html",
        report=report,
        examples=examples,
        tables=tables,
        intervals=any(isinstance(cell, Cell) and cell.interval for cell in cells),
        data=report.as_dict() | evidence.as_dict(),
    )
    save(path, page, f"--output {path}")
    return len(page)
