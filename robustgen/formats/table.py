"""Tables of the source with results in place of images; other columns and all rows are kept."""

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any, BinaryIO, ClassVar

from robustgen.benchmark import Variant
from robustgen.containers.parquet import ParquetTable, import_pyarrow
from robustgen.containers.tables import RowPlace
from robustgen.formats.base import Encoded, Encoder, Labels, Listing, TreeWriter
from robustgen.formats.shards import AddSample, SampleWriter, SourceSet
from robustgen.formats.units import WorkUnit
from robustgen.sources.base import Columns, Options
from robustgen.sources.cells import Result, list_images, replace_images
from robustgen.sources.table import Chunk, Table, find_layout, name_images
from robustgen.storage import Store

FindResult = Callable[[str], Result | None]
"""Function from the key of an image to its result; None if it failed."""


class _Rows:
    """Rows of one table, with the keys of their images.

    Parameters
    ----------
    source : Table
    number : int
        Number of the table.
    chosen : frozenset of str or None
        Keys of the images to create, if not all; rows with only other images are omitted.
    """

    def __init__(self, source: Table, number: int, chosen: frozenset[str] | None) -> None:
        self.file = source.files[number]
        self._source, self._chosen = source, chosen

    def read(self) -> Iterator[tuple[int, Chunk]]:
        """Yield chunks of rows, each with the number of its first row."""
        first = 0
        with self.file.store.open(self.file.name) as content:
            for chunk in find_layout(self.file.name).read(content):
                yield first, chunk
                first += len(chunk.places)

    def choose(self, chunk: Chunk, keys: Sequence[Sequence[str]]) -> list[bool]:
        """Return which rows to keep: those with a chosen image, and those without any image.

        If not all images are chosen, rows that refer to images of other rows are omitted.
        """
        chosen, kept = self._chosen, list[bool]()
        if chosen is None:
            return [True] * len(keys)
        cells = zip(*(chunk.cells(column) for column in self._source.columns.names), strict=True)
        for own, texts in zip(keys, cells, strict=True):
            if known := [key for key in own if key in self._source.listing.places]:
                kept.append(any(key in chosen for key in known))
            else:
                kept.append(bool(own) or not any(isinstance(text, str) and text for text in texts))
        return kept

    def rewrite(self, first: int, chunk: Chunk, find: FindResult) -> Any:
        """Return the kept rows of `chunk`, with results in place of images."""
        keys: list[list[str]] = [[] for _ in chunk.places]
        columns: dict[str, list[Any]] = {}
        for column in self._source.columns.names:
            columns[column] = [
                self._replace(cell, first + row, column, find, keys[row])
                for row, cell in enumerate(chunk.cells(column))
            ]
        return chunk.replace(columns, self.choose(chunk, keys))

    def _replace(self, cell: Any, row: int, column: str, find: FindResult, keys: list[str]) -> Any:
        """Return a cell with results in place of images, and add the keys of these images to `keys`."""
        # The source has refused cells without a valid image.
        with suppress(ValueError):
            own = [key for key, _ in name_images(self.file.name, row, column, cell)]
            keys += own
            left = iter(own)
            return replace_images(cell, lambda image: find(next(left)))


# --- writing -------------------------------------------------------------------------------------


