"""Arrays of images with their labels: `.npy` files, `.npz` archives, MATLAB's `.mat` files."""

import hashlib
import io
import math
import re
import shutil
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from robustgen.errors import ImageError
from robustgen.files.containers import array_files
from robustgen.files.containers.archives import HARMLESS_BYTES, MOST_GROWTH
from robustgen.files.containers.array_files import StoredArray
from robustgen.files.storage import Store
from robustgen.files.text_files import parse_object, split_names
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Levels, Location, as_rgb, name_image_in_errors, scale_levels
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import (
    DEFAULTS,
    Source,
    SourceOptions,
    check_split,
    class_of,
    name_source_in_errors,
)
from robustgen.sets.sources.classes import CLASS_NAMES, KEYS, name_folders, sort_classes
from robustgen.sets.sources.files import Copies
from robustgen.sets.sources.labels import ImageNames, parse_labels
from robustgen.sets.sources.places import ARRAYS, Place, SourceFile, find_place
from robustgen.sets.sources.rows import ask
from robustgen.sets.sources.trees import is_image

_FEWEST_DIGITS = 5


class ArrayRows(NamedTuple):
    """Images of a source.

    Attributes
    ----------
    images : uint8 ndarray of shape (N, H, W, 3) or (N, H, W)
    labels : int64 ndarray of shape (N,)
    classes : tuple of str
        Names of the classes, in the order of the labels.
    are_numbers : bool
        Whether the classes are bare numbers, of which there may be more.
    keys : tuple of str
        Names of the images; () if they are numbered.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import ArrayRows
    >>> rows = ArrayRows(np.zeros((2, 32, 32, 3), np.uint8), np.array([0, 1]), ("cat", "dog"))
    >>> rows.classes[rows.labels[1]]
    'dog'
    """

    images: Rgb
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    are_numbers: bool = False
    keys: tuple[str, ...] = ()


