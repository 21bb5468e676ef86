"""Parquet files as hubs serve them: columns of images or videos and of labels, and a data set card."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, Final

from robustgen.benchmark import Benchmark, Kind, Variant
from robustgen.containers.parquet import import_pyarrow
from robustgen.formats.base import Encoder
from robustgen.formats.shards import AddSample, Sample, Shards, ShardWriter
from robustgen.formats.units import WorkUnit
from robustgen.sources.base import sort_classes
from robustgen.sources.parquet import Parquet

# Readers fetch complete row groups; viewers of hubs need small ones.
_ROWS_PER_GROUP: Final = 100

SAMPLE_COLUMNS: Final[Mapping[Kind, str]] = {"c": "image", "p": "video"}
"""Names of the sample column, by which the library `datasets` detects its type."""

FOLDER: Final = "data"
"""Parent of the variant folders; contains only tables, as pandas, Polars and Dask read whole folders."""


# --- writing -------------------------------------------------------------------------------------


class ParquetWriter(ShardWriter):
    """Writer of `data/<corruption>/<severity>/00000-of-00050.parquet`, and `README.md` at the root.

    Columns are ``image`` (or ``video``), a struct of ``bytes`` and ``path``; ``label``, which numbers the
    classes that occur, as in a tree; the operation, its level, and the key of the source image. The class
    names are in the metadata of the schema, where the library `datasets` expects them.

    Parameters
    ----------
    encoder, images, shard_size
        As for `ShardWriter`.
    benchmark : Benchmark
        Defines the column names of operation and level.
    classes : sequence of str
        Class names of the source; if empty, labels are unchanged.
    labels : sequence of int
        Class index of each image.
    """

    format = "parquet"
    reader = Parquet

    def __init__(
        self,
        encoder: Encoder,
        images: int,
        shard_size: int,
        benchmark: Benchmark,
        classes: Sequence[str],
        labels: Sequence[int],
    ) -> None:
        super().__init__(encoder, images, shard_size)
        self.columns = SAMPLE_COLUMNS[benchmark.kind], "label", benchmark.operation, benchmark.level, "key"
        used = {classes[label]: label for label in {*labels} if label >= 0}
        present = sort_classes(used)
        self._ranks = {used[name]: rank for rank, name in enumerate(present)}
        self.classes = [_as_text(name) for name in present]

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
        sample, label, operation, level, key = self.columns
        features = {
            sample: {"_type": sample.capitalize()},
            label: {"names": self.classes, "_type": "ClassLabel"},
            operation: {"dtype": "string", "_type": "Value"},
            level: {"dtype": "float64", "_type": "Value"},
            key: {"dtype": "string", "_type": "Value"},
        }
        kinds = (
            pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())]),
            pyarrow.int64(),
            pyarrow.string(),
            # Severities may be fractional, and all files share one schema.
            pyarrow.float64(),
            pyarrow.string(),
        )
        schema = pyarrow.schema(
            [*zip(self.columns, kinds, strict=True)],
            metadata={"huggingface": json.dumps({"info": {"features": features}})},
        )
        with parquet.ParquetWriter(
            file, schema, compression="none", use_dictionary=False, write_statistics=False, store_schema=True
        ) as writer:
            rows: list[dict[str, Any]] = []

            def add(sample: Sample) -> None:
                content = {"bytes": sample.data, "path": _as_text(sample.name)}
                own = self._ranks.get(sample.label, sample.label)
                values = content, own, variant.name, float(variant.level), _as_text(sample.key)
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
