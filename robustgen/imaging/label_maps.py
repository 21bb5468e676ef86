"""Label maps: images whose values are classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ImageError
from robustgen.imaging.decode import Location, name_image_in_errors, open_image


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
            raise ImageError(f"{str(file)!r}: contains colours ({image.mode}), not labels")
        labels = np.array(image)
        return labels.astype(np.uint8) if labels.dtype == bool else labels
