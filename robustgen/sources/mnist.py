"""MNIST and similar data sets in IDX files, as published: plain or gzipped."""

import io
import math
import re
from functools import lru_cache
from typing import Final

import numpy as np

from robustgen.containers.compressed import unpack
from robustgen.errors import SourceError
from robustgen.imaging.decode import Location
from robustgen.imaging.pixels import Rgb
from robustgen.sources.base import blame_source, check_split
from robustgen.sources.numbered import NumberedSource, Rows
from robustgen.sources.places import Place, SourceFile, find_place

_IMAGES: Final = re.compile(r"(?:.*-)?(t10k|test|train)-images[-.]idx3-ubyte(?:\.gz)?")
_SPLITS: Final = {"t10k": "test", "test": "test", "train": "train"}
# Includes torchvision's layout.
_FOLDERS: Final = ("", "raw", "MNIST/raw")
# Unsigned bytes (type 8) with three axes and with one.
_IMAGE_MAGIC, _LABEL_MAGIC = 0x803, 0x801
# The largest, EMNIST by class, has 547 MB of images.
_MOST_BYTES: Final = 1 << 30


class Idx(NumberedSource):
    """Grey images in IDX files such as ``t10k-images-idx3-ubyte.gz``, with labels in the same folder.

    Parameters
    ----------
    path : path or URL
        A file of images, its folder, or the root folder of torchvision's layout.
    split : {"test", "train"}, optional
        Default: the split of the file, or the test images of a folder.

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: the split is missing, or a file is damaged.
    """

    def __init__(self, path: Location | Place, split: str | None = None) -> None:
        place = find_place(path)
        own = _split_of(place.name) if not place.is_folder else None
        super().__init__(place, split or own or "test")
        check_split(self.location, self._split, (own,) if own else ("test", "train"))

    def _read(self) -> Rows:
        return _read_files(*(place.file for place in self._find()))

    def _find(self) -> tuple[Place, Place]:
        """Return the files of images and of labels."""
        found = find_images(self._place, self._split)
        if len(found) != 1:
            there = "none" if not found else ", ".join(each.name for each in found)
            raise SourceError(
                f"{self.location}: needs exactly one file of {self._split} images, found {there}"
            )
        folder = Place(found[0].store.location)
        plain = found[0].name.removesuffix(".gz").replace("-images", "-labels").replace("idx3", "idx1")
        for name in (plain, f"{plain}.gz"):
            if folder.has(name):
                return found[0], folder.below(name)
        raise SourceError(f"{self.location}: labels file {plain} is missing")


def is_idx(place: Place) -> bool:
    """Return True for a file of IDX images, or a folder that contains one."""
    if not place.is_folder:
        return _split_of(place.name) is not None
    return any(find_images(place, split) for split in ("test", "train"))


def find_images(place: Place, split: str) -> list[Place]:
    """Return the image files of a split; prefer a plain file to its compressed copy."""
    if not place.is_folder:
        return [place] if _split_of(place.name) == split else []
    for folder in _FOLDERS:
        if folder and folder.partition("/")[0] not in place.children:
            continue
        inside = place.below(folder) if folder else place
        children = inside.children if inside.is_folder else ()
        # In this order, a plain file overwrites its compressed copy.
        names = {name.removesuffix(".gz"): name for name in sorted(children, reverse=True)}
        if found := [inside.below(name) for name in names.values() if _split_of(name) == split]:
            return found
    return []


def _split_of(name: str) -> str | None:
    found = _IMAGES.fullmatch(name)
    return _SPLITS[found[1]] if found else None


# Worker processes unpickle a source with each task, but need not read the files again.
@lru_cache(maxsize=1)
def _read_files(images: SourceFile, labels: SourceFile) -> Rows:
    pictures, classes = _read_idx(images, _IMAGE_MAGIC), _read_idx(labels, _LABEL_MAGIC)
    if len(pictures) != len(classes):
        raise SourceError(f"{labels.name}: {len(classes)} labels for {len(pictures)} images")
    names = tuple(map(str, range(max(10, int(classes.max()) + 1))))
    return Rows.collect(pictures, classes.astype(np.int64), names)


def _read_idx(file: SourceFile, magic: int) -> Rgb:
    """Read an array of bytes; raise a SourceError that names the file if its magic number is another."""
    where = f"{file.store.location}/{file.name}"
    with blame_source(where):
        data = file.store.read(file.name, size=_MOST_BYTES + 1)
        if file.name.endswith(".gz"):
            plain = io.BytesIO()
            if damage := unpack(io.BytesIO(data), file.name, len(data), plain.write):
                raise ValueError(damage)
            data = plain.getvalue()
        if len(data) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        found = int.from_bytes(data[:4], "big")
        if len(data) < 4 or found != magic:
            raise ValueError(f"magic number is {found:#010x}; IDX files of this kind have {magic:#010x}")
        start = 4 + 4 * (magic & 0xFF)
        shape = tuple(map(int, np.frombuffer(data[4:start].ljust(start - 4, b"\0"), ">u4")))
        there, wanted = max(0, len(data) - start), math.prod(shape)
        if there < wanted or len(data) < start:
            raise ValueError(f"truncated: {there} bytes for an array of shape {shape}")
        if there > wanted or not wanted:
            raise ValueError(f"not an IDX file: {there} bytes for an array of shape {shape}")
    values: Rgb = np.frombuffer(data, np.uint8, offset=start).reshape(shape)
    return values
