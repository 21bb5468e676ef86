"""Label files of images in any of the usual formats, and the development kit of ILSVRC 2012."""

import codecs
import csv
import io
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from robustgen.errors import SourceError, quote
from robustgen.files.containers.tables import ParquetTable
from robustgen.files.text_files import parse_json, parse_object
from robustgen.sets.sources.base import name_source_in_errors
from robustgen.sets.sources.classes import is_folder_name, sort_classes
from robustgen.sets.sources.places import Place, read_named_files

_IN_JSON: Final = ("cls", "label", "class", "class_id")
_MOST_LABEL_BYTES: Final = 1 << 20

Label = int | str
"""Number or name of a class."""


def check_label_size(size: int) -> None:
    """Raise a ValueError if a file with so many bytes is too large for the label of one image."""
    if size > _MOST_LABEL_BYTES:
        raise ValueError(f"{size} bytes")


def parse_label(content: bytes, *, in_json: bool) -> Label | None:
    """Return the label in a file that belongs to one image; None if there is none.

    Raises
    ------
    ValueError
        It is not JSON, or the label cannot be the name of a class.
    """
    label: Any = content.decode().strip()
    if in_json:
        found = parse_object(label)
        label = next((found[word] for word in _IN_JSON if word in found), None)
    if isinstance(label, str) and re.fullmatch(r"-?\d{1,9}", label):
        label = int(label)
    if label is None or isinstance(label, int):
        # The library `datasets` marks hidden labels with -1.
        return None if label is None or label < 0 else label
    if isinstance(label, str) and is_folder_name(label):
        return label
    raise ValueError(f"{str(label)[:40]!r} cannot be the name of a class")


# --- labels in cells -----------------------------------------------------------------------------


# Without case, spaces, hyphens and underscores, which differ from tool to tool.
_LABEL_COLUMNS: Final = frozenset(
    {
        *("label", "labels", "cls", "class", "category", "target", "finelabel", "classlabel"),
        *("labelid", "classid", "categoryid", "targetid", "labelidx", "classidx", "labelindex", "classindex"),
        *("labelname", "classname", "categoryname"),
    }
)
# With more digits, an integer is an identifier.
_NUMBER: Final = re.compile(r"(-?\d{1,5})(\.0+)?")
_FRACTION: Final = re.compile(r"-?\d*\.\d+")


class Labels(NamedTuple):
    """Labels that were read from cells.

    Attributes
    ----------
    classes : dict of str to str or None
        Name of the class of each row or image; None if it has none.
    are_numbers : bool
        Whether the labels are integers without names.
    """

    classes: dict[str, str | None]
    are_numbers: bool


def is_label_column(name: str) -> bool:
    """Return True if tools give this name to the column of labels."""
    return _plain(name) in _LABEL_COLUMNS


def _plain(title: str) -> str:
    return re.sub(r"[\s_-]", "", title).lower()


def read_cells(cells: Mapping[str, Any], are_classes: bool = False) -> Labels:
    """Read the label of each row from its cell.

    Parameters
    ----------
    cells : mapping of str to object
        Cell of each row, by the name of the row in messages.
    are_classes : bool
        Whether numbers are the names of classes.

    Raises
    ------
    SourceError
        A label cannot be that of a class, or only some are numbers; the message begins with the row.
    """
    for row, cell in cells.items():
        if isinstance(cell, (list, dict)):
            raise SourceError(f"{row}: {quote(cell)} is not one class")
    texts = {row: _as_text(cell) for row, cell in cells.items()}
    numbers = {row: found[1] for row, text in texts.items() if (found := _NUMBER.fullmatch(text))}
    named = {row: text for row, text in texts.items() if text and row not in numbers}
    known = [row for row, number in numbers.items() if int(number) >= 0]
    for row, text in named.items():
        if known and not are_classes:
            other = f"that of {known[0]} is the number {numbers[known[0]]}"
            named_too = "set labels_are_classes if numbers are names too"
            raise SourceError(f"{row}: label {quote(text)} is a name, but {other}; {named_too}")
        if _FRACTION.fullmatch(text) and not are_classes:
            raise SourceError(f"{row}: label {text} is no class; name the column with the key label_column")
        if not is_folder_name(text):
            raise SourceError(f"{row}: {quote(text)} cannot be the name of a class")
    # Hubs mark hidden labels with -1.
    classes: dict[str, str | None] = dict.fromkeys(texts) | named
    classes |= {row: numbers[row] if are_classes else str(int(numbers[row])) for row in known}
    return Labels(classes, bool(known) and not are_classes)


