"""The pixel contract and the geometry everything else is built on.

An image is a uint8 array of shape (H, W, 3), RGB. Operations work on *unit*
images, floats in [0, 1], and come back with `to_uint8`, which truncates: the
published images were made by ``np.uint8(255 * x)``, never by rounding.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from robustgen.errors import ImageError
from robustgen.imaging import kernels
from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Floats, Rgb

SMALLEST_SIDE = 32
# Resizing an extremely long image by its shorter side would ask for gigabytes.
MOST_PIXELS = 100_000_000


# The 256 values of a unit image.
UNITS = np.arange(256) / 255.0


def unit(image: Rgb, dtype: npt.DTypeLike = np.float64) -> Floats:
    """`image` divided by 255, as float64 or float32."""
    if np.dtype(dtype) == np.float64:
        out = np.empty(image.shape)
        kernels.widen(np.ascontiguousarray(image).reshape(-1), UNITS, out.reshape(-1))
        return out
    divided: Floats = np.divide(image, np.float32(255), dtype=np.float32)
    return divided


def to_uint8(values: Floats) -> Rgb:
    """Clip unit `values` to [0, 1], multiply by 255 in their own precision, and truncate."""
    flat = np.ascontiguousarray(values)
    out = np.empty(flat.shape, np.uint8)
    kernels.quantise(flat.reshape(-1), out.reshape(-1))
    return out


@lru_cache(maxsize=256)
def gaussian_weights(sigma: float, truncate: float = 4.0) -> npt.NDArray[np.float64]:
    """Right half, centre first, of SciPy's sampled Gaussian: radius int(truncate * sigma + 0.5)."""
    radius = int(truncate * sigma + 0.5)
    x = np.arange(-radius, radius + 1)
    phi = np.exp(-0.5 / (sigma * sigma) * x**2)
    half: npt.NDArray[np.float64] = (phi / phi.sum())[radius:]
    half.flags.writeable = False
    return half


@lru_cache(maxsize=256)
def _extension(size: int, radius: int, mode: str) -> npt.NDArray[np.intp]:
    """Index of the sample at each place of a line of `size` extended by `radius` on both sides."""
    index = np.arange(-radius, size + radius)
    index = np.clip(index, 0, size - 1) if mode == "nearest" else index % (2 * size)
    return np.where(index >= size, 2 * size - 1 - index, index)


def gaussian(values: npt.NDArray[Any], sigma: float, truncate: float = 4.0, mode: str = "nearest") -> Floats:
    """Gaussian filter along the rows and columns of `values`, channels not mixed.

    Equals ``scipy.ndimage.gaussian_filter`` to the last bit.

    Parameters
    ----------
    values : ndarray of shape (H, W) or (H, W, C)
    sigma : float
        Standard deviation in pixels.
    truncate : float
        Where the kernel ends, in standard deviations.
    mode : {"nearest", "reflect"}
        How the image continues beyond its border.

    Returns
    -------
    ndarray of the shape of `values`
        float32 for float32, which is also how SciPy rounds between its two passes; else float64.
    """
    height, width = values.shape[:2]
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    weights = gaussian_weights(float(sigma), float(truncate))
    radius = weights.size - 1
    flat = np.ascontiguousarray(values).reshape(height, -1)
    rows = np.empty(flat.shape, dtype)
    kernels.blur_rows(flat, weights, _extension(height, radius, mode), rows)
    out = np.empty(flat.shape, dtype)
    kernels.blur_columns(rows, flat.shape[1] // width, weights, _extension(width, radius, mode), out)
    return out.reshape(values.shape)


def encode_jpeg(image: Rgb, quality: int, *, optimise: bool) -> bytes:
    """JPEG file of `image` at Pillow's `quality`, 4:2:0, with or without optimised Huffman tables.

    OpenCV's encoder gives the very bytes of Pillow's, as both wrap libjpeg-turbo (a test holds them to it),
    and spares a copy of the image.
    """
    options = [
        cv2.IMWRITE_JPEG_QUALITY,
        quality,
        cv2.IMWRITE_JPEG_OPTIMIZE,
        int(optimise),
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    ]
    encoded: bytes = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)[1].tobytes()
    return encoded


