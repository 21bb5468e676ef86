"""Palettes: the classes of the colours in label maps."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import SourceError

Colour = tuple[int, int, int]
Palette = Mapping[Colour, int]
"""The class of each colour."""
VOC: Final = "voc"
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?![\w.])")
_IN_JSON: Final = re.compile(r"\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
_WEIGHTS: Final = (1 << 16, 1 << 8, 1)
_LARGEST: Final = 255


def read_palette(path: Path) -> Palette:
    """Return the classes of the colours in a file, or those of Pascal VOC for the path ``voc``.

    A line, or a list in JSON, has the red, green and blue of a class, from 0 to 255, in the order of the
    classes; or the number of the class before them. Words are ignored, and so are lines without a number.

    Raises
    ------
    SourceError
        The file cannot be read, or a line is no colour; the message names it.
    """
    if str(path) == VOC:
        return {compose_voc(label): label for label in range(_LARGEST + 1)}
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read as a palette") from error
    lines = enumerate(text.splitlines(), 1)
    rows = [(number, _NUMBER.findall(line)) for number, line in lines if not line.startswith("#")]
    if path.suffix.lower() == ".json":
        rows = [
            (text.count("\n", 0, found.start()) + 1, [*found.groups()]) for found in _IN_JSON.finditer(text)
        ]
    palette = dict[Colour, int]()
    for number, cells in rows:
        *label, red, green, blue = map(int, cells if len(cells) > 2 else (0, 0, 0))
        colour, is_wrong = (red, green, blue), bool(cells) and len(cells) not in (3, 4)
        if is_wrong or max(colour) > _LARGEST or (cells and colour in palette):
            what = "a second class of this colour" if colour in palette else "no colour from 0 to 255"
            raise SourceError(f"{path}, line {number}: {what}; write '[CLASS] RED GREEN BLUE' in each line")
        if cells:
            palette[colour] = label[0] if label else len(palette)
    if not palette:
        raise SourceError(f"{path}: lists no colours; write '[CLASS] RED GREEN BLUE' in each line")
    return palette


def compose_voc(label: int) -> Colour:
    """Return the colour of a class in Pascal VOC: its bits, dealt to red, green and blue in turn."""
    red, green, blue = (sum((label >> 3 * bit + of & 1) << 7 - bit for bit in range(8)) for of in range(3))
    return red, green, blue


def find_classes(pixels: NDArray[Any], palette: Palette | None, path: Path) -> NDArray[Any]:
    """Return the classes of the colours (H, W, 3) of a label map; without a `palette`, colours must be greys.

    Raises
    ------
    SourceError
        A colour has no class; the message names the file at `path`.
    """
    if palette is None and (pixels == pixels[..., :1]).all():
        return pixels[..., 0]
    codes = pixels.astype(np.int64) @ _WEIGHTS
    colours, places = np.unique(codes, return_inverse=True)
    found = [(int(code) >> 16, int(code) >> 8 & 255, int(code) & 255) for code in colours]
    if palette is None:
        raise SourceError(
            f"{path}: contains colours, not labels; --palette FILE (or voc) gives their classes"
        )
    if unknown := [colour for colour in found if colour not in palette]:
        named = " ".join(map(str, unknown[0]))
        raise SourceError(
            f"{path}: the palette lacks the colour {named}; add it, its class or the ignored label before it"
        )
    return np.array([palette[colour] for colour in found])[places].reshape(codes.shape)
