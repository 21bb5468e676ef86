"""Files of questions and answers: plain tables, and those that VLMEvalKit and lmms-eval write."""

import csv
import glob
import hashlib
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import BadZipFile

from robustgen.errors import ArgumentError, RobustgenError, SourceError, explain_import
from robustgen.files.containers.tables import JsonLines, ParquetTable, Rows, TabSeparated
from robustgen.files.text_files import read_json
from robustgen.lab.scores.answer_rules import MATCHES, list_values, score_answer
from robustgen.settings.scoring import AnswerScoring

Row = Mapping[str, Any]
# Errors that reading a damaged table raises.
_DAMAGE: Final = (
    *(OSError, ValueError, KeyError, TypeError, SyntaxError, EOFError, RecursionError),
    *(csv.Error, BadZipFile, zlib.error),
)

# --- rows of tables -------------------------------------------------------------------------------

_CHUNKED: Final = {each.suffix: each for each in (TabSeparated, JsonLines, ParquetTable)}
_MOST_JSON: Final = 1 << 28


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a table.

    Raises
    ------
    MissingDependencyError
        It needs a package that is not installed.
    SourceError
        It has an unknown suffix, or is damaged.
    """
    suffix = path.suffix.lower()
    try:
        if suffix in _CHUNKED:
            yield from _read_chunks(path, suffix)
        elif suffix in _WHOLE:
            yield from _WHOLE[suffix](path)
        else:
            known = ", ".join([*_CHUNKED, *_WHOLE])
            raise SourceError(f"{path}: convert it to a table that is read: {known}")
    except RobustgenError:
        raise
    except _DAMAGE as error:
        hint = ": save it as UTF-8" * isinstance(error, UnicodeDecodeError)
        raise SourceError(f"{path}: cannot be read as {suffix[1:]} ({error}){hint}") from error


def _read_chunks(path: Path, suffix: str) -> Iterator[Row]:
    with path.open("rb") as file:
        for chunk in _CHUNKED[suffix]().read(file):
            yield from (
                (row.cells for row in chunk.rows) if isinstance(chunk, Rows) else chunk.table.to_pylist()
            )


def _read_csv(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        # Spreadsheets of some languages write semicolons.
        separator = max(",;\t", key=file.readline().count)
        file.seek(0)
        yield from _name_cells(csv.reader(file, delimiter=separator, strict=True))


def _read_excel(path: Path) -> Iterator[Row]:
    with explain_import(f"{path}: Excel files need openpyxl", "answers"):
        from openpyxl import load_workbook
    sheet = load_workbook(path, read_only=True, data_only=True).worksheets[0]
    yield from _name_cells(sheet.iter_rows(values_only=True))


def _name_cells(lines: Iterable[Sequence[Any]]) -> Iterator[Row]:
    """Yield the rows below a header; those of Excel may end at their last cell."""
    heads, *rows = ([*line] for line in lines)
    names = [str(head or "") for head in heads]
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise ValueError(f"column {twice!r} occurs twice in the header")
    for row in rows:
        if len(row) > len(names):
            raise ValueError(f"a row has {len(row)} cells, the header {len(names)}")
        if any(cell not in ("", None) for cell in row):
            yield dict(zip(names, row + [None] * (len(names) - len(row)), strict=True))


def _read_json(path: Path) -> Iterator[Row]:
    rows = read_json(path, _MOST_JSON)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("it contains no list of objects")
    yield from rows


_WHOLE: Final = {".csv": _read_csv, ".xlsx": _read_excel, ".json": _read_json}

# --- questions and answers ------------------------------------------------------------------------

_KEYS: Final = ("index", "doc_id", "question_id", "question")
_PICTURES: Final = ("image", "image_path", "input_media")
_ANSWERS: Final = ("parsed_pred", "prediction", "filtered_resps")
_RIGHT: Final = ("answer", "target")
# What lmms-eval stores beside its metrics.
_LMMS_EVAL: Final = {"doc_id", "target", "filtered_resps", "resps", "token_counts", "input", "input_media"}
# VLMEvalKit's rules for the matches of open questions, by a part of the name of the set.
_SETS: Final = {
    **dict.fromkeys(("ChartQA", "OCRVQA"), "max"),
    **dict.fromkeys(("DocVQA", "InfoVQA"), "distance"),
    **dict.fromkeys(("TextVQA", "GQA"), "mean"),
}
# A question that is asked again with its choices in another order has a larger index.
_CIRCLE: Final = 1_000_000
_DIGITS: Final = 16
# Characters of a cell that is no picture, and the beginning of the name of one that is.
_REFERENCE: Final = 64
_DIGEST: Final = "sha256:"


class AskedRow(NamedTuple):
    """A row of a table.

    Attributes
    ----------
    question : str
        Key of the question: that of its first row, if it is asked in circles.
    score : float or None
        Score of the answer, from 0 to 1; None if it has none.
    right : tuple of str
        Name and content of the column of right answers; empty if there is none.
    picture, category : str
        Empty if unknown.
    """

    question: str
    score: float | None
    right: tuple[str, ...]
    picture: str
    category: str


class AskedTable(NamedTuple):
    """A table of questions, perhaps with scores of answers.

    Attributes
    ----------
    path, key : str
        Its place, and the column of questions.
    rows : dict of str to AskedRow
        The rows by their keys.
    repeated, unread : list of str
        Keys of rows that are there twice, and of answers that name no choice, which count as wrong.
    """

    path: str
    key: str
    rows: dict[str, AskedRow]
    repeated: list[str]
    unread: list[str]


def read_questions(place: str, key: str, options: AnswerScoring) -> AskedTable:
    """Read the table that was asked, which may be several files, by the column of questions of its answers.

    Raises
    ------
    RobustgenError
        The table cannot be read, lacks a column, or contains a row twice; the message names it.
    """
    paths = sorted(glob.glob(place)) or [place]  # noqa: PTH207 (the pattern may be absolute)
    rows = [_flatten(row, options) for path in paths for row in read_rows(Path(path))]
    if key == "doc_id" and rows and key not in rows[0]:
        # lmms-eval numbers the rows.
        rows = [{**row, key: number} for number, row in enumerate(rows)]
    return _collect(place, rows, options, key)


def read_answers(path: Path, options: AnswerScoring) -> AskedTable:
    """Read a table of answers; raises errors as `read_questions` does."""
    rows = [_flatten(row, options) for row in read_rows(path)]
    columns = _list_columns(rows)
    key = options.key or _first(_KEYS, columns) or ""
    return _collect(str(path), rows, options, key, _choose_score(path, columns, rows, options))


def _collect(
    place: str, rows: Sequence[Row], options: AnswerScoring, key: str, how: tuple[str, str] | None = None
) -> AskedTable:
    columns = _list_columns(rows)
    for name, flag in ((key, "key"), (options.picture, "picture"), (options.category, "category")):
        is_needed = flag == "key" or (name and not (how and options.questions))
        if is_needed and name not in columns:
            raise SourceError(
                f"{place}: name the column of each --{flag}: it has {', '.join(columns) or 'no rows'}"
            )
    right, picture = _first(_RIGHT, columns), options.picture or _first(_PICTURES, columns)
    keys = [_plain(row[key]) for row in rows]
    found, repeated, unread = dict[str, AskedRow](), list[str](), list[str]()
    for each, row, question in zip(keys, rows, _find_circles(keys, rows, columns), strict=True):
        try:
            score, is_read = _score(row, *how) if how else (None, True)
        except (ArgumentError, TypeError, ValueError) as error:
            raise SourceError(f"{place}: question {each}: {error}") from error
        own = (right, _unify(row[right])) if right else ()
        category = _plain(row.get(options.category or ""))
        made = AskedRow(question, score, own, str(row.get(picture or "", "")), category)
        if found.get(each, made) != made:
            raise SourceError(
                f"{place}: question {each} has two different rows: keep one, or name another --key"
            )
        repeated += [each] * (each in found)
        unread += [each] * (not is_read)
        found[each] = made
    return AskedTable(place, key, _follow(found), repeated, unread)


def _list_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns that all rows have."""
    return [name for name in rows[0] if all(name in row for row in rows)] if rows else []


