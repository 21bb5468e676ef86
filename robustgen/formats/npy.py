"""NumPy arrays with a row for each image, as in CIFAR-10-C and CIFAR-10-P."""

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import Kind, Variant
from robustgen.containers.npy import StoredArray, header_bytes
from robustgen.errors import ImageError, SourceError
from robustgen.formats.base import (
    Dataset,
    Labels,
    Listing,
    Pixels,
    Writer,
    WrittenFile,
    keep_grey,
    name_contents,
    read_names,
)
from robustgen.formats.units import WorkUnit
from robustgen.imaging.pixels import Rgb
from robustgen.name_lists import join_names
from robustgen.sources.sample_names import KEYS
from robustgen.storage import Store
from robustgen.storage import Writer as OpenFile

LABELS = "labels.npy"
"""File next to the arrays with the class of each row."""
_MOST_PENDING = 1 << 17


# --- writing -------------------------------------------------------------------------------------


class ArrayWriter(Writer):
    """Writer of one `.npy` per corruption (severity-major) or per perturbation, each a work unit.

    Parameters
    ----------
    arms : tuple of Variant
    keys : tuple of str
        The images, in the order of the rows.
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
    # Rows are small, and are buffered before they are written.
    images_at_once: ClassVar[int | None] = 128

    def __init__(
        self,
        arms: tuple[Variant, ...],
        keys: tuple[str, ...],
        shapes: Mapping[str, tuple[int, ...]],
        per_name: bool,
        grey: bool = False,
    ) -> None:
        self._per_name, self._grey = per_name, grey
        self._shapes = {folder: self._keep_channels(shape) for folder, shape in shapes.items()}
        files = [self._file_of(arm.folder) for arm in arms]
        self.arrays = tuple(dict.fromkeys(files))
        self._levels = max(map(files.count, self.arrays))

    def _keep_channels(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a row for an image of `shape`."""
        return (*shape[:-1], 1) if self._grey else shape

    def _file_of(self, folder: str) -> str:
        return f"{folder.partition('/')[0] if self._per_name else folder}{self.suffix}"

    def settings(self) -> dict[str, Any]:
        """Return the format."""
        return {"format": self.suffix[1:]} | ({"grey": True} if self._grey else {})

    def output_name(self, key: str) -> None:
        """Return None: rows have no names."""

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield one unit for each array, with all images and the variants in the array."""
        for number, file in enumerate(self.arrays):
            own = tuple(variant for variant in variants if self._file_of(variant.folder) == file)
            yield WorkUnit(number, 0, tuple(keys), own)

    @contextmanager
    def open(self, root: Store, unit: WorkUnit, labels: Sequence[int]) -> Iterator["OpenArray"]:
        """Open the array of `unit`."""
        first = unit.variants[0].folder
        path, shape = self._file_of(first), self._shapes[first]
        with root.create(path) as file:
            rows = len(unit.variants) * len(unit.keys)
            yield OpenArray(file, path, file.write(header_bytes((rows, *shape))), shape, unit, self._grey)
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

    def find_differences(
        self, root: Store, variant: Variant, index: int, key: str, pixels: Rgb
    ) -> Iterator[tuple[str, str]]:
        """Yield the array if its row differs from `pixels`."""
        path = self._file_of(variant.folder)
        try:
            array = self._open_array(root, path)
        except SourceError:
            return  # the checksums report this
        stretches = [folder for folder in self._shapes if self._file_of(folder) == path]
        row = stretches.index(variant.folder) * (len(array) // len(stretches)) + index
        wanted = keep_grey(pixels).reshape(self._shapes[variant.folder]) if self._grey else pixels
        if row >= len(array) or not np.array_equal(array[row], wanted):
            yield path, f": row {row} ({key}, {variant.folder}) from what the source gives now"

    def _open_array(self, root: Store, path: str) -> StoredArray:
        return open_array(root, path)


class OpenArray:
    """Unit writer of one array; consecutive rows are buffered."""

    def __init__(
        self, file: OpenFile, path: str, start: int, shape: tuple[int, ...], unit: WorkUnit, grey: bool
    ) -> None:
        self._file, self._path, self._start, self._shape, self._grey = file, path, start, shape, grey
        self._images, self._first_image = len(unit.keys), unit.start
        self._stretches = {variant.folder: place for place, variant in enumerate(unit.variants)}
        self._step = math.prod(shape)
        self._first, self._pending = 0, list[bytes]()
        self._most = max(1, _MOST_PENDING // self._step)

    def write(self, variant: Variant, index: int, key: str, pixels: Rgb) -> list[WrittenFile]:
        """Write the row of an image."""
        if self._grey:
            pixels = keep_grey(pixels).reshape(*pixels.shape[:2], *self._shape[2:])
        if pixels.shape != self._shape:
            raise ImageError(f"has shape {pixels.shape}, but rows of the array have shape {self._shape}")
        row = self._stretches[variant.folder] * self._images + index - self._first_image
        if row != self._first + len(self._pending) or len(self._pending) == self._most:
            self.flush()
            self._first = row
        self._pending.append(pixels.tobytes())
        return []

    def write_frames(
        self, variant: Variant, index: int, key: str, frames: Iterator[Rgb]
    ) -> list[WrittenFile]:
        """Write the row of a sequence."""
        return self.write(variant, index, key, np.stack([*frames]))

    def flush(self) -> None:
        """Write the buffered rows."""
        if self._pending:
            self._file.write_at(self._start + self._first * self._step, b"".join(self._pending))
            self._pending.clear()

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        """Return the array, or [] if some of its images failed."""
        self.flush()
        if failed:
            # An array cannot omit images.
            self._file.discard()
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

    store: Store
    kind: Kind
    arms: tuple[Variant, ...]
    about: Mapping[str, Any]

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
        lines = read_names(self.store, KEYS)
        if lines is None:
            # Same keys as the source of these images, so that a regenerated set has them too.
            return tuple(f"{i:05d}" for i in range(self.images))
        keys = tuple(lines)
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
    try:
        return StoredArray(store.open(path), folder)
    except OSError as error:
        raise SourceError(f"{store.location}/{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise SourceError(f"{store.location}/{path}: not a NumPy array of numbers ({error})") from error
