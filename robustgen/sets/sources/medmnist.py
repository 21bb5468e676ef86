"""MedMNIST and MedMNIST+ as published: one `.npz` with images and labels of three splits."""

import shutil
import zipfile
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.files.containers import array_files
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.numbered import Rows, UnpackedSource
from robustgen.sets.sources.places import Place

_MOST_CLASSES: Final = 1000


class MedMnist(UnpackedSource):
    """A split of a MedMNIST file such as ``pathmnist_224.npz``; keys are "00000", "00001", ...

    The images are decompressed once into a temporary file.

    Parameters
    ----------
    path : path or URL
    options : Options
        The split is "test", the default, "train" or "val".

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: it contains no such arrays.
    """

    splits = ("test", "train", "val")

    def _read(self) -> Rows:
        with self._place.store.open(self._place.name) as file, zipfile.ZipFile(file) as archive:
            name = f"{self._split}_images"
            _, shape, dtype = array_files.find_array(archive, name)
            if dtype != np.uint8 or len(shape) not in (3, 4) or shape[3:] not in ((), (3,)) or 0 in shape:
                raise ValueError(f"{name}.npy: {dtype} {shape} is not uint8 (N, H, W) or (N, H, W, 3)")
            labels = array_files.read_labels(archive, f"{self._split}_labels")
        # The images need no memory until the first is loaded.
        return Rows(np.broadcast_to(np.uint8(0), shape), *_read_classes(labels, shape[0]))

    def _unpack(self, target: BinaryIO) -> None:
        with self._place.store.open(self._place.name) as file, zipfile.ZipFile(file) as archive:
            member, *_ = array_files.find_array(archive, f"{self._split}_images")
            with archive.open(member) as images:
                shutil.copyfileobj(images, target)

    @property
    def class_labels(self) -> NDArray[np.int64]:
        """Return the labels of each class: its number, or a 0 or 1 for each label of a multi-label set."""
        if self.classes == tuple(map(str, range(len(self.classes)))):
            return super().class_labels
        return np.array([[*map(int, name)] for name in self.classes])


def is_medmnist(place: Place) -> bool:
    """Return True for a NumPy archive with images of a split, such as ``test_images``."""
    if place.is_folder or not place.has_suffix(".npz"):
        return False
    with place.store.open(place.name) as file, zipfile.ZipFile(file) as archive:
        return any(f"{split}_images.npy" in archive.namelist() for split in MedMnist.splits)


KIND: Final = SourceKind(is_medmnist, MedMnist)


def _read_classes(values: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], tuple[str, ...], bool]:
    """Return the class of each of `count` images, the class names, and whether these are bare numbers.

    Multi-label images with the same labels form one class: "00100000000000".
    """
    if len(values) != count:
        raise ValueError(f"{len(values)} labels do not fit {count} images")
    if values.min() < 0 or values.max() > (1 if values.shape[1] > 1 else _MOST_CLASSES - 1):
        raise ValueError(f"labels from {values.min()} to {values.max()}")
    if values.shape[1] == 1:
        return values[:, 0], tuple(map(str, range(int(values.max()) + 1))), True
    texts = ["".join(map(str, row)) for row in values.tolist()]
    names, numbers = np.unique(texts, return_inverse=True)
    return numbers, tuple(names.tolist()), False
