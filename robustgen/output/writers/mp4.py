"""MP4 files, one for each sequence, as ImageNet-P has them."""

from dataclasses import dataclass, field
from typing import Any

from robustgen.benchmark import Arm
from robustgen.errors import ArgumentError, ImageError
from robustgen.imaging import video
from robustgen.imaging.pixels import Rgb
from robustgen.output.writers.base import Encoded, TreeWriter, without_suffix


@dataclass(frozen=True)
class Mp4Tree(TreeWriter):
    """`<perturbation>/<class>/<stem>.mp4`, one frame per second, H.264.

    Attributes
    ----------
    encoding, noise_encoding : Encoding
        Of smooth sequences, and of those whose frames are noise of their own.
    noises : frozenset of str
        The perturbations that are noise.
    """

    encoding: video.Encoding = field(default_factory=video.Encoding)
    noise_encoding: video.Encoding = field(default_factory=lambda: video.Encoding(crf=None, tune="grain"))
    noises: frozenset[str] = frozenset()

    def settings(self) -> dict[str, Any]:
        """Format and encoder settings."""
        return {
            "format": "mp4",
            "video": vars(self.encoding),
            "noise_video": vars(self.noise_encoding),
        }

    def versions(self) -> dict[str, str]:
        """Those of PyAV and of the encoder in it."""
        return {"video": video.build()}

    def output_name(self, key: str) -> str:
        """`key` with the suffix ``.mp4`` instead of its own."""
        return f"{without_suffix(key)}.mp4"

    def encode(self, arm: Arm, key: str, pixels: Rgb) -> list[Encoded]:
        """Encode uint8 frames (T, H, W, 3), decode them again to count them, and take their digest."""
        data, frames = self._encode(arm, pixels)
        return [Encoded(self.output_name(key), data, video.frames_digest(frames))]

    def as_read(self, arm: Arm, key: str, pixels: Rgb) -> Rgb:
        """The frames of the video, uint8 (T, H, W, 3)."""
        return self._encode(arm, pixels)[1]

    def _encode(self, arm: Arm, pixels: Rgb) -> tuple[bytes, Rgb]:
        """The video and the frames that it shows, as many as were given."""
        try:
            data = video.encode(pixels, self.noise_encoding if arm.name in self.noises else self.encoding)
        except ArgumentError as error:
            raise ImageError(str(error)) from error
        frames = video.read_frames(data)
        if len(frames) != len(pixels):
            raise ImageError(f"the encoder kept {len(frames)} of {len(pixels)} frames")
        return data, frames
