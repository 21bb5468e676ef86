"""Tables read and written in chunks of rows: tab-separated values, JSON lines, and Parquet."""

import base64
import csv
import itertools
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, NamedTuple

from robustgen.errors import explain_import
from robustgen.files.text_files import parse_json

# Rows with images as text have about a megabyte.
_ROWS: Final = 32
_DECODER: Final = json.JSONDecoder()
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
    def _format(self, row: TextRow, new: Mapping[str, Any]) -> str:
        """Return the line of a row, with the `new` cells."""

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
                    file.write(self._format(row, own).encode() + b"\n")

        yield add


class JsonLines(TextTable):
    """A JSON object per line; all values but new cells are kept as written."""

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

    def _format(self, row: TextRow, new: Mapping[str, Any]) -> str:
        text, parts, done = row.raw.decode("utf-8-sig").strip(), list[str](), 0
        # Decoding forgets how numbers were written.
        for name, start, end in _find_values(text):
            if name in new:
                cell = json.dumps(new[name], ensure_ascii=row.raw.isascii(), default=_as_text)
                parts += text[done:start], cell
                done = end
        return "".join([*parts, text[done:]])


def _find_values(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each key of a JSON object, with the start and the end of its value."""
    end = 1
    while text[start := _skip(text, end)] != "}":
        name, end = _DECODER.raw_decode(text, start)
        start = _skip(text, end)
        _, end = _DECODER.raw_decode(text, start)
        yield name, start, end


def _skip(text: str, start: int) -> int:
    """Return the place of the next key, value or brace."""
    return next(place for place in range(start, len(text)) if text[place] not in " \t\r\n,:")


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

    def _format(self, row: TextRow, new: Mapping[str, Any]) -> str:
        return _join({**row.cells, **new}.values())

    @contextmanager
    def write(self, file: Any, like: IO[bytes]) -> Iterator[AddRows]:
        """Begin a file with the header of `like`, and return a function that appends rows."""
        header = self.read_columns(like)
        file.write(_join(header).encode() + b"\n")
        with super().write(file, like) as add:
            yield add


def _join(cells: Iterable[Any]) -> str:
    return "\t".join(map(_quote, cells)) or '""'


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


# --- Parquet files, read one row group at a time ---------------------------------------------------

# Encoded images hardly compress, so a decoded row group has about its size in the file. Masks may compress
# to a twentieth; a dictionary may repeat one value a million times.
_EXPANSION: Final = 24
_ALWAYS_ALLOWED: Final = 1 << 26
_MOST_DECODED: Final = 1 << 31
_BATCH_BYTES: Final = 1 << 26
_MOST_ROWS: Final = 256

# Snappy expands one byte to some twenty at most.
_HARDLY_EXPANDING: Final = ("UNCOMPRESSED", "SNAPPY")


def import_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and pyarrow.parquet.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    with explain_import("Parquet needs pyarrow", "parquet"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def read_features(schema: Any) -> Mapping[str, Any]:
    """Return the column features that the library `datasets` stores in the schema."""
    try:
        features = parse_json(schema.metadata[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return {k: v for k, v in features.items() if isinstance(v, dict)} if isinstance(features, dict) else {}


class OpenParquet(NamedTuple):
    """An open Parquet file.

    Attributes
    ----------
    size : int
        Bytes of the file, which limit the decoded values.
    file : pyarrow.parquet.ParquetFile
    """

    size: int
    file: Any


def open_table(content: IO[bytes]) -> OpenParquet:
    """Open a file; raise any exception if it is damaged."""
    return OpenParquet(content.seek(0, os.SEEK_END), import_pyarrow()[1].ParquetFile(content))


def iterate_batches(table: OpenParquet, group: int, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a row group, a few at a time.

    Parameters
    ----------
    table : OpenParquet
    group : int
    columns : sequence of str
        ``"image.bytes"`` is the field `bytes` of the struct `image`.

    Yields
    ------
    pyarrow.RecordBatch

    Raises
    ------
    Exception
        The file is damaged, or the values need far more memory than it has bytes, or more than 2 GB.
    """
    most = min(_MOST_DECODED, _ALWAYS_ALLOWED + _EXPANSION * table.size)
    statistics, decoded = table.file.metadata.row_group(group), 0
    stated = statistics.total_byte_size
    if not 0 <= stated <= most:
        raise ValueError(f"a row group has {stated} bytes, but at most {most} are expected")
    packed = any(
        statistics.column(i).compression not in _HARDLY_EXPANDING for i in range(statistics.num_columns)
    )
    # All values of a batch may repeat one value as large as the group; packed ones may have any size.
    rows = 1 if packed else min(_MOST_ROWS, 1 + _BATCH_BYTES // (1 + stated))
    for batch in table.file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
        decoded += batch.nbytes
        if decoded > most:
            raise ValueError(f"a row group decodes to more than {most} bytes")
        yield batch


class ParquetTable:
    """Reader and writer of Parquet files in chunks; the schema is kept, with all metadata."""

    suffix = ".parquet"

    def read_columns(self, file: IO[bytes]) -> list[str]:
        """Return the names of the columns."""
        return list(open_table(file).file.schema_arrow.names)

    def read(self, file: IO[bytes], columns: Sequence[str] | None = None) -> Iterator["ParquetRows"]:
        """Yield all rows, or only the given `columns`."""
        table = open_table(file)
        for group in range(table.file.num_row_groups):
            start = 0
            for batch in iterate_batches(table, group, columns or table.file.schema_arrow.names):
                rows = import_pyarrow()[0].Table.from_batches([batch])
                yield ParquetRows([(group, start + row) for row in range(rows.num_rows)], rows)
                start += rows.num_rows

    @contextmanager
    def write(self, file: Any, like: IO[bytes]) -> Iterator[AddRows]:
        """Begin a file with the schema of `like`, and return a function that appends rows."""
        pyarrow, parquet = import_pyarrow()
        schema = open_table(like).file.schema_arrow

        def add(chunk: ParquetRows, columns: Columns, kept: Sequence[bool]) -> None:
            table = chunk.table
            for name, cells in columns.items():
                index = schema.get_field_index(name)
                values = pyarrow.array(cells, schema.field(index).type)
                table = table.set_column(index, schema.field(index), values)
            if any(kept):
                writer.write_table(table.filter(pyarrow.array(kept, pyarrow.bool_())))

        # Encoded images neither compress further nor repeat.
        with parquet.ParquetWriter(
            file, schema, compression="snappy", use_dictionary=False, store_schema=True
        ) as writer:
            yield add


class ParquetRows(NamedTuple):
    """Consecutive rows of a Parquet file, with the interface of `tables.Rows`."""

    places: list[RowPlace]
    table: Any

    def cells(self, column: str) -> list[Any]:
        """Return the cells of `column`."""
        return list(self.table[column].to_pylist())
