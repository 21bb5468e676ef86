"""Tables of the source with results in place of images; other columns and all rows are kept."""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress, groupby
from pathlib import PurePosixPath
from typing import Any, ClassVar

from robustgen.benchmark import Variant
from robustgen.containers.parquet import ParquetTable, import_pyarrow
from robustgen.containers.tables import RowPlace
from robustgen.formats.base import (
    Encoded,
    Encoder,
    Labels,
    Listing,
    TreeWriter,
    Writer,
    WrittenFile,
)
from robustgen.formats.shards import SourceSet
from robustgen.formats.units import WorkUnit
from robustgen.sources.cells import Result, list_images, replace_images
from robustgen.sources.table import Chunk, Columns, Table, find_layout, name_image
from robustgen.storage import Store
from robustgen.storage import Writer as OpenFile


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
        self.file = source.tables[number]
        self._source, self._chosen = source, chosen

    def read(self) -> Iterator[tuple[int, Chunk]]:
        """Yield chunks of rows, each with the number of its first row."""
        first = 0
        with self.file.store.open(self.file.name) as content:
            for chunk in find_layout(self.file.name).read(content):
                yield first, chunk
                first += len(chunk.places)

    def list_keys(self, first: int, chunk: Chunk) -> list[dict[tuple[str, int], str]]:
        """Return the keys of the images in each row, by column and place in the cell."""
        found: list[dict[tuple[str, int], str]] = [{} for _ in chunk.places]
        for column in self._source.columns.names:
            for row, cell in enumerate(chunk.cells(column)):
                # The source has refused cells without a valid image.
                with suppress(ValueError):
                    for slot, image in enumerate(list_images(cell)):
                        key = name_image(self.file.name, first + row, column, slot, cell, image)
                        found[row][column, slot] = key
        return found

    def choose(self, chunk: Chunk, keys: Sequence[Mapping[Any, str]]) -> list[bool]:
        """Return which rows to keep: those with a chosen image, and those without any image.

        If not all images are chosen, rows that refer to images of other rows are omitted.
        """
        chosen, kept = self._chosen, list[bool]()
        if chosen is None:
            return [True] * len(keys)
        cells = zip(*(chunk.cells(column) for column in self._source.columns.names), strict=True)
        for own, texts in zip(keys, cells, strict=True):
            if known := [key for key in own.values() if self._source.has(key)]:
                kept.append(any(key in chosen for key in known))
            else:
                kept.append(bool(own) or not any(isinstance(text, str) and text for text in texts))
        return kept

    def list_kept(self) -> Iterator[dict[tuple[str, int], str]]:
        """Yield the image keys of each kept row."""
        for first, chunk in self.read():
            keys = self.list_keys(first, chunk)
            yield from compress(keys, self.choose(chunk, keys))

    def rewrite(self, first: int, chunk: Chunk, results: Mapping[str, Result]) -> Any:
        """Return the kept rows of `chunk`, with results in place of images."""
        keys = self.list_keys(first, chunk)
        columns: dict[str, list[Any]] = {}
        for column in self._source.columns.names:
            columns[column] = [
                _replace(cell, [key for (name, _), key in own.items() if name == column], results)
                for cell, own in zip(chunk.cells(column), keys, strict=True)
            ]
        return chunk.replace(columns, self.choose(chunk, keys))


def _replace(cell: Any, keys: Sequence[str], results: Mapping[str, Result]) -> Any:
    """Return a cell with the results of the images `keys`; None for a refused cell."""
    names = iter(keys)
    with suppress(ValueError):
        return replace_images(cell, lambda _: results.get(next(names)))


# --- writing -------------------------------------------------------------------------------------


