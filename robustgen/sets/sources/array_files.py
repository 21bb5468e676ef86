"""Files and folders with named arrays: `.npy` files, `.npz` archives, MATLAB's `.mat` files."""

import io
import math
import shutil
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.files.containers import array_files
from robustgen.files.containers.archives import HARMLESS_BYTES, MOST_GROWTH
from robustgen.files.containers.array_files import StoredArray
from robustgen.files.storage import Store

Shape = tuple[int, ...]

_MOST_LABEL_BYTES: Final = 1 << 26
# Of MATLAB's classes, those of labels and images.
_DTYPES: Final = {"double": "float64", "single": "float32", "logical": "bool", "char": "U"}


class ArrayFile(ABC):
    """File or folder with named arrays.

    All methods raise an OSError or a ValueError if an array is missing, damaged or too large.

    Attributes
    ----------
    store : Store
    name : str
        Name of the file in the store; "" for the whole folder.
    images : str
        Name of the only array that can be the images; "" if any can.
    """

    images = ""

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, name

    @abstractmethod
    def list_names(self) -> list[str]:
        """Return the names of the arrays."""

    def has(self, name: str) -> bool:
        """Return whether there is an array called `name`."""
        return name in self.list_names()

    @abstractmethod
    def describe(self, name: str) -> tuple[Shape, np.dtype[Any]]:
        """Return shape and dtype of an array, in the order of axes of `write_images`."""

    @abstractmethod
    def read(self, name: str) -> NDArray[Any]:
        """Read an array of labels."""

    @abstractmethod
    def write_images(self, name: str, target: BinaryIO) -> None:
        """Write an array of images, (N, H, W) or (N, H, W, C), as an `.npy` file."""


class NpyFiles(ArrayFile):
    """The `.npy` files of a folder; `name` is the file of the images, or "" if any can be."""

    def __init__(self, store: Store, name: str = "") -> None:
        super().__init__(store, name)
        self.images = name[: -len(".npy")]

    def list_names(self) -> list[str]:
        """Return the names of the files without their suffix."""
        paths = (entry.path for entry in self.store.list() if "/" not in entry.path)
        return [path[: -len(".npy")] for path in paths if path.lower().endswith(".npy")]

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        return self.store.exists(f"{name}.npy")

    def describe(self, name: str) -> tuple[Shape, np.dtype[Any]]:
        """Return shape and dtype of an array."""
        with self._open(name) as array:
            return array.shape, array.dtype

    def read(self, name: str) -> NDArray[Any]:
        """Read an array of labels."""
        with self._open(name) as array:
            _check_labels(name, array.shape, array.dtype)
            return array.read()

    def write_images(self, name: str, target: BinaryIO) -> None:
        """Copy the file of an array."""
        with self.store.open(f"{name}.npy") as file:
            shutil.copyfileobj(file, target)

    @contextmanager
    def _open(self, name: str) -> Iterator[StoredArray]:
        with self.store.open(f"{name}.npy") as file:
            yield StoredArray(file)


class NpzFile(ArrayFile):
    """An archive of arrays."""

    def list_names(self) -> list[str]:
        """Return the names of the arrays."""
        with self._open() as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]

    def describe(self, name: str) -> tuple[Shape, np.dtype[Any]]:
        """Return shape and dtype of an array."""
        with self._open() as archive:
            return array_files.find_array(archive, name)[1:]

    def read(self, name: str) -> NDArray[Any]:
        """Read an array of labels."""
        with self._open() as archive:
            member, shape, dtype = array_files.find_array(archive, name)
            _check_labels(name, shape, dtype)
            labels: NDArray[Any] = np.load(io.BytesIO(archive.read(member)), allow_pickle=False)
            return labels

    def write_images(self, name: str, target: BinaryIO) -> None:
        """Decompress an array."""
        with self._open() as archive, archive.open(array_files.find_array(archive, name)[0]) as images:
            shutil.copyfileobj(images, target)

    @contextmanager
    def _open(self) -> Iterator[zipfile.ZipFile]:
        with self.store.open(self.name) as file, zipfile.ZipFile(file) as archive:
            yield archive


class MatFile(ArrayFile):
    """A file of MATLAB, whose last axis is usually that of the images."""

    @cached_property
    def _listed(self) -> Mapping[str, tuple[Shape, str]]:
        from scipy.io import whosmat

        try:
            with self.store.open(self.name) as file:
                return {name: (shape, kind) for name, shape, kind in whosmat(file)}
        except NotImplementedError:
            raise ValueError("is a file of MATLAB 7.3, which SciPy does not read; save it with -v7") from None

    def list_names(self) -> list[str]:
        """Return the names of the arrays."""
        return [*self._listed]

    def describe(self, name: str) -> tuple[Shape, np.dtype[Any]]:
        """Return shape and dtype of an array, with the images on the first axis."""
        shape, dtype = self._look_up(name)
        return tuple(shape[axis] for axis in _order_axes(name, shape)), dtype

    def read(self, name: str) -> NDArray[Any]:
        """Read an array of labels."""
        _check_labels(name, *self._look_up(name))
        return self._load(name)

    def write_images(self, name: str, target: BinaryIO) -> None:
        """Write an array with the images on the first axis."""
        images = self._load(name)
        np.save(target, np.ascontiguousarray(images.transpose(_order_axes(name, images.shape))))

    def _look_up(self, name: str) -> tuple[Shape, np.dtype[Any]]:
        shape, kind = self._listed[name]
        try:
            dtype = np.dtype(_DTYPES.get(kind, kind))
        except TypeError:
            raise ValueError(f"{name}: is of MATLAB's class {kind}, not an array") from None
        size = math.prod(shape) * dtype.itemsize
        if size > max(HARMLESS_BYTES, MOST_GROWTH * self.store.stat(self.name).size):
            raise ValueError(f"{name}: unpacks to {size} bytes, too large for images")
        return shape, dtype

    def _load(self, name: str) -> NDArray[Any]:
        from scipy.io import loadmat

        with self.store.open(self.name) as file:
            array: NDArray[Any] = loadmat(file, variable_names=[name], chars_as_strings=True)[name]
        return array


def open_array_file(store: Store, name: str) -> ArrayFile:
    """Open the file `name`, whose suffix tells its kind."""
    kinds: dict[str, type[ArrayFile]] = {".npy": NpyFiles, ".npz": NpzFile, ".mat": MatFile}
    if name[-4:].lower() not in kinds:
        raise ValueError(f"not a file of arrays ({', '.join(kinds)})")
    return kinds[name[-4:].lower()](store, name)


def _check_labels(name: str, shape: Shape, dtype: np.dtype[Any]) -> None:
    """Raise a ValueError for an array that cannot contain a label for each image."""
    in_line = max(shape, default=0) == math.prod(shape)
    if not in_line or dtype.kind not in "biufU" or math.prod(shape) * dtype.itemsize > _MOST_LABEL_BYTES:
        way = "; pass one integer for each image, for instance labels.argmax(1)" if not in_line else ""
        raise ValueError(f"{name}: {dtype} {shape} is not an array of labels{way}")


def _order_axes(name: str, shape: Shape) -> tuple[int, ...]:
    """Return the order of axes that puts the images first."""
    if len(shape) == 4 and shape[2] in (1, 3):
        return 3, 0, 1, 2
    if len(shape) == 3 and shape[0] == shape[1]:
        if shape[1] == shape[2]:
            raise ValueError(
                f"{name}: the axis of the images is unclear in {shape}; save it as .npy (N, H, W)"
            )
        return 2, 0, 1
    return tuple(range(len(shape)))
