"""Archives of files: `.tar` and `.zip`, read in place, and compressed `.tar`, unpacked once."""

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO

from robustgen.errors import SourceError
from robustgen.imaging.decode import Location
from robustgen.regular_file import open_regular
from robustgen.sources.base import blame_source
from robustgen.sources.catalogue import Catalogue, Place
from robustgen.sources.listed_file import stamp_of
from robustgen.sources.scratch import Scratch
from robustgen.sources.shelf import Index, Shelf
from robustgen.sources.tar_members import iterate_members
from robustgen.sources.tree import FileTree, FolderTree
from robustgen.sources.unpacking import COMPRESSED, is_compressed, unpack
from robustgen.sources.walk import Found, check_name, find_by_name

ARCHIVES = (".tar", ".zip", *COMPRESSED)


class ArchiveTree(FileTree):
    """The files in an archive.

    Parameters
    ----------
    path : path
        Ends in one of `ARCHIVES`.
    held : path, optional
        The index that an earlier run has kept.

    Raises
    ------
    SourceError
        There is no such file. From everything else: it is no archive.
    """

    def __init__(self, path: Location, held: Path | None = None) -> None:
        self.location = Path(path)
        self._prefix = ""
        self._shelf = Shelf(ArchiveIndex, self.location, held)

    @property
    def _catalogue(self) -> Catalogue:
        with blame_source(self.location):
            return self._shelf.get().catalogue

    def make_ready(self) -> None:
        """Unpack a compressed tar, and show processes of this machine what is where."""
        with blame_source(self.location):
            self._shelf.make_ready()

    def export_index(self) -> bytes | None:
        """Return the index, where it was built anew."""
        return self._shelf.export_index()

    def names(self) -> list[str]:
        """Return the names of all files, images or not."""
        places = self._catalogue.places
        return [name.removeprefix(self._prefix) for name in places if name.startswith(self._prefix)]

    def find(self, deep: bool = True) -> Iterator[Found]:
        """Find the images; the archive itself is among those refused if it is damaged."""
        for name in self.names():
            if deep or "/" not in name:
                yield from find_by_name(name)
        for name, reason in self._catalogue.refused.items():
            if name == self.location.name or name.startswith(self._prefix):
                yield check_name(name.removeprefix(self._prefix), reason)

    def open(self, name: str) -> BinaryIO:
        """Read a file into memory."""
        return io.BytesIO(self._catalogue.read(self._prefix + name))

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return self._catalogue.places[self._prefix + name].size

    def has(self, name: str) -> bool:
        """Whether there is a file called `name`."""
        return self._prefix + name in self._catalogue.places

    def below(self, folder: str) -> FileTree:
        """Return the tree of one of the folders; both share what is known of the archive."""
        tree = type(self)(self.location)
        tree._shelf, tree._prefix = self._shelf, f"{self._prefix}{folder}/" if folder else self._prefix
        return tree

    def common_folder(self) -> str:
        """Return the innermost folder that all images lie in."""
        folders = {name.rpartition("/")[0] for name, _ in self.find() if name != self.location.name}
        if not folders:
            return ""
        common: list[str] = []
        for parts in zip(*(folder.split("/") for folder in folders), strict=False):
            if len({*parts}) > 1:
                break
            common.append(parts[0])
        return "/".join(common)


def is_archive(path: Path) -> bool:
    """Whether `path` is a file whose name ends as an archive's."""
    return path.name.lower().endswith(ARCHIVES) and not path.is_dir()


def open_tree(
    root: "Location | FileTree", follow: tuple[Path, ...] = (), held: Path | None = None
) -> FileTree:
    """Open a folder or an archive, whose index `held` may keep; a tree is returned as it is."""
    if isinstance(root, FileTree):
        return root
    with blame_source(root):
        path = Path(root)
        path.stat()
        if is_archive(path):
            return ArchiveTree(path, held)
        if path.is_file():
            raise SourceError(f"{path}: not a folder, nor an archive ({', '.join(ARCHIVES)})")
        return FolderTree(path, follow)


# --- listing -------------------------------------------------------------------------------------


