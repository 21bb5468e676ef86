"""Streams for test-time adaptation, played on the fly."""

import operator
from array import array
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from robustgen.benchmark import Variant
from robustgen.errors import ArgumentError
from robustgen.imaging.decode import Location
from robustgen.streams.rows import StreamRow, read_rows
from robustgen.torch.arguments import Quality, find_arm
from robustgen.torch.corrupted import open_corrupter
from robustgen.torch.keys import Key, resolve_keys
from robustgen.torch.pairs import MapStyle, split_pair


class StreamDataset:
    """A map-style dataset of the images of a stream, in its order: ``(image, label)``.

    The label is that of the stream. Give it to a DataLoader that does not shuffle; the number of workers does
    not matter.

    Parameters
    ----------
    base, seed, edition, key, jpeg, transform
        As of `CorruptedDataset`; of one key, corruption and severity the pixels are the same.
    stream : path, or iterable of StreamRow
        What `robustgen stream` wrote.

    Attributes
    ----------
    arms : tuple of Variant
        The corruptions at their severities, in the order in which they first come.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        As of `CorruptedDataset`; the stream cannot be read, names what the base lacks, or was drawn for
        another edition.
    ImageError
        An image cannot be used; the message names its key.
    """

    def __init__(
        self,
        base: MapStyle,
        stream: Location | Iterable[StreamRow],
        *,
        seed: int = 0,
        edition: str,
        key: Key = None,
        jpeg: Quality = "published",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.base, self.key = base, resolve_keys(base, key)
        self._corrupter = open_corrupter(edition, seed, jpeg, transform)
        # Millions of rows: a few numbers each, which processes share.
        self._places, self._numbers, self._labels = array("q"), array("q"), array("q")
        self._visits, self._resets = array("q"), array("b")
        self.arms = self._read(stream)

    def _read(self, stream: Location | Iterable[StreamRow]) -> tuple[Variant, ...]:
        """Take in the rows, and return their arms."""
        rows, name = _open(stream)
        places = {self.key(index): index for index in range(len(self.base))}
        arms: dict[tuple[str, float], tuple[int, Variant]] = {}
        for number, row in enumerate(rows, 1):
            if row.key not in places:
                raise ArgumentError(f"{name}, line {number}: the data set has no image {row.key!r}")
            # Without the size of imagenet@384.
            own = self._corrupter.recipe.edition.partition("@")[0]
            if row.edition not in ("", own):
                raise ArgumentError(f"{name}: was drawn for the edition {row.edition!r}, not for {own!r}")
            what = row.corruption, row.severity
            if what not in arms:
                arms[what] = len(arms), self._find_arm(*what, f"{name}, line {number}")
            self._places.append(places[row.key])
            self._numbers.append(arms[what][0])
            self._labels.append(row.label)
            self._visits.append(row.visit)
            self._resets.append(row.reset)
        return tuple(arm for _, arm in arms.values())

    def _find_arm(self, corruption: str, severity: float, place: str) -> Variant:
        try:
            return find_arm(self._corrupter.recipe, corruption, severity)
        except ValueError as error:
            raise ArgumentError(f"{place}: {error}") from error

    def arm(self, index: int) -> Variant:
        """Corruption and severity of an item."""
        return self.arms[self._numbers[index]]

    def visit(self, index: int) -> int:
        """Return which time the corruptions are visited when this item comes, from 1."""
        return self._visits[index]

    def reset(self, index: int) -> bool:
        """Return whether the stream asks for the model to be reset before this item."""
        return bool(self._resets[index])

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        place = range(len(self))[operator.index(index)]
        source = self._places[place]
        image, _ = split_pair(self.base[source], source)
        return self._corrupter.corrupt(self.arm(place), self.key(source), image), self._labels[place]


def _open(stream: Location | Iterable[StreamRow]) -> tuple[Iterable[StreamRow], str]:
    """The rows of `stream`, and what messages call it."""
    if isinstance(stream, str | PathLike):
        return read_rows(Path(stream)), str(stream)
    return stream, "stream"
