"""Images below a folder or in an archive, with or without class folders."""

from collections.abc import Sequence

from robustgen.imaging.decode import Location
from robustgen.sources.files import FileSource
from robustgen.sources.index import Cache
from robustgen.sources.places import Place
from robustgen.sources.trees import FileTree, open_tree


class ImageFolder(FileSource):
    """A folder or an archive of images; the class of an image is the first folder below the root, or "".

    Hidden files and other extensions are skipped. In an archive, the root is the parent of the class
    folders: keys omit the folders that all images share.

    Parameters
    ----------
    root : path, URL or FileTree
        A folder, or one of the archives in `places.ARCHIVES`.
    follow : sequence of path
        Folders outside `root` to which links may lead.
    index : (Store, str), optional
        A file in which the listing of an archive may be cached.

    Raises
    ------
    SourceError
        `root` is neither a folder nor an archive.
    """

    def __init__(
        self, root: Location | Place | FileTree, follow: Sequence[Location] = (), index: Cache = None
    ) -> None:
        tree = open_tree(root, follow, index)
        root_of_classes = tree.common_folder()
        if root_of_classes and any("/" not in name for name, _ in tree.below(root_of_classes).find()):
            # A single class keeps its folder in the keys.
            root_of_classes = root_of_classes.rpartition("/")[0]
        super().__init__(tree.below(root_of_classes))