class ArchiveIndex(Index):
    """The files of the archive that is a source.

    Parameters
    ----------
    catalogue : Catalogue
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    @classmethod
    def build(cls, location: Path, scratch: Scratch) -> "ArchiveIndex":
        """As `Index.build`."""
        return cls(list_archive(location, scratch))

    @classmethod
    def files_at(cls, location: Path) -> Sequence[Path]:
        """As `Index.files_at`."""
        return [location]

    @property
    def is_lasting(self) -> bool:
        """As `Index.is_lasting`."""
        return self.catalogue.file.name not in self.catalogue.refused

    def make_ready(self, scratch: Scratch) -> None:
        """As `Index.make_ready`."""
        self.catalogue.make_ready(scratch)

    def to_json(self, *, here: bool) -> Any:
        """As `Index.to_json`."""
        return self.catalogue.to_json(here=here)

    @classmethod
    def from_json(cls, content: Any) -> "ArchiveIndex":
        """As `Index.from_json`."""
        return cls(Catalogue.from_json(content))


def list_archive(path: Path, scratch: Scratch) -> Catalogue:
    """List the files of an archive; a compressed tar is unpacked to `scratch` first.

    Raises
    ------
    OSError, ValueError
        It cannot be read, or is no archive.
    """
    if path.name.lower().endswith(".zip"):
        return _list_zip(path)
    return _list_compressed(path, scratch) if is_compressed(path) else _list_tar(path)


def _list_compressed(path: Path, scratch: Scratch) -> Catalogue:
    catalogue = Catalogue(path, stamp_of(path.stat()))
    catalogue.unpacked, damage = unpack(path, catalogue.stamp, scratch)
    start = scratch.file.seek(catalogue.unpacked.start)
    size = scratch.file.seek(0, os.SEEK_END) - start
    scratch.file.seek(start)
    _add_members(catalogue, scratch.file, start, size)
    if damage:
        catalogue.refused[path.name] = damage
    return catalogue


def _list_tar(path: Path) -> Catalogue:
    with open_regular(path) as file:
        catalogue = Catalogue(path, stamp_of(os.fstat(file.fileno())))
        _add_members(catalogue, file, 0, catalogue.stamp[0])
    return catalogue


def _add_members(catalogue: Catalogue, file: IO[bytes], start: int, size: int) -> None:
    """Take in all members of a tar that begins at `start` of `file` and has `size` bytes."""
    last = "the beginning"
    try:
        for member in iterate_members(file):
            last = repr(member.name)
            _add_member(catalogue, member, start, size)
    except tarfile.TarError as error:
        catalogue.refused[catalogue.file.name] = f"damaged after {last}: {error}"


def peek_names(path: Path, count: int) -> list[str]:
    """The names of the first few files of a tar; none of what is damaged."""
    with open_regular(path) as file:
        try:
            return [member.name for _, member in zip(range(count), iterate_members(file), strict=False)]
        except tarfile.TarError:
            return []


def _add_member(catalogue: Catalogue, member: tarfile.TarInfo, start: int, size: int) -> None:
    if member.isdir():
        return
    if not member.isreg() or member.issparse():
        catalogue.add(member.name, "a link" if member.issym() or member.islnk() else "not a regular file")
    elif member.offset_data - start + member.size > size:
        catalogue.add(member.name, "the archive ends within it")
    else:
        catalogue.add(member.name, Place(member.offset_data - start, member.size))


def _list_zip(path: Path) -> Catalogue:
    with open_regular(path) as file, zipfile.ZipFile(file) as archive:
        catalogue = Catalogue(path, stamp_of(os.fstat(file.fileno())))
        for entry in archive.infolist():
            if not entry.is_dir():
                catalogue.add(entry.orig_filename, _place_in_zip(entry))
    return catalogue


def _place_in_zip(entry: zipfile.ZipInfo) -> Place | str:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "a link" if kind == stat.S_IFLNK else "not a regular file"
    if entry.flag_bits & 1:
        return "encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compressed by method {entry.compress_type}, which is not read"
    deflated = entry.compress_type == zipfile.ZIP_DEFLATED
    return Place(entry.header_offset, entry.file_size, entry.compress_size, entry.CRC, deflated)
