"""The corruptions of Mini Kinetics-C and Mini SSV2-C: clips of moving pictures, and their video files.

Definitions: Yi, Yang, Li, Tan and Kot 2021, as the published generation code computes them. The editions
``"kinetics"`` and ``"ssv2"`` choose the constants.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from robustgen.pixels.benchmarks.corruptions import digital, noise, weather
from robustgen.pixels.benchmarks.corruptions.digital import Contrast, Saturate
from robustgen.pixels.benchmarks.corruptions.noise import ShotNoise
from robustgen.pixels.benchmarks.corruptions.weather import Brightness, Fog
from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.benchmarks.registry import CLIP_SETS, PERFORMANCE, Family, corruption
from robustgen.pixels.imaging import codecs
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.colour import Hsv, channel_means
from robustgen.pixels.imaging.frames import Clip, average_frames, change_rate, parse_rate
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.weather_effects import add_rain, draw_rain

VIDEO_C = Family(
    "video-c",
    "Mini Kinetics-C and Mini SSV2-C",
    "Chenyu Yi, Siyuan Yang, Haoliang Li, Yap-Peng Tan and Alex Kot: Benchmarking the Robustness of "
    "Spatial-Temporal Models Against Corruptions. Advances in Neural Information Processing Systems, "
    "Datasets and Benchmarks, 2021.",
    licence="Apache-2.0",
    edition="kinetics",
    measure=PERFORMANCE,
)
"""Twelve corruptions of clips, and two of H.264 that the published code has and its tables lack."""

# Only the constants of motion blur and of the frame rate differ.
_SAME: Mapping[str, int] = dict.fromkeys(CLIP_SETS, 224)
_of_clips = partial(corruption, family=VIDEO_C, random=False, over_time="whole")

# --- frame by frame -------------------------------------------------------------------------------

corruption("noise", ShotNoise, {224: (60, 25, 12, 5, 3), **_SAME}, family=VIDEO_C)(noise.shot_noise)


@dataclass(frozen=True)
class Rain:
    """One drop for each `area` of pixels, `length` rows long; then contrast times `factor`."""

    area: int = within(1, 1e6)
    length: int = within(2, 1000)
    factor: float = 1.0


@corruption(
    "weather",
    Rain,
    {224: ((770, 10, 0.8), (770, 30, 0.8), (770, 60, 0.7), (500, 60, 0.6), (400, 80, 0.5)), **_SAME},
    family=VIDEO_C,
    over_time="frame",
)
def rain(image: Rgb, parameters: Rain, rng: Rng) -> Rgb:
    """Draw slanted drops, and lower the contrast."""
    p = parameters
    return add_rain(image, draw_rain(image.shape[:2], p.area, p.length, rng), p.factor)


corruption(
    "digital",
    Contrast,
    {224: (0.5, 0.4, 0.3, 0.2, 0.1), **_SAME},
    family=VIDEO_C,
    random=False,
    shares=channel_means,
)(digital.contrast)

corruption("weather", Brightness, {224: (0.1, 0.2, 0.3, 0.4, 0.5), **_SAME}, family=VIDEO_C, random=False)(
    weather.brightness
)

corruption(
    "digital",
    Saturate,
    {224: ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)), **_SAME},
    family=VIDEO_C,
    # Severities 1 and 2 reduce the saturation, all others increase it.
    breaks=dict.fromkeys((224, *CLIP_SETS), (2,)),
    random=False,
    shares=Hsv,
)(digital.saturate)

# --- the whole clip -------------------------------------------------------------------------------

corruption(
    "weather", Fog, {224: ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)), **_SAME}, family=VIDEO_C
)(weather.fog)


@dataclass(frozen=True)
class FrameBlur:
    """Mean of 2 `reach` frames."""

    reach: int = within(1, 1000)


@_of_clips("blur", FrameBlur, {"kinetics": (3, 5, 7, 9, 11), "ssv2": (1, 2, 3, 4, 6)})
def motion_blur(clip: Clip, parameters: FrameBlur, rng: Rng) -> Clip:
    """Average neighbouring frames, half a frame early; the clip loses `reach` frames at each end."""
    return Clip(average_frames(clip, parameters.reach), clip.rate)


# --- the video file -------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameRate:
    """Frames `per_second`."""

    per_second: float = within(0.1, 1000)


@_of_clips("digital", FrameRate, {"kinetics": (20, 16, 12, 9, 6), "ssv2": (10, 8, 6, 4, 2)})
def frame_rate(clip: Clip, parameters: FrameRate, rng: Rng) -> Clip:
    """Leave out frames; a clip of a lower rate gets repeated ones."""
    wanted = parse_rate(parameters.per_second)
    publish = partial(codecs.compress_at_rate, clip, wanted)
    return Clip(change_rate(clip, clip, wanted), wanted, publish=publish)


@dataclass(frozen=True)
class RateFactor:
    """Constant rate `factor` of the encoder."""

    factor: int = within(0, 51)


@_of_clips("digital", RateFactor, {224: (23, 30, 37, 44, 51), **_SAME}, common=False)
def h264_crf(clip: Clip, parameters: RateFactor, rng: Rng) -> Clip:
    """Compress by H.264 with constant quality."""
    return codecs.compress(clip, "libx264", parameters.factor)


@_of_clips("digital", RateFactor, {224: (27, 33, 39, 45, 51), **_SAME})
def h265_crf(clip: Clip, parameters: RateFactor, rng: Rng) -> Clip:
    """Compress by H.265 with constant quality."""
    return codecs.compress(clip, "libx265", parameters.factor)


@dataclass(frozen=True)
class Bandwidth:
    """The clip's own bit rate is divided by `divisor`."""

    divisor: int = within(1, 10_000)


@_of_clips("digital", Bandwidth, {224: (2, 4, 8, 16, 32), **_SAME}, common=False)
def h264_abr(clip: Clip, parameters: Bandwidth, rng: Rng) -> Clip:
    """Compress by H.264 to a part of the clip's bit rate."""
    return codecs.squeeze(clip, "libx264", parameters.divisor)


@_of_clips("digital", Bandwidth, {224: (2, 4, 8, 16, 32), **_SAME})
def h265_abr(clip: Clip, parameters: Bandwidth, rng: Rng) -> Clip:
    """Compress by H.265 to a part of the clip's bit rate."""
    return codecs.squeeze(clip, "libx265", parameters.divisor)


@dataclass(frozen=True)
class BitError:
    """One byte in `every` is replaced."""

    every: int = within(1, 1e9)


@_of_clips("digital", BitError, {224: (100000, 50000, 30000, 20000, 10000), **_SAME})
def bit_error(clip: Clip, parameters: BitError, rng: Rng) -> Clip:
    """Replace bytes of the video's bit stream, at the same places on each run."""
    return codecs.damage_bytes(clip, parameters.every)


@dataclass(frozen=True)
class PacketLoss:
    """Share of lost datagrams in `percent`."""

    percent: float = within(0, 100)


@_of_clips("digital", PacketLoss, {224: (1, 2, 3, 4, 6), **_SAME}, random=True)
def packet_loss(clip: Clip, parameters: PacketLoss, rng: Rng) -> Clip:
    """Send the clip by H.264 over a link that loses datagrams."""
    return codecs.lose_packets(clip, parameters.percent, rng)


FAMILY = VIDEO_C
