"""NumPy archives with images and labels of one corruption at all severities, as in MedMNIST-C."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import Variant
from robustgen.containers import npz
from robustgen.containers.npy import StoredArray
from robustgen.errors import ConfigError, SourceError
from robustgen.formats.base import Labels, Listing, WrittenFile
from robustgen.formats.npy import Arrays, ArrayWriter, OpenArray, open_array
from robustgen.formats.units import WorkUnit
from robustgen.name_lists import join_names
from robustgen.sources.base import blame_source
from robustgen.sources.sample_names import KEYS
from robustgen.storage import Store, open_store
from robustgen.storage import Writer as OpenFile
from robustgen.storage.temporary import TemporaryFolder

SUFFIX = ".npz"
_IMAGES, _LABELS = "test_images", "test_labels"
# The published files are named after the corruption alone.
_FAMILY = "medmnist-c."


def file_of(folder: str) -> str:
    """Return the file of the variant in `folder`: ``"pixelate.npz"`` for ``"medmnist-c.pixelate/3"``."""
    return f"{folder.partition('/')[0].removeprefix(_FAMILY)}{SUFFIX}"


# --- writing -------------------------------------------------------------------------------------


class ArchiveWriter(ArrayWriter):
    """Writer of one `.npz` per corruption with ``test_images``, severity-major, and ``test_labels``.

    Parameters
    ----------
    arms, shapes, grey
        As for `ArrayWriter`; grey images have no channel axis.
    class_labels : ndarray, (classes, labels), optional
        Labels of each class. Default: the number of the class.
    """

    suffix = SUFFIX
    needs_labels: ClassVar[bool] = True

    def __init__(
        self,
        arms: tuple[Variant, ...],
        shapes: Mapping[str, tuple[int, ...]],
        class_labels: NDArray[Any] | None = None,
        grey: bool = False,
    ) -> None:
        super().__init__(arms, shapes, per_name=True, grey=grey)
        self._class_labels = class_labels
        names = {arm.folder.partition("/")[0]: arm.name for arm in arms}
        for stem, name in names.items():
            other = names.get(_FAMILY + stem)
            if other:
                raise ConfigError(f"format npz: {name} and {other} would share {file_of(stem)}; choose npy")

    def _keep_channels(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[:2]

    def _file_of(self, folder: str) -> str:
        return file_of(folder)

    @contextmanager
    def open(self, root: Store, unit: WorkUnit, labels: Sequence[int]) -> Iterator["_OpenArchive"]:
        """Open the archive of `unit`."""
        first = unit.variants[0].folder
        path, numbers = self._file_of(first), np.asarray(labels, np.int64)
        rows = numbers[:, None] if self._class_labels is None else self._class_labels[numbers]
        # Rows arrive image by image, but are compressed severity by severity.
        with root.create(path) as file, root.create(f"{path}.rows") as plain:
            plain.is_discarded = True
            yield _OpenArchive(file, plain, path, self._shapes[first], unit, rows)
        if file.is_discarded:
            root.delete(path)

    def versions(self) -> dict[str, str]:
        """Return the release of zlib, which determines the bytes."""
        return {"zlib": npz.ZLIB}

    def list_companions(self, listing: Listing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the names of the rows' source images."""
        return {KEYS: join_names(listing.keys)}

    def _open_array(self, root: Store, path: str) -> StoredArray:
        return _open_known(root, path, root.stat(path).stamp)


class _OpenArchive(OpenArray):
    """Unit writer of an archive; a temporary file collects the rows."""

    def __init__(
        self,
        archive: OpenFile,
        rows: OpenFile,
        path: str,
        shape: tuple[int, ...],
        unit: WorkUnit,
        labels: NDArray[np.int64],
    ) -> None:
        super().__init__(rows, path, shape, unit)
        self._archive, self._labels = archive, np.tile(labels, (len(unit.variants), 1))

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        if failed:
            self._archive.is_discarded = True
            return []
        labels = self._labels.astype(np.uint8 if self._labels.max(initial=0) < 256 else np.int64)
        with zipfile.ZipFile(self._archive, "w", zipfile.ZIP_DEFLATED) as archive:
            # Same bytes as `numpy.savez_compressed`.
            with archive.open(f"{_IMAGES}.npy", "w", force_zip64=True) as file:
                for piece in self._file.read_back():
                    file.write(piece)
            with archive.open(f"{_LABELS}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, labels)
        return [WrittenFile(self._path, self._archive.size, self._archive.sha256)]


# --- reading -------------------------------------------------------------------------------------


@dataclass(eq=False)
class Archives(Arrays):
    """Set in the layout of MedMNIST-C: an archive for each corruption, unpacked for reading."""

    format = "npz"
    suffix: ClassVar[str] = SUFFIX
    usual_edition = "pathmnist"

    _shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def _file(self, arm: Variant) -> str:
        return file_of(arm.folder)

    def _shape(self, file: str) -> tuple[int, ...]:
        if file not in self._shapes:
            with _open_archive(self.store, file) as (archive, member):
                self._shapes[file] = npz.read_image_header(archive, member).shape
        return self._shapes[file]

    def _open_checked(self, file: str) -> StoredArray:
        return open_images(self.store, file)

    @property
    def grey(self) -> bool:  # type: ignore[override]
        """Return True if the images have one channel."""
        return len(self._shape(self._file(self.arms[0]))) == 3

    def _as_image(self, row: NDArray[Any]) -> NDArray[Any]:
        return super()._as_image(row[..., None] if row.ndim == 2 else row)

    def _read_labels(self) -> Labels | None:
        file = self._file(self.arms[0])
        with _open_archive(self.store, file) as (archive, _):
            rows = npz.read_labels(archive, _LABELS)[: self.images]
        if len(rows) != self.images:
            raise SourceError(f"{self.root}/{file}: {len(rows)} labels for {self.images} images")
        if rows.shape[1] == 1:
            return rows[:, 0]
        # Images of a multi-label set form one class if all of their labels are equal.
        self.class_labels, numbers = np.unique(rows, axis=0, return_inverse=True)
        return numbers.ravel()


@contextmanager
def _open_archive(store: Store, path: str) -> Iterator[tuple[zipfile.ZipFile, zipfile.ZipInfo]]:
    """Open an archive and find its images; raise a SourceError that names it on any failure."""
    with (
        blame_source(f"{store.location}/{path}"),
        store.open(path) as content,
        zipfile.ZipFile(content) as archive,
    ):
        yield archive, npz.find_array(archive, _IMAGES)


def open_images(store: Store, path: str) -> StoredArray:
    """Unpack the images of an archive into a temporary folder, and open them.

    Raises
    ------
    SourceError
        The archive cannot be read, or lacks the array.
    """
    folder = TemporaryFolder()
    unpacked = open_store(folder.path, folder.path)
    with _open_archive(store, path) as (archive, member), unpacked.create("images.npy") as target:
        npz.copy_array(archive, member, target)
    return open_array(unpacked, "images.npy", folder)


# Consecutive comparisons use the same archive.
@lru_cache(maxsize=2)
def _open_known(store: Store, path: str, stamp: str) -> StoredArray:
    return open_images(store, path)
