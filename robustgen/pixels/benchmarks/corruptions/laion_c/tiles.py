"""Pictures for stickers and mosaics, from another source or from the set itself."""

from robustgen.pixels.benchmarks.ingredients import Ingredient


class Tiles(Ingredient):
    """Pictures for stickers and mosaics, at most the first 100 096 of a source."""

    name = "tiles"
    sentence = "pictures for tiles, in any source of images"
    absent = "own"


TILES = Tiles()