def _flatten(row: Row, options: AnswerScoring) -> Row:
    """Return a row with the entries of its metric as columns, if it is a dictionary, and a short picture."""
    metrics = _list_metrics(row, [*row])
    name = options.score or (metrics[0] if len(metrics) == 1 else "")
    own = row.get(name)
    flat = {**own, **row} if isinstance(own, dict) else dict(row)
    if picture := options.picture or _first(_PICTURES, [*flat]):
        flat[picture] = _name_picture(flat.get(picture))
    return flat


def _list_metrics(row: Row, columns: Sequence[str]) -> list[str]:
    """Return the columns of lmms-eval that are numbers, or from which scores can be made."""
    if "doc_id" not in columns:
        return []
    return [
        name
        for name in columns
        if name not in _LMMS_EVAL
        and (
            isinstance(each := row[name], (int, float))
            or (isinstance(each, dict) and {"score", *_ANSWERS} & {*each})
        )
    ]


def _first(names: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((name for name in names if name in columns), None)


def _plain(value: object) -> str:
    """Return a cell as text, in which whole numbers look alike in all formats."""
    text = "" if value is None else str(value).strip()
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", text) else "" if text == "nan" else text


def _unify(value: object) -> str:
    """Return a right answer as it looks after pandas, which reads columns of numbers, has written it."""
    text = _plain(value)
    try:
        return repr(float(text))
    except ValueError:
        return text.casefold()


def _name_picture(cell: object) -> str:
    """Return a path or a reference to another row as it is, and a picture by its digest."""
    text = _plain(cell)
    if len(text) <= _REFERENCE:
        return text
    return _DIGEST + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _follow(rows: dict[str, AskedRow]) -> dict[str, AskedRow]:
    """Return the rows with the pictures of the rows that they refer to instead, as in VLMEvalKit's tables."""

    def find(row: AskedRow) -> str:
        other = rows.get(row.picture)
        return other.picture if other and other.picture.startswith(_DIGEST) else row.picture

    return {key: row._replace(picture=find(row)) for key, row in rows.items()}


def _find_circles(keys: Sequence[str], rows: Sequence[Row], columns: Sequence[str]) -> Sequence[str]:
    """Return the question of each row: its first row, if it is asked several times, as MMBench does."""
    if "g_index" in columns:
        groups = [_plain(row["g_index"]) for row in rows]
        # The last of a key that is there several times stays in a dictionary.
        firsts = dict(zip(reversed(groups), reversed(keys), strict=True))
        return [firsts[group] for group in groups]
    names = [_plain(row["index"]) for row in rows] if "index" in columns else keys
    if not all(name.isdecimal() and len(name) < _DIGITS for name in names):
        return keys
    places = dict(zip(names, keys, strict=True))
    found = [places.get(str(int(name) % _CIRCLE)) for name in names]
    return keys if None in found else [first or "" for first in found]


def _choose_score(
    path: Path, columns: Sequence[str], rows: Sequence[Row], options: AnswerScoring
) -> tuple[str, str]:
    """Return the column of scores and "", or that of answers, or of matches, and the rule for these."""
    metrics, wanted = _list_metrics(rows[0], columns) if rows else [], options.score
    listed, matches = f"it has {', '.join(metrics or columns)}", options.rule in MATCHES
    if options.rule and not matches:
        answer = _first(_ANSWERS, columns)
        if not answer or not _first(_RIGHT, columns):
            raise SourceError(f"{path}: --rule needs the columns prediction and answer: {listed}")
        return answer, options.rule
    if (matches and "eval_match" not in columns) or (wanted and wanted not in columns):
        raise SourceError(f"{path}: has no column {wanted or 'eval_match'}: {listed}")
    if "eval_match" in columns and not wanted and "hit" not in columns:
        rules = {options.rule} if options.rule else {r for name, r in _SETS.items() if name in path.name}
        if len(rules) != 1:
            raise SourceError(f"{path}: give the rule of its set: --rule mean, max or distance")
        return "eval_match", rules.pop() or ""
    for name in (wanted, "hit", "score", *metrics * (len(metrics) == 1)):
        if name and name in columns and not isinstance(rows[0][name], dict):
            return name, ""
    raise SourceError(f"{path}: name the --score, or the --rule for prediction and answer: {listed}")


def _score(row: Row, column: str, rule: str) -> tuple[float | None, bool]:
    """Return the score of a row, None if it has none, and whether a choice could be read."""
    cell = row[column]
    if rule and rule not in MATCHES:
        options = {
            name: _plain(row[name]) for name in row if len(name) == 1 and name.isupper() and _plain(row[name])
        }
        found = score_answer(rule, cell, row[_first(_RIGHT, [*row]) or ""], options)
        return found or 0.0, found is not None
    if rule:
        value = MATCHES[rule]([float(each) for each in list_values(cell)])
    else:
        text = _plain(cell)
        value = {"True": 1.0, "False": 0.0}[text] if text in ("True", "False") else float(text or "nan")
    if not (math.isnan(value) or 0 <= value <= 1):
        raise ArgumentError(f"score {cell!r} is not from 0 to 1; divide such scores by their maximum")
    return (None if math.isnan(value) else value), True
