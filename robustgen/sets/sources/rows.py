"""Tables of rows about images: which column names the file, and which rows belong to a split.

Lists of labels (`--labels`), lists of a split (`--subset @FILE`) and metadata follow the same rules.
"""

import codecs
import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress
from operator import not_
from typing import Any, Final, Generic, NamedTuple, TypeVar

from robustgen.errors import SourceError, quote, raise_as
from robustgen.files.containers.tables import ParquetTable
from robustgen.files.text_files import parse_json
from robustgen.pixels.imaging.decode import EXTENSIONS
from robustgen.sets.sources.base import SourceOptions, name_source_in_errors
from robustgen.sets.sources.places import VIDEOS

Found = TypeVar("Found")
"""What a cell names: images, in any form; false for nothing."""

# Names of columns, without case, spaces, hyphens and underscores, which differ from tool to tool.
_FILE_COLUMN: Final = re.compile(
    r"(?=.*(image|img|file|fname|path|video|photo|picture|youtube|ytid))"
    r"(image|img|file|f(?=name|path)|video|clip|photo|picture|frame(?=name|path|file)|youtube|yt|rel|relative|full"
    r"|abs|absolute|local|name|path|id|url|uri)+s?|key|rgb"
)
_MAYBE_OF_FILES: Final = frozenset({"id", "name", "url", "cocourl", "index", "idx", "nr", "no"})
_SPLIT_COLUMN: Final = re.compile(
    r"(?=.*(split|partition|subset|traintest|is(train|test|val)|evaluationstatus))"
    r"(is|train|training|test|testing|val|valid|validation|eval|evaluation|data|set|official|standard|split|partition"
    r"|sub|status|image|id|name|or|random)+s?|usage|phase"
)
# With few values: such columns may mean something else.
_MAYBE_OF_SPLITS: Final = frozenset({"set", "setid", "dataset", "test", "testing", "training", "validation"})
_FEW: Final = frozenset({"0", "1", "2", "3", "true", "false", "yes", "no"})
_SPLIT_FILE: Final = re.compile(r"partition|split", re.IGNORECASE)
_SAME_SPLIT: Final = ({"train", "training"}, {"val", "valid", "validation"}, {"test", "testing"})
_SPLIT_WORDS: Final = frozenset({"trainval", "dev", "eval"}.union(*_SAME_SPLIT))
_NUMBER: Final = re.compile(r"-?\d+(\.\d*)?")
# In a line whose names of files contain blanks.
_FILE_FIRST: Final = re.compile(
    rf"(.*?(?:{'|'.join(map(re.escape, (*EXTENSIONS, *VIDEOS)))}))(?:\s+(.*))?", re.IGNORECASE
)
_SEPARATORS: Final = ("\t", ",", ";", "|")
_OF_KINETICS: Final = ("youtube_id", "time_start", "time_end")
# Beginnings of pickles, NumPy's files, HDF5, gzip and zip.
_BINARY: Final = (b"\x80", b"\x93", b"\x89", b"\x1f\x8b", b"PK\3\4")
_EXAMPLE: Final = '{"file_name": "a.png", "label": 3}'
_CHATS: Final = frozenset({"messages", "conversations"})
# For JSON lines and for a list.
_OF_CHATS: Final = (
    "chats are not read: write a line with picture and label of each, as with jq -c '.. | objects | "
    "select(.messages // .conversations) | {file_name: ([.. | objects | .image, .image_url.url? | strings] + "
    ".images)[0], label: [(.messages // .conversations)[-1] | .content // .value | .. | strings][-1]}' "
)
# Annotation tools put it before the name of a file.
_PREFIX: Final = re.compile(r"[0-9a-f]{8}-")
_KAGGLE: Final = "ImageId,PredictionString"
_SPLIT_NUMBERS: Final = frozenset("012")
_MOST_NAMED: Final = 10
_MOST_SHOWN: Final = 3
_MOST_OF_TITLE: Final = 40