class TableWriter(SampleWriter):
    """Writer of `<variant>/<name of the table>`, with images in the cells.

    Parameters
    ----------
    source : Table
    encoder : Encoder
        Encodes each image as one file.
    chosen : sequence of str
        Keys of all images to create.

    Attributes
    ----------
    chosen : frozenset of str or None
        The same; None if these are all images of the source.
    """

    def __init__(self, source: Table, encoder: Encoder, chosen: Sequence[str]) -> None:
        super().__init__(encoder)
        self.source = source
        # Workers receive this with each task.
        self.chosen = frozenset(chosen) if len(chosen) < len(source.keys()) else None

    def settings(self) -> dict[str, Any]:
        """Return format, columns, and the settings of the images."""
        return _describe("table", self.source, self.encoder)

    def versions(self) -> dict[str, str]:
        """Return the versions for the images, and that of pyarrow for Parquet files."""
        is_parquet = any(isinstance(find_layout(file.name), ParquetTable) for file in self.source.files)
        own = {"pyarrow": str(import_pyarrow()[0].__version__)} if is_parquet else {}
        return super().versions() | own

    def output_name(self, key: str) -> None:
        """Return None: images have no separate files."""

    def shard_number(self, index: int, key: str) -> int:
        """Return the number of the image's table."""
        return self.source.row_of(key)[0]

    def shard_path(self, variant: Variant, number: int) -> str:
        """Return the path of a table."""
        return variant.path(self.source.files[number].name)

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield a unit for each table and corruption, so that one table keeps several workers busy."""
        number, start = 0, 0
        for _, group in groupby(keys, lambda key: self.source.row_of(key)[0]):
            own = tuple(group)
            for _, some in groupby(variants, lambda variant: variant.name):
                yield WorkUnit(number, start, own, tuple(some))
                number += 1
            start += len(own)

    @contextmanager
    def start_shard(self, file: BinaryIO, variant: Variant, number: int) -> Iterator[AddSample]:
        """Begin a table; rows are written as soon as a later row has a result."""
        rows, results = _Rows(self.source, number, self.chosen), dict[str, Result]()
        layout, chunks = find_layout(rows.file.name), rows.read()
        chunk = next(chunks, None)

        def write_before(row: RowPlace | None) -> None:
            """Write all chunks before `row`; without a row, all remaining ones."""
            nonlocal chunk
            while chunk and (row is None or chunk[1].places[-1] < row):
                write(rows.rewrite(*chunk, results.get))
                results.clear()
                chunk = next(chunks, None)

        def add(key: str, label: int, sample: Encoded) -> None:
            write_before(self.source.row_of(key)[1])
            results[key] = Result(sample.data, PurePosixPath(sample.name).suffix)

        with rows.file.store.open(rows.file.name) as like, layout.write(file, like) as write:
            yield add
            write_before(None)

    def list_companions(self, listing: Listing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the tables without images."""
        with_images = {self.source.row_of(key)[0] for key in self.source.keys()}  # noqa: SIM118
        others = [file for number, file in enumerate(self.source.files) if number not in with_images]
        content = {file.name: file.store.read(file.name) for file in others}
        return {f"{folder}/{name}": data for folder in folders for name, data in content.items()}

    def find_output(
        self, root: Store, variant: Variant, index: int, key: str, encoded: Encoded
    ) -> tuple[str, bool]:
        """Return the path of the table, and whether it contains the image."""
        path = self.shard_path(variant, self.shard_number(index, key))
        return path, hashlib.sha256(encoded.data).hexdigest() in _digest_images(self.source, root, path)


def _describe(name: str, source: Table, encoder: Encoder) -> dict[str, Any]:
    """Return the settings of the format called `name`."""
    return {"format": name, "columns": list(source.columns.names), "sample": encoder.settings()}


@lru_cache(maxsize=4)
def _digest_images(source: Table, root: Store, path: str) -> frozenset[str]:
    """Return the SHA-256 of each image in the table at `path`, which has the columns of `source`."""
    read, columns = root.folder(path.rpartition("/")[0]).read, source.columns.names
    with root.open(path) as content:
        return frozenset(
            hashlib.sha256(image.read(read)).hexdigest()
            for chunk in find_layout(path).read(content, columns)
            for column in columns
            for cell in chunk.cells(column)
            for image in list_images(cell)
        )


class FileTableWriter(TreeWriter):
    """Writer of `<variant>/<path in the cell>`, and of tables whose cells name these files.

    Parameters
    ----------
    source : Table
    encoder : Encoder
        Encodes each image as one file.
    """

    format: ClassVar[str] = "table of files"

    def __init__(self, source: Table, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.source = source

    def settings(self) -> dict[str, Any]:
        """Return format, columns, and the settings of the images."""
        return _describe(self.format, self.source, self.encoder)

    def list_companions(self, listing: Listing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the tables with the rows whose images are created, and the rows without images."""
        made_all = {*self.source.keys()} <= {*listing.keys}
        chosen, content = None if made_all else frozenset(listing.keys), dict[str, bytes]()
        for number, file in enumerate(self.source.files):
            content[file.name] = self._rewrite(_Rows(self.source, number, chosen))
        return {f"{folder}/{name}": data for folder in folders for name, data in content.items()}

    def _rewrite(self, rows: _Rows) -> bytes:
        buffer, layout = io.BytesIO(), find_layout(rows.file.name)
        with rows.file.store.open(rows.file.name) as like, layout.write(buffer, like) as add:
            for first, chunk in rows.read():
                add(rows.rewrite(first, chunk, self._name_result))
        return buffer.getvalue()

    def _name_result(self, key: str) -> Result:
        """Return the suffix of the output for the image `key`, which the cell names."""
        return Result(b"", PurePosixPath(self.encoder.output_name(key) or key).suffix)


# --- reading -------------------------------------------------------------------------------------


class TableSet(SourceSet):
    """Set with a folder of tables per variant; cells contain the images, and there are no classes."""

    format: ClassVar[str] = "table"

    def open_folder(self, location: str) -> Table:
        """Open the tables of a variant."""
        columns = Columns(tuple(self.about["settings"]["output"]["columns"]))
        return Table(location, Options(columns=columns))

    def labels(self, arm: Variant) -> Labels | None:
        """Return None: tables have no classes."""
        return None

    @property
    def classes(self) -> int | None:
        """Return None: tables have no classes."""
        return None
