"""Encoders of videos as MP4, sequences and clips, and of files with the formats of the source."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from robustgen.errors import ArgumentError, ConfigError, ImageError
from robustgen.pixels.benchmarks.kinds import IMAGENET_C, IMAGENET_P, Variant
from robustgen.pixels.imaging import codecs, video
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.frames import Clip
from robustgen.sets.formats import Format
from robustgen.sets.formats.base import Encoded, Encoder, EncoderChoices, without_suffix
from robustgen.sets.formats.encoders import ClipFramesEncoder, OriginalEncoder
from robustgen.sets.formats.trees import TreeWriter
from robustgen.sets.sources.trees import is_video, without_video_suffix

LOSSLESS_CLIP: Final = video.Encoding(preset="fast", crf=0, pixel_format="rgb24")
"""Encoding of clips that keeps every value."""


def _choose_encodings(own: EncoderChoices) -> tuple[video.Encoding, video.Encoding]:
    """Return the encodings of smooth sequences and of noise."""
    usual, choice = (video.Encoding(), video.Encoding(crf=None, tune="grain")), own.video
    if choice is None:
        return usual
    if own.side % 2 and (choice.playable or choice.pixel_format == "yuv420p"):
        raise ConfigError(f"video: yuv420p needs even sides, not {own.side} x {own.side} pixels")
    changes = {name: getattr(choice, name) for name in ("pixel_format", "preset", "crf")}
    changes = {name: value for name, value in changes.items() if value is not None}
    smooth, noise = (replace(encoding, **changes) for encoding in usual)
    if choice.lossless:
        smooth, noise = smooth.lossless(), noise.lossless()
    return (smooth.playable(), noise.playable()) if choice.playable else (smooth, noise)


def open_clip_video(own: EncoderChoices) -> "ClipVideoEncoder":
    """Return the encoder of clips as videos, lossless by default."""
    choice = own.video
    if choice is None or choice == type(choice)():
        return ClipVideoEncoder()
    smooth, noise = _choose_encodings(own)
    if choice.lossless and not choice.playable and choice.pixel_format == "yuv444p":
        # Only RGB is exact.
        smooth = noise = replace(LOSSLESS_CLIP, preset=choice.preset or LOSSLESS_CLIP.preset)
    return ClipVideoEncoder(smooth, noise, not choice.lossless)


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

    is_slow: ClassVar[bool] = True

    noises: frozenset[str] = frozenset()
    encoding: video.Encoding = field(default_factory=video.Encoding)
    noise_encoding: video.Encoding = field(default_factory=lambda: video.Encoding(crf=None, tune="grain"))

    def with_preset(self, preset: str) -> "Mp4Encoder":
        """Return this encoder with another preset of x264."""
        encodings = (replace(each, preset=preset) for each in (self.encoding, self.noise_encoding))
        return Mp4Encoder(self.noises, *encodings)

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
        data, count = _encode_frames(pixels, self._choose(variant))
        return [Encoded(self.output_name(key), data, video.digest_video(data, count))]

    def as_read(self, variant: Variant, key: str, pixels: Rgb) -> Rgb:
        """Return the frames of the video, uint8 (T, H, W, 3)."""
        return _round_trip(pixels, self._choose(variant))

    def _choose(self, variant: Variant) -> video.Encoding:
        return self.noise_encoding if variant.name in self.noises else self.encoding


def _encode_frames(frames: Iterable[Rgb], encoding: video.Encoding) -> tuple[bytes, int]:
    """Return the video and the number of frames encoded."""
    count = 0

    # Unlike a generator, `map` keeps no frame while the next one is computed.
    def pass_on(frame: Rgb) -> Rgb:
        nonlocal count
        count += 1
        return frame

    try:
        return video.encode(map(pass_on, frames), encoding), count
    except ArgumentError as error:
        raise ImageError(str(error)) from error


def _round_trip(frames: Iterable[Rgb], encoding: video.Encoding) -> Rgb:
    """Return the frames that are read back from their video, uint8 (T, H, W, 3)."""
    data, count = _encode_frames(frames, encoding)
    kept = video.read_frames(data)
    video.check_kept(len(kept), count)
    return kept


@dataclass(frozen=True)
class ClipVideoEncoder(Encoder):
    """Encoder of `<class>/<clip>.mp4` at the clip's frame rate.

    The files that a corruption's own encoder wrote are kept.

    Attributes
    ----------
    encoding, noise_encoding : Encoding
        Encodings of all clips, and of those with independent noise in each frame.
    is_published : bool
        Whether a corruption that was published with the loss of an encoder has it here too.
    """

    is_slow: ClassVar[bool] = True

    encoding: video.Encoding = LOSSLESS_CLIP
    noise_encoding: video.Encoding = LOSSLESS_CLIP
    is_published: bool = True

    def settings(self) -> dict[str, Any]:
        """Return the format and the encoder settings."""
        smooth, noise = map(vars, (self.encoding, self.noise_encoding))
        return {
            "format": "mp4",
            "video": smooth,
            "noise_video": noise,
            "large_video": {"above": video.LARGE, **video.BOUNDS},
            "frame_rate": codecs.FRAME_RATE if self.is_published else "lossless",
        }

    def versions(self) -> dict[str, str]:
        """Return the versions of PyAV and of its encoders."""
        return {"video": codecs.build()}

    def output_name(self, key: str) -> str:
        """Return the key of the clip with the suffix ``.mp4``."""
        return f"{without_video_suffix(key)}.mp4"

    def encode(self, variant: Variant, key: str, pixels: Any) -> list[Encoded]:
        """Encode a `Clip`; decode it again to count its frames and to compute their digest."""
        clip = self._publish(pixels)
        if clip.data:
            return [Encoded(self.output_name(key), clip.data, codecs.digest_clip(clip))]
        data, count = _encode_frames(clip, self._choose(variant, clip))
        return [Encoded(self.output_name(key), data, video.digest_video(data, count))]

    def as_read(self, variant: Variant, key: str, pixels: Any) -> Rgb:
        """Return the frames of the video, uint8 (T, H, W, 3)."""
        clip = self._publish(pixels)
        encoding = self._choose(variant, clip)
        if clip.data or replace(encoding, fps=LOSSLESS_CLIP.fps) == LOSSLESS_CLIP:
            return clip.stack()
        return _round_trip(clip, encoding)

    def _publish(self, clip: Clip) -> Clip:
        return clip.publish() if clip.publish and self.is_published else clip

    def _choose(self, variant: Variant, clip: Clip) -> video.Encoding:
        is_noise = variant.name.rpartition(":")[2] in IMAGENET_C.categories["noise"]
        return replace(self.noise_encoding if is_noise else self.encoding, fps=clip.rate)


@dataclass(frozen=True)
class OriginalClipEncoder(Encoder):
    """Encoder of frames with the names and formats of the source's frames, and of videos with their names.

    The content of a video is MP4, as FFmpeg and so nearly all readers look at the content, not at the name.

    Attributes
    ----------
    encoder : OriginalEncoder
        Encodes each frame.
    video_encoder : ClipVideoEncoder
        Encodes videos.
    """

    encoder: OriginalEncoder
    video_encoder: ClipVideoEncoder

    def settings(self) -> dict[str, Any]:
        """Return the settings of frames and of videos."""
        return self.encoder.settings() | {"videos": self.video_encoder.settings()}

    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries of both."""
        return self.encoder.versions() | self.video_encoder.versions()

    def output_name(self, key: str) -> str:
        """Return the folder of the frames, or the name of the video: `key`."""
        return key

    def encode(self, variant: Variant, key: str, pixels: Any) -> Iterable[Encoded]:
        """Return the files of the frames of a `Clip`, or its video."""
        files = self._choose(key, pixels).encode(variant, key, pixels)
        return (file._replace(name=key) for file in files) if is_video(key) else files

    def as_read(self, variant: Variant, key: str, pixels: Any) -> Rgb:
        """Return the frames read back, uint8 (T, H, W, 3)."""
        return self._choose(key, pixels).as_read(variant, key, pixels)

    def _choose(self, key: str, clip: Any) -> Encoder:
        if is_video(key) and clip.names:
            raise ImageError("this folder of frames is called like a video; rename it")
        # Without names, frames are numbered: motion blur loses some.
        return self.video_encoder if is_video(key) else ClipFramesEncoder(self.encoder, ".png")


MP4: Final = Format(
    "MP4",
    {
        "p": lambda own: Mp4Encoder(frozenset(IMAGENET_P.noises), *_choose_encodings(own)),
        "clip": open_clip_video,
    },
    TreeWriter,
)
ORIGINAL: Final = Format(
    "as in the source",
    {
        "c": lambda own: OriginalEncoder(own.quality, own.libjpeg),
        "clip": lambda own: OriginalClipEncoder(
            OriginalEncoder(own.quality, own.libjpeg), open_clip_video(own)
        ),
    },
    TreeWriter,
)
