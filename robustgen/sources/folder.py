"""Images in class folders, or without any, below a folder or in an archive."""

from collections.abc import Sequence
from pathlib import Path

from robustgen.imaging.decode import Location
from robustgen.sources.archives import open_tree
from robustgen.sources.files import FileSource
from robustgen.sources.tree import FileTree


class ImageFolder(FileSource):
    """A folder or an archive of images; the class of an image is the first folder below the root, or "".

    Hidden files and other extensions are passed over. In an archive the root is where the class folders
    lie: the folders that all images share are left out of the keys.

    Parameters
    ----------
    root : path or FileTree
        A folder, or one of the archives in `archives.ARCHIVES`.
    follow : sequence of path
        Places outside `root` to which links may lead.
    held : path, optional
        The index of an archive that an earlier run has kept.

    Raises
    ------
    SourceError
        `root` is neither.
    """

    def __init__(
        self, root: Location | FileTree, follow: Sequence[Location] = (), held: Path | None = None
    ) -> None:
        tree = open_tree(root, tuple(map(Path, follow)), held)
        super().__init__(tree.below(_root_of_classes(tree)))


def _root_of_classes(tree: FileTree) -> str:
    """The folder in an archive that holds the class folders."""
    common = tree.common_folder()
    below = tree.below(common)
    if common and any("/" not in name for name, _ in below.find()):
        # A single class: its folder is not left out.
        return common.rpartition("/")[0]
    return common
