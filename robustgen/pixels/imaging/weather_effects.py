"""Haze, frost, snow, spatter and rain."""

import math
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from robustgen.errors import ImageError
from robustgen.pixels.imaging.arrays import UNITS, AnyFloats, Rgb, cut_strips, to_uint8
from robustgen.pixels.imaging.blur import enlarge, gaussian, zoom_crop
from robustgen.pixels.imaging.kernels import drawing, elementwise, warps, weather
from robustgen.pixels.imaging.rng import Rng, integers, normal, uniform
from robustgen.pixels.imaging.third_party import FROST_FILES, cv2

# --- plasma fractals, and haze made of them --------------------------------------------------------

_WOBBLE: Final = 100.0
# Side up to which all draws are made at once: 0.1 GB.
_AT_ONCE: Final = 4096
_LARGEST: Final = 16384
_DRAWS: Final = 1 << 20


class Haze(NamedTuple):
    """A plasma fractal, float64 (H, W); its values `lowest` to `lowest` + `span` represent 0 to 1."""

    field: AnyFloats
    lowest: float
    span: float


def draw_plasma(shape: tuple[int, int], decay: float, rng: Rng, side: int | None = None) -> Haze:
    """Return the top-left part of a diamond-square fractal.

    Parameters
    ----------
    shape : (int, int)
        Height and width.
    decay : float
        Factor by which the noise decreases with each halving.
    side : int, optional
        Side of the fractal, a power of two. Default: the smallest that fits.

    Raises
    ------
    ImageError
        The fractal would need too much memory.
    """
    side = side or 1 << (max(shape) - 1).bit_length()
    if side > _LARGEST:
        size, memory = f"{shape[1]} x {shape[0]}", f"{side * side * 4 / 1e9:.1f} GB"
        raise ImageError(f"{size} pixels need a fractal of {memory}; the longer side may have {_LARGEST}")
    first = min(side, _AT_ONCE)
    uniforms, lines = uniform(rng, 0, 1, (first * first - 1,)), np.empty((8, first + 1))
    field = np.empty(shape if first == side else (first, first))
    ends = np.array(weather.plasma(uniforms, _WOBBLE, float(decay), lines, field))
    wobble = _WOBBLE
    for _ in range(first.bit_length() - 1):
        wobble /= decay
    while first < side:
        first *= 2
        finer = np.empty(shape if first == side else (first, first))
        _refine(field, wobble, rng, finer, ends)
        field, wobble = finer, wobble / decay
    return Haze(field, ends[0], ends[1] - ends[0])


