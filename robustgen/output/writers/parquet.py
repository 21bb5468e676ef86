"""Parquet files as hubs serve them: a column of images or videos, a column of labels, and a data set card."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from robustgen.benchmark import Kind
from robustgen.errors import OutputError
from robustgen.output.writers.base import TreeWriter
from robustgen.output.writers.shards import Sample, ShardWriter
from robustgen.sources.listed_file import Stamp, stamp_of
from robustgen.sources.parquet_files import import_pyarrow, read_features, read_group

# Readers fetch whole row groups, and viewers of hubs want them small.
_ROWS_PER_GROUP: Final = 100

SAMPLE_COLUMNS: Final[Mapping[Kind, str]] = {"c": "image", "p": "video"}
"""What the column of samples is called, which is how the library `datasets` knows what they are."""


class ParquetWriter(ShardWriter):
    """`<corruption>/<severity>/00000-of-00050.parquet`, and `README.md` at the root.

    Columns are ``image`` (or ``video``), a struct of ``bytes`` and ``path``, and ``label``, whose class names
    are in the metadata of the schema, where the library `datasets` looks for them.
    """

    format = "parquet"

    def __init__(
        self, encoder: TreeWriter, arms: Sequence[Any], keys: Sequence[str], shard_size: int, column: str
    ) -> None:
        super().__init__(encoder, arms, keys, shard_size)
        self.column = column

    def versions(self) -> dict[str, str]:
        """Those of the samples, and that of pyarrow."""
        return super().versions() | {"pyarrow": str(import_pyarrow()[0].__version__)}

    def shard_name(self, number: int, count: int) -> str:
        """``00012-of-00050.parquet``."""
        return f"{number:05d}-of-{count:05d}.parquet"

    def write_shard(self, file: BinaryIO, samples: Iterator[Sample], classes: Sequence[str]) -> None:
        """A row for each sample; not compressed, as images and videos are already."""
        pyarrow, parquet = import_pyarrow()
        schema = _schema(pyarrow, self.column, classes)
        with parquet.ParquetWriter(
            file, schema, compression="none", use_dictionary=False, write_statistics=False, store_schema=True
        ) as writer:
            rows = list[Sample]()
            for sample in samples:
                rows.append(sample)
                if len(rows) == _ROWS_PER_GROUP:
                    writer.write_table(_table(pyarrow, schema, rows))
                    rows = []
            if rows:
                writer.write_table(_table(pyarrow, schema, rows))

    def read_shard(self, path: Path) -> Mapping[str, Callable[[], bytes]]:
        """Name of each sample to what reads its data."""
        pyarrow, parquet = import_pyarrow()
        try:
            names = parquet.ParquetFile(path).read(columns=[f"{self.column}.path"])[self.column].to_pylist()
        except (pyarrow.ArrowException, OSError) as error:
            raise OutputError(f"{path} is damaged: {error}") from error
        stamp = stamp_of(path.stat())
        return {row["path"]: partial(self._read, path, stamp, number) for number, row in enumerate(names)}

    def _read(self, path: Path, stamp: Stamp, number: int) -> bytes:
        group, row = divmod(number, _ROWS_PER_GROUP)
        return bytes(read_group(path, stamp, f"{self.column}.bytes", group)[row].as_py())


def _schema(pyarrow: Any, column: str, classes: Sequence[str]) -> Any:
    names = [name.encode("utf-8", "replace").decode() for name in classes]
    features = {
        column: {"_type": column.capitalize()},
        "label": {"names": names, "_type": "ClassLabel"},
    }
    sample = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    return pyarrow.schema(
        [(column, sample), ("label", pyarrow.int64())],
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )


def read_class_names(schema: Any) -> list[str] | None:
    """The names of the classes in the metadata of a `schema`; None where there are none."""
    names = read_features(schema).get("label", {}).get("names")
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def _table(pyarrow: Any, schema: Any, rows: Sequence[Sample]) -> Any:
    cells = [{"bytes": row.data, "path": row.name.encode("utf-8", "replace").decode()} for row in rows]
    labels = [row.label for row in rows]
    return pyarrow.Table.from_arrays(
        [pyarrow.array(cells, schema.field(0).type), pyarrow.array(labels, schema.field(1).type)],
        schema=schema,
    )
