"""PNG and lossless WebP files, and Pillow's other lossless formats."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from types import MappingProxyType
from typing import Any, ClassVar, Final

from PIL import Image, features

from robustgen.benchmark import Variant
from robustgen.formats.base import Encoded, TreeWriter, keep_grey, without_suffix
from robustgen.imaging.pixels import Rgb

FORMATS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = MappingProxyType(
    {
        ".png": ("PNG", {}),
        ".bmp": ("BMP", {}),
        ".ppm": ("PPM", {}),
        ".tif": ("TIFF", {"compression": "tiff_lzw"}),
        ".tiff": ("TIFF", {"compression": "tiff_lzw"}),
        ".webp": ("WEBP", {"lossless": True}),
    }
)
"""Suffix to Pillow's name of the format and its options for lossless files."""


def encode_lossless(pixels: Rgb, suffix: str) -> bytes:
    """Encode uint8 `pixels` (H, W, 3) or (H, W) in the format of `suffix`, one of `FORMATS`."""
    name, options = FORMATS[suffix]
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, name, **options)
    return buffer.getvalue()


class LosslessTree(TreeWriter):
    """Writer of `<variant>/<class>/<stem><suffix>`; the suffix determines the format."""

    suffix: ClassVar[str]

    def settings(self) -> dict[str, Any]:
        """Return the format."""
        return {"format": self.suffix[1:]}

    def output_name(self, key: str) -> str:
        """Return `key` with the suffix of the format."""
        return f"{without_suffix(key)}{self.suffix}"

    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return one file of uint8 `pixels` (H, W, 3)."""
        return [Encoded(self.output_name(key), encode_lossless(pixels, self.suffix))]


@dataclass(frozen=True)
class PngTree(LosslessTree):
    """Writer of PNG files; `grey` ones for images whose channels are equal."""

    suffix = ".png"
    grey: bool = False

    def settings(self) -> dict[str, Any]:
        """Return the format, and whether the files are grey."""
        return super().settings() | ({"grey": True} if self.grey else {})

    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return one file of uint8 `pixels` (H, W, 3)."""
        return super().encode(variant, key, keep_grey(pixels) if self.grey else pixels)


@dataclass(frozen=True)
class WebpTree(LosslessTree):
    """Writer of lossless WebP files."""

    suffix = ".webp"

    def versions(self) -> dict[str, str]:
        """Return the version of libwebp."""
        return {"libwebp": str(features.version("webp"))}
