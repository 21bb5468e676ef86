"""Images without class folders, and a file with their labels."""

from collections.abc import Iterator, Mapping, Sequence

from robustgen.imaging.decode import Location
from robustgen.sources.files import FileSource
from robustgen.sources.index import Cache
from robustgen.sources.labels import read_labels
from robustgen.sources.places import Place, find_place
from robustgen.sources.trees import FileTree
from robustgen.sources.walk import Found, is_image


class LabelledFolder(FileSource):
    """A flat folder or archive of images, and a file with their labels.

    Parameters
    ----------
    root : path, URL or FileTree
    labels : path or URL
        Lines ``name class`` (separated by tab, comma or space; the name with or without its extension),
        Kaggle's ``LOC_val_solution.csv``, one class per line for the images in sorted order, or ImageNet's
        devkit: its archive, its folder, or its ``ILSVRC2012_validation_ground_truth.txt``.
    follow : sequence of path
        Folders outside `root` to which links may lead.
    index : (Store, str), optional
        A file in which the listing of an archive may be cached.
    labels_are_classes : bool
        Whether labels from 1 to 1000 are class names, not the numbers of the devkit.

    Raises
    ------
    SourceError
        The images or the labels are missing. From `keys` and `refused`: a line of labels is malformed.
    """

    def __init__(
        self,
        root: Location | Place | FileTree,
        labels: Location | None,
        follow: Sequence[Location] = (),
        index: Cache = None,
        labels_are_classes: bool = False,
    ) -> None:
        super().__init__(root, follow, index)
        self._labels = find_place(labels or "")
        self._are_classes = labels_are_classes

    def _scan(self) -> Iterator[Found]:
        found = dict(self._tree.find(deep=False))
        labels = read_labels(self._labels, sorted(filter(is_image, found)), self._are_classes)
        return put_into_classes(found, labels, self._labels.location)

    def _name(self, key: str) -> str:
        return key.rpartition("/")[2]


def put_into_classes(
    found: Mapping[str, str | None], labels: Mapping[str, str], where: object
) -> Iterator[Found]:
    """Yield the key ``class/name`` of each image; refuse images without a label, naming `where`."""
    for name, reason in found.items():
        label = labels.get(name) or labels.get(name.rpartition(".")[0])
        if label:
            yield f"{label}/{name}", reason
        else:
            yield name, reason or f"no label in {where}"
