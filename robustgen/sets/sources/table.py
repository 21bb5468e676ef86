"""Tables with columns of images: Parquet, JSON lines and tab-separated values.

Only these columns are read; `robustgen.sets.formats.table` copies all others unchanged. A cell is bytes, a
struct of bytes and path, base64 text, a data URI or a path, or a list of these. A text of at most 64
characters that is not a path refers to the image of another row, as in tables of VLMEvalKit.
"""

import ast
import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from robustgen.errors import SourceError
from robustgen.files.containers.tables import JsonLines, ParquetTable, RowPlace, TabSeparated
from robustgen.pixels.imaging.decode import EXTENSIONS, Location
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import DEFAULTS, SourceOptions, name_source_in_errors
from robustgen.sets.sources.files import IndexedSource, SourceListing
from robustgen.sets.sources.places import TEXT_TABLES, Place, SourceFile
from robustgen.sets.sources.shards import read_rows
from robustgen.sets.sources.trees import FolderTree

_MOST_OF_REFERENCE: Final = 64
_LONGEST: Final = max(map(len, EXTENSIONS))
_DATA_URI: Final = re.compile(r"data:image/[\w.+-]+;base64,")
# In base64.
_SIGNATURES: Final = {
    "/9j/": ".jpg",
    "iVBO": ".png",
    "Qk": ".bmp",
    "UklG": ".webp",
    "SUkq": ".tif",
    "TU0A": ".tif",
}
# If a cell contains another format, the result is a PNG file.
_OTHER: Final = ".png"


class CellImage(NamedTuple):
    """An image in a cell.

    Attributes
    ----------
    data : bytes, str or None
        The encoded image, or its base64 text.
    path : str or None
        Path of its file, or of its original file.
    is_file : bool
        Whether the cell is a file name, so that the result is a file too.
    """

    data: bytes | str | None
    path: str | None = None
    is_file: bool = False

    def read(self, read_file: Callable[[str], bytes]) -> bytes:
        """Return the encoded image; raise a ValueError, or any error of `read_file`, on failure."""
        if self.data is None:
            return read_file(normalise(self.path or ""))
        return self.data if isinstance(self.data, bytes) else base64.b64decode(self.data, validate=True)

    @property
    def suffix(self) -> str:
        """Return the suffix of its file, or the usual suffix of its format."""
        if self.path and PurePosixPath(self.path).suffix.lower() in EXTENSIONS:
            return PurePosixPath(self.path).suffix
        head = self.data or ""
        head = head[:4] if isinstance(head, str) else base64.b64encode(head[:3]).decode()
        return next((suffix for mark, suffix in _SIGNATURES.items() if head.startswith(mark)), _OTHER)


class EncodedCell(NamedTuple):
    """Result for an image: its encoded file, unused if the cell names a file, and its suffix."""

    data: bytes
    suffix: str


Visit = Callable[[CellImage], EncodedCell | None]


def list_images(cell: Any) -> list[CellImage]:
    """Return the images in a cell, in order; an empty list if it is empty or refers to another row.

    Raises
    ------
    ValueError
        The cell contains something else.
    """
    found: list[CellImage] = []
    replace_images(cell, found.append)
    return found


def is_list(cell: Any) -> bool:
    """Return whether a cell contains a list of images."""
    return isinstance(cell, list) or (isinstance(cell, str) and cell.startswith("["))


def replace_images(cell: Any, visit: Visit) -> Any:
    """Return `cell` with each image replaced by the result of `visit`; None empties it."""
    if cell is None or cell in ("", b""):
        return cell
    if isinstance(cell, bytes):
        made = visit(CellImage(cell))
        return made and made.data
    if isinstance(cell, list):
        return [replace_images(each, visit) for each in cell]
    if isinstance(cell, dict):
        return _replace_in_struct(cell, visit)
    if isinstance(cell, str):
        return _replace_in_text(cell, visit)
    raise ValueError(f"{str(cell)[:40]!r} is neither bytes, base64 text nor the name of a file")


def _replace_in_struct(cell: dict[str, Any], visit: Visit) -> Any:
    if not cell.keys() & {"bytes", "path"}:
        raise ValueError(f"an object of {', '.join(map(str, cell)) or 'nothing'}, not of bytes and path")
    data, path = cell.get("bytes"), cell.get("path")
    if not data and not path:
        return cell
    made = visit(CellImage(data or None, path))
    if not made:
        return None
    content = base64.b64encode(made.data).decode() if isinstance(data, str) else made.data
    return cell | {"bytes": content} | ({"path": rename(path, made.suffix)} if path else {})


