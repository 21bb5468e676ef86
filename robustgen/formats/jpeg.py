"""JPEG files, as the published sets have them."""

from dataclasses import dataclass
from typing import Any, Final

from robustgen.benchmark import Variant
from robustgen.formats.base import Encoded, TreeWriter, keep_grey
from robustgen.imaging.jpeg import Libjpeg, Subsampling, decode_jpeg, encode_jpeg
from robustgen.imaging.pixels import Rgb

# With these spellings a name stays as it is in the source.
_SUFFIXES: Final = (".JPEG", ".jpeg", ".jpg", ".JPG")


@dataclass(frozen=True)
class JpegTree(TreeWriter):
    """`<corruption>/<severity>/<class>/<name>`, JPEG, Pillow's 4:2:0 with optimised Huffman tables.

    `quality` is the published 85 and `libjpeg` libjpeg-turbo, unless the config says otherwise. Files are
    `grey` if the channels of all images are the same. LAION-C has 4:4:4 and Pillow's usual tables.
    """

    quality: int = 85
    libjpeg: Libjpeg = "turbo"
    grey: bool = False
    subsampling: Subsampling = "4:2:0"

    def settings(self) -> dict[str, Any]:
        """Return format, quality and library; that files are grey, or the subsampling, if not as usual."""
        own = {"format": "jpeg", "quality": self.quality, "libjpeg": self.libjpeg}
        colours = {} if self.subsampling == "4:2:0" else {"subsampling": self.subsampling}
        return own | ({"grey": True} if self.grey else {}) | colours

    def output_name(self, key: str) -> str:
        """Return `key` itself, ending in a name for JPEG."""
        return key if key.endswith(_SUFFIXES) else f"{key.rpartition('.')[0] or key}.JPEG"

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
        return decode_jpeg(self.encode(variant, key, pixels)[0].data)
