"""The six distortions of LAION-C.

Definitions: Li, Klein, Brendel, Geirhos and Zimmermann 2025, as the published generation code computes them.
The categories are robustgen's.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.ingredients import Ingredient
from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.benchmarks.registry import SUPERCLASS_ACCURACY, Family, corruption
from robustgen.pixels.imaging.arrays import Rgb, to_uint8, unit
from robustgen.pixels.imaging.decode import as_grey
from robustgen.pixels.imaging.geometry import Preparation, resize
from robustgen.pixels.imaging.kernels import drawing
from robustgen.pixels.imaging.laion_c_effects import (
    STICKER_SIDE,
    TileBank,
    apply_glitch,
    draw_shapes,
    lay_mosaic,
    open_bank,
    paint_shapes,
    paste,
    plan_glitch,
)
from robustgen.pixels.imaging.rng import Rng, integers

# --- the family LAION-C, and the preparation of its images -----------------------------------------

LAION_C = Family(
    "laion-c",
    "LAION-C",
    "Fanfei Li, Thomas Klein, Wieland Brendel, Robert Geirhos and Roland S. Zimmermann: LAION-C: An "
    "Out-of-Distribution Benchmark for Web-Scale Vision Models. International Conference on Machine "
    "Learning, 2025.",
    licence="MIT",
    edition="laion-c",
    level_mark="/intensity_level_",
    measure=SUPERCLASS_ACCURACY,
)
"""The six distortions."""


def published_preparation(name: str, severity: float) -> Preparation:
    """Return the geometry of the distortion `name`, for instance ``"laion-c:mosaic"``, at `severity`.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> preparation = robustgen.published_preparation("laion-c:mosaic", severity=1)
    >>> preparation.prepare(np.zeros((300, 400, 3), np.uint8)).shape
    (224, 224, 3)
    """
    distortion = LAION_C.corruptions[name]
    return distortion.preparation(distortion.parameters(severity, 224))


# --- pictures for stickers and mosaics, from another source or from the set itself -----------------


class Tiles(Ingredient):
    """Pictures for stickers and mosaics, at most the first 100 096 of a source."""

    name = "tiles"
    sentence = "pictures for tiles, in any source of images"
    default = "own"


TILES = Tiles()


# --- the distortions of LAION-C: shapes, lines, glitches, tiles of light, stickers and mosaics -----

_TILE = 14
_BEND = 40.0


@dataclass(frozen=True)
class Shapes:
    """Number of `shapes`."""

    shapes: int


@corruption("digital", Shapes, {224: (150, 300, 600, 800, 1000)}, family=LAION_C)
def geometric_shapes(image: Rgb, parameters: Shapes, rng: Rng) -> Rgb:
    """Cover the image with small triangles, squares, stars and circles."""
    height, width = image.shape[:2]
    return paint_shapes(image, draw_shapes(parameters.shapes, (height, width), rng))


@dataclass(frozen=True)
class Lines:
    """Number of `columns`, each a line that bends every `step` rows."""

    columns: int
    step: int


@corruption(
    "digital",
    Lines,
    {224: ((224, 1), (178, 2), (112, 4), (84, 6), (60, 8))},
    family=LAION_C,
    random=False,
    displaces=True,
)
def vertical_lines(image: Rgb, parameters: Lines, rng: Rng) -> Rgb:
    """Draw the image as vertical lines that bend where it is dark."""
    out = np.zeros(image.shape, np.uint8)
    drawing.bend_columns(image, as_grey(image), parameters.columns, max(parameters.step, 1), _BEND, out)
    return out


@dataclass(frozen=True)
class Glitch:
    """The `amount` of the glitch, up to 10; `seed` 1 for all images (published), or "own" for each one."""

    amount: float = within(0, 10)
    seed: Literal["published", "own"] = "published"


# Each amount draws its own moves, so amounts cannot be interpolated.
@corruption(
    "digital", Glitch, {224: (2, 4, 5, 8, 10)}, family=LAION_C, breaks={224: (1, 2, 3, 4)}, displaces=True
)
def glitched(image: Rgb, parameters: Glitch, rng: Rng) -> Rgb:
    """Shift rows, move a colour, and blacken every second row; the same for all images of a size."""
    seed = 1 if parameters.seed == "published" else int(integers(rng, 0, 2**31 - 1))
    height, width = image.shape[:2]
    return apply_glitch(image, plan_glitch(height, width, parameters.amount, seed))


@dataclass(frozen=True)
class Light:
    """Values from `low` to `high`, of 255, that are added to tiles and subtracted from their neighbours."""

    low: float
    high: float


@corruption(
    "digital",
    Light,
    {224: ((0, 50), (50, 100), (100, 125), (125, 150), (150, 255))},
    family=LAION_C,
)
def luminance_checkerboard(image: Rgb, parameters: Light, rng: Rng) -> Rgb:
    """Lighten and darken alternate tiles of 14 x 14 pixels."""
    height, width = image.shape[:2]
    rows, columns = -(-height // _TILE), -(-width // _TILE)
    amounts = rng.uniform(parameters.low, parameters.high, (rows, columns))
    amounts *= 1 - 2 * (np.add.outer(np.arange(rows), np.arange(columns)) % 2)
    light = (amounts / 255).astype(np.float32).repeat(_TILE, axis=0).repeat(_TILE, axis=1)
    return to_uint8(unit(image, np.float32) + light[:height, :width, None])


@dataclass(frozen=True)
class Stickers:
    """Number of `stickers`."""

    stickers: int


@corruption("digital", Stickers, {224: (100, 200, 400, 600, 1200)}, family=LAION_C, needs=TILES)
def stickers(image: Rgb, parameters: Stickers, rng: Rng, tiles: str | Path | TileBank) -> Rgb:
    """Paste small pictures of 16 x 16 pixels all over the image."""
    count, bank = parameters.stickers, open_bank(tiles, STICKER_SIDE)
    rows, columns = (side - STICKER_SIDE for side in image.shape[:2])
    numbers = bank.draw(STICKER_SIDE, count, rng)
    if isinstance(rng, np.random.RandomState):
        # The published code draws positions that it never uses.
        rng.randint(0, rows, 2 * count)
    tops, lefts = np.divmod(integers(rng, 0, rows * columns, (count,)), columns)
    return paste(image, bank.tiles(STICKER_SIDE), numbers, tops, lefts)


@dataclass(frozen=True)
class Mosaic:
    """Side of a `tile` in pixels."""

    tile: int


def _prepare_for_mosaic(parameters: Mosaic) -> Preparation:
    """Resize to a multiple of the tile, and crop later if 224 pixels are not a multiple."""
    side = 256 - 256 % parameters.tile
    return Preparation(side, side if 224 % parameters.tile else 224)


def _check_sides(height: int, width: int, tile: int) -> None:
    if height % tile or width % tile:
        size = f"{width} x {height}; --edition laion-c prepares such images"
        raise ArgumentError(f"laion-c:mosaic needs sides that are multiples of {tile}, not {size}")


@corruption(
    "digital",
    Mosaic,
    {224: (4, 6, 8, 16, 28)},
    family=LAION_C,
    random=False,
    # The sides of the image must be multiples of the tile's.
    breaks={224: (1, 2, 3, 4)},
    needs=TILES,
    requires=lambda parameters, side: _check_sides(side or 0, side or 0, parameters.tile),
    prepared=_prepare_for_mosaic,
)
def mosaic(image: Rgb, parameters: Mosaic, rng: Rng, tiles: str | Path | TileBank) -> Rgb:
    """Replace tiles of the image by other pictures, each of the nearest mean colour."""
    tile, (height, width) = parameters.tile, image.shape[:2]
    bank = open_bank(tiles, tile)
    _check_sides(height, width, tile)
    return lay_mosaic(bank, tile, resize(image, width // tile, height // tile, Image.Resampling.BICUBIC))


FAMILY = LAION_C
