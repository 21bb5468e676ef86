"""Parquet files, read one row group at a time."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, NamedTuple

from robustgen.errors import MissingDependencyError
from robustgen.files.containers.tables import AddRows, Columns, RowPlace
from robustgen.files.json_files import parse_json

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
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("Parquet needs pyarrow: pip install 'robustgen[parquet]'") from error
    return pyarrow, pyarrow.parquet


def read_features(schema: Any) -> Mapping[str, Any]:
    """Return the column features that the library `datasets` stores in the schema."""
    try:
        features = parse_json(schema.metadata[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return {k: v for k, v in features.items() if isinstance(v, dict)} if isinstance(features, dict) else {}


class Table(NamedTuple):
    """An open Parquet file.

    Attributes
    ----------
    size : int
        Bytes of the file, which limit the decoded values.
    file : pyarrow.parquet.ParquetFile
    """

    size: int
    file: Any


def open_table(content: IO[bytes]) -> Table:
    """Open a file; raise any exception if it is damaged."""
    return Table(content.seek(0, os.SEEK_END), import_pyarrow()[1].ParquetFile(content))


def iterate_batches(table: Table, group: int, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a row group, a few at a time.

    Parameters
    ----------
    table : Table
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
