"""Label files of images, in any of the usual formats."""

from collections.abc import Sequence

from robustgen.errors import SourceError
from robustgen.sets.sources.base import name_source_in_errors
from robustgen.sets.sources.classes import is_folder_name
from robustgen.sets.sources.devkit import is_devkit, is_ground_truth, read_devkit
from robustgen.sets.sources.places import Place


def read_labels(place: Place, images: Sequence[str], are_classes: bool = False) -> dict[str, str]:
    """Read the classes of images from a file or from ImageNet's devkit.

    Parameters
    ----------
    place : Place
        A file that `parse_labels` reads, or a devkit that `devkit.is_devkit` recognises.
    images : sequence of str
        Names of the images, sorted.
    are_classes : bool
        Whether labels from 1 to 1000 are class names, not the numbers of the devkit.

    Returns
    -------
    dict of str to str
        Image name, with or without extension, to class.

    Raises
    ------
    SourceError
        The file cannot be read or does not match the images; the message names file and line.
    """
    with name_source_in_errors(place.location):
        if is_devkit(place):
            return read_devkit(place, images)
        content = place.store.read(place.name)
        if not are_classes and is_ground_truth(place.name, content):
            return read_devkit(Place(place.store.location), images, content)
    return parse_labels(content, place.location, images)


def parse_labels(content: bytes, where: object, images: Sequence[str]) -> dict[str, str]:
    """Read the classes of the sorted `images` from text in one of the usual formats.

    These are lines ``name class``, Kaggle's ``LOC_val_solution.csv``, and one class per line in the order
    of the images. Messages refer to the text as `where`.
    """
    # splitlines() would also split at form feeds and the like.
    lines = content.decode("utf-8-sig", "surrogateescape").split("\n")
    rows = [(number, _fields(line.strip())) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise SourceError(f"{where}, line 1: no labels")
    if rows[0][1] == ["ImageId", "PredictionString"]:
        # Boxes follow the class.
        rows = [(number, [row[0], *" ".join(row[1:]).split()[:1]]) for number, row in rows[1:]]
    elif all(len(row) == 1 for _, row in rows):
        if len(rows) != len(images):
            raise SourceError(f"{where}, line {rows[-1][0]}: {len(rows)} labels for {len(images)} images")
        rows = [(number, [name, *row]) for name, (number, row) in zip(images, rows, strict=True)]
    labels: dict[str, str] = {}
    for number, row in rows:
        if len(row) < 2:
            raise SourceError(f"{where}, line {number}: no class for {row[0]!r}")
        name, label = row
        if not is_folder_name(label):
            raise SourceError(f"{where}, line {number}: {label!r} cannot be the name of a class")
        if labels.setdefault(name, label) != label:
            raise SourceError(f"{where}, line {number}: {name!r} was {labels[name]!r} before, now {label!r}")
    return labels


def _fields(line: str) -> list[str]:
    """Split a line at its tabs, or at its last comma, or at its last space."""
    if "\t" in line:
        return [field.strip() for field in line.split("\t")][:2]
    return [field.strip() for field in line.rsplit("," if "," in line else None, 1)]
