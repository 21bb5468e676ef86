"""Label files of images in any of the usual formats, and the development kit of ILSVRC 2012."""

import io
import posixpath
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from robustgen.errors import SourceError, quote, raise_as
from robustgen.files.text_files import parse_object
from robustgen.sets.sources.base import name_source_in_errors
from robustgen.sets.sources.classes import is_folder_name, original_key, sort_classes
from robustgen.sets.sources.places import Place, read_named_files
from robustgen.sets.sources.rows import (
    ANY,
    Asked,
    Reading,
    Table,
    as_text,
    decode_text,
    list_lines,
    list_tables,
    plain,
    read_rows,
    refuse_chats,
    refuse_unmatched,
    strip_prefix,
)

_IN_JSON: Final = ("cls", "label", "class", "class_id")

Label = int | str
"""Number or name of a class."""


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
        *("labelname", "classname", "categoryname", "choice", "choices"),
    }
)
# With more digits, an integer is an identifier.
_NUMBER: Final = re.compile(r"(-?\d{1,5})(\.0+)?")
_FRACTION: Final = re.compile(r"-?\d*\.\d+(e[+-]?\d+)?")
_MISSING: Final = frozenset({"", "-1", "na", "n/a", "#n/a", "<na>", "nan", "none", "null"})
_ONE_LABEL: Final = "write one label for each image, or set labels_are_classes to make each text a class"
_MARKS: Final = {"0": False, "0.0": False, "1": True, "1.0": True, "False": False, "True": True}


class Labels(NamedTuple):
    """Labels that were read from cells.

    Attributes
    ----------
    classes : dict of str to str or None
        Name of the class of each row or image; None if it has none.
    are_numbers : bool
        Whether the labels are integers without names.
    remarks : tuple of str
    column : str
        Name of the column of labels.
    shown : tuple of str
        Lines that say what the columns mean, and a few rows.
    split : str
        Name of the column of splits; "" for none.
    left_out : frozenset of str
        Images of other splits.
    """

    classes: dict[str, str | None]
    are_numbers: bool
    remarks: tuple[str, ...] = ()
    column: str = ""
    shown: tuple[str, ...] = ()
    split: str = ""
    left_out: frozenset[str] = frozenset()


def is_label_column(name: str) -> bool:
    """Return True if tools give this name to the column of labels."""
    return plain(name) in _LABEL_COLUMNS


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
            raise SourceError(f"{row}: {quote(cell)} is not one class; write one label for each image")
    texts, remarks = {row: as_text(cell) for row, cell in cells.items()}, list[str]()
    if not are_classes:
        missing = {row: text for row, text in texts.items() if text.lower() in _MISSING}
        if counts := sorted(Counter(missing.values()).items()):
            said = ", ".join(f"{text!r} ({count})" for text, count in counts)
            keep = "; labels_are_classes keeps words and -1 as classes" * any(missing.values())
            remarks.append(f"no labels: {said}{keep}")
        texts |= dict.fromkeys(missing, "")
    if {text.lower() for text in texts.values()} <= {"true", "false", ""}:
        texts = {row: text.lower() for row, text in texts.items()}
    if not are_classes:
        _refuse_several(texts)
    numbers = {row: found[1] for row, text in texts.items() if (found := _NUMBER.fullmatch(text))}
    named = {row: text for row, text in texts.items() if text and row not in numbers}
    known = [row for row, number in numbers.items() if are_classes or int(number) >= 0]
    for row, text in named.items():
        if _FRACTION.fullmatch(text) and not are_classes:
            raise SourceError(
                f"{row}: label {text} is a measurement (regression), no class: write the class of each image "
                "into a column, and name it with the key label_column"
            )
        if known and not are_classes:
            other = f"that of {known[0]} is the number {numbers[known[0]]}"
            named_too = "set labels_are_classes if numbers are names too"
            raise SourceError(f"{row}: label {quote(text)} is a name, but {other}; {named_too}")
        if not is_folder_name(text):
            raise SourceError(
                f"{row}: {quote(text)} cannot be the name of a class, which is that of a folder; write it "
                "without slashes, control characters and a first dot, or name another column with the key "
                "label_column"
            )
    alike = defaultdict[str, set[str]](set)
    for text in named.values():
        alike[unicodedata.normalize("NFC", text).casefold()].add(text)
    if same := [" and ".join(map(repr, sorted(each))) for each in alike.values() if len(each) > 1]:
        remarks.append(f"classes that differ in upper case or in the encoding of letters alone: {same[0]}")
    # Hubs mark hidden labels with -1.
    classes: dict[str, str | None] = dict.fromkeys(texts) | named
    classes |= {row: numbers[row] if are_classes else str(int(numbers[row])) for row in known}
    return Labels(classes, bool(known) and not are_classes, tuple(remarks))


