"""Tables with columns of images: Parquet, JSON lines and tab-separated values.

Only these columns are read; `robustgen.sets.formats.table` copies all others unchanged. A cell is bytes, a
struct of bytes and path, base64 text, a data URI or a path, or a list of these. A text of at most 64
characters that is not a path refers to the image of another row, as in tables of VLMEvalKit.
"""

import ast
import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, Any, Final, NamedTuple

from robustgen.display.text import format_count
from robustgen.errors import SourceError
from robustgen.files.containers.tables import JsonLines, ParquetTable, RowPlace, TabSeparated
from robustgen.files.lazy import cached_property
from robustgen.pixels.imaging.decode import EXTENSIONS, Location
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import DEFAULTS, SourceOptions, class_of, name_source_in_errors
from robustgen.sets.sources.classes import list_numbers, sort_classes
from robustgen.sets.sources.files import IndexedSource, SourceListing
from robustgen.sets.sources.labels import choose_label_column, is_label_column
from robustgen.sets.sources.places import OF_LISTS, TEXT_TABLES, Place, SourceFile
from robustgen.sets.sources.shards import read_rows
from robustgen.sets.sources.trees import UNREAD_EXTENSIONS, FolderTree

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

    def digest(self) -> bytes:
        """Return the SHA-256 of the encoded image or its text."""
        data = self.data or b""
        return hashlib.sha256(data.encode() if isinstance(data, str) else data).digest()

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
        if "/" in cell or cell.lower().endswith(UNREAD_EXTENSIONS):
            raise ValueError(f"{cell!r} does not name a picture of a format that is read")
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


def _is_image(cell: Any) -> bool:
    """Return whether a cell contains images for certain; a long text may be one that is no image."""
    if isinstance(cell, str) and not cell[-_LONGEST:].lower().endswith(EXTENSIONS):
        is_long = len(cell) > _MOST_OF_REFERENCE
        return bool(_DATA_URI.match(cell)) or (is_long and cell.startswith((*_SIGNATURES,)))
    with suppress(ValueError):
        return bool(list_images(cell))
    return False


# --- tables --------------------------------------------------------------------------------------


Layout = ParquetTable | JsonLines | TabSeparated
LAYOUTS: Final[Mapping[str, Layout]] = {
    layout.suffix: layout for layout in (ParquetTable(), JsonLines(), TabSeparated())
}
"""Layouts of tables by suffix."""
# Replaces the table number for images in files.
_IN_FILE: Final = -1
_MOST_NAMED: Final = 3


@dataclass
class _Found:
    """Content of tables: images, file names with their first rows, and rows without images.

    `columns` maps each column that is not empty to whether it contains an image, `rows` each row to its
    images, `labels` each column of labels to its cells, and `first` digests of images, with a table or
    without, to their first keys. With `are_results`, equal images may be results of different ones.
    """

    listing: SourceListing = field(default_factory=lambda: SourceListing(classes=[""]))
    files: dict[str, str] = field(default_factory=dict)
    without: list[str] = field(default_factory=list)
    columns: dict[str, bool] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    labels: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    first: dict[tuple[bytes, str], str] = field(default_factory=dict)
    are_results: bool = False

    def add_cell(self, table: str, row: int, place: tuple[int, int, int], column: str, cell: Any) -> bool:
        """Add the images of a cell, and return True if the cell is empty."""
        where = f"row {row} of {table}"
        with self.listing.refuse_damaged(f"{where}, {column}"):
            images = name_images(table, row, column, cell)
            for slot, (key, image) in enumerate(images):
                own = key if image.is_file else self._find_first(table, key, image)
                self.rows[where].append(own)
                if image.is_file:
                    self.files.setdefault(key, where)
                elif own == key:
                    self.listing.add(key, (*place, column, slot, len(image.data or "")))
            if cell:
                self.columns[column] = self.columns.get(column, False) or bool(images)
            # Other text refers to the image of another row.
            return not images and not (cell and isinstance(cell, str))
        return False

    def _find_first(self, table: str, key: str, image: CellImage) -> str:
        """Return the key of the first equal image in a table."""
        if self.are_results:
            return key
        digest = image.digest()
        own = self.first.setdefault((digest, table), key)
        first = own if own != key else self.first.setdefault((digest, ""), key)
        if first != key:
            self.listing.copies[key] = first
        return own


