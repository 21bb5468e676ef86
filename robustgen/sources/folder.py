"""A folder of images in class folders, or without any."""

from collections.abc import Iterable
from pathlib import Path

from robustgen.imaging.decode import Location
from robustgen.sources.files import FileSource
from robustgen.sources.walk import Found, walk


class ImageFolder(FileSource):
    """A folder of images; the class of an image is the first folder below `root`, or "".

    Links are followed where they stay inside `root`; hidden files and other extensions are passed over.

    Parameters
    ----------
    root : path

    Raises
    ------
    SourceError
        `root` is no folder.
    """

    def __init__(self, root: Location) -> None:
        super().__init__(root)

    def _scan(self) -> Iterable[Found]:
        return walk(self.location)

    def _path(self, key: str) -> Path:
        return self.location / key
