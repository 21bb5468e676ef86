"""Validation and training images of Tiny ImageNet."""

import zipfile
from collections.abc import Iterable, Sequence

from robustgen.errors import SourceError
from robustgen.imaging.decode import Location
from robustgen.sources.base import check_split
from robustgen.sources.files import FileSource
from robustgen.sources.index import Cache
from robustgen.sources.labelled import put_into_classes
from robustgen.sources.labels import parse_labels
from robustgen.sources.places import Place
from robustgen.sources.trees import ArchiveTree, FileTree
from robustgen.sources.walk import Found, is_image

_ANNOTATIONS, _CLASSES = "val_annotations.txt", 200


class TinyImageNet(FileSource):
    """A split of tiny-imagenet-200, as shipped or sorted into class folders.

    Parameters
    ----------
    root : path, URL or FileTree
        The folder tiny-imagenet-200, its folder val, or its zip.
    follow : sequence of path
        Folders outside `root` to which links may lead.
    index : (Store, str), optional
        A file in which the listing of the zip may be cached.
    split : {"val", "train"}

    Raises
    ------
    SourceError
        `root` is not one of these.
    """

    def __init__(
        self,
        root: Location | Place | FileTree,
        follow: Sequence[Location] = (),
        index: Cache = None,
        split: str = "val",
    ) -> None:
        self.split = check_split(root, split, ("val", "train"))
        super().__init__(root, follow, index)
        self._is_shipped = _is_as_shipped(self._tree)

    def _find_images(self, tree: FileTree) -> str:
        if isinstance(tree, ArchiveTree):
            parts = (f"/{name}".partition(f"/{self.split}/") for name in tree.names())
            folders = (f"{above}/{self.split}".removeprefix("/") for above, found, _ in parts if found)
            return next(folders, self.split)
        is_above = self.split == "train" or Place(tree.location).children.get(self.split)
        return self.split if is_above else ""

    def _scan(self) -> Iterable[Found]:
        if self._is_shipped:
            found = dict(self._tree.below("images").find(deep=False))
            where = f"{self._tree.location}/{_ANNOTATIONS}"
            labels = parse_labels(self._tree.read(_ANNOTATIONS), where, sorted(filter(is_image, found)))
            return put_into_classes(found, labels, where)
        return ((key.replace("/images/", "/", 1), reason) for key, reason in self._tree.find())

    def _name(self, key: str) -> str:
        wnid, _, name = key.partition("/")
        if self._is_shipped:
            return f"images/{name}"
        nested = f"{wnid}/images/{name}"
        return nested if self._tree.has(nested) else key


def _is_as_shipped(val: FileTree) -> bool:
    """Return True if all images are in one folder; scripts that sort them may keep the annotations."""
    if not val.has(_ANNOTATIONS):
        return False
    try:
        return any(val.below("images").find(deep=False))
    except SourceError:
        return False


def is_tiny_imagenet(place: Place) -> bool:
    """Return True for tiny-imagenet-200: its zip, its folder, or its val."""
    if not place.is_folder:
        if not place.has_suffix(".zip"):
            return False
        with place.store.open(place.name) as file, zipfile.ZipFile(file) as archive:
            return any(name.endswith(f"val/{_ANNOTATIONS}") for name in archive.namelist())
    names = place.children
    if _ANNOTATIONS in names or (names.get("val") and place.has(f"val/{_ANNOTATIONS}")):
        return True
    # A sorted val folder may lack its annotations; the class list is in its parent.
    home = Place(place.store.location) if place.name == "val" else place
    try:
        # Class lists for models may have the same name, but have more classes.
        return "val" in (place.name, *names) and len(home.folder.read("wnids.txt").splitlines()) <= _CLASSES
    except OSError:
        return False
