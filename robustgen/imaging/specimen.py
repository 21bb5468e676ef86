"""Marks on photographs of specimens and of skin: blots, bubbles, black corners, letters."""

import hashlib
import string
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image, ImageDraw

from robustgen.errors import ArgumentError, MissingDependencyError
from robustgen.imaging.carried import INK
from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Rgb

# Letters of the scales .14 to .16, and to .18, look alike; of others there is no table.
_SMALL_LETTERS, _LARGEST_LETTERS = 0.165, 0.185
# Rows of letters above the line that they stand on.
_ASCENT = 4
# Blots keep so many pixels from the border.
_MARGIN = 10


@lru_cache(maxsize=8)
def read_masks(size: int, path: str | None = None) -> Rgb:
    """Read ten masks of ink, 0 or 1, uint8 (10, side, side): 12 to 42 pixels a side, by `size` 1 to 5.

    They are those of the package medmnistc, fetched or installed, or its file at `path`.

    Raises
    ------
    MissingDependencyError
        The file is absent, or not the published one.
    ArgumentError
        There is no such size.
    """
    file = Path(path) if path else INK.find() / "inks.npz"
    try:
        content = file.read_bytes()
    except OSError as error:
        raise MissingDependencyError(f"masks of ink: {file} cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != INK.digests["inks.npz"]:
        raise MissingDependencyError(f"masks of ink: {file} is not the published file (its SHA-256 differs)")
    with np.load(file, allow_pickle=False) as masks:
        if str(size) not in masks.files:
            raise ArgumentError(f"masks of ink have the sizes {', '.join(masks.files)}, not {size}")
        found: Rgb = masks[str(size)].astype(np.uint8)
    found.flags.writeable = False
    return found


def blot(image: Rgb, masks: Rgb, most: int, draws: Random) -> Rgb:
    """Blacken one to `most` blots of the shapes of `masks` on `image`."""
    out, (height, width) = image.copy(), image.shape[:2]
    side = masks.shape[1]
    if min(height, width) < side + 2 * _MARGIN:
        raise ArgumentError(f"blots of {side} pixels need sides of at least {side + 2 * _MARGIN}")
    for _ in range(1 if most == 1 else draws.randint(1, most)):
        mask = masks[draws.randint(0, len(masks) - 1)]
        left = draws.randint(_MARGIN, width - side - _MARGIN)
        top = draws.randint(_MARGIN, height - side - _MARGIN)
        out[top : top + side, left : left + side] *= 1 - mask[:, :, None]
    return out


def add_bubbles(image: Rgb, largest: int, most: int, draws: Random) -> Rgb:
    """Add seven to `most` translucent bubbles of radius 3 to `largest` to `image`."""
    height, width = image.shape[:2]
    if min(height, width) < 2 * largest:
        raise ArgumentError(f"bubbles of radius {largest} need sides of at least {2 * largest}")
    layer = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    painter = ImageDraw.Draw(layer)
    for _ in range(draws.randint(7, most)):
        radius = draws.randint(3, largest)
        # The published code takes the height for x.
        x, y = draws.randint(radius, height - radius), draws.randint(radius, width - radius)
        for reach, alpha in ((radius + 2, 130), (radius, 100)):
            box = (x - reach, y - reach, x + reach, y + reach)
            painter.ellipse(box, fill=(255, 255, 255, alpha))
    picture = Image.fromarray(image)
    picture.paste(layer, (0, 0), layer)
    return np.array(picture)


def keep_disk(image: Rgb, share: float) -> Rgb:
    """Blacken `image` outside a disk about its centre, whose radius is a `share` of half the shorter side."""
    height, width = image.shape[:2]
    disk = np.zeros((height, width), np.uint8)
    radius = int(min(height // 2, width // 2) * share)
    cv2.circle(disk, (width // 2, height // 2), radius, 1, -1)
    return image * disk[:, :, None]


@lru_cache(maxsize=1)
def _read_letters() -> tuple[Rgb, list[list[int]]]:
    """Read how much of each pixel a letter covers, (sizes, 26, rows, columns), and how wide it is."""
    with np.load(Path(__file__).with_name("letters.npz")) as letters:
        return letters["coverage"], letters["advances"].tolist()


def _write_word(image: Rgb, word: str, x: int, y: int, scale: float, colour: tuple[int, int, int]) -> None:
    """Write `word` from (`x`, `y`) on, in the letters of OpenCV 5, whichever release is installed."""
    if scale > _LARGEST_LETTERS:
        cv2.putText(image, word, (x, y), cv2.FONT_HERSHEY_DUPLEX, scale, colour, 1, cv2.LINE_AA)
        return
    coverage, advances = _read_letters()
    size = int(scale > _SMALL_LETTERS)
    for letter in word:
        number = ord(letter) - ord("a")
        covered = coverage[size, number].astype(np.int64)[:, :, None]
        rows, columns = covered.shape[:2]
        part = image[y - _ASCENT : y - _ASCENT + rows, x - 1 : x - 1 + columns]
        # Rounded as OpenCV does.
        part[...] = (part * (255 - covered) + np.array(colour) * covered + 127) // 255
        x += advances[size][number]


def write_letters(image: Rgb, words: int, letters: int, size: float, draws: Random) -> Rgb:
    """Write one to `words` words of three to `letters` letters over `image`, of up to `size` of OpenCV's."""
    out, (height, width) = image.copy(), image.shape[:2]
    for _ in range(draws.randint(1, words)):
        count = draws.randint(3, letters)
        scale = draws.randint(14, int(100 * size)) / 100
        word = "".join(draws.choice(string.ascii_lowercase) for _ in range(count))
        x, y = draws.randint(10, width - 8 * count), draws.randint(10, height - 10)
        colour = draws.randint(0, 255), draws.randint(0, 255), draws.randint(0, 255)
        _write_word(out, word, x, y, scale, colour)
    return out
