"""Trees of files, in a folder or in an archive that is read in place."""

import posixpath
import tarfile
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from robustgen.containers import tar, zipped
from robustgen.errors import SourceError, explain_no_folder
from robustgen.imaging.decode import Location
from robustgen.sources.base import Reusable, blame_source
from robustgen.sources.index import Cache, Index, Listing
from robustgen.sources.places import ARCHIVES, Place, find_place
from robustgen.sources.walk import Found, check_name, find_by_name, is_image, walk

# No image is larger; larger sizes in headers are refused.
_MOST_MEMBER_BYTES: Final = 1 << 29


class FolderTree(Reusable):
    """Files below a folder, under POSIX names.

    Parameters
    ----------
    root : path, URL or Place
    follow : sequence of path
        Folders outside `root` to which links may lead.

    Raises
    ------
    SourceError
        `root` is not a folder.
    """

    def __init__(self, root: Location | Place, follow: tuple[Path, ...] = ()) -> None:
        place = root if isinstance(root, Place) else Place(root)
        self.location, self._store, self._follow = place.location, place.folder, follow
        if self._store.is_local and not place.is_folder:
            raise SourceError(f"{self.location}: {explain_no_folder(Path(self.location))}")

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """Return the sizes of all files of a remote folder, from one listing."""
        with blame_source(self.location):
            return {entry.path: entry.size for entry in self._store.list()}

    def find(self, deep: bool = True) -> Iterator[Found]:
        """Find the images; follow links that stay inside the folder or lead to a folder in `follow`."""
        if self._store.is_local:
            yield from walk(Path(self.location), deep, self._follow)
            return
        for name in self._sizes:
            if (deep or "/" not in name) and not any(part.startswith(".") for part in name.split("/")):
                yield from find_by_name(name)

    def read(self, name: str) -> bytes:
        """Read a file; raise an OSError, ValueError or LookupError if it cannot be read."""
        return self._store.read(name)

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return vars(self).get("_sizes", {}).get(name) or self._store.stat(name).size

    def has(self, name: str) -> bool:
        """Return True if there is a file called `name`."""
        return self._store.exists(name) if self._store.is_local else name in self._sizes

    def below(self, folder: str) -> "FolderTree":
        """Return the tree of one of the folders; "" gives the tree itself."""
        return type(self)(f"{self.location}/{folder}", self._follow) if folder else self

    def common_folder(self) -> str:
        """Return "": keys in a folder keep all folder names."""
        return ""

    def make_ready(self) -> None:
        """Do nothing: worker processes need no listing."""


class ArchiveTree:
    """Files in an archive, with the interface of `FolderTree`; trees of its folders share one index.

    Parameters
    ----------
    place : Place
        Its name ends in one of `ARCHIVES`.
    cache : (Store, str), optional
        Location of the cached index.
    """

    def __init__(self, place: Place, cache: Cache = None) -> None:
        self.location, self._prefix = place.location, ""
        self._index = ArchiveIndex(place.location, cache)

    def make_ready(self) -> None:
        """Unpack a compressed tar, and cache the index."""
        self._index.make_ready()

    def names(self) -> list[str]:
        """Return the names of all files, images or not."""
        places = self._index.listing.places
        return [name.removeprefix(self._prefix) for name in places if name.startswith(self._prefix)]

    def find(self, deep: bool = True) -> Iterator[Found]:
        """Find the images; if the archive is damaged, it is among the refused files."""
        for name in self.names():
            if deep or "/" not in name:
                yield from find_by_name(name)
        for name, reason in self._index.listing.refused.items():
            if name == Path(self.location).name or name.startswith(self._prefix):
                yield check_name(name.removeprefix(self._prefix), reason)

    def read(self, name: str) -> bytes:
        """Read a file."""
        return read_member(self._index, self._place(name))

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return int(self._place(name)[2])

    def has(self, name: str) -> bool:
        """Return True if there is a file called `name`."""
        return self._prefix + name in self._index.listing.places

    def _place(self, name: str) -> Any:
        return self._index.listing.places[self._prefix + name]

    def below(self, folder: str) -> "ArchiveTree":
        """Return the tree of one of the folders."""
        tree = type(self).__new__(type(self))
        vars(tree).update(vars(self), _prefix=f"{self._prefix}{folder}/" if folder else self._prefix)
        return tree

    def common_folder(self) -> str:
        """Return the innermost folder that contains all images."""
        own = Path(self.location).name
        folders = {name.rpartition("/")[0] for name, _ in self.find() if name != own}
        return "" if "" in folders or not folders else posixpath.commonpath(folders)


