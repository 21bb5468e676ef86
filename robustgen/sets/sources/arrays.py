"""Arrays of images with their labels."""

import re
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.files.text_files import parse_object, split_names
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Location
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.array_files import ArrayFile, NpyFiles, open_array_file
from robustgen.sets.sources.base import DEFAULTS, Options, class_of, name_source_in_errors
from robustgen.sets.sources.classes import sort_classes
from robustgen.sets.sources.labels import parse_labels
from robustgen.sets.sources.numbered import Rows, UnpackedSource, number_rows
from robustgen.sets.sources.places import ARRAYS, Place, find_place
from robustgen.sets.sources.sample_names import CLASS_NAMES, KEYS
from robustgen.sets.sources.walk import is_image

# Names of images and labels: of a split, and without splits. The last ones are those of our own sets.
_OF_SPLIT: Final = (("{}_images", "{}_labels"), ("x_{}", "y_{}"), ("X_{}", "y_{}"))
_OF_ALL: Final = (("images", "labels"), ("x", "y"), ("X", "y"), ("data", "labels"), ("clean", "labels"))
_MANIFEST: Final = "dataset.json"
_MOST_CLASSES: Final = 100_000
# The label of the digit 0 is 10.
_SVHN: Final = re.compile(r"(train|test|extra)_32x32\.mat", re.IGNORECASE)


class Arrays(UnpackedSource):
    """Images in an array, uint8 (N, H, W) or (N, H, W, 3), and their labels in another array.

    Keys are "00000", "00001", ..., or the lines of a ``keys.txt`` next to the array, as in a set of arrays.
    Integers as labels keep their values; strings are names of classes.

    Parameters
    ----------
    path : path or URL
        An `.npy` file of images; an `.npz` or `.mat` file of images and labels; or a folder of `.npy` files,
        or with an `.npz` or `.mat` file for each split.
    options : Options
        `labels` is an `.npy` file or a text with the labels. Default: the array next to the images. The split
        is "test", the default, "train", "val" or "extra", if names of arrays or files tell the split.

    Raises
    ------
    SourceError
        `path` does not exist. From all other methods: it contains no such arrays.
    """

    splits = ("test", "train", "val", "extra")

    def __init__(self, path: Location | Place, options: Options = DEFAULTS) -> None:
        super().__init__(path, options)
        self._asked = options.split
        self._labels_file = None if options.labels is None else find_place(options.labels)

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

    def _read(self) -> Rows:
        file, (name, labelled) = self._file, self._names
        shape, dtype = file.describe(name)
        if len(shape) not in (3, 4) or shape[3:] not in ((), (1,), (3,)) or 0 in shape:
            way = "; transpose it to (N, H, W, 3)" if len(shape) == 4 and shape[1] in (1, 3) else ""
            raise ValueError(f"{name}: {shape} is not (N, H, W) or (N, H, W, 3){way}")
        if dtype != np.uint8:
            raise ValueError(f"{name}: images are uint8, not {dtype}; convert the values to 0 to 255")
        keys = self._read_keys(shape[0])
        if self._labels_file:
            values = _read_labels(self._labels_file, keys or number_rows(shape[0]))
        elif labelled:
            values = file.read(labelled).reshape(-1)
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
        images = np.broadcast_to(np.uint8(0), shape[:3] if shape[3:] == (1,) else shape)
        return Rows(images, labels, names, are_numbers, keys)

    @cached_property
    def images(self) -> Rgb:
        """Return all images: uint8 ndarray of shape (N, H, W, 3) or (N, H, W)."""
        with name_source_in_errors(self.location):
            file, images = self._file, None
            if isinstance(file, NpyFiles) and file.store.is_local:
                images = np.load(f"{file.store.location}/{self._names[0]}.npy", mmap_mode="r")
        images = super().images if images is None else images
        return images[..., 0] if images.shape[3:] == (1,) else images

    def _unpack(self, target: BinaryIO) -> None:
        self._file.write_images(self._names[0], target)

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


KIND: Final = SourceKind(is_arrays, Arrays)


def _list_words(name: str) -> list[str]:
    return re.split(r"[-_.]", name.lower())


def _read_labels(place: Place, keys: tuple[str, ...]) -> NDArray[Any]:
    """Read the labels of the images `keys` from an `.npy` file or a text: integers, or else strings."""
    if place.has_suffix(".npy"):
        return NpyFiles(place.store).read(PurePosixPath(place.name).stem).reshape(-1)
    found = parse_labels(place.store.read(place.name), place.location, keys)
    if missing := [key for key in keys if key not in found]:
        raise ValueError(f"no label for {missing[0]!r} in {place.location}")
    texts = [found[key] for key in keys]
    are_numbers = all(re.fullmatch(r"\d{1,9}", text) for text in texts)
    return np.array([*map(int, texts)] if are_numbers else texts)


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
        names = sort_classes({*texts})
        return np.array([*map(names.index, texts)], np.int64), tuple(names), False
    whole = np.rint(values).astype(np.int64)
    if (whole != values).any() or whole.min() < 0 or whole.max() >= _MOST_CLASSES:
        raise ValueError(f"labels from {values.min()} to {values.max()} are not the numbers of classes")
    return whole, tuple(map(str, range(int(whole.max()) + 1))), True
