"""Glitches, geometric shapes and tiles of LAION-C."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from robustgen.errors import ArgumentError
from robustgen.pixels.imaging.arrays import Decoded, Rgb, unit
from robustgen.pixels.imaging.decode import EXTENSIONS, as_rgb, decode_to_pillow
from robustgen.pixels.imaging.geometry import centre_crop, resize, resize_shorter
from robustgen.pixels.imaging.rng import Rng, integers

# --- transmission glitches: shifted rows, a shifted colour channel, black lines --------------------

# Computed like the package glitch-this 1.0.3, from Python's random numbers.


@dataclass(frozen=True)
class GlitchShifts:
    """Shifts of a glitch, in pixels.

    Attributes
    ----------
    shifts : tuple of (int, int, int)
        Offset to the right, first row and number of rows of each shift, in order.
    channel, right, down : int
        The shifted colour channel and its shifts, which are not negative.
    """

    shifts: tuple[tuple[int, int, int], ...]
    channel: int
    right: int
    down: int


@lru_cache(maxsize=64)
def plan_glitch(height: int, width: int, amount: float, seed: int) -> GlitchShifts:
    """Draw a glitch for an image of `height` x `width` pixels; `amount` is 0.1 to 10."""
    reach, count, shifts = int(amount**2 / 100 * width), int(2 * amount), []
    for number in range(count):
        draws = random.Random(seed + number)
        offset = draws.randint(-reach, reach)
        if offset:
            top = draws.randint(0, height)
            shifts.append((offset, top, min(draws.randint(1, int(height / 4)), height - top)))
    draws = random.Random(seed)
    channel = draws.randint(0, 2)
    right, down = draws.randint(-count, count), draws.randint(-count, count)
    return GlitchShifts(tuple(shifts), channel, right % width, down % height)


def apply_glitch(image: Rgb, glitch: GlitchShifts) -> Rgb:
    """Return `image` with the shifts of `glitch`, and every second row black."""
    out = image.copy()
    for offset, top, rows in glitch.shifts:
        out[top : top + rows] = np.roll(image[top : top + rows], offset, axis=1)
    source, down = image[:, :, glitch.channel], glitch.down
    moved = np.roll(source, down, axis=0)
    # The published code shifts only the first row sideways.
    moved[down] = np.roll(source[0], glitch.right)
    out[:, :, glitch.channel] = moved
    out[::2] = 0
    return out


# --- small filled shapes, painted like Pillow's ----------------------------------------------------

TRIANGLE, SQUARE, STAR, CIRCLE = range(4)


def draw_shapes(count: int, shape: tuple[int, int], rng: Rng) -> npt.NDArray[np.int64]:
    """Draw `count` shapes for an image of `shape` (H, W).

    Returns
    -------
    int64 ndarray of shape (count, 8)
        Number of the shape, x, y, size (6 to 15), red, green, blue, and a rotation in degrees.
    """
    lows = np.array([0, 0, 0, 6, 0, 0, 0, 0])
    highs = np.array([4, shape[1], shape[0], 16, 256, 256, 256, 360])
    drawn: npt.NDArray[np.int64] = integers(rng, lows, highs, (count, 8))
    return drawn


def paint_shapes(image: Rgb, shapes: npt.NDArray[np.int64]) -> Rgb:
    """Return `image` with the `shapes` of `draw_shapes` painted over it in order."""
    picture = Image.fromarray(image)
    painter = ImageDraw.Draw(picture)
    for shape, x, y, size, red, green, blue, rotation in shapes.tolist():
        colour = red, green, blue
        if shape == TRIANGLE:
            painter.polygon([(x, y), (x + size, y), (x + size / 2, y + size)], fill=colour)
        elif shape == SQUARE:
            painter.rectangle([(x, y), (x + size, y + size)], fill=colour)
        elif shape == STAR:
            painter.polygon(_star(x, y, size, rotation), fill=colour)
        else:
            painter.ellipse([(x, y), (x + size, y + size)], fill=colour)
    return np.array(picture)


def _star(x: int, y: int, size: int, rotation: int) -> list[tuple[float, float]]:
    sines, cosines = _turn()
    outer = size / 1.2
    angles = range(rotation, rotation + 360, 36)
    radii = (outer, outer / 2) * 5
    return [(x + r * sines[a], y + r * cosines[a]) for a, r in zip(angles, radii, strict=True)]


@lru_cache(maxsize=1)
def _turn() -> tuple[list[float], list[float]]:
    """Return sines and cosines of 0 to 683 degrees, correctly rounded on any machine.

    Pillow truncates the points of a star to integers, so the last bit can change a pixel.
    """
    radians = [angle * 0.017453292519943295 for angle in range(684)]
    with localcontext() as context:
        context.prec = 60
        sines = [float(_sum_series(Decimal(each), Decimal(each), 1)) for each in radians]
        cosines = [float(_sum_series(Decimal(each), Decimal(1), 0)) for each in radians]
    return sines, cosines


def _sum_series(x: Decimal, term: Decimal, power: int) -> Decimal:
    """Sum the alternating series of sine or cosine at `x`, whose first term, of `power`, is `term`."""
    total, square = term, x * x
    while abs(term) > Decimal("1e-40"):
        power += 2
        term = -term * square / (power * (power - 1))
        total += term
    return total


# --- banks of small pictures for stickers and mosaics ----------------------------------------------

Indices = npt.NDArray[np.intp]

MOST_PICTURES = 100_096
"""Pictures of a bank: whole batches of 256, until there are 100 000."""


STICKER_SIDE = 16
"""Pixels of each side of a sticker."""


def shrink_to_tile(image: Decoded, side: int) -> Rgb:
    """Shrink `image` to a tile: shorter side to 256, centre 224 x 224, then `side` x `side` pixels."""
    square = centre_crop(as_rgb(resize_shorter(image, 256)), 224, 224)
    return resize(square, side, side)


class TileBank:
    """Tiles with one or several sides, all of the same pictures.

    Parameters
    ----------
    tiles : mapping of int to uint8 ndarray of shape (N, side, side, 3)
        Tiles by side; not modified.
    left_out : int, optional
        Number of a picture to exclude.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import TileBank
    >>> TileBank.from_images([np.zeros((300, 400, 3), np.uint8)] * 2, sides=[16])
    TileBank(2 of 16 x 16)
    """

    def __init__(self, tiles: Mapping[int, Rgb], left_out: int | None = None) -> None:
        self._tiles = dict(tiles)
        self.left_out: int | None = left_out
        self._trees: dict[int, Any] = {}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(tiles)} of {side} x {side}" for side, tiles in self._tiles.items())
        return f"TileBank({sizes})"

    @classmethod
    def from_images(cls, images: Iterable[Decoded], sides: Iterable[int]) -> "TileBank":
        """Shrink `images`, in order, to tiles of each of `sides`."""
        made: dict[int, list[Rgb]] = {side: [] for side in sides}
        for image in images:
            for side, tiles in made.items():
                tiles.append(shrink_to_tile(image, side))
        return cls({side: np.stack(tiles) for side, tiles in made.items() if tiles})

    def without(self, number: int) -> "TileBank":
        """Return a bank that excludes picture `number` and shares the tiles and trees."""
        other = TileBank(self._tiles, number)
        other._trees = self._trees
        return other

    def tiles(self, side: int) -> Rgb:
        """Return all tiles of `side`, including the excluded picture's.

        Raises
        ------
        ArgumentError
            There are no tiles, or only the excluded one.
        """
        found = self._tiles.get(side)
        if found is None:
            raise ArgumentError(f"tiles: the bank has none of {side} x {side} pixels")
        if len(found) <= (self.left_out is not None):
            raise ArgumentError("tiles: the bank is too small: it needs at least one other picture")
        return found

    def draw(self, side: int, count: int, rng: Rng) -> Indices:
        """Draw the numbers of `count` tiles uniformly, with replacement."""
        size = len(self.tiles(side))
        if self.left_out is None:
            return np.asarray(integers(rng, 0, size, (count,)), np.intp)
        drawn = np.asarray(integers(rng, 0, size - 1, (count,)), np.intp)
        return drawn + (drawn >= self.left_out)

    def nearest(self, side: int, pixels: Rgb) -> Indices:
        """Return the number of the tile with the nearest mean colour to each of `pixels`, uint8 (N, 3)."""
        # Importing SciPy takes as long as corrupting ten images.
        from scipy.spatial import cKDTree

        if side not in self._trees:
            values = unit(self.tiles(side), np.float32).astype(np.float64)
            self._trees[side] = cKDTree(values.mean(axis=(1, 2)))
        self.tiles(side)
        places = unit(pixels, np.float32).astype(np.float64)
        if self.left_out is None:
            return np.asarray(self._trees[side].query(places)[1], np.intp)
        first, second = self._trees[side].query(places, k=2)[1].T
        return np.asarray(np.where(first == self.left_out, second, first), np.intp)


def open_bank(tiles: str | Path | TileBank, side: int) -> TileBank:
    """Return the bank `tiles`, or a bank of the pictures in the folder `tiles`.

    Raises
    ------
    ArgumentError
        The folder does not exist, or contains no picture.
    ImageError
        A picture cannot be read.
    """
    if isinstance(tiles, TileBank):
        return tiles
    folder = Path(tiles)
    if not folder.is_dir():
        raise ArgumentError(f"tiles: {folder} is not a folder")
    # The modification time of a folder changes with the names in it.
    return _read_folder(folder, side, folder.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read_folder(folder: Path, side: int, stamp: int) -> TileBank:
    """Read the pictures below `folder`, sorted by path, as tiles of `side`."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in EXTENSIONS)
    if not paths:
        raise ArgumentError(f"tiles: {folder} contains no picture ({', '.join(EXTENSIONS)})")
    return TileBank.from_images((decode_to_pillow(path) for path in paths), (side,))


def paste(image: Rgb, tiles: Rgb, numbers: Indices, tops: Indices, lefts: Indices) -> Rgb:
    """Return `image` with tiles `numbers` pasted on it, later ones over earlier ones."""
    out, side = image.copy(), tiles.shape[1]
    for number, top, left in zip(numbers.tolist(), tops.tolist(), lefts.tolist(), strict=True):
        out[top : top + side, left : left + side] = tiles[number]
    return out


def lay_mosaic(bank: TileBank, side: int, colours: Rgb) -> Rgb:
    """Return a mosaic of the tiles nearest to `colours` (h, w, 3), `side` times as large."""
    rows, columns = colours.shape[:2]
    numbers = bank.nearest(side, colours.reshape(-1, 3)).reshape(rows, columns)
    cells = bank.tiles(side)[numbers]
    return np.ascontiguousarray(cells.transpose(0, 2, 1, 3, 4)).reshape(rows * side, columns * side, 3)
