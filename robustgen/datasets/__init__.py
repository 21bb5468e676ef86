"""Benchmark sets to be read: as make-c and make-p wrote them, or published ones as they were downloaded.

    dataset = open_dataset("out/imagenet-c", classes=wnids)
    for arm in dataset.arms:
        for images in dataset.batches(arm, 64):
            ...

Nothing of this depends on a framework; `predicting` reads through it, and so can any other program.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import BENCHMARKS, CLEAN, TITLES, Arm, Benchmark, Kind
from robustgen.datasets.prefetch import prefetch
from robustgen.errors import ConfigError, ImageError, SourceError
from robustgen.imaging import decode, video
from robustgen.output.files import KEYS, LABELS, MANIFEST
from robustgen.output.state import State
from robustgen.sources.base import class_of

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]

VIDEO = ".mp4"
EQUALISED = "CLAHE"
"""What it calls a set that `robustgen preprocess clahe` made of another."""
_LEVELS = tuple(map(str, BENCHMARKS["c"].levels))


def arm_called(folder: str, kind: Kind) -> Arm:
    """The arm whose files lie in `folder`: ``fog/3``, ``clean``, ``tilt`` or ``shot_noise_2``.

    Raises
    ------
    SourceError
        There can be no such folder in a set of this kind.
    """
    arm = BENCHMARKS[kind].arm_in(folder)
    if arm is None:
        raise SourceError(f"{folder!r} is no corruption with a severity from 1 to {_LEVELS[-1]}")
    return arm


class Dataset(ABC):
    """A C or a P set.

    Attributes
    ----------
    root : Path
    kind : {"c", "p"}
    arms : tuple of Arm
        The clean images, where there are any, then all corruptions and severities; or all perturbations.
    about : mapping
        What `dataset.json` says; empty for a set that has none.
    """

    root: Path
    kind: Kind
    arms: tuple[Arm, ...]
    about: Mapping[str, Any]

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark that it is a set of."""
        return BENCHMARKS[self.kind]

    @abstractmethod
    def keys(self, arm: Arm) -> tuple[str, ...]:
        """Names of the images or sequences of `arm`; those of all arms are the same.

        Raises
        ------
        SourceError
            The arm lacks some of the images of the others, or has more.
        """

    @abstractmethod
    def labels(self, arm: Arm) -> Labels | None:
        """True classes, (images,); None for a P set of arrays that came without.

        Raises
        ------
        SourceError
            A class folder is not among the classes, or the labels do not fit the images.
        """

    @property
    @abstractmethod
    def classes(self) -> int | None:
        """How many classes there are, as far as the set tells."""

    @abstractmethod
    def load(self, arm: Arm, index: int) -> Pixels:
        """The image (H, W, 3), or the frames (T, H, W, 3), of the key at `index`.

        Raises
        ------
        ImageError
            It cannot be read.
        """

    def batches(
        self,
        arm: Arm,
        size: int,
        start: int = 0,
        prepare: Callable[[Pixels], Pixels] | None = None,
    ) -> Iterator[Pixels]:
        """Images or sequences in the order of `keys`, `size` at a time; the next are read meanwhile.

        Parameters
        ----------
        arm : Arm
        size : int
        start : int
            Index of the first.
        prepare : callable, optional
            Applied to each image or sequence, for instance to resize it.

        Yields
        ------
        ndarray, (size, H, W, 3) or (size, T, H, W, 3), uint8
            The last may be smaller.

        Raises
        ------
        ImageError
            One cannot be read, or they differ in size.
        """

        def read(first: int) -> Pixels:
            items = [self.load(arm, index) for index in range(first, min(first + size, count))]
            return self._stack(arm, [prepare(item) for item in items] if prepare else items)

        count = len(self.keys(arm))
        yield from prefetch(read, range(start, count, size))

    def _stack(self, arm: Arm, items: list[Pixels]) -> Pixels:
        if len({item.shape for item in items}) > 1:
            sizes = " and ".join(sorted({"x".join(map(str, item.shape[:-1])) for item in items})[:2])
            raise ImageError(f"{self.root / arm.folder}: images differ in size: {sizes}")
        return np.stack(items)


