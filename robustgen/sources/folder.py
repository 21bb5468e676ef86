"""Images below a folder or in an archive, with or without class folders."""

from robustgen.sources.files import FileSource
from robustgen.sources.trees import FileTree


class ImageFolder(FileSource):
    """A folder or an archive of images; the class of an image is the first folder below the root, or "".

    Hidden files and other extensions are skipped. In an archive, the root is the parent of the class
    folders: keys omit the folders that all images share. Parameters are those of `FileSource`.
    """

    def _find_images(self, tree: FileTree) -> str:
        folder = tree.common_folder()
        if folder and any("/" not in name for name, _ in tree.below(folder).find()):
            # A single class keeps its folder in the keys.
            folder = folder.rpartition("/")[0]
        return folder
