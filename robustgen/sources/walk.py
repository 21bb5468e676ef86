"""Search for images below a folder that follows no links out of it."""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

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


def walk(root: Path, folder: str = "", deep: bool = True, follow: Sequence[Path] = ()) -> Iterator[Found]:
    """Yield the images below the `folder` of `root`, or only those directly in it, in any order.

    Links are followed if they lead below `root` or below one of the folders in `follow`.
    """
    places = tuple(os.path.realpath(place) for place in (root, *follow))
    # Prefix of the keys, real path, and the folders whose links lead there.
    pending: list[tuple[str, str, tuple[str, ...]]] = [("", os.path.realpath(root / folder), ())]
    while pending:
        prefix, real, trail = pending.pop()
        try:
            with os.scandir(real) as listed:
                entries = [entry for entry in listed if entry.name[0] != "."]
        except OSError as error:
            yield check_name(prefix.rstrip("/"), f"folder cannot be listed: {reason_of(error)}")
            continue
        for entry in entries:
            key, path, links = prefix + entry.name, entry.path, trail
            if entry.is_symlink():
                path, links = os.path.realpath(path), (*trail, real)
                is_folder, refusal = _follow(entry, path, links, places)
            else:
                is_folder, refusal = entry.is_dir(), None
            if is_folder:
                if refusal:
                    yield check_name(key, refusal)
                elif deep:
                    pending.append((f"{key}/", path, links))
            else:
                yield from find_by_name(key, refusal or (None if entry.is_file() else "not a regular file"))


def _follow(
    entry: os.DirEntry[str], real: str, trail: tuple[str, ...], places: tuple[str, ...]
) -> tuple[bool, str | None]:
    """Return whether a link to `real` leads to a folder, and the reason for refusing the link, if any."""
    try:
        is_folder = stat.S_ISDIR(entry.stat().st_mode)
    except OSError as error:
        # A name without extension may be a class folder.
        return "." not in entry.name, f"symlink that cannot be followed: {reason_of(error)}"
    refusal = None
    if not any(Path(real).is_relative_to(place) for place in places):
        refusal = "symlink that leaves the source (the key follow_links allows its target)"
    elif is_folder and any(Path(visited).is_relative_to(real) for visited in trail):
        refusal = "symlink loop"
    elif is_folder and len(trail) > _MOST_LINKS:
        refusal = f"more than {_MOST_LINKS} symlinked folders within each other"
    return is_folder, refusal


def describe_unread(names: Sequence[str]) -> str:
    """Describe images in unsupported formats in one line: the count of each suffix, and the first name."""
    counts = Counter(PurePosixPath(name).suffix.lower() for name in names)
    kinds = ", ".join(f"{count} {suffix}" for suffix, count in sorted(counts.items()))
    return f"skipped, {UNREAD}: {kinds} ({names[0]!r}, ...); convert them, for instance to PNG"


def find_by_name(name: str, refusal: str | None = None) -> Iterator[Found]:
    """Yield the file `name` if it is named like an image, with the reason for refusing it."""
    if is_image(name):
        yield check_name(name, refusal)
    elif name.lower().endswith(_UNREAD_EXTENSIONS) and not refusal:
        yield check_name(name, UNREAD)


def check_name(key: str, reason: str | None) -> Found:
    """Return `key` in printable form; refuse it if it was not printable."""
    printable = key.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return printable, reason or (None if printable == key else "file name is not valid UTF-8")


def is_image(name: str) -> bool:
    """Return True if a file name has the suffix of an image."""
    return name.lower().endswith(EXTENSIONS)
