"""Conversion of image files and Pillow images to pixels, and of label maps to labels."""

import io
import logging
import os
import struct
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, TiffImagePlugin
from PIL.Image import Transpose
from PIL.JpegImagePlugin import JpegImageFile
from PIL.TiffImagePlugin import TiffImageFile

from robustgen.errors import (
    ArgumentError,
    ArgumentTypeError,
    DecodingWarning,
    ImageError,
    MissingDependencyError,
)
from robustgen.files.storage.host import open_regular
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.file_tags import NO_TAGS, ORIENTATION, FileTags, read_tags
from robustgen.pixels.imaging.jpeg import Libjpeg, capture_native_messages, read_by_ijg

Location = str | os.PathLike[str]
Complaint = tuple[str, str]
"""Name of an image that could be read, and the warning of its decoder."""
EXTENSIONS = (
    *(".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif"),
    *(".jpe", ".apng", ".pbm", ".pnm", ".dib"),
)
# Pillow's other formats are excluded: a PostScript file named .jpg would start Ghostscript.
PILLOW_FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF", "DIB")
_SHOWN_BYTES: Final = 16
# Pillow's words for intact TIFF files with other channels than those of photographs.
_UNUSUAL: Final = ("unknown pixel mode", "Invalid value for samples per pixel")
# Filters of warnings belong to the whole process.
_only_opening: Final = threading.Lock()
_complaints: Final[ContextVar[list[Complaint] | None]] = ContextVar("complaints", default=None)
# Pillow logs damage of TIFF files; without a handler, Python would print it.
logging.getLogger("PIL").addHandler(logging.NullHandler())
Levels = tuple[float, float]
"""The two values that become 0 and 255."""
_WIDE: Final = {"I": "signed or 32-bit integers", "F": "floating-point values"}
# No text chunk of a file has a key that is no text.
_LOSS: Final = (16, 8)
_TAGS: Final = (ORIENTATION, 0)
# Orientation to what undoes it.
_BACK: Final = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_90,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_270,
}
# A set of 12 bits is the most common one that is stored in 16: its high bytes are 16 greys.
FEW_GREYS: Final = 16


class Loss(NamedTuple):
    """Part of a file that its pixels of 8 bits and three channels lack.

    Attributes
    ----------
    way : {"8 bits", "high byte", "levels", "colours"}
        Way to 8 bits: none; the high byte of greys; `levels` of greys; the high byte of colours.
    low, high : float
        Smallest and largest value of a file with more than 8 bits.
    greys : int
        Number of values from the darkest to the brightest in 8 bits; 2 if all are black or white.
    has_more : bool
        Whether there are further bands, or an alpha channel that is not opaque everywhere.
    """

    way: str = "8 bits"
    low: float = 0
    high: float = 0
    greys: int = 256
    has_more: bool = False

    @property
    def ends(self) -> str:
        """Return levels that fit the values, as a text: 0 and a power of two if they begin near 0."""
        return name_ends(self.low, self.high)


def name_ends(low: float, high: float) -> str:
    """Return levels that fit values from `low` to `high`, as a text for the key and the flag."""
    if high > 1 and 0 <= 4 * low <= high and high == int(high):
        return f"0,{2 ** int(high).bit_length() - 1}"
    return f"{low:.9g},{high:.9g}"


