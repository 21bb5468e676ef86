"""Images without class folders, and a file that tells their classes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from robustgen.imaging.decode import Location
from robustgen.sources.archives import open_tree
from robustgen.sources.base import blame_source
from robustgen.sources.files import FileSource
from robustgen.sources.labels import read_labels
from robustgen.sources.tree import FileTree
from robustgen.sources.walk import Found, is_image


class LabelledFolder(FileSource):
    """A flat folder or archive of images and a file that tells their classes.

    Parameters
    ----------
    root : path or FileTree
    labels : path
        Lines ``name class`` (parted by tab, comma or space; the name with or without its extension),
        Kaggle's ``LOC_val_solution.csv``, one class a line for the images in sorted order, or ImageNet's
        devkit: its archive, its folder, or its ``ILSVRC2012_validation_ground_truth.txt``.
    follow : sequence of path
        Places outside `root` to which links may lead.
    held : path, optional
        The index of an archive that an earlier run has kept.

    Raises
    ------
    SourceError
        One of the two is missing. From `keys` and `refused`: the labels are malformed; names the line.
    """

    def __init__(
        self,
        root: Location | FileTree,
        labels: Location,
        follow: Sequence[Location] = (),
        held: Path | None = None,
    ) -> None:
        tree = open_tree(root, tuple(map(Path, follow)), held)
        super().__init__(tree.below(tree.common_folder()))
        self.labels_file = Path(labels)
        with blame_source(self.labels_file):
            self.labels_file.stat()

    def _scan(self) -> Iterator[Found]:
        found = dict(self._tree.find(deep=False))
        labels = read_labels(self.labels_file, sorted(filter(is_image, found)))
        return put_into_classes(found, labels, self.labels_file)

    def _name(self, key: str) -> str:
        return key.rpartition("/")[2]


def put_into_classes(
    found: Mapping[str, str | None], labels: Mapping[str, str], where: object
) -> Iterator[Found]:
    """Give each image found the key ``class/name``, and refuse those that `labels`, read at `where`, lack."""
    for name, reason in found.items():
        label = labels.get(name) or labels.get(name.rpartition(".")[0])
        if label:
            yield f"{label}/{name}", reason
        else:
            yield name, reason or f"no label in {where}"
