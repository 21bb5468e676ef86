"""NumPy arrays with a row for each image, as in CIFAR-10-C and -P, or in archives, as in MedMNIST-C."""

import io
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from threading import Lock
from typing import Any, BinaryIO, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ConfigError, ImageError, SourceError
from robustgen.files.containers import array_files
from robustgen.files.containers.array_files import StoredArray, header_bytes
from robustgen.files.set_files import WrittenFile
from robustgen.files.storage import Store, measure
from robustgen.files.text_files import join_names, split_names
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import name_image_in_errors
from robustgen.sets.formats import Format
from robustgen.sets.formats.base import (
    Encoded,
    Encoder,
    FilePer,
    Labels,
    SetContent,
    SetListing,
    WorkUnit,
    Writer,
    WrittenSet,
    keep_grey,
)
from robustgen.sets.sources.base import Source, name_source_in_errors
from robustgen.sets.sources.classes import KEYS
from robustgen.sets.sources.published import MedMnist

LABELS: Final = "labels.npy"
"""File next to the arrays with the class of each row."""
ARCHIVE: Final = ".npz"
"""Suffix of archives."""
_IMAGES, _LABELS = "test_images", "test_labels"
# The published archives are named after the corruption alone.
_FAMILY: Final = "medmnist-c."


def file_of(folder: str, suffix: str) -> str:
    """Return the file of the variant in `folder`: ``fog.npy``; ``pixelate.npz`` of MedMNIST-C."""
    name = folder.partition("/")[0]
    return f"{name.removeprefix(_FAMILY) if suffix == ARCHIVE else name}{suffix}"


# --- writing -------------------------------------------------------------------------------------


class RowEncoder(Encoder):
    """Encoder of rows.

    Parameters
    ----------
    name : str
        Name of the format.
    grey_channels : tuple of int, optional
        Axis of channels of grey rows, (1,) or (); rows then keep one of three equal channels.
    """

    def __init__(self, name: str, grey_channels: tuple[int, ...] | None) -> None:
        self.name, self.grey_channels = name, grey_channels

    def settings(self) -> dict[str, Any]:
        """Return the format."""
        return {"format": self.name} | ({"grey": True} if self.grey_channels is not None else {})

    def output_name(self, key: str) -> None:
        """Return None: rows have no names."""

    def encode(self, variant: Variant, key: str, pixels: Rgb | Iterator[Rgb]) -> list[Encoded]:
        """Return the row of an image or sequence."""
        row = pixels if isinstance(pixels, np.ndarray) else np.stack([*pixels])
        if self.grey_channels is not None:
            row = keep_grey(row).reshape(*row.shape[:2], *self.grey_channels)
        return [Encoded("", row.tobytes(), shape=row.shape)]


