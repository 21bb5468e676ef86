"""Resizing, cropping and turning of images, and the steps that prepare them."""

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from robustgen.errors import ImageError
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.decode import as_rgb, as_rgb_picture
from robustgen.pixels.imaging.kernels import exact, warps
from robustgen.pixels.imaging.warps import sample_affine, warp_perspective

# --- resizing, cropping, and affine and perspective maps -------------------------------------------

# Resizing an extremely long image by its shorter side would need gigabytes.
MOST_PIXELS = 100_000_000
_MOST_ENLARGED = 1 << 24
# End of messages about the size of an image.
RESIZING: Final = "the editions imagenet-64 and imagenet resize images"
# Modes with transparency, which Pillow resizes after multiplying the colours by it.
_WEIGHTED = {"RGBA": "RGBa", "LA": "La"}


def resize(
    image: Decoded, width: int, height: int, filter: Image.Resampling = Image.Resampling.BILINEAR
) -> Rgb:
    """Resize to RGB with Pillow, by default bilinearly with antialiasing, like torchvision."""
    if not isinstance(image, Image.Image) and (width, height) == image.shape[1::-1]:
        return image
    picture = as_rgb_picture(image) if isinstance(image, Image.Image) else Image.fromarray(image)
    return np.array(resize_picture(picture, width, height, filter))


def resize_picture(
    picture: Image.Image, width: int, height: int, filter: Image.Resampling = Image.Resampling.BILINEAR
) -> Image.Image:
    """Resize a Pillow image in its own mode, itself if it has this size: first the width, then the height.

    This was the order of Pillow in 2018; Pillow 13 begins with the height if that is less work. The
    lines in between are rounded to 8 bits, so the order decides the last digit.
    """
    if picture.mode in _WEIGHTED and filter != Image.Resampling.NEAREST:
        weighted = resize_picture(picture.convert(_WEIGHTED[picture.mode]), width, height, filter)
        return weighted.convert(picture.mode)
    for size in ((width, picture.height), (width, height)):
        if size != picture.size:
            picture = picture.resize(size, filter)
    return picture


def resize_by_box(image: Rgb, width: int, height: int) -> Rgb:
    """Resize like the box filter of Pillow 5.2: each pixel is the mean of those whose centres it covers.

    Rows are filtered first, then columns, rounded in between; later releases begin with the other axis for
    some images.
    """
    rows, columns = image.shape[:2]
    out = np.empty((height, width, 3), np.uint8)
    warps.average_boxes(image, _boxes(columns, width), _boxes(rows, height), out)
    return out


def blacken_gap(image: Rgb, fraction: float) -> None:
    """Blacken what Pillow 5.2 left out of `image`, uint8 (299, 299, 3), shrunk to `fraction` and enlarged.

    Its box filter found no pixel for the middle row and column if 74 pixels became 299.
    """
    if int(299 * fraction) == 74:
        image[149] = image[:, 149] = 0