def decode_jpeg(data: bytes) -> Rgb:
    """The pixels, uint8 (H, W, 3), of a JPEG file that `encode_jpeg` made."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
    return np.asarray(pixels, np.uint8)


def resize(image: Rgb, width: int, height: int, filter: Image.Resampling = Image.Resampling.BILINEAR) -> Rgb:
    """Resize with Pillow, by default bilinearly with antialiasing, as torchvision did."""
    if (height, width) == image.shape[:2]:
        return image
    return np.array(Image.fromarray(image).resize((width, height), filter))


def resize_shorter(image: Rgb, side: int) -> Rgb:
    """Resize so that the shorter side is `side` and the longer one int(side * long / short)."""
    height, width = image.shape[:2]
    longer = int(side * max(height, width) / min(height, width))
    if longer * side > MOST_PIXELS:
        raise ImageError(f"too elongated to resize: {width} x {height} pixels")
    return resize(image, side, longer) if height > width else resize(image, longer, side)


def centre_crop(image: Rgb, width: int, height: int) -> Rgb:
    """Cut the central `width` x `height` pixels, offsets rounded half to even as Python rounds.

    Raises
    ------
    ImageError
        The image is smaller than the crop.
    """
    rows, columns = image.shape[:2]
    if rows < height or columns < width or not height or not width:
        raise ImageError(f"too small to crop: {columns} x {rows} pixels, {width} x {height} needed")
    top, left = round((rows - height) / 2.0), round((columns - width) / 2.0)
    return np.ascontiguousarray(image[top : top + height, left : left + width])


def affine(
    image: Rgb,
    *,
    angle: float = 0.0,
    shift: tuple[float, float] = (0.0, 0.0),
    scale: float = 1.0,
    shear: float = 0.0,
    filter: Image.Resampling = Image.Resampling.BILINEAR,
) -> Rgb:
    """Rotate, shift, scale and shear about the centre; outside is black, the size stays.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    angle, shear : float
        Degrees, clockwise.
    shift : (float, float)
        Pixels to the right and down.
    scale : float
        Magnification.
    filter : Pillow resampling filter
    """
    height, width = image.shape[:2]
    # torchvision 0.2.1, with which ImageNet-P was made, put the centre half a pixel off.
    centre_x, centre_y = width * 0.5 + 0.5, height * 0.5 + 0.5
    a, s, z = math.radians(angle), math.radians(shear), 1.0 / scale
    d = math.cos(a + s) * math.cos(a) + math.sin(a + s) * math.sin(a)
    xx, xy = z / d * math.cos(a + s), z / d * math.sin(a + s)
    yx, yy = z / d * -math.sin(a), z / d * math.cos(a)
    to_x, to_y = -centre_x - shift[0], -centre_y - shift[1]
    coefficients = (xx, xy, xx * to_x + xy * to_y + centre_x, yx, yy, yx * to_x + yy * to_y + centre_y)
    if filter is Image.Resampling.BILINEAR:
        out = np.empty_like(image)
        kernels.sample_affine(image, coefficients, out)
        return out
    transformed = Image.fromarray(image).transform(
        (width, height), Image.Transform.AFFINE, coefficients, resample=filter
    )
    return np.asarray(transformed)


def perspective(image: Rgb, phi: float, theta: float) -> Rgb:
    """View the plane of `image` tilted; outside is black, the size stays.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    phi, theta : float
        Degrees about the vertical and the horizontal axis.
    """
    height, width = image.shape[:2]
    focal = np.hypot(width, height)
    p, t = np.deg2rad(phi), np.deg2rad(theta)
    lift = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1], [0, 0, 1]])
    about_x = np.eye(4)
    about_x[1:3, 1:3] = [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
    about_y = np.eye(4)
    about_y[0:3:2, 0:3:2] = [[np.cos(p), -np.sin(p)], [np.sin(p), np.cos(p)]]
    away = np.eye(4)
    away[2, 3] = focal
    project = np.array([[focal, 0, width / 2, 0], [0, focal, height / 2, 0], [0, 0, 1, 0]])
    matrix = project @ (away @ about_x @ about_y) @ lift
    return np.asarray(cv2.warpPerspective(image, matrix, (width, height)))
