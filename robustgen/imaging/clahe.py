"""Contrast limited adaptive histogram equalisation, as a preprocessing (ICLR 2019 paper, section 5.2).

The paper found that networks finetuned on images treated so have a lower mCE. It gives neither the clip limit
nor the tiles; the defaults here are those that OpenCV's own documentation uses, 2.0 and 8 x 8. The equalised
channel is the lightness L of CIELAB, so that hues stay.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.errors import ArgumentError
from robustgen.imaging.decode import as_rgb
from robustgen.imaging.kernels import elementwise, equalisation
from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Rgb

# A level cannot hold more than all of its 256 shares; OpenCV overflows far above, and then clips most.
MOST_CLIP = 256.0
# Each tile has a table of 256 levels; more of them than this would only fill memory.
MOST_TILES = 64


@dataclass(frozen=True)
class Clahe:
    """Strength and grid of the equalisation.

    Attributes
    ----------
    clip_limit : float
        How many times its even share a level of lightness may have in a tile's histogram; positive, at
        most `MOST_CLIP`, which allows all. The rest is spread over all levels, which limits the contrast.
    tiles : int
        Number of tiles along each side, from 1 to `MOST_TILES`.

    Raises
    ------
    ArgumentError
        One is out of its range.
    """

    clip_limit: float = 2.0
    tiles: int = 8

    def __post_init__(self) -> None:
        """Check both: OpenCV ends the process for 0 tiles."""
        if not 0 < self.clip_limit <= MOST_CLIP:
            raise ArgumentError(
                f"clip_limit must be positive and at most {MOST_CLIP:g}, not {self.clip_limit!r}"
            )
        if self.tiles not in range(1, MOST_TILES + 1):
            raise ArgumentError(f"tiles must be a whole number from 1 to {MOST_TILES}, not {self.tiles!r}")


def clahe(image: Any, parameters: Clahe = Clahe(), rng: None = None) -> Rgb:
    """Equalise the lightness of `image` tile by tile, joined bilinearly.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W), or a Pillow image
        Of any size; not modified.
    parameters : Clahe
    rng : None
        Nothing is drawn; operations take one.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)

    Raises
    ------
    ArgumentError, ArgumentTypeError, ImageError
        As `robustgen.imaging.arrays.as_rgb`.
    """
    lab = cv2.cvtColor(as_rgb(image), cv2.COLOR_RGB2LAB)
    lightness = np.ascontiguousarray(lab[..., 0])
    tiles, (height, width) = parameters.tiles, lightness.shape
    # OpenCV adds a whole tile's worth to a side that fits, where the other one does not.
    even = height % tiles == 0 and width % tiles == 0
    rows, columns = (_extend(size, 0 if even else tiles - size % tiles) for size in (height, width))
    limit = max(int(parameters.clip_limit * (rows.size // tiles * (columns.size // tiles)) / 256), 1)
    equalisation.equalise(lightness, tiles, columns, rows, limit, lightness)
    lab[..., 0] = lightness
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)


@lru_cache(maxsize=64)
def _extend(size: int, more: int) -> npt.NDArray[np.int64]:
    """Return the places on a line of `size` samples, and `more` that mirror its end."""
    return np.array([elementwise.beyond(place, size, True) for place in range(size + more)])
