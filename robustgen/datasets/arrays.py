"""Sets that are arrays, as CIFAR-10-C and CIFAR-10-P: a row for each image."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import Arm, Kind
from robustgen.datasets.base import Dataset, Labels, Pixels, name_contents, read_names
from robustgen.errors import ImageError, SourceError
from robustgen.output.files import LABELS
from robustgen.regular_file import open_regular
from robustgen.sources.sample_names import KEYS


@dataclass(eq=False)
class Arrays(Dataset):
    """The layout of CIFAR-10-C and CIFAR-10-P: an array per corruption or perturbation, and `labels.npy`.

    Parameters
    ----------
    root, kind, arms, about
        As for `Dataset`. The severities of a corruption follow each other in its array.
    """

    root: Path
    kind: Kind
    arms: tuple[Arm, ...]
    about: Mapping[str, Any]

    format = "npy"
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

    def _path(self, arm: Arm) -> Path:
        return self.root / f"{self.benchmark.array_name(arm)}.npy"

    def _open_checked(self, path: Path) -> Pixels:
        array = open_array(path)
        axes = self.benchmark.array_axes
        if array.dtype != np.uint8 or array.ndim != axes or array.shape[-1] != 3 or 0 in array.shape:
            shape = self.benchmark.array_shape
            raise SourceError(f"{path}: {array.dtype} {array.shape} is not uint8 {shape}")
        return array

    def _stretches(self, arm: Arm) -> list[Arm]:
        """The arms that share the array of `arm`, in order."""
        return [other for other in self.arms if self._path(other) == self._path(arm)]

    def _rows(self, arm: Arm) -> int:
        path, shared = self._path(arm), len(self._stretches(arm))
        rows = len(self._open(path))
        if rows % shared:
            raise SourceError(f"{path}: its {rows} rows are not {shared} severities of as many images")
        return rows // shared

    def _read_keys(self) -> tuple[str, ...]:
        path = self.root / KEYS
        lines = read_names(path)
        if lines is None:
            # As the source of these images calls them, so that a regenerated set has the same keys.
            return tuple(f"{i:05d}" for i in range(self.images))
        keys = tuple(lines)
        if len(keys) != self.images:
            raise SourceError(f"{path}: {len(keys)} keys for {self.images} {name_contents(self.kind)}")
        return keys

    def _read_labels(self) -> Labels | None:
        path = self.root / LABELS
        if not path.exists() and self.kind == "p":
            return None
        labels = open_array(path)
        if labels.dtype.kind not in "iu" or labels.ndim != 1 or len(labels) % self.images or not len(labels):
            wanted = f"a class for each of {self.images} {name_contents(self.kind)}"
            raise SourceError(f"{path}: {labels.dtype} {labels.shape} is not {wanted}")
        return labels[: self.images].astype(np.int64)

    def keys(self, arm: Arm) -> tuple[str, ...]:
        """As `Dataset.keys`."""
        return self._keys

    def labels(self, arm: Arm) -> Labels | None:
        """As `Dataset.labels`."""
        return self._labels

    @property
    def classes(self) -> None:
        """As `Dataset.classes`."""
        return None

    def read(self, arm: Arm, key: str) -> Pixels:
        """As `Dataset.read`."""
        try:
            return self.load(arm, self._rows_by_key[key])
        except KeyError:
            raise ImageError(f"{self._path(arm)}: has no row for {key!r}") from None

    @cached_property
    def _rows_by_key(self) -> dict[str, int]:
        return {key: row for row, key in enumerate(self._keys)}

    def load(self, arm: Arm, index: int) -> Pixels:
        """As `Dataset.load`."""
        stretch = self._stretches(arm).index(arm)
        return np.array(self._open(self._path(arm))[stretch * self.images + index])


def open_array(path: Path) -> NDArray[Any]:
    """The array in a `.npy` file, mapped.

    Raises
    ------
    SourceError
        It cannot be read, or holds objects.
    """
    try:
        open_regular(path).close()
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise SourceError(f"{path}: no whole NumPy array of numbers ({error})") from error
    return array
