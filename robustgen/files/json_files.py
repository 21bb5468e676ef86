"""JSON from unknown origin, read with limits on its size and depth."""

import json
import re
from pathlib import Path
from typing import Any, Final

from robustgen.files.storage.host import read_regular

MOST_BYTES: Final = 1 << 24
"""Limit in bytes: a decoded document takes up to fifty times its size; robustgen's files are far smaller."""

MOST_DEPTH: Final = 100
"""Limit of nesting: Python's own parser raises RecursionError at about a thousand."""

# Strings may contain brackets; unfinished strings are left to the parser.
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def parse_json(text: str | bytes, most: int = MOST_BYTES) -> Any:
    """Return the value of a JSON document.

    Parameters
    ----------
    text : str or bytes
        Bytes are UTF-8, with or without a byte order mark.
    most : int
        Largest number of bytes or characters.

    Raises
    ------
    ValueError
        The document is not JSON, longer than `most`, or nested more than `MOST_DEPTH` deep. The message is
        one line.
    """
    if len(text) > most:
        raise ValueError(f"JSON of {len(text)} bytes, more than {most}")
    decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
    if decoded.count("[") + decoded.count("{") > MOST_DEPTH:
        _check_depth(decoded)
    return json.loads(decoded)


def parse_object(text: str | bytes, most: int = MOST_BYTES) -> dict[str, Any]:
    """Return the object of a JSON document.

    Raises
    ------
    ValueError
        As in `parse_json`, or the document is not an object.
    """
    content = parse_json(text, most)
    if not isinstance(content, dict):
        raise ValueError("it contains no object")
    return content


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    """Return the value of the JSON document in the regular file at `path`.

    Raises
    ------
    OSError
        The file cannot be read, is not a regular file, or has more than `most` bytes.
    ValueError
        As in `parse_json`.
    """
    return parse_json(read_regular(path, most), most)


def _check_depth(text: str) -> None:
    depth = 0
    for token in _TOKENS.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise ValueError(f"JSON is nested more than {MOST_DEPTH} deep")
        elif first != '"':
            depth -= 1
