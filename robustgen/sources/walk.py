"""The images below a folder: listed without leaving it, entered where links stay inside."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from robustgen.imaging.decode import EXTENSIONS, reason_of

# A key, and the reason for refusing it or None.
Found = tuple[str, str | None]


# Folders that link to each other crosswise have exponentially many paths through them.
_MOST_LINKS = 3


class _Folder(NamedTuple):
    """A folder to list: what keys in it begin with, its real path, and the folders whose links led there."""

    prefix: str
    real: str
    trail: tuple[str, ...] = ()


def walk(root: Path, deep: bool = True) -> Iterator[Found]:
    """Find the images below `root`, or only those directly in it, in any order."""
    top = os.path.realpath(root)
    pending = [_Folder("", top)]
    while pending:
        folder = pending.pop()
        for key, found in _look_into(folder, top):
            if not isinstance(found, _Folder):
                yield _checked(key, found)
            elif deep:
                pending.append(found)


def _look_into(folder: _Folder, top: str) -> Iterator[tuple[str, _Folder | str | None]]:
    """List one folder: folders to enter, and images with the reason for refusing them or None."""
    try:
        with os.scandir(folder.real) as listed:
            entries = [entry for entry in listed if entry.name.startswith("..") or entry.name[0] != "."]
    except OSError as error:
        yield folder.prefix.rstrip("/"), f"folder cannot be listed: {reason_of(error)}"
        return
    for entry in entries:
        key = folder.prefix + entry.name
        if entry.name.startswith(".."):
            # Neither hidden by anyone's habit nor a name to put below another folder.
            yield key, "its name begins with two dots"
        elif entry.is_symlink():
            yield from ((key, found) for found in _follow(entry, folder, top))
        elif entry.is_dir():
            yield key, _Folder(key + "/", entry.path, folder.trail)
        elif is_image(entry.name):
            yield key, None if entry.is_file() else "not a regular file"


def _follow(entry: os.DirEntry[str], folder: _Folder, top: str) -> Iterator[_Folder | str | None]:
    """Yield what a link leads to, as `_look_into` does; nothing if it is no concern of ours."""
    try:
        real = Path(os.path.realpath(entry.path, strict=True))
        is_folder, is_file = real.is_dir(), real.is_file()
    except OSError as error:
        # A name without extension may be that of a class folder.
        if is_image(entry.name) or "." not in entry.name:
            yield f"symlink that cannot be followed: {reason_of(error)}"
        return
    trail = (*folder.trail, folder.real)
    if not is_folder and not is_image(entry.name):
        return
    if not real.is_relative_to(top):
        yield "symlink that leaves the source"
    elif not is_folder:
        yield None if is_file else "not a regular file"
    elif any(Path(visited).is_relative_to(real) for visited in trail):
        yield "symlink loop"
    elif len(trail) > _MOST_LINKS:
        yield f"more than {_MOST_LINKS} symlinked folders within each other"
    else:
        yield _Folder(f"{folder.prefix}{entry.name}/", str(real), trail)


def _checked(key: str, reason: str | None) -> Found:
    """Make `key` printable, refusing it where it was not."""
    printable = key.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return printable, reason or (None if printable == key else "file name is not valid UTF-8")


def is_image(name: str) -> bool:
    """Whether a file of this name is taken for an image."""
    return name.lower().endswith(EXTENSIONS)
