"""The sheets of `robustgen preview`."""

from collections import Counter
from itertools import groupby
from pathlib import Path

import numpy as np

from robustgen.display import sheets
from robustgen.display.sheets import CELL, SheetRow, fit_picture
from robustgen.display.text import format_name
from robustgen.errors import OutputError
from robustgen.lab.inspection.preview.previewed import Previewed
from robustgen.pixels.imaging.arrays import Rgb

ANIMATED = (".gif", ".mp4")
# Evenly spaced for all published lengths: 16, 21, 31 and 41.
FRAMES_DRAWN = 6


def draw_previewed(
    previewed: Previewed, *, grid: bool = False, frames: int = FRAMES_DRAWN, cell: int = CELL
) -> Rgb:
    """Return the sheet, uint8 (H, W, 3); `grid` is for corruptions, `frames` for perturbations."""
    if previewed.kind == "p":
        return draw_sequences(previewed, frames, cell)
    return (draw_corruption_grid if grid else draw_corruptions)(previewed, cell)


def draw_corruptions(previewed: Previewed, cell: int = CELL) -> Rgb:
    """Return a row for each corruption, a column for the clean image and each severity; uint8 (H, W, 3)."""
    clean = fit_picture(previewed.clean, cell)
    rows = [
        # Reduced one by one: full-size outputs of a large photograph would fill the memory.
        SheetRow(
            format_name(name),
            [clean, *(fit_picture(previewed.make(variant), cell) for variant in variants)],
            group=category,
        )
        for (category, name), variants in groupby(
            previewed.variants, lambda variant: (previewed.category(variant), variant.name)
        )
    ]
    levels = sorted({variant.level for variant in previewed.variants})
    columns = ["clean", *(f"severity {level}" for level in levels)]
    return sheets.draw_sheet(rows, columns, cell=cell, note=previewed.note)


def draw_corruption_grid(previewed: Previewed, cell: int = CELL) -> Rgb:
    """Return every corruption at one severity above its name, five in a row, as in the paper's figure 1."""
    pictures = [
        (format_name(variant.name), fit_picture(previewed.make(variant), cell))
        for variant in previewed.variants
    ]
    (level,) = {variant.level for variant in previewed.variants}
    return sheets.draw_grid(pictures, cell=cell, note=f"{previewed.note} · severity {level}")


def draw_sequences(previewed: Previewed, frames: int = FRAMES_DRAWN, cell: int = CELL) -> Rgb:
    """Return a row for each perturbation: that many frames, evenly spaced from the first to the last."""
    strips = [_strip(previewed.make(variant), frames, cell) for variant in previewed.variants]
    # Sequences may have different lengths; deviations from the headings are noted below the pictures.
    ((heads, _),) = Counter(names for names, _ in strips).most_common(1)
    rows = [
        SheetRow(
            format_name(variant.folder),
            pictures,
            () if names == heads else names,
            previewed.category(variant),
        )
        for variant, (names, pictures) in zip(previewed.variants, strips, strict=True)
    ]
    return sheets.draw_sheet(rows, heads, cell=cell, note=previewed.note)


def _strip(sequence: Rgb, count: int, cell: int) -> tuple[tuple[str, ...], list[Rgb]]:
    """Return names and pictures of `count` frames, or of all if there are fewer."""
    last = len(sequence) - 1
    numbers = np.linspace(0, last, min(count, last + 1)).round().astype(int).tolist()
    return tuple(f"frame {n}" for n in numbers), [fit_picture(sequence[n], cell) for n in numbers]


# --- files ---------------------------------------------------------------------------------------


def check_preview_path(path: Path, animate: bool) -> None:
    """Check before the work that `path` can be the name of the file.

    Raises
    ------
    OutputError
        The path is a folder, or has an unknown suffix.
    """
    known = ANIMATED if animate else sheets.PICTURE_SUFFIXES
    if path.suffix.lower() not in known:
        hint = " (animations need --perturbations)" if path.suffix.lower() in ANIMATED else ""
        raise OutputError(f"--output {path}: must end in {', '.join(known)}{hint}")
    if path.is_dir():
        raise OutputError(f"--output {path}: is a folder")