def _refuse_several(texts: Mapping[str, str]) -> None:
    """Raise a SourceError if a cell has several labels, divided by | or ; or by commas without blanks.

    Numbers, and words that are labels of other cells, may be divided by blanks.
    """
    whole = {*texts.values()}
    for row, text in texts.items():
        parts = re.split(r"\s*[|;,]\s*|\s+", text)
        is_list = "|" in text or ";" in text or ("," in text and ", " not in text) or text[:1] == "["
        if len(parts) > 1 and (is_list or all(part in whole or _NUMBER.fullmatch(part) for part in parts)):
            raise SourceError(f"{row}: {quote(text)} are several labels; {_ONE_LABEL}")


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
    found = {name: labels._replace(column=name) for name, labels in found.items()}
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

    Attributes
    ----------
    with_prefix : set of str
        Cells that named an image by its name after the prefix of an annotation tool.
    """

    def __init__(self, images: Sequence[str], folder: str = "", beside: str = "") -> None:
        self.images, self._folder, self._beside, self.with_prefix = images, folder, beside, set[str]()
        self._paths, last = {name: [name] for name in images}, defaultdict[str, list[str]](list)
        for name in images:
            stem, _ = posixpath.splitext(name)
            if (own := self._paths.setdefault(stem, [])) != [stem]:
                own.append(name)
            base = posixpath.basename(name)
            first = posixpath.basename(original_key(base))
            for part in {base, posixpath.basename(stem), first, posixpath.splitext(first)[0]}:
                last[part].append(name)
        self._last = {part: names for part, names in last.items() if len(names) == 1}
        lengths = {len(posixpath.basename(name).partition(".")[0]) for name in images}
        self._digits = lengths.pop() if len(lengths) == 1 else 0

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def find(self, cell: str) -> list[str]:
        """Return the images that a cell names: relative to the source, or to the table, or absolutely."""
        text = cell.strip()
        if text in self._paths:
            return self._paths[text]
        if is_url := "://" in text or "/?d=" in text:
            text = unquote(re.split("[?#]", re.sub(r".*/\?d=", "", text))[0])
        path = posixpath.normpath(text.replace("\\", "/"))
        inside = posixpath.join(self._beside, path).removeprefix(f"{self._folder}/")
        if known := next((each for each in (path, inside) if each in self._paths), None):
            return self._paths[known]
        # Spreadsheets and pandas drop leading zeros.
        number = path.zfill(self._digits) if path.isdecimal() else path
        if found := self._last.get(path) or self._last.get(number, []):
            return found
        name = posixpath.basename(original_key(posixpath.basename(path)))
        if is_url or name != posixpath.basename(path):
            return self._last.get(name, [])
        if found := self._last.get(strip_prefix(name), []):
            self.with_prefix.add(cell)
        return found

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


def read_labels(
    place: Place, images: Sequence[str], folder: str, asked: Asked = ANY, are_classes: bool = False
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
    asked : Asked
        Names of columns, and the split.
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
        return parse_labels(content, place.location, names, asked, are_classes)


def parse_labels(
    content: bytes, where: str, names: ImageNames, asked: Asked = ANY, are_classes: bool = False
) -> Labels:
    """Read the classes of images from a table, or from one class per line in the order of the images.

    A table is CSV with any separator, JSON, JSON lines, Parquet, or lines ``name class``. `rows.read_rows`
    finds the column of files and the rows of a split; the column of labels is that of `asked`, or has a usual
    name, or is the only other one. Messages refer to the file as `where`.

    Raises
    ------
    SourceError
        The file does not match the images; the message names the line and the columns that were read.
    """
    tables = [*list_tables(content, where, names)]
    if labels := _read_tables(tables, names, where, asked, are_classes=are_classes):
        return labels
    lines = list_lines(decode_text(content, where), where)
    if not lines:
        raise SourceError(f"{where}, line 1: no labels")
    images = names.images
    # Names of several words repeat, unlike those of images.
    if tables and not (len(tables) == 2 and len({*lines.values()}) < len(lines)):
        raise refuse_unmatched(tables, where, asked, images[0], is_label_column)
    if _are_names([*lines.values()], names):
        raise SourceError(
            f"{where}: lists images without labels; give it as the key subset: @{where.rpartition('/')[2]}, "
            "or write lines with a name and a label"
        )
    first, title = next(iter(lines.items()))
    if len(lines) == len(images) + 1 and is_label_column(title):
        del lines[first]
    if len(lines) != len(images):
        raise SourceError(
            f"{[*lines][-1]}: {len(lines)} labels for {len(images)} images; write a line for each image, or "
            "lines with its name and its label"
        )
    labels = read_cells(lines, are_classes)
    return labels._replace(classes=dict(zip(images, labels.classes.values(), strict=True)))


def _are_names(lines: Sequence[str], names: ImageNames) -> bool:
    """Return whether lines, of which the first may be a header, name images: each another one, by words."""
    found = [*map(bool, names.match(lines))]
    is_list = len({*lines}) == len(lines) > 1 and all(found[1:]) and any(found)
    return is_list and not all(map(_NUMBER.fullmatch, lines[1:]))


def parse_metadata(content: bytes, where: str, names: ImageNames, asked: Asked = ANY) -> Labels | None:
    """Read the classes of images from a file of the Hub beside them; None if it has no column of labels."""
    tables = [*list_tables(content, where, names)]
    titles = {str(title) for table in tables for title in table.titles}
    if asked.label not in titles and not any(map(is_label_column, titles)):
        return None
    return _read_tables(tables, names, where, asked, any_name=False)


def _read_tables(
    tables: Sequence[Table],
    names: ImageNames,
    where: str,
    asked: Asked,
    *,
    are_classes: bool = False,
    any_name: bool = True,
) -> Labels | None:
    """Return the labels in that of the readings of a file which names most images; None if none does."""
    read = read_rows(tables, where, names.match, asked, is_label_column)
    if not read:
        return None
    columns = {title: read.column(title) for title in read.list_others()}
    labels = choose_label_column(columns, where, asked.label, are_classes=are_classes)
    label = labels.column if labels else ""
    if not labels and any_name:
        refuse_chats(read, where)
        columns = _drop_counter(columns, read.header.index(read.file), read.header)
        label = next(iter(columns)) if len(columns) == 1 else "one-hot"
        if len(columns) == 1:
            labels = read_cells(columns[label], are_classes)
        else:
            labels = _read_one_hot(columns, read, where)
    if not labels:
        return None
    classes = dict[str, str | None]()
    images = dict(zip((row for row, _ in read.rows), read.found, strict=True))
    for row, named in images.items():
        for image in named:
            if classes.setdefault(image, labels.classes[row]) != labels.classes[row]:
                both = f"was {classes[image]!r} before, now {labels.classes[row]!r}"
                raise SourceError(f"{row}: {image!r} {both}; keep one label for each image")
    if any_name and not any(classes.values()):
        raise SourceError(
            f"{where}: no image has a label ({'; '.join([f'column {label!r}', *labels.remarks])})"
        )
    doubts = read.doubt_splits(where, label) if label in read.header else []
    return Labels(
        classes,
        labels.are_numbers,
        (*labels.remarks, *read.describe_prefixes(where, names.with_prefix), *doubts),
        label,
        tuple(read.describe(where, f", {label!r} labels", ", ".join)),
        read.split,
        frozenset(chain.from_iterable(read.left_out)) - classes.keys(),
    )


def _drop_counter(
    columns: dict[str, dict[str, Any]], place: int, header: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Leave out a column before the files that counts the rows."""
    first = next(iter(columns), "")
    cells = [str(cell) for cell in columns.get(first, {}).values()]
    start = cells[0] if cells else ""
    is_counter = start in ("0", "1") and cells == [str(int(start) + row) for row in range(len(cells))]
    if len(cells) > 1 and is_counter and header.index(first) < place:
        columns = {title: each for title, each in columns.items() if title != first}
    return columns


