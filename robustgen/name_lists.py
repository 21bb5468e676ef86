"""Lists of a name a line, in which names may hold line breaks: these are escaped as `sha256sum` does it."""

import re
from collections.abc import Iterable

_ESCAPES = {"\\\\": "\\", "\\n": "\n", "\\r": "\r"}


def escape_name(name: str) -> tuple[str, str]:
    """Prefix of the line and name as `sha256sum` writes them, which marks lines whose names it had to escape.

    Carriage returns stay as they are: releases before coreutils 9 do not know them escaped, and all take
    them as they are.
    """
    if "\\" not in name and "\n" not in name:
        return "", name
    return "\\", name.replace("\\", "\\\\").replace("\n", "\\n")


def unescape_name(name: str) -> str:
    """Return the name that is escaped in a line with the prefix."""
    return re.sub(r"\\[\\nr]", lambda escape: _ESCAPES[escape[0]], name)


def join_names(names: Iterable[str]) -> bytes:
    """Return a text of a name a line."""
    lines = ("".join(escape_name(name)) + "\n" for name in names)
    return "".join(lines).encode("utf-8", "surrogateescape")


def split_names(text: bytes) -> list[str]:
    """Return the names in a text of a name a line."""
    # Not splitlines(): names may hold form feeds and the like.
    lines = text.decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        del lines[-1]
    return [unescape_name(line[1:]) if line.startswith("\\") else line for line in lines]


def read_sums(text: bytes) -> dict[str, str]:
    """Return file name to digest, of a text as `sha256sum` writes it."""
    sums = {}
    for line in text.decode("utf-8", "surrogateescape").split("\n"):
        digest, _, name = line.partition("  ")
        if name:
            sums[unescape_name(name) if digest.startswith("\\") else name] = digest.removeprefix("\\")
    return sums
