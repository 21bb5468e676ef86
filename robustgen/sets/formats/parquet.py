"""Parquet files as hubs serve them: columns of images or videos and of labels."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, Final

from robustgen.files.containers.tables import import_pyarrow
from robustgen.pixels.benchmarks.kinds import Benchmark, Kind, Variant
from robustgen.sets.formats import DEFAULTS, Format
from robustgen.sets.formats.base import Encoded, Encoder, SetContent, Writer
from robustgen.sets.formats.shards import AddSample, Shards, ShardWriter
from robustgen.sets.formats.units import WorkUnit
from robustgen.sets.sources.parquet import Parquet

# Readers fetch complete row groups; viewers of hubs need small ones.
_ROWS_PER_GROUP: Final = 100

SAMPLE_COLUMNS: Final[Mapping[Kind, str]] = {"c": "image", "p": "video"}
"""Names of the sample column, by which the library `datasets` detects its type."""

FOLDER: Final = "data"
"""Parent of the variant folders; contains only tables, as pandas, Polars and Dask read whole folders."""


# --- writing -------------------------------------------------------------------------------------


class ParquetWriter(ShardWriter):
    """Writer of `data/<corruption>/<severity>/00000-of-00050.parquet`.

    Columns are ``image`` (or ``video``), a struct of ``bytes`` and ``path``; ``label``; the operation,
    its level, and the key of the source image. The names of all classes are in the metadata of the schema,
    where the library `datasets` expects them.
    """

    format = "parquet"
    reader = Parquet

    def __init__(
        self, encoder: Encoder, images: int, shard_size: int, benchmark: Benchmark, classes: Iterable[str]
    ) -> None:
        super().__init__(encoder, images, shard_size)
        sample = SAMPLE_COLUMNS[benchmark.kind]
        self.columns = sample, "label", benchmark.operation, benchmark.level, "key"
        self.classes = [_as_text(name) for name in classes]

    @classmethod
    def create(cls, encoder: Encoder, content: SetContent) -> Writer:
        """Return the writer of a set."""
        images, classes = len(content.keys), content.source.classes
        return cls(encoder, images, content.shard_size, content.benchmark, classes)

    def settings(self) -> dict[str, Any]:
        """Return the settings of samples and shards, and the columns."""
        return super().settings() | {"columns": [*self.columns]}

    def versions(self) -> dict[str, str]:
        """Return the versions for the samples, and that of pyarrow."""
        return super().versions() | {"pyarrow": str(import_pyarrow()[0].__version__)}

    def shard_name(self, number: int) -> str:
        """Return ``00012-of-00050.parquet``."""
        return f"{number:05d}-of-{self.count:05d}.parquet"

    def shard_path(self, variant: Variant, number: int) -> str:
        """Return ``data/fog/3/00012-of-00050.parquet``."""
        return f"{FOLDER}/{super().shard_path(variant, number)}"

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield a unit for the images of each shard; units depend on the classes and the shard count."""
        shared = hashlib.sha256("\0".join([str(self.count), *self.classes]).encode()).hexdigest()
        for unit in super().cut(keys, variants):
            yield replace(unit, shared=shared)

    @contextmanager
    def start_shard(self, file: BinaryIO, variant: Variant, number: int) -> Iterator[AddSample]:
        """Begin an uncompressed table; images and videos are already compressed."""
        pyarrow, parquet = import_pyarrow()
        cell = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
        text = {"dtype": "string", "_type": "Value"}
        types: tuple[tuple[Any, dict[str, Any]], ...] = (
            (cell, {"_type": self.columns[0].capitalize()}),
            (pyarrow.int64(), {"names": self.classes, "_type": "ClassLabel"}),
            (pyarrow.string(), text),
            # Severities may be fractional, and all files share one schema.
            (pyarrow.float64(), {"dtype": "float64", "_type": "Value"}),
            (pyarrow.string(), text),
        )
        features = {name: feature for name, (_, feature) in zip(self.columns, types, strict=True)}
        schema = pyarrow.schema(
            [(name, kind) for name, (kind, _) in zip(self.columns, types, strict=True)],
            metadata={"huggingface": json.dumps({"info": {"features": features}})},
        )
        with parquet.ParquetWriter(
            file, schema, compression="none", use_dictionary=False, write_statistics=False, store_schema=True
        ) as writer:
            rows: list[dict[str, Any]] = []

            def add(key: str, label: int, sample: Encoded) -> None:
                content = {"bytes": sample.data, "path": _as_text(sample.name)}
                values = content, label, variant.name, float(variant.level), _as_text(key)
                rows.append(dict(zip(self.columns, values, strict=True)))
                if len(rows) == _ROWS_PER_GROUP:
                    flush()

            def flush() -> None:
                writer.write_table(pyarrow.Table.from_pylist(rows, schema))
                rows.clear()

            yield add
            if rows:
                flush()


def _as_text(name: str) -> str:
    """Return `name` with characters invalid in UTF-8 replaced."""
    return name.encode("utf-8", "replace").decode()


# --- reading -------------------------------------------------------------------------------------


class ParquetShards(Shards):
    """Set of Parquet files with a column of images or videos and one of labels."""

    format = "parquet"
    suffix = ".parquet"
    reader = Parquet


PARQUET: Final = Format("Parquet", DEFAULTS, ParquetWriter, ParquetShards)
