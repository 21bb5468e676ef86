"""The lines of a stream file: JSON, one line for each image."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

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
    optional = StreamRow._field_defaults
    needed = [name for name in StreamRow._fields if name not in optional]
    if not isinstance(content, dict) or not {*needed} <= content.keys() <= {*StreamRow._fields}:
        more = ", ".join(optional)
        raise ArgumentError(
            f"{place}: must contain {', '.join(needed)}; may contain {more}, and nothing else"
        )
    if wrong := [name for name, value in content.items() if not _CHECKS[name](value)]:
        raise ArgumentError(f"{place}: {wrong[0]} cannot be {content[wrong[0]]!r}")
    return StreamRow(**content)


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("key", "corruption", "edition"), lambda value: isinstance(value, str) and value != ""),
    **dict.fromkeys(("label", "visit", "domain"), lambda value: type(value) is int),
    "reset": lambda value: isinstance(value, bool),
    "severity": lambda value: type(value) in (int, float),
}