class Table(NamedTuple):
    """Rows of a file: their names in messages, and their cells; `header` names the columns if it is known."""

    header: list[str]
    rows: list[tuple[str, list[Any]]]

    @property
    def titles(self) -> list[str]:
        """Return the names of the columns, which may be the cells of the first row."""
        return self.header or [str(cell) for cell in self.rows[0][1]]

    def column(self, number: int) -> list[Any]:
        """Return the cells of a column."""
        return [cells[number] if number < len(cells) else "" for _, cells in self.rows]


class Asked(NamedTuple):
    """Columns and the split that a user names.

    Attributes
    ----------
    file, label, split_column : str, optional
        Names of columns; of a table without a header, their numbers.
    split : str, optional
        The split whose rows count.
    needs_split : bool
        Whether the table must say which rows belong to the split, as no folder does.
    in_folder : bool
        Whether the images are those in the folder of the split.
    """

    file: str | None = None
    label: str | None = None
    split_column: str | None = None
    split: str | None = None
    needs_split: bool = False
    in_folder: bool = False


ANY: Final = Asked()
"""Nothing is named."""


def ask(options: SourceOptions) -> Asked:
    """Return the columns and the split in the options of a source."""
    split = options.split or options.folder_split
    names = options.file_column, options.label_column, options.split_column
    needs_split = options.split is not None and not options.split_is_listed
    return Asked(*names, split, needs_split, options.folder_split is not None)


@dataclass(frozen=True)
class Reading(Generic[Found]):
    """Rows of a table as they were understood.

    Attributes
    ----------
    header : list of str
    rows : list of (str, list)
        Those of the split.
    found : list
        What the file of each row names.
    left_out : list
        What the files of the rows of other splits name.
    file, split : str
        Name of the column; "" for none.
    title : str
        Name of the row that has the header; "" for none.
    """

    header: list[str]
    rows: list[tuple[str, list[Any]]]
    found: list[Found]
    file: str
    split: str = ""
    title: str = ""
    left_out: Sequence[Found] = ()

    def column(self, title: str) -> dict[str, Any]:
        """Return the cells of a column by row."""
        number = self.header.index(title)
        return {row: cells[number] if number < len(cells) else None for row, cells in self.rows}

    def list_others(self) -> list[str]:
        """Return the columns beside those of files and splits; spreadsheets end lines with separators."""
        return [
            title
            for title in self.header
            if title not in (self.file, self.split) and (title or any(self.column(title).values()))
        ]

    def describe(self, where: str, use: str, name: Callable[[Found], str]) -> list[str]:
        """Return lines on the columns, and on a few rows, of which `name` says what they mean."""
        split = f", {self.split!r} splits" if self.split else ""
        lines = [f"{where}: column {self.file!r} names files{use}{split}"]
        for (_, cells), found in [*zip(self.rows, self.found, strict=True)][:_MOST_SHOWN]:
            lines.append(
                f"  {', '.join(map(quote, cells))} -> {name(found) if found else 'no image of the source'}"
            )
        return lines

    def describe_prefixes(self, where: str, found: Collection[str]) -> list[str]:
        """Return a remark on the names of files that were `found` without their prefix."""
        names = [name for name in map(str, self.column(self.file).values()) if name in found]
        if not names:
            return []
        return [f"{where}: {len(names)} names have a prefix that the images lack, such as {quote(names[0])}"]

    def doubt_splits(self, where: str, label: str = "") -> list[str]:
        """Return a remark if the only unused column of 0, 1 and 2 may say splits."""
        counts = {
            title: _count(self.column(title).values()) for title in self.list_others() if title != label
        }
        few = [title for title, each in counts.items() if len(each) > 1 and {*each} <= _SPLIT_NUMBERS]
        if len(few) != 1:
            return []
        said = ", ".join(f"{value} ({count})" for value, count in sorted(counts[few[0]].items()))
        how = "if it says which split an image belongs to, choose one with the keys split_column and split"
        return [f"{where}: column {few[0]!r} is not used: {said}; {how}"]


def is_title(name: str) -> bool:
    """Return whether tools give this name to a column of files."""
    return plain(name) in _MAYBE_OF_FILES or bool(_FILE_COLUMN.fullmatch(plain(name)))


