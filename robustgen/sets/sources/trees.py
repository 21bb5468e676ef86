"""Trees of files, in a folder or in an archive that is read in place."""

import io
import os
import stat
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, ClassVar, Final

from robustgen.display.text import format_count
from robustgen.errors import SourceError
from robustgen.files.containers import archives
from robustgen.files.lazy import cached_property
from robustgen.files.storage.base import Entry
from robustgen.pixels.imaging.decode import EXTENSIONS, Complaint, Location, reason_of
from robustgen.sets.sources.base import DEFAULTS, Cache, Reusable, SourceOptions, name_source_in_errors
from robustgen.sets.sources.files import Index, SourceListing
from robustgen.sets.sources.places import ARCHIVES, VIDEOS, Place, explain_foreign, find_place

# A key, and the reason for refusing it, or None.
Found = tuple[str, str | None]
# Yields a file name with the reason for refusing it, if it is to be found.
Finder = Callable[[str, str | None], Iterator[Found]]

UNREAD = "in an unsupported format"
"""Reason for skipping an image or a video, which does not count as a failure."""
UNREAD_EXTENSIONS = (
    *(".avif", ".heic", ".heif", ".jp2", ".j2k", ".jxl", ".jfif", ".svg", ".psd", ".tga", ".exr", ".hdr"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2", ".dcm", ".dicom", ".nii", ".nii.gz"),
    *(".jpx", ".jpf", ".j2c", ".jpc", ".pfm", ".pam", ".pcx", ".ico", ".icns", ".sgi", ".ras", ".xbm"),
    *(".qoi", ".dds", ".fits"),
)
"""Suffixes of images in unsupported formats."""
UNREAD_VIDEOS = (
    *(".mxf", ".divx", ".rm", ".rmvb", ".dv", ".ogm", ".swf", ".wtv", ".y4m", ".yuv", ".ivf", ".nut", ".m2v"),
    *(".h264", ".264", ".h265", ".265", ".hevc", ".mjpeg", ".gifv", ".braw", ".r3d"),
)
"""Suffixes of videos in unsupported formats."""
# Files without a suffix that are no images.
_NOTES = {
    *("readme", "license", "licence", "copying", "notice", "authors", "version", "changelog", "makefile"),
    *("dockerfile", "sha256sums", "md5sums"),
}
# Folders that link to each other have exponentially many paths through them.
_MOST_LINKS = 3


def walk(root: Path, folder: str, deep: bool, follow: Sequence[Path], find: "Finder") -> Iterator[Found]:
    """Yield the images below the `folder` of `root`, or only those directly in it, in any order.

    Links are followed if they lead below `root` or below one of the folders in `follow`. `find` recognises
    images by their names.
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
                yield from find(key, refusal or (None if entry.is_file() else "not a regular file"))


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


def describe_unread(names: Iterable[str]) -> list[str]:
    """Describe videos, and images in unsupported formats, in one line each: counts and the first name."""
    videos, images = list[str](), list[str]()
    for name in sorted(names):
        (videos if is_video(name) else images).append(name)
    lines = list[str]()
    if images:
        suffixes = {PurePosixPath(name).suffix for name in images}
        rename = "; add the suffix of their format to images without one" * ("" in suffixes)
        known = "PNG" if suffixes.isdisjoint(UNREAD_VIDEOS) else "MP4 or PNG"
        convert = f"; convert them, for instance to {known}" * any(suffixes)
        lines.append(f"skipped, {UNREAD}: {_count_suffixes(images)}{convert}{rename}")
    if videos:
        lines.append(f"skipped, videos: {_count_suffixes(videos)}; make-c --dataset clips reads them")
    return lines


def _count_suffixes(names: Sequence[str]) -> str:
    counts = Counter(PurePosixPath(name).suffix.lower() for name in names)
    counted = ", ".join(f"{count} {suffix or 'without a suffix'}" for suffix, count in sorted(counts.items()))
    return f"{counted} ({names[0]!r}, ...)"


def describe_complaints(complaints: Sequence[Complaint], noun: str) -> list[str]:
    """Describe the warnings of decoders in one line: the number of items, and the first one; [] if none."""
    texts = dict(sorted(complaints, reverse=True))
    named = [f"{name!r}: {text}" for name, text in [*texts.items()][-1:]]
    return [f"decoded with warnings: {format_count(len(texts), noun)} ({each}, ...)" for each in named]


def find_by_name(name: str, refusal: str | None = None) -> Iterator[Found]:
    """Yield the file `name` if it is named like an image or a video, with the reason for refusing it."""
    last = name.rpartition("/")[2].lower()
    if is_image(name):
        yield check_name(name, refusal)
    elif not refusal and (is_unread(name) or not ("." in last or last in _NOTES)):
        yield check_name(name, UNREAD)


def check_name(key: str, reason: str | None) -> Found:
    """Return `key` in printable form; refuse it if it was not printable."""
    printable = key.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return printable, reason or (None if printable == key else "file name is not valid UTF-8")


def is_image(name: str) -> bool:
    """Return True if a file name has the suffix of an image."""
    return name.lower().endswith(EXTENSIONS)


def is_video(name: str) -> bool:
    """Return True if a file name has the suffix of a video."""
    return name.lower().endswith(VIDEOS)


def without_video_suffix(key: str) -> str:
    """Return the key of a clip without the suffix of a video."""
    return key.rpartition(".")[0] if is_video(key) else key


def is_unread(name: str) -> bool:
    """Return True if a file name has the suffix of a video, or of an image that cannot be read."""
    return name.lower().endswith(UNREAD_EXTENSIONS) or is_video(name)


# --- folders and archives ------------------------------------------------------------------------


# No image is larger; larger sizes in headers are refused.
_MOST_MEMBER_BYTES: Final = 1 << 29


class FolderTree(Reusable):
    """Files below a folder, under POSIX names.

    Parameters
    ----------
    place : Place
    options : SourceOptions
        `follow` names folders outside the folder to which links may lead.
    """

    def __init__(self, place: Place, options: SourceOptions = DEFAULTS, find: Finder = find_by_name) -> None:
        self.location: str = place.location
        self._store, self._find = place.folder, find
        self._follow = tuple(map(Path, options.follow))

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        """Return all files of a remote folder, from one listing."""
        with name_source_in_errors(self.location):
            return {entry.path: entry for entry in self._store.list()}

    def find(self, prefix: str = "", deep: bool = True) -> Iterator[Found]:
        """Find the images whose names begin with `prefix`, which is "" or ends in a slash.

        Links are followed if they stay inside the folder or lead to a folder in `options.follow`.

        Parameters
        ----------
        prefix : str
        deep : bool
            Whether to find the images in folders below `prefix`.

        Yields
        ------
        str
            Name of an image, without the prefix.
        str or None
            Reason for refusing it.
        """
        if self._store.is_local:
            yield from walk(Path(self.location), prefix, deep, self._follow, self._find)
            return
        for name in self._entries:
            own = name.removeprefix(prefix)
            is_hidden = any(part.startswith(".") for part in name.split("/"))
            if name.startswith(prefix) and (deep or "/" not in own) and not is_hidden:
                yield from self._find(own, None)

    def read(self, name: str) -> bytes:
        """Read a file; raise an OSError, ValueError or LookupError if it cannot be read."""
        return self._store.read(name)

    def stat(self, name: str) -> tuple[int, str]:
        """Return size in bytes and stamp of a file."""
        entry = vars(self).get("_entries", {}).get(name) or self._store.stat(name)
        return entry.size, entry.stamp

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return self._store.open(name)

    def has(self, name: str) -> bool:
        """Return True if there is a file called `name`."""
        return self._store.exists(name) if self._store.is_local else name in self._entries

    def make_ready(self) -> None:
        """Do nothing: worker processes need no listing."""


class ArchiveTree(Index):
    """Files in an archive, with the interface of `FolderTree`."""

    suffixes: ClassVar[tuple[str, ...]] = ARCHIVES

    def __init__(self, location: str, cache: Cache = None, find: Finder = find_by_name) -> None:
        super().__init__(location, cache)
        self._find = find

    def build(self) -> SourceListing:
        """List the archive."""
        return list_archive(self, 0)

    def find(self, prefix: str = "", deep: bool = True) -> Iterator[Found]:
        """Find the images; if the archive is damaged, it is among the refused files."""
        for name in self.listing.places:
            own = name.removeprefix(prefix)
            if name.startswith(prefix) and (deep or "/" not in own):
                yield from self._find(own, None)
        for name, reason in self.listing.refused.items():
            if name == self.files[0].name or name.startswith(prefix):
                yield check_name(name.removeprefix(prefix), reason)

    def read(self, name: str) -> bytes:
        """Read a file."""
        return read_member(self, self.listing.places[name])

    def stat(self, name: str) -> tuple[int, str]:
        """Return the size of a file in bytes, and the stamp of the archive."""
        return int(self.listing.places[name][-1]), self.files[0].stamp

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return io.BytesIO(self.read(name))

    def has(self, name: str) -> bool:
        """Return True if there is a file called `name`."""
        return name in self.listing.places


FileTree = FolderTree | ArchiveTree


def open_tree(
    location: Location | Place | FileTree, options: SourceOptions = DEFAULTS, find: Finder = find_by_name
) -> FileTree:
    """Open a folder or an archive whose files `find` recognises, unless it is open.

    Raises
    ------
    SourceError
        It is neither.
    """
    if isinstance(location, (FolderTree, ArchiveTree)):
        return location
    place = find_place(location)
    if place.has_suffix(*ARCHIVES) and not place.is_folder:
        return ArchiveTree(place.location, options.cache, find)
    if place.store.is_local and not place.is_folder:
        known = f"neither a folder, an image nor an archive ({', '.join(ARCHIVES)})"
        unread = describe_unread([place.name]) if is_unread(place.name) else [known]
        raise SourceError(f"{place.location}: {explain_foreign(place) or unread[0]}")
    return FolderTree(place, options, find)


# --- listing -------------------------------------------------------------------------------------


def list_archive(index: Index, number: int) -> SourceListing:
    """List the files of one archive; unpack a compressed tar first.

    Raises
    ------
    OSError, ValueError
        The file cannot be read, or is not an archive.
    """
    listing = SourceListing()
    store, name = index.locate(number)
    with store.open(name) as content:
        if name.lower().endswith(".zip"):
            for raw_name, member in archives.list_members(content):
                _add_member(listing, raw_name, member if isinstance(member, str) else (number, *member))
            return listing
        last, size = "the beginning", store.stat(name).size
        try:
            for entry in archives.iterate_members(content):
                last = repr(entry.name)
                if entry.isdir():
                    continue
                found: tuple[int, ...] | str = (number, *archives.locate_member(content, entry))
                if not entry.isreg() or entry.issparse():
                    found = "a link" if entry.issym() or entry.islnk() else "not a regular file"
                elif entry.offset_data + entry.size > size:
                    found = "the archive ends within it"
                _add_member(listing, entry.name, found)
        except tarfile.TarError as error:
            listing.refused[index.files[number].name] = f"damaged after {last}: {error}"
    return listing


def _add_member(listing: SourceListing, raw_name: str, found: Any) -> None:
    """Add a member, or the reason for refusing it; skip hidden ones."""
    parts = [part for part in raw_name.split("/") if part not in ("", ".")]
    if not parts or any(part[0] == "." and part != ".." for part in parts):
        return
    name, refusal = "/".join(parts), found if isinstance(found, str) else None
    if raw_name.startswith("/") or "\0" in raw_name or ".." in parts:
        refusal = "its name is absolute, or contains .. or a zero byte"
    elif not refusal and (size := max(found[2], found[-1])) > _MOST_MEMBER_BYTES:
        refusal = f"too large for an image: {size} bytes"
    listing.add(name, found, refusal)
    if not (is_image(name) or is_video(name)):
        listing.refused.pop(name, None)


def read_member(index: Index, place: Any) -> bytes:
    """Read a file of an archive; `place` is the number of the archive, and a `TarMember` or `ZipMember`."""
    number, *member = place
    read = partial(index.read_part, number)
    if index.files[number].name.lower().endswith(".zip"):
        return archives.read_zip_member(read, archives.ZipMember(*member))
    return archives.read_tar_member(read, archives.TarMember(*member))
