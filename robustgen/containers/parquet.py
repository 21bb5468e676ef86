"""Parquet files, read a row group at a time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from robustgen.errors import MissingDependencyError
from robustgen.json_files import parse_json

# Encoded images hardly compress: what a row group is decoded to has about the size that it has in the file.
# Masks compress to a twentieth; a dictionary may repeat one value a million times.
_EXPANSION: Final = 20
_ALWAYS_ALLOWED: Final = 1 << 26
_MOST_DECODED: Final = 1 << 31
_BATCH_BYTES: Final = 1 << 26
_MOST_ROWS: Final = 256


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
        features = parse_json(schema.metadata[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return {k: v for k, v in features.items() if isinstance(v, dict)} if isinstance(features, dict) else {}


def iterate_batches(file: Any, size: int, group: int, columns: Sequence[str]) -> Iterator[Any]:
    """Iterate over the rows of a row group, a few at a time.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
    size : int
        Bytes of the file, to which the decoded values are held.
    group : int
    columns : sequence of str
        ``"image.bytes"`` is the part `bytes` of the struct `image`.

    Yields
    ------
    pyarrow.RecordBatch

    Raises
    ------
    ValueError
        The values take far more memory than the file has bytes, or more than 2 GB.
    """
    most = min(_MOST_DECODED, _ALWAYS_ALLOWED + _EXPANSION * size)
    stated, decoded = file.metadata.row_group(group).total_byte_size, 0
    if not 0 <= stated <= most:
        raise ValueError(f"a row group of {stated} bytes, where at most {most} are expected")
    # Each value of a batch may be the same one, of all bytes that there are.
    rows = min(_MOST_ROWS, 1 + _BATCH_BYTES // (1 + stated))
    for batch in file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
        decoded += batch.nbytes
        if decoded > most:
            raise ValueError(f"a row group is decoded to more than {most} bytes")
        yield batch


def read_group(file: Any, size: int, group: int, column: str) -> Any:
    """Read the values of a column in a row group, within the limits of `iterate_batches`."""
    name, _, part = column.partition(".")
    pyarrow, _ = import_pyarrow()
    batches = [batch[name] for batch in iterate_batches(file, size, group, [column])]
    return pyarrow.chunked_array([values.field(part) if part else values for values in batches])
