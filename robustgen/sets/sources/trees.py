"""Trees of files, in a folder or in an archive that is read in place."""

import tarfile
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from robustgen.errors import SourceError
from robustgen.files.containers import archives
from robustgen.pixels.imaging.decode import Location
from robustgen.sets.sources.base import DEFAULTS, Options, Reusable, name_source_in_errors
from robustgen.sets.sources.foreign import explain_foreign
from robustgen.sets.sources.index import Index, SourceListing
from robustgen.sets.sources.places import ARCHIVES, Place, find_place
from robustgen.sets.sources.walk import Found, check_name, find_by_name, is_image, walk

# No image is larger; larger sizes in headers are refused.
_MOST_MEMBER_BYTES: Final = 1 << 29


class FolderTree(Reusable):
    """Files below a folder, under POSIX names.

    Parameters
    ----------
    place : Place
    options : Options
        `follow` names folders outside the folder to which links may lead.
    """

    def __init__(self, place: Place, options: Options = DEFAULTS) -> None:
        self.location, self._store = place.location, place.folder
        self._follow = tuple(map(Path, options.follow))

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """Return the sizes of all files of a remote folder, from one listing."""
        with name_source_in_errors(self.location):
            return {entry.path: entry.size for entry in self._store.list()}

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
            yield from walk(Path(self.location), prefix, deep, self._follow)
            return
        for name in self._sizes:
            own = name.removeprefix(prefix)
            is_hidden = any(part.startswith(".") for part in name.split("/"))
            if name.startswith(prefix) and (deep or "/" not in own) and not is_hidden:
                yield from find_by_name(own)

    def read(self, name: str) -> bytes:
        """Read a file; raise an OSError, ValueError or LookupError if it cannot be read."""
        return self._store.read(name)

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return vars(self).get("_sizes", {}).get(name) or self._store.stat(name).size

    def has(self, name: str) -> bool:
        """Return True if there is a file called `name`."""
        return self._store.exists(name) if self._store.is_local else name in self._sizes

    def make_ready(self) -> None:
        """Do nothing: worker processes need no listing."""


class ArchiveTree(Index):
    """Files in an archive, with the interface of `FolderTree`."""

    suffixes = ARCHIVES

    def build(self) -> SourceListing:
        """List the archive."""
        return list_archive(self, 0)

    def find(self, prefix: str = "", deep: bool = True) -> Iterator[Found]:
        """Find the images; if the archive is damaged, it is among the refused files."""
        for name in self.listing.places:
            own = name.removeprefix(prefix)
            if name.startswith(prefix) and (deep or "/" not in own):
                yield from find_by_name(own)
        for name, reason in self.listing.refused.items():
            if name == self.files[0].name or name.startswith(prefix):
                yield check_name(name.removeprefix(prefix), reason)

    def read(self, name: str) -> bytes:
        """Read a file."""
        return read_member(self, self.listing.places[name])

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return int(self.listing.places[name][-1])

    def has(self, name: str) -> bool:
        """Return True if there is a file called `name`."""
        return name in self.listing.places


FileTree = FolderTree | ArchiveTree


def open_tree(location: Location | Place, options: Options = DEFAULTS) -> FileTree:
    """Open a folder or an archive; raise a SourceError if it is neither."""
    place = find_place(location)
    if place.has_suffix(*ARCHIVES) and not place.is_folder:
        return ArchiveTree(place.location, options.cache)
    if place.store.is_local and not place.is_folder:
        known = f"neither a folder, an image nor an archive ({', '.join(ARCHIVES)})"
        raise SourceError(f"{place.location}: {explain_foreign(place) or known}")
    return FolderTree(place, options)


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
                _add(listing, raw_name, member if isinstance(member, str) else (number, *member))
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
                _add(listing, entry.name, found)
        except tarfile.TarError as error:
            listing.refused[index.files[number].name] = f"damaged after {last}: {error}"
    return listing


def _add(listing: SourceListing, raw_name: str, found: Any) -> None:
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
    if not is_image(name):
        listing.refused.pop(name, None)


def read_member(index: Index, place: Any) -> bytes:
    """Read a file of an archive; `place` is the number of the archive, and a `TarMember` or `ZipMember`."""
    number, *member = place
    read = partial(index.read_part, number)
    if index.files[number].name.lower().endswith(".zip"):
        return archives.read_zip_member(read, archives.ZipMember(*member))
    return archives.read_tar_member(read, archives.TarMember(*member))