def _replace_in_text(cell: str, visit: Visit) -> Any:
    if is_list(cell):
        # VLMEvalKit writes several images of a row this way.
        try:
            listed = list(ast.literal_eval(cell))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise ValueError(f"{cell[:40]!r} is not a list of images") from error
        return repr([replace_images(each, visit) or "" for each in listed])
    if cell[-_LONGEST:].lower().endswith(EXTENSIONS):
        normalise(cell)
        made = visit(CellImage(None, cell, is_file=True))
        return made and rename(cell, made.suffix)
    head = match[0] if (match := _DATA_URI.match(cell)) else ""
    if not head and len(cell) <= _MOST_OF_REFERENCE:
        return cell
    made = visit(CellImage(cell.removeprefix(head)))
    if not made:
        return None
    extension = made.suffix[1:].lower().replace("jpg", "jpeg")
    return (f"data:image/{extension};base64," if head else "") + base64.b64encode(made.data).decode()


def normalise(path: str) -> str:
    """Return `path` without empty parts; raise a ValueError if it leaves its folder."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or "\0" in path or not parts:
        raise ValueError(f"path {path[:80]!r} leaves the folder of the images")
    return "/".join(parts)


def rename(path: str, suffix: str) -> str:
    """Return `path` with the `suffix` of a format, unless it already has one of that format."""
    own = PurePosixPath(path).suffix
    pair = {own.lower(), suffix.lower()}
    return path if len(pair) == 1 or pair == {".jpg", ".jpeg"} else f"{path.removesuffix(own)}{suffix}"


# --- tables --------------------------------------------------------------------------------------


Layout = ParquetTable | JsonLines | TabSeparated
LAYOUTS: Final[Mapping[str, Layout]] = {
    layout.suffix: layout for layout in (ParquetTable(), JsonLines(), TabSeparated())
}
"""Kinds of table by suffix."""
# Replaces the table number for images in files.
_IN_FILE: Final = -1
_MOST_NAMED: Final = 3


@dataclass
class _Found:
    """Content of tables: images, file names with their first rows, and rows without images.

    `columns` maps each column that is not empty to whether it contains an image.
    """

    listing: SourceListing = field(default_factory=lambda: SourceListing(classes=[""]))
    files: dict[str, str] = field(default_factory=dict)
    without: list[str] = field(default_factory=list)
    columns: dict[str, bool] = field(default_factory=dict)

    def add_cell(self, table: str, row: int, place: tuple[int, int, int], column: str, cell: Any) -> bool:
        """Add the images of a cell, and return True if the cell is empty."""
        where = f"row {row} of {table}"
        with self.listing.refuse_damaged(f"{where}, {column}"):
            images = name_images(table, row, column, cell)
            for slot, (key, image) in enumerate(images):
                if image.is_file:
                    self.files.setdefault(key, where)
                else:
                    self.listing.add(key, (*place, column, slot, len(image.data or "")))
            if cell:
                self.columns[column] = self.columns.get(column, False) or bool(images)
            # Other text refers to the image of another row.
            return not images and not (cell and isinstance(cell, str))
        return False


class TableSource(IndexedSource):
    """Images in columns of tables.

    Keys are ``<table>/<row>/<column>.<suffix>``, in lists ``<table>/<row>/<column>/<number>.<suffix>``. If
    cells name files, these names are the keys, as for a folder of images; rows may share an image.

    Parameters
    ----------
    files : path or URL
        A table, a folder of tables, or a pattern: ``data/test-*.parquet``.
    options : SourceOptions

    Raises
    ------
    SourceError
        The table does not exist. From all other methods: a table lacks a column, or is damaged.
    """

    suffixes = tuple(LAYOUTS)

    def __init__(
        self, files: Location | Place, options: SourceOptions = DEFAULTS, kind: str | None = None
    ) -> None:
        super().__init__(files, options, kind)
        self.columns, self._root = tuple(options.columns) or ("image",), options.image_root

    @property
    def images(self) -> FolderTree:
        """Return the folder of the files named in cells."""
        place = Place(self.location)
        own = place.folder if place.is_folder else place.store
        return FolderTree(Place(self._root or own.location))

    def build(self) -> SourceListing:
        """List the images of all tables."""
        found = _Found()
        for number, file in enumerate(self.files):
            with name_source_in_errors(f"{file.store.location}/{file.name}"):
                for row, (first, second), cells in self._read_rows(file):
                    place = number, first, second
                    empty = [found.add_cell(file.name, row, place, *each) for each in cells.items()]
                    if all(empty):
                        found.without.append(f"row {row} of {file.name}")
        listing, images = found.listing, self.images
        if found.files and listing.places:
            key, where = next(iter(found.files.items()))
            both = f"some cells contain images, others name files ({key!r}, {where})"
            raise SourceError(f"{self.location}: {both}; process these image_columns separately")
        if texts := [column for column, has_images in found.columns.items() if not has_images]:
            raise SourceError(
                f"{self.location}: column {texts[0]!r} contains no images; see the key image_columns"
            )
        for key, where in found.files.items():
            with listing.refuse_damaged(key, f"{where}, below {images.location} (see the key image_root): "):
                listing.places[key] = _IN_FILE, 0, 0, images.size(key)
        if rows := found.without:
            more = ", ..." * (len(rows) > _MOST_NAMED)
            some = f"{len(rows)} row{'s' * (len(rows) > 1)} without an image kept"
            listing.remarks = [f"{some}: {', '.join(rows[:_MOST_NAMED])}{more}"]
        return listing

    def _read_rows(self, file: SourceFile) -> Iterator[tuple[int, RowPlace, dict[str, Any]]]:
        """Yield number and place of each row of a table, and its cells by column."""
        layout, columns, row = find_layout(file.name), self.columns, 0
        with file.store.open(file.name) as content:
            there = layout.read_columns(content)
            if missing := [column for column in columns if column not in there]:
                known = ", ".join(there)
                raise SourceError(
                    f"{file.name}: no column {missing[0]!r} (columns: {known}); see the key image_columns"
                )
            for chunk in layout.read(content, columns):
                for place, *cells in zip(chunk.places, *map(chunk.cells, columns), strict=True):
                    yield row, place, dict(zip(columns, cells, strict=True))
                    row += 1

    def _fingerprint(self) -> list[Any]:
        return [*super()._fingerprint(), list(self.columns), self._root]

    def read_bytes(self, key: str) -> bytes:
        """Read one image from its cell or its file."""
        number, first, second, *where, _ = self._place(key)
        if number == _IN_FILE:
            return self.images.read(key)
        (column, slot), file = where, self.check(number)
        layout = find_layout(file.name)
        if isinstance(layout, ParquetTable):
            cell = read_rows(file, column, first)[second][column]
        else:
            with file.store.open(file.name) as content:
                cell = layout.read_cell(content, (first, second), column)
        return list_images(cell)[int(slot)].read(self.images.read)

    def stat(self, key: str) -> tuple[int, str]:
        """Return size and stamp of an image's own file, or its size, and the stamp of its table."""
        is_file = self._place(key)[0] == _IN_FILE
        return self.images.stat(key) if is_file else super().stat(key)

    @property
    def class_count(self) -> None:
        """Return None, because tables have no classes."""

    @property
    def has_labels(self) -> bool:
        """Return False, because tables have no classes."""
        return False

    def label(self, key: str) -> int:
        """Return 0, because tables have no classes; raise an ImageError if `key` is unknown."""
        self._place(key)
        return 0

    # --- for writers of tables

    @property
    def names_files(self) -> bool:
        """Return True if cells name files, False if they contain the images."""
        return any(place[0] == _IN_FILE for place in self.listing.places.values())

    def row_of(self, key: str) -> tuple[int, RowPlace]:
        """Return the number of an image's table, and the place of its row."""
        number, first, second = self._place(key)[:3]
        return number, (first, second)


def name_images(table: str, row: int, column: str, cell: Any) -> list[tuple[str, CellImage]]:
    """Return the images in a cell of the file `table`, each with its key; raise a ValueError if invalid."""
    found = list[tuple[str, CellImage]]()
    for slot, image in enumerate(list_images(cell)):
        number = f"/{slot}" if is_list(cell) else ""
        own = f"{PurePosixPath(table).stem}/{row:08d}/{column}{number}{image.suffix}"
        found.append((normalise(image.path or "") if image.is_file else own, image))
    return found


def find_layout(name: str) -> Layout:
    """Return the kind of table of a file name; raise a SourceError if it is not a table."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in LAYOUTS:
        raise SourceError(f"{name}: not a table ({', '.join(LAYOUTS)})")
    return LAYOUTS[suffix]


TABLES: Final = SourceKind(lambda place: not place.is_folder and place.has_suffix(*TEXT_TABLES), TableSource)
