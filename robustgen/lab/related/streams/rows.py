"""The lines of a stream file: JSON, one line for each image."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from robustgen.errors import ArgumentError
from robustgen.files.text_files import parse_json

# json.dumps would create a new encoder for each of millions of rows.
_ENCODER = json.JSONEncoder(ensure_ascii=False)


class StreamRow(NamedTuple):
    """One image of a stream.

    Attributes
    ----------
    key : str
        Key of the source image.
    corruption : str
    severity : float
    label : int
        Class of the image.
    visit : int
        Number of the pass through the corruptions, from 1.
    domain : int
        Number of this corruption and severity among those of the stream, from 0.
    reset : bool
        Whether the model should be reset before this image; written only if true.
    edition : str
        Edition of the stream; written only in the first row, if given.
    """

    key: str
    corruption: str
    severity: float
    label: int
    visit: int = 1
    domain: int = 0
    reset: bool = False
    edition: str = ""


_OPTIONAL = StreamRow._field_defaults.keys()
_NEEDED = tuple(name for name in StreamRow._fields if name not in _OPTIONAL)


def format_row(row: StreamRow) -> str:
    """Return the line of `row`, without a line break."""
    content = row._asdict()
    for name in ("reset", "edition"):
        if not content[name]:
            del content[name]
    return _ENCODER.encode(content)


def read_rows(path: Path) -> Iterator[StreamRow]:
    """Yield the rows of the file at `path`.

    Raises
    ------
    ArgumentError
        The file cannot be read, or a line is not a row; the message names file and line.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield _parse(line, f"{path}, line {number}")
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path}: not UTF-8") from error


def _parse(line: str, place: str) -> StreamRow:
    try:
        content = parse_json(line)
    except ValueError as error:
        raise ArgumentError(f"{place}: not JSON") from error
    if not isinstance(content, dict) or not {*_NEEDED} <= content.keys() <= {*StreamRow._fields}:
        needed, others = ", ".join(_NEEDED), ", ".join(_OPTIONAL)
        raise ArgumentError(f"{place}: must contain {needed}; may contain {others}, and nothing else")
    if wrong := [name for name, value in content.items() if not _is_right(name, value)]:
        raise ArgumentError(f"{place}: {wrong[0]} cannot be {content[wrong[0]]!r}")
    return StreamRow(**content)


def _is_right(name: str, value: Any) -> bool:
    if name in ("key", "corruption", "edition"):
        return isinstance(value, str) and value != ""
    if name == "reset":
        return isinstance(value, bool)
    kinds = (int, float) if name == "severity" else int
    return isinstance(value, kinds) and not isinstance(value, bool)
