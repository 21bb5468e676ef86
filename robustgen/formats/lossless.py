"""PNG and lossless WebP files, and the lossless formats that Pillow can write."""

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
"""Suffix to Pillow's name of the format and how to write it without loss."""


def encode_lossless(pixels: Rgb, suffix: str) -> bytes:
    """Return the file of uint8 `pixels` (H, W, 3) or (H, W) in the format of `suffix`, one of `FORMATS`."""
    name, options = FORMATS[suffix]
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, name, **options)
    return buffer.getvalue()


class LosslessTree(TreeWriter):
    """`<variant>/<class>/<stem><suffix>`; the suffix tells the format."""

    suffix: ClassVar[str]

    def settings(self) -> dict[str, Any]:
        """Format."""
        return {"format": self.suffix[1:]}

    def output_name(self, key: str) -> str:
        """Return `key` with the suffix of the format instead of its own."""
        return f"{without_suffix(key)}{self.suffix}"

    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return one file of uint8 `pixels` (H, W, 3)."""
        return [Encoded(self.output_name(key), encode_lossless(pixels, self.suffix))]


@dataclass(frozen=True)
class PngTree(LosslessTree):
    """PNG files; `grey` ones of images whose channels are the same."""

    suffix = ".png"
    grey: bool = False

    def settings(self) -> dict[str, Any]:
        """Format, and whether the files are grey."""
        return super().settings() | ({"grey": True} if self.grey else {})

    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return one file of uint8 `pixels` (H, W, 3)."""
        return super().encode(variant, key, keep_grey(pixels) if self.grey else pixels)


@dataclass(frozen=True)
class WebpTree(LosslessTree):
    """WebP files without loss."""

    suffix = ".webp"

    def versions(self) -> dict[str, str]:
        """That of libwebp."""
        return {"libwebp": str(features.version("webp"))}
