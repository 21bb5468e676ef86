"""Tables with columns of images: Parquet, JSON lines and tab-separated values.

Only these columns are read; `robustgen.formats.table` copies all others unchanged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, Any, Final, NamedTuple

from robustgen.containers.parquet import ParquetRows, ParquetTable
from robustgen.containers.tables import JsonLines, RowPlace, Rows, TabSeparated
from robustgen.errors import SourceError
from robustgen.imaging.decode import Location, reason_of
from robustgen.sources.base import blame_source
from robustgen.sources.cells import CellImage, is_list, list_images, normalise
from robustgen.sources.files import IndexedSource
from robustgen.sources.index import Cache, Listing
from robustgen.sources.parquet import read_cells
from robustgen.sources.places import TEXT_TABLES, Place, SourceFile
from robustgen.sources.trees import FolderTree

Chunk = ParquetRows | Rows
Layout = ParquetTable | JsonLines | TabSeparated
LAYOUTS: Final[Mapping[str, Layout]] = {
    layout.suffix: layout for layout in (ParquetTable(), JsonLines(), TabSeparated())
}
"""Kinds of table by suffix."""
# Replaces the table number for images in files.
_IN_FILE: Final = -1
_MOST_NAMED: Final = 3


class Columns(NamedTuple):
    """Columns of images.

    Attributes
    ----------
    names : tuple of str
    root : path, URL or None
        Folder of the files named in cells; None for the folder of the table.
    """

    names: tuple[str, ...] = ("image",)
    root: str | None = None


@dataclass
class _Found:
    """Content of tables: places of images, file names with their first rows, and other rows.

    `columns` maps each column that is not empty to whether it contains an image.
    """

    places: dict[str, Sequence[Any]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    without: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    columns: dict[str, bool] = field(default_factory=dict)


class Table(IndexedSource):
    """Images in columns of tables.

    Keys are ``<table>/<row>/<column>.<suffix>``, in lists ``<table>/<row>/<column>/<number>.<suffix>``. If
    cells name files, these names are the keys, as for a folder of images; rows may share an image.

    Parameters
    ----------
    files : path or URL
        A table, a folder of tables of one kind, or a pattern: ``data/test-*.parquet``.
    columns : Columns
    index : (Store, str), optional
        A file in which the listing may be cached.

    Raises
    ------
    SourceError
        The table does not exist. From all other methods: a table lacks a column, or is damaged.
    """

    def __init__(self, files: Location | Place, columns: Columns | None = None, index: Cache = None) -> None:
        self.columns = columns or Columns()
        super().__init__(files, index)

    @property
    def images(self) -> FolderTree:
        """Return the folder of the files named in cells."""
        place = Place(self.location)
        return FolderTree(self.columns.root or (place.folder if place.is_folder else place.store).location)

    def find_files(self) -> list[SourceFile]:
        """Look up the tables, all of one kind."""
        place = Place(self.location)
        if place.is_folder and not any(map(_is_table, place.children)):
            raise SourceError(f"{self.location}: contains no table ({', '.join(LAYOUTS)})")
        found = place.expand(_is_table)
        kinds = {find_layout(file.name).suffix: file.name for file in found}
        if len(kinds) > 1:
            raise SourceError(
                f"{self.location}: tables of several kinds: {', '.join(sorted(kinds.values()))}"
            )
        return found

    def build(self) -> Listing:
        """List the images of all tables."""
        found = _Found()
        for number, file in enumerate(self.files):
            where = f"{file.store.location}/{file.name}"
            with blame_source(where), file.store.open(file.name) as content:
                self._list_rows(found, number, file.name, content)
        if found.files and found.places:
            key, row = next(iter(found.files.items()))
            raise SourceError(
                f"{self.location}: some cells contain images, others name files ({key!r}, {row}); process "
                "these --image-columns separately"
            )
        if texts := [column for column, has_images in found.columns.items() if not has_images]:
            raise SourceError(f"{self.location}: column {texts[0]!r} contains no images; see --image-columns")
        images = self.images
        for key, row in found.files.items():
            try:
                found.places[key] = _IN_FILE, 0, 0, images.size(key), "", 0
            except (OSError, ValueError, LookupError) as error:
                found.refused[key] = (
                    f"{row}: {reason_of(error)} (--image-root names the folder of the images)"
                )
        lacking = {
            "without an image kept": dict.fromkeys(found.without),
            "with the image of another row kept": dict.fromkeys(found.references),
        }
        remarks = [
            f"{len(rows)} row{'s' * (len(rows) > 1)} {what}: {', '.join([*rows][:_MOST_NAMED])}"
            + ", ..." * (len(rows) > _MOST_NAMED)
            for what, rows in lacking.items()
            if rows
        ]
        labels = dict.fromkeys(found.places, 0)
        return Listing(found.places, found.refused, [""], labels, remarks=remarks)

    def _list_rows(self, found: _Found, number: int, name: str, content: IO[bytes]) -> None:
        layout, columns = find_layout(name), self.columns.names
        there = layout.read_columns(content)
        if missing := [column for column in columns if column not in there]:
            raise SourceError(
                f"{name}: no column {missing[0]!r} (columns: {', '.join(there)}); see --image-columns"
            )
        content.seek(0)
        row = 0
        for chunk in layout.read(content, columns):
            cells = {column: chunk.cells(column) for column in columns}
            for at, place in enumerate(chunk.places):
                images = [
                    _list_cell(found, (number, name, row, place), column, cells[column][at])
                    for column in columns
                ]
                if not any(images):
                    found.without.append(f"row {row} of {name}")
                row += 1

    def _fingerprint(self) -> list[Any]:
        return [*super()._fingerprint(), list(self.columns.names), self.columns.root]

    def read_bytes(self, key: str) -> bytes:
        """Read one image from its cell or its file."""
        number, first, second, _, column, slot = self._place(key)
        if number == _IN_FILE:
            return self.images.read(key)
        file = self.check(number)
        layout = find_layout(file.name)
        if isinstance(layout, ParquetTable):
            cell = read_cells(file, column, first)[second].as_py()
        else:
            with file.store.open(file.name) as content:
                cell = layout.read_cell(content, (first, second), column)
        return list_images(cell)[int(slot)].read(self.images.read)

    def size(self, key: str) -> int:
        """Return the stored size of one image in bytes; raise an ImageError if `key` is unknown."""
        return int(self._place(key)[3])

    def remarks(self) -> tuple[str, ...]:
        """Return remarks about rows without an image."""
        return tuple(self.listing.remarks)

    # --- for writers of tables

    @property
    def names_files(self) -> bool:
        """Return True if cells name files, False if they contain the images."""
        return any(place[0] == _IN_FILE for place in self.listing.places.values())

    def row_of(self, key: str) -> tuple[int, RowPlace]:
        """Return the number of an image's table, and the place of its row."""
        number, first, second = self._place(key)[:3]
        return number, (first, second)