class TableSource(IndexedSource):
    """Images in columns of tables.

    Keys are ``<table>/<row>/<column>.<suffix>``, in lists ``<table>/<row>/<column>/<number>.<suffix>``. If
    cells name files, these names are the keys, as for a folder of images. Rows of a table may share an image,
    whose key is that of the first of them.

    Parameters
    ----------
    files : path or URL
        A table, a folder of tables, or a pattern: ``data/test-*.parquet``.
    options : SourceOptions
    classes : sequence of str, optional
        Names of the classes of a set, in the order of the labels; () if it has no labels.
    keys : collection of str, optional
        Those of the images of a set, of which other rows have copies.

    Raises
    ------
    SourceError
        The table does not exist. From all other methods: a table lacks a column, or is damaged.
    """

    suffixes = tuple(LAYOUTS)
    usual_format = "table"

    def __init__(
        self,
        files: Location | Place,
        options: SourceOptions = DEFAULTS,
        classes: Sequence[str] | None = None,
        keys: Collection[str] | None = None,
    ) -> None:
        super().__init__(files, options)
        self._known_keys = keys
        self.columns, self._root = tuple(options.columns) or ("image",), options.image_root
        self._named, self._recorded = bool(options.columns), classes
        self._are_classes = options.labels_are_classes

    @property
    def images(self) -> FolderTree:
        """Return the folder of the files named in cells."""
        place = Place(self.location)
        own = place.folder if place.is_folder else place.store
        return FolderTree(Place(self._root or own.location))

    def build(self) -> SourceListing:
        """List the images of all tables."""
        found = _Found(are_results=self._known_keys is not None)
        for number, file in enumerate(self.files):
            with name_source_in_errors(f"{file.store.location}/{file.name}"):
                for row, (first, second), cells, labels in self._read_rows(file, found):
                    place = number, first, second
                    for column, cell in labels.items():
                        found.labels[column][f"row {row} of {file.name}"] = cell
                    empty = [found.add_cell(file.name, row, place, *each) for each in cells.items()]
                    if all(empty):
                        found.without.append(f"row {row} of {file.name}")
        listing, images = found.listing, self.images
        if found.files and listing.places:
            key, where = next(iter(found.files.items()))
            both = f"some cells contain images, others name files ({key!r}, {where})"
            raise SourceError(f"{self.location}: {both}; process these image_columns separately")
        if texts := [column for column, has_images in found.columns.items() if not has_images]:
            raise SourceError(f"{self.location}: column {texts[0]!r} has no images; see image_columns")
        for key, where in found.files.items():
            with listing.refuse_damaged(key, f"{where}, below {images.location} (see the key image_root): "):
                listing.places[key] = _IN_FILE, 0, 0, images.stat(key)[0]
        if self._known_keys is not None:
            listing.places = {key: listing.places[key] for key in self._known_keys if key in listing.places}
        if rows := found.without:
            more = ", ..." * (len(rows) > _MOST_NAMED)
            some = f"{len(rows)} row{'s' * (len(rows) > 1)} without an image kept"
            listing.remarks = [*listing.remarks, f"{some}: {', '.join(rows[:_MOST_NAMED])}{more}"]
        if copies := len(listing.copies.keys() - listing.places.keys()):
            once = "repeat an earlier one of their table, which is corrupted once, and one image in scores"
            listing.remarks = [*listing.remarks, f"{format_count(copies, 'picture')} {once}"]
        self._add_labels(found)
        return listing

    def _add_labels(self, found: _Found) -> None:
        """Add the labels of all images, or a remark why they have none."""
        listing, own = found.listing, dict[str, str | None]()
        try:
            labels = choose_label_column(
                found.labels, self.location, self.label_column, are_classes=self._are_classes
            )
            for row, name in labels.classes.items() if labels else ():
                for key in filter(listing.places.__contains__, found.rows[row]):
                    if own.setdefault(key, name) != name:
                        raise SourceError(f"{row}: {key!r} was {own[key]!r} before, now {name!r}")
        except SourceError as error:
            if self.label_column is not None:
                raise
            listing.remarks = [*listing.remarks, f"labels are not used: {error}"]
            return
        known = {name for name in own.values() if name is not None}
        if labels and known and (self._recorded is None or known <= {*self._recorded}):
            numbers = list_numbers(known) if labels.are_numbers else None
            listing.classes = self._recorded or numbers or sort_classes(known)
            places = {name: number for number, name in enumerate(listing.classes)}
            listing.labels = {key: -1 if name is None else places[name] for key, name in own.items()}
            listing.are_numbers = bool(numbers)

    def _read_rows(
        self, file: SourceFile, found: _Found
    ) -> Iterator[tuple[int, RowPlace, dict[str, Any], dict[str, Any]]]:
        """Yield number and place of each row of a table, and its cells of images and of labels by column."""
        layout, columns, row = find_layout(file.name), self.columns, 0
        with file.store.open(file.name) as content:
            there = layout.read_columns(content)
            if missing := [column for column in columns if column not in there]:
                known = ", ".join(there)
                raise SourceError(
                    f"{file.name}: no column {missing[0]!r} in {known}; see image_columns; "
                    f"if this is a list of images, {OF_LISTS}"
                )
            if not self._named:
                self._note_others(layout, content, found)
            given = self.label_column
            labels = [name for name in there if (is_label_column(name) if given is None else name == given)]
            every = [*dict.fromkeys((*columns, *labels))]
            for chunk in layout.read(content, every):
                for place, *cells in zip(chunk.places, *map(chunk.cells, every), strict=True):
                    own = dict(zip(every, cells, strict=True))
                    told = {name: own[name] for name in labels}
                    yield row, place, {name: own[name] for name in columns}, told
                    row += 1

    def _note_others(self, layout: Layout, content: IO[bytes], found: _Found) -> None:
        """Add a remark if the first rows have images in columns that are not used."""
        names = [name for name in layout.read_columns(content) if name not in self.columns]
        if not names:
            return
        for first in layout.read(content, names):
            if others := [name for name in names if any(map(_is_image, first.cells(name)))]:
                also = f"{', '.join(map(repr, others))} contain{'s' * (len(others) == 1)} images too"
                remark = f"images are those of column {self.columns[0]!r}; {also} (see the key image_columns)"
                found.listing.remarks = [*dict.fromkeys([*found.listing.remarks, remark])]
            return

    @property
    def copies(self) -> Mapping[str, str]:
        """Return the key of the first of equal images in several tables, by the keys of the others."""
        listing = self.listing
        return {key: first for key, first in listing.copies.items() if key in listing.places}

    @cached_property
    def further_rows(self) -> Mapping[str, str]:
        """Return the key of the image in each further row, by the key that the row would have."""
        return {key: first for key, first in self.listing.copies.items() if key not in self.listing.places}

    def _fingerprint(self) -> list[Any]:
        own = [list(self.columns), self._root, self._are_classes, self._recorded]
        return [*super()._fingerprint(), *own]

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
    def class_count(self) -> int | None:
        """Return the number of classes; None if they are bare numbers, or if there are none."""
        return super().class_count if self.listing.labels else None

    def label(self, key: str) -> int:
        """Return the label of an image; without one -1, but 0 if none of a source has one."""
        self._place(key)
        return self.listing.labels.get(key, -1 if self.listing.labels or self._recorded is not None else 0)

    @property
    def lacks_folders(self) -> bool:
        """Return whether there are classes, which keys lack."""
        return bool(self.listing.labels)

    def tree_path(self, key: str) -> str:
        """Return the key below the folder of its class, if it has one."""
        label = self.listing.labels.get(key, -1)
        return key if label < 0 or class_of(key) == self.classes[label] else f"{self.classes[label]}/{key}"

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
    """Return the layout of a table by its file name; raise a SourceError if it is not a table."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in LAYOUTS:
        raise SourceError(f"{name}: not a table ({', '.join(LAYOUTS)}); if it is a list, {OF_LISTS}")
    return LAYOUTS[suffix]


TABLES: Final = SourceKind(lambda place: not place.is_folder and place.has_suffix(*TEXT_TABLES), TableSource)