def refuse_chats(read: Reading[Any], where: str) -> None:
    """Raise a SourceError if the rows are chats, whose labels are in no column."""
    if _CHATS & {*read.header}:
        raise SourceError(f"{where}: {_OF_CHATS}{where.rpartition('/')[2]}")


def as_text(cell: Any) -> str:
    """Return a cell as text; "" for an empty one of pandas, NaN, the only value that differs from itself."""
    return "" if cell is None or cell != cell else str(cell).strip()


def _count(cells: Iterable[Any]) -> Counter[str]:
    return Counter(map(as_text, cells))


def strip_prefix(name: str) -> str:
    """Return the name of a file without the prefix of an annotation tool; "" if it has none."""
    return name[match.end() :] if (match := _PREFIX.match(name)) else ""


def plain(title: str) -> str:
    """Return the name of a column without what differs from tool to tool."""
    return re.sub(r"[\W_]", "", title).lower()


def read_rows(
    tables: Sequence[Table],
    where: str,
    match: Callable[[Sequence[str]], list[Found]],
    asked: Asked,
    is_label: Callable[[str], bool],
) -> Reading[Found] | None:
    """Return that reading of a file in which a column names most images; None if none does.

    Numbers name no images if another column has paths, or the usual name of files.

    Parameters
    ----------
    tables : sequence of Table
        The tables that the file may be.
    where : str
        Name of the file in messages.
    match : callable
        Returns what each cell of a column names.
    asked : Asked
    is_label : callable
        Whether a column has the usual name of labels.

    Raises
    ------
    SourceError
        A named column is missing, two columns name images equally well, a row is too long, or the rows
        belong to several splits of which none was chosen.
    """
    found = [(columns, table) for table in tables if (columns := _find_files(table, match, asked, is_label))]
    if not found:
        return None
    columns, table = max(found, key=lambda each: each[0][0].score)
    if any(each.score == columns[0].score and each.found != columns[0].found for each in columns[1:2]):
        both = " and ".join(repr(table.titles[each.number]) for each in columns[:2])
        raise SourceError(
            f"{table.rows[0][0]}: columns {both} name different images; choose one with file_column"
        )
    return _choose_split(_name_columns(table, columns[0], is_label), where, asked, is_label)


def refuse_unmatched(
    tables: Sequence[Table], where: str, asked: Asked, example: str, is_label: Callable[[str], bool]
) -> SourceError:
    """Return the error of a table in which no column names an image of the source, such as `example`."""
    table, file = tables[0], where.rpartition("/")[2]
    titles, numbers = table.titles, _list_candidates(table, asked, is_label)
    listed = ", ".join(quote(title[:_MOST_OF_TITLE])[1:-1] for title in titles[:_MOST_NAMED])
    if asked.file is not None and not numbers:
        return SourceError(f"{where}: no column {asked.file!r} (columns: {listed}); see the key file_column")
    has_title = not table.header and (asked.file in titles or any(is_title(titles[n]) for n in numbers))
    row, cells = table.rows[min(len(table.rows) - 1, has_title)]
    cell = next((cells[number] for number in numbers if number < len(cells)), cells[0])
    way = (
        "name the column of files with the key file_column, or pass the folder of these images with --source"
    )
    if _CHATS & {*titles}:
        way = _OF_CHATS + file
    elif len(cells) > 1 and all(_NUMBER.fullmatch(str(each)) for each in cells):
        way = (
            "put names of files in place of numbers, as with: join <(sort images.txt) <(sort "
            f"{file}) | cut -d' ' -f2- > named_{file}"
        )
    return SourceError(
        f"{row}: no column names images of the source: read {quote(cell)}, the source has {example!r} "
        f"(columns: {listed}); {way}"
    )


# --- the column of files -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column(Generic[Found]):
    """A column of files: how well it names images, its number, and what each row names."""

    score: tuple[int, int, bool]
    number: int
    found: list[Found]


