"""Label maps: images whose values are classes, distances or other measures, not colours."""

import io
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ImageError
from robustgen.pixels.imaging.decode import Location, name_image_in_errors, open_image

Look = Literal["map", "palette", "grey", "colour"]
"""Appearance of an image: surely a map; many colours of a palette; many greys; many colours."""

# A photograph of few megapixels has thousands of colours, and nearly all 256 greys.
_FEW_GREYS: Final = 64
_FEW_COLOURS: Final = 256


def read_label_map(file: Location) -> NDArray[Any]:
    """Read a label map from a PNG file: grey values, or palette indices.

    Returns
    -------
    integer ndarray of shape (H, W)

    Raises
    ------
    ImageError
        The file is damaged, or contains colours.
    """
    with name_image_in_errors(str(file)), open_image(file) as image:
        if image.mode not in ("L", "P", "1") and not image.mode.startswith("I"):
            raise ImageError(f"contains colours ({image.mode}), not labels", str(file))
        labels = np.array(image)
        return labels.astype(np.uint8) if labels.dtype == bool else labels


def judge_look(data: bytes, name: str) -> Look:
    """Return the appearance of an image file; raise an ImageError if it is damaged."""
    with name_image_in_errors(name), open_image(io.BytesIO(data)) as image:
        if image.mode[0] in "1IF":
            return "map"
        if image.mode == "P":
            return "map" if len(np.unique(np.asarray(image))) <= _FEW_GREYS else "palette"
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(np.int32)
        # JPEG leaves traces of colour in greys.
        if np.abs(pixels - pixels[:, :1]).mean() < 1:
            return "map" if len(np.unique(pixels[:, 0])) <= _FEW_GREYS else "grey"
        colours = len(np.unique(pixels @ (1 << 16, 1 << 8, 1)))
        return "map" if colours <= _FEW_COLOURS else "colour"
