"""Parquet files, read a row group at a time."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final

from robustgen.containers.tables import Layout, RowPlace
from robustgen.errors import MissingDependencyError

MOST_GROUP_BYTES: Final = 1 << 31
"""Bytes of a row group, which is read as a whole; those of image sets have some 10 to 100 MB."""
_ROWS_AT_ONCE: Final = 100


def import_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and pyarrow.parquet.

    Raises
    ------
    MissingDependencyError
        It is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("Parquet needs pyarrow: pip install 'robustgen[parquet]'") from error
    return pyarrow, pyarrow.parquet


def read_features(schema: Any) -> Mapping[str, Any]:
    """Return the notes of the library `datasets` about the columns."""
    try:
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return {k: v for k, v in features.items() if isinstance(v, dict)} if isinstance(features, dict) else {}


def read_group(file: Any, column: str, group: int) -> Any:
    """Read the values of a column in a row group of a ``pyarrow.parquet.ParquetFile``.

    ``"image.bytes"`` is the part `bytes` of the struct `image`.
    """
    name, _, part = column.partition(".")
    values = file.read_row_group(group, columns=[column])[name].combine_chunks()
    return values.field(part) if part else values


class ParquetTable(Layout):
    """A Parquet file, a row group or less at a time; its schema is kept, with all metadata."""

    suffix = ".parquet"

    def read_columns(self, file: IO[bytes]) -> list[str]:
        """Return the names of the columns."""
        return list(_open_parquet(file).schema_arrow.names)

    def read(self, file: IO[bytes], columns: Sequence[str] | None = None) -> Iterator["_ParquetRows"]:
        """Yield the rows, or only some of their `columns`."""
        opened = _open_parquet(file)
        for group in range(opened.num_row_groups):
            size = opened.metadata.row_group(group).total_byte_size
            if not 0 <= size <= MOST_GROUP_BYTES:
                raise ValueError(f"row group {group} has {size} bytes, and is read as a whole")
            with _blame_parquet():
                table = opened.read_row_group(group, columns=list(columns) if columns else None)
            for start in range(0, table.num_rows, _ROWS_AT_ONCE):
                part = table.slice(start, _ROWS_AT_ONCE)
                yield _ParquetRows([(group, start + row) for row in range(part.num_rows)], part)

    def read_cell(self, file: IO[bytes], place: RowPlace, column: str) -> Any:
        """Return one cell."""
        return self.read_group(file, place[0], column)[place[1]]

    def read_group(self, file: IO[bytes], group: int, column: str) -> list[Any]:
        """Return all cells of a column in a row group."""
        with _blame_parquet():
            return list(_open_parquet(file).read_row_group(group, columns=[column])[column].to_pylist())

    @contextmanager
    def write(self, file: Any, like: IO[bytes]) -> Iterator["_OpenParquet"]:
        """Begin a file with the schema of `like`."""
        schema = _open_parquet(like).schema_arrow
        # Encoded images neither shrink nor repeat.
        with import_pyarrow()[1].ParquetWriter(
            file, schema, compression="snappy", use_dictionary=False, store_schema=True
        ) as writer:
            yield _OpenParquet(writer)


class _ParquetRows:
    """Rows of a Parquet file."""

    def __init__(self, places: list[RowPlace], table: Any) -> None:
        self.places, self.table = places, table

    def cells(self, column: str) -> list[Any]:
        return list(self.table[column].to_pylist())

    def replace(self, columns: Mapping[str, list[Any]], kept: Sequence[bool]) -> "_ParquetRows":
        pyarrow, table = import_pyarrow()[0], self.table
        for name, cells in columns.items():
            place = table.schema.get_field_index(name)
            field = table.schema.field(place)
            table = table.set_column(place, field, pyarrow.array(cells, field.type))
        places = [place for place, keep in zip(self.places, kept, strict=True) if keep]
        return _ParquetRows(places, table.filter(pyarrow.array(list(kept), pyarrow.bool_())))


class _OpenParquet:
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def add(self, chunk: _ParquetRows) -> None:
        if chunk.places:
            self._writer.write_table(chunk.table)


def _open_parquet(file: IO[bytes]) -> Any:
    with _blame_parquet():
        return import_pyarrow()[1].ParquetFile(file)


@contextmanager
def _blame_parquet() -> Iterator[None]:
    """Turn what pyarrow raises into a ValueError."""
    try:
        yield
    except import_pyarrow()[0].ArrowException as error:
        raise ValueError(str(error)) from error
