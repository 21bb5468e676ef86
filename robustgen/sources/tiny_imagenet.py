"""The validation images of Tiny ImageNet."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from robustgen.errors import SourceError
from robustgen.imaging.decode import Location
from robustgen.regular_file import open_regular
from robustgen.sources.archives import ArchiveTree, is_archive, open_tree
from robustgen.sources.files import FileSource
from robustgen.sources.labelled import put_into_classes
from robustgen.sources.labels import parse_labels
from robustgen.sources.tree import FileTree
from robustgen.sources.walk import Found, is_image

_ANNOTATIONS, _CLASSES = "val_annotations.txt", 200


class TinyImageNet(FileSource):
    """The validation images of tiny-imagenet-200, as shipped or sorted into class folders.

    Parameters
    ----------
    root : path or FileTree
        The folder tiny-imagenet-200, its folder val, or its zip.
    follow : sequence of path
        Places outside `root` to which links may lead.
    held : path, optional
        The index of the zip that an earlier run has kept.

    Raises
    ------
    SourceError
        `root` is none of them.
    """

    def __init__(
        self, root: Location | FileTree, follow: Sequence[Location] = (), held: Path | None = None
    ) -> None:
        tree = open_tree(root, tuple(map(Path, follow)), held)
        super().__init__(tree.below(_val_of(tree)))
        self.location = tree.location
        self._shipped = _is_as_shipped(self._tree)

    def _scan(self) -> Iterable[Found]:
        if self._shipped:
            found = dict(self._tree.below("images").find(deep=False))
            where = self._tree.location / _ANNOTATIONS
            with self._tree.open(_ANNOTATIONS) as file:
                labels = parse_labels(file.read(), where, sorted(filter(is_image, found)))
            return put_into_classes(found, labels, where)
        return ((key.replace("/images/", "/", 1), reason) for key, reason in self._tree.find())

    def _name(self, key: str) -> str:
        wnid, _, name = key.partition("/")
        if self._shipped:
            return f"images/{name}"
        nested = f"{wnid}/images/{name}"
        return nested if self._tree.has(nested) else key


def _is_as_shipped(val: FileTree) -> bool:
    """Whether the images lie in one folder; scripts that sort them often leave the annotations behind."""
    if not val.has(_ANNOTATIONS):
        return False
    try:
        return any(val.below("images").find(deep=False))
    except SourceError:
        return False


def _val_of(tree: FileTree) -> str:
    """The folder that holds the validation images."""
    if not isinstance(tree, ArchiveTree):
        return "val" if (tree.location / "val").is_dir() else ""
    annotations = [name for name in tree.names() if name.endswith(f"val/{_ANNOTATIONS}")]
    return annotations[0].rpartition("/")[0] if annotations else tree.common_folder()


def is_tiny_imagenet(path: Path, held: Path | None = None) -> bool:
    """Whether `path` is tiny-imagenet-200: its zip, whose index `held` may keep, its folder, or its val."""
    if is_archive(path):
        return path.suffix.lower() == ".zip" and any(
            name.endswith(f"val/{_ANNOTATIONS}") for name in ArchiveTree(path, held).names()
        )
    if (path / "val" / _ANNOTATIONS).is_file() or (path / _ANNOTATIONS).is_file():
        return True
    # A sorted val folder may have lost its annotations; the list of classes lies above it.
    home = path.parent if path.name == "val" else path
    return (home / "val").is_dir() and _lists_its_classes(home / "wnids.txt")


def _lists_its_classes(path: Path) -> bool:
    """Whether `path` lists no more classes than Tiny ImageNet has; people call lists for models so, too."""
    try:
        with open_regular(path) as lines:
            return sum(1 for _ in lines) <= _CLASSES
    except OSError:
        return False