def decode(
    file: Location | BinaryIO,
    name: str | None = None,
    library: Libjpeg = "turbo",
    levels: Levels | None = None,
) -> Rgb:
    """Decode an image file to RGB.

    Only the first frame of an animation is read; transparency is dropped; 16-bit values lose their low byte.

    Parameters
    ----------
    file : path or binary file object
    name : str, optional
        Name in error messages. Default: the path.
    library : {"turbo", "ijg"}
        Decoder of JPEG files: that of Pillow, or IJG libjpeg 9c for files that Pillow can decode. JPEG data
        in TIFF files is always decoded by Pillow.
    levels : (float, float), optional
        The two values of greys of more than 8 bits that become 0 and 255; others are clipped. Signed,
        32-bit and floating-point greys need them.

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
    name = name or str(file)
    with name_image_in_errors(name):
        return np.array(_convert_to_rgb(_decode(file, name, library, levels)))


def decode_to_pillow(
    file: Location | BinaryIO,
    name: str | None = None,
    library: Libjpeg = "turbo",
    levels: Levels | None = None,
) -> Image.Image:
    """Decode an image file, like `decode`, to a Pillow image of its own mode, or of 8 bits with `levels`.

    Examples
    --------
    >>> from PIL import Image
    >>> from robustgen.plugins import decode_to_pillow
    >>> Image.new("L", (6, 4)).save("grey.png")
    >>> decode_to_pillow("grey.png").mode
    'L'
    """
    name = name or str(file)
    with name_image_in_errors(name):
        return _decode(file, name, library, levels)


def find_loss(image: object) -> Loss | None:
    """Return what a decoded file loses in 8 bits and three channels; None if it loses nothing."""
    return image.info.get(_LOSS) if isinstance(image, Image.Image) else None


def find_tags(image: object) -> FileTags:
    """Return orientation and colour profile of the file that an image was decoded from, if it has any."""
    return image.info.get(_TAGS, NO_TAGS) if isinstance(image, Image.Image) else NO_TAGS


def warn_of_few_greys(image: object) -> bool:
    """Warn of a decoded file with more than 8 bits that comes out in few grey levels; return if so."""
    loss = find_loss(image)
    return loss is not None and _warn_of_loss(loss)


def _warn_of_loss(loss: Loss) -> bool:
    has_few = loss.low < loss.high and loss.greys <= FEW_GREYS
    if has_few:
        remedy = "scale its values"
        if loss.way != "colours":
            # The same for similar images, as Python prints equal texts once.
            low = loss.low // 4096 * 4096
            is_rounded = loss.way == "high byte" and loss.high < low + 4096
            ends = name_ends(low, low + 4095) if is_rounded else loss.ends
            remedy = f"give levels, such as ({ends.replace(',', ', ')}), or {remedy}"
        text = f"an image of more than 8 bits comes out in at most {FEW_GREYS} grey levels: {remedy}"
        warnings.warn(text, DecodingWarning, stacklevel=3)
    return has_few


def is_animated(data: bytes, name: str) -> bool:
    """Return True if a GIF, WebP, PNG or TIFF file given as its bytes contains more than one picture."""
    if not name.lower().endswith((".gif", ".webp", ".png", ".apng", ".tif", ".tiff")):
        return False
    try:
        with Image.open(io.BytesIO(data), formats=PILLOW_FORMATS) as image:
            return bool(getattr(image, "is_animated", False))
    # On hostile bytes, Pillow's decoders raise nearly any exception; `decode` reports them.
    except Exception:
        return False


def read_dimensions(file: Location | BinaryIO, name: str | None = None) -> tuple[int, int]:
    """Return width and height from the header of an image file; raise an ImageError like `decode`."""
    with name_image_in_errors(name or str(file)), _open(file) as stream, _identify(stream) as image:
        return _size_as_stored(image)


def read_header(file: Location | BinaryIO, name: str | None = None) -> tuple[int, int, FileTags]:
    """Return width and height of the stored pixels, orientation and colour profile of an image file.

    Raises
    ------
    ImageError
        As for `decode`.
    """
    with name_image_in_errors(name or str(file)), _open(file) as stream, _identify(stream) as image:
        if image.format == "PNG":
            # EXIF data may follow the pixels.
            image.load()
        return *_size_as_stored(image), read_tags(image)


def _size_as_stored(image: Image.Image) -> tuple[int, int]:
    # Pillow has already exchanged the sides of TIFF files that it will turn.
    if isinstance(image, TiffImageFile):
        return image.tag_v2[TiffImagePlugin.IMAGEWIDTH], image.tag_v2[TiffImagePlugin.IMAGELENGTH]
    return image.size


@contextmanager
def collect_complaints() -> Iterator[list[Complaint]]:
    """Collect the warnings of decoders in a list, which would otherwise be Python's warnings."""
    found: list[Complaint] = []
    token = _complaints.set(found)
    try:
        yield found
    finally:
        _complaints.reset(token)


def complain(name: str, messages: Iterable[str]) -> None:
    """Count the distinct `messages` about a file that could be read, or warn of them where nobody counts."""
    if distinct := [*dict.fromkeys(messages)]:
        text = distinct[0] + (f"; and {len(distinct) - 1} more" if distinct[1:] else "")
        found = _complaints.get()
        if found is None:
            warnings.warn(f"{name!r}: {text}", DecodingWarning, stacklevel=2)
        else:
            found.append((name, text))


