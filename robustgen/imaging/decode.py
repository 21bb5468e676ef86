"""Conversion of image files and Pillow images to pixels."""

import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from PIL.JpegImagePlugin import JpegImageFile

from robustgen.errors import ArgumentError, ArgumentTypeError, ImageError, MissingDependencyError
from robustgen.files.storage.regular import open_regular
from robustgen.imaging.jpeg import Libjpeg, read_by_ijg
from robustgen.imaging.pixels import Rgb

Location = str | os.PathLike[str]
EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")
# Pillow's other formats are excluded: a PostScript file named .jpg would start Ghostscript.
FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF")


def decode(file: Location | BinaryIO, name: str | None = None, library: Libjpeg = "turbo") -> Rgb:
    """Decode an image file to RGB.

    Only the first frame of an animation is read; transparency is dropped; 16-bit greys lose their low byte.
    Floating-point greys (TIFF) of at most 1 are multiplied by 255, others are clipped to 0 .. 255.

    Parameters
    ----------
    file : path or binary file object
    name : str, optional
        Name in error messages. Default: the path.
    library : {"turbo", "ijg"}
        Decoder of JPEG files: that of Pillow, or IJG libjpeg 9c for files that Pillow can decode. JPEG data
        in TIFF files is always decoded by Pillow.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3), C-contiguous and writable

    Raises
    ------
    ImageError
        The file cannot be read, or its content is invalid.
    MissingDependencyError
        `library` is ``"ijg"``, and jpeglib is not installed.
    """
    with name_image_in_errors(name or str(file)):
        return np.array(_convert_to_rgb(_decode(file, library)))


def decode_to_pillow(
    file: Location | BinaryIO, name: str | None = None, library: Libjpeg = "turbo"
) -> Image.Image:
    """Decode an image file, like `decode`, to a Pillow image of its own mode."""
    with name_image_in_errors(name or str(file)):
        return _decode(file, library)


def read_dimensions(file: Location | BinaryIO, name: str | None = None) -> tuple[int, int]:
    """Return width and height from the header of an image file; raise an ImageError like `decode`."""
    with name_image_in_errors(name or str(file)), _open(file) as stream, _identify(stream) as image:
        return image.size


def _decode(file: Location | BinaryIO, library: Libjpeg) -> Image.Image:
    with _open(file) as stream, _identify(stream) as image:
        # Pillow refuses damaged files, of which IJG libjpeg returns grey pixels.
        image.load()
        if library == "turbo" or not isinstance(image, JpegImageFile):
            return image.copy()
        stream.seek(0)
        return _to_pillow(read_by_ijg(stream.read()), image)


def _to_pillow(pixels: NDArray[np.uint8], like: Image.Image) -> Image.Image:
    """Return the channels (H, W, C) of a JPEG file as a Pillow image of mode and size of `like`."""
    if pixels.shape != (like.height, like.width, len(like.getbands())):
        raise ValueError(f"IJG libjpeg decodes it to {pixels.shape}, Pillow to {like.mode} of {like.size}")
    # Adobe stores the channels of CMYK inverted.
    data = 255 - pixels if like.mode == "CMYK" else pixels
    return Image.frombytes(like.mode, like.size, data.tobytes())


@contextmanager
def name_image_in_errors(name: str) -> Iterator[None]:
    """Turn any exception into an ImageError that names the image."""
    try:
        yield
    except (ImageError, MissingDependencyError):
        raise
    except UnidentifiedImageError:
        raise ImageError(f"{name!r}: in none of the formats {', '.join(FORMATS)}") from None
    # On hostile bytes, Pillow's decoders raise nearly any exception, including MemoryError.
    except Exception as error:
        raise ImageError(f"{name!r}: {reason_of(error)}") from error


@contextmanager
def open_image(file: Location | BinaryIO) -> Iterator[Image.Image]:
    """Open an image file in a supported format as a Pillow image of its own mode."""
    with _open(file) as stream, _identify(stream) as image:
        yield image


def _open(file: Location | BinaryIO) -> AbstractContextManager[BinaryIO]:
    return open_regular(Path(file)) if isinstance(file, str | os.PathLike) else nullcontext(file)


def _identify(stream: BinaryIO) -> Image.Image:
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(stream, formats=FORMATS)


def _convert_to_rgb(image: Image.Image) -> Image.Image:
    """Return an RGB copy of a Pillow image of any mode; of an animation, the current frame.

    Raises
    ------
    OSError
        The image is damaged.
    ValueError
        Its floating-point values are not all finite.
    """
    # EXIF orientation is ignored, as in the scripts of the published data sets.
    image.load()
    if image.mode.startswith("I"):
        image = _eight_bits(image)
    elif image.mode == "F":
        image = _scale_floats(image)
    # Remove transparency, about which convert() would warn.
    image.info.pop("transparency", None)
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """Convert a grey image of mode I or I;16* to mode L."""
    values = np.asarray(image)
    # convert() would clip, and turn nearly all of a 16-bit image white.
    if image.mode != "I" or values.max() > 255:
        values = values >> 8
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def _scale_floats(image: Image.Image) -> Image.Image:
    """Scale floating-point values from 0 .. 1 to 0 .. 255; keep larger ranges."""
    values = np.asarray(image)
    if not np.isfinite(values).all():
        raise ValueError("contains values that are not finite")
    if values.max() > 1:
        return image
    return Image.fromarray(np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8))


def reason_of(error: Exception) -> str:
    """Return the message of the system or a decoder, or at least the type of `error`."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def as_grey(image: Any) -> Rgb:
    """Return `image` as a C-contiguous uint8 array of shape (H, W).

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W), (H, W, 1) or (H, W, 3), or a Pillow image
        Colours are converted to luma by Pillow's integer weights.

    Raises
    ------
    ArgumentTypeError, ArgumentError, ImageError
        As for `as_rgb`.
    """
    if isinstance(image, np.ndarray) and image.ndim == 3 and image.shape[2] == 1:
        image = image[:, :, 0]
    if isinstance(image, np.ndarray) and image.ndim == 2 and image.dtype == np.uint8 and image.size:
        return np.ascontiguousarray(image)
    return np.array(Image.fromarray(as_rgb(image)).convert("L"))


def as_rgb_picture(image: Image.Image) -> Image.Image:
    """Return a Pillow image in mode RGB, itself if it has that mode; raise an ImageError if it is damaged."""
    try:
        image.load()
        return image if image.mode == "RGB" else _convert_to_rgb(image.copy())
    except (OSError, ValueError) as error:
        raise ImageError(f"image cannot be read: {error}") from error


def as_rgb(image: Any) -> Rgb:
    """Return `image` as a C-contiguous uint8 array of shape (H, W, 3), RGB.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W), or a Pillow image

    Raises
    ------
    ArgumentTypeError
        `image` is neither an array of dtype uint8 nor a Pillow image.
    ArgumentError
        The array has another shape, or is empty.
    ImageError
        The file of a Pillow image is damaged.
    """
    if isinstance(image, Image.Image):
        image = np.array(as_rgb_picture(image))
    if not isinstance(image, np.ndarray):
        raise ArgumentTypeError(f"image must be a NumPy array or a Pillow image, not {type(image).__name__}")
    if image.dtype != np.uint8:
        raise ArgumentTypeError(f"image must have dtype uint8, not {image.dtype}")
    if image.ndim == 2:
        image = np.repeat(image[:, :, None], 3, axis=2)
    if image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise ArgumentError(f"image must have shape (H, W, 3) or (H, W), not {image.shape}")
    return np.ascontiguousarray(image)
