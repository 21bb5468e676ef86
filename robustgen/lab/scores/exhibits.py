"""Pictures on pages of detectors and of segmentation: predicted boxes and maps beside the true ones."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from robustgen.display.sheets import fit_picture
from robustgen.display.text import format_name
from robustgen.lab.scores.palettes import Colour
from robustgen.lab.scores.result_grid import GridCell
from robustgen.pixels.benchmarks.kinds import CLEAN
from robustgen.pixels.imaging.arrays import Rgb

_SHOWN, _SIDE = 3, 220
_TRUE, _FOUND = (0, 158, 115), (213, 94, 0)
_VOID: Final = (255, 255, 255)


class Examples(NamedTuple):
    """Pictures of a few images.

    Attributes
    ----------
    about : str
        Meaning of the colours.
    rows : dict of str to dict of str to uint8 ndarray of shape (H, W, 3)
        For each image, its pictures by their captions.
    """

    about: str
    rows: Mapping[str, Mapping[str, Rgb]]


def choose_cells(values: Mapping[GridCell, float | None]) -> list[GridCell | None]:
    """Return None for the clean images, and up to three severities of the corruption with the lowest mean."""
    by_name: dict[str, dict[int, float]] = {}
    for (name, level), value in values.items():
        by_name.setdefault(name, {})[level] = value or 0.0
    worst = min(by_name, key=lambda name: fmean(by_name[name].values()))
    levels = sorted(by_name[worst])
    chosen = dict.fromkeys((levels[0], levels[len(levels) // 2], levels[-1]))
    return [None, *((worst, level) for level in chosen)]


def choose_images(names: Sequence[Any]) -> list[Any]:
    """Return three names, evenly spaced."""
    return [names[place * len(names) // _SHOWN] for place in range(min(_SHOWN, len(names)))]


def caption(cell: GridCell | None) -> str:
    """Return the caption of a picture."""
    return f"{format_name(cell[0])}, severity {cell[1]}" if cell else CLEAN


def draw_boxes(picture: Rgb, true: Sequence[Sequence[float]], found: Sequence[Sequence[float]]) -> Rgb:
    """Return a small picture with boxes (x, y, width, height, in pixels): true ones green, others orange."""
    drawn = Image.fromarray(fit_picture(picture, _SIDE))
    scale, pen = drawn.width / picture.shape[1], ImageDraw.Draw(drawn)
    for colour, boxes in ((_TRUE, true), (_FOUND, found)):
        for x, y, width, height in boxes:
            ends = (x * scale, y * scale, max(x + width, x) * scale, max(y + height, y) * scale)
            pen.rectangle(ends, outline=colour, width=2)
    return np.asarray(drawn)


def colour_map(labels: NDArray[Any], colours: Mapping[int, Colour], void: int) -> Rgb:
    """Return a small picture of a label map (H, W); ignored pixels are white."""
    step = max(1, round((labels.size**0.5) / _SIDE))
    small = labels[::step, ::step]
    known, places = np.unique(small, return_inverse=True)
    table = [_VOID if label == void else colours.get(int(label), _VOID) for label in known]
    return fit_picture(np.array(table, np.uint8)[places.reshape(small.shape)], _SIDE)
