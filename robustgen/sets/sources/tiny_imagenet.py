"""Validation and training images of Tiny ImageNet."""

import zipfile
from collections.abc import Iterable
from typing import Final

from robustgen.pixels.imaging.decode import Location
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import DEFAULTS, Options, check_split
from robustgen.sets.sources.folder import FileSource, Named, put_into_classes
from robustgen.sets.sources.labels import parse_labels
from robustgen.sets.sources.places import Place
from robustgen.sets.sources.walk import is_image

_ANNOTATIONS, _CLASSES = "val_annotations.txt", 200


class TinyImageNet(FileSource):
    """A split of tiny-imagenet-200, as shipped or sorted into class folders.

    Parameters
    ----------
    root : path or URL
        The folder tiny-imagenet-200, its folder val, or its zip.
    options : Options
        The split is "val", the default, or "train".

    Raises
    ------
    SourceError
        `root` is not one of these.
    """

    def __init__(self, root: Location | Place, options: Options = DEFAULTS) -> None:
        self.split = check_split(root, options.split or "val", ("val", "train"))
        super().__init__(root, options)

    def _find_folder(self) -> str:
        parts = (f"/{name}".partition(f"/{self.split}/") for name, _ in self._tree.find())
        above = next((above for above, found, _ in parts if found), None)
        if above is None:
            # This is the folder val itself.
            return "" if self.split == "val" else self.split
        return f"{above}/{self.split}".removeprefix("/")

    def _scan(self) -> Iterable[Named]:
        images, annotations = f"{self._prefix}images/", self._prefix + _ANNOTATIONS
        shipped = dict(self._tree.find(images, deep=False)) if self._tree.has(annotations) else {}
        names = sorted(filter(is_image, shipped))
        if not names:
            return ((key.replace("/images/", "/", 1), key, why) for key, why in self._tree.find(self._prefix))
        where = f"{self.location}/{annotations}"
        labels = parse_labels(self._tree.read(annotations), where, names)
        found = put_into_classes(shipped, labels, where)
        return ((key, f"images/{name}", reason) for key, name, reason in found)


def is_tiny_imagenet(place: Place) -> bool:
    """Return True for tiny-imagenet-200: its zip, its folder, or its val."""
    if not place.is_folder:
        if not place.has_suffix(".zip"):
            return False
        with place.store.open(place.name) as file, zipfile.ZipFile(file) as archive:
            return any(name.endswith(f"val/{_ANNOTATIONS}") for name in archive.namelist())
    names = place.children
    if _ANNOTATIONS in names or (names.get("val") and place.folder.exists(f"val/{_ANNOTATIONS}")):
        return True
    # A sorted val folder may lack its annotations; the class list is in its parent.
    home = (Place(place.store.location) if place.name == "val" else place).folder
    if "val" not in (place.name, *names) or not home.exists("wnids.txt"):
        return False
    # Class lists for models may have the same name, but have more classes.
    return len(home.read("wnids.txt").splitlines()) <= _CLASSES


KIND: Final = SourceKind(is_tiny_imagenet, TinyImageNet)