class ArrayWriter(Writer):
    """Writer of one `.npy` per corruption (severity-major) or per perturbation, each a work unit."""

    suffix: ClassVar[str] = ".npy"
    file_per: ClassVar[FilePer] = "operation"

    def __init__(self, encoder: Encoder, variants: Sequence[Variant]) -> None:
        super().__init__(encoder)
        self._folders = [variant.folder for variant in variants]
        files = [file_of(folder, self.suffix) for folder in self._folders]
        self.arrays = tuple(dict.fromkeys(files))
        self._levels = max(map(files.count, self.arrays))

    @classmethod
    def create(cls, encoder: Encoder, content: SetContent) -> Writer:
        """Return the writer of a set."""
        return cls(encoder, content.variants)

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield one unit for each array, with all images and the variants in the array."""
        for number, file in enumerate(self.arrays):
            own = tuple(v for v in variants if file_of(v.folder, self.suffix) == file)
            yield WorkUnit(number, 0, tuple(keys), own)

    @contextmanager
    def open(self, root: Store, unit: WorkUnit, label: Callable[[str], int]) -> Iterator["_OpenArray"]:
        """Open the array of `unit`."""
        path = file_of(unit.variants[0].folder, self.suffix)
        with suppress(_Discarded), root.create(path) as file:
            yield _OpenArray(file, path, unit)

    def list_companions(self, listing: SetListing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the labels of the rows and the names of their source images."""
        labels = np.array([listing.label(key) for key in listing.keys])
        buffer = io.BytesIO()
        # All severities of a corruption share an array, so the labels repeat.
        np.save(buffer, _shrink(np.tile(labels, self._levels)))
        return {LABELS: buffer.getvalue(), KEYS: join_names(listing.keys)}

    def find_output(
        self, root: Store, variant: Variant, index: int, key: str, encoded: Encoded
    ) -> tuple[str, bool]:
        """Return the path of the array, and whether its row is the same."""
        path = file_of(variant.folder, self.suffix)
        with _OPENING:
            array = _open_known(root, path, root.stat(path).stamp)
        stretches = [folder for folder in self._folders if file_of(folder, self.suffix) == path]
        row = stretches.index(variant.folder) * (len(array) // len(stretches)) + index
        return path, row < len(array) and array[row].tobytes() == encoded.data


class _Discarded(Exception):
    """Ends a block that writes a file, so that the file does not appear."""


class _OpenArray:
    """Unit writer of one array; `pack` turns its rows into the file at `path`."""

    def __init__(
        self,
        file: BinaryIO,
        path: str,
        unit: WorkUnit,
        pack: Callable[[BinaryIO], BinaryIO] = lambda file: file,
    ) -> None:
        self._file, self._path, self._pack = file, path, pack
        count = len(unit.keys)
        self._count, self._shape = len(unit.variants) * count, tuple[int, ...]()
        self._rows = {variant.folder: i * count - unit.start for i, variant in enumerate(unit.variants)}

    def write(self, variant: Variant, index: int, key: str, encoded: Iterable[Encoded]) -> list[WrittenFile]:
        """Write the row of an image; all rows have the shape of the first one."""
        ((_, data, _, shape),) = encoded
        if not self._shape:
            self._shape = shape
            self._start = self._at = self._file.write(header_bytes((self._count, *shape)))
        elif shape != self._shape:
            raise ImageError(f"has shape {shape}, but rows of the array have shape {self._shape}")
        offset = self._start + (self._rows[variant.folder] + index) * len(data)
        # Consecutive rows stay in the buffer, which a seek would write out.
        if offset != self._at:
            self._file.seek(offset)
        self._at = offset + self._file.write(data)
        return []

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        """Return the array; an array cannot omit `failed` images."""
        if failed:
            raise _Discarded
        return [WrittenFile(self._path, *measure(self._pack(self._file)))]


class ArchiveWriter(ArrayWriter):
    """Writer of one `.npz` per corruption with ``test_images``, severity-major, and ``test_labels``.

    Grey images have no axis of channels.
    """

    suffix = ARCHIVE

    def __init__(self, encoder: Encoder, variants: Sequence[Variant], class_labels: NDArray[Any]) -> None:
        super().__init__(encoder, variants)
        self._class_labels = class_labels
        names = {variant.folder.partition("/")[0]: variant.name for variant in variants}
        for stem, name in names.items():
            if other := names.get(_FAMILY + stem):
                file = file_of(stem, ARCHIVE)
                raise ConfigError(f"format npz: {name} and {other} would share {file}; choose npy")

    @classmethod
    def create(cls, encoder: Encoder, content: SetContent) -> Writer:
        """Return the writer of a set."""
        return cls(encoder, content.variants, content.source.class_labels)

    def versions(self) -> dict[str, str]:
        """Return the release of zlib, which determines the bytes."""
        return {"zlib": array_files.ZLIB}

    @contextmanager
    def open(self, root: Store, unit: WorkUnit, label: Callable[[str], int]) -> Iterator[_OpenArray]:
        """Open the archive of `unit`.

        Rows arrive image by image in a temporary file, but are compressed severity by severity.
        """
        path = file_of(unit.variants[0].folder, self.suffix)
        own = self._class_labels[[label(key) for key in unit.keys]]
        with suppress(_Discarded), root.create(f"{path}.rows") as rows:
            with suppress(_Discarded), root.create(path) as file:
                pack = partial(_pack, labels=np.tile(own, (len(unit.variants), 1)), file=file)
                yield _OpenArray(rows, path, unit, pack)
            raise _Discarded

    def list_companions(self, listing: SetListing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the names of the rows' source images."""
        return {KEYS: join_names(listing.keys)}


def _pack(rows: BinaryIO, labels: NDArray[Any], file: BinaryIO) -> BinaryIO:
    """Write an archive of images and their labels, with the bytes of `numpy.savez_compressed`; return it."""
    rows.seek(0)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(f"{_IMAGES}.npy", "w", force_zip64=True) as member:
            shutil.copyfileobj(rows, member, 1 << 20)
        with archive.open(f"{_LABELS}.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, _shrink(labels))
    return file


def _shrink(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the labels as bytes if all of them fit, else as 64-bit integers."""
    return labels.astype(np.uint8 if labels.max(initial=0) < 256 else np.int64)


# --- reading -------------------------------------------------------------------------------------


class ArraySet(WrittenSet):
    """A set of arrays with rows of the same images, and of labels, in the same order.

    Attributes
    ----------
    images : int
        Number of images or sequences.
    starts : dict of Variant to int
        First row of each variant in its array.
    rows : dict of str to int
        Key to the number of its row, counted from `starts`.
    row_labels : ndarray of shape (images,), optional
    label_table : ndarray of shape (classes, labels), optional
        Labels of each class, if these are not its number.
    """

    format = "npy"
    suffix: ClassVar[str] = ".npy"
    label_table: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Find the number of images from the first array, and check all others against it."""
        super().__post_init__()
        # Consecutive reads are of one array.
        self.open_file = lru_cache(maxsize=2)(partial(_open_images, self.store))
        self.starts: dict[Variant, int] = {}
        files: dict[str, list[Variant]] = {}
        for variant, file in self.places.items():
            files.setdefault(file, []).append(variant)
        shapes = {file: self._read_shape(file) for file in files}
        first = self.places[self.variants[0]]
        self.images, self.grey = shapes[first][0] // len(files[first]), shapes[first][-1] == 1
        for file, variants in files.items():
            images, rest = divmod(shapes[file][0], len(variants))
            if rest:
                reason = f"its {shapes[file][0]} rows are not {len(variants)} severities of as many images"
                raise SourceError(f"{self.root}/{file}: {reason}")
            if images != self.images:
                reason = f"{images} images, where other arrays have {self.images}"
                raise SourceError(f"{self.root}/{file}: {reason}")
            self.starts |= {variant: index * images for index, variant in enumerate(variants)}
        self.rows = {key: index for index, key in enumerate(self._read_keys())}
        self.row_labels = self._read_labels()

    def open(self, variant: Variant) -> "VariantRows":
        """Open the rows of a variant."""
        return VariantRows(self, variant)

    def _read_shape(self, file: str) -> tuple[int, ...]:
        """Return the shape of the images in a file, with the axis of channels."""
        array, axes = self.open_file(file), self.benchmark.array_axes
        if array.dtype != np.uint8 or array.ndim != axes or array.shape[-1] not in (1, 3) or 0 in array.shape:
            shape = self.benchmark.array_shape
            raise SourceError(f"{self.root}/{file}: {array.dtype} {array.shape} is not uint8 {shape}")
        return array.shape

    def _read_keys(self) -> tuple[str, ...]:
        if not self.store.exists(KEYS):
            # Same keys as the source of these images, so that a regenerated set has them too.
            return tuple(f"{i:05d}" for i in range(self.images))
        with name_source_in_errors(f"{self.root}/{KEYS}"):
            keys = tuple(split_names(self.store.read(KEYS)))
        if len(keys) != self.images:
            contents = f"{self.benchmark.noun}s"
            raise SourceError(f"{self.root}/{KEYS}: {len(keys)} keys for {self.images} {contents}")
        return keys

    def _read_labels(self) -> Labels | None:
        if not self.store.exists(LABELS) and self.kind == "p":
            return None
        labels = open_array(self.store, LABELS).read()
        if labels.dtype.kind not in "iu" or labels.ndim != 1 or len(labels) % self.images or not len(labels):
            wanted = f"a class for each of {self.images} {self.benchmark.noun}s"
            raise SourceError(f"{self.root}/{LABELS}: {labels.dtype} {labels.shape} is not {wanted}")
        return labels[: self.images].astype(np.int64)


class VariantRows(Source):
    """The images or sequences of a variant, in the rows of an array; classes have no names."""

    classes = ()
    class_count = None

    def __init__(self, written: ArraySet, variant: Variant) -> None:
        self._set, self._variant = written, variant
        super().__init__(f"{written.root}/{written.places[variant]}")

    def keys(self) -> tuple[str, ...]:
        """Return the names of the rows."""
        return tuple(self._set.rows)

    def _index(self, key: str) -> int:
        if key not in self._set.rows:
            raise ImageError(f"has no row in {self.location}", key)
        return self._set.rows[key]

    def label(self, key: str) -> int:
        """Return the label of a row; -1 without labels."""
        labels = self._set.row_labels
        return -1 if labels is None else int(labels[self._index(key)])

    @property
    def class_labels(self) -> NDArray[np.int64]:
        """Return the labels of each class, (classes, labels): by default, its number."""
        own = self._set.label_table
        return super().class_labels if own is None else own

    def load(self, key: str) -> Rgb:
        """Return a copy of one row, uint8 (H, W, 3) or (T, H, W, 3); grey images get three channels."""
        index = self._set.starts[self._variant] + self._index(key)
        with name_image_in_errors(key):
            row = np.array(self._set.open_file(self._set.places[self._variant])[index])
        # Grey images in archives have no axis of channels.
        pixels = row if row.ndim > 2 else row[..., None]
        return np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] == 1 else pixels

    def size(self, key: str) -> int:
        """Return the size of one row in bytes."""
        return self.load(key).nbytes


class Archives(ArraySet):
    """Set in the layout of MedMNIST-C: an archive for each corruption, unpacked for reading."""

    format = "npz"
    suffix = ARCHIVE

    def _read_shape(self, file: str) -> tuple[int, ...]:
        shape = MedMnist(f"{self.root}/{file}").shape
        return shape if len(shape) == 4 else (*shape, 1)

    def _read_labels(self) -> Labels | None:
        source = MedMnist(f"{self.root}/{self.places[self.variants[0]]}")
        self.label_table = source.class_labels
        return source.labels[: self.images]


def open_array(store: Store, path: str) -> StoredArray:
    """Open the array in a `.npy` file.

    Raises
    ------
    SourceError
        The file cannot be read, is truncated, or contains objects.
    """
    with name_source_in_errors(f"{store.location}/{path}"):
        return StoredArray(store.open(path))


def _open_images(store: Store, path: str) -> StoredArray | Rgb:
    """Open an array, or the images of an archive, which are unpacked into a temporary file."""
    return MedMnist(f"{store.location}/{path}").images if path.endswith(ARCHIVE) else open_array(store, path)


_OPENING: Final = Lock()


# Consecutive comparisons use the same array.
@lru_cache(maxsize=2)
def _open_known(store: Store, path: str, stamp: str) -> StoredArray | Rgb:
    return _open_images(store, path)


NPY: Final = Format(
    "NumPy arrays",
    dict.fromkeys(BENCHMARKS, lambda choices: RowEncoder("npy", (1,) if choices.grey else None)),
    ArrayWriter,
    ArraySet,
)
NPZ: Final = Format(
    "NumPy archives of MedMNIST-C",
    {"c": lambda choices: RowEncoder("npz", () if choices.grey else None)},
    ArchiveWriter,
    Archives,
)
