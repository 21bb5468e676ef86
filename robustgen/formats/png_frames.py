"""PNG files, one per frame of a sequence."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from robustgen.benchmark import Variant
from robustgen.formats.base import Encoded, FrameWriter, without_suffix
from robustgen.formats.lossless import encode_lossless
from robustgen.imaging.pixels import Rgb


@dataclass(frozen=True)
class PngFrames(FrameWriter):
    """Writer of `<perturbation>/<class>/<stem>/<frame>.png`, frames numbered from 00."""

    def settings(self) -> dict[str, Any]:
        """Return the format."""
        return {"format": "png"}

    def output_name(self, key: str) -> str:
        """Return `key` without its suffix: the folder of the frames."""
        return without_suffix(key)

    def encode_frames(self, variant: Variant, key: str, frames: Iterable[Rgb]) -> Iterator[Encoded]:
        """Yield one file per uint8 frame (H, W, 3)."""
        folder = self.output_name(key)
        for number, frame in enumerate(frames):
            yield Encoded(f"{folder}/{number:02d}.png", encode_lossless(frame, ".png"))
