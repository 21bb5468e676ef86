"""Ingredients that several operations share: motion blur, zoom, plasma, disk, frost, snow, water."""

import hashlib
import importlib.util
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.fft

from robustgen.errors import MissingDependencyError
from robustgen.imaging import kernels
from robustgen.imaging.arrays import UNITS, gaussian, gaussian_weights, to_uint8
from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Floats, Rgb

Rng = np.random.Generator | np.random.RandomState
MotionEngine = Literal["exact", "imagemagick"]


def integers(rng: Rng, low: int, high: int, size: tuple[int, ...] | None = None) -> Any:
    """Integers in [low, high) from either kind of generator."""
    draw = rng.randint if isinstance(rng, np.random.RandomState) else rng.integers
    return draw(low, high, size)


# --- motion blur ---------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _motion_weights(radius: float, sigma: float) -> npt.NDArray[np.float64]:
    """One-sided Gaussian of ImageMagick's motion blur: 2 ceil(radius) + 1 weights that sum to 1."""
    width = 2 * math.ceil(radius) + 1
    weights = np.exp(-(np.arange(width, dtype=np.float64) ** 2) / (2 * sigma * sigma))
    weights /= weights.sum()
    return weights


def _motion_offsets(width: int, angle: float) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Row and column offsets of the `width` samples along `angle` (degrees)."""
    direction_x, direction_y = width * math.sin(math.radians(angle)), width * math.cos(math.radians(angle))
    length = math.hypot(direction_x, direction_y)
    steps = np.arange(width)
    columns = np.ceil(steps * direction_y / length - 0.5).astype(np.intp)
    rows = np.ceil(steps * direction_x / length - 0.5).astype(np.intp)
    return rows, columns


def motion_blur(image: Rgb, radius: float, sigma: float, angle: float, engine: MotionEngine = "exact") -> Rgb:
    """Blur along a line, as ImageMagick 6.9 (Q16) does.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W)
    radius, sigma : float
        Pixels; the one-sided kernel has 2 ceil(radius) + 1 samples.
    angle : float
        Degrees.
    engine : {"exact", "imagemagick"}
        Our own loop or the library itself, through wand: the same pixels.

    Returns
    -------
    uint8 ndarray of the shape of `image`
    """
    if engine == "imagemagick":
        return _imagemagick_motion_blur(image, radius, sigma, angle)
    weights = _motion_weights(radius, sigma)
    rows, columns = _motion_offsets(weights.size, angle)
    height, width = image.shape[:2]
    # Both run from 0 in one direction.
    down, right = int(rows[-1]), int(columns[-1])
    above, left = max(-down, 0), max(-right, 0)
    channels = image.size // (height * width)
    size = height + abs(down), (width + abs(right)) * channels
    padded = np.empty(size, np.float32)
    kernels.extend(image.reshape(height, -1), channels, above, left, False, np.float32(257), padded)
    out = np.empty((height, width * channels), np.uint8)
    kernels.motion_rows(padded, weights, rows + above, (columns + left) * channels, out)
    return out.reshape(image.shape)


def check_imagemagick() -> Any:
    """Return wand's image class, or raise a MissingDependencyError that says how to install it."""
    try:
        from wand.image import Image as WandImage
    except ImportError as error:
        raise MissingDependencyError(
            "motion_blur: imagemagick needs wand and ImageMagick 6.9: pip install 'robustgen[imagemagick]' "
            "and apt-get install libmagickwand-6.q16-6"
        ) from error
    return WandImage