# --- trees ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class Tree(Dataset):
    """A folder per arm: JPEG files, MP4 files or folders of frames, within class folders.

    Parameters
    ----------
    root, kind, arms, about
        As for `Dataset`.
    folders : mapping of Arm to Path
    names : sequence of str, optional
        Class folders in the order of the model's outputs; otherwise those there are, sorted.
    """

    root: Path
    kind: Kind
    arms: tuple[Arm, ...]
    about: Mapping[str, Any]
    folders: Mapping[Arm, Path]
    names: Sequence[str] | None = None
    _listed: dict[Arm, tuple[str, ...]] = field(default_factory=dict)

    def keys(self, arm: Arm) -> tuple[str, ...]:
        """As `Dataset.keys`."""
        first = self._listing(self.arms[0])
        if arm not in self._listed and self._listing(arm) != first:
            raise SourceError(f"{self.folders[arm]}: {difference(self._listing(arm), first, 'images')}")
        return first

    def _listing(self, arm: Arm) -> tuple[str, ...]:
        if arm not in self._listed:
            found = _images(self.folders[arm]) if self.kind == "c" else _sequences(self.folders[arm])
            self._listed[arm] = keys = tuple(sorted(found))
            if twice := next((a for a, b in pairwise(keys) if a == b), None):
                raise SourceError(f"{self.folders[arm]}: {twice!r} is there as a video and as frames")
            if not self._listed[arm]:
                raise SourceError(f"{self.folders[arm]}: holds no {noun(self.kind)}")
        return self._listed[arm]

    @cached_property
    def _index(self) -> dict[str, int]:
        names = self.names or sorted({class_of(key) for key in self.keys(self.arms[0])})
        return {name: i for i, name in enumerate(names)}

    @property
    def classes(self) -> int:
        """As `Dataset.classes`."""
        return len(self._index)

    def labels(self, arm: Arm) -> Labels:
        """As `Dataset.labels`."""
        index, keys = self._index, self.keys(arm)
        strangers = {class_of(key) for key in keys} - index.keys()
        if strangers:
            raise SourceError(f"{self.root}: class folder {min(strangers)!r} is not in the class list")
        return np.array([index[class_of(key)] for key in keys], np.int64)

    def load(self, arm: Arm, index: int) -> Pixels:
        """As `Dataset.load`."""
        path = self.path(arm, self.keys(arm)[index])
        return decode.decode(path) if self.kind == "c" else video.read_sequence(path)

    def path(self, arm: Arm, key: str) -> Path:
        """The file, or the folder of the frames, of the key; a sequence has the same key in both."""
        path = self.folders[arm] / key
        return path if self.kind == "c" or path.is_dir() else path.with_name(f"{path.name}{VIDEO}")


def noun(kind: Kind) -> str:
    """What a set of this kind holds."""
    return f"{BENCHMARKS[kind].noun}s"


def difference(own: Sequence[str], others: Sequence[str], what: str) -> str:
    """How the keys `own` differ from `others`, in a few words."""
    missing, more = sorted(set(others) - set(own)), sorted(set(own) - set(others))
    parts = []
    if missing:
        parts.append(f"{len(missing)} of {len(others)} {what} are missing, for instance {missing[0]!r}")
    if more:
        parts.append(f"{len(more)} {what} too many, for instance {more[0]!r}")
    return " and ".join(parts) or f"the {what} are in another order"


def _images(folder: Path) -> Iterator[str]:
    for inside, files in _walk(folder):
        yield from (f"{inside}{name}" for name in files if name.lower().endswith(decode.EXTENSIONS))


def _sequences(folder: Path) -> Iterator[str]:
    for inside, files in _walk(folder):
        yield from (f"{inside}{name.removesuffix(VIDEO)}" for name in files if name.endswith(VIDEO))
        if inside and any(name.endswith(".png") for name in files):
            yield inside.removesuffix("/")