@lru_cache(maxsize=256)
def _boxes(size: int, new_size: int) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the first sample, the number of samples n, and 2**22 / n for every new sample of a line."""
    ratio = size / new_size
    reach = max(ratio, 1.0) * 0.5
    centres = (np.arange(new_size) + 0.5) * ratio
    firsts = np.maximum((centres - reach + 0.5).astype(np.int64), 0)
    ends = np.minimum((centres + reach + 0.5).astype(np.int64), size)
    # A sample exactly on the edge of the filter counts only at the right end.
    firsts += (firsts - centres + 0.5) * (0.5 / reach) <= -0.5
    ends -= (ends - 1 - centres + 0.5) * (0.5 / reach) > 0.5
    counts = ends - firsts
    return firsts, counts, (0.5 + 2**22 / counts).astype(np.int64)


def resize_shorter(image: Decoded, side: int) -> Rgb:
    """Resize so that the shorter side is `side` and the longer one int(side * long / short)."""
    width, height = image.size if isinstance(image, Image.Image) else image.shape[1::-1]
    return resize(image, *find_shorter(width, height, side))


def find_shorter(width: int, height: int, side: int) -> tuple[int, int]:
    """Return width and height of an image whose shorter side becomes `side`.

    Raises
    ------
    ImageError
        The image is too elongated.
    """
    longer = int(side * max(height, width) / min(height, width))
    if longer * side > (MOST_PIXELS if side <= min(height, width) else _MOST_ENLARGED):
        raise ImageError(f"too elongated to resize: {width} x {height} pixels")
    return (side, longer) if height > width else (longer, side)


def centre_crop(image: Rgb, width: int, height: int) -> Rgb:
    """Cut the central `width` x `height` pixels; offsets are rounded half to even.

    Raises
    ------
    ImageError
        The image is smaller than the crop.
    """
    bottom, right = _measure_margins(image.shape[:2], width, height)
    top, left = round(bottom / 2), round(right / 2)
    return np.ascontiguousarray(image[top : top + height, left : left + width])


def crop_ten(images: Rgb, width: int, height: int) -> Iterator[Rgb]:
    """Yield the four corners and the centre of images (..., H, W, 3), then those of the mirrored images.

    Krizhevsky et al., 2012, section 4.1. Each has shape (..., height, width, 3); offsets of the centre are
    rounded half to even.

    Raises
    ------
    ImageError
        The images are smaller than the crop.
    """
    bottom, right = _measure_margins(images.shape[-3:-1], width, height)
    places = [(top, left) for top in (0, bottom) for left in (0, right)]
    for each in (images, images[..., ::-1, :]):
        for top, left in (*places, (round(bottom / 2), round(right / 2))):
            yield np.ascontiguousarray(each[..., top : top + height, left : left + width, :])


def _measure_margins(sides: Sequence[int], width: int, height: int) -> tuple[int, int]:
    """Return the rows and columns of images of these `sides` that a crop leaves out."""
    rows, columns = sides
    if rows < height or columns < width or not height or not width:
        raise ImageError(f"too small to crop: {columns} x {rows} pixels, {width} x {height} needed")
    return rows - height, columns - width


def affine(image: Rgb, *, angle: float = 0.0, scale: float = 1.0, shear: float = 0.0) -> Rgb:
    """Rotate, scale and shear about the centre; outside is black, the size is kept.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    angle, shear : float
        Degrees, clockwise.
    scale : float
        Magnification.
    """
    height, width = image.shape[:2]
    # ImageNet-P was created with torchvision 0.2.1, whose centre is half a pixel off.
    centre_x, centre_y = width * 0.5 + 0.5, height * 0.5 + 0.5
    a, s, z = math.radians(angle), math.radians(shear), 1.0 / scale
    (sine, cosine), (sine_of_both, cosine_of_both) = exact.sine_cosine(a), exact.sine_cosine(a + s)
    d = cosine_of_both * cosine + sine_of_both * sine
    xx, xy = z / d * cosine_of_both, z / d * sine_of_both
    yx, yy = z / d * -sine, z / d * cosine
    to_x, to_y = -xx * centre_x - xy * centre_y, -yx * centre_x - yy * centre_y
    return sample_affine(image, (xx, xy, to_x + centre_x, yx, yy, to_y + centre_y))


def shift_right(image: Rgb, pixels: int) -> Rgb:
    """Shift `image` to the right by `pixels`; the left margin is black."""
    out, width = np.zeros_like(image), image.shape[1]
    pixels = max(-width, min(pixels, width))
    first, last = max(pixels, 0), width + min(pixels, 0)
    out[:, first:last] = image[:, first - pixels : last - pixels]
    return out


def perspective(image: Rgb, phi: float, theta: float) -> Rgb:
    """View the plane of `image` tilted; outside is black, the size is kept.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    phi, theta : float
        Degrees about the vertical and the horizontal axis.
    """
    height, width = image.shape[:2]
    focal = exact.hypot(float(width), float(height))
    (sine_p, cosine_p), (sine_t, cosine_t) = (exact.sine_cosine(math.radians(each)) for each in (phi, theta))
    lift = [[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1], [0, 0, 1]]
    about_x = [[1, 0, 0, 0], [0, cosine_t, -sine_t, 0], [0, sine_t, cosine_t, 0], [0, 0, 0, 1]]
    about_y = [[cosine_p, 0, -sine_p, 0], [0, 1, 0, 0], [sine_p, 0, cosine_p, 0], [0, 0, 0, 1]]
    away = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, focal], [0, 0, 0, 1]]
    project = [[focal, 0, width / 2, 0], [0, focal, height / 2, 0], [0, 0, 1, 0]]
    turned = _multiply(_multiply(away, about_x), about_y)
    return warp_perspective(image, np.array(_multiply(_multiply(project, turned), lift)))


def _multiply(left: Sequence[Sequence[float]], right: Sequence[Sequence[float]]) -> list[list[float]]:
    """Multiply two small matrices; BLAS would fuse sums and products on some processors."""
    columns = [*zip(*right, strict=True)]
    # `sum` compensates rounding errors from Python 3.12 on.
    return [[reduce(operator.add, map(operator.mul, row, column)) for column in columns] for row in left]


# --- preparation steps as values, which also apply to maps of an image, such as depth --------------

Map = npt.NDArray[np.float32]
"""A value for each pixel, (H, W)."""
_Resize = Callable[[Any, int, int], Any]


class PreparationStep(ABC):
    """A step of the preparation.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> step = robustgen.published_preparation("laion-c:mosaic", severity=1).step
    >>> step(np.zeros((300, 400, 3), np.uint8)).shape
    (224, 224, 3)
    >>> step.follow(np.zeros((300, 400), np.float32)).shape
    (224, 224)
    """

    def __call__(self, image: Decoded) -> Rgb:
        """Return the image after this step, uint8 (H, W, 3).

        Raises
        ------
        ImageError
            The image is too small, too elongated, or has the wrong size.
        """
        picture = as_rgb_picture(image) if isinstance(image, Image.Image) else image
        return as_rgb(self._apply(picture, resize))

    def apply_as_stored(self, image: Image.Image) -> Rgb:
        """Return a Pillow image after this step, which is applied in its own mode, before the conversion.

        Raises
        ------
        ImageError
            As for the converted image.
        """
        return as_rgb(self._apply(image, resize_picture))

    def follow(self, values: Map) -> Map:
        """Return a map of the image after this step, with nearest values, not interpolated.

        Raises
        ------
        ImageError
            As for the image.
        """
        return np.asarray(self._apply(values, _resize_map), np.float32)

    @abstractmethod
    def _apply(self, image: Any, resize: _Resize) -> Any:
        """Apply the step to an image or a map, resizing with `resize`."""


@dataclass(frozen=True)
class Keep(PreparationStep):
    """A step that keeps images unchanged."""

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return image


@dataclass(frozen=True)
class ResizeShorter(PreparationStep):
    """A step that resizes the shorter side to `side` pixels and keeps the aspect ratio."""

    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        width, height = _find_size(image)
        return resize(image, *find_shorter(width, height, self.side))


@dataclass(frozen=True)
class Squeeze(PreparationStep):
    """A step that resizes both sides to `side` pixels."""

    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return resize(image, self.side, self.side)


@dataclass(frozen=True)
class Crop(PreparationStep):
    """A step that cuts the central `side` x `side` pixels."""

    side: int

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return centre_crop(np.asarray(image), self.side, self.side)


@dataclass(frozen=True)
class CropMost(PreparationStep):
    """A step that cuts the central 87.5 % of both sides."""

    def _apply(self, image: Any, resize: _Resize) -> Any:
        width, height = _find_size(image)
        return centre_crop(np.asarray(image), int(0.875 * width), int(0.875 * height))


@dataclass(frozen=True)
class CheckSide(PreparationStep):
    """A step that refuses images not of `side` x `side` pixels, the size of `title` images, with a remedy."""

    title: str
    side: int
    remedy: str = RESIZING

    def _apply(self, image: Any, resize: _Resize) -> Any:
        width, height = _find_size(image)
        if (width, height) != (self.side, self.side):
            sides = f"{self.side} x {self.side} pixels, not {width} x {height}"
            raise ImageError(f"{self.title} images are {sides}; {self.remedy}")
        return image


@dataclass(frozen=True)
class Chain(PreparationStep):
    """The `first` step followed by the `second`."""

    first: PreparationStep
    second: PreparationStep

    def _apply(self, image: Any, resize: _Resize) -> Any:
        return self.second._apply(self.first._apply(image, resize), resize)


class Preparation(NamedTuple):
    """Geometry of one corruption in pixels.

    The shorter side is resized to `resize`, then cropped to `crop`, and the result to `finish`.
    """

    resize: int = 256
    crop: int = 224
    finish: int = 224

    @property
    def step(self) -> PreparationStep:
        """Return the preparation of the source image as one step."""
        return Chain(ResizeShorter(self.resize), Crop(self.crop))

    def prepare(self, image: Decoded) -> Rgb:
        """Resize and crop a source image for the corruption."""
        return self.step(image)

    def complete(self, corrupted: Rgb) -> Rgb:
        """Crop the result of the corruption to the saved size."""
        return centre_crop(corrupted, self.finish, self.finish)


def _find_size(image: Any) -> tuple[int, int]:
    width, height = image.size if isinstance(image, Image.Image) else image.shape[1::-1]
    return width, height


def _resize_map(values: Map, width: int, height: int) -> Map:
    return np.array(Image.fromarray(values).resize((width, height), Image.Resampling.NEAREST))
