"""PNG and lossless WebP files, and Pillow's other lossless formats."""

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final

from PIL import Image, features

from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.formats import Format
from robustgen.sets.formats.base import Encoded, Encoder, TreeWriter, keep_grey, without_suffix

FORMATS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = MappingProxyType(
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
    """Encode uint8 `pixels` (H, W, 3) or (H, W) in the format of `suffix`, one of `FORMATS`."""
    name, options = FORMATS[suffix]
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, name, **options)
    return buffer.getvalue()


class LosslessEncoder(Encoder):
    """Encoder of PNG files, lossless WebP files, or others.

    Parameters
    ----------
    suffix : str
        Suffix of the files, one of `FORMATS`.
    grey : bool
        Whether the channels of all images are equal, so that the files keep one.
    """

    def __init__(self, suffix: str, grey: bool = False) -> None:
        self.suffix, self.grey = suffix, grey

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
        "c": lambda spec: TreeWriter(LosslessEncoder(".png", spec.grey), spec.source),
        "p": lambda spec: TreeWriter(PngFramesEncoder(), spec.source),
    },
    samples="c",
)
WEBP: Final = Format(
    "lossless WebP", {"c": lambda spec: TreeWriter(LosslessEncoder(".webp"), spec.source)}, samples="c"
)