def _imagemagick_motion_blur(image: Rgb, radius: float, sigma: float, angle: float) -> Rgb:
    colours = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    with check_imagemagick().from_array(colours, channel_map="RGB") as picture:
        picture.motion_blur(radius=radius, sigma=sigma, angle=angle)
        # At 16 bit a division by 257 is what the scripts' PNG round trip amounted to.
        exported = picture.export_pixels(channel_map="RGB", storage="short")
    blurred = (np.array(exported, np.uint16) // 257).astype(np.uint8).reshape(colours.shape)
    return blurred if image.ndim == 3 else np.ascontiguousarray(blurred[:, :, 0])


# --- zoom ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ZoomAxis:
    """The central crop of one axis, and where its enlarged centre is sampled."""

    start: int
    length: int
    places: npt.NDArray[np.intp]
    parts: npt.NDArray[np.float64]


@lru_cache(maxsize=1024)
def _zoom_axis(side: int, factor: float) -> _ZoomAxis:
    crop = math.ceil(side / factor)
    size = round(crop * factor)
    trim = (size - side) // 2
    samples = np.arange(trim, trim + side) * ((crop - 1) / (size - 1))
    places = np.floor(samples).astype(np.intp)
    return _ZoomAxis((side - crop) // 2, crop, places, samples - places)


@lru_cache(maxsize=1024)
def _zoom_columns(
    side: int, factor: float, channels: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]]:
    """Left and right sample (2, side * channels) of every value of a row, and the part of the right one."""
    axis = _zoom_axis(side, factor)
    both = np.stack([axis.places, np.minimum(axis.places + 1, axis.length - 1)])[:, :, None]
    flat = (both * channels + np.arange(channels)).reshape(2, -1)
    return flat.astype(np.uint32), np.repeat(axis.parts, channels)


@lru_cache(maxsize=1024)
def zoom_crop(shape: tuple[int, ...], factor: float) -> tuple[slice, slice]:
    """The central ceil(side / factor) rows and columns of an image of `shape`, which a zoom enlarges."""
    rows, columns = _zoom_axis(shape[0], factor), _zoom_axis(shape[1], factor)
    return (
        slice(rows.start, rows.start + rows.length),
        slice(columns.start, columns.start + columns.length),
    )


def enlarge(crop: Floats, shape: tuple[int, ...], factor: float) -> Floats:
    """What `zoom_crop` cut from an image of `shape`, enlarged to `shape`, linearly interpolated."""
    total = np.zeros(shape, crop.dtype)
    _add_enlarged(crop, (0, 0), factor, total)
    return total


def add_zoom(image: Floats, factor: float, total: Floats) -> None:
    """Add `image` with its centre enlarged to the full size, linearly interpolated, to `total` in place.

    Crops the central ceil(side / factor) of each axis, enlarges by `factor` (``scipy.ndimage.zoom``,
    order 1) and trims to the centre again.

    Parameters
    ----------
    image : float ndarray of shape (H, W) or (H, W, C)
    factor : float, at least 1
    total : ndarray of the shape and dtype of `image`
    """
    if factor == 1:
        total += image
        return
    rows, columns = zoom_crop(image.shape, factor)
    _add_enlarged(image, (rows.start, columns.start), factor, total)


def _add_enlarged(image: Floats, corner: tuple[int, int], factor: float, total: Floats) -> None:
    height, width = total.shape[:2]
    channels = math.prod(total.shape[2:])
    rows = _zoom_axis(height, factor)
    columns, parts = _zoom_columns(width, factor, channels)
    flat = image.reshape(len(image), -1)
    top, left, last = corner[0], corner[1] * channels, rows.length - 1
    target = total.reshape(height, -1)
    kernels.add_zoomed(flat, top, left, last, rows.places, rows.parts, columns, parts, target)


def average(image: Floats, total: Floats, count: int) -> Rgb:
    """(`image` + `total`) / `count` of float32 unit images, truncated to uint8."""
    out = np.empty(image.shape, np.uint8)
    kernels.average(image.reshape(-1), total.reshape(-1), np.float32(count), out.reshape(-1))
    return out


# --- plasma --------------------------------------------------------------------------------------


def plasma(shape: tuple[int, int], decay: float, rng: Rng) -> Floats:
    """Top-left part of a diamond-square fractal, scaled to [0, 1].

    Parameters
    ----------
    shape : (int, int)
        Height and width; the fractal's side is the next power of two.
    decay : float
        By how much the noise shrinks with each halving.

    Returns
    -------
    float64 ndarray of `shape`
    """
    side = 1 << (max(shape) - 1).bit_length()
    field = np.empty((side, side))
    kernels.plasma(rng.random(side * side - 1), 100.0, decay, field)
    field -= field.min()
    field /= field.max()
    return field[: shape[0], : shape[1]]


def veil(image: Rgb, haze: Floats, strength: float) -> Rgb:
    """Add `strength` times `haze`, float64 (H, W), to `image` and scale back to the image's own maximum."""
    out = np.empty_like(image)
    flat = np.ascontiguousarray(haze).reshape(-1)
    brightest = image.max() / 255.0
    pixels = image.reshape(-1, 3)
    kernels.veil(pixels, UNITS, flat, float(strength), brightest, out.reshape(-1, 3))
    return out


# --- disk ----------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def disk(radius: float, alias_blur: float) -> npt.NDArray[np.float32]:
    """Anti-aliased disk, float32, that sums to about 1: the aperture of defocus blur."""
    reach, ksize = (8, 3) if radius <= 8 else (int(radius), 5)
    places = np.arange(-reach, reach + 1)
    inside = np.array(places[None, :] ** 2 + places[:, None] ** 2 <= radius**2, dtype=np.float32)
    inside /= np.sum(inside)
    return np.asarray(cv2.GaussianBlur(inside, ksize=(ksize, ksize), sigmaX=alias_blur), np.float32)


@dataclass(frozen=True)
class _Taps:
    """A kernel as `kernels.weigh_groups` takes it: its places, grouped by weight, counted from its corner."""

    weights: npt.NDArray[np.float64]
    ends: npt.NDArray[np.intp]
    tops: npt.NDArray[np.intp]
    lefts: npt.NDArray[np.intp]


_MOST_TAPS = 257


@lru_cache(maxsize=64)
def _disk_taps(radius: float, alias_blur: float) -> _Taps:
    kernel = disk(radius, alias_blur)
    groups = []
    for weight in np.unique(kernel[kernel > 0]):
        places = np.argwhere(kernel == weight)
        parts = [places[i : i + _MOST_TAPS] for i in range(0, len(places), _MOST_TAPS)]
        groups += [(float(weight), part) for part in parts]
    tops, lefts = np.concatenate([part for _, part in groups]).T
    weights = np.array([weight for weight, _ in groups])
    return _Taps(weights, np.cumsum([len(part) for _, part in groups]), tops.copy(), lefts.copy())


def defocus(image: Rgb, radius: float, alias_blur: float) -> Rgb:
    """Filter `image` with `disk`, border reflected without repeating the edge (OpenCV's default).

    OpenCV's own filter2D goes through a Fourier transform at these sizes, which is three times as slow
    (scripts/bench.py --only defocus_blur); no disk sums to exactly 1, so rounding decides no pixel.
    """
    taps = _disk_taps(radius, alias_blur)
    reach = len(disk(radius, alias_blur)) // 2
    height, width, channels = image.shape
    padded = np.empty((height + 2 * reach, (width + 2 * reach) * channels), np.uint16)
    kernels.extend(image.reshape(height, -1), channels, reach, reach, True, np.uint16(1), padded)
    out = np.empty_like(image)
    kernels.weigh_groups(
        padded, taps.weights, taps.ends, taps.tops, taps.lefts * channels, out.reshape(height, -1)
    )
    return out


# --- frost ---------------------------------------------------------------------------------------

# The sixth photograph is in the package, but the scripts drew from [0, 5) and so never used it.
FROST_PHOTOGRAPHS = {
    "frost1.png": "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755",
    "frost2.png": "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137",
    "frost3.png": "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504",
    "frost4.jpg": "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e",
    "frost5.jpg": "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2",
}


def frost_directory() -> Path:
    """Folder of the frost photographs inside the installed package ``imagecorruptions``.

    Raises
    ------
    MissingDependencyError
        The package is not installed.
    """
    # Only located: importing the package fails on current NumPy.
    spec = importlib.util.find_spec("imagecorruptions")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(
            "the frost photographs are missing: pip install imagecorruptions==1.1.2 --no-deps, "
            "or name a folder that holds frost1.png ... frost5.jpg with --frost-dir"
        )
    return Path(spec.submodule_search_locations[0]) / "frost"


@lru_cache(maxsize=32)
def frost_photograph(index: int, shrink: float = 1.0, directory: str | None = None) -> Rgb:
    """Frost photograph `index` (0 .. 4), RGB, shrunk by OpenCV's default interpolation.

    Raises
    ------
    MissingDependencyError
        The file is absent, or not the one the published data was made with.
    """
    name, digest = list(FROST_PHOTOGRAPHS.items())[index]
    path = (Path(directory) if directory else frost_directory()) / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MissingDependencyError(
            f"frost photograph {path} cannot be read ({error.strerror}): reinstall imagecorruptions==1.1.2 "
            "or name another folder with --frost-dir"
        ) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise MissingDependencyError(f"{path} is not the published frost photograph (its SHA-256 differs)")
    bgr = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
    if shrink != 1.0:
        bgr = np.asarray(cv2.resize(bgr, (0, 0), fx=shrink, fy=shrink))
    photograph: Rgb = np.ascontiguousarray(bgr[:, :, ::-1])
    photograph.flags.writeable = False
    return photograph


def check_frost(directory: str | None = None) -> None:
    """Raise a MissingDependencyError unless all frost photographs can be read."""
    for index in range(len(FROST_PHOTOGRAPHS)):
        frost_photograph(index, 1.0, directory)


def frost_crop(shape: tuple[int, int], shrink: float, directory: str | None, rng: Rng) -> Rgb:
    """A random window of `shape` (H, W) of a random frost photograph, uint8 (H, W, 3)."""
    photograph = frost_photograph(int(integers(rng, 0, 5)), shrink, directory)
    photograph = _cover(photograph, shape)
    rows, columns = photograph.shape[:2]
    top = integers(rng, 0, max(rows - shape[0], 1))
    left = integers(rng, 0, max(columns - shape[1], 1))
    return photograph[top : top + shape[0], left : left + shape[1]]


def blend(image: Rgb, weight: float, other: Rgb, other_weight: float) -> Rgb:
    """Weighted sum of two uint8 images of the same shape, clipped to 0 .. 255 and truncated."""
    out = np.empty_like(image)
    flat = np.ascontiguousarray(other).reshape(-1)
    kernels.blend(image.reshape(-1), float(weight), flat, float(other_weight), out.reshape(-1))
    return out


def _cover(photograph: Rgb, shape: tuple[int, int]) -> Rgb:
    """`photograph`, enlarged with its aspect kept where it would not cover `shape`."""
    rows, columns = photograph.shape[:2]
    factor = max(shape[0] / rows, shape[1] / columns)
    if factor <= 1:
        return photograph
    size = max(math.ceil(columns * factor), shape[1]), max(math.ceil(rows * factor), shape[0])
    return np.asarray(cv2.resize(photograph, size, interpolation=cv2.INTER_LINEAR), np.uint8)


# --- snow ----------------------------------------------------------------------------------------


def snow_layer(
    shape: tuple[int, int], loc: float, scale: float, factor: float, threshold: float, rng: Rng
) -> Rgb:
    """Flakes before the wind: noise, enlarged, cut off under `threshold`, uint8 of `shape` (H, W)."""
    crop = zoom_crop(shape, factor)
    if isinstance(rng, np.random.RandomState):
        noise = rng.normal(loc=loc, scale=scale, size=shape)[crop]
    else:
        # Only the crop is ever seen.
        noise = rng.normal(loc=loc, scale=scale, size=[part.stop - part.start for part in crop])
    flakes = enlarge(noise, shape, factor)
    flakes[flakes < threshold] = 0
    return to_uint8(flakes)


def grey(image: Floats) -> npt.NDArray[np.float32]:
    """Luma, float32 (H, W), of a unit `image` (H, W, 3), as OpenCV weighs the colours."""
    return np.asarray(cv2.cvtColor(image.astype(np.float32, copy=False), cv2.COLOR_RGB2GRAY))


def snowfall(image: Floats, luma: npt.NDArray[np.float32], mix: float, layer: Rgb) -> Rgb:
    """Whiten a unit `image` and let `layer`, and its copy turned by 180 degrees, fall on it.

    Parameters
    ----------
    image : float32 or float64 ndarray of shape (H, W, 3)
    luma : float32 ndarray of shape (H, W)
        What `grey` gives for it.
    mix : float
        Weight of the image; the rest is the lighter of image and brightened grey.
    layer : uint8 ndarray of shape (H, W)

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)
    """
    out = np.empty(image.shape, np.uint8)
    own = image.dtype.type
    kernels.snowfall(
        image.reshape(-1, 3), luma.reshape(-1), own(mix), own(1 - mix), layer.reshape(-1), out.reshape(-1, 3)
    )
    return out


# --- spatter -------------------------------------------------------------------------------------

# The scripts passed RGB through OpenCV's BGR helpers unchanged, so 175 and 63 land on red.
_WATER = np.array([175 / 255, 238 / 255, 238 / 255], np.float32)
_MUD = np.array([63 / 255, 42 / 255, 20 / 255], np.float32)
_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)


