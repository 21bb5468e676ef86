"""Search for images below a folder that follows no links out of it."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from robustgen.imaging.decode import EXTENSIONS, reason_of

# A key, and the reason for refusing it, or None.
Found = tuple[str, str | None]

UNREAD = "in an unsupported format"
"""Reason for skipping an image that does not count as a failure."""
_UNREAD_EXTENSIONS = (
    *(".avif", ".heic", ".heif", ".jp2", ".j2k", ".jxl", ".jfif", ".svg", ".psd", ".tga", ".exr", ".hdr"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2"),
)
# Folders that link to each other have exponentially many paths through them.
_MOST_LINKS = 3


class _Folder(NamedTuple):
    """A folder to list: the prefix of its keys, its real path, and the folders whose links lead to it."""

    prefix: str
    real: str
    trail: tuple[str, ...] = ()


def walk(root: Path, deep: bool = True, follow: Sequence[Path] = ()) -> Iterator[Found]:
    """Yield the images below `root`, or only those directly in it, in any order.

    Links are followed if they lead below `root` or below one of the folders in `follow`.
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
    """Yield the content of one folder: folders to enter, and images with a refusal reason or None."""
    try:
        with os.scandir(folder.real) as listed:
            entries = [entry for entry in listed if entry.name.startswith("..") or entry.name[0] != "."]
    except OSError as error:
        yield folder.prefix.rstrip("/"), f"folder cannot be listed: {reason_of(error)}"
        return
    for entry in entries:
        key = folder.prefix + entry.name
        if entry.name.startswith(".."):
            # Not a usual hidden name, and unsafe as an output name.
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
    """Yield the target of a link, like `_look_into`; nothing if it is neither an image nor a folder."""
    try:
        real = Path(os.path.realpath(entry.path, strict=True))
        is_folder, is_file = real.is_dir(), real.is_file()
    except OSError as error:
        # A name without extension may be a class folder.
        if is_image(entry.name) or "." not in entry.name:
            yield f"symlink that cannot be followed: {reason_of(error)}"
        return
    trail = (*folder.trail, folder.real)
    if not is_folder and not is_image(entry.name):
        return
    if not any(real.is_relative_to(place) for place in places):
        yield "symlink that leaves the source (allow its target with --follow-links)"
    elif not is_folder:
        yield None if is_file else "not a regular file"
    elif any(Path(visited).is_relative_to(real) for visited in trail):
        yield "symlink loop"
    elif len(trail) > _MOST_LINKS:
        yield f"more than {_MOST_LINKS} symlinked folders within each other"
    else:
        yield _Folder(f"{folder.prefix}{entry.name}/", str(real), trail)


def describe_unread(names: Sequence[str]) -> str:
    """Describe images in unsupported formats in one line: the count of each suffix, and the first name."""
    counts = Counter(PurePosixPath(name).suffix.lower() for name in names)
    kinds = ", ".join(f"{count} {suffix}" for suffix, count in sorted(counts.items()))
    return f"skipped, {UNREAD}: {kinds} ({names[0]!r}, ...); convert them, for instance to PNG"


def find_by_name(name: str) -> Iterator[Found]:
    """Yield the file `name`, which is not a link, if it is named like an image."""
    if is_image(name):
        yield check_name(name, None)
    elif name.lower().endswith(_UNREAD_EXTENSIONS):
        yield check_name(name, UNREAD)


def check_name(key: str, reason: str | None) -> Found:
    """Return `key` in printable form; refuse it if it was not printable."""
    printable = key.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return printable, reason or (None if printable == key else "file name is not valid UTF-8")


def is_image(name: str) -> bool:
    """Return True if a file name has the suffix of an image."""
    return name.lower().endswith(EXTENSIONS)
