"""Image files and Pillow images to pixels."""

import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from robustgen.errors import ArgumentError, ArgumentTypeError, ImageError
from robustgen.imaging.pixels import Rgb
from robustgen.storage.regular import open_regular

Location = str | os.PathLike[str]
EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")
# Pillow's other formats are kept out: a PostScript file named .jpg would start Ghostscript.
FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF")


def decode(file: Location | BinaryIO, name: str | None = None) -> Rgb:
    """Decode an image file to RGB.

    Of an animation the first frame is taken; transparency is dropped; 16-bit greys lose their low byte.
    Floating-point greys (TIFF) of at most 1 are multiplied by 255, others clipped to 0 .. 255.

    Parameters
    ----------
    file : path or binary file object
    name : str, optional
        What error messages call it; the path if left out.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3), C-contiguous and writable

    Raises
    ------
    ImageError
        Whatever is wrong with the file or with what it holds.
    """
    with blame_image(name or str(file)):
        return np.array(_decode(file))


def decode_to_pillow(file: Location | BinaryIO, name: str | None = None) -> Image.Image:
    """Decode an image file as `decode` does, to a Pillow image of mode RGB."""
    with blame_image(name or str(file)):
        return _decode(file)


def read_dimensions(file: Location | BinaryIO, name: str | None = None) -> tuple[int, int]:
    """Width and height of an image file, as its header tells; an ImageError as `decode` raises it."""
    with blame_image(name or str(file)), _open(file) as stream, _identify(stream) as image:
        return image.size


def _decode(file: Location | BinaryIO) -> Image.Image:
    with _open(file) as stream, _identify(stream) as image:
        return _convert_to_rgb(image)


@contextmanager
def blame_image(name: str) -> Iterator[None]:
    """Turn any exception into an ImageError that names the image."""
    try:
        yield
    except ImageError:
        raise
    except UnidentifiedImageError:
        raise ImageError(f"{name!r}: in none of the formats {', '.join(FORMATS)}") from None
    # On hostile bytes Pillow's decoders let nearly any exception escape, MemoryError among them.
    except Exception as error:
        raise ImageError(f"{name!r}: {reason_of(error)}") from error


@contextmanager
def open_image(file: Location | BinaryIO) -> Iterator[Image.Image]:
    """Open an image file, of the formats that are read at all, as a Pillow image of its own mode."""
    with _open(file) as stream, _identify(stream) as image:
        yield image


def _open(file: Location | BinaryIO) -> AbstractContextManager[BinaryIO]:
    return open_regular(Path(file)) if isinstance(file, str | os.PathLike) else nullcontext(file)


def _identify(stream: BinaryIO) -> Image.Image:
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(stream, formats=FORMATS)


def _convert_to_rgb(image: Image.Image) -> Image.Image:
    """Return a copy in mode RGB of a Pillow image of any mode; of an animated one, its current frame.

    Raises
    ------
    OSError
        The image is damaged.
    ValueError
        Its floating-point values are not all finite.
    """
    # EXIF orientation is ignored, as the scripts that made the published datasets ignored it.
    image.load()
    if image.mode.startswith("I"):
        image = _eight_bits(image)
    elif image.mode == "F":
        image = _scale_floats(image)
    # Dropped with the alpha channels; left in, convert() warns of it.
    image.info.pop("transparency", None)
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """Bring a grey image of mode I or I;16* to mode L."""
    values = np.asarray(image)
    # convert() would clip instead: nearly all of a 16-bit image would turn white.
    if image.mode != "I" or values.max() > 255:
        values = values >> 8
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def _scale_floats(image: Image.Image) -> Image.Image:
    """Bring floating-point values that run from 0 to 1 to 0 .. 255; leave larger ones alone."""
    values = np.asarray(image)
    if not np.isfinite(values).all():
        raise ValueError("holds values that are not finite")
    if values.max() > 1:
        return image
    return Image.fromarray(np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8))


def reason_of(error: Exception) -> str:
    """Return what the system or a decoder says is wrong, or at least the type of `error`."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def as_grey(image: Any) -> Rgb:
    """Return `image` as a C-contiguous uint8 array of shape (H, W).

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W), (H, W, 1) or (H, W, 3), or a Pillow image
        Colours become luma by Pillow's integer weights.

    Raises
    ------
    ArgumentTypeError, ArgumentError, ImageError
        As of `as_rgb`.
    """
    if isinstance(image, np.ndarray) and image.ndim == 3 and image.shape[2] == 1:
        image = image[:, :, 0]
    if isinstance(image, np.ndarray) and image.ndim == 2 and image.dtype == np.uint8 and image.size:
        return np.ascontiguousarray(image)
    return np.array(Image.fromarray(as_rgb(image)).convert("L"))


def as_rgb(image: Any) -> Rgb:
    """Return `image` as a C-contiguous uint8 array of shape (H, W, 3), RGB.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W), or a Pillow image

    Raises
    ------
    ArgumentTypeError
        Neither an array of dtype uint8 nor a Pillow image.
    ArgumentError
        An array of another shape, or an empty one.
    ImageError
        A Pillow image whose file is damaged.
    """
    if isinstance(image, Image.Image):
        try:
            image = np.array(image if image.mode == "RGB" else _convert_to_rgb(image.copy()))
        except (OSError, ValueError) as error:
            raise ImageError(f"image cannot be read: {error}") from error
    if not isinstance(image, np.ndarray):
        raise ArgumentTypeError(f"image must be a NumPy array or a Pillow image, not {type(image).__name__}")
    if image.dtype != np.uint8:
        raise ArgumentTypeError(f"image must have dtype uint8, not {image.dtype}")
    if image.ndim == 2:
        image = np.repeat(image[:, :, None], 3, axis=2)
    if image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise ArgumentError(f"image must have shape (H, W, 3) or (H, W), not {image.shape}")
    return np.ascontiguousarray(image)
