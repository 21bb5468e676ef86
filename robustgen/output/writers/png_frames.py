"""PNG files, one for each frame of a sequence."""

from dataclasses import dataclass
from typing import Any

from robustgen.benchmark import Arm
from robustgen.imaging.pixels import Rgb
from robustgen.output.writers.base import Encoded, TreeWriter, without_suffix
from robustgen.output.writers.lossless import encode_lossless


@dataclass(frozen=True)
class PngFrames(TreeWriter):
    """`<perturbation>/<class>/<stem>/<frame>.png`, frames counted from 00, in order."""

    def settings(self) -> dict[str, Any]:
        """Format."""
        return {"format": "png"}

    def output_name(self, key: str) -> str:
        """`key` without its suffix: the folder of the frames."""
        return without_suffix(key)

    def encode(self, arm: Arm, key: str, pixels: Rgb) -> list[Encoded]:
        """One file for each of the uint8 frames (T, H, W, 3)."""
        folder, digits = self.output_name(key), len(str(len(pixels) - 1))
        return [
            Encoded(f"{folder}/{number:0{digits}d}.png", encode_lossless(frame, ".png"))
            for number, frame in enumerate(pixels)
        ]
