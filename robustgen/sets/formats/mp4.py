"""MP4 files, one for each sequence, as in ImageNet-P."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.formats import Format
from robustgen.sets.formats.base import Encoded, Encoder, TreeWriter, WriterSpec, without_suffix


@dataclass(frozen=True)
class Mp4Encoder(Encoder):
    """Encoder of `<class>/<stem>.mp4`, one frame per second, H.264.

    Attributes
    ----------
    noises : frozenset of str
        The perturbations that are noise.
    encoding, noise_encoding : Encoding
        Encodings of smooth sequences, and of those with independent noise in each frame.
    """

    noises: frozenset[str] = frozenset()
    encoding: video.Encoding = field(default_factory=video.Encoding)
    noise_encoding: video.Encoding = field(default_factory=lambda: video.Encoding(crf=None, tune="grain"))

    def settings(self) -> dict[str, Any]:
        """Return the format and the encoder settings."""
        return {
            "format": "mp4",
            "video": vars(self.encoding),
            "noise_video": vars(self.noise_encoding),
            "large_video": {"above": video.LARGE, **video.BOUNDS},
        }

    def versions(self) -> dict[str, str]:
        """Return the versions of PyAV and of its encoder."""
        return {"video": video.build()}

    def output_name(self, key: str) -> str:
        """Return `key` with the suffix ``.mp4``."""
        return f"{without_suffix(key)}.mp4"

    def encode(self, variant: Variant, key: str, pixels: Iterable[Rgb]) -> list[Encoded]:
        """Encode uint8 frames (H, W, 3); decode them again to count them and to compute their digest."""
        data, count = self._encode(variant, pixels)
        return [Encoded(self.output_name(key), data, video.digest_video(data, count))]

    def as_read(self, variant: Variant, key: str, pixels: Rgb) -> Rgb:
        """Return the frames of the video, uint8 (T, H, W, 3)."""
        data, count = self._encode(variant, pixels)
        frames = video.read_frames(data)
        video.check_kept(len(frames), count)
        return frames

    def _encode(self, variant: Variant, frames: Iterable[Rgb]) -> tuple[bytes, int]:
        """Return the video and the number of frames encoded."""
        count = 0

        # Unlike a generator, `map` keeps no frame while the next one is computed.
        def pass_on(frame: Rgb) -> Rgb:
            nonlocal count
            count += 1
            return frame

        encoding = self.noise_encoding if variant.name in self.noises else self.encoding
        try:
            return video.encode_frames(map(pass_on, frames), encoding), count
        except ArgumentError as error:
            raise ImageError(str(error)) from error


def _open_writer(spec: WriterSpec) -> TreeWriter:
    return TreeWriter(Mp4Encoder(frozenset(spec.benchmark.noises), *spec.encodings()), spec.source)


MP4: Final = Format("MP4", {"p": _open_writer}, samples="p")