def _as_text(cell: Any) -> str:
    # An empty cell of pandas is NaN, the only value that differs from itself.
    if cell is None or cell != cell:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell).strip()


def choose_label_column(
    columns: Mapping[str, Mapping[str, Any]],
    where: str,
    column: str | None = None,
    *,
    are_classes: bool = False,
) -> Labels | None:
    """Return the labels in the `column`, or in the one with a usual name; None if there is none.

    Parameters
    ----------
    columns : mapping
        Cells of all columns that may have the labels, as in `read_cells`.
    where : str
        Name of the table in messages.
    column : str, optional
    are_classes : bool
        As in `read_cells`.

    Raises
    ------
    SourceError
        There is no such column, a label cannot be used, or columns of labels disagree.
    """
    if column is not None and column not in columns:
        listed = ", ".join(columns) or "none"
        raise SourceError(f"{where}: no column {column!r} (columns: {listed}); see the key label_column")
    chosen = [column] if column is not None else [*filter(is_label_column, columns)]
    found = {name: read_cells(columns[name], are_classes) for name in chosen}
    # An empty column does not contradict another one.
    found = {name: labels for name, labels in found.items() if any(labels.classes.values())} or found
    first = next(iter(found), "")
    for name, labels in found.items():
        if _number_rows(labels) != _number_rows(found[first]):
            choose = "choose one with the key label_column"
            raise SourceError(f"{where}: columns {first!r} and {name!r} disagree about the classes; {choose}")
    return found.get(first)


def _number_rows(labels: Labels) -> list[int | None]:
    """Return the output of a model that is the class of each row."""
    names = sort_classes({name for name in labels.classes.values() if name is not None})
    places = {name: int(name) if labels.are_numbers else place for place, name in enumerate(names)}
    return [None if name is None else places[name] for name in labels.classes.values()]


# --- files of labels -----------------------------------------------------------------------------


METADATA: Final = ("metadata.jsonl", "metadata.csv")
"""Files of the Hugging Face Hub in a folder of images, with a row for each of them."""
_IMAGE_COLUMNS: Final = (
    *("image", "img", "file", "path", "id", "name", "imageid", "imagename", "imagepath", "imagefile"),
    *("filename", "filepath", "imgname", "imgpath"),
)
_SEPARATORS: Final = ("\t", ",", ";", "|")
_EXAMPLE: Final = '{"file_name": "a.png", "label": 3}'
_KAGGLE: Final = "ImageId,PredictionString"


class _Table(NamedTuple):
    """Rows of a file: their names in messages, and their cells; `header` names the columns if it is known."""

    header: list[str]
    rows: list[tuple[str, list[Any]]]


