"""Label files of images in any of the usual formats, and the development kit of ILSVRC 2012."""

import io
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from robustgen.errors import SourceError
from robustgen.files.text_files import parse_object
from robustgen.sets.sources.base import name_source_in_errors
from robustgen.sets.sources.classes import is_folder_name
from robustgen.sets.sources.places import Place, read_named_files

_IN_JSON: Final = ("cls", "label", "class", "class_id")
_MOST_LABEL_BYTES: Final = 1 << 20

Label = int | str
"""Number or name of a class."""


def check_label_size(size: int) -> None:
    """Raise a ValueError if a file with so many bytes is too large for the label of one image."""
    if size > _MOST_LABEL_BYTES:
        raise ValueError(f"{size} bytes")


def parse_label(content: bytes, *, in_json: bool) -> Label | None:
    """Return the label in a file that belongs to one image; None if there is none.

    Raises
    ------
    ValueError
        It is not JSON, or the label cannot be the name of a class.
    """
    label: Any = content.decode().strip()
    if in_json:
        found = parse_object(label)
        label = next((found[word] for word in _IN_JSON if word in found), None)
    if isinstance(label, str) and re.fullmatch(r"-?\d{1,9}", label):
        label = int(label)
    if label is None or isinstance(label, int):
        # The library `datasets` marks hidden labels with -1.
        return None if label is None or label < 0 else label
    if isinstance(label, str) and is_folder_name(label):
        return label
    raise ValueError(f"{str(label)[:40]!r} cannot be the name of a class")


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

    These are lines ``name class``, Kaggle's ``LOC_val_solution.csv``, ``metadata.jsonl`` of the Hugging Face
    Hub, and one class per line in the order of the images. Messages refer to the text as `where`.
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
    """Split a line at its tabs, or at its last comma, or at its last space; read one of JSON."""
    with suppress(ValueError):
        found = parse_object(line) if line.startswith("{") else {}
        if name := found.get("file_name"):
            return [str(name), *[str(found[word]) for word in _IN_JSON if found.get(word) is not None][:1]]
    if "\t" in line:
        return [field.strip() for field in line.split("\t")][:2]
    return [field.strip() for field in line.rsplit("," if "," in line else None, 1)]


# --- ImageNet's development kit ------------------------------------------------------------------


_GROUND_TRUTH, _META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
_FOLDER = "data"
# The published files have 0.2 MB and 0.5 MB.
_MOST_BYTES: Final = 1 << 24
_IMAGE_NAME = re.compile(r"ILSVRC2012_val_(\d{8})\.")


def is_devkit(place: Place) -> bool:
    """Return True for the folder of the devkit, or an archive with that name."""
    if place.is_folder and place.store.is_local:
        return any(map(place.folder.exists, (_GROUND_TRUTH, f"{_FOLDER}/{_GROUND_TRUTH}")))
    return "devkit" in place.name and place.name.endswith((".tar.gz", ".tgz", ".tar"))


def is_ground_truth(name: str, content: bytes) -> bool:
    """Return True for the devkit's labels: known by the file name, or by containing only 1 to 1000."""
    lines = [line for line in map(bytes.strip, content.splitlines()) if line]
    are_numbers = all(re.fullmatch(rb"1000|[1-9]\d{0,2}", line) for line in lines)
    return name == _GROUND_TRUTH or (bool(lines) and are_numbers)


def read_devkit(place: Place, images: Sequence[str], ground_truth: bytes | None = None) -> dict[str, str]:
    """Read the classes (WordNet ids) of the `images` from the devkit's folder or archive.

    Parameters
    ----------
    place : Place
    images : sequence of str
        Names such as ``ILSVRC2012_val_00000001.JPEG``; others get no class.
    ground_truth : bytes, optional
        Content of the file of labels, if it has another name or is in another folder.

    Raises
    ------
    SourceError
        One of its two files is missing or malformed.
    """
    files = read_named_files(place, (_GROUND_TRUTH, _META), (_FOLDER,), _MOST_BYTES)
    if ground_truth is not None:
        files[_GROUND_TRUTH] = ground_truth
    for name in (_GROUND_TRUTH, _META):
        if name not in files:
            raise SourceError(
                f"{place.location}: contains no {name}, which the class numbers of the devkit need. Pass the "
                "archive ILSVRC2012_devkit_t12.tar.gz with --labels; if the numbers are your own classes, "
                "set labels_are_classes"
            )
    wnids = _read_wnids(place.location, files[_META])
    numbers = [int(line) for line in files[_GROUND_TRUTH].split()]
    if not {*numbers} <= wnids.keys():
        raise SourceError(f"{place.location}: {_GROUND_TRUTH} has numbers that {_META} lacks")
    rows = {name: int(found[1]) for name in images if (found := _IMAGE_NAME.match(name))}
    return {name: wnids[numbers[row - 1]] for name, row in rows.items() if 1 <= row <= len(numbers)}


def _read_wnids(where: str, content: bytes) -> dict[int, str]:
    from scipy.io import loadmat

    try:
        synsets: Any = loadmat(io.BytesIO(content), squeeze_me=True, variable_names=["synsets"])["synsets"]
        pairs = zip(synsets["ILSVRC2012_ID"], synsets["WNID"], strict=True)
        wnids = {int(number): str(wnid) for number, wnid in pairs}
    except Exception as error:
        raise SourceError(f"{where}: {_META} is not the devkit's: {error}") from error
    if wrong := [wnid for wnid in wnids.values() if not re.fullmatch(r"n\d{8}", wnid)]:
        raise SourceError(f"{where}: {_META} has {wrong[0]!r} in place of a WordNet id")
    return wnids
