"""MNIST and its relatives in IDX files, as published: plain or compressed by gzip."""

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
# torchvision's layout too.
_FOLDERS: Final = ("", "raw", "MNIST/raw")
# A bytes type (8) in three axes and in one.
_IMAGE_MAGIC, _LABEL_MAGIC = 0x803, 0x801
# The largest, EMNIST by class, has 547 MB of images.
_MOST_BYTES: Final = 1 << 30


class Idx(NumberedSource):
    """Grey images in IDX files such as ``t10k-images-idx3-ubyte.gz``, with the labels beside them.

    Parameters
    ----------
    path : path or URL
        A file of images, its folder, or the folder above of torchvision's layout.
    split : {"test", "train"}, optional
        By default that of the file, or the test images of a folder.

    Raises
    ------
    SourceError
        There is nothing at `path`. From everything else: it holds no such split, or damaged files.
    """

    def __init__(self, path: Location | Place, split: str | None = None) -> None:
        place = find_place(path)
        own = _split_of(place.name) if not place.is_folder else None
        super().__init__(place, split or own or "test")
        check_split(self.location, self._split, (own,) if own else ("test", "train"))

    def _read(self) -> Rows:
        return _read_files(*(place.file for place in self._find()))

    def _find(self) -> tuple[Place, Place]:
        """Find the files of images and of labels."""
        found = find_images(self._place, self._split)
        if len(found) != 1:
            there = "none" if not found else ", ".join(each.name for each in found)
            raise SourceError(
                f"{self.location}: one file of {self._split} images is needed, there is {there}"
            )
        folder = Place(found[0].store.location)
        plain = found[0].name.removesuffix(".gz").replace("-images", "-labels").replace("idx3", "idx1")
        for name in (plain, f"{plain}.gz"):
            if folder.has(name):
                return found[0], folder.below(name)
        raise SourceError(f"{self.location}: {plain}, the labels of its images, is missing")


def is_idx(place: Place) -> bool:
    """Return True for a file of IDX images, or a folder that has some."""
    if not place.is_folder:
        return _split_of(place.name) is not None
    return any(find_images(place, split) for split in ("test", "train"))


def find_images(place: Place, split: str) -> list[Place]:
    """Find the files of images of a split; of two of one name, the plain one."""
    if not place.is_folder:
        return [place] if _split_of(place.name) == split else []
    for folder in _FOLDERS:
        if folder and folder.partition("/")[0] not in place.children:
            continue
        inside = place.below(folder) if folder else place
        children = inside.children if inside.is_folder else ()
        # The plain one of two overwrites the compressed one.
        names = {name.removesuffix(".gz"): name for name in sorted(children, reverse=True)}
        if found := [inside.below(name) for name in names.values() if _split_of(name) == split]:
            return found
    return []


def _split_of(name: str) -> str | None:
    found = _IMAGES.fullmatch(name)
    return _SPLITS[found[1]] if found else None


# Worker processes unpickle a source with each task; they shall not read the files as often.
@lru_cache(maxsize=1)
def _read_files(images: SourceFile, labels: SourceFile) -> Rows:
    pictures, classes = _read_idx(images, _IMAGE_MAGIC), _read_idx(labels, _LABEL_MAGIC)
    if len(pictures) != len(classes):
        raise SourceError(f"{labels.name}: {len(classes)} labels for {len(pictures)} images")
    names = tuple(map(str, range(max(10, int(classes.max()) + 1))))
    return Rows.collect(pictures, classes.astype(np.int64), names)


def _read_idx(file: SourceFile, magic: int) -> Rgb:
    """Read an array of bytes; a SourceError that names the file if it is none of the wanted magic."""
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
            raise ValueError(f"magic number {found:#010x}, where IDX files of this kind have {magic:#010x}")
        start = 4 + 4 * (magic & 0xFF)
        shape = tuple(map(int, np.frombuffer(data[4:start].ljust(start - 4, b"\0"), ">u4")))
        there, wanted = max(0, len(data) - start), math.prod(shape)
        if there < wanted or len(data) < start:
            raise ValueError(f"truncated: {there} bytes for an array of shape {shape}")
        if there > wanted or not wanted:
            raise ValueError(f"no IDX file: {there} bytes for an array of shape {shape}")
    values: Rgb = np.frombuffer(data, np.uint8, offset=start).reshape(shape)
    return values