def _find_files(
    table: Table, match: Callable[[Sequence[str]], list[Found]], asked: Asked, is_label: Callable[[str], bool]
) -> list[_Column[Found]]:
    """Return the columns whose cells name images: that of most first, with their full names before others."""
    titles, columns = table.titles, list[_Column[Found]]()
    for number in _list_candidates(table, asked, is_label):
        cells = [str(cell) for cell in table.column(number)]
        found = match(cells)
        count = sum(map(bool, found))
        files = sum(bool(each) and _is_path(cell) for each, cell in zip(found, cells, strict=True))
        if count:
            columns.append(_Column((files, count, is_title(titles[number])), number, found))
    return sorted(columns, key=lambda each: each.score, reverse=True)


def _list_candidates(table: Table, asked: Asked, is_label: Callable[[str], bool]) -> list[int]:
    """Return the columns that may name files."""
    titles = table.titles
    if asked.file is not None:
        # Without a header, columns have numbers too.
        names = [*titles, *(() if table.header else map(str, range(1, len(titles) + 1)))]
        return [names.index(asked.file) % len(titles)] if asked.file in names else []
    others = {asked.label, asked.split_column}
    open_ = [n for n, title in enumerate(titles) if not (is_label(title) or {title, str(n + 1)} & others)]
    cells = {
        n: [str(cell) for cell in table.column(n)[not table.header :]] or titles[n : n + 1] for n in open_
    }
    numbers = [n for n in open_ if all(_NUMBER.fullmatch(cell) or not cell for cell in cells[n])]
    named = [n for n in open_ if _FILE_COLUMN.fullmatch(plain(titles[n]))]
    paths = [n for n in open_ if 2 * sum(map(_is_path, cells[n])) > sum(map(bool, cells[n]))]
    if {*named, *paths} - {*numbers}:
        return [n for n in open_ if n not in numbers]
    # Under any other title, numbers are ages, scores and the like.
    usual = {*numbers} & {*named} or {n for n in numbers if not titles[n] or is_title(titles[n])}
    has_titles = bool(table.header) or any(is_label(title) or is_title(title) for title in titles)
    return [n for n in open_ if n not in numbers or n in usual or not has_titles]


def _is_path(cell: str) -> bool:
    """Return whether a cell is surely the name of a file."""
    return (
        "://" in cell
        or "/" in cell.strip("/")
        or "\\" in cell
        or cell.lower().endswith((*EXTENSIONS, *VIDEOS))
    )


def _name_columns(table: Table, column: _Column[Found], is_label: Callable[[str], bool]) -> Reading[Found]:
    """Return the rows below the header, which may be the first row."""
    header, rows, found, title = table.header, table.rows, column.found, ""
    if not header:
        first, cells = rows[0][0], [str(cell) for cell in rows[0][1]]
        own, others = cells[column.number], [*cells[: column.number], *cells[column.number + 1 :]]
        has_titles = any(is_label(each) or _SPLIT_COLUMN.fullmatch(plain(each)) for each in others)
        title = first if not _is_path(own) and (not found[0] or has_titles) else ""
        header = cells if title else [*map(str, range(1, len(cells) + 1))]
        rows, found = rows[bool(title) :], found[bool(title) :]
    for row, cells in rows:
        if any(cells[len(header) :]):
            listed = ", ".join(header)
            raise SourceError(
                f"{row}: {len(cells)} cells, but there are {len(header)} columns: {listed}; remove "
                "what is above the header, and write as many cells into each line"
            )
    return Reading(header, rows, found, header[column.number], title=title)


# --- the rows of a split -------------------------------------------------------------------------


def _choose_split(
    read: Reading[Found], where: str, asked: Asked, is_label: Callable[[str], bool]
) -> Reading[Found]:
    """Return the rows of the split that was asked for.

    Raises
    ------
    SourceError
        The rows belong to several splits, and none was chosen; or no row belongs to it.
    """
    name = _find_split(read, where, asked, is_label)
    if not name:
        if asked.needs_split:
            listed = ", ".join(read.header)
            raise SourceError(
                f"{where}: no column says which rows are of the split {asked.split!r} (columns: {listed}); "
                "name it with the key split_column, or omit the split"
            )
        return read
    values = [as_text(cell) for cell in read.column(name).values()]
    counts = ", ".join(
        f"{value or 'none'} ({count})" for value, count in sorted(_count(values).items())[:_MOST_NAMED]
    )
    if asked.split is None:
        if len({*values}) > 1:
            first = max(sorted({*values}), key=lambda value: (value.lower() == "test", bool(value)))
            raise SourceError(
                f"{where}: column {name!r} says which split an image belongs to: {counts}; choose one with "
                f"the key split, such as --set split={first}, or omit the column if it means something else"
            )
        return replace(read, split=name)
    kept = [_is_split(value, asked.split, name) for value in values]
    if not any(kept):
        raise SourceError(
            f"{where}: no row of the split {asked.split!r}; column {name!r} has {counts}: write one of "
            f"these, as with --set split={next(filter(None, values), '')}"
        )
    if asked.in_folder:
        _check_folder(read, asked, kept)
    return replace(
        read,
        rows=[*compress(read.rows, kept)],
        found=[*compress(read.found, kept)],
        left_out=[*compress(read.found, map(not_, kept))],
        split=name,
    )