def _walk(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each folder below `folder`, as a prefix of keys, and the names of its files, hidden ones apart."""
    for path, _, files in os.walk(folder):
        inside = Path(path).relative_to(folder).as_posix()
        yield "" if inside == "." else f"{inside}/", [name for name in files if not name.startswith(".")]


# --- arrays --------------------------------------------------------------------------------------


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

    def __post_init__(self) -> None:
        """Find the number of images from the first array, and check all others against it."""
        self._open = lru_cache(maxsize=2)(self._opened)
        self.images = self._rows(self.arms[0])
        for arm in self.arms:
            if self._rows(arm) != self.images:
                path = self._path(arm)
                raise SourceError(f"{path}: {self._rows(arm)} images, where other arrays have {self.images}")
        self._keys = self._read_keys()
        self._labels = self._read_labels()

    def _path(self, arm: Arm) -> Path:
        return self.root / f"{self.benchmark.array_name(arm)}.npy"

    def _opened(self, path: Path) -> Pixels:
        array = _array(path)
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
        if not path.exists():
            # As the source of these images calls them, so that a regenerated set has the same keys.
            return tuple(f"{i:05d}" for i in range(self.images))
        keys = tuple(path.read_text(encoding="utf-8", errors="surrogateescape").splitlines())
        if len(keys) != self.images:
            raise SourceError(f"{path}: {len(keys)} keys for {self.images} {noun(self.kind)}")
        return keys

    def _read_labels(self) -> Labels | None:
        path = self.root / LABELS
        if not path.exists() and self.kind == "p":
            return None
        labels = _array(path)
        if labels.dtype.kind not in "iu" or labels.ndim != 1 or len(labels) % self.images or not len(labels):
            wanted = f"a class for each of {self.images} {noun(self.kind)}"
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

    def load(self, arm: Arm, index: int) -> Pixels:
        """As `Dataset.load`."""
        stretch = self._stretches(arm).index(arm)
        return np.array(self._open(self._path(arm))[stretch * self.images + index])


def _array(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise SourceError(f"{path}: no whole NumPy array of numbers ({error})") from error
    return array


# --- finding out ---------------------------------------------------------------------------------


def open_dataset(root: str | Path, classes: Sequence[str] | None = None) -> Dataset:
    """Open a C or P set, whichever lies at `root`.

    Parameters
    ----------
    root : path
        An output of make-c or make-p, or a published set: ImageNet-C, ImageNet-P, Tiny ImageNet or CIFAR.
    classes : sequence of str, optional
        Names of class folders in the order of the model's outputs. Otherwise the labels count the class
        folders in sorted order; those of arrays are what `labels.npy` says.

    Raises
    ------
    SourceError
        There is none, it is not finished, or its parts do not fit each other.
    ConfigError
        Classes are given for arrays, which have no class folders.
    """
    root = Path(root)
    if not root.is_dir():
        raise SourceError(f"{root}: not a folder")
    about = about_of(root)
    kind, folders = _from_manifest(root, about) if about.get("kind") in TITLES else _from_layout(root)
    arms = tuple(arm_called(folder, kind) for folder in _in_order(folders, kind))
    if about.get("arrays") or (not about and (root / next(iter(folders.values()))).suffix == ".npy"):
        if classes:
            raise ConfigError(f"a class list goes with class folders; {root} has arrays with labels.npy")
        return Arrays(root, kind, arms, about)
    return Tree(root, kind, arms, about, {arm: root / folders[arm.folder] for arm in arms}, classes)


def about_of(root: Path) -> dict[str, Any]:
    """What the manifest at `root` says, or nothing if there is none.

    Of a set that went through CLAHE, kind and digest of the source are those of the original, so that the two
    can be scored together, and ``"CLAHE"`` are the parameters.

    Raises
    ------
    SourceError
        The set is not finished, or the manifest cannot be read.
    """
    path = root / MANIFEST
    if not path.exists():
        if State(root).has_settings:
            raise SourceError(f"{root}: has no {MANIFEST}; the run that makes it has not finished")
        return {}
    try:
        about = json.loads(path.read_bytes())
        if not about["complete"] and not about["failures"]:
            raise SourceError(f"{root}: is not complete; give its make command again")
        if about.get("kind") == EQUALISED:
            config = about["config"]
            about |= {
                "kind": config.get("benchmark"),
                "source": about["source"] | {"digest": config.get("origin")},
                EQUALISED: about["settings"]["clahe"],
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path}: cannot be read ({error})") from error
    return dict(about)


def _from_manifest(root: Path, about: Mapping[str, Any]) -> tuple[Kind, dict[str, str]]:
    kind = TITLES[about["kind"]].kind
    arms = about.get("arms") or []
    if not isinstance(arms, list) or not all(isinstance(arm, str) for arm in arms):
        raise SourceError(f"{root / MANIFEST}: arms must be a list of names")
    files = {arm: f"{arm.partition('/')[0]}.npy" if about.get("arrays") else arm for arm in arms}
    missing = [arm for arm, file in files.items() if not (root / file).exists()]
    if missing or not arms:
        raise SourceError(f"{root}: lacks {', '.join(missing[:5]) or 'all arms'}, which its {MANIFEST} names")
    return kind, files


def _from_layout(root: Path) -> tuple[Kind, dict[str, str]]:
    """Kind, and where each arm is, of a set without `dataset.json`."""
    # Archives of the published sets are often unpacked into a folder per category.
    for pattern in ("*", "*/*"):
        found = {path.name: path for path in sorted(root.glob(pattern)) if _operation(path)}
        if set(found) - {CLEAN, f"{CLEAN}.npy"}:
            return _laid_out(root, found)
    raise SourceError(f"{root}: holds no folder or array of a corruption or perturbation")


def _operation(path: Path) -> bool:
    name = path.name.removesuffix(".npy")
    known = {CLEAN, *BENCHMARKS["c"].names, *BENCHMARKS["p"].names}
    return (name in known or arm_called(name, "p").name in known) and (path.is_dir() or path.suffix == ".npy")


def _laid_out(root: Path, found: Mapping[str, Path]) -> tuple[Kind, dict[str, str]]:
    arrays = {name: path for name, path in found.items() if path.suffix == ".npy"}
    chosen = arrays or found
    samples = [path for name, path in chosen.items() if name.removesuffix(".npy") != CLEAN]
    # Of an empty folder nothing can be told.
    sample = next((path for path in samples if arrays or any(path.iterdir())), samples[0])
    kind: Kind = "c" if (_array(sample).ndim == 4 if arrays else _has_severities(sample)) else "p"
    folders: dict[str, str] = {}
    for name, path in chosen.items():
        where = path.relative_to(root).as_posix()
        name = name.removesuffix(".npy")
        if kind == "p" or name == CLEAN:
            folders[name] = where
        else:
            levels = [level for level in _LEVELS if arrays or (path / level).is_dir()]
            folders |= {f"{name}/{level}": where if arrays else f"{where}/{level}" for level in levels}
    return kind, {folder: where for folder, where in folders.items() if kind == "c" or folder != CLEAN}


def _has_severities(folder: Path) -> bool:
    inside = [path for path in folder.iterdir() if path.is_dir()]
    return bool(inside) and all(path.name in _LEVELS for path in inside) and not [*folder.glob("*/*.mp4")]


def _in_order(folders: Iterable[str], kind: Kind) -> list[str]:
    """Clean first, then the order of the paper's tables, then others; levels stay in the order of arrays."""
    names = (CLEAN, *BENCHMARKS[kind].names)
    ranks = {name: i for i, name in enumerate(names)}
    return sorted(folders, key=lambda folder: ranks.get(arm_called(folder, kind).name, len(ranks)))
