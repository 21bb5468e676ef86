"""The development kit of ILSVRC 2012: what class each validation image is of."""

import io
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from robustgen.errors import SourceError
from robustgen.regular_file import open_regular, read_regular
from robustgen.sources.tar_members import BoundedHeader

_GROUND_TRUTH, _META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
_IMAGES, _CLASSES = 50_000, 1000
# Published are 0.2 MB and 0.5 MB.
_MOST_BYTES = 1 << 24
_IMAGE_NAME = re.compile(r"ILSVRC2012_val_(\d{8})\.")


def is_devkit(path: Path) -> bool:
    """Whether `path` is the folder of the devkit, or an archive of that name."""
    if path.is_dir():
        return any((folder / _GROUND_TRUTH).is_file() for folder in (path, path / "data"))
    return "devkit" in path.name and path.name.endswith((".tar.gz", ".tgz", ".tar"))


def is_ground_truth(content: bytes) -> bool:
    """Whether this is the devkit's file of labels: 50 000 lines, each a number from 1 to 1000."""
    lines = content.split()
    if len(lines) != _IMAGES or len(content) > 6 * _IMAGES:
        return False
    return all(line.isdigit() and 1 <= int(line) <= _CLASSES for line in lines)


def read_devkit(path: Path, images: Sequence[str]) -> dict[str, str]:
    """Read the classes (WordNet ids) of the sorted `images` from the devkit's folder or archive.

    Raises
    ------
    SourceError
        One of its two files is missing or malformed, or there are other images than it has labels for.
    """
    return _join(path, _read_folder(path) if path.is_dir() else _read_archive(path), images)


def read_devkit_beside(path: Path, images: Sequence[str]) -> dict[str, str]:
    """Read the classes of `images`, as `read_devkit` does, from the ground truth and the rest beside it."""
    meta = path.with_name(_META)
    if not meta.is_file():
        raise SourceError(
            f"{path}: these are numbers of the devkit, not classes, and {_META} is not beside it to tell "
            "which: give the archive ILSVRC2012_devkit_t12.tar.gz itself as --labels"
        )
    return _join(path, {_GROUND_TRUTH: read_regular(path), _META: read_regular(meta, _MOST_BYTES)}, images)


def _read_folder(path: Path) -> dict[str, bytes]:
    data = path if (path / _GROUND_TRUTH).is_file() else path / "data"
    files = [data / name for name in (_GROUND_TRUTH, _META)]
    return {file.name: read_regular(file, _MOST_BYTES) for file in files if file.is_file()}


def _read_archive(path: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with open_regular(path) as file, tarfile.open(fileobj=file, mode="r:*", tarinfo=BoundedHeader) as archive:
        for member in archive:
            name = PurePosixPath(member.name).name
            if member.offset_data > 4 * _MOST_BYTES:
                break
            if name in (_GROUND_TRUTH, _META) and member.isreg() and member.size <= _MOST_BYTES:
                content = archive.extractfile(member)
                files[name] = content.read() if content else b""
    return files


def _join(path: Path, files: dict[str, bytes], images: Sequence[str]) -> dict[str, str]:
    for name in (_GROUND_TRUTH, _META):
        if name not in files:
            raise SourceError(f"{path}: holds no {name}")
    wnids = _read_wnids(path, files[_META])
    numbers = [int(line) for line in files[_GROUND_TRUTH].split()]
    if not {*numbers} <= wnids.keys():
        raise SourceError(f"{path}: {_GROUND_TRUTH} has numbers that {_META} has not")
    return {name: wnids[numbers[row]] for name, row in _rows(path, images, len(numbers)).items()}


def _rows(path: Path, images: Sequence[str], labels: int) -> dict[str, int]:
    """Which label is whose: by the number in the name of the image, or by the order if names are others."""
    found = {name: _IMAGE_NAME.match(name) for name in images}
    rows = {name: int(match[1]) - 1 for name, match in found.items() if match}
    if len(rows) == len(images) and all(0 <= row < labels for row in rows.values()):
        return rows
    if len(images) != labels:
        raise SourceError(f"{path}: {labels} labels for {len(images)} images, whose names do not tell which")
    return {name: row for row, name in enumerate(images)}


def _read_wnids(path: Path, content: bytes) -> dict[int, str]:
    """WordNet id by the number of a class."""
    from scipy.io import loadmat

    try:
        synsets: Any = loadmat(io.BytesIO(content), squeeze_me=True, variable_names=["synsets"])["synsets"]
        pairs = zip(synsets["ILSVRC2012_ID"], synsets["WNID"], strict=True)
        wnids = {int(number): str(wnid) for number, wnid in pairs}
    except Exception as error:
        raise SourceError(f"{path}: {_META} is not the devkit's: {error}") from error
    wrong = [wnid for wnid in wnids.values() if not re.fullmatch(r"n\d{8}", wnid)]
    if wrong:
        raise SourceError(f"{path}: {_META} has {wrong[0]!r} in the place of a WordNet id")
    return wnids
