"""Encoders of pictures, a file for each image or frame: JPEG, PNG, lossless WebP, the source's formats."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np
from PIL import Image, features

from robustgen.errors import ImageError
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.pixels.imaging.jpeg import Libjpeg, Subsampling, encode_jpeg, round_trip
from robustgen.sets.formats import Format
from robustgen.sets.formats.base import Encoded, Encoder, EncoderChoices, keep_grey, without_suffix
from robustgen.sets.formats.trees import TreeWriter
from robustgen.sets.sources.trees import without_video_suffix

# Names with these suffixes are kept.
_JPEG_SUFFIXES: Final = (".JPEG", ".jpeg", ".jpg", ".JPG")


@dataclass(frozen=True)
class JpegEncoder(Encoder):
    """Encoder of JPEG files, with Pillow's 4:2:0 and optimised Huffman tables.

    The published sets have `quality` 85 and use libjpeg-turbo. Files are `grey` if the channels of all
    images are equal. LAION-C has 4:4:4 and Pillow's default tables.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import JpegEncoder, Variant
    >>> encoder = JpegEncoder(quality=85)
    >>> (file,) = encoder.encode(Variant("fog", 3, "fog/3"), "a.png", np.zeros((32, 32, 3), np.uint8))
    >>> file.name, file.data[6:10]
    ('a.JPEG', b'JFIF')
    """

    quality: int = 85
    libjpeg: Libjpeg = "turbo"
    grey: bool = False
    subsampling: Subsampling = "4:2:0"

    def settings(self) -> dict[str, Any]:
        """Return format, quality and library; also grey and subsampling, if not the default."""
        own = {"format": "jpeg", "quality": self.quality, "libjpeg": self.libjpeg}
        colours = {} if self.subsampling == "4:2:0" else {"subsampling": self.subsampling}
        return own | ({"grey": True} if self.grey else {}) | colours

    def output_name(self, key: str) -> str:
        """Return `key` with a JPEG suffix."""
        return key if key.endswith(_JPEG_SUFFIXES) else f"{key.rpartition('.')[0] or key}.JPEG"

    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return one JPEG file of uint8 `pixels` (H, W, 3)."""
        data = encode_jpeg(
            keep_grey(pixels) if self.grey else pixels,
            self.quality,
            optimise=self.subsampling == "4:2:0",
            library=self.libjpeg,
            subsampling=self.subsampling,
        )
        return [Encoded(self.output_name(key), data)]

    def as_read(self, variant: Variant, key: str, pixels: Rgb) -> Rgb:
        """Return the pixels of the JPEG file, uint8 (H, W, 3)."""
        given = keep_grey(pixels) if self.grey else pixels
        return as_rgb(round_trip(given, self.quality, library=self.libjpeg, subsampling=self.subsampling))


def _open_jpeg(own: EncoderChoices) -> JpegEncoder:
    return JpegEncoder(own.quality, own.libjpeg, own.grey, own.subsampling)


JPEG: Final = Format(
    "JPEG",
    {"c": _open_jpeg, "clip": lambda own: ClipFramesEncoder(_open_jpeg(own), ".jpg")},
    TreeWriter,
)


# --- lossless formats

LOSSLESS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = MappingProxyType(
    {
        ".png": ("PNG", {}),
        ".apng": ("PNG", {}),
        ".bmp": ("BMP", {}),
        ".dib": ("BMP", {}),
        ".ppm": ("PPM", {}),
        ".pnm": ("PPM", {}),
        ".tif": ("TIFF", {"compression": "tiff_lzw"}),
        ".tiff": ("TIFF", {"compression": "tiff_lzw"}),
        ".webp": ("WEBP", {"lossless": True}),
    }
)
"""Suffix to Pillow's name of the format and its options for lossless files."""


def encode_lossless(pixels: Rgb, suffix: str) -> bytes:
    """Encode uint8 `pixels` (H, W, 3) or (H, W) in the format of `suffix`, one of `LOSSLESS`."""
    name, options = LOSSLESS[suffix]
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, name, **options)
    return buffer.getvalue()


