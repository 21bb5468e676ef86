"""Tables of the source with results in place of images; other columns and all rows are kept."""

import hashlib
import io
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import groupby
from pathlib import PurePosixPath
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import Any, BinaryIO, ClassVar, Final

from robustgen.errors import ConfigError
from robustgen.files.containers.tables import ParquetTable, RowPlace, import_pyarrow
from robustgen.files.storage import Store
from robustgen.files.text_files import join_names, split_names
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.sets.formats import Format
from robustgen.sets.formats.base import Encoded, Encoder, SetContent, SetListing, WorkUnit, Writer, WrittenSet
from robustgen.sets.formats.shards import AddSample, SampleWriter
from robustgen.sets.formats.trees import TreeSet, TreeWriter, VariantFolder
from robustgen.sets.sources.base import SourceOptions
from robustgen.sets.sources.classes import KEYS
from robustgen.sets.sources.table import EncodedCell, TableSource, find_layout, name_images, replace_images

# Bytes of the results for further rows, from which on they wait in a file.
_MOST_WAITING: Final = 1 << 24

FindResult = Callable[[str], EncodedCell | None]
"""Function from the key of an image to its result; None if it failed."""


# --- writing -------------------------------------------------------------------------------------


def _copy_table(
    source: TableSource, number: int, chosen: frozenset[str] | None, find: FindResult, file: BinaryIO
) -> Generator[RowPlace, None, None]:
    """Copy a table with results in place of images; before each chunk of rows, yield the last of them.

    Parameters
    ----------
    source : TableSource
    number : int
        Number of the table.
    chosen : frozenset of str or None
        Keys of the images to create, if not all; rows with only other images are omitted.
    find : callable
    file : binary file
    """
    table, names, row = source.files[number], source.columns, 0
    layout, read = find_layout(table.name), table.store.open
    with read(table.name) as like, read(table.name) as content, layout.write(file, like) as write:
        for chunk in layout.read(content):
            yield chunk.places[-1]
            kept, columns = list[bool](), {name: list[Any]() for name in names}
            for cells in zip(*map(chunk.cells, names), strict=True):
                keys = list[str]()
                for name, cell in zip(names, cells, strict=True):
                    own, result = _replace(source.further_rows, table.name, row, name, cell, find)
                    columns[name].append(result)
                    keys += own
                kept.append(chosen is None or _is_kept(source, chosen, keys, cells))
                row += 1
            write(chunk, columns, kept)


def _replace(
    first: Mapping[str, str], table: str, row: int, column: str, cell: Any, find: FindResult
) -> tuple[list[str], Any]:
    """Return the keys of the images in a cell, and the cell with results in their place."""
    try:
        keys = [first.get(key, key) for key, _ in name_images(table, row, column, cell)]
    except ValueError:
        # The source has refused this cell.
        return [], None
    left = iter(keys)
    return keys, replace_images(cell, lambda image: find(next(left)))


def _is_kept(source: TableSource, chosen: frozenset[str], keys: Sequence[str], cells: Sequence[Any]) -> bool:
    """Return True for a row with a chosen image, and for one that needs no image, not even of another row."""
    if known := [key for key in keys if key in source.listing.places]:
        return any(key in chosen for key in known)
    return bool(keys) or not any(isinstance(cell, str) and cell for cell in cells)