class ImageNames:
    """Images, and the names by which the cells of a table may call them.

    Parameters
    ----------
    images : sequence of str
        Sorted paths below `folder`.
    folder : str
        Absolute path or URL of the images.
    beside : str
        Absolute path or URL of the folder of the table.
    """

    def __init__(self, images: Sequence[str], folder: str = "", beside: str = "") -> None:
        self.images, self._folder, self._beside = images, folder, beside
        self._paths, last = {name: [name] for name in images}, defaultdict[str, list[str]](list)
        for name in images:
            stem = name.rpartition(".")[0]
            if (own := self._paths.setdefault(stem, [])) != [stem]:
                own.append(name)
            for part in {posixpath.basename(name), posixpath.basename(stem)}:
                last[part].append(name)
        self._last = {part: names for part, names in last.items() if len(names) == 1}
        lengths = {len(posixpath.basename(name).partition(".")[0]) for name in images}
        self._digits = lengths.pop() if len(lengths) == 1 else 0

    def find(self, cell: str) -> list[str]:
        """Return the images that a cell names: relative to the source, or to the table, or absolutely."""
        text = cell.strip()
        if text in self._paths:
            return self._paths[text]
        path = posixpath.normpath(text.replace("\\", "/"))
        inside = posixpath.join(self._beside, path).removeprefix(f"{self._folder}/")
        if known := next((each for each in (path, inside) if each in self._paths), None):
            return self._paths[known]
        # Spreadsheets and pandas drop leading zeros.
        number = path.zfill(self._digits) if path.isdecimal() else path
        return self._last.get(path) or self._last.get(number, [])

    def match(self, cells: Sequence[str]) -> list[list[str]]:
        """Return the images that each of the cells of a column names."""
        found = [*map(self.find, cells)]
        if any(found):
            return found
        # The paths may be those of another machine, below one folder.
        tails = [*map(self._find_tail, cells)]
        above = {folder for folder, images in tails if images}
        above = {each for each in above if f"{self._folder}/".endswith(f"/{each}/")} or above
        return [images if len(above) == 1 and folder in above else [] for folder, images in tails]

    def _find_tail(self, cell: str) -> tuple[str, list[str]]:
        """Return the folders of a path that the names of the images lack, and the images."""
        path = cell.strip().replace("\\", "/")
        for match in re.finditer("/", path):
            if found := self._paths.get(path[match.end() :]):
                return path[: match.start()].lstrip("/"), found
        return "", []


class _Paths(NamedTuple):
    """A column of paths: how well it names images, its number, and the images of each row."""

    score: tuple[int, int, bool]
    number: int
    images: list[list[str]]


def read_labels(
    place: Place, images: Sequence[str], folder: str, column: str | None = None, are_classes: bool = False
) -> Labels:
    """Read the classes of images from a file or from ImageNet's devkit.

    Parameters
    ----------
    place : Place
        A file that `parse_labels` reads, or a devkit that `is_devkit` recognises.
    images : sequence of str
        Paths of the images below `folder`, sorted.
    folder : str
        Absolute path or URL of the images.
    column : str, optional
        Name of the column of labels.
    are_classes : bool
        Whether labels that are numbers are class names, not class numbers or those of the devkit.

    Raises
    ------
    SourceError
        The file cannot be read or does not match the images; the message names file and line.
    """
    with name_source_in_errors(place.location):
        if is_devkit(place):
            return Labels({**read_devkit(place, images)}, are_numbers=False)
        content = place.store.read(place.name)
        if not are_classes and is_ground_truth(place.name, content):
            home = Place(place.store.location)
            return Labels({**read_devkit(home, images, content)}, are_numbers=False)
        names = ImageNames(images, folder, place.store.location)
        return parse_labels(content, place.location, names, column, are_classes)


def parse_labels(
    content: bytes,
    where: str,
    names: ImageNames,
    column: str | None = None,
    are_classes: bool = False,
) -> Labels:
    """Read the classes of images from a table, or from one class per line in the order of the images.

    A table is CSV with any separator, JSON, JSON lines, Parquet, or lines ``name class``. The column of paths
    is the one whose cells name the images; the column of labels is `column`, or has a usual name, or is the
    only other one. Messages refer to the file as `where`.

    Raises
    ------
    SourceError
        The file does not match the images; the message names the line and the columns that were read.
    """
    tables = [*_list_tables(content, where)]
    if labels := _read_tables(tables, names, where, column, are_classes=are_classes):
        return labels
    lines = _list_lines(_decode(content), where)
    if not lines:
        raise SourceError(f"{where}, line 1: no labels")
    images = names.images
    # Names of several words repeat, unlike those of images.
    if tables and not (len(tables) == 2 and len({*lines.values()}) < len(lines)):
        row, cells = tables[0].rows[0]
        listed = ", ".join(map(str, tables[0].header or cells))
        raise SourceError(
            f"{row}: no column names images of the source, such as {images[0]!r} (columns: {listed})"
        )
    first, title = next(iter(lines.items()))
    if len(lines) == len(images) + 1 and is_label_column(title):
        del lines[first]
    if len(lines) != len(images):
        raise SourceError(f"{[*lines][-1]}: {len(lines)} labels for {len(images)} images")
    labels = read_cells(lines, are_classes)
    return labels._replace(classes=dict(zip(images, labels.classes.values(), strict=True)))


