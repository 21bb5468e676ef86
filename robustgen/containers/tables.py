"""Tables read and written in chunks of rows: tab-separated values and JSON lines."""

import base64
import csv
import io
import itertools
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final

# Rows with images as text have about a megabyte.
_ROWS: Final = 32
_QUOTED: Final = ('"', "\t", "\n", "\r")

RowPlace = tuple[int, int]
"""Place of a row in a file: offset and bytes, or row group and row. It increases from row to row."""


class Rows:
    """Consecutive rows of a text table.

    Attributes
    ----------
    rows : list of tuple
        Offset, bytes and columns of each row.
    """

    def __init__(self, rows: list[tuple[int, bytes, dict[str, Any]]]) -> None:
        self.rows = rows

    @property
    def places(self) -> list[RowPlace]:
        """Return the place of each row."""
        return [(offset, len(raw)) for offset, raw, _ in self.rows]

    def cells(self, column: str) -> list[Any]:
        """Return the cells of `column`."""
        return [row.get(column) for *_, row in self.rows]

    def replace(self, columns: Mapping[str, list[Any]], kept: Sequence[bool]) -> "Rows":
        """Return the `kept` rows, with their `columns` (given for all rows) replaced."""
        rows = []
        for number, (offset, raw, row) in enumerate(self.rows):
            own = {name: cells[number] for name, cells in columns.items() if name in row}
            rows.append((offset, raw, row | own))
        return Rows([*itertools.compress(rows, kept)])


class _Text(ABC):
    """A table whose rows are one or more lines of text."""

    @abstractmethod
    def _iterate(self, file: IO[bytes]) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        """Yield offset, bytes and columns of each row."""

    def read(self, file: IO[bytes], columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """Yield all rows in chunks; raise a ValueError if a row is damaged."""
        found = self._iterate(file)
        while some := [*itertools.islice(found, _ROWS)]:
            yield Rows(some)


class JsonLines(_Text):
    """A JSON object per line; numbers may be reformatted, all other values are kept."""

    suffix = ".jsonl"

    def read_columns(self, file: IO[bytes]) -> list[str]:
        """Return the keys of all objects in the first chunk of rows."""
        first = itertools.islice(self._iterate(file), _ROWS)
        return [*dict.fromkeys(name for *_, row in first for name in row)]

    def read_cell(self, file: IO[bytes], place: RowPlace, column: str) -> Any:
        """Return one value."""
        file.seek(place[0])
        return _parse_object(file.read(place[1])).get(column)

    def _iterate(self, file: IO[bytes]) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        offset = file.seek(0)
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield offset, line, _parse_object(line)
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error
            offset += len(line)

    @contextmanager
    def write(self, file: Any, like: IO[bytes]) -> Iterator[Callable[[Any], None]]:
        """Begin a file, and return a function that appends rows."""

        def add(chunk: Rows) -> None:
            for _, raw, row in chunk.rows:
                line = json.dumps(row, ensure_ascii=raw.isascii(), default=_as_text)
                file.write(line.encode() + b"\n")

        yield add


def _as_text(value: bytes) -> str:
    """Return bytes, which JSON cannot represent, as base64 text."""
    return base64.b64encode(value).decode()


def _parse_object(line: bytes) -> dict[str, Any]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError(f"contains {type(row).__name__}, not an object")
    return row


class TabSeparated(_Text):
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

    def read_cell(self, file: IO[bytes], place: RowPlace, column: str) -> Any:
        """Return one text."""
        header = self.read_columns(file)
        file.seek(place[0])
        ((_, cells),) = _read_csv(io.BytesIO(file.read(place[1])))
        return dict(zip(header, cells, strict=True)).get(column)

    def _iterate(self, file: IO[bytes]) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        header, offset = self.read_columns(file), file.tell()
        for number, (raw, cells) in enumerate(_read_csv(file)):
            if cells:
                if len(cells) != len(header):
                    raise ValueError(f"row {number} has {len(cells)} cells, the header {len(header)}")
                yield offset, raw, dict(zip(header, cells, strict=True))
            offset += len(raw)

    @contextmanager
    def write(self, file: Any, like: IO[bytes]) -> Iterator[Callable[[Any], None]]:
        """Begin a file with the header of `like`, and return a function that appends rows."""

        def write_lines(rows: Iterable[Iterable[Any]]) -> None:
            for cells in rows:
                line = "\t".join(map(_quote, cells))
                file.write((line or '""').encode() + b"\n")

        write_lines([self.read_columns(like)])
        yield lambda chunk: write_lines(row.values() for *_, row in chunk.rows)


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