class TableWriter(SampleWriter):
    """Writer of `<variant>/<name of the table>`, with images in the cells.

    Parameters
    ----------
    encoder : Encoder
        Encodes each image as one file.
    source : TableSource
    chosen : sequence of str
        Keys of all images to create.

    Attributes
    ----------
    chosen : frozenset of str or None
        The same; None if these are all images of the source.
    """

    def __init__(self, encoder: Encoder, source: TableSource, chosen: Sequence[str]) -> None:
        super().__init__(encoder)
        self.source = source
        # Workers receive this with each task.
        self.chosen = frozenset(chosen) if len(chosen) < len(source.keys()) else None

    @classmethod
    def create(cls, encoder: Encoder, content: SetContent) -> Writer:
        """Return the writer of a set: of images in the cells, or of files, if the cells name files.

        Raises
        ------
        ConfigError
            The source is not a table.
        """
        source = content.source
        if not isinstance(source, TableSource):
            raise ConfigError("format: table is for source_kind=table (--dataset table)")
        if source.names_files:
            return FileTableWriter(encoder, source)
        return cls(encoder, source, content.keys)

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

    def measure(self, encoded: Encoded) -> int:
        """Return the number of bytes of the image in its cells: as base64 text, except in Parquet."""
        size, layout = len(encoded.data), find_layout(self.source.files[0].name)
        rows = 1 + len(self.source.further_rows) / len(self.source.listing.places)
        return round(rows * (size if isinstance(layout, ParquetTable) else -(-size // 3) * 4))

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
        results, again = dict[str, EncodedCell](), {*self.source.further_rows.values()}
        stored = dict[str, tuple[int, int, str]]()
        with SpooledTemporaryFile(_MOST_WAITING) as waiting:

            def find(key: str) -> EncodedCell | None:
                if key not in stored:
                    return results.pop(key, None)
                start, size, suffix = stored[key]
                waiting.seek(start)
                return EncodedCell(waiting.read(size), suffix)

            with closing(_copy_table(self.source, number, self.chosen, find, file)) as copied:
                last = next(copied)

                def add(key: str, label: int, sample: Encoded) -> None:
                    nonlocal last
                    while last < self.source.row_of(key)[1]:
                        last = next(copied)
                    suffix = PurePosixPath(sample.name).suffix
                    if key in again:
                        stored[key] = waiting.seek(0, io.SEEK_END), len(sample.data), suffix
                        waiting.write(sample.data)
                    else:
                        results[key] = EncodedCell(sample.data, suffix)

                yield add
                for _ in copied:
                    # Each row is written when the next one is requested.
                    pass

    def list_companions(self, listing: SetListing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the tables without images; and the keys of the images, if they are all of the source."""
        with_images = {self.source.row_of(key)[0] for key in self.source.keys()}  # noqa: SIM118
        others = [file for number, file in enumerate(self.source.files) if number not in with_images]
        content = {file.name: file.store.read(file.name) for file in others}
        copied = {f"{folder}/{name}": data for folder in folders for name, data in content.items()}
        # With fewer rows, these have other numbers.
        return copied if self.chosen else {KEYS: join_names(listing.keys)} | copied

    def find_output(
        self, root: Store, variant: Variant, index: int, key: str, encoded: Encoded
    ) -> tuple[str, bool]:
        """Return the path of the table, and whether it contains the image."""
        path = self.shard_path(variant, self.shard_number(index, key))
        # A table is read once, even if several threads ask for it.
        with _DIGESTING:
            return path, hashlib.sha256(encoded.data).hexdigest() in _digest_images(self.source, root, path)


def _describe(name: str, source: TableSource, encoder: Encoder) -> dict[str, Any]:
    return {"format": name, "columns": list(source.columns), "sample": encoder.settings()}


_DIGESTING: Final = Lock()


@lru_cache(maxsize=4)
def _digest_images(source: TableSource, root: Store, path: str) -> frozenset[str]:
    """Return the SHA-256 of each image in the table at `path`, which has the columns of `source`."""
    table = TableSource(f"{root.location}/{path}", SourceOptions(columns=source.columns))
    return frozenset(hashlib.sha256(table.read_bytes(key)).hexdigest() for key in table.listing.places)


class FileTableWriter(TreeWriter):
    """Writer of `<variant>/<path in the cell>`, and of tables whose cells name these files.

    Parameters
    ----------
    encoder : Encoder
        Encodes each image as one file.
    source : TableSource
    """

    format: ClassVar[str] = "table of files"

    def __init__(self, encoder: Encoder, source: TableSource) -> None:
        super().__init__(encoder)
        self.source = source

    def settings(self) -> dict[str, Any]:
        """Return format, columns, and the settings of the images."""
        return _describe(self.format, self.source, self.encoder)

    def list_companions(self, listing: SetListing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the tables with the rows whose images are created, and the rows without images."""

        def name_result(key: str) -> EncodedCell:
            return EncodedCell(b"", PurePosixPath(self.encoder.output_name(key) or key).suffix)

        made_all = {*self.source.keys()} <= {*listing.keys}
        chosen, content = None if made_all else frozenset(listing.keys), dict[str, bytes]()
        for number, file in enumerate(self.source.files):
            buffer = io.BytesIO()
            for _ in _copy_table(self.source, number, chosen, name_result, buffer):
                # Each row is written when the next one is requested.
                pass
            content[file.name] = buffer.getvalue()
        return {f"{folder}/{name}": data for folder in folders for name, data in content.items()}


# --- reading -------------------------------------------------------------------------------------


class TableSet(WrittenSet):
    """Set with a folder of tables per variant; cells contain the images."""

    format: ClassVar[str] = "table"

    def open(self, variant: Variant) -> TableSource:
        """Open the tables of a variant."""
        keys = split_names(self.store.read(KEYS)) if self.store.exists(KEYS) else None
        return _open_tables(f"{self.root}/{self.places[variant]}", self.manifest, keys)


def _open_tables(folder: str, manifest: Mapping[str, Any], keys: Sequence[str] | None = None) -> TableSource:
    """Open the tables of a variant, whose labels number the classes of the set."""
    config = manifest["config"]
    options = SourceOptions(
        labels_are_classes=config.get("labels_are_classes", False),
        label_column=config.get("label_column"),
        columns=manifest["settings"]["output"]["columns"],
    )
    return TableSource(folder, options, manifest["classes"], keys)


class FileTableSet(TreeSet):
    """Set with a folder of images per variant, and tables whose cells name them."""

    format = FileTableWriter.format

    def open(self, variant: Variant) -> "TableFolder":
        """Open the folder of a variant."""
        return TableFolder(f"{self.root}/{self.places[variant]}", self.manifest)


class TableFolder(VariantFolder):
    """The images of a variant, whose labels are in tables beside them, or else their folders."""

    def __init__(self, location: str, manifest: Mapping[str, Any]) -> None:
        super().__init__(location, manifest)
        self._table = _open_tables(location, manifest)

    def label(self, key: str) -> int:
        """Return the label of an image; raise an ImageError if it has none."""
        return self._table.label(key) if self._table.listing.labels else super().label(key)


TABLE: Final = Format("tables as in the source", {"c": "original"}, TableWriter, TableSet)