def _check_folder(read: Reading[Any], asked: Asked, kept: Sequence[bool]) -> None:
    """Raise a SourceError if a row of another split names an image in the folder of the split."""
    own = {tuple(found) for found, keep in zip(read.found, kept, strict=True) if keep}
    for (row, _), found, keep in zip(read.rows, read.found, kept, strict=True):
        if found and not keep and tuple(found) not in own:
            raise SourceError(
                f"{row}: an image of the folder {asked.split!r} is of another split; omit it, and name "
                "the folder with --source"
            )


def _find_split(read: Reading[Any], where: str, asked: Asked, is_label: Callable[[str], bool]) -> str:
    """Return the column that says which split an image belongs to; "" if there is none."""
    others = [title for title in read.list_others() if title != asked.label]
    if asked.split_column is not None:
        if asked.split_column not in others:
            listed = ", ".join(others) or "none"
            raise SourceError(
                f"{where}: no column {asked.split_column!r} (columns: {listed}); see the key split_column"
            )
        return asked.split_column
    has_header = read.header != [*map(str, range(1, len(read.header) + 1))]
    of_splits = bool(_SPLIT_FILE.search(where.rpartition("/")[2]))
    found = []
    for title in others:
        cells = {as_text(cell).lower() for cell in read.column(title).values()}
        words = {re.split(r"[\W\d_]", cell, maxsplit=1)[0] for cell in cells}
        is_word = words <= _SPLIT_WORDS and not is_label(title) and len(words) > 1
        # Without a header: the only other column in a file of splits, and the third one after a label.
        place = (read.header.index(read.file), title, len(read.header))
        is_few = cells <= _SPLIT_WORDS | _SPLIT_NUMBERS and not has_header
        is_third = is_few and place == (0, "3", 3) and len(cells) > 1 and "0" in cells
        if (
            _SPLIT_COLUMN.fullmatch(plain(title))
            or (plain(title) in _MAYBE_OF_SPLITS and cells <= _FEW and len(cells) > 1)
            or is_word
            or is_third
            or (of_splits and is_few and len(others) == 1)
        ):
            found.append(title)
    if len(found) > 1:
        raise SourceError(
            f"{where}: columns {', '.join(found)} say splits; choose one with the key split_column"
        )
    return "".join(found)


def _is_split(value: str, split: str, column: str) -> bool:
    """Return whether a cell says that a row is of the split: as written, by a synonym, or as a number."""
    own, wanted = value.lower(), split.lower()
    if own == wanted or any({own, wanted} <= same for same in _SAME_SPLIT):
        return True
    if _NUMBER.fullmatch(own) and _NUMBER.fullmatch(wanted):
        return float(own) == float(wanted)
    # A column `is_valid` says yes or no.
    of_column = plain(column).removeprefix("is").removesuffix("image")
    is_own = any({of_column, wanted} <= same for same in _SAME_SPLIT)
    return is_own and own in ("true", "1", "1.0", "yes")


# --- readings of a file --------------------------------------------------------------------------