def _decode(file: Location | BinaryIO, name: str, library: Libjpeg, levels: Levels | None) -> Image.Image:
    with _open(file) as stream, _identify(stream, name) as image:
        # Pillow keeps only the high bytes of 16-bit colours.
        tiles = getattr(image, "tile", ())
        is_deep_colour = not _is_deep(image) and any(";16" in str(tile[3]) for tile in tiles)
        # Pillow refuses damaged files, of which IJG libjpeg returns grey pixels.
        stored, tags = _load(image, name)
        if library == "ijg" and isinstance(image, JpegImageFile):
            stream.seek(0)
            decoded = _to_pillow(read_by_ijg(stream.read()), image)
        else:
            decoded = _restore_depth(stored, image)
        loss = Loss()
        if is_deep_colour:
            if levels:
                raise ValueError("levels are for greys, this file has 16-bit colours: convert it to 8 bits")
            colours = np.asarray(decoded)[..., : 1 if decoded.mode == "LA" else 3]
            low, high = int(colours.min()), int(colours.max())
            loss = Loss("colours", low << 8, (high << 8) + 255, high - low + 1)
        elif levels and _is_deep(decoded):
            decoded = scale_levels(np.asarray(decoded), levels)
            loss = decoded.info[_LOSS]
        elif decoded.mode.startswith("I;16"):
            loss = _measure(np.asarray(decoded))
        loss = loss._replace(has_more=_has_more(image))
        if loss != Loss():
            decoded.info[_LOSS] = loss
        if tags != NO_TAGS:
            decoded.info[_TAGS] = tags
        return decoded


def _is_deep(image: Image.Image) -> bool:
    return image.mode[0] in "IF"


def _restore_depth(image: Image.Image, file: Image.Image) -> Image.Image:
    """Return a copy of a loaded image with the values of its `file`, which Pillow may widen or misread."""
    if image.mode == "I" and file.format in ("PNG", "PPM"):
        return Image.fromarray(np.asarray(image).astype(np.uint16))
    tags = getattr(file, "tag_v2", {})
    if image.mode == "I;16" and tags.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION) == 0:
        # White is 0, which Pillow knows of 8 bits only.
        return Image.fromarray(np.uint16(65535) - np.asarray(image))
    if image.mode == "L" and tags.get(TiffImagePlugin.SAMPLEFORMAT) == (2,):
        return Image.fromarray(np.asarray(image).view(np.int8).astype(np.int32))
    return image.copy()


def _refuse_misread(image: Image.Image) -> None:
    """Raise a ValueError for TIFF files that Pillow decodes to other pixels than theirs."""
    tags = getattr(image, "tag_v2", {})
    bits = tags.get(TiffImagePlugin.BITSPERSAMPLE, ())
    what = ""
    if 16 in bits[1:] and tags.get(TiffImagePlugin.PLANAR_CONFIGURATION) == 2:
        what = "16-bit channels in separate planes"
    elif image.mode == "F" and tags.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION) == 0:
        what = "floating-point values of which 0 is white"
    if what:
        raise ValueError(f"TIFF file of {what}, which Pillow misreads; convert it, for instance to PNG")


def _has_more(image: Image.Image) -> bool:
    """Return whether a loaded file has transparent pixels, or more bands than colours."""
    bands = image.getbands()
    if image.mode[-1] in "Aa":
        return image.getchannel(len(bands) - 1).getextrema()[0] != 255
    more = getattr(image, "tag_v2", {}).get(TiffImagePlugin.SAMPLESPERPIXEL, 1) > len(bands)
    return more or "transparency" in image.info


def scale_levels(values: NDArray[Any], levels: Levels) -> Image.Image:
    """Return values (H, W) or (H, W, 3) of any type as 8 bits: the two `levels` become 0 and 255."""
    _check_finite(values)
    low, high = levels
    units = (values.astype(np.float64) - low) / (high - low)
    pixels = np.rint(np.clip(units, 0, 1) * 255).astype(np.uint8)
    image = Image.fromarray(pixels)
    is_between = ((units > 0) & (units < 1)).any()
    greys = int(pixels.max()) - int(pixels.min()) + 1 if is_between else 2
    image.info[_LOSS] = Loss("levels", values.min().item(), values.max().item(), greys)
    return image


def _measure(values: NDArray[np.uint16]) -> Loss:
    """Return what 16-bit greys lose if only their high bytes are kept."""
    low, high = int(values.min()), int(values.max())
    return Loss("high byte", low, high, (high >> 8) - (low >> 8) + 1)


def _check_finite(values: NDArray[Any]) -> None:
    if not np.isfinite(values).all():
        raise ValueError("contains values that are not finite")


def _load(image: Image.Image, name: str) -> tuple[Image.Image, FileTags]:
    """Decode an opened file; return its pixels as they are stored, and its tags."""
    messages: list[str] = []
    # libtiff prints its messages, and Pillow raises no more than "decoder error -2".
    is_printing = any(tile[0] == "libtiff" for tile in getattr(image, "tile", ()))
    _refuse_misread(image)
    try:
        with capture_native_messages(messages) if is_printing else nullcontext():
            stored, tags = _load_as_stored(image)
    except (OSError, ValueError, SyntaxError, LookupError, TypeError, struct.error) as error:
        if getattr(error, "errno", None):
            raise
        raise ValueError(_name_damage(str(image.format), error, messages)) from error
    complain(name, messages)
    return stored, tags