class NumberedSource(Source):
    """Images in the rows of an array, with one label each; keys are row numbers.

    Parameters
    ----------
    path : path or URL
    options : SourceOptions

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from robustgen.plugins import ArrayRows, NumberedSource
    >>> class Stack(NumberedSource):
    ...     def _read(self):
    ...         images = np.load(Path(self.location))
    ...         return ArrayRows(images, np.zeros(len(images), np.int64), ("all",))
    >>> np.save("stack.npy", np.zeros((2, 32, 32, 3), np.uint8))
    >>> source = Stack("stack.npy")
    >>> source.keys(), source.classes
    (('00000', '00001'), ('all',))
    """

    splits: tuple[str, ...] = ("test", "train")
    """Names of the splits; the first is the default."""

    def __init__(self, path: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        self._place = find_place(path)
        super().__init__(self._place.location)
        self._split = check_split(self.location, options.split or self.splits[0], self.splits)

    @abstractmethod
    def _read(self) -> ArrayRows:
        """Read the images and their labels."""

    @cached_property
    def _rows(self) -> ArrayRows:
        with name_source_in_errors(self.location):
            rows = self._read()
            return rows._replace(classes=tuple(name_folders(rows.classes)))

    @property
    def images(self) -> Rgb:
        """Return all images: uint8 ndarray of shape (N, H, W, 3) or (N, H, W)."""
        return self._rows.images

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of `images`."""
        return self._rows.images.shape

    @property
    def labels(self) -> NDArray[np.int64]:
        """Return all labels: int64 ndarray of shape (N,)."""
        return self._rows.labels

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the class names in the order of the labels; digits if the classes have no names."""
        return self._rows.classes

    @property
    def class_count(self) -> int | None:
        """Return the number of classes; None if they are bare numbers, of which there may be more."""
        return None if self._rows.are_numbers else len(self.classes)

    @property
    def lacks_folders(self) -> bool:
        """Return True: keys are numbers of rows."""
        return True

    def tree_path(self, key: str) -> str:
        """Return ``<class>/<row number>``; a name that has a folder stays as it is."""
        return key if "/" in key else f"{self.classes[self.label(key)]}/{key}"

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return self._rows.keys or number_rows(len(self.labels))

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {key: index for index, key in enumerate(self._keys)}

    @cached_property
    def _identities(self) -> dict[int, str]:
        # Each array of a set is a unit of its own, which reads all images.
        return {}

    def keys(self) -> tuple[str, ...]:
        """Return the names of the rows in order, usually their numbers."""
        return self._keys

    def load(self, key: str) -> Rgb:
        """Return a copy of one image: uint8 (H, W, 3); raise an ImageError if `key` is unknown."""
        return as_rgb(self.read(key)[0])

    def read(self, key: str) -> tuple[Rgb | Image.Image, str]:
        """Return a copy of one image and the identity of its bytes."""
        index = self._index(key)
        image = self.images[index]
        if index not in self._identities:
            self._identities[index] = hashlib.sha256(image.tobytes()).hexdigest()[:16]
        return as_rgb(image).copy(), self._identities[index]

    def label(self, key: str) -> int:
        """Return the label of one image; raise an ImageError if `key` is unknown."""
        return int(self.labels[self._index(key)])

    def size(self, key: str) -> int:
        """Return the size of one image in bytes; raise an ImageError if `key` is unknown."""
        self._index(key)
        return int(self._rows.images[0].nbytes)

    @cached_property
    def _stamp(self) -> str:
        """Return the stamps of all files of the place; "" for a pattern."""
        if self._place.is_pattern:
            return ""
        if self._place.is_folder:
            return ",".join(entry.stamp for entry in self._place.folder.list())
        return SourceFile.look(self._place.store, self._place.name).stamp

    def stat(self, key: str) -> tuple[int, str]:
        """Return the size of one image in bytes, and the stamp of the files."""
        return self.size(key), self._stamp

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image in pixels; raise an ImageError if `key` is unknown."""
        self._index(key)
        return self.shape[2], self.shape[1]

    def _index(self, key: str) -> int:
        try:
            return self._indices[key]
        except KeyError:
            raise ImageError(f"no such image in {self.location}", key) from None


def number_rows(count: int) -> tuple[str, ...]:
    """Return the keys of so many images without names: "00000", "00001", ..."""
    digits = max(_FEWEST_DIGITS, len(str(count - 1)))
    return tuple(f"{row:0{digits}d}" for row in range(count))


# --- files of arrays -----------------------------------------------------------------------------


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

    def read(self, name: str, *, several: bool = False) -> NDArray[Any]:
        """Read an array of labels, of which an image may have `several`."""
        with self._open() as archive:
            member, shape, dtype = array_files.find_array(archive, name)
            _check_labels(name, shape, dtype, several=several)
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
                return {name: (shape, dtype) for name, shape, dtype in whosmat(file)}
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
        shape, class_name = self._listed[name]
        try:
            dtype = np.dtype(_DTYPES.get(class_name, class_name))
        except TypeError:
            raise ValueError(f"{name}: is of MATLAB's class {class_name}, not an array") from None
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
    """Open the file `name`, whose suffix tells its format."""
    readers: dict[str, type[ArrayFile]] = {".npy": NpyFiles, ".npz": NpzFile, ".mat": MatFile}
    if name[-4:].lower() not in readers:
        raise ValueError(f"not a file of arrays ({', '.join(readers)})")
    return readers[name[-4:].lower()](store, name)


def _check_labels(name: str, shape: Shape, dtype: np.dtype[Any], *, several: bool = False) -> None:
    """Raise a ValueError for an array that cannot contain a label for each image, or `several`."""
    in_line = max(shape, default=0) == math.prod(shape) or (several and len(shape) == 2)
    if not in_line or dtype.kind not in "biufU" or math.prod(shape) * dtype.itemsize > _MOST_LABEL_BYTES:
        way = "; pass one integer for each image, for instance labels.argmax(1)" if not in_line else ""
        raise ValueError(f"{name}: {dtype} {shape} is not an array of labels{way}")


def _order_axes(name: str, shape: Shape) -> tuple[int, ...]:
    if len(shape) == 4 and shape[2] in (1, 3):
        return 3, 0, 1, 2
    if len(shape) == 3 and shape[0] == shape[1]:
        if shape[1] == shape[2]:
            raise ValueError(f"{name}: no clear axis of images in {shape}; save it as .npy (N, H, W)")
        return 2, 0, 1
    return tuple(range(len(shape)))


# --- sources of named arrays ---------------------------------------------------------------------


# Names of images and labels: of a split, and without splits. The last ones are those of our own sets.
_OF_SPLIT: Final = (("{}_images", "{}_labels"), ("x_{}", "y_{}"), ("X_{}", "y_{}"))
_OF_ALL: Final = (("images", "labels"), ("x", "y"), ("X", "y"), ("data", "labels"), ("clean", "labels"))
_MANIFEST: Final = "dataset.json"
_MOST_CLASSES: Final = 100_000
# The label of the digit 0 is 10.
_SVHN: Final = re.compile(r"(train|test|extra)_32x32\.mat", re.IGNORECASE)


class ArraySource(NumberedSource):
    """Images in an array of numbers (N, H, W) or (N, H, W, 3), and their labels in another array.

    `levels` scales other values than uint8.

    Keys are "00000", "00001", ..., or the lines of a ``keys.txt`` next to the array, as in a set of arrays.
    Integers as labels keep their values; strings are names of classes.

    Parameters
    ----------
    path : path or URL
        An `.npy` file of images; an `.npz` or `.mat` file of images and labels; or a folder of `.npy` files,
        or with an `.npz` or `.mat` file for each split.
    options : SourceOptions
        `labels` is an `.npy` file or a text with the labels. Default: the array next to the images. The split
        is "test", the default, "train", "val" or "extra", if names of arrays or files tell the split.

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: it contains no such arrays.
    """

    splits: tuple[str, ...] = ("test", "train", "val", "extra")

    def __init__(self, path: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        super().__init__(path, options)
        self._copies = Copies()
        self._asked = options.split
        self.levels: Levels | None = options.levels
        self._labels_file = None if options.labels is None else find_place(options.labels)
        # The arrays of a split are chosen by their names.
        self._columns = ask(options)._replace(needs_split=False)
        self._are_classes = options.labels_are_classes

    @cached_property
    def _file(self) -> ArrayFile:
        place = self._place
        if not place.is_folder:
            return open_array_file(place.store, place.name)
        files = sorted(name for name in place.children if name.lower().endswith(ARRAYS))
        if any(name.lower().endswith(".npy") for name in files):
            return NpyFiles(place.folder)
        of_split = [name for name in files if self._split in _list_words(name)]
        chosen = of_split or ([] if self._asked else files)
        if len(chosen) != 1:
            raise ValueError(f"contains {', '.join(files) or 'no arrays'}; name one file with --source")
        return open_array_file(place.folder, chosen[0])

    @cached_property
    def _names(self) -> tuple[str, str | None]:
        """Return the names of the array of images and of that of labels, if there is one."""
        file, asked, own = self._file, self._asked, self._file.images
        of_split = [(images.format(self._split), labels.format(self._split)) for images, labels in _OF_SPLIT]
        if own:
            if asked and own not in dict(of_split):
                raise ValueError(f"is not the array of the split {asked!r}")
            every = [(a.format(split), b.format(split)) for a, b in _OF_SPLIT for split in self.splits]
            beside = [b for a, b in (*every, *_OF_ALL) if a == own] + [f"{own}_labels", "labels"]
            return own, next(filter(file.has, beside), None)
        for images, labels in (*of_split, *(_OF_ALL if not asked or asked in _list_words(file.name) else ())):
            if file.has(images):
                return images, labels if file.has(labels) else None
        wanted = f"x_{asked} and y_{asked}" if asked else "images and labels, or x_test and y_test"
        there = ", ".join(sorted(file.list_names())[:10]) or "none"
        raise ValueError(f"contains no arrays called {wanted} (arrays: {there})")

    def _read(self) -> ArrayRows:
        file, (name, labelled) = self._file, self._names
        shape, dtype = file.describe(name)
        if len(shape) not in (3, 4) or shape[3:] not in ((), (1,), (3,)) or 0 in shape:
            way = "; transpose it to (N, H, W, 3)" if len(shape) == 4 and shape[1] in (1, 3) else ""
            raise ValueError(f"{name}: {shape} is not (N, H, W) or (N, H, W, 3){way}")
        if dtype.kind not in "biuf":
            raise ValueError(f"{name}: {dtype} is no type of images; convert the values to uint8, 0 to 255")
        if dtype != np.uint8 and not self.levels:
            low, high = self._propose_levels()
            raise ValueError(f"{name}: {dtype}, not uint8: give --levels {low:.9g},{high:.9g}")
        keys = self._read_keys(shape[0])
        if self._labels_file:
            values = self._read_labels(self._labels_file, keys or number_rows(shape[0]))
        elif labelled:
            values = self._read_values(labelled)
        else:
            raise ValueError(f"has no labels of {name}; pass an .npy file or a text of labels with --labels")
        labels, names, are_numbers = _number(_fit(values, shape[0]))
        if _SVHN.fullmatch(file.name):
            labels, names, are_numbers = labels % 10, tuple("0123456789"), False
        if recorded := self._read_classes(keys, labels):
            names, are_numbers = recorded, False
        if len(names) <= labels.max():
            raise ValueError(f"has {len(names)} names of classes for labels up to {labels.max()}")
        # The images need no memory until the first is loaded.
        images = np.broadcast_to(dtype.type(0), shape[:3] if shape[3:] == (1,) else shape)
        return ArrayRows(images, labels, names, are_numbers, keys)

    @cached_property
    def images(self) -> Rgb:
        """Return all images, (N, H, W, 3) or (N, H, W); those in no local `.npy` file are unpacked once."""
        with name_source_in_errors(self.location):
            file, own = self._file, self._names[0]
            store, name = file.store, f"{own}.npy"
            if not (isinstance(file, NpyFiles) and store.is_local):
                # Worker processes use the copy too.
                name, write = f"{self._split}.npy", partial(file.write_images, own)
                store = self._copies.find(name, write, self.location)
            images: Rgb = np.load(f"{store.location}/{name}", mmap_mode="r")
        return images[..., 0] if images.shape[3:] == (1,) else images

    def make_ready(self) -> None:
        """Unpack the images, to spare each worker the work."""
        _ = self.images

    def read(self, key: str) -> tuple[Rgb | Image.Image, str]:
        """Return one image, scaled by `levels` unless it is uint8, and the identity of its bytes."""
        row = self.images[self._index(key)]
        if row.dtype == np.uint8 or not self.levels:
            return super().read(key)
        with name_image_in_errors(key):
            return scale_levels(row, self.levels), hashlib.sha256(row.tobytes()).hexdigest()[:16]

    def _read_values(self, name: str) -> NDArray[Any]:
        """Read the labels of the images from the array `name`."""
        return self._file.read(name).reshape(-1)

    def _propose_levels(self) -> tuple[float, float]:
        """Return values for black and white that fit all images: usual ones, or the ends."""
        images = self.images
        # Part by part, as the array may be larger than the memory.
        ends = [(part.min(), part.max()) for part in map(np.asarray, images)]
        low, high = (float(each) for each in (min(low for low, _ in ends), max(high for _, high in ends)))
        if low >= 0:
            # Floats a little above 1 or 255 come from resizing.
            usual = {1.0: high < 1.5 and images.dtype.kind == "f", 255.0: 128 <= high < 256}
            low, high = next(((0.0, top) for top, fits in usual.items() if fits), (low, high))
        return (low, high) if low < high else (low, low + 1)

    def _read_keys(self, count: int) -> tuple[str, ...]:
        """Return the names of `count` images in a set of arrays; () if there are none."""
        file = self._file
        if not (isinstance(file, NpyFiles) and file.store.exists(KEYS)):
            return ()
        names = split_names(file.store.read(KEYS))
        for name in names:
            if "\0" in name or {*name.split("/")} & {"", ".", ".."}:
                raise ValueError(f"{KEYS}: {name!r} cannot be the name of an image")
        return tuple(names) if len(names) == len({*names}) == count else ()

    def _read_labels(self, place: Place, keys: tuple[str, ...]) -> NDArray[Any]:
        """Read the labels of the images `keys` from an `.npy` file or a text: integers, or else strings."""
        if place.has_suffix(".npy"):
            return NpyFiles(place.store).read(PurePosixPath(place.name).stem).reshape(-1)
        how = ImageNames(keys), self._columns, self._are_classes
        found = parse_labels(place.store.read(place.name), place.location, *how)
        texts = [found.classes.get(key) or "" for key in keys]
        if "" in texts:
            raise ValueError(f"no label for {keys[texts.index('')]!r} in {place.location}")
        return np.array([*map(int, texts)] if found.are_numbers else texts)

    def _read_classes(self, keys: tuple[str, ...], labels: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the recorded names of the classes: in a set, or in a list; () if they have none."""
        store = self._file.store
        if not keys:
            return tuple(split_names(store.read(CLASS_NAMES))) if store.exists(CLASS_NAMES) else ()
        record = parse_object(store.read(_MANIFEST)) if store.exists(_MANIFEST) else {}
        if record.get("class_count"):
            return tuple(record["classes"])
        # The class folders of the images that the set was made from.
        pairs = {*zip(labels.tolist(), map(class_of, keys), strict=True)}
        names = dict(pairs)
        if len({*names.values()}) < len(pairs) or "" in names.values():
            return ()
        return tuple(names.get(label, str(label)) for label in range(max(names) + 1))


def is_arrays(place: Place) -> bool:
    """Return True for a file of arrays, or a folder with such files, without images and other folders."""
    if not place.is_folder:
        return place.has_suffix(*ARRAYS)
    found = place.children
    return any(name.lower().endswith(ARRAYS) for name in found) and not (
        any(found.values()) or any(map(is_image, found))
    )


ARRAY_FILES: Final = SourceKind(is_arrays, ArraySource)


def _list_words(name: str) -> list[str]:
    return re.split(r"[-_.]", name.lower())


def _fit(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the labels of `count` images; in a set of arrays, the labels repeat for each severity."""
    times, rest = divmod(len(values), count)
    if not times or rest or (values.reshape(times, count) != values[:count]).any():
        raise ValueError(f"{len(values)} labels do not fit {count} images")
    return values[:count]


def _number(values: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[str, ...], bool]:
    """Return labels, names of the classes, and whether these are bare numbers."""
    if values.dtype.kind == "U":
        texts = [str(value).strip() for value in values]
        numbers = {name: number for number, name in enumerate(sort_classes({*texts}))}
        return np.array([numbers[text] for text in texts], np.int64), tuple(numbers), False
    whole = np.rint(values).astype(np.int64)
    if (whole != values).any() or whole.min() < 0 or whole.max() >= _MOST_CLASSES:
        raise ValueError(f"labels from {values.min()} to {values.max()} are not the numbers of classes")
    return whole, tuple(map(str, range(int(whole.max()) + 1))), True
