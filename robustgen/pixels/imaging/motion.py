"""Motion blur along a line, identical to ImageMagick's, in an own loop or by the library."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from robustgen.errors import MissingDependencyError
from robustgen.pixels.imaging.arrays import Floats, Rgb
from robustgen.pixels.imaging.kernels import blur as blur_loops
from robustgen.pixels.imaging.kernels import elementwise, exact

MotionEngine = Literal["exact", "imagemagick"]

# Above this number of values, slabs save more memory than their shared lines cost time.
_LARGE: Final = 1 << 24


@lru_cache(maxsize=256)
def _motion_weights(radius: float, sigma: float) -> npt.NDArray[np.float64]:
    """Return ImageMagick's one-sided Gaussian: 2 ceil(radius) + 1 weights with sum 1."""
    width = 2 * math.ceil(radius) + 1
    weights: npt.NDArray[np.float64] = blur_loops.fading_weights(width, float(sigma))
    weights /= weights.sum()
    return weights


def _motion_offsets(width: int, angle: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return row and column offsets of the `width` samples along `angle` (degrees)."""
    rows, columns = np.empty((2, width), np.int64)
    blur_loops.place_samples(*_direction(width, angle), rows, columns)
    return rows, columns


def _direction(width: int, angle: float) -> tuple[float, float, float]:
    """Return the end of a line of `width` pixels along `angle` (degrees), down and right, and its length."""
    sine, cosine = exact.sine_cosine(math.radians(angle))
    down, right = width * sine, width * cosine
    return down, right, exact.hypot(down, right)


def blur_along_line(
    image: Rgb, radius: float, sigma: float, angle: float, engine: MotionEngine = "exact"
) -> Rgb:
    """Blur along a line, like ImageMagick 6.9 (Q16).

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W)
    radius, sigma : float
        Pixels; the one-sided kernel has 2 ceil(radius) + 1 samples.
    angle : float
        Degrees.
    engine : {"exact", "imagemagick"}
        Own loop, or the library through wand; the pixels are the same.

    Returns
    -------
    uint8 ndarray of the shape of `image`
    """
    if engine == "imagemagick":
        return _blur_with_imagemagick(image, radius, sigma, angle)
    weights, (height, width) = _motion_weights(radius, sigma), image.shape[:2]
    flat, direction = image.reshape(height, -1), _direction(weights.size, angle)

    def blur(lines: Rgb) -> Rgb:
        out = np.empty(lines.shape, np.uint8)
        blur_loops.blur_along_line(lines, flat.shape[1] // width, weights, *direction, out)
        return out

    return _map_slabs(blur, flat, weights.size).reshape(image.shape)


def _map_slabs(blur: Callable[[Rgb], Rgb], flat: Rgb, reach: int) -> Rgb:
    """Blur `flat` (H, W * C); process a large image in slabs, each extended by `reach` lines.

    `blur` needs four times the bytes of its lines.
    """
    if flat.size <= _LARGE:
        return blur(flat)
    out, step = np.empty_like(flat), max(_LARGE // 2 // flat.shape[1], 1)
    for top in range(0, len(flat), step):
        first = max(top - reach, 0)
        target = out[top : top + step]
        target[:] = blur(flat[first : top + step + reach])[top - first :][: len(target)]
    return out


def sum_along_line(values: Floats, radius: float, sigma: float, angle: float) -> Floats:
    """Blur along a line in float64 without intermediate rounding, like the package imagecorruptions.

    Parameters
    ----------
    values : ndarray of shape (H, W, 3) or (H, W)
    radius, sigma, angle : float
        As in `blur_along_line`. Weights of samples a full side away are dropped without renormalising.

    Returns
    -------
    float64 ndarray of the shape of `values`
    """
    height, width = values.shape[:2]
    weights = blur_loops.fading_weights(2 * math.ceil(radius) + 1, float(sigma))
    if sigma:
        weights /= math.sqrt(2 * math.pi) * sigma
    weights /= weights.sum()
    rows, columns = _motion_offsets(weights.size, angle)
    reached = np.maximum(np.abs(rows) / height, np.abs(columns) / width) < 1
    count = weights.size if reached.all() else int(np.argmin(reached))
    weights, rows, columns = weights[:count], rows[:count], columns[:count]
    down, right = int(rows[-1]), int(columns[-1])
    above, left = max(-down, 0), max(-right, 0)
    flat = np.ascontiguousarray(values).reshape(height, -1)
    channels = flat.shape[1] // width
    padded = np.empty((height + abs(down), (width + abs(right)) * channels))
    elementwise.extend(flat, channels, above, left, False, 1.0, padded)
    out = np.empty(flat.shape)
    blur_loops.sum_rows(padded, weights, rows + above, (columns + left) * channels, out)
    return out.reshape(values.shape)


def check_imagemagick() -> Any:
    """Return wand's image class; raise a MissingDependencyError if it is missing."""
    try:
        from wand.image import Image as WandImage
    except ImportError as error:
        raise MissingDependencyError(
            "motion_blur: imagemagick needs wand and ImageMagick 6.9: pip install 'robustgen[imagemagick]' "
            "and apt-get install libmagickwand-6.q16-6"
        ) from error
    return WandImage


def _blur_with_imagemagick(image: Rgb, radius: float, sigma: float, angle: float) -> Rgb:
    colours = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    with check_imagemagick().from_array(colours, channel_map="RGB") as picture:
        picture.motion_blur(radius=radius, sigma=sigma, angle=angle)
        # At 16 bits, division by 257 equals the PNG round trip of the scripts.
        exported = picture.export_pixels(channel_map="RGB", storage="short")
    blurred = (np.array(exported, np.uint16) // 257).astype(np.uint8).reshape(colours.shape)
    return blurred if image.ndim == 3 else np.ascontiguousarray(blurred[:, :, 0])
