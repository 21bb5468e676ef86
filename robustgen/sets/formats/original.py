"""Files with the names and formats of the source, so that references to them stay valid."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from PIL import features

from robustgen.errors import ImageError
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.jpeg import Libjpeg
from robustgen.sets.formats import Format
from robustgen.sets.formats.base import Encoded, Encoder, TreeWriter
from robustgen.sets.formats.jpeg import JpegEncoder
from robustgen.sets.formats.lossless import FORMATS, LosslessEncoder


@dataclass(frozen=True)
class OriginalEncoder(Encoder):
    """Encoder of files with the name and format of the source: JPEG of `quality`, other formats lossless."""

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
        """Return the encoder of the suffix of `key`."""
        suffix = PurePosixPath(key).suffix.lower()
        if suffix in (".jpg", ".jpeg", ".jpe"):
            return JpegEncoder(self.quality, self.libjpeg)
        if suffix in FORMATS:
            return LosslessEncoder(suffix)
        kind = f"{suffix[1:].upper()} files" if suffix else "files without a suffix"
        raise ImageError(f"{kind} cannot store the result; convert them to PNG first")


ORIGINAL: Final = Format(
    "as in the source",
    {"c": lambda spec: TreeWriter(OriginalEncoder(spec.quality, spec.libjpeg), spec.source)},
)
