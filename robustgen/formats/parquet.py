"""Parquet files as hubs serve them: a column of images or videos, a column of labels, and a data set card."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Final

from robustgen.benchmark import Kind
from robustgen.containers.parquet import import_pyarrow, read_features, read_group
from robustgen.errors import SourceError
from robustgen.formats.base import TreeWriter
from robustgen.formats.shards import Sample, Shards, ShardWriter, StoredSample, list_shards
from robustgen.storage import Store
from robustgen.storage import Writer as OpenFile

# Readers fetch whole row groups, and viewers of hubs want them small.
_ROWS_PER_GROUP: Final = 100

SAMPLE_COLUMNS: Final[Mapping[Kind, str]] = {"c": "image", "p": "video"}
"""Names of the column of samples, by which the library `datasets` knows what they are."""


# --- writing -------------------------------------------------------------------------------------


class ParquetWriter(ShardWriter):
    """`<corruption>/<severity>/00000-of-00050.parquet`, and `README.md` at the root.

    Columns are ``image`` (or ``video``), a struct of ``bytes`` and ``path``, and ``label``, whose class names
    are in the metadata of the schema, where the library `datasets` looks for them.
    """

    format = "parquet"

    def __init__(
        self,
        encoder: TreeWriter,
        images: int,
        shard_size: int,
        classes: Callable[[], Sequence[str]],
        column: str,
    ) -> None:
        super().__init__(encoder, images, shard_size)
        self.column = column
        self.classes = [name.encode("utf-8", "replace").decode() for name in classes()]

    def versions(self) -> dict[str, str]:
        """Return those of the samples, and that of pyarrow."""
        return super().versions() | {"pyarrow": str(import_pyarrow()[0].__version__)}

    def shard_name(self, number: int) -> str:
        """Return ``00012-of-00050.parquet``."""
        return f"{number:05d}-of-{self.count:05d}.parquet"

    @contextmanager
    def start_shard(self, file: OpenFile) -> Iterator["_OpenTable"]:
        """Begin a table; not compressed, as images and videos are already."""
        pyarrow, parquet = import_pyarrow()
        features = {
            self.column: {"_type": self.column.capitalize()},
            "label": {"names": self.classes, "_type": "ClassLabel"},
        }
        sample = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
        schema = pyarrow.schema(
            [(self.column, sample), ("label", pyarrow.int64())],
            metadata={"huggingface": json.dumps({"info": {"features": features}})},
        )
        with parquet.ParquetWriter(
            file, schema, compression="none", use_dictionary=False, write_statistics=False, store_schema=True
        ) as writer:
            table = _OpenTable(pyarrow, writer, schema)
            yield table
            table.flush()

    def open_shard(self, root: Store, path: str) -> Mapping[str, Callable[[], bytes]]:
        """Return the name of each sample in a table, and what reads its data."""
        table = _open_table(root, path)
        paths = partial(table.read, columns=[f"{self.column}.path"])
        cells = _blame(root, path, lambda: paths()[self.column].to_pylist())
        return {
            cell["path"]: partial(_read_cell, root, path, self.column, *divmod(row, _ROWS_PER_GROUP))
            for row, cell in enumerate(cells)
        }


class _OpenTable:
    """A table to which samples are added."""

    def __init__(self, pyarrow: Any, writer: Any, schema: Any) -> None:
        self._pyarrow, self._writer, self._schema = pyarrow, writer, schema
        self._rows: list[Sample] = []

    def add(self, sample: Sample) -> None:
        self._rows.append(sample)
        if len(self._rows) == _ROWS_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        if not self._rows:
            return
        cells = [
            {"bytes": row.data, "path": row.name.encode("utf-8", "replace").decode()} for row in self._rows
        ]
        columns = zip((cells, [row.label for row in self._rows]), self._schema, strict=True)
        arrays = [self._pyarrow.array(values, field.type) for values, field in columns]
        self._writer.write_table(self._pyarrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []


# --- reading -------------------------------------------------------------------------------------


@dataclass(eq=False)
class ParquetShards(Shards):
    """Parquet files with a column of images or videos, and one of labels."""

    format = "parquet"
    suffix = ".parquet"

    @cached_property
    def _class_names(self) -> Sequence[str] | None:
        folder = self.folders[self.arms[0]]
        path = next(iter(list_shards(self.store, folder, self.suffix)), None)
        names = path and read_features(_open_table(self.store, path).schema_arrow).get("label", {}).get(
            "names"
        )
        return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None

    def _read_shard(self, path: str) -> Iterator[tuple[str, StoredSample]]:
        column, table = SAMPLE_COLUMNS[self.kind], _open_table(self.store, path)
        if column not in table.schema_arrow.names:
            raise SourceError(f"{self.root}/{path}: has no column {column!r}")
        stem = path.rpartition("/")[2].removesuffix(self.suffix)
        labelled = "label" in table.schema_arrow.names
        for group in range(table.num_row_groups):
            columns = [f"{column}.path", *["label"] * labelled]
            rows = _blame(self.store, path, partial(table.read_row_group, group, columns=columns)).to_pylist()
            for row, cells in enumerate(rows):
                read = partial(_read_cell, self.store, path, column, group, row)
                yield (
                    self._key(cells[column]["path"] or f"{stem}/{group}-{row}"),
                    StoredSample(cells.get("label"), read),
                )


def _open_table(store: Store, path: str) -> Any:
    return _blame(store, path, lambda: import_pyarrow()[1].ParquetFile(store.open(path)))


def _blame(store: Store, path: str, read: Callable[[], Any]) -> Any:
    """Return the result of `read`; a SourceError that names the file if it is damaged."""
    try:
        return read()
    except (import_pyarrow()[0].ArrowException, OSError) as error:
        raise SourceError(f"{store.location}/{path}: is damaged: {error}") from error


@lru_cache(maxsize=4)
def _read_cells(store: Store, path: str, column: str, group: int) -> Any:
    return read_group(_open_table(store, path), f"{column}.bytes", group)


def _read_cell(store: Store, path: str, column: str, group: int, row: int) -> bytes:
    """Return the encoded sample in one row."""
    return bytes(_read_cells(store, path, column, group)[row].as_py())
