"""Validation and training images of Tiny ImageNet."""

from collections.abc import Iterable, Sequence

from robustgen.errors import SourceError
from robustgen.imaging.decode import Location
from robustgen.sources.base import check_split
from robustgen.sources.files import FileSource
from robustgen.sources.index import Cache
from robustgen.sources.labelled import put_into_classes
from robustgen.sources.labels import parse_labels
from robustgen.sources.places import Place
from robustgen.sources.trees import ArchiveTree, FileTree, open_tree
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
        tree = open_tree(root, follow, index)
        self.split = check_split(tree.location, split, ("val", "train"))
        folder = tree.common_folder()
        if split == "train" and folder.rpartition("/")[2] != "train":
            folder = f"{folder}/train".removeprefix("/")
        elif split == "val" and isinstance(tree, ArchiveTree):
            annotations = [name for name in tree.names() if name.endswith(f"val/{_ANNOTATIONS}")]
            folder = annotations[0].rpartition("/")[0] if annotations else folder
        elif split == "val":
            folder = "val" if Place(tree.location).children.get("val") else ""
        super().__init__(tree.below(folder))
        self.location = tree.location
        self._is_shipped = _is_as_shipped(self._tree)

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


def is_tiny_imagenet(place: Place, cache: Cache = None) -> bool:
    """Return True for tiny-imagenet-200: its zip, its folder, or its val."""
    if not place.is_folder:
        members = ArchiveTree(place, cache).names() if place.has_suffix(".zip") else []
        return any(name.endswith(f"val/{_ANNOTATIONS}") for name in members)
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
