"""Parquet files, read a row group at a time."""

import json
from collections.abc import Mapping
from typing import Any

from robustgen.errors import MissingDependencyError


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
