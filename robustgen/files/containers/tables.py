"""Tables read and written in chunks of rows: tab-separated values and JSON lines."""

import base64
import csv
import itertools
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, NamedTuple

# Rows with images as text have about a megabyte.
_ROWS: Final = 32
_QUOTED: Final = ('"', "\t", "\n", "\r")

RowPlace = tuple[int, int]
"""Place of a row in a file: offset and bytes, or row group and row. It increases from row to row."""


Columns = Mapping[str, Sequence[Any]]
"""New cells of columns, for all rows of a chunk."""
AddRows = Callable[[Any, Columns, Sequence[bool]], None]
"""Function that appends the rows of a chunk that are kept, with new cells in some columns."""


class TextRow(NamedTuple):
    """A row of a text table: its offset, its bytes, and its cells by column."""

    offset: int
    raw: bytes
    cells: dict[str, Any]


class Rows(NamedTuple):
    """Consecutive rows of a text table."""

    rows: list[TextRow]

    @property
    def places(self) -> list[RowPlace]:
        """Return the place of each row."""
        return [(row.offset, len(row.raw)) for row in self.rows]

    def cells(self, column: str) -> list[Any]:
        """Return the cells of `column`."""
        return [row.cells.get(column) for row in self.rows]


class TextTable(ABC):
    """A table whose rows are one or more lines of text."""

    @abstractmethod
    def _iterate(self, file: IO[bytes], start: int = 0) -> Iterator[TextRow]:
        """Yield the rows from offset `start`, or all."""

    @abstractmethod
    def _format(self, cells: Mapping[str, Any], raw: bytes) -> str:
        """Return the line of a row, which was `raw` in the source."""

    def read(self, file: IO[bytes], columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """Yield all rows in chunks; raise a ValueError if a row is damaged."""
        found = self._iterate(file)
        while some := [*itertools.islice(found, _ROWS)]:
            yield Rows(some)

    def read_cell(self, file: IO[bytes], place: RowPlace, column: str) -> Any:
        """Return one cell."""
        return next(self._iterate(file, place[0])).cells.get(column)

    @contextmanager
    def write(self, file: Any, like: IO[bytes]) -> Iterator[AddRows]:
        """Begin a file with the header of `like`, and return a function that appends rows."""

        def add(chunk: Rows, columns: Columns, kept: Sequence[bool]) -> None:
            for number, row in enumerate(chunk.rows):
                if kept[number]:
                    own = {name: cells[number] for name, cells in columns.items() if name in row.cells}
                    file.write(self._format(row.cells | own, row.raw).encode() + b"\n")

        yield add


class JsonLines(TextTable):
    """A JSON object per line; numbers may be reformatted, all other values are kept."""

    suffix = ".jsonl"

    def read_columns(self, file: IO[bytes]) -> list[str]:
        """Return the keys of all objects in the first chunk of rows."""
        first = itertools.islice(self._iterate(file), _ROWS)
        return [*dict.fromkeys(name for row in first for name in row.cells)]

    def _iterate(self, file: IO[bytes], start: int = 0) -> Iterator[TextRow]:
        offset = file.seek(start)
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    cells = json.loads(line)
                    if not isinstance(cells, dict):
                        raise ValueError(f"contains {type(cells).__name__}, not an object")
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error
                yield TextRow(offset, line, cells)
            offset += len(line)

    def _format(self, cells: Mapping[str, Any], raw: bytes) -> str:
        return json.dumps(cells, ensure_ascii=raw.isascii(), default=_as_text)


def _as_text(value: bytes) -> str:
    """Return bytes, which JSON cannot represent, as base64 text."""
    return base64.b64encode(value).decode()


class TabSeparated(TextTable):
    """Tab-separated values with a header, quoted as in pandas."""

    suffix = ".tsv"

    def read_columns(self, file: IO[bytes]) -> list[str]:
        """Return the header, and leave `file` at the first row."""
        file.seek(0)
        _, header = next(_read_csv(file), (b"", []))
        if not header:
            raise ValueError("has no header")
        header[0] = header[0].removeprefix("\ufeff")
        if twice := next((name for name in header if header.count(name) > 1), None):
            raise ValueError(f"column {twice!r} occurs twice in the header")
        return header

    def _iterate(self, file: IO[bytes], start: int = 0) -> Iterator[TextRow]:
        header = self.read_columns(file)
        offset = file.seek(start or file.tell())
        for number, (raw, cells) in enumerate(_read_csv(file)):
            if cells:
                if len(cells) != len(header):
                    raise ValueError(f"row {number} has {len(cells)} cells, the header {len(header)}")
                yield TextRow(offset, raw, dict(zip(header, cells, strict=True)))
            offset += len(raw)

    def _format(self, cells: Mapping[str, Any], raw: bytes) -> str:
        return "\t".join(map(_quote, cells.values())) or '""'

    @contextmanager
    def write(self, file: Any, like: IO[bytes]) -> Iterator[AddRows]:
        """Begin a file with the header of `like`, and return a function that appends rows."""
        header = self.read_columns(like)
        file.write(self._format(dict(zip(header, header, strict=True)), b"").encode() + b"\n")
        with super().write(file, like) as add:
            yield add


def _quote(cell: Any) -> str:
    """Return a cell as `csv.writer` would write it, but without examining each character."""
    text = "" if cell is None else str(cell)
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in _QUOTED) else text


def _read_csv(file: IO[bytes]) -> Iterator[tuple[bytes, list[str]]]:
    """Yield bytes and cells of each row from the position of `file`; raise a ValueError on damage."""
    taken = list[bytes]()

    def take(line: bytes) -> str:
        taken.append(line)
        return line.decode()

    # A cell may contain an image.
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    for line in file:
        if b'"' not in line:
            # The csv reader examines each character, which is slow for images.
            text = line.decode().removesuffix("\n").removesuffix("\r")
            yield line, text.split("\t") if text else []
            continue
        taken.clear()
        try:
            # A row consists of the lines that the reader consumes.
            lines = map(take, itertools.chain([line], file))
            cells = next(csv.reader(lines, delimiter="\t", strict=True))
        except csv.Error as error:
            raise ValueError(f"a row is damaged: {error}") from error
        yield b"".join(taken), cells