def _refine(field: AnyFloats, wobble: float, rng: Rng, finer: AnyFloats, ends: AnyFloats) -> None:
    """Double the points of a large `field`; draw for a few rows at once, in the order of the whole."""
    side = len(field)
    centres = uniform(rng, 0, 1, field.shape)
    weather.place_all_centres(field, wobble, centres)
    rows = max(1, _DRAWS // side)
    for is_odd in (0, 1):
        for first in range(0, side, rows):
            draws = uniform(rng, 0, 1, (min(rows, side - first), side))
            weather.refine_rows(field, centres, wobble, draws, first, is_odd, finer, ends)


def add_haze(image: Rgb, haze: Haze, strength: float) -> Rgb:
    """Add `strength` times `haze` to `image`, and scale back to the image's maximum."""
    out, (field, lowest, span) = np.empty_like(image), haze
    weather.add_haze(
        image.reshape(-1), UNITS, field.reshape(-1), lowest, span, float(strength), out.reshape(-1)
    )
    return out


# --- frost photographs, and windows of them blended into an image ----------------------------------

# Indices 0 to 4 are drawn, never the sixth photograph.
_DRAWN = 5
# Pixels of the largest images whose enlarged photographs are kept.
_KEPT = 1 << 22
_MOST_BYTES = 2_000_000_000


@lru_cache(maxsize=32)
def frost_photograph(index: int, shrink: float = 1.0, directory: str | None = None) -> Rgb:
    """Return frost photograph `index` (0 .. 4), RGB, shrunk by OpenCV's default interpolation.

    Raises
    ------
    MissingDependencyError
        The file is missing, or not the published one.
    """
    data = FROST_FILES.read(list(FROST_FILES.digests)[index], directory)
    bgr = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
    if shrink != 1.0:
        bgr = np.asarray(cv2.resize(bgr, (0, 0), fx=shrink, fy=shrink))
    photograph: Rgb = np.ascontiguousarray(bgr[:, :, ::-1])
    photograph.flags.writeable = False
    return photograph


def check_frost(directory: str | None = None) -> None:
    """Raise a MissingDependencyError unless all frost photographs can be read."""
    for index in range(_DRAWN):
        frost_photograph(index, 1.0, directory)


def frost_crop(shape: tuple[int, int], shrink: float, directory: str | None, rng: Rng) -> Rgb:
    """Return a random window of `shape` (H, W) of a random frost photograph, uint8 (H, W, 3)."""
    photograph = frost_photograph(int(integers(rng, 0, _DRAWN)), shrink, directory)
    photograph = _cover(photograph, shape)
    rows, columns = photograph.shape[:2]
    top = integers(rng, 0, max(rows - shape[0], 1))
    left = integers(rng, 0, max(columns - shape[1], 1))
    return photograph[top : top + shape[0], left : left + shape[1]]


def enlarged_photograph(index: int, shape: tuple[int, int], directory: str | None) -> Rgb:
    """Return frost photograph `index`, enlarged by a tenth more than needed to cover `shape` (H, W).

    As in the package imagecorruptions, a photograph that already covers `shape` is enlarged by a tenth too.

    Raises
    ------
    ImageError
        The enlarged photograph would need too much memory.
    """
    # The photographs of one large shape alone would fill memory.
    enlarge = _enlarge_once if math.prod(shape) <= _KEPT else _enlarge
    return enlarge(index, shape, directory)


def _enlarge(index: int, shape: tuple[int, int], directory: str | None) -> Rgb:
    photograph = frost_photograph(index, 1.0, directory)
    rows, columns = photograph.shape[:2]
    factor = max(shape[0] / rows, shape[1] / columns, 1.0) * 1.1
    size = math.ceil(rows * factor), math.ceil(columns * factor)
    _check_memory(size, shape)
    enlarged = np.empty((*size, 3), np.uint8)
    warps.resize_cubic(photograph, enlarged)
    enlarged.flags.writeable = False
    return enlarged


_enlarge_once = lru_cache(maxsize=16)(_enlarge)


def _check_memory(size: tuple[int, int], shape: tuple[int, int]) -> None:
    """Raise an ImageError if a photograph of `size`, to cover an image of `shape`, needs too much memory."""
    if (needed := 3 * math.prod(size)) > _MOST_BYTES:
        raise ImageError(f"{shape[1]} x {shape[0]} pixels need {needed / 1e9:.1f} GB of frost, too much")


def blend(image: Rgb, weight: float, other: Rgb, other_weight: float) -> Rgb:
    """Return the weighted sum of two uint8 images of one shape, clipped to 0 .. 255 and truncated."""
    out = np.empty_like(image)
    flat = np.ascontiguousarray(other).reshape(-1)
    elementwise.blend(image.reshape(-1), float(weight), flat, float(other_weight), out.reshape(-1))
    return out


def _cover(photograph: Rgb, shape: tuple[int, int]) -> Rgb:
    """Return `photograph`, enlarged with its aspect ratio if it does not cover `shape`."""
    rows, columns = photograph.shape[:2]
    factor = max(shape[0] / rows, shape[1] / columns)
    if factor <= 1:
        return photograph
    size = max(math.ceil(columns * factor), shape[1]), max(math.ceil(rows * factor), shape[0])
    _check_memory(size[::-1], shape)
    return np.asarray(cv2.resize(photograph, size, interpolation=cv2.INTER_LINEAR), np.uint8)


# --- falling snow: a layer of flakes, and its addition to an image ---------------------------------


def draw_flakes(
    shape: tuple[int, int], loc: float, scale: float, factor: float, threshold: float, rng: Rng
) -> Rgb:
    """Return flakes before the motion blur: enlarged noise above `threshold`, uint8 (H, W)."""
    crop = zoom_crop(shape, factor)
    if isinstance(rng, np.random.RandomState):
        noise = rng.normal(loc=loc, scale=scale, size=shape)[crop]
    else:
        # Only the crop is used.
        noise = normal(rng, loc, scale, tuple(part.stop - part.start for part in crop))
    flakes = enlarge(noise, shape, factor)
    layer = np.empty(shape, np.uint8)
    elementwise.quantise_above(flakes.reshape(-1), float(threshold), layer.reshape(-1))
    return layer


def luma_of(image: Rgb) -> npt.NDArray[np.float32]:
    """Return the luma of `image` in [0, 1], float32 (H, W), as in OpenCV of 2018 for float32 images."""
    luma = np.empty(image.shape[:2], np.float32)
    weather.fill_luma(image, luma)
    return luma


def add_snow(
    image: Rgb, luma: npt.NDArray[np.float32], mix: float, layer: Rgb, dtype: npt.DTypeLike = np.float32
) -> Rgb:
    """Whiten `image`, and add `layer` and its copy rotated by 180 degrees.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    luma : float32 ndarray of shape (H, W)
        Result of `luma_of` for `image`.
    mix : float
        Weight of the image; the rest is the lighter of image and brightened luma.
    layer : uint8 ndarray of shape (H, W)
    dtype : float32 or float64
        Precision of the whitening.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)
    """
    out = np.empty_like(image)
    weights = np.array([mix, 1 - mix], dtype)
    weather.snowfall(image.reshape(-1), luma.reshape(-1), weights, layer.reshape(-1), UNITS, out.reshape(-1))
    return out


# --- drops of water and mud on the lens ------------------------------------------------------------

# The scripts passed RGB to OpenCV's BGR helpers, so 175 and 63 apply to red.
_WATER = np.array([175 / 255, 238 / 255, 238 / 255], np.float32)
_MUD = np.array([63 / 255, 42 / 255, 20 / 255], np.float32)
# Costs of steps along an axis, a diagonal, and a knight's move: OpenCV's in 1/65536, and Intel IPP's.
FIXED_POINT_COSTS = np.array([65536, 91750, 143976], np.int32)
IPP_COSTS = np.array([1, 1.4, 2.1969], np.float32)
_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)


