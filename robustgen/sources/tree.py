"""Trees of files, wherever they lie: in a folder, or in an archive that is read in place."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from robustgen.errors import SourceError, explain_no_folder
from robustgen.imaging.decode import Location
from robustgen.regular_file import open_regular
from robustgen.sources.walk import Found, walk


class FileTree(ABC):
    """Files under POSIX names. Picklable, and small when pickled.

    Attributes
    ----------
    location : Path
        The folder or the archive.
    """

    location: Path

    @abstractmethod
    def find(self, deep: bool = True) -> Iterator[Found]:
        """Find the images, or only those directly in the root, in any order, with reasons for refusing."""

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """Open a file for reading; an OSError, ValueError or LookupError if it cannot be read."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Return the size of a file in bytes; an OSError, ValueError or LookupError if there is none."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether there is a file called `name`."""

    @abstractmethod
    def below(self, folder: str) -> "FileTree":
        """Return the tree of what lies in one of the folders; "" gives the tree itself."""

    def common_folder(self) -> str:
        """Return the innermost folder that all images lie in; "" for a folder on disk, which says itself."""
        return ""

    def make_ready(self) -> None:  # noqa: B027
        """Do once what every worker process would else do for itself; a SourceError if that fails."""

    def export_index(self) -> bytes | None:
        """Return what the next run needs to know sooner what is where, if it has not got it yet."""
        return None


class FolderTree(FileTree):
    """The files below a folder.

    Parameters
    ----------
    root : path
    follow : sequence of path
        Places outside `root` to which links may lead.

    Raises
    ------
    SourceError
        `root` is no folder.
    """

    def __init__(self, root: Location, follow: Sequence[Location] = ()) -> None:
        self.location = Path(root)
        self._follow = tuple(map(Path, follow))
        if not self.location.is_dir():
            raise SourceError(f"{self.location}: {explain_no_folder(self.location)}")

    def find(self, deep: bool = True) -> Iterator[Found]:
        """Find the images; links are followed where they stay inside, or in a place that was named."""
        return walk(self.location, deep, self._follow)

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return open_regular(self.location / name)

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return (self.location / name).stat().st_size

    def has(self, name: str) -> bool:
        """Whether there is a file called `name`."""
        return (self.location / name).is_file()

    def below(self, folder: str) -> "FileTree":
        """Return the tree of one of the folders."""
        return type(self)(self.location / folder, self._follow) if folder else self
