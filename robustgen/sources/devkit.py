"""Development kit of ILSVRC 2012: the class of each validation image."""

import io
import re
from collections.abc import Sequence
from typing import Any, Final

from robustgen.errors import SourceError
from robustgen.sources.named_files import read_named_files
from robustgen.sources.places import Place

_GROUND_TRUTH, _META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
_FOLDER = "data"
_CLASSES = 1000
# The published files have 0.2 MB and 0.5 MB.
_MOST_BYTES: Final = 1 << 24
_IMAGE_NAME = re.compile(r"ILSVRC2012_val_(\d{8})\.")


def is_devkit(place: Place) -> bool:
    """Return True for the folder of the devkit, or an archive with that name."""
    if place.is_folder and place.store.is_local:
        return any(map(place.has, (_GROUND_TRUTH, f"{_FOLDER}/{_GROUND_TRUTH}")))
    return "devkit" in place.name and place.name.endswith((".tar.gz", ".tgz", ".tar"))


def is_ground_truth(name: str, content: bytes) -> bool:
    """Return True for the devkit's labels: known by the file name, or by containing only 1 to 1000."""
    lines = [line.strip() for line in content.splitlines() if line.strip()]
    short = all(len(line) <= len(str(_CLASSES)) and line.isdigit() for line in lines)
    return name == _GROUND_TRUTH or (
        bool(lines) and short and all(1 <= int(line) <= _CLASSES for line in lines)
    )


def read_devkit(place: Place, images: Sequence[str]) -> dict[str, str]:
    """Read the classes (WordNet ids) of the sorted `images` from the devkit's folder or archive.

    Raises
    ------
    SourceError
        One of its two files is missing or malformed, or the labels do not match the images.
    """
    files = read_named_files(place, (_GROUND_TRUTH, _META), (_FOLDER,), _MOST_BYTES)
    return _join(place.location, files, images)


def read_devkit_beside(place: Place, ground_truth: bytes, images: Sequence[str]) -> dict[str, str]:
    """Read the classes of `images` from the ground truth and the other devkit file next to it."""
    if not place.store.exists(_META):
        raise SourceError(
            f"{place.location}: contains class numbers of the devkit, but {_META}, which names the classes, "
            "is not in this folder. Pass the archive ILSVRC2012_devkit_t12.tar.gz with --labels; if the "
            "numbers are your own classes, add --labels-are-classes"
        )
    files = {_GROUND_TRUTH: ground_truth, _META: place.store.read(_META, size=_MOST_BYTES)}
    return _join(place.location, files, images)


def _join(where: str, files: dict[str, bytes], images: Sequence[str]) -> dict[str, str]:
    for name in (_GROUND_TRUTH, _META):
        if name not in files:
            raise SourceError(f"{where}: contains no {name}")
    wnids = _read_wnids(where, files[_META])
    numbers = [int(line) for line in files[_GROUND_TRUTH].split()]
    if not {*numbers} <= wnids.keys():
        raise SourceError(f"{where}: {_GROUND_TRUTH} has numbers that {_META} lacks")
    return {name: wnids[numbers[row]] for name, row in _rows(where, images, len(numbers)).items()}


def _rows(where: str, images: Sequence[str], labels: int) -> dict[str, int]:
    """Return the row of each image's label: by the number in its name, or by order for other names."""
    found = {name: _IMAGE_NAME.match(name) for name in images}
    rows = {name: int(match[1]) - 1 for name, match in found.items() if match}
    if len(rows) == len(images) and all(0 <= row < labels for row in rows.values()):
        return rows
    if len(images) != labels:
        raise SourceError(f"{where}: {labels} labels for {len(images)} images, whose names have no numbers")
    return {name: row for row, name in enumerate(images)}


def _read_wnids(where: str, content: bytes) -> dict[int, str]:
    """Read the WordNet id of each class, by class number."""
    from scipy.io import loadmat

    try:
        synsets: Any = loadmat(io.BytesIO(content), squeeze_me=True, variable_names=["synsets"])["synsets"]
        pairs = zip(synsets["ILSVRC2012_ID"], synsets["WNID"], strict=True)
        wnids = {int(number): str(wnid) for number, wnid in pairs}
    except Exception as error:
        raise SourceError(f"{where}: {_META} is not the devkit's: {error}") from error
    wrong = [wnid for wnid in wnids.values() if not re.fullmatch(r"n\d{8}", wnid)]
    if wrong:
        raise SourceError(f"{where}: {_META} has {wrong[0]!r} in place of a WordNet id")
    return wnids
