"""Development kit of ILSVRC 2012: the class of each validation image."""

import io
import re
from collections.abc import Sequence
from typing import Any, Final

from robustgen.errors import SourceError
from robustgen.sets.sources.named_files import read_named_files
from robustgen.sets.sources.places import Place

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
                "add --labels-are-classes"
            )
    wnids = _read_wnids(place.location, files[_META])
    numbers = [int(line) for line in files[_GROUND_TRUTH].split()]
    if not {*numbers} <= wnids.keys():
        raise SourceError(f"{place.location}: {_GROUND_TRUTH} has numbers that {_META} lacks")
    rows = {name: int(found[1]) for name in images if (found := _IMAGE_NAME.match(name))}
    return {name: wnids[numbers[row - 1]] for name, row in rows.items() if 1 <= row <= len(numbers)}


def _read_wnids(where: str, content: bytes) -> dict[int, str]:
    """Read the WordNet id of each class, by class number."""
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
