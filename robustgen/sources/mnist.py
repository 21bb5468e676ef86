"""MNIST and similar data sets in IDX files, as published: plain or gzipped."""

import gzip
import io
import math
import re
from typing import Final

import numpy as np

from robustgen.errors import SourceError
from robustgen.imaging.decode import Location
from robustgen.imaging.pixels import Rgb
from robustgen.sources.base import DEFAULTS, Options, blame_source
from robustgen.sources.numbered import NumberedSource, Rows
from robustgen.sources.places import Place, find_place

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
    options : Options
        The split is "test" or "train". Default: the split of the file, or the test images of a folder.

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: the split is missing, or a file is damaged.
    """

    def __init__(self, path: Location | Place, options: Options = DEFAULTS) -> None:
        place = find_place(path)
        if own := None if place.is_folder else _split_of(place.name):
            self.splits = (own,)
        super().__init__(place, options)

    def _read(self) -> Rows:
        files = self._find()
        images, labels = _read_idx(files[0], _IMAGE_MAGIC), _read_idx(files[1], _LABEL_MAGIC)
        if len(images) != len(labels):
            raise SourceError(f"{files[1].name}: {len(labels)} labels for {len(images)} images")
        classes = tuple(map(str, range(max(10, int(labels.max()) + 1))))
        return Rows(images, labels.astype(np.int64), classes)

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
        inside = place.below(folder) if folder else place
        if folder.partition("/")[0] in ("", *place.children) and inside.is_folder:
            # In this order, a plain file overwrites its compressed copy.
            names = {name.removesuffix(".gz"): name for name in sorted(inside.children, reverse=True)}
            if found := [inside.below(name) for name in names.values() if _split_of(name) == split]:
                return found
    return []


def _split_of(name: str) -> str | None:
    found = _IMAGES.fullmatch(name)
    return _SPLITS[found[1]] if found else None


def _read_idx(place: Place, magic: int) -> Rgb:
    """Read an array of bytes; raise a SourceError that names the file if its magic number is another."""
    with blame_source(place.location):
        data = place.store.read(place.name, size=_MOST_BYTES + 1)
        if place.has_suffix(".gz"):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        found = int.from_bytes(data[:4], "big")
        if found != magic:
            raise ValueError(f"magic number is {found:#010x}; IDX files of this kind have {magic:#010x}")
        start = 4 + 4 * (magic & 0xFF)
        shape = tuple(np.frombuffer(data[4:start].ljust(start - 4, b"\0"), ">u4").tolist())
        there = max(0, len(data) - start)
        if there != math.prod(shape) or not there:
            raise ValueError(f"damaged: {there} bytes for an array of shape {shape}")
        return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