def parse_metadata(content: bytes, where: str, names: ImageNames, column: str | None = None) -> Labels | None:
    """Read the classes of images from a file of the Hub beside them; None if it has no column of labels."""
    tables = [*_list_tables(content, where)]
    titles = {str(title) for table in tables for title in table.header or table.rows[0][1]}
    if column not in titles and not any(map(is_label_column, titles)):
        return None
    return _read_tables(tables, names, where, column, any_name=False)


def _read_tables(
    tables: Sequence[_Table],
    names: ImageNames,
    where: str,
    column: str | None,
    *,
    are_classes: bool = False,
    any_name: bool = True,
) -> Labels | None:
    """Return the labels in that of the readings of a file which names most images; None if none does."""
    found = [(paths, table) for table in tables if (paths := _find_paths(table, names))]
    if not found:
        return None
    paths, table = max(found, key=lambda each: each[0].score)
    columns, images = _list_columns(table, paths, names)
    labels = choose_label_column(columns, where, column, are_classes=are_classes)
    if not labels and any_name:
        if len(columns) != 1:
            listed = ", ".join(columns)
            problem = f"none of the columns {listed} has a known name of labels" if columns else "no class"
            raise SourceError(f"{table.rows[0][0]}: {problem}; name their column with the key label_column")
        labels = read_cells(next(iter(columns.values())), are_classes)
    if not labels:
        return None
    classes = dict[str, str | None]()
    for row, named in images.items():
        for image in named:
            if classes.setdefault(image, labels.classes[row]) != labels.classes[row]:
                both = f"was {classes[image]!r} before, now {labels.classes[row]!r}"
                raise SourceError(f"{row}: {image!r} {both}")
    return labels._replace(classes=classes)


def _find_paths(table: _Table, names: ImageNames) -> _Paths | None:
    """Return the column whose cells name most images, with their full names before others; None without.

    Raises
    ------
    SourceError
        Two columns name different images equally well.
    """
    found = list[_Paths]()
    titles = table.header or [str(cell) for cell in table.rows[0][1]]
    for number, title in enumerate(titles):
        cells = [str(row[number]) if number < len(row) else "" for _, row in table.rows]
        images = names.match(cells)
        named = {image for each in images for image in each}
        # A number may be the stem of another image: 7 and 7.png.
        whole = {*map(posixpath.basename, named)} & {re.split(r"[/\\]", cell)[-1] for cell in cells}
        score = len(whole), len(named), _plain(title) in _IMAGE_COLUMNS
        if named and not is_label_column(title):
            found.append(_Paths(score, number, images))
    found.sort(key=lambda each: each.score, reverse=True)
    if len(found) > 1 and found[0].score == found[1].score and found[0].images != found[1].images:
        both = " and ".join(repr(titles[each.number]) for each in found[:2])
        raise SourceError(f"{table.rows[0][0]}: columns {both} name different images; remove one of them")
    return found[0] if found else None


