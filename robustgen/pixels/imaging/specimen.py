"""Artefacts on photographs of specimens and of skin: blots, bubbles, black corners, letters."""

import io
import string
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image, ImageDraw

from robustgen.errors import ArgumentError
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.third_party import INK_FILES, cv2

# Letters look alike at scales .14 to .16, and up to .18; there are no tables for others.
_SMALL_LETTERS, _LARGEST_LETTERS = 0.165, 0.185
# Rows of letters above the baseline.
_ASCENT = 4
# Distance of blots from the border in pixels.
_MARGIN = 10


@lru_cache(maxsize=8)
def read_masks(size: int, folder: str | None = None) -> Rgb:
    """Read ten ink masks, 0 or 1, uint8 (10, side, side), with sides of 12 to 42 pixels for `size` 1 to 5.

    The masks are those of the package medmnistc, fetched or installed, or in `folder`.

    Raises
    ------
    MissingDependencyError
        The file is missing, or not the published one.
    ArgumentError
        The size does not exist.
    """
    with np.load(io.BytesIO(INK_FILES.read("inks.npz", folder)), allow_pickle=False) as masks:
        if str(size) not in masks.files:
            raise ArgumentError(f"masks of ink have the sizes {', '.join(masks.files)}, not {size}")
        found: Rgb = masks[str(size)].astype(np.uint8)
    found.flags.writeable = False
    return found


def blot(image: Rgb, masks: Rgb, most: int, draws: Random) -> Rgb:
    """Add one to `most` black blots with the shapes of `masks` to `image`."""
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
        # The published code uses the height for x.
        x, y = draws.randint(radius, height - radius), draws.randint(radius, width - radius)
        for reach, alpha in ((radius + 2, 130), (radius, 100)):
            box = (x - reach, y - reach, x + reach, y + reach)
            painter.ellipse(box, fill=(255, 255, 255, alpha))
    picture = Image.fromarray(image)
    picture.paste(layer, (0, 0), layer)
    return np.array(picture)


def keep_disk(image: Rgb, share: float) -> Rgb:
    """Blacken `image` outside a centred disk with a radius of `share` times half the shorter side."""
    height, width = image.shape[:2]
    disk = np.zeros((height, width), np.uint8)
    radius = int(min(height // 2, width // 2) * share)
    cv2.circle(disk, (width // 2, height // 2), radius, 1, -1)
    return image * disk[:, :, None]


@lru_cache(maxsize=1)
def _read_letters() -> tuple[Rgb, list[list[int]]]:
    """Read the pixel coverage of letters, (sizes, 26, rows, columns), and their widths."""
    with np.load(Path(__file__).with_name("letters.npz")) as letters:
        return letters["coverage"], letters["advances"].tolist()


def _write_word(image: Rgb, word: str, x: int, y: int, scale: float, colour: tuple[int, int, int]) -> None:
    """Write `word` at (`x`, `y`) in the letters of OpenCV 5, independent of the installed release."""
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
        # Rounded as in OpenCV.
        part[...] = (part * (255 - covered) + np.array(colour) * covered + 127) // 255
        x += advances[size][number]


def write_letters(image: Rgb, words: int, letters: int, size: float, draws: Random) -> Rgb:
    """Write one to `words` words of three to `letters` letters on `image`, up to OpenCV's scale `size`."""
    out, (height, width) = image.copy(), image.shape[:2]
    # The published code fails for those smaller images of which it draws too long a word.
    if width < 8 * letters + 10:
        raise ArgumentError(f"words of {letters} letters need a width of at least {8 * letters + 10} pixels")
    for _ in range(draws.randint(1, words)):
        count = draws.randint(3, letters)
        scale = draws.randint(14, int(100 * size)) / 100
        word = "".join(draws.choice(string.ascii_lowercase) for _ in range(count))
        x, y = draws.randint(10, width - 8 * count), draws.randint(10, height - 10)
        colour = draws.randint(0, 255), draws.randint(0, 255), draws.randint(0, 255)
        _write_word(out, word, x, y, scale, colour)
    return out