def drops(
    shape: tuple[int, int], loc: float, scale: float, sigma: float, threshold: float, rng: Rng
) -> Floats:
    """Smoothed noise, cut off under `threshold`: where drops lie, float64 of `shape` (H, W)."""
    layer = gaussian(rng.normal(size=shape, loc=loc, scale=scale), sigma)
    layer[layer < threshold] = 0
    return layer


def wet(image: Floats, layer: Floats, strength: float) -> Floats:
    """Let drops of a cut-off `layer` (H, W) catch the light on a float32 unit `image` (H, W, 3)."""
    grey = (layer * 255).astype(np.uint8)
    distance = cv2.distanceTransform(255 - cv2.Canny(grey, 50, 150), cv2.DIST_L2, 5)
    _, distance = cv2.threshold(distance, 20, 20, cv2.THRESH_TRUNC)
    relief = cv2.equalizeHist(cv2.blur(distance, (3, 3)).astype(np.uint8))
    relief = cv2.blur(cv2.filter2D(relief, cv2.CV_8U, _EMBOSS), (3, 3)).astype(np.float32)
    light = grey * relief
    brightest = light.max()
    # The scripts divided 0 by 0 where no drop was left; here that means no water.
    if brightest == 0:
        return image
    light = light / brightest * np.float32(strength)
    splashed: Floats = image + light[:, :, None] * _WATER
    return splashed


