"""Covariate-shifted images of known classes (csID), for OpenOOD's lists.

The rule behind OpenOOD's own lists is not published. The rule here: each image once, in the order of the
source, with a corruption and a severity drawn uniformly and independently.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

import numpy as np

from robustgen.lab.related.streams.drawing import StreamStep
from robustgen.lab.related.streams.rows import StreamRow

Files = Literal["jpeg", "png", "original"]
_JPEG_SUFFIXES: Final = (".JPEG", ".jpeg", ".JPG", ".jpg")


def draw_csid(
    images: int, corruptions: Sequence[str], severities: Sequence[float], rng: np.random.Generator
) -> Iterator[StreamStep]:
    """Draw a corruption and a severity for each of `count` images."""
    chosen = rng.integers(0, len(corruptions) * len(severities), images)
    for image, number in enumerate(chosen.tolist()):
        corruption, severity = divmod(number, len(severities))
        yield StreamStep(image, corruptions[corruption], severities[severity], 1, 0, False)


def format_imglist_row(row: StreamRow, files: Files = "jpeg") -> str:
    """Return the line of an image: its path in the set that make-c writes, and its label.

    The key of `row` is that of `Items.tree_path`.
    """
    path = PurePosixPath(row.key)
    if files == "png":
        path = path.with_suffix(".png")
    elif files == "jpeg" and path.suffix not in _JPEG_SUFFIXES:
        path = path.with_suffix(".JPEG")
    return f"{row.corruption}/{row.severity:g}/{path} {row.label}"
