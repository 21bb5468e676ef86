"""Tables that are read and written some rows at a time: tab-separated values and JSON lines."""

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

# Images as text make rows of a megabyte.
_ROWS: Final = 32
_QUOTE: Final = '"'
_QUOTED: Final = (_QUOTE, "\t", "\n", "\r")
_EMPTY: Final = '""'

RowPlace = tuple[int, int]
"""Where a row lies in a file: offset and bytes, or row group and row. Later rows have larger ones."""


class Rows:
    """Consecutive rows of a text table: the place of each, a mapping of its columns, and its own bytes."""

    def __init__(self, places: list[RowPlace], rows: list[dict[str, Any]], raw: list[bytes]) -> None:
        self.places, self.rows, self.raw = places, rows, raw

    def cells(self, column: str) -> list[Any]:
        """Return what the rows hold in `column`."""
        return [row.get(column) for row in self.rows]

    def replace(self, columns: Mapping[str, list[Any]], kept: Sequence[bool]) -> "Rows":
        """Return the rows that are `kept`, in which `columns` (of all rows) stand instead of their own."""
        numbers = [number for number, keep in enumerate(kept) if keep]
        rows = [
            self.rows[n] | {name: cells[n] for name, cells in columns.items() if name in self.rows[n]}
            for n in numbers
        ]
        return Rows([self.places[n] for n in numbers], rows, [self.raw[n] for n in numbers])


class _Text(ABC):
    """A table whose rows are lines of text, or a few."""

    @abstractmethod
    def _iterate(self, file: IO[bytes]) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        """Yield offset, bytes and columns of each row."""

    def read(self, file: IO[bytes], columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """Yield all rows, some at a time; a ValueError if one is damaged."""
        found = self._iterate(file)
        while some := [*itertools.islice(found, _ROWS)]:
            offsets, raw, rows = map(list, zip(*some, strict=True))
            yield Rows([(offset, len(each)) for offset, each in zip(offsets, raw, strict=True)], rows, raw)


class JsonLines(_Text):
    """A JSON object in each line; numbers may be written another way, other values are kept."""

    suffix = ".jsonl"

    def read_columns(self, file: IO[bytes]) -> list[str]:
        """Return the keys of all objects among the first rows."""
        first = next(iter(self.read(file)), None)
        return [*dict.fromkeys(name for row in first.rows for name in row)] if first else []

    def read_cell(self, file: IO[bytes], place: RowPlace, column: str) -> Any:
        """Return one value."""
        file.seek(place[0])
        return _parse_object(file.read(place[1])).get(column)

    def _iterate(self, file: IO[bytes]) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        offset = 0
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield offset, line, _parse_object(line)
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error
            offset += len(line)

    @contextmanager
    def write(self, file: Any, like: IO[bytes]) -> Iterator[Callable[[Any], None]]:
        """Begin a file, and return what appends rows."""

        def add(chunk: Rows) -> None:
            for row, raw in zip(chunk.rows, chunk.raw, strict=True):
                line = json.dumps(row, ensure_ascii=raw.isascii(), default=_as_text)
                file.write(line.encode() + b"\n")

        yield add


def _as_text(value: bytes) -> str:
    """Return bytes, which JSON has no words for, as base64 text."""
    return base64.b64encode(value).decode()


def _parse_object(line: bytes) -> dict[str, Any]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError(f"holds {type(row).__name__}, not an object")
    return row


class TabSeparated(_Text):
    """Tab-separated values with a header, quoted as pandas does it."""

    suffix = ".tsv"

    def read_columns(self, file: IO[bytes]) -> list[str]:
        """Return the header."""
        return self._read_header(file)[0]

    def read_cell(self, file: IO[bytes], place: RowPlace, column: str) -> Any:
        """Return one text."""
        header = self.read_columns(file)
        file.seek(place[0])
        ((_, cells),) = _read_csv(io.BytesIO(file.read(place[1])))
        return dict(zip(header, cells, strict=True)).get(column)

    def _read_header(self, file: IO[bytes]) -> tuple[list[str], bytes]:
        file.seek(0)
        raw, header = next(_read_csv(file), (b"", []))
        if not header:
            raise ValueError("has no header")
        header[0] = header[0].removeprefix("\ufeff")
        if twice := next((name for name in header if header.count(name) > 1), None):
            raise ValueError(f"its header names {twice!r} twice")
        return header, raw

    def _iterate(self, file: IO[bytes]) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        header, raw = self._read_header(file)
        offset = len(raw)
        file.seek(offset)
        for number, (raw, cells) in enumerate(_read_csv(file)):
            if cells:
                if len(cells) != len(header):
                    raise ValueError(f"row {number} has {len(cells)} cells, the header {len(header)}")
                yield offset, raw, dict(zip(header, cells, strict=True))
            offset += len(raw)

    @contextmanager
    def write(self, file: Any, like: IO[bytes]) -> Iterator[Callable[[Any], None]]:
        """Begin a file with the header of `like`, and return what appends rows."""

        def write_lines(rows: Iterable[Iterable[Any]]) -> None:
            for cells in rows:
                line = "\t".join(map(_quote, cells))
                file.write(f"{line or _EMPTY}\n".encode())

        write_lines([self.read_columns(like)])
        yield lambda chunk: write_lines(row.values() for row in chunk.rows)


def _quote(cell: Any) -> str:
    """Return a cell as `csv.writer` would write it, which looks at each letter."""
    text = "" if cell is None else str(cell)
    return f'"{text.replace(_QUOTE, 2 * _QUOTE)}"' if any(each in text for each in _QUOTED) else text


def _read_csv(file: IO[bytes]) -> Iterator[tuple[bytes, list[str]]]:
    """Yield the bytes and the cells of each row from where `file` stands; a ValueError if one is damaged."""
    taken = list[bytes]()

    def take(line: bytes) -> str:
        taken.append(line)
        return line.decode()

    # A cell may hold an image.
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    for line in file:
        if b'"' not in line:
            # The reader looks at each letter, of which an image has many.
            text = line.decode().removesuffix("\n").removesuffix("\r")
            yield line, text.split("\t") if text else []
            continue
        taken.clear()
        try:
            # A row is as many lines as the reader asks for.
            lines = map(take, itertools.chain([line], file))
            cells = next(csv.reader(lines, delimiter="\t", strict=True))
        except csv.Error as error:
            raise ValueError(f"a row is damaged: {error}") from error
        yield b"".join(taken), cells
