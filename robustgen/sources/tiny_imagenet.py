"""The validation images of Tiny ImageNet."""

from collections.abc import Iterable
from pathlib import Path

from robustgen.imaging.decode import Location
from robustgen.sources.files import FileSource
from robustgen.sources.labelled import LabelledFolder
from robustgen.sources.walk import Found, walk


class TinyImageNet(FileSource):
    """The validation images of an unpacked tiny-imagenet-200, as shipped or sorted into class folders.

    Parameters
    ----------
    root : path
        The folder tiny-imagenet-200, or its folder val.

    Raises
    ------
    SourceError
        `root` is no folder.
    """

    def __init__(self, root: Location) -> None:
        super().__init__(root)
        val = self.location / "val"
        self._val = val if val.is_dir() else self.location
        images, labels = self._val / "images", self._val / "val_annotations.txt"
        # Scripts that sort the images into class folders often leave the labels behind.
        shipped = labels.is_file() and images.is_dir() and any(walk(images, deep=False))
        self._shipped = LabelledFolder(images, labels) if shipped else None

    def _scan(self) -> Iterable[Found]:
        if self._shipped:
            return self._shipped._scan()
        return ((key.replace("/images/", "/", 1), reason) for key, reason in walk(self._val))

    def _path(self, key: str) -> Path:
        if self._shipped:
            return self._shipped._path(key)
        wnid, _, name = key.partition("/")
        nested = self._val / wnid / "images"
        return nested / name if nested.is_dir() else self._val / key


def is_tiny_imagenet(path: Path) -> bool:
    """Whether `path` is an unpacked tiny-imagenet-200, or its folder val."""
    if (path / "val" / "val_annotations.txt").is_file() or (path / "val_annotations.txt").is_file():
        return True
    # A sorted val folder may have lost its annotations; the list of classes lies above it.
    home = path.parent if path.name == "val" else path
    return (home / "wnids.txt").is_file() and (home / "val").is_dir()
