"""Archives of files: `.tar` and `.zip`, read in place, and compressed `.tar`, unpacked once."""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

from robustgen.errors import SourceError
from robustgen.imaging.decode import Location, reason_of
from robustgen.regular_file import open_regular
from robustgen.sources.base import blame_source
from robustgen.sources.catalogue import Catalogue, Place, stamp_of
from robustgen.sources.shelf import Shelf
from robustgen.sources.tar_headers import BoundedHeader
from robustgen.sources.tree import FileTree, FolderTree
from robustgen.sources.walk import Found, check_name, find_by_name

COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
ARCHIVES = (".tar", ".zip", *COMPRESSED)
# Images hardly shrink; what unpacks to a hundred times its size and more is there to fill a disk.
_MOST_GROWTH, _HARMLESS_BYTES = 100, 1 << 30


class ArchiveTree(FileTree):
    """The files in an archive.

    Parameters
    ----------
    path : path
        Ends in one of `ARCHIVES`.

    Raises
    ------
    SourceError
        There is no such file. From everything else: it is no archive.
    """

    def __init__(self, path: Location) -> None:
        self.location = Path(path)
        self._prefix = ""
        self._shelf = Shelf(partial(list_archive, self.location))

    @property
    def _catalogue(self) -> Catalogue:
        with blame_source(self.location):
            return self._shelf.get()

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


def open_tree(root: "Location | FileTree", follow: tuple[Path, ...] = ()) -> FileTree:
    """Open a folder or an archive; a tree is returned as it is."""
    if isinstance(root, FileTree):
        return root
    with blame_source(root):
        path = Path(root)
        path.stat()
        if is_archive(path):
            return ArchiveTree(path)
        if path.is_file():
            raise SourceError(f"{path}: not a folder, nor an archive ({', '.join(ARCHIVES)})")
        return FolderTree(path, follow)


# --- listing -------------------------------------------------------------------------------------


def list_archive(path: Path, folder: Path) -> Catalogue:
    """List the files of an archive; a compressed tar is unpacked in the private `folder` first."""
    name = path.name.lower()
    if name.endswith(".zip"):
        return _list_zip(path)
    if name.endswith(".tar"):
        return list_tar(path)
    with blame_source(path):
        unpacked, reason = _unpack(path, folder / "unpacked.tar")
    catalogue = list_tar(unpacked)
    damage = catalogue.refused.pop(unpacked.name, None)
    if reason or damage:
        catalogue.refused[path.name] = reason or str(damage)
    return catalogue


def _unpack(path: Path, target: Path) -> tuple[Path, str | None]:
    """Decompress a tar to `target`, as far as that is possible; also say what is wrong with it."""
    stamp_of(path.stat())
    most = max(_HARMLESS_BYTES, _MOST_GROWTH * path.stat().st_size)
    with _open_compressed(path) as packed, target.open("wb") as file:
        while True:
            try:
                piece = packed.read1(1 << 16)
            except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
                return target, f"damaged after {file.tell()} unpacked bytes: {reason_of(error)}"
            if not piece:
                return target, None
            _write(file, piece, path)
            if file.tell() > most:
                raise SourceError(f"{path}: unpacks to more than {most} bytes, which no images do")


def _write(file: BinaryIO, piece: bytes, path: Path) -> None:
    try:
        file.write(piece)
        file.flush()
    except OSError as error:
        raise SourceError(
            f"{path}: cannot be unpacked to a temporary folder ({reason_of(error)}); TMPDIR names another"
        ) from error


def _open_compressed(path: Path) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    name = path.name.lower()
    if name.endswith(".bz2"):
        return bz2.BZ2File(path)
    return lzma.LZMAFile(path) if name.endswith(".xz") else gzip.GzipFile(path)


def list_tar(path: Path) -> Catalogue:
    """List the files of a tar that is not compressed."""
    with open_regular(path) as file:
        catalogue = Catalogue(path, stamp_of(os.fstat(file.fileno())))
        last = "the beginning"
        try:
            for member in _members(file):
                last = repr(member.name)
                _add_member(catalogue, member)
        except tarfile.TarError as error:
            catalogue.refused[path.name] = f"damaged after {last}: {error}"
    return catalogue


def _members(file: IO[bytes]) -> Iterator[tarfile.TarInfo]:
    with tarfile.open(fileobj=file, mode="r:", tarinfo=BoundedHeader) as archive:
        while member := archive.next():
            # Left alone, it keeps them all.
            archive.members.clear()  # type: ignore[attr-defined]
            yield member
        # It takes a header that is none, and a missing one, for the end.
        file.seek(archive.offset)
        block = file.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE:
        raise tarfile.ReadError("it ends without the mark of its end")
    if any(block):
        raise tarfile.ReadError("no header where one must be")


def peek_names(path: Path, count: int) -> list[str]:
    """The names of the first few files of a tar; none of what is damaged."""
    with open_regular(path) as file:
        try:
            return [member.name for _, member in zip(range(count), _members(file), strict=False)]
        except tarfile.TarError:
            return []


def _add_member(catalogue: Catalogue, member: tarfile.TarInfo) -> None:
    if member.isdir():
        return
    if not member.isreg() or member.issparse():
        catalogue.add(member.name, "a link" if member.issym() or member.islnk() else "not a regular file")
    elif member.offset_data + member.size > catalogue.stamp[0]:
        catalogue.add(member.name, "the archive ends within it")
    else:
        catalogue.add(member.name, Place(member.offset_data, member.size))


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