def _list_columns(
    table: _Table, paths: _Paths, names: ImageNames
) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    """Return the cells of all columns beside that of the paths, by row, and the images of each row.

    Raises
    ------
    SourceError
        A row has more cells than the header.
    """
    header, rows, images, width = table.header, table.rows, paths.images, len(table.rows[0][1])
    if not header:
        cells = [str(cell) for cell in rows[0][1]]
        others = [cell for number, cell in enumerate(cells) if number != paths.number]
        is_stem = cells[paths.number] not in names.images
        is_title = not images[0] or (is_stem and any(map(is_label_column, others)))
        header = cells if is_title else [*map(str, range(1, width + 1))]
        rows, images = rows[is_title:], images[is_title:]
    for row, cells in rows:
        if any(cells[len(header) :]):
            listed = ", ".join(header)
            raise SourceError(f"{row}: {len(cells)} cells, but there are {len(header)} columns: {listed}")
    columns = {
        title: {row: cells[number] if number < len(cells) else None for row, cells in rows}
        for number, title in enumerate(header)
        if number != paths.number
    }
    # Spreadsheets end lines with separators.
    filled = {title: cells for title, cells in columns.items() if title or any(cells.values())}
    return filled, {row: each for (row, _), each in zip(rows, images, strict=True)}


# --- readings of a file --------------------------------------------------------------------------


def _list_tables(content: bytes, where: str) -> Iterator[_Table]:
    """Yield the tables that a file may be, by its format or its separators; none for a word per line."""
    if content.startswith(b"PAR1"):
        header, rows = ParquetTable().read_columns(io.BytesIO(content)), list[list[Any]]()
        for chunk in ParquetTable().read(io.BytesIO(content)):
            rows += map(list, zip(*map(chunk.cells, header), strict=True))
        yield _Table(header, [(f"{where}, row {number}", row) for number, row in enumerate(rows, 1)])
        return
    text = _decode(content)
    if text.lstrip()[:1] in ("{", "["):
        yield from _list_json(text, where)
        return
    lines = _list_lines(text, where)
    if next(iter(lines.values()), "") == _KAGGLE:
        # Boxes follow the class.
        yield _Table([], [(row, line.split()[0].split(",")) for row, line in lines.items()])
        return
    for separator in _SEPARATORS:
        if any(separator in line for line in lines.values()):
            yield _Table([], [*_read_csv(text, separator, where)])
    words = [(row, line.split()) for row, line in lines.items()]
    if any(len(cells) > 1 for _, cells in words):
        yield _Table([], [(row, line.rsplit(None, 1)) for row, line in lines.items()])
        is_even = len({len(cells) for _, cells in words}) == 1
        yield _Table([], words if is_even else [(row, line.split(None, 1)) for row, line in lines.items()])


