"""A flat folder of images, and a file that tells their classes."""

from collections.abc import Iterator
from pathlib import Path

from robustgen.imaging.decode import Location
from robustgen.sources.base import blame_source
from robustgen.sources.files import FileSource
from robustgen.sources.labels import read_labels
from robustgen.sources.walk import Found, is_image, walk


class LabelledFolder(FileSource):
    """A flat folder of images and a text file that tells their classes.

    Parameters
    ----------
    root : path
    labels : path
        Lines ``name class`` (parted by tab, comma or space; the name with or without its extension),
        Kaggle's ``LOC_val_solution.csv``, or one class a line for the images in sorted order.

    Raises
    ------
    SourceError
        One of the two is missing. From `keys` and `refused`: the labels are malformed; names the line.
    """

    def __init__(self, root: Location, labels: Location) -> None:
        super().__init__(root)
        self.labels_file = Path(labels)
        with blame_source(self.labels_file):
            self.labels_file.stat()

    def _scan(self) -> Iterator[Found]:
        found = dict(walk(self.location, deep=False))
        labels = read_labels(self.labels_file, sorted(filter(is_image, found)))
        for name, reason in found.items():
            label = labels.get(name) or labels.get(name.rpartition(".")[0])
            if label:
                yield f"{label}/{name}", reason
            else:
                yield name, reason or f"no label in {self.labels_file}"

    def _path(self, key: str) -> Path:
        return self.location / key.rpartition("/")[2]