def _load_as_stored(image: Image.Image) -> tuple[Image.Image, FileTags]:
    if not isinstance(image, TiffImageFile):
        image.load()
        return image, read_tags(image)
    # Pillow turns TIFF files, and no others, as their tag says, which it then removes.
    tags, turned = read_tags(image), image.getexif().get(ORIENTATION)
    image.load()
    return image.transpose(_BACK[turned]) if turned in _BACK else image, tags


def _name_damage(form: str, error: Exception, messages: Sequence[str] = ()) -> str:
    """Return why a file of the format `form` is refused, from an error of its decoder."""
    # Errors of other types tell of Pillow's variables, as do those that it wraps.
    is_told = isinstance(error, OSError | ValueError | SyntaxError) and not error.__cause__
    reason = messages[0] if messages else reason_of(error) if is_told else "its structure is invalid"
    return f"damaged {form} file: {reason}"


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
    # On hostile bytes, Pillow's decoders raise nearly any exception, including MemoryError.
    except Exception as error:
        raise ImageError(reason_of(error), name) from error


@contextmanager
def open_image(file: Location | BinaryIO) -> Iterator[Image.Image]:
    """Open an image file in a supported format as a Pillow image of its own mode, as it is stored."""
    with _open(file) as stream, _identify(stream) as image:
        yield _load_as_stored(image)[0] if isinstance(image, TiffImageFile) else image


def _open(file: Location | BinaryIO) -> AbstractContextManager[BinaryIO]:
    return open_regular(Path(file)) if isinstance(file, str | os.PathLike) else nullcontext(file)


def _identify(stream: BinaryIO, name: str = "") -> Image.Image:
    """Open a file as a Pillow image without decoding it; report the warnings if it has a `name`.

    Raises
    ------
    ValueError
        The file is refused; the message says why.
    """
    with _only_opening, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Pillow refuses twice as many pixels as it warns about.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            image = Image.open(stream, formats=PILLOW_FORMATS)
        # UnidentifiedImageError is an OSError.
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None):
                raise
            raise ValueError(_explain_refusal(stream)) from error
    if name:
        complain(name, (str(each.message).strip() for each in caught))
    return image


def _explain_refusal(stream: BinaryIO) -> str:
    """Return why Pillow cannot open a file: damaged, unusual, or in none of the formats."""
    stream.seek(0)
    head = stream.read(_SHOWN_BYTES)
    if not head:
        return "the file is empty"
    for form in PILLOW_FORMATS:
        factory, accept = Image.OPEN[form]
        if accept is None or accept(head.ljust(_SHOWN_BYTES, b"\0")) is True:
            stream.seek(0)
            try:
                factory(stream, "")
            except Exception as error:
                is_unusual = str(error) in _UNUSUAL
                return _describe_tiff(stream) if is_unusual else _name_damage(form, error)
    return f"in none of the formats {', '.join(PILLOW_FORMATS)} (begins with {head!r})"


def _describe_tiff(stream: BinaryIO) -> str:
    """Return the channels and bits of an intact TIFF file that Pillow cannot read."""
    stream.seek(0)
    tags = TiffImagePlugin.ImageFileDirectory_v2(stream.read(8))
    stream.seek(tags.next)
    tags.load(stream)
    channels = tags.get(TiffImagePlugin.SAMPLESPERPIXEL, 1)
    bits = dict.fromkeys(tags.get(TiffImagePlugin.BITSPERSAMPLE, (1,)))
    alpha = " with associated alpha" if 1 in tags.get(TiffImagePlugin.EXTRASAMPLES, ()) else ""
    return (
        f"TIFF file of {channels} channels of {'/'.join(map(str, bits))} bits{alpha}, which "
        "Pillow does not read; convert it to grey or RGB, for instance as PNG"
    )


