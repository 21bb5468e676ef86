"""Depth maps with the same keys as the images of a set."""

from typing import Any, ClassVar, Literal

import numpy as np

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.ingredients import Ingredient
from robustgen.pixels.imaging.depth import Depth

Scale = float | Literal["midas"]


def _parse_scale(value: Any) -> Scale:
    if value == "midas":
        return "midas"
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0
    if not 0 < number < float("inf"):
        raise ArgumentError(f"must be a positive number or midas, not {value!r}")
    return number


class DepthMaps(Ingredient):
    """Depth maps of the images.

    The setting `scale` is a factor of the stored values; "midas" is for the 16-bit inverse depth of MiDaS.
    """

    name = "depth"
    sentence = "depth maps with the keys of the images, in a folder, an archive or shards"
    settings: ClassVar = {"scale": _parse_scale}
    fits_image = True

    def take(self, value: Any, image: Any, corruption: str) -> Depth:
        """Return a depth map as float32 (H, W)."""
        if value is None:
            raise ArgumentError(f"{corruption} needs a depth map: corrupt(..., depth=array of shape (H, W))")
        depth = np.asarray(value)
        if depth.dtype.kind not in "fiu" or depth.shape != image.shape[:2]:
            raise ArgumentError(
                f"depth must hold numbers in the shape {image.shape[:2]} of the image, "
                f"not {depth.dtype} in {depth.shape}"
            )
        depth = np.ascontiguousarray(depth, np.float32)
        if not np.isfinite(depth).all():
            raise ArgumentError("depth holds NaN or infinity")
        if depth.min() < 0:
            raise ArgumentError(f"depth must not be negative, not {depth.min():g}")
        return depth


DEPTH = DepthMaps()
