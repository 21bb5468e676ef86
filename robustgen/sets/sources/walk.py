"""Search for images below a folder that follows no links out of it."""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from robustgen.display.text import format_count
from robustgen.pixels.imaging.decode import EXTENSIONS, Complaint, reason_of

# A key, and the reason for refusing it, or None.
Found = tuple[str, str | None]

UNREAD = "in an unsupported format"
"""Reason for skipping an image that does not count as a failure."""
_UNREAD_EXTENSIONS = (
    *(".avif", ".heic", ".heif", ".jp2", ".j2k", ".jxl", ".jfif", ".svg", ".psd", ".tga", ".exr", ".hdr"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2", ".dcm", ".dicom", ".nii", ".nii.gz"),
    *(".jpx", ".jpf", ".j2c", ".jpc", ".pfm", ".pam", ".pcx", ".ico", ".icns", ".sgi", ".ras", ".xbm"),
    *(".qoi", ".dds", ".fits"),
)
# Files without a suffix that are no images.
_NOTES = {
    *("readme", "license", "licence", "copying", "notice", "authors", "version", "changelog", "makefile"),
    *("dockerfile", "sha256sums", "md5sums"),
}
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
    kinds = ", ".join(f"{count} {suffix or 'without a suffix'}" for suffix, count in sorted(counts.items()))
    rename = "; add the suffix of their format to images without one" * ("" in counts)
    convert = "; convert them, for instance to PNG" * any(counts)
    return f"skipped, {UNREAD}: {kinds} ({names[0]!r}, ...){convert}{rename}"


def _has_no_suffix(name: str) -> bool:
    last = name.rpartition("/")[2]
    return "." not in last and last.lower() not in _NOTES


def describe_complaints(complaints: Sequence[Complaint]) -> list[str]:
    """Describe the warnings of decoders in one line: the number of images, and the first one; [] if none."""
    texts = dict(sorted(complaints, reverse=True))
    named = [f"{name!r}: {text}" for name, text in [*texts.items()][-1:]]
    return [f"decoded with warnings: {format_count(len(texts), 'image')} ({each}, ...)" for each in named]


def find_by_name(name: str, refusal: str | None = None) -> Iterator[Found]:
    """Yield the file `name` if it is named like an image, with the reason for refusing it."""
    if is_image(name):
        yield check_name(name, refusal)
    elif not refusal and (name.lower().endswith(_UNREAD_EXTENSIONS) or _has_no_suffix(name)):
        yield check_name(name, UNREAD)


def check_name(key: str, reason: str | None) -> Found:
    """Return `key` in printable form; refuse it if it was not printable."""
    printable = key.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return printable, reason or (None if printable == key else "file name is not valid UTF-8")


def is_image(name: str) -> bool:
    """Return True if a file name has the suffix of an image."""
    return name.lower().endswith(EXTENSIONS)