class LosslessEncoder(Encoder):
    """Encoder of PNG files, lossless WebP files, or others.

    Parameters
    ----------
    suffix : str
        Suffix of the files, one of `LOSSLESS`.
    grey : bool
        Whether the channels of all images are equal, so that the files keep one.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import LosslessEncoder, Variant
    >>> encoder = LosslessEncoder(".png")
    >>> (file,) = encoder.encode(Variant("fog", 3, "fog/3"), "a.jpg", np.zeros((32, 32, 3), np.uint8))
    >>> file.name, file.data[1:4]
    ('a.png', b'PNG')
    """

    def __init__(self, suffix: str, grey: bool = False) -> None:
        self.suffix: str = suffix
        self.grey: bool = grey

    def settings(self) -> dict[str, Any]:
        """Return the format, and whether the files are grey."""
        return {"format": self.suffix[1:]} | ({"grey": True} if self.grey else {})

    def versions(self) -> dict[str, str]:
        """Return the version of libwebp, for WebP files."""
        return {"libwebp": str(features.version("webp"))} if self.suffix == ".webp" else {}

    def output_name(self, key: str) -> str:
        """Return `key` with the suffix of the format."""
        return f"{without_suffix(key)}{self.suffix}"

    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return one file of uint8 `pixels` (H, W, 3)."""
        kept = keep_grey(pixels) if self.grey else pixels
        return [Encoded(self.output_name(key), encode_lossless(kept, self.suffix))]


class PngFramesEncoder(Encoder):
    """Encoder of `<class>/<stem>/<frame>.png`, frames numbered from 00."""

    def settings(self) -> dict[str, Any]:
        """Return the format."""
        return {"format": "png"}

    def output_name(self, key: str) -> str:
        """Return `key` without its suffix: the folder of the frames."""
        return without_suffix(key)

    def encode(self, variant: Variant, key: str, pixels: Iterable[Rgb]) -> Iterator[Encoded]:
        """Yield one file per uint8 frame (H, W, 3)."""
        folder = self.output_name(key)
        for number, frame in enumerate(pixels):
            yield Encoded(f"{folder}/{number:02d}.png", encode_lossless(frame, ".png"))


PNG: Final = Format(
    "PNG",
    {
        "c": lambda own: LosslessEncoder(".png", own.grey),
        "p": lambda own: PngFramesEncoder(),
        "clip": lambda own: ClipFramesEncoder(LosslessEncoder(".png"), ".png"),
    },
    TreeWriter,
)
WEBP: Final = Format(
    "lossless WebP",
    {
        "c": lambda own: LosslessEncoder(".webp"),
        "clip": lambda own: ClipFramesEncoder(LosslessEncoder(".webp"), ".webp"),
    },
    TreeWriter,
)


# --- names and formats of the source


@dataclass(frozen=True)
class OriginalEncoder(Encoder):
    """Encoder of files with the name and format of the source: JPEG of `quality`, other formats lossless.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import OriginalEncoder, Variant
    >>> encoder = OriginalEncoder(quality=95)
    >>> (file,) = encoder.encode(Variant("fog", 3, "fog/3"), "a.png", np.zeros((32, 32, 3), np.uint8))
    >>> file.name, file.data[1:4]
    ('a.png', b'PNG')
    """

    keeps_tags: ClassVar[bool] = True

    quality: int
    libjpeg: Libjpeg = "turbo"

    def settings(self) -> dict[str, Any]:
        """Return format, quality and library."""
        return {"format": "as in the source", "quality": self.quality, "libjpeg": self.libjpeg}

    def versions(self) -> dict[str, str]:
        """Return the version of libwebp, as the source may contain WebP files."""
        return {"libwebp": str(features.version("webp"))}

    def output_name(self, key: str) -> str:
        """Return `key` unchanged."""
        return key

    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return one file of uint8 `pixels` (H, W, 3)."""
        return [file._replace(name=key) for file in self._choose(key).encode(variant, key, pixels)]

    def as_read(self, variant: Variant, key: str, pixels: Rgb) -> Rgb:
        """Return the pixels of the file: `pixels` unchanged, except for JPEG files."""
        return self._choose(key).as_read(variant, key, pixels)

    def _choose(self, key: str) -> Encoder:
        suffix = PurePosixPath(key).suffix.lower()
        if suffix in (".jpg", ".jpeg", ".jpe"):
            return JpegEncoder(self.quality, self.libjpeg)
        if suffix in LOSSLESS:
            return LosslessEncoder(suffix)
        files = f"{suffix[1:].upper()} files" if suffix else "files without a suffix"
        raise ImageError(f"{files} cannot store the result; convert them to PNG first")


# --- clips


class ClipFramesEncoder(Encoder):
    """Encoder of `<class>/<clip>/<frame>`, one file for each frame.

    Frames keep the names of the source's files. Others, and frames with one stem and two suffixes, are called
    ``image_00001``, as in the published sets.

    Parameters
    ----------
    encoder : Encoder
        Encodes each frame.
    suffix : str
        Suffix of the files.
    """

    def __init__(self, encoder: Encoder, suffix: str) -> None:
        self.encoder, self.suffix = encoder, suffix

    def settings(self) -> dict[str, Any]:
        """Return the settings of the encoder of frames."""
        return self.encoder.settings()

    def versions(self) -> dict[str, str]:
        """Return the versions of the encoder of frames."""
        return self.encoder.versions()

    def output_name(self, key: str) -> str:
        """Return the folder of the frames."""
        return without_video_suffix(key)

    def encode(self, variant: Variant, key: str, pixels: Any) -> Iterator[Encoded]:
        """Yield one file per frame of a `Clip`."""
        for name, frame in self._name_frames(key, pixels):
            yield from self.encoder.encode(variant, name, frame)

    def as_read(self, variant: Variant, key: str, pixels: Any) -> Rgb:
        """Return the frames read back, uint8 (T, H, W, 3)."""
        named = self._name_frames(key, pixels)
        return np.stack([self.encoder.as_read(variant, name, frame) for name, frame in named])

    def _name_frames(self, key: str, clip: Any) -> Iterator[tuple[str, Rgb]]:
        """Yield the name of the file of each frame, and the frame."""
        folder = self.output_name(key)
        # Frames whose names differ in their suffixes alone are numbered: one would replace the other.
        distinct = len({self.encoder.output_name(name) for name in clip.names}) == len(clip.names)
        for number, frame in enumerate(clip):
            known = distinct and number < len(clip.names)
            name = clip.names[number] if known else f"image_{number + 1:05d}{self.suffix}"
            yield f"{folder}/{name}", frame
