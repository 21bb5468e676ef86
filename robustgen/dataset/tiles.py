"""Pictures for stickers and mosaics, from another source or from the set itself."""

import hashlib
import io
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from robustgen.display.progress import track
from robustgen.errors import ConfigError, ImageError
from robustgen.execution import count_cores
from robustgen.files.storage import Store
from robustgen.imaging.pixels import Rgb
from robustgen.imaging.tiles import MOST_PICTURES, TileBank, shrink_to_tile
from robustgen.sources.base import Reusable, Source


class Tiles(Reusable):
    """Bank of tiles, and the number of each picture in it. Picklable, and small when pickled.

    Workers read the tiles from the output state, where `make_ready` writes them.

    Parameters
    ----------
    store : Store
        The output state.
    digests : mapping of int to str
        Side of the tiles in pixels to a SHA-256 of all tiles of that side.
    numbers : mapping of str to int
        Key of each picture to its number.
    own : bool
        Whether the pictures are the images of the set; each is then excluded from its own tiles.
    """

    def __init__(
        self, store: Store, digests: Mapping[int, str], numbers: Mapping[str, int], own: bool
    ) -> None:
        self.store, self.digests, self.own, self.count = store, digests, own, len(numbers)
        parts = [hashlib.sha256(_join(numbers)).hexdigest(), *(digests[side] for side in sorted(digests))]
        self._name = f"tiles-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}.npz"

    @cached_property
    def content(self) -> tuple[TileBank, dict[str, int]]:
        """Return the bank and the number of each picture, from the output state."""
        with np.load(io.BytesIO(self.store.read(self._name)), allow_pickle=False) as content:
            keys = content["keys"].tobytes().decode("utf-8", "surrogateescape").split("\0")
            tiles = {side: content[str(side)] for side in self.digests}
        return TileBank(tiles), {key: number for number, key in enumerate(keys)}

    def bank_for(self, key: str) -> TileBank:
        """Return the bank for the image `key`, without that image if the pictures are those of the set."""
        bank, numbers = self.content
        return bank.without(numbers[key]) if self.own and key in numbers else bank

    def describe(self, side: int) -> str:
        """Return what decides the pixels of tiles of `side`, in one line."""
        whose = "of the set itself" if self.own else "of another source"
        return f"{self.count} {whose}, {self.digests[side][:16]}"

    def make_ready(self) -> None:
        """Write the tiles where workers read them."""
        if self.store.exists(self._name):
            return
        bank, numbers = self.content
        buffer = io.BytesIO()
        keys = np.frombuffer(_join(numbers), np.uint8)
        tiles: dict[str, Any] = {str(side): bank.tiles(side) for side in self.digests}
        np.savez(buffer, keys=keys, **tiles)
        self.store.put(self._name, buffer.getvalue())


def read_tiles(
    source: Source, keys: Iterable[str], sides: Iterable[int], store: Store, *, own: bool
) -> Tiles:
    """Read the pictures `keys` of `source`, at most the first 100 096, and shrink them to tiles of `sides`.

    Parameters
    ----------
    source : Source
    keys : iterable of str
    sides : iterable of int
    store : Store
        Store that `Tiles.make_ready` will write the tiles to.
    own : bool
        Whether `source` is the set itself; unreadable pictures are then skipped, because the run reports
        them.

    Raises
    ------
    ConfigError
        There are too few pictures, or one of another source cannot be read.
    """
    wanted = [*dict.fromkeys(sides)]
    chosen = [*islice(keys, MOST_PICTURES)]

    def shrink(key: str) -> list[Rgb] | None:
        try:
            picture = source.open(key)
            return [shrink_to_tile(picture, side) for side in wanted]
        except ImageError as error:
            if own:
                return None
            raise ConfigError(f"tiles: {source.location}: {error}") from error

    with ThreadPoolExecutor(count_cores()) as pool:
        read = track(zip(chosen, pool.map(shrink, chosen), strict=True), len(chosen), "tiles")
        kept = {key: tiles for key, tiles in read if tiles}
    if len(kept) < 1 + own:
        reason = "the set itself contains no other picture" if own else "it contains no picture"
        raise ConfigError(f"tiles: {source.location}: {reason}; name other pictures with --tiles")
    numbers = {key: number for number, key in enumerate(kept)}
    stacked = {side: np.stack([tiles[place] for tiles in kept.values()]) for place, side in enumerate(wanted)}
    digests = {side: _digest(each) for side, each in stacked.items()}
    bank = Tiles(store, digests, numbers, own)
    bank.content = TileBank(stacked), numbers
    return bank


def _join(keys: Iterable[str]) -> bytes:
    return "\0".join(keys).encode("utf-8", "surrogateescape")


def _digest(tiles: Rgb) -> str:
    return hashlib.sha256(np.ascontiguousarray(tiles).data).hexdigest()