def name_image(table: str, row: int, column: str, slot: int, cell: Any, image: CellImage) -> str:
    """Return the key of image number `slot` in a cell of the file `table`."""
    if image.is_file:
        return normalise(image.path or "")
    number = f"/{slot}" if is_list(cell) else ""
    return f"{PurePosixPath(table).stem}/{row:08d}/{column}{number}{image.suffix}"


def find_layout(name: str) -> Layout:
    """Return the kind of table of a file name; raise a SourceError if it is not a table."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in LAYOUTS:
        raise SourceError(f"{name}: not a table ({', '.join(LAYOUTS)})")
    return LAYOUTS[suffix]


def _is_table(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in LAYOUTS


def is_text_table(place: Place) -> bool:
    """Return True for a file, or a pattern of files, of JSON lines or tab-separated values."""
    return not place.is_folder and place.has_suffix(*TEXT_TABLES)


# --- listing -------------------------------------------------------------------------------------


def _list_cell(found: _Found, where: tuple[int, str, int, RowPlace], column: str, cell: Any) -> bool:
    """Add the images of a cell; return whether the cell contains anything."""
    number, name, row, place = where
    try:
        images = list_images(cell)
    except ValueError as error:
        found.refused[f"row {row} of {name}, {column}"] = str(error)
        return True
    if cell:
        found.columns[column] = found.columns.get(column, False) or bool(images)
    for slot, image in enumerate(images):
        key = name_image(name, row, column, slot, cell, image)
        if image.is_file:
            found.files.setdefault(key, f"row {row} of {name}")
        else:
            size = len(image.data) if image.data is not None else 0
            found.places[key] = number, *place, size, column, slot
    if cell and not images and isinstance(cell, str):
        found.references.append(f"row {row} of {name}")
    return bool(images) or bool(cell and isinstance(cell, str))
