"""Items of data sets: their arguments, keys and seeds."""

import operator
from collections.abc import Callable, Iterable, Sequence
from ctypes import c_uint64
from functools import partial
from multiprocessing.context import get_spawning_popen
from multiprocessing.sharedctypes import RawValue
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from robustgen.errors import ArgumentError, ArgumentTypeError, explain_import
from robustgen.pixels.benchmarks.binding import bind
from robustgen.pixels.benchmarks.corruptions import expand_families
from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import CLEAN, CLEAN_VARIANT, IMAGENET_C, USUAL_SCALE, Variant
from robustgen.sets.dataset.recipes import BenchmarkRecipe
from robustgen.sets.sources.imagenet import find_folders_of_classes


def import_torch(name: str) -> Any:
    """Return PyTorch, which the object called `name` needs; raise a MissingDependencyError without it."""
    with explain_import(f"{name} needs PyTorch", "torch"):
        import torch
    return torch


# --- the wrapped data sets: map-style, with pairs of an image and something else -------------------


class MapStyle(Protocol):
    """A data set with a length, whose items are images with their labels."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


def split_pair(item: Any, index: int) -> tuple[Any, Any]:
    """Return the image and the label of `item`, the item number `index`.

    Raises
    ------
    ArgumentTypeError
        The item is not a pair.
    """
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise ArgumentTypeError(f"item {index} of the dataset must be a pair (image, label)")
    return item[0], item[1]


# --- the keys of the items: the names of the same images in `make-c` and `make-p` ------------------

Key = Callable[[int], str] | Sequence[str] | None
"""A function of the index, a sequence as long as the data set, or nothing."""

# Folder names of CIFAR-10 and CIFAR-100 in torchvision.
_CIFAR = ("cifar-10-batches-py", "cifar-100-python")


def resolve_keys(base: MapStyle, key: Key = None) -> Callable[[int], str]:
    """Return a function that returns the key of each item of `base` by its index.

    Without `key` the keys are those of `make-c`: the data set's `keys` attribute; for torchvision's folders
    the path below `root`, POSIX; for the test split of torchvision's CIFAR the index in five digits; and for
    parts (`torch.utils.data.Subset`) the keys of the full data set. Picklable if a given `key` is.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        `key` is invalid, or is missing for a data set without known keys.
    """
    if key is None:
        return _find_keys(base)
    if callable(key):
        return partial(_call, key)
    return _look_up(base, key)


def _call(key: Callable[[int], str], index: int) -> str:
    return _check(key(index), index)


def _look_up(base: MapStyle, keys: Sequence[str]) -> Callable[[int], str]:
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise ArgumentTypeError(f"key must be a function or a sequence of keys, not {type(keys).__name__}")
    if len(keys) != len(base):
        raise ArgumentError(f"key must contain a key for each of the {len(base)} items, not {len(keys)}")
    names = tuple(_check(name, index) for index, name in enumerate(keys))
    return names.__getitem__


def _check(name: Any, index: int) -> str:
    if not isinstance(name, str) or not name:
        raise ArgumentTypeError(f"the key of item {index} must be a string that is not empty, not {name!r}")
    return name


def _find_keys(base: Any) -> Callable[[int], str]:
    if hasattr(base, "keys") and not callable(base.keys):
        return _look_up(base, base.keys)
    if hasattr(base, "dataset") and hasattr(base, "indices"):
        return partial(_key_of_part, resolve_keys(base.dataset), base.indices)
    if hasattr(base, "root") and hasattr(base, "samples"):
        _check_level(base)
        return partial(_key_below, base)
    if getattr(base, "base_folder", None) in _CIFAR and base.train is False:
        return "{:05d}".format
    raise ArgumentError(f"a {type(base).__name__} has no known keys: give key=, a function or a sequence")


def _key_of_part(whole: Callable[[int], str], indices: Sequence[int], index: int) -> str:
    return whole(int(indices[index]))


def _check_level(folder: Any) -> None:
    """Refuse a root above ImageNet's class folders, by the first image and the last."""
    ends = {0, len(folder.samples) - 1} if folder.samples else set()
    if around := find_folders_of_classes(_key_below(folder, index) for index in ends):
        raise ArgumentError(f"{folder.root}: name one of {', '.join(around)} as root, or give key=")


def _key_below(folder: Any, index: int) -> str:
    """Return the path below `root` of an item of torchvision's `DatasetFolder`."""
    return Path(folder.samples[index][0]).relative_to(folder.root).as_posix()


# --- validation of the arguments of data sets: whole numbers, variants and qualities ---------------

Quality = int | Literal["published"] | None
"""Quality of JPEG files: 1 to 95, "published" for that of the edition, or None for no JPEG."""


