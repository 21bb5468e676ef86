"""JPEG files, the format of the published sets."""

from dataclasses import dataclass
from typing import Any, Final

from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.jpeg import Libjpeg, Subsampling, decode_jpeg, encode_jpeg
from robustgen.sets.formats import Format
from robustgen.sets.formats.base import Encoded, Encoder, TreeWriter, WriterSpec, keep_grey

# Names with these suffixes are kept.
_SUFFIXES: Final = (".JPEG", ".jpeg", ".jpg", ".JPG")


@dataclass(frozen=True)
class JpegEncoder(Encoder):
    """Encoder of JPEG files, with Pillow's 4:2:0 and optimised Huffman tables.

    The published sets have `quality` 85 and use libjpeg-turbo. Files are `grey` if the channels of all
    images are equal. LAION-C has 4:4:4 and Pillow's default tables.
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
        return key if key.endswith(_SUFFIXES) else f"{key.rpartition('.')[0] or key}.JPEG"

    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return one JPEG file of uint8 `pixels` (H, W, 3)."""
        return [Encoded(self.output_name(key), self._encode(pixels, optimise=self.subsampling == "4:2:0"))]

    def as_read(self, variant: Variant, key: str, pixels: Rgb) -> Rgb:
        """Return the pixels of the JPEG file, uint8 (H, W, 3)."""
        # Optimised Huffman tables double the time and change no pixel.
        return decode_jpeg(self._encode(pixels, optimise=False))

    def _encode(self, pixels: Rgb, *, optimise: bool) -> bytes:
        return encode_jpeg(
            keep_grey(pixels) if self.grey else pixels,
            self.quality,
            optimise=optimise,
            library=self.libjpeg,
            subsampling=self.subsampling,
        )


def _open_writer(spec: WriterSpec) -> TreeWriter:
    return TreeWriter(JpegEncoder(spec.quality, spec.libjpeg, spec.grey, spec.subsampling), spec.source)


JPEG: Final = Format("JPEG", {"c": _open_writer}, samples="c")