FileTree = FolderTree | ArchiveTree


def open_tree(
    root: Location | Place | FileTree, follow: Sequence[Location] = (), cache: Cache = None
) -> FileTree:
    """Open a folder or an archive; a tree is returned unchanged."""
    if isinstance(root, FileTree):
        return root
    place = find_place(root)
    if place.has_suffix(*ARCHIVES) and not place.is_folder:
        return ArchiveTree(place, cache)
    if place.store.is_local and not place.is_folder:
        raise SourceError(f"{place.location}: neither a folder nor an archive ({', '.join(ARCHIVES)})")
    return FolderTree(place, tuple(map(Path, follow)))


# --- listing -------------------------------------------------------------------------------------


class ArchiveIndex(Index):
    """Index of a source that is a single archive."""

    def build(self) -> Listing:
        """List the archive."""
        return list_archive(self, 0)


def list_archive(index: Index, number: int) -> Listing:
    """List the files of one archive; unpack a compressed tar first.

    Raises
    ------
    OSError, ValueError
        The file cannot be read, or is not an archive.
    """
    listing = Listing({}, {}, (), {})
    store, name = index.locate(number)
    with store.open(name) as content:
        if name.lower().endswith(".zip"):
            for raw_name, member in zipped.list_members(content):
                _add(listing, raw_name, member if isinstance(member, str) else (number, *member))
            return listing
        last, size = "the beginning", store.stat(name).size
        try:
            for entry in tar.iterate_members(content):
                last = repr(entry.name)
                if entry.isdir():
                    continue
                found: tuple[int, ...] | str = number, entry.offset_data, entry.size
                if not entry.isreg() or entry.issparse():
                    found = "a link" if entry.issym() or entry.islnk() else "not a regular file"
                elif entry.offset_data + entry.size > size:
                    found = "the archive ends within it"
                _add(listing, entry.name, found)
        except tarfile.TarError as error:
            listing.refused[index.files[number].name] = f"damaged after {last}: {error}"
    return listing


def _add(listing: Listing, raw_name: str, found: Any) -> None:
    """Add a member, or the reason for refusing it; skip hidden ones."""
    parts = [part for part in raw_name.split("/") if part not in ("", ".")]
    if not parts or any(part[0] == "." and not part.startswith("..") for part in parts):
        return
    size = 0 if isinstance(found, str) else max(found[2:4])
    reasons = {
        "its name is absolute": raw_name.startswith("/"),
        "its name leaves the archive": ".." in parts,
        "its name begins with two dots": any(part.startswith("..") for part in parts),
        "its name contains a zero byte": "\0" in raw_name,
        found: isinstance(found, str),
        f"too large for an image: {size} bytes": size > _MOST_MEMBER_BYTES,
    }
    name = "/".join(parts)
    listing.add(name, found, next((reason for reason, applies in reasons.items() if applies), None))
    if not is_image(name):
        listing.refused.pop(name, None)


def read_member(index: Index, place: Any) -> bytes:
    """Read a file of an archive; `place` is file number, offset and size, and more for a zip."""
    number, *member = place
    if len(member) == 2:
        return index.read_part(number, *member)
    return zipped.read_member(partial(index.read_part, number), zipped.ZipMember(*member))