def check_natural(name: str, value: Any) -> int:
    """Return `value` as an int.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        The value is not from 0 to 2**64 - 1.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 0 <= int(value) < 2**64:
        raise ArgumentError(f"{name} must be from 0 to 2**64 - 1, not {value}")
    return int(value)


def expand_groups(names: Iterable[str], scale: int | None) -> tuple[str, ...]:
    """Return `names` with groups and families replaced by their members, as in ``--corruptions``.

    Parameters
    ----------
    names : iterable of str
        Corruptions, ``"common"``, ``"extra"``, ``"all"``, and families such as ``"c-bar"``, ``"c-bar:all"``.
    scale : int or None
        Scale that members of a family must have constants for; None for the usual 224.
    """
    found = expand_families([*names], (scale or USUAL_SCALE,))
    return tuple(dict.fromkeys(name for each in found for name in IMAGENET_C.groups.get(each, (each,))))


def find_variant(recipe: BenchmarkRecipe[Any], name: str, level: Any) -> Variant:
    """Return the variant of the operation `name` at `level`; ``"clean"`` goes with level 0.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        The operation or level does not exist, or has no constants for the edition.
    """
    benchmark = recipe.benchmark
    if name == CLEAN and benchmark.has_clean:
        if level != 0:
            raise ArgumentError(f"{benchmark.level} of clean images must be 0, not {level!r}")
        return CLEAN_VARIANT
    bound = bind(recipe.edition, name, level, benchmark.kind)
    bound.any_parameters()
    # 3.0 becomes 3, because it would seed another random stream.
    return benchmark.variant(name, bound.operation.check_level(level))


def resolve_quality(jpeg: Quality, edition: str) -> int | None:
    """Return the quality of the JPEG files that images pass through, or None.

    Raises
    ------
    ArgumentError
        `jpeg` is not a quality.
    """
    if jpeg == "published":
        row = get_edition(edition)
        return row.quality if row.format == "jpeg" else None
    if jpeg is None or (isinstance(jpeg, Integral) and not isinstance(jpeg, bool) and 1 <= jpeg <= 95):
        return jpeg
    raise ArgumentError(f"jpeg must be a quality from 1 to 95, 'published' or None, not {jpeg!r}")


# --- data sets whose items differ between epochs, also in worker processes -------------------------


class Epoch:
    """A whole number in memory that worker processes share with their parent."""

    def __init__(self, value: int = 0) -> None:
        self._memory = RawValue(c_uint64, value)

    @property
    def value(self) -> int:
        """Return the number."""
        return int(self._memory.value)

    @value.setter
    def value(self, value: int) -> None:
        self._memory.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        # Memory is shared only with a process that is being started; other copies are independent.
        if get_spawning_popen() is None:
            return Epoch, (self.value,)
        return object.__new__, (Epoch,), {"_memory": self._memory}


class EpochDataset:
    """A map-style data set of the same length as another, whose draws depend on seed, epoch and index."""

    def __init__(self, dataset: MapStyle, seed: int) -> None:
        self.dataset: MapStyle = dataset
        self.seed: int = check_natural("seed", seed)
        self._epoch = Epoch()

    @property
    def epoch(self) -> int:
        """Return the current epoch, 0 at first."""
        return self._epoch.value

    def set_epoch(self, epoch: int) -> None:
        """Give every item other draws. Call this before each epoch; it also reaches persistent workers."""
        self._epoch.value = check_natural("epoch", epoch)

    def __len__(self) -> int:
        return len(self.dataset)


# --- items of a data set whose random transforms depend only on the index, not on workers ----------


class SeededDataset(EpochDataset):
    """A map-style data set that returns the items of another, after seeding PyTorch's generator for each.

    Transforms that draw from PyTorch's generator, such as `Corrupt` and those of torchvision, then depend
    only on seed, epoch and index, not on the number of workers or the order of the items.

    Parameters
    ----------
    dataset : map-style dataset
        Data set whose items apply the transforms.
    seed : int
        Seed, not negative.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        `seed` is invalid.
    MissingDependencyError
        PyTorch is not installed.

    Examples
    --------
    >>> import torch
    >>> from robustgen.torch import SeededDataset
    >>> class Draws(torch.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         return torch.rand(())
    >>> seeded = SeededDataset(Draws(), seed=0)
    >>> bool(seeded[1] == seeded[1]), bool(seeded[1] == seeded[2])
    (True, False)
    """

    def __init__(self, dataset: MapStyle, *, seed: int = 0) -> None:
        super().__init__(dataset, seed)
        import_torch("SeededDataset")

    def __getitem__(self, index: int) -> Any:
        position = range(len(self))[operator.index(index)]
        sequence = np.random.SeedSequence((self.seed, self.epoch, position))
        generator = import_torch("SeededDataset").default_generator
        before = generator.get_state()
        generator.manual_seed(int(sequence.generate_state(1, np.uint64)[0]) >> 1)
        try:
            return self.dataset[position]
        finally:
            generator.set_state(before)