def _read_csv(text: str, separator: str, where: str) -> Iterator[tuple[str, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                yield f"{where}, line {reader.line_num}", [cell.strip() for cell in cells]
    except csv.Error as error:
        raise SourceError(f"{where}, line {reader.line_num}: {error}") from error


def _list_json(text: str, where: str) -> Iterator[_Table]:
    """Yield the rows of JSON lines, or of one list of objects, or of an object of names with their labels."""
    lines, content = _list_lines(text, where), None
    with suppress(ValueError):
        content = parse_json(text)
    if isinstance(content, dict):
        # An object of objects is a table too, whose first column has no name.
        content = [
            {"": name} | (each if isinstance(each, dict) else {"label": each})
            for name, each in content.items()
        ]
    if content:
        yield _of_objects({f"{where}, entry {number}": each for number, each in enumerate(content, 1)})
    if not content or len(lines) == 1:
        yield _of_objects({row: _parse(line, row) for row, line in lines.items()})


def _parse(line: str, row: str) -> Any:
    try:
        return parse_json(line)
    except ValueError as error:
        raise SourceError(f"{row}: {error}") from error


def _of_objects(rows: Mapping[str, Any]) -> _Table:
    for row, each in rows.items():
        if not isinstance(each, dict):
            raise SourceError(f"{row}: is no object, such as {_EXAMPLE}")
    header = [*dict.fromkeys(key for each in rows.values() for key in each)]
    return _Table(header, [(row, [*map(each.get, header)]) for row, each in rows.items()])


def _decode(content: bytes) -> str:
    """Return the text of a file; Excel writes UTF-16."""
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16") if is_wide else content.decode("utf-8-sig", "surrogateescape")


def _list_lines(text: str, where: str) -> dict[str, str]:
    """Return the lines that are not empty, by their names in messages."""
    # splitlines() would also split at form feeds and the like.
    lines = enumerate(re.split("\r\n|\n|\r", text), 1)
    return {f"{where}, line {number}": line.strip() for number, line in lines if line.strip()}


# --- ImageNet's development kit ------------------------------------------------------------------


_GROUND_TRUTH, _META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
_FOLDER = "data"
# The published files have 0.2 MB and 0.5 MB.
_MOST_BYTES: Final = 1 << 24
_IMAGE_NAME = re.compile(r"ILSVRC2012_val_(\d{8})\.")


def is_devkit(place: Place) -> bool:
    """Return True for the folder of the devkit, or an archive with that name."""
    if place.is_folder and place.store.is_local:
        return any(map(place.folder.exists, (_GROUND_TRUTH, f"{_FOLDER}/{_GROUND_TRUTH}")))
    return "devkit" in place.name and place.name.endswith((".tar.gz", ".tgz", ".tar"))


def is_ground_truth(name: str, content: bytes) -> bool:
    """Return True for the devkit's labels: known by the file name, or by containing only 1 to 1000."""
    lines = [line for line in map(bytes.strip, content.splitlines()) if line]
    are_numbers = all(re.fullmatch(rb"1000|[1-9]\d{0,2}", line) for line in lines)
    return name == _GROUND_TRUTH or (bool(lines) and are_numbers)


def read_devkit(place: Place, images: Sequence[str], ground_truth: bytes | None = None) -> dict[str, str]:
    """Read the classes (WordNet ids) of the `images` from the devkit's folder or archive.

    Parameters
    ----------
    place : Place
    images : sequence of str
        Names such as ``ILSVRC2012_val_00000001.JPEG``; others get no class.
    ground_truth : bytes, optional
        Content of the file of labels, if it has another name or is in another folder.

    Raises
    ------
    SourceError
        One of its two files is missing or malformed.
    """
    files = read_named_files(place, (_GROUND_TRUTH, _META), (_FOLDER,), _MOST_BYTES)
    if ground_truth is not None:
        files[_GROUND_TRUTH] = ground_truth
    for name in (_GROUND_TRUTH, _META):
        if name not in files:
            raise SourceError(
                f"{place.location}: contains no {name}, which the class numbers of the devkit need. Pass the "
                "archive ILSVRC2012_devkit_t12.tar.gz with --labels; if the numbers are your own classes, "
                "set labels_are_classes"
            )
    wnids = _read_wnids(place.location, files[_META])
    numbers = [int(line) for line in files[_GROUND_TRUTH].split()]
    if not {*numbers} <= wnids.keys():
        raise SourceError(f"{place.location}: {_GROUND_TRUTH} has numbers that {_META} lacks")
    rows = {name: int(found[1]) for name in images if (found := _IMAGE_NAME.match(posixpath.basename(name)))}
    return {name: wnids[numbers[row - 1]] for name, row in rows.items() if 1 <= row <= len(numbers)}


def _read_wnids(where: str, content: bytes) -> dict[int, str]:
    from scipy.io import loadmat

    try:
        synsets: Any = loadmat(io.BytesIO(content), squeeze_me=True, variable_names=["synsets"])["synsets"]
        pairs = zip(synsets["ILSVRC2012_ID"], synsets["WNID"], strict=True)
        wnids = {int(number): str(wnid) for number, wnid in pairs}
    except Exception as error:
        raise SourceError(f"{where}: {_META} is not the devkit's: {error}") from error
    if wrong := [wnid for wnid in wnids.values() if not re.fullmatch(r"n\d{8}", wnid)]:
        raise SourceError(f"{where}: {_META} has {wrong[0]!r} in place of a WordNet id")
    return wnids
