"""The wrapped data sets: map-style, with pairs of an image and something else."""

from typing import Any, Protocol

from robustgen.errors import ArgumentTypeError


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
