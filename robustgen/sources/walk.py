"""The images below a folder: listed without leaving it, entered where links stay inside."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from robustgen.imaging.decode import EXTENSIONS, reason_of

# A key, and the reason for refusing it or None.
Found = tuple[str, str | None]

UNREAD = "in a format that is not read here"
"""The reason that passes an image over and does not count as a failure."""
_UNREAD_EXTENSIONS = (
    *(".avif", ".heic", ".heif", ".jp2", ".j2k", ".jxl", ".jfif", ".svg", ".psd", ".tga", ".exr", ".hdr"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2"),
)
# Folders that link to each other crosswise have exponentially many paths through them.
_MOST_LINKS = 3


class _Folder(NamedTuple):
    """A folder to list: what keys in it begin with, its real path, and the folders whose links led there."""

    prefix: str
    real: str
    trail: tuple[str, ...] = ()


def walk(root: Path, deep: bool = True, follow: Sequence[Path] = ()) -> Iterator[Found]:
    """Find the images below `root`, or only those directly in it, in any order.

    Links are followed where they lead below `root` or below one of the folders in `follow`.
    """
    places = tuple(os.path.realpath(place) for place in (root, *follow))
    pending = [_Folder("", places[0])]
    while pending:
        folder = pending.pop()
        for key, found in _look_into(folder, places):
            if not isinstance(found, _Folder):
                yield check_name(key, found)
            elif deep:
                pending.append(found)


def _look_into(folder: _Folder, places: tuple[str, ...]) -> Iterator[tuple[str, _Folder | str | None]]:
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
            yield from ((key, found) for found in _follow(entry, folder, places))
        elif entry.is_dir():
            yield key, _Folder(key + "/", entry.path, folder.trail)
        elif is_image(entry.name):
            yield key, None if entry.is_file() else "not a regular file"
        elif entry.name.lower().endswith(_UNREAD_EXTENSIONS):
            yield key, UNREAD


def _follow(
    entry: os.DirEntry[str], folder: _Folder, places: tuple[str, ...]
) -> Iterator[_Folder | str | None]:
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
    if not any(real.is_relative_to(place) for place in places):
        yield "symlink that leaves the source (--follow-links names places that links may lead to)"
    elif not is_folder:
        yield None if is_file else "not a regular file"
    elif any(Path(visited).is_relative_to(real) for visited in trail):
        yield "symlink loop"
    elif len(trail) > _MOST_LINKS:
        yield f"more than {_MOST_LINKS} symlinked folders within each other"
    else:
        yield _Folder(f"{folder.prefix}{entry.name}/", str(real), trail)


def describe_unread(names: Sequence[str]) -> str:
    """Describe in one line the images in formats that are not read: the number of each, and the first."""
    counts = Counter(PurePosixPath(name).suffix.lower() for name in names)
    kinds = ", ".join(f"{count} {suffix}" for suffix, count in sorted(counts.items()))
    return f"passed over, {UNREAD}: {kinds} ({names[0]!r}, ...); convert them, to PNG for instance"


def find_by_name(name: str) -> Iterator[Found]:
    """Yield a file that is no link, if its name is that of an image."""
    if is_image(name):
        yield check_name(name, None)
    elif name.lower().endswith(_UNREAD_EXTENSIONS):
        yield check_name(name, UNREAD)


def check_name(key: str, reason: str | None) -> Found:
    """Make `key` printable, refusing it where it was not."""
    printable = key.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return printable, reason or (None if printable == key else "file name is not valid UTF-8")


def is_image(name: str) -> bool:
    """Return True if a file of this name is taken for an image."""
    return name.lower().endswith(EXTENSIONS)