def list_tables(
    content: bytes, where: str, known: Container[str] = (), *, of_lines: bool = False
) -> Iterator[Table]:
    """Yield the tables that a file may be, by its format or its separators; none for a word per line.

    Lines that begin with # are comments, unless they name an image in `known`. With `of_lines`, a table of
    whole lines is one of the tables.

    Raises
    ------
    SourceError
        It is neither UTF-8, UTF-16 nor Parquet, or a row cannot be read.
    """
    if content.startswith(b"PAR1"):
        header, rows = ParquetTable().read_columns(io.BytesIO(content)), list[list[Any]]()
        for chunk in ParquetTable().read(io.BytesIO(content)):
            rows += map(list, zip(*map(chunk.cells, header), strict=True))
        yield Table(header, [(f"{where}, row {number}", row) for number, row in enumerate(rows, 1)])
        return
    text = decode_text(content, where)
    if text.lstrip()[:1] in ("{", "["):
        yield from _list_json(text, where)
        return
    lines = list_lines(text, where, known)
    if next(iter(lines.values()), "") == _KAGGLE:
        # Boxes follow the class.
        yield Table([], [(row, line.split()[0].split(",")) for row, line in lines.items()])
        return
    for separator in _SEPARATORS:
        if any(separator in line for line in lines.values()):
            yield _name_clips(Table([], [*_read_csv(text, separator, where, known)]))
    words = [(row, line.split()) for row, line in lines.items()]
    # Before its header, a table may count its rows.
    if len(words) > 2 and words[0][1] in ([str(len(words) - 2)], [str(len(words) - 1)]):
        lines.pop(words.pop(0)[0])
    if any(len(cells) > 1 for _, cells in words):
        yield Table([], [(row, line.rsplit(None, 1)) for row, line in lines.items()])
        counts = [len(cells) for _, cells in words]
        if len({*counts[1:]}) == 1 and counts[0] == counts[1] - 1:
            # As R and pandas read it, the header does not name the first column.
            yield Table(["", *words[0][1]], words[1:])
        yield _split_even(lines, [line.split(None, 1) for line in lines.values()])
        named = [_FILE_FIRST.fullmatch(line) for line in lines.values()]
        if all(named[1:]) and any(match and " " in match[1] for match in named):
            starts = [
                [match[1], match[2] or ""] if match else line.split(None, 1)
                for match, line in zip(named, lines.values(), strict=True)
            ]
            yield _split_even(lines, starts)
    if of_lines and lines:
        yield Table([], [(row, [line]) for row, line in lines.items()])


def _split_even(rows: Iterable[str], starts: Sequence[list[str]]) -> Table:
    """Return the table of the first cells and the rests of rows; the rests are words if all have as many."""
    words = [[*start[:1], *start[-1].split()] if len(start) > 1 else start for start in starts]
    is_even = len({*map(len, words)}) == 1
    return Table([], [*zip(rows, words if is_even else starts, strict=True)])