def _read_one_hot(columns: Mapping[str, Mapping[str, Any]], read: Reading[Any], where: str) -> Labels:
    """Return the column with the 1 of each row as its class.

    Raises
    ------
    SourceError
        There are other cells than 0 and 1, or a row has not one 1.
    """
    row, listed = read.rows[0][0] if read.rows else where, ", ".join(columns)
    way = "name the column of labels with the key label_column"
    if "1" in read.header:
        way += "; if labels contain blanks, separate the columns by tabs"
    marks = {title: {row: as_text(cell) for row, cell in each.items()} for title, each in columns.items()}
    if not all(cell in _MARKS for each in marks.values() for cell in each.values()) or not marks:
        problem = f"none of the columns {listed} has a known name of labels"
        if not columns:
            says = f"column {read.split!r} says splits, no other one labels" if read.split else "no class"
            problem = f"{says}: give a list of images as the key subset: @FILE"
        raise SourceError(f"{row}: {problem}; {way}")
    classes = dict[str, str | None]()
    for row, _ in read.rows:
        own = [title for title, each in marks.items() if _MARKS[each[row]]]
        if len(own) != 1:
            raise SourceError(
                f"{row}: {len(own)} of the columns {listed} have a 1, and an image needs one class; {way}, "
                "or leave out such rows"
            )
        classes[row] = own[0]
    return Labels(classes, are_numbers=False)


# --- ImageNet's development kit ------------------------------------------------------------------


_GROUND_TRUTH, _META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
_FOLDER = "data"
# The published files have 0.2 MB and 0.5 MB.
_MOST_BYTES: Final = 1 << 24
_IMAGE_NAME = re.compile(r"ILSVRC2012_val_(\d{8})[._]")


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

    with raise_as(SourceError, f"{where}: {_META} is not the devkit's", Exception):
        synsets: Any = loadmat(io.BytesIO(content), squeeze_me=True, variable_names=["synsets"])["synsets"]
        pairs = zip(synsets["ILSVRC2012_ID"], synsets["WNID"], strict=True)
        wnids = {int(number): str(wnid) for number, wnid in pairs}
    if wrong := [wnid for wnid in wnids.values() if not re.fullmatch(r"n\d{8}", wnid)]:
        raise SourceError(f"{where}: {_META} has {wrong[0]!r} in place of a WordNet id")
    return wnids
