"""The keys of the items of a data set: the names of the same images in `make-c` and `make-p`."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from robustgen.errors import ArgumentError, ArgumentTypeError
from robustgen.sets.sources.imagenet import find_folders_of_classes
from robustgen.torch.pairs import MapStyle

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
    raise ArgumentError(
        f"the keys of a {type(base).__name__} are unknown: give key=, a function of the index or a sequence"
    )


def _key_of_part(whole: Callable[[int], str], indices: Sequence[int], index: int) -> str:
    return whole(int(indices[index]))


def _check_level(folder: Any) -> None:
    """Refuse a root above ImageNet's class folders, by the first image and the last."""
    ends = {0, len(folder.samples) - 1} if folder.samples else set()
    if around := find_folders_of_classes(_key_below(folder, index) for index in ends):
        raise ArgumentError(
            f"{folder.root}: its class folders are deeper, in {', '.join(around)}; name one as root, or "
            "give key="
        )


def _key_below(folder: Any, index: int) -> str:
    """Return the path below `root` of an item of torchvision's `DatasetFolder`."""
    return Path(folder.samples[index][0]).relative_to(folder.root).as_posix()