def _convert_to_rgb(image: Image.Image) -> Image.Image:
    """Return an RGB copy of a Pillow image of any mode; of an animation, the current frame.

    Raises
    ------
    OSError
        The image is damaged.
    ValueError
        Its values are neither of 8 bits nor unsigned and of 16, so that only levels tell their range.
    """
    # EXIF orientation is ignored, as in the scripts of the published data sets.
    image.load()
    if image.mode in ("I", "F"):
        what, values = _WIDE[image.mode], np.asarray(image)
        _check_finite(values)
        ends = f"{values.min():.6g} to {values.max():.6g}"
        hint = "set levels, its values of black and white, or convert it to 8 bits"
        raise ValueError(f"{what} ({ends}): {hint}")
    if image.mode.startswith("I;16"):
        values = np.asarray(image)
        if _LOSS not in image.info:
            # A picture of the caller; those of a source are counted.
            _warn_of_loss(_measure(values))
        # convert() would clip, and turn nearly all of the image white.
        image = Image.fromarray((values >> 8).astype(np.uint8))
    elif image.mode in ("La", "RGBa"):
        # Pillow converts colours multiplied by their transparency in two steps only.
        image = image.convert(image.mode.upper())
    # Remove transparency, about which convert() would warn.
    image.info.pop("transparency", None)
    return image.convert("RGB")


def reason_of(error: Exception) -> str:
    """Return the message of the system or a decoder, or at least the type of `error`."""
    if error.args and isinstance(error.args[0], bytes):
        return error.args[0].decode("ascii", "backslashreplace")
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
    """Return a Pillow image in mode RGB, itself if it has that mode.

    Raises
    ------
    ImageError
        It is damaged, or its values need levels (see `decode`).
    """
    try:
        _refuse_misread(image)
        image.load()
        return image if image.mode == "RGB" else _convert_to_rgb(_restore_depth(image, image))
    except OSError as error:
        raise ImageError(f"image cannot be read: {error}") from error
    except ValueError as error:
        raise ImageError(str(error)) from error


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
        The file of a Pillow image is damaged, or its values need levels (see `decode`).

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import as_rgb
    >>> as_rgb(np.zeros((4, 6), np.uint8)).shape
    (4, 6, 3)
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


# --- label maps: images whose values are classes, distances or other measures, not colours ---------

Look = Literal["map", "palette", "grey", "colour"]
"""Appearance of an image: surely a map; many colours of a palette; many greys; many colours."""

# A photograph of few megapixels has thousands of colours, and nearly all 256 greys.
_FEW_GREYS: Final = 64
_FEW_COLOURS: Final = 256


def read_label_map(file: Location) -> NDArray[Any]:
    """Read a label map: greys of any number of bits, palette indices, colours, or an array (``.npy``).

    Returns
    -------
    integer ndarray of shape (H, W), or (H, W, 3) for colours

    Raises
    ------
    ImageError
        The file is damaged, or contains fractions.
    """
    with name_image_in_errors(str(file)):
        labels = _read_label_array(file) if str(file).lower().endswith(".npy") else _read_stored_labels(file)
        if labels.dtype.kind == "f":
            # Greys of floating-point values may be whole numbers.
            whole = np.nan_to_num(labels).astype(np.int64)
            if (labels != whole).any():
                raise ImageError("contains fractions, not labels", str(file))
            labels = whole
        return labels.astype(np.uint8) if labels.dtype == bool else labels


def _read_label_array(file: Location) -> NDArray[Any]:
    labels: NDArray[Any] = np.load(file, allow_pickle=False)
    if labels.ndim == len("HWC") and labels.shape[2] == 1:
        labels = labels[..., 0]
    if labels.dtype.kind not in "biuf" or labels.ndim < len("HW") or labels.shape[2:] not in ((), (3,)):
        raise ValueError(f"an array of {labels.dtype} {labels.shape} is no label map")
    return labels


def _read_stored_labels(file: Location) -> NDArray[Any]:
    with open_image(file) as image:
        if image.mode not in ("L", "P", "1", "F") and image.mode[0] != "I":
            return np.array(image.convert("RGB"))
        form = next((str(tile[3]) for tile in getattr(image, "tile", ())), "")
        # Pillow stretches greys of two and four bits to 255.
        scale = {"L;2": 85, "L;4": 17}.get(form, 1)
        labels = np.array(image)
        return labels // np.uint8(scale) if scale > 1 else labels


def judge_look(data: bytes, name: str) -> Look:
    """Return the appearance of an image file; raise an ImageError if it is damaged."""
    with name_image_in_errors(name), open_image(io.BytesIO(data)) as image:
        if image.mode[0] in "1IF":
            return "map"
        if image.mode == "P":
            return "map" if len(np.unique(np.asarray(image))) <= _FEW_GREYS else "palette"
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(np.int32)
        # JPEG leaves traces of colour in greys.
        if np.abs(pixels - pixels[:, :1]).mean() < 1:
            return "map" if len(np.unique(pixels[:, 0])) <= _FEW_GREYS else "grey"
        colours = len(np.unique(pixels @ (1 << 16, 1 << 8, 1)))
        return "map" if colours <= _FEW_COLOURS else "colour"