class TableWriter(Writer):
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

    joint = True

    def __init__(self, source: Table, encoder: Encoder, chosen: Sequence[str]) -> None:
        super().__init__(encoder)
        self.source = source
        # Workers receive this with each task.
        self.chosen = frozenset(chosen) if len(chosen) < len(source.keys()) else None

    def settings(self) -> dict[str, Any]:
        """Return format, columns, and the settings of the images."""
        columns = list(self.source.columns.names)
        return {"format": "table", "columns": columns, "sample": self.encoder.settings()}

    def versions(self) -> dict[str, str]:
        """Return the versions for the images, and that of pyarrow for Parquet files."""
        is_parquet = any(isinstance(find_layout(file.name), ParquetTable) for file in self.source.tables)
        own = {"pyarrow": str(import_pyarrow()[0].__version__)} if is_parquet else {}
        return super().versions() | own

    def output_name(self, key: str) -> None:
        """Return None: images have no separate files."""

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
    def open(self, root: Store, unit: WorkUnit, labels: Sequence[int]) -> Iterator["_OpenTables"]:
        """Open the table of each variant."""
        with ExitStack() as stack:
            yield _OpenTables(self, root, unit, stack)

    def list_companions(self, listing: Listing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the tables without images."""
        with_images = {self.source.row_of(key)[0] for key in self.source.keys()}  # noqa: SIM118
        others = [file for number, file in enumerate(self.source.tables) if number not in with_images]
        content = {file.name: file.store.read(file.name) for file in others}
        return {f"{folder}/{name}": data for folder in folders for name, data in content.items()}

    def digest_part(self, root: Store, variant: Variant, index: int, key: str, name: str) -> tuple[str, str]:
        """Return the path of the table, and the digest of its image."""
        number = self.source.row_of(key)[0]
        path = variant.path(self.source.tables[number].name)
        return path, _digest_results(self.source, number, self.chosen, root, path).get(key, "")


@lru_cache(maxsize=4)
def _digest_results(
    source: Table, number: int, chosen: frozenset[str] | None, root: Store, path: str
) -> dict[str, str]:
    """Return the SHA-256 of each image in the table at `path`, by its key in the source."""
    kept, found = _Rows(source, number, chosen).list_kept(), dict[str, str]()
    with root.open(path) as content:
        for chunk in find_layout(path).read(content, source.columns.names):
            cells = {column: chunk.cells(column) for column in source.columns.names}
            for row, own in zip(range(len(chunk.places)), kept, strict=False):
                for (column, slot), key in own.items():
                    for image in list_images(cells[column][row])[slot : slot + 1]:
                        data = image.read(root.folder(path.rpartition("/")[0]).read)
                        found[key] = hashlib.sha256(data).hexdigest()
    return found


@dataclass
class _Target:
    """An unfinished table: results for rows not yet written, and the last row with a result."""

    path: str
    file: OpenFile
    add: Callable[[Any], None]
    results: dict[str, Result] = field(default_factory=dict)
    row: RowPlace = (-1, -1)


class _OpenTables:
    """Unit writer of some variants of one source table.

    Images of each variant arrive in the order of their rows. Rows are written as soon as all variants are
    past them, so that memory contains the results of few rows.
    """

    def __init__(self, writer: TableWriter, root: Store, unit: WorkUnit, stack: ExitStack) -> None:
        source = writer.source
        number, _ = source.row_of(unit.keys[0])
        self._rows = _Rows(source, number, writer.chosen)
        self._places = {key: source.row_of(key)[1] for key in unit.keys}
        self._reader = self._rows.read()
        self._chunk = next(self._reader, None)
        file, self._inner = self._rows.file, ExitStack()
        self._targets: dict[str, _Target] = {}
        for variant in unit.variants:
            target = stack.enter_context(root.create(variant.path(file.name)))
            like = stack.enter_context(file.store.open(file.name))
            add = self._inner.enter_context(find_layout(file.name).write(target, like))
            self._targets[variant.folder] = _Target(variant.path(file.name), target, add)

    def write(self, variant: Variant, index: int, key: str, encoded: Iterable[Encoded]) -> list[WrittenFile]:
        (file,) = encoded
        target = self._targets[variant.folder]
        target.results[key] = Result(file.data, PurePosixPath(file.name).suffix)
        target.row = self._places[key]
        self._flush(min(each.row for each in self._targets.values()))
        return []

    def _flush(self, row: RowPlace | None = None) -> None:
        """Write all chunks before `row`; without a row, all remaining ones."""
        while self._chunk and (row is None or self._chunk[1].places[-1] < row):
            last = self._chunk[1].places[-1]
            for target in self._targets.values():
                target.add(self._rows.rewrite(*self._chunk, target.results))
                target.results = {k: v for k, v in target.results.items() if self._places[k] > last}
            self._chunk = next(self._reader, None)

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        self._flush()
        self._inner.close()
        return [WrittenFile(each.path, each.file.size, each.file.sha256) for each in self._targets.values()]


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
        columns = list(self.source.columns.names)
        return {"format": self.format, "columns": columns, "sample": self.encoder.settings()}

    def list_companions(self, listing: Listing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the tables with the rows whose images are created, and the rows without images."""
        made_all = {*self.source.keys()} <= {*listing.keys}
        chosen, content = None if made_all else frozenset(listing.keys), dict[str, bytes]()
        for number, file in enumerate(self.source.tables):
            content[file.name] = self._rewrite(_Rows(self.source, number, chosen))
        return {f"{folder}/{name}": data for folder in folders for name, data in content.items()}

    def _rewrite(self, rows: _Rows) -> bytes:
        buffer, layout = io.BytesIO(), find_layout(rows.file.name)
        with rows.file.store.open(rows.file.name) as like, layout.write(buffer, like) as add:
            for first, chunk in rows.read():
                keys = [key for own in rows.list_keys(first, chunk) for key in own.values()]
                named = {key: self.encoder.output_name(key) or key for key in keys}
                results = {key: Result(b"", PurePosixPath(name).suffix) for key, name in named.items()}
                add(rows.rewrite(first, chunk, results))
        return buffer.getvalue()


# --- reading -------------------------------------------------------------------------------------


class TableSet(SourceSet):
    """Set with a folder of tables per variant; cells contain the images, and there are no classes."""

    format: ClassVar[str] = "table"

    def open_folder(self, location: str) -> Table:
        """Open the tables of a variant."""
        return Table(location, Columns(tuple(self.about["settings"]["output"]["columns"])))

    def labels(self, arm: Variant) -> Labels | None:
        """Return None: tables have no classes."""
        return None

    @property
    def classes(self) -> int | None:
        """Return None: tables have no classes."""
        return None
