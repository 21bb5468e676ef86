"""Parquet files, read a row group at a time."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from robustgen.errors import MissingDependencyError
from robustgen.sources.listed_file import Stamp, check_unchanged


def import_pyarrow() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet.

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
    """What the library `datasets` has noted about the columns."""
    try:
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return {k: v for k, v in features.items() if isinstance(v, dict)} if isinstance(features, dict) else {}


@lru_cache(maxsize=4)
def read_group(path: Path, stamp: Stamp, column: str, group: int) -> Any:
    """The values of a column in a row group; those read last stay, as rows are read one after the other.

    Parameters
    ----------
    path : Path
    stamp : Stamp
        Of the file as it was listed.
    column : str
        ``"image.bytes"`` is the part `bytes` of the struct `image`.
    group : int

    Raises
    ------
    OSError, ValueError
        The file cannot be read, or has changed. pyarrow's own exceptions come on top.
    """
    check_unchanged(path, path.stat(), stamp)
    _, parquet = import_pyarrow()
    name, _, part = column.partition(".")
    values = parquet.ParquetFile(path).read_row_group(group, columns=[column])[name].combine_chunks()
    return values.field(part) if part else values