def _read_csv(
    text: str, separator: str, where: str, known: Container[str]
) -> Iterator[tuple[str, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        for cells in reader:
            if any(map(str.strip, cells)) and (cells[0][:1] != "#" or cells[0] in known):
                yield f"{where}, line {reader.line_num}", [cell.strip() for cell in cells]
    except csv.Error as error:
        raise SourceError(f"{where}, line {reader.line_num}: {error}") from error


def _name_clips(table: Table) -> Table:
    """Add the column of files to a table of Kinetics, whose clips are called ``<id>_<start>_<end>``."""
    if not table.rows or not {*_OF_KINETICS} <= {*table.titles}:
        return table
    places = [table.titles.index(title) for title in _OF_KINETICS]
    rows = [(table.rows[0][0], [*table.rows[0][1], "filename"])]
    for row, cells in table.rows[1:]:
        name, *seconds = (cells[place] for place in places)
        with suppress(ValueError):
            cells = [*cells, "_".join([name, *(f"{float(each):06.0f}" for each in seconds)])]
        rows.append((row, cells))
    return Table([], rows)


def _list_json(text: str, where: str) -> Iterator[Table]:
    """Yield the rows of JSON lines, of one list of objects or pairs, or of an object of names with labels."""
    lines, content = list_lines(text, where), None
    with suppress(ValueError):
        content = parse_json(text)
    found = content if isinstance(content, dict) else {}
    if isinstance(found.get("images"), list):
        yield _of_coco(found, where)
        return
    named, names = found.get("labels"), found.get("classes")
    if isinstance(named, dict) and (names is None or isinstance(names, list)):
        # As FiftyOne writes it: the names of the classes, and their numbers.
        content = {
            key: names[each] if names and isinstance(each, int) and 0 <= each < len(names) else each
            for key, each in named.items()
        }
    if isinstance(content, dict):
        # An object of objects is a table too, whose first column has no name.
        content = [
            {"": name} | (each if isinstance(each, dict) else {"label": each})
            for name, each in content.items()
        ]
    if content:
        yield _of_objects({f"{where}, entry {number}": each for number, each in enumerate(content, 1)})
    if not content or (len(lines) == 1 and text.lstrip()[:1] == "{"):
        yield _of_objects({row: _parse(line, row) for row, line in lines.items()})


def _parse(line: str, row: str) -> Any:
    with raise_as(SourceError, row, ValueError):
        return parse_json(line)


def _of_coco(content: Mapping[str, Any], where: str) -> Table:
    """Return the images with the categories of their annotations, and with their own splits."""
    with name_source_in_errors(f"{where}: is no annotation file of COCO"):
        names = {each["id"]: each["name"] for each in content.get("categories") or ()}
        told = defaultdict[Any, dict[Any, None]](dict)
        for each in content.get("annotations") or ():
            told[each["image_id"]][each.get("category_id")] = None
        rows = dict[str, Any]()
        for number, image in enumerate(content["images"], 1):
            kept = {
                key: cell
                for key, cell in image.items()
                if is_title(key) or _SPLIT_COLUMN.fullmatch(plain(key))
            }
            for place, category in enumerate(told.get(image.get("id"), (None,)), 1):
                row = f"{where}, image {number}, category {place}"
                rows[row] = kept | {"category": names.get(category, category)}
    return _of_objects(rows)


def _of_objects(rows: Mapping[str, Any]) -> Table:
    if all(isinstance(each, (list, str)) for each in rows.values()):
        return Table([], [(row, [each] if isinstance(each, str) else each) for row, each in rows.items()])
    for row, each in rows.items():
        if not isinstance(each, dict):
            raise SourceError(f"{row}: is no object, such as {_EXAMPLE}")
    header = [*dict.fromkeys(key for each in rows.values() for key in each)]
    if "annotations" in header and "data" in header:
        raise SourceError(
            f"{next(iter(rows))}: is Label Studio's JSON, whose labels are nested; export JSON-MIN or CSV"
        )
    return Table(header, [(row, [_unwrap(each.get(key)) for key in header]) for row, each in rows.items()])


def _unwrap(cell: Any) -> Any:
    return cell[0] if isinstance(cell, list) and len(cell) == 1 else cell


def decode_text(content: bytes, where: str) -> str:
    """Return the text of a file in UTF-8 or UTF-16, which Excel writes.

    Raises
    ------
    SourceError
        It has another encoding.
    """
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and content[2:4] != b"\0\0"
    if (b"\0" in content and not is_wide) or content.startswith(_BINARY):
        raise SourceError(
            f"{where}: is a binary file, or text in an encoding other than UTF-8 and UTF-16; write its names "
            "and labels as CSV in UTF-8 (scipy.io.loadmat reads .mat files, pandas.read_excel .xlsx)"
        )
    try:
        text = content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        name = where.rpartition("/")[2]
        raise SourceError(
            f"{where}, line {line}: is neither UTF-8 nor UTF-16 (byte {content[error.start]:#x}); convert "
            f"it, for instance with `iconv -f latin1 -t utf-8 {name} > utf-8-{name}`"
        ) from error
    return text


def list_lines(text: str, where: str, known: Container[str] = ()) -> dict[str, str]:
    """Return the lines that are neither empty nor comments, by their names in messages."""
    # splitlines() would also split at form feeds and the like.
    lines = enumerate(re.split("\r\n|\n|\r", text), 1)
    return {
        f"{where}, line {number}": line if line in known else line.strip()
        for number, line in lines
        if line.strip() and (line[0] != "#" or line in known or re.split(r"[\t,;| ]", line)[0] in known)
    }