def muddy(image: Floats, spots: npt.NDArray[np.bool_], strength: float) -> Floats:
    """Cover a float32 unit `image` (H, W, 3) with mud on the softened `spots` (H, W)."""
    cover = gaussian(spots.astype(np.float32), strength)
    cover[cover < 0.8] = 0
    return image * (1 - cover[:, :, None]) + _MUD * cover[:, :, None]


# --- colour --------------------------------------------------------------------------------------


def change_hsv(
    image: Rgb, saturation_gain: float = 1.0, saturation_offset: float = 0.0, value_offset: float = 0.0
) -> Rgb:
    """Change HSV saturation (times gain plus offset) and value (plus offset), each clipped to [0, 1]."""
    out = np.empty_like(image)
    changes = float(saturation_gain), float(saturation_offset), float(value_offset)
    kernels.change_hsv(image.reshape(-1, 3), UNITS, *changes, out.reshape(-1, 3))
    return out


def channel_means(image: Rgb) -> npt.NDArray[np.float64]:
    """Mean of each channel of `image` in [0, 1], float64 (3,): ``np.mean`` to the last bit."""
    sums = np.empty(3)
    kernels.channel_sums(image.reshape(-1, 3), UNITS, sums)
    return sums / (image.size // 3)


def look_up(image: Rgb, table: Rgb) -> Rgb:
    """Replace each value of channel c by its entry in column c of `table`, uint8 (256, 3)."""
    out = np.empty_like(image)
    kernels.look_up(image.reshape(-1, 3), table, out.reshape(-1, 3))
    return out


# --- elastic -------------------------------------------------------------------------------------

# Above this radius the cosine transform is the faster one (scripts/bench.py --only elastic_transform).
_LONGEST_KERNEL = 30


def jittered_affine(image: Floats, jitter: float, rng: Rng) -> Floats:
    """Map three points around the centre of `image` (H, W, 3) to themselves plus uniform(-jitter, jitter)."""
    size = np.array(image.shape[:2])
    centre, reach = size // 2, min(image.shape[:2]) // 3
    corners = [centre + reach, [centre[0] + reach, centre[1] - reach], centre - reach]
    anchors = np.array(corners, dtype=np.float32)
    moved = anchors + rng.uniform(-jitter, jitter, size=anchors.shape).astype(np.float32)
    matrix = cv2.getAffineTransform(anchors, moved)
    size_xy = image.shape[1], image.shape[0]
    return np.asarray(cv2.warpAffine(image, matrix, size_xy, borderMode=cv2.BORDER_REFLECT_101))


def smooth_field(shape: tuple[int, int], alpha: float, sigma: float, rng: Rng) -> npt.NDArray[np.float32]:
    """`alpha` times Gaussian-smoothed uniform(-1, 1) noise of `shape`, borders reflected, cut at 3 sigma."""
    field: Floats = rng.uniform(-1, 1, size=shape)
    if sigma:
        weights = gaussian_weights(float(sigma), 3.0)
        direct = weights.size <= _LONGEST_KERNEL
        field = gaussian(field, sigma, 3.0, "reflect") if direct else _cosine_filter(field, weights)
    return (alpha * field).astype(np.float32)


def _cosine_filter(field: Floats, weights: npt.NDArray[np.float64]) -> Floats:
    """Filter with a symmetric kernel under reflecting borders, where it is a product in the cosine domain."""
    rows, columns = (_transfer(side, weights.tobytes()) for side in field.shape)
    spectrum = scipy.fft.dctn(field) * rows[:, None] * columns[None, :]
    return np.asarray(scipy.fft.idctn(spectrum))


@lru_cache(maxsize=64)
def _transfer(side: int, packed_weights: bytes) -> npt.NDArray[np.float64]:
    """What the kernel multiplies each cosine of a line of `side` samples by."""
    weights = np.frombuffer(packed_weights)
    phases = np.cos(np.pi / side * np.arange(side)[:, None] * np.arange(1, weights.size)[None, :])
    return np.asarray(weights[0] + 2 * phases @ weights[1:])


def displace(image: Floats, dx: npt.NDArray[np.float32], dy: npt.NDArray[np.float32]) -> Rgb:
    """Sample a unit `image` (H, W, 3) bilinearly at (row + dy, column + dx), borders reflected, as uint8."""
    out = np.empty(image.shape, np.uint8)
    kernels.displace(image, dx, dy, out)
    return out
