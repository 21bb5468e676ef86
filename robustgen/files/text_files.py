"""Text files of unknown origin: JSON, read with limits on its size and depth, and lists of names."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from robustgen.files.storage.host import read_regular

# --- JSON ------------------------------------------------------------------------------------------

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


# --- lists with one name per line, in which names with line breaks are escaped as in `sha256sum` ---

_ESCAPES = {"\\\\": "\\", "\\n": "\n", "\\r": "\r"}


def escape_name(name: str) -> tuple[str, str]:
    """Return prefix and name as `sha256sum` writes them; the prefix marks lines with escaped names.

    Carriage returns are not escaped: releases before coreutils 9 cannot read them escaped, and all releases
    read them unescaped.
    """
    if "\\" not in name and "\n" not in name:
        return "", name
    return "\\", name.replace("\\", "\\\\").replace("\n", "\\n")


def unescape_name(name: str) -> str:
    """Return the unescaped name of a line with the prefix."""
    return re.sub(r"\\[\\nr]", lambda escape: _ESCAPES[escape[0]], name)


def join_names(names: Iterable[str]) -> bytes:
    """Return a text with one name per line."""
    lines = ("".join(escape_name(name)) + "\n" for name in names)
    return "".join(lines).encode("utf-8", "surrogateescape")


def split_names(text: bytes) -> list[str]:
    """Return the names in a text with one name per line."""
    # Not splitlines(): names may contain form feeds and the like.
    lines = text.decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        del lines[-1]
    return [unescape_name(line[1:]) if line.startswith("\\") else line for line in lines]


def read_sums(text: bytes) -> dict[str, str]:
    """Return file name to digest, from a text in the format of `sha256sum`."""
    sums = {}
    for line in text.decode("utf-8", "surrogateescape").split("\n"):
        digest, _, name = line.partition("  ")
        if name:
            sums[unescape_name(name) if digest.startswith("\\") else name] = digest.removeprefix("\\")
    return sums


def describe_difference(own: Sequence[str], others: Sequence[str], what: str) -> str:
    """Describe in a few words how the keys `own` differ from `others`."""
    missing, more = sorted(set(others) - set(own)), sorted(set(own) - set(others))
    parts = []
    if missing:
        parts.append(f"{len(missing)} of {len(others)} {what} are missing, for instance {missing[0]!r}")
    if more:
        parts.append(f"{len(more)} {what} too many, for instance {more[0]!r}")
    return " and ".join(parts) or f"the {what} are in another order"


_IMAGENET: Final = Path(__file__).with_name("imagenet_classes.txt")


def imagenet_classes() -> list[str]:
    """Return the 1000 WordNet ids of ImageNet, in the order of nearly all published models."""
    return _IMAGENET.read_text(encoding="ascii").split()
