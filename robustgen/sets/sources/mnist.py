"""MNIST and similar data sets in IDX files, as published: plain or gzipped."""

import gzip
import io
import math
import re
from typing import Final

import numpy as np

from robustgen.files.storage import Store
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Location
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import DEFAULTS, Options, name_source_in_errors
from robustgen.sets.sources.numbered import NumberedSource, Rows
from robustgen.sets.sources.places import Place, find_place

_IMAGES: Final = re.compile(r"(?:.*-)?(t10k|test|train)-images[-.]idx3-ubyte(?:\.gz)?")
# Unsigned bytes (type 8) with three axes and with one.
_IMAGE_MAGIC, _LABEL_MAGIC = 0x803, 0x801
# The largest, EMNIST by class, has 547 MB of images.
_MOST_BYTES: Final = 1 << 30


class Idx(NumberedSource):
    """Grey images in IDX files such as ``t10k-images-idx3-ubyte.gz``, with labels in the same folder.

    Parameters
    ----------
    path : path or URL
        A file of images, or its folder.
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
        store = self._place.folder if self._place.is_folder else self._place.store
        found = find_images(self._place, self._split)
        if len(found) != 1:
            raise ValueError(
                f"needs exactly one file of {self._split} images, found {', '.join(found) or 'none'}"
            )
        labelled = found[0].removesuffix(".gz").replace("-images", "-labels").replace("idx3", "idx1")
        if not store.exists(labelled):
            labelled += ".gz"
        labels, images = _read_idx(store, labelled, _LABEL_MAGIC), _read_idx(store, found[0], _IMAGE_MAGIC)
        if len(images) != len(labels):
            raise ValueError(f"{labelled}: {len(labels)} labels for {len(images)} images")
        classes = tuple(map(str, range(max(10, int(labels.max()) + 1))))
        return Rows(images, labels.astype(np.int64), classes, are_numbers=True)


def is_idx(place: Place) -> bool:
    """Return True for a file of IDX images, or a folder that contains one."""
    return any(find_images(place, split) for split in ("test", "train"))


KIND: Final = SourceKind(is_idx, Idx)


def find_images(place: Place, split: str) -> list[str]:
    """Return the names of the image files of a split; prefer a plain file to its compressed copy."""
    names = place.children if place.is_folder else [place.name]
    # In this order, a plain file overwrites its compressed copy.
    plain = {name.removesuffix(".gz"): name for name in sorted(names, reverse=True)}
    return [name for name in plain.values() if _split_of(name) == split]


def _split_of(name: str) -> str | None:
    found = _IMAGES.fullmatch(name)
    return "train" if found and found[1] == "train" else "test" if found else None


def _read_idx(store: Store, name: str, magic: int) -> Rgb:
    """Read an array of bytes; raise a SourceError that names the file if its magic number is another."""
    with name_source_in_errors(f"{store.location}/{name}"):
        data = store.read(name, size=_MOST_BYTES + 1)
        if name.endswith(".gz"):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        start = 4 + 4 * (magic & 0xFF)
        found, *shape = np.frombuffer(data[:start].ljust(start, b"\0"), ">u4").tolist()
        if found != magic:
            raise ValueError(f"magic number is {found:#010x}; IDX files of this kind have {magic:#010x}")
        there = max(0, len(data) - start)
        if there != math.prod(shape) or not there:
            raise ValueError(f"damaged: {there} bytes for an array of shape {tuple(shape)}")
        return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
