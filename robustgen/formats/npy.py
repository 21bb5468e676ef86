"""NumPy arrays with a row for each image, as in CIFAR-10-C and CIFAR-10-P."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import Variant
from robustgen.containers.npy import StoredArray, header_bytes
from robustgen.errors import ImageError, SourceError
from robustgen.formats.base import (
    Dataset,
    Encoded,
    Encoder,
    Labels,
    Listing,
    Pixels,
    Writer,
    WrittenFile,
    keep_grey,
    name_contents,
)
from robustgen.formats.units import WorkUnit
from robustgen.imaging.pixels import Rgb
from robustgen.name_lists import join_names, split_names
from robustgen.sources.base import blame_source
from robustgen.sources.sample_names import KEYS
from robustgen.storage import Store
from robustgen.storage import Writer as OpenFile

LABELS = "labels.npy"
"""File next to the arrays with the class of each row."""


# --- writing -------------------------------------------------------------------------------------


class RowEncoder(Encoder):
    """Encoder of rows.

    Parameters
    ----------
    name : str
        Name of the format.
    shapes : mapping of str to tuple of int
        Folder of a variant to the shape of a row.
    grey : bool
        Whether to keep one channel of images whose three channels are equal.
    """

    def __init__(self, name: str, shapes: Mapping[str, tuple[int, ...]], grey: bool) -> None:
        self.name, self.shapes, self.grey = name, shapes, grey

    def settings(self) -> dict[str, Any]:
        """Return the format."""
        return {"format": self.name} | ({"grey": True} if self.grey else {})

    def output_name(self, key: str) -> None:
        """Return None: rows have no names."""

    def encode(self, variant: Variant, key: str, pixels: Rgb | Iterator[Rgb]) -> list[Encoded]:
        """Return the row of an image or sequence."""
        row = pixels if isinstance(pixels, np.ndarray) else np.stack([*pixels])
        wanted = self.shapes[variant.folder]
        if self.grey:
            row = keep_grey(row).reshape(*row.shape[:2], *wanted[2:])
        if row.shape != wanted:
            raise ImageError(f"has shape {row.shape}, but rows of the array have shape {wanted}")
        return [Encoded("", row.tobytes())]


class ArrayWriter(Writer):
    """Writer of one `.npy` per corruption (severity-major) or per perturbation, each a work unit.

    Parameters
    ----------
    arms : tuple of Variant
    shapes : mapping of str to tuple of int
        Folder of a variant to the shape of one item: (H, W, 3), or (T, H, W, 3).
    per_name : bool
        Whether all levels of an operation share a file, as in the published CIFAR-10-C.
    grey : bool
        Whether to keep one channel of images whose three channels are equal.
    """

    suffix: ClassVar[str] = ".npy"
    joint = True
    is_separable = False
    # Rows are small, and rows of one variant are consecutive.
    images_at_once: ClassVar[int | None] = 128

    def __init__(
        self,
        arms: tuple[Variant, ...],
        shapes: Mapping[str, tuple[int, ...]],
        per_name: bool,
        grey: bool = False,
    ) -> None:
        kept = {folder: self._keep_channels(shape) if grey else shape for folder, shape in shapes.items()}
        super().__init__(RowEncoder(self.suffix[1:], kept, grey))
        self._shapes, self._per_name = kept, per_name
        files = [self._file_of(arm.folder) for arm in arms]
        self.arrays = tuple(dict.fromkeys(files))
        self._levels = max(map(files.count, self.arrays))

    def _keep_channels(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a grey row for an image of `shape`."""
        return (*shape[:-1], 1)

    def _file_of(self, folder: str) -> str:
        return f"{folder.partition('/')[0] if self._per_name else folder}{self.suffix}"

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield one unit for each array, with all images and the variants in the array."""
        for number, file in enumerate(self.arrays):
            own = tuple(variant for variant in variants if self._file_of(variant.folder) == file)
            yield WorkUnit(number, 0, tuple(keys), own)

    @contextmanager
    def open(self, root: Store, unit: WorkUnit, labels: Sequence[int]) -> Iterator["OpenArray"]:
        """Open the array of `unit`."""
        first = unit.variants[0].folder
        path = self._file_of(first)
        with root.create(path) as file:
            yield OpenArray(file, path, self._shapes[first], unit)
        if file.is_discarded:
            # An array of an earlier run is of images that have changed since.
            root.delete(path)

    def list_companions(self, listing: Listing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the labels of the rows and the names of their source images."""
        labels = np.array([listing.label(key) for key in listing.keys])
        dtype = np.uint8 if labels.max(initial=0) < 256 else np.int64
        buffer = io.BytesIO()
        # All severities of a corruption share an array, so the labels repeat.
        np.save(buffer, np.tile(labels, self._levels).astype(dtype))
        return {LABELS: buffer.getvalue(), KEYS: join_names(listing.keys)}

    def find_output(
        self, root: Store, variant: Variant, index: int, key: str, encoded: Encoded
    ) -> tuple[str, bool]:
        """Return the path of the array, and whether its row is the same."""
        path = self._file_of(variant.folder)
        array = self._open_array(root, path)
        stretches = [folder for folder in self._shapes if self._file_of(folder) == path]
        row = stretches.index(variant.folder) * (len(array) // len(stretches)) + index
        return path, row < len(array) and array[row].tobytes() == encoded.data

    def _open_array(self, root: Store, path: str) -> StoredArray:
        return open_array(root, path)


class OpenArray:
    """Unit writer of one array."""

    def __init__(self, file: OpenFile, path: str, shape: tuple[int, ...], unit: WorkUnit) -> None:
        self._file, self._path, self._shape, self._unit = file, path, shape, unit
        self._start = file.write(header_bytes((len(unit.variants) * len(unit.keys), *shape)))

    def write(self, variant: Variant, index: int, key: str, encoded: Iterable[Encoded]) -> list[WrittenFile]:
        """Write the row of an image."""
        ((_, data, _),) = encoded
        row = self._unit.variants.index(variant) * len(self._unit.keys) + index - self._unit.start
        place = self._start + row * len(data)
        # Consecutive rows stay in the buffer, which a seek would write out.
        if self._file.tell() != place:
            self._file.seek(place)
        self._file.write(data)
        return []

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        """Return the array, or [] if some of its images failed."""
        if failed:
            # An array cannot omit images.
            self._file.is_discarded = True
            return []
        return [WrittenFile(self._path, self._file.size, self._file.sha256)]


# --- reading -------------------------------------------------------------------------------------


@dataclass(eq=False)
class Arrays(Dataset):
    """Set in the layout of CIFAR-10-C and -P: an array per corruption or perturbation, and `labels.npy`.

    Parameters
    ----------
    store, kind, arms, about
        As for `Dataset`. The severities of a corruption are consecutive in its array.
    """

    format = "npy"
    suffix: ClassVar[str] = ".npy"
    usual_edition = "cifar-10"

    def __post_init__(self) -> None:
        """Find the number of images from the first array, and check all others against it."""
        self._open = lru_cache(maxsize=2)(self._open_checked)
        self.images = self._rows(self.arms[0])
        for arm in self.arms:
            if self._rows(arm) != self.images:
                path = self._path(arm)
                raise SourceError(f"{path}: {self._rows(arm)} images, where other arrays have {self.images}")
        self._keys = self._read_keys()
        self._labels = self._read_labels()

    @property
    def grey(self) -> bool:  # type: ignore[override]
        """Return whether its arrays have one channel."""
        return self._shape(self._file(self.arms[0]))[-1] == 1

    def _file(self, arm: Variant) -> str:
        return f"{self.benchmark.array_name(arm)}{self.suffix}"

    def _path(self, arm: Variant) -> str:
        return f"{self.root}/{self._file(arm)}"

    def _open_checked(self, file: str) -> StoredArray:
        array = open_array(self.store, file)
        axes = self.benchmark.array_axes
        if array.dtype != np.uint8 or array.ndim != axes or array.shape[-1] not in (1, 3) or 0 in array.shape:
            shape = self.benchmark.array_shape
            raise SourceError(f"{self.root}/{file}: {array.dtype} {array.shape} is not uint8 {shape}")
        return array

    def _shape(self, file: str) -> tuple[int, ...]:
        return self._open(file).shape

    def _stretches(self, arm: Variant) -> list[Variant]:
        """Return the variants that share the array of `arm`, in order."""
        return [other for other in self.arms if self._file(other) == self._file(arm)]

    def _rows(self, arm: Variant) -> int:
        shared, rows = len(self._stretches(arm)), self._shape(self._file(arm))[0]
        if rows % shared:
            raise SourceError(
                f"{self._path(arm)}: its {rows} rows are not {shared} severities of as many images"
            )
        return rows // shared

    def _read_keys(self) -> tuple[str, ...]:
        if not self.store.exists(KEYS):
            # Same keys as the source of these images, so that a regenerated set has them too.
            return tuple(f"{i:05d}" for i in range(self.images))
        with blame_source(f"{self.root}/{KEYS}"):
            keys = tuple(split_names(self.store.read(KEYS)))
        if len(keys) != self.images:
            contents = name_contents(self.kind)
            raise SourceError(f"{self.root}/{KEYS}: {len(keys)} keys for {self.images} {contents}")
        return keys

    def _read_labels(self) -> Labels | None:
        if not self.store.exists(LABELS) and self.kind == "p":
            return None
        labels = open_array(self.store, LABELS).read()
        if labels.dtype.kind not in "iu" or labels.ndim != 1 or len(labels) % self.images or not len(labels):
            wanted = f"a class for each of {self.images} {name_contents(self.kind)}"
            raise SourceError(f"{self.root}/{LABELS}: {labels.dtype} {labels.shape} is not {wanted}")
        return labels[: self.images].astype(np.int64)

    def keys(self, arm: Variant) -> tuple[str, ...]:
        """Return the names of the rows."""
        return self._keys

    def labels(self, arm: Variant) -> Labels | None:
        """Return the true classes."""
        return self._labels

    @property
    def classes(self) -> None:
        """Return None: arrays do not list the classes."""
        return None

    def read(self, arm: Variant, key: str) -> Pixels:
        """Return the row of `key`; raise an ImageError if there is none."""
        try:
            return self.load(arm, self._rows_by_key[key])
        except KeyError:
            raise ImageError(f"{self._path(arm)}: has no row for {key!r}") from None

    @cached_property
    def _rows_by_key(self) -> dict[str, int]:
        return {key: row for row, key in enumerate(self._keys)}

    def load(self, arm: Variant, index: int) -> Pixels:
        """Return one row; grey images get three channels."""
        stretch = self._stretches(arm).index(arm)
        return self._as_image(self._open(self._file(arm))[stretch * self.images + index])

    def _as_image(self, row: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(row, 3, axis=-1) if row.shape[-1] == 1 else np.array(row)


def open_array(store: Store, path: str, folder: object = None) -> StoredArray:
    """Open the array in a `.npy` file; the array keeps a reference to `folder`.

    Raises
    ------
    SourceError
        The file cannot be read, is truncated, or contains objects.
    """
    with blame_source(f"{store.location}/{path}"):
        return StoredArray(store.open(path), folder)
