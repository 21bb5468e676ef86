"""Streams for test-time adaptation, with images created on the fly."""

import operator
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from robustgen.errors import ArgumentError
from robustgen.lab.related.streams.ccc import StreamCell
from robustgen.lab.related.streams.rows import CccFile, StreamRow, holds_ccc, read_rows
from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.decode import Location
from robustgen.torch.datasets import open_corrupter
from robustgen.torch.items import Key, MapStyle, Quality, resolve_keys, resolve_quality
from robustgen.torch.players import CccPlayer, DomainPlayer, Player


class StreamDataset:
    """A map-style data set of the images of a stream, in its order: ``(image, label)``.

    The label is that of the stream. Use a DataLoader that does not shuffle; the number of workers does not
    matter.

    Parameters
    ----------
    base, seed, edition, key, jpeg, transform
        As in `CorruptedDataset`; the pixels of a key, corruption and severity are the same. The lines of a
        CCC stream contain their own seeds, and its edition is ``"imagenet"``.
    stream : path, or iterable of StreamRow
        A file written by `robustgen stream`. Lines of a CCC stream are read on demand, so that memory does
        not grow with their number.

    Attributes
    ----------
    variants : tuple of Variant
        The corruptions at their severities, in the order of their first use; empty for CCC, see `variant`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        As in `CorruptedDataset`; or the stream cannot be read, names an image that the base does not have, or
        was drawn for another edition.
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
        self._player = self._open(stream, edition, seed, jpeg, transform)
        self.variants = self._player.variants

    def _open(
        self,
        stream: Location | Iterable[StreamRow],
        edition: str,
        seed: int,
        jpeg: Quality,
        transform: Callable[[Any], Any] | None,
    ) -> Player:
        path = Path(stream) if isinstance(stream, str | PathLike) else None
        if path and holds_ccc(path):
            if get_edition(edition).name != "imagenet" or seed:
                raise ArgumentError(f"{stream}: a CCC stream has edition 'imagenet', and its own seeds")
            quality = resolve_quality(jpeg, edition)
            return CccPlayer(self.base, CccFile(path), self.key, quality, transform)
        rows: Any = read_rows(path) if path else stream
        corrupter = open_corrupter(edition, seed, jpeg, transform)
        return DomainPlayer(self.base, rows, str(path or "stream"), self.key, corrupter)

    def variant(self, index: int) -> Variant | StreamCell:
        """Return corruption and severity of an item; for CCC both corruptions with their severities."""
        return self._player.variant(index)

    def visit(self, index: int) -> int:
        """Return the number of the pass through the corruptions that an item belongs to, from 1."""
        return self._player.visit(index)

    def reset(self, index: int) -> bool:
        """Return whether the model should be reset before this item."""
        return self._player.reset(index)

    def __len__(self) -> int:
        return len(self._player)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self._player.play(range(len(self))[operator.index(index)])
