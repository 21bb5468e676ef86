"""Pictures for stickers and mosaics, from another source or from the set itself."""

import hashlib
import io
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from robustgen.display.progress import track
from robustgen.errors import ConfigError, ImageError, SourceError
from robustgen.files.storage import Store
from robustgen.pixels.benchmarks.ingredients import IngredientSpec, OpenedIngredient
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.geometry import PreparationStep
from robustgen.pixels.imaging.laion_c_effects import MOST_PICTURES, STICKER_SIDE, TileBank, shrink_to_tile
from robustgen.sets.executors import count_cores
from robustgen.sets.sources.base import Options, Reusable
from robustgen.sets.sources.opening import open_source


def open_tiles(spec: IngredientSpec) -> "SetTiles":
    """Read the pictures, and shrink them to tiles of all sides that the variants need.

    Unreadable pictures of the set itself are skipped, because the run reports them.
    """
    source, keys, own = spec.source, spec.keys, spec.place is None
    try:
        if not own:
            source = open_source(spec.place, options=Options(libjpeg=spec.libjpeg))
            keys = source.keys()
    except SourceError as error:
        raise ConfigError(f"tiles: {error}") from error
    sides, chosen = [*dict.fromkeys(map(_find_side, spec.parameters))], keys[:MOST_PICTURES]

    def shrink(key: str) -> list[Rgb] | None:
        try:
            picture = source.open(key)
            return [shrink_to_tile(picture, side) for side in sides]
        except ImageError as error:
            if own:
                return None
            raise ConfigError(f"tiles: {source.location}: {error}") from error

    with ThreadPoolExecutor(count_cores()) as pool:
        read = track(zip(chosen, pool.map(shrink, chosen), strict=True), len(chosen), "tiles")
        kept = {key: tiles for key, tiles in read if tiles}
    if len(kept) < 1 + own:
        reason = "the set itself contains no other picture" if own else "it contains no picture"
        raise ConfigError(f"tiles: {source.location}: {reason}; name others by --with tiles=PATH")
    stacked = {side: np.stack([tiles[index] for tiles in kept.values()]) for index, side in enumerate(sides)}
    return SetTiles(spec.store, stacked, {key: number for number, key in enumerate(kept)}, own)


class SetTiles(Reusable, OpenedIngredient):
    """Bank of tiles, and the number of each picture in it. Picklable, and small when pickled.

    Workers read the tiles from the output state, where `make_ready` writes them.

    Parameters
    ----------
    store : Store
        The output state.
    tiles : mapping of int to uint8 ndarray of shape (N, side, side, 3)
        Tiles by side in pixels.
    numbers : mapping of str to int
        Key of each picture to its number.
    own : bool
        Whether the pictures are the images of the set; each is then excluded from its own tiles.
    """

    def __init__(self, store: Store, tiles: Mapping[int, Rgb], numbers: Mapping[str, int], own: bool) -> None:
        self.store, self.own, self.count = store, own, len(numbers)
        self.licence = "" if own else "Stickers and mosaics contain pictures of another source."
        self.digests = {side: hashlib.sha256(each.data).hexdigest() for side, each in tiles.items()}
        parts = [hashlib.sha256(_join(numbers)).hexdigest(), *(self.digests[side] for side in sorted(tiles))]
        self._name = f"tiles-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}.npz"
        self.content = TileBank(tiles), dict(numbers)

    @cached_property
    def content(self) -> tuple[TileBank, dict[str, int]]:
        """Return the bank and the number of each picture, from the output state."""
        with np.load(io.BytesIO(self.store.read(self._name)), allow_pickle=False) as content:
            keys = content["keys"].tobytes().decode("utf-8", "surrogateescape").split("\0")
            tiles = {side: content[str(side)] for side in self.digests}
        return TileBank(tiles), {key: number for number, key in enumerate(keys)}

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

    def describe(self, parameters: Any) -> str:
        """Return number, origin and digest of the tiles."""
        whose = "of the set itself" if self.own else "of another source"
        return f"{self.count} {whose}, {self.digests[_find_side(parameters)][:16]}"

    def provide(self, key: str, preparation: PreparationStep) -> TileBank:
        """Return the bank, without the image `key` if the pictures are those of the set."""
        bank, numbers = self.content
        return bank.without(numbers[key]) if self.own and key in numbers else bank


def _find_side(parameters: Any) -> int:
    """Return the side in pixels of the tiles for a distortion with these `parameters`."""
    return int(getattr(parameters, "tile", STICKER_SIDE))


def _join(keys: Iterable[str]) -> bytes:
    return "\0".join(keys).encode("utf-8", "surrogateescape")