def draw_drops(
    shape: tuple[int, int], loc: float, scale: float, sigma: float, threshold: float, rng: Rng
) -> AnyFloats:
    """Return the layer of drops, smoothed noise above `threshold`, float64 of `shape` (H, W)."""
    layer = gaussian(normal(rng, loc, scale, shape), sigma)
    layer *= layer >= threshold
    return layer


def splash_water(
    image: Rgb, layer: AnyFloats, strength: float, costs: npt.NDArray[Any] = FIXED_POINT_COSTS
) -> Rgb | None:
    """Add the light on the drops of a thresholded `layer` (H, W) to `image`.

    Return None if there are no drops; the scripts divided 0 by 0 in this case.
    """
    # In strips: a second layer would need eight bytes per pixel.
    grey = np.concatenate([(strip * 255).astype(np.uint8) for strip in cut_strips(layer)])
    light = _emboss(grey, costs).astype(np.float32)
    light *= grey
    light = light.reshape(-1)
    brightest = light.max()
    if brightest == 0:
        return None
    out = np.empty_like(image)
    pixels, target = image.reshape(-1, 3), out.reshape(-1, 3)
    weather.add_light(pixels, light, brightest, np.float32(strength), _WATER, target)
    return out


def _emboss(grey: npt.NDArray[np.uint8], costs: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the relief of the drops in `grey` (H, W), lit from one side."""
    near = np.empty_like(grey)
    drawing.blur_distances(cv2.Canny(grey, 50, 150), costs, near)
    relief = cv2.equalizeHist(near)
    return np.asarray(cv2.blur(cv2.filter2D(relief, cv2.CV_8U, _EMBOSS), (3, 3)))


def splash_mud(image: Rgb, spots: npt.NDArray[np.bool_], strength: float) -> Rgb:
    """Cover `image` with mud on the softened `spots` (H, W)."""
    out = np.empty_like(image)
    shares = draw_cover(spots, strength, np.float64).reshape(-1)
    weather.cover(image.reshape(-1, 3), shares, _MUD, out.reshape(-1, 3))
    return out


def draw_cover(spots: npt.NDArray[np.bool_], strength: float, dtype: npt.DTypeLike) -> AnyFloats:
    """Return the cover of the lens by mud, (H, W, 1): `spots`, softened in `dtype`, above 0.8."""
    cover = gaussian(spots.astype(dtype), strength)
    cover *= cover >= 0.8
    return cover[:, :, None]


# --- rain -----------------------------------------------------------------------------------------

_SLANT: Final = 10
_DROP: Final = 220.0


def draw_rain(shape: tuple[int, int], area: int, length: int, rng: Rng) -> npt.NDArray[np.float64]:
    """Return lines of one pixel's width, 220 on 0, float64 (H, W), as OpenCV's ``line`` draws them.

    Parameters
    ----------
    shape : (int, int)
        Height and width.
    area : int
        Pixels for each drop.
    length : int
        Length of a drop in rows; even.
    rng : Generator or RandomState

    Raises
    ------
    ImageError
        A drop is as long as the frame is high.
    """
    height, width = shape
    if height <= length:
        raise ImageError(f"rain with drops of {length} pixels needs more than {length} rows, not {height}")
    slant, count = int(integers(rng, -_SLANT, _SLANT)), height * width // area
    low, high = (slant, width) if slant < 0 else (0, width - slant)
    if high <= low:
        raise ImageError(f"rain needs more than {_SLANT} columns, not {width}")
    if isinstance(rng, np.random.RandomState):
        # The published code draws the numbers one by one.
        places = [(rng.randint(low, high), rng.randint(0, height - length)) for _ in range(count)]
    else:
        places = [*zip(rng.integers(low, high, count), rng.integers(0, height - length, count), strict=True)]
    mask, half = np.zeros(shape), length // 2
    for column, row in places:
        if column > 0:
            mask[row : row + half, column] = _DROP
            mask[row + half : row + length + 1, column - 1] = _DROP
        elif column == 0:
            # OpenCV clips the line at the edge first.
            mask[row, 0] = _DROP
    return mask


def add_rain(frame: Rgb, mask: npt.NDArray[np.float64], factor: float) -> Rgb:
    """Brighten and blur the drops of a `mask` (H, W), and multiply the contrast by `factor`."""
    drops, mean = mask[..., None], frame.mean()
    added = drops * (1 - frame / 255) * (1 - mean / 255)
    blurred = cv2.blur(frame + added.astype(np.uint8), (3, 3))
    values = (blurred * drops / 255 + frame * (1 - drops / 255)) / 255
    means = values.mean(axis=(0, 1))
    return to_uint8((values - means) * factor + means)
