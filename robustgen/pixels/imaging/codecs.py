"""Video encoders and lossy links: constant quality, little bandwidth, wrong bits, lost packets.

Each function returns a `Clip` with the video file that was written, whose decoder's frames are its frames.
Encoders and decoders run on one thread, because their results depend on the number of threads.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import count
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np

from robustgen.errors import ImageError, MissingDependencyError, raise_as
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.frames import USUAL_RATE, Clip, change_rate
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.video import (
    CONTAINERS,
    choose_arithmetic,
    choose_stream,
    convert_picture,
    demux,
    digest_frames,
    import_av,
    open_converter,
    read_header,
    read_pictures,
    read_pixels,
)

Codec = Literal["libx264", "libx265"]

USUAL_FACTORS: Final[Mapping[Codec, int]] = MappingProxyType({"libx264": 23, "libx265": 28})
"""The encoders' own rate factors."""

FRAME_RATE: Final = f"libx265, rate factor {USUAL_FACTORS['libx265']}"
"""Compression of published clips at another frame rate."""

# Numbers of FFmpeg: matrices of RGB, of BT.601, by which pictures without one are read, and none; ranges.
_RGB, _UNSPECIFIED, _BT601 = 0, 2, 6
_LIMITED, _FULL = 1, 2
_X265_LEAST_WIDTH: Final = 50
"""Width below which x265 4.2 writes outside its memory."""

_DATAGRAM: Final = 1472
_GOOD_FACTOR: Final = 18


def _list_options(codec: Codec) -> dict[str, str]:
    """Return options for one thread, silence and the same bytes on each run."""
    if codec == "libx264":
        return {"x264-params": choose_arithmetic()}
    # Its information would name the instruction sets of the processor.
    return {"x265-params": "log-level=none:pools=1:frame-threads=1:info=0"}


@cache
def check_encoder(codec: Codec) -> None:
    """Raise a MissingDependencyError if PyAV was built without the encoder `codec`."""
    if codec not in import_av().codecs_available:
        raise MissingDependencyError(f"PyAV lacks {codec}: pip install --force-reinstall --only-binary av av")


@dataclass(frozen=True)
class DamagedVideo:
    """The frames of a damaged video file, as many as its decoder gives; decoded each time anew."""

    data: bytes

    def __iter__(self) -> Iterator[Rgb]:
        converter, given = open_converter(), 0
        for picture in _decode_damaged(self.data):
            given += 1
            yield read_pixels(picture, converter)
        if not given:
            raise ImageError("no frame of the damaged video can be decoded")


def _decode_damaged(data: bytes) -> Iterator[Any]:
    """Yield the pictures (av.VideoFrame) that the decoder conceals, and skip packets that it refuses."""
    av = import_av()
    with av.open(io.BytesIO(data), options={"format_whitelist": CONTAINERS}) as container:
        stream = choose_stream(container)
        # With threads, four runs gave four different clips.
        stream.thread_type, stream.codec_context.thread_count = "NONE", 1
        size = None
        for packet in container.demux(stream):
            try:
                pictures = packet.decode()
            except av.error.FFmpegError:
                continue
            for picture in pictures:
                size = size or (picture.width, picture.height)
                # Damaged headers may change the size.
                if (picture.width, picture.height) == size:
                    yield picture


def _list_pictures(clip: Clip) -> Iterator[Any]:
    """Yield the pictures of a clip with even sides: its decoder's own, or in yuv420p."""
    av = import_av()
    if not clip.data:
        converter = open_converter()
        for frame in clip:
            even = np.ascontiguousarray(frame[: len(frame) // 2 * 2, : frame.shape[1] // 2 * 2])
            picture = av.VideoFrame.from_ndarray(even, format="rgb24")
            yield convert_picture(converter, picture, "yuv420p")
        return
    graph = None
    for picture in read_pictures(clip.data, "video"):
        if picture.width % 2 or picture.height % 2:
            graph = graph or _open_crop(picture)
            graph.push(picture)
            picture = graph.pull()
        picture.pict_type = 0
        yield picture


def _open_crop(picture: Any) -> Any:
    """Return a filter that cuts off an odd last row and column."""
    graph = import_av().filter.Graph()
    source = graph.add_buffer(
        width=picture.width, height=picture.height, format=picture.format, time_base=Fraction(1, 25)
    )
    crop = graph.add("crop", r"iw-mod(iw\,2):ih-mod(ih\,2)")
    sink = graph.add("buffersink")
    source.link_to(crop)
    crop.link_to(sink)
    graph.configure()
    return graph


def _choose_format(picture: Any, codec: Codec) -> str:
    """Return the pixel format of a picture if the encoder has it, else yuv420p."""
    known = {each.name for each in import_av().codec.Codec(codec, "w").video_formats}
    name: str = picture.format.name
    # Files with an alpha channel could not be written.
    return name if name in known and not name.startswith("yuva") else "yuv420p"


def _name_colours(picture: Any, form: str) -> tuple[int, int]:
    """Return the numbers of the matrix and the range of a picture in the pixel format `form`.

    Where the picture names none, these are the ones by which it is read.
    """
    name = picture.format.name
    if picture.format.is_rgb:
        return (_RGB, _FULL) if form == name else (_BT601, _LIMITED)
    matrix = _BT601 if picture.colorspace in (_RGB, _UNSPECIFIED) else picture.colorspace
    return matrix, picture.color_range or (_FULL if name.startswith(("yuvj", "gray")) else _LIMITED)


def _encode(
    pictures: Iterable[Any], rate: Fraction, codec: Codec, options: Mapping[str, str], form: str = "mp4"
) -> tuple[bytes, list[bytes]]:
    """Return the file of the container `form` and its packets."""
    av = import_av()
    check_encoder(codec)
    file, packets, numbers, stream = io.BytesIO(), list[Any](), count(), None
    matrix, extent, converter = _BT601, _LIMITED, open_converter()
    flags = {"fflags": "+bitexact"} if form == "mp4" else {}
    # An OSError would look like a failure of the output.
    refused = raise_as(ImageError, f"{codec} failed", av.FFmpegError)
    with refused, av.open(file, "w", format=form, options=flags) as container:
        for picture in pictures:
            if stream is None:
                if codec == "libx265" and picture.width < _X265_LEAST_WIDTH:
                    raise ImageError(f"libx265 needs a width of {_X265_LEAST_WIDTH}, not {picture.width}")
                stream = container.add_stream(codec, rate=rate, options={**_list_options(codec), **options})
                stream.width, stream.height = picture.width, picture.height
                stream.pix_fmt = _choose_format(picture, codec)
                matrix, extent = _name_colours(picture, stream.pix_fmt)
                stream.codec_context.colorspace, stream.codec_context.color_range = matrix, extent
                # Otherwise, older PyAV sets a bit rate that replaces the rate factor.
                stream.bit_rate = int(options.get("b", 0))
            picture.pts, picture.time_base = next(numbers), 1 / rate
            if picture.format.name != stream.pix_fmt:
                picture = convert_picture(
                    converter, picture, stream.pix_fmt, dst_colorspace=matrix, dst_color_range=extent
                )
            picture.colorspace, picture.color_range = matrix, extent
            packets += stream.encode(picture)
        if stream is None:
            raise ImageError("contains no frames")
        packets += stream.encode(None)
        # For fewer than four frames, x265 leaves these times undefined.
        late = max(number - packet.pts for number, packet in enumerate(packets))
        for number, packet in enumerate(packets):
            packet.dts = number - late
        contents = [bytes(packet) for packet in packets]
        for packet in packets:
            container.mux(packet)
    return file.getvalue(), contents


def _open_whole(data: bytes, rate: Fraction, notes: Mapping[str, Any] | None = None) -> Clip:
    return Clip(DamagedVideo(data), rate, data, notes=notes or {})


def open_damaged(data: bytes) -> Clip:
    """Return the clip in a video file, with as many frames as can be decoded."""
    *_, rate, _ = read_header(data, "video")
    return _open_whole(data, rate)


@cache
def build() -> str:
    """Return the versions that determine the results, as the encoders write them into their files."""
    encoders = [video.build()]
    if "libx265" in import_av().codecs_available:
        black = _list_pictures(Clip(np.zeros((1, 64, 64, 3), np.uint8)))
        data, _ = _encode(black, USUAL_RATE, "libx265", {"x265-params": "log-level=none:pools=1"})
        found = re.search(rb"x265 \(build \d+\) - ([\w.+-]+)", data)
        encoders.append(f"x265 {found[1].decode() if found else 'unknown'}")
    return ", ".join(encoders)


def digest_clip(clip: Clip) -> str:
    """Return the digest of the frames of a clip with a file, as `frames_digest` of the stacked frames."""
    return digest_frames(clip, sum(1 for _ in clip))


# --- the corruptions ------------------------------------------------------------------------------


def compress(clip: Clip, codec: Codec, factor: int) -> Clip:
    """Return the clip after encoding at a constant rate `factor`."""
    made = _compress(_list_pictures(clip), clip.rate, codec, factor)
    return replace(made, names=clip.names)


def _compress(pictures: Iterable[Any], rate: Fraction, codec: Codec, factor: int) -> Clip:
    data, _ = _encode(pictures, rate, codec, {"crf": str(factor)})
    return _open_whole(data, rate, {"codec": codec, "rate_factor": factor})


def compress_at_rate(clip: Clip, rate: Fraction) -> Clip:
    """Return the clip at another frame rate, encoded by libx265 at its own rate factor."""
    pictures = change_rate(clip, _list_pictures(clip), rate)
    return _compress(pictures, rate, "libx265", USUAL_FACTORS["libx265"])


def squeeze(clip: Clip, codec: Codec, divisor: int) -> Clip:
    """Return the clip after encoding at its own average bit rate divided by `divisor`.

    The rate of a clip without a file is that of libx264 at a rate factor of 18.
    """
    source, measured = _measure_rate(clip)
    bits = int(source / divisor)
    options = dict.fromkeys(("b", "maxrate", "bufsize"), str(bits))
    data, _ = _encode(_list_pictures(clip), clip.rate, codec, options)
    notes = {"codec": codec, "bit_rate": bits, "source_bit_rate": round(source), **measured}
    return replace(_open_whole(data, clip.rate, notes), names=clip.names)


def _measure_rate(clip: Clip) -> tuple[float, dict[str, Any]]:
    """Return the bits per second of the file of a clip, and notes on the encoding that gave them."""
    if clip.data:
        with import_av().open(io.BytesIO(clip.data)) as container:
            if container.bit_rate:
                return float(container.bit_rate), {}
    good, packets = _encode(_list_pictures(clip), clip.rate, "libx264", {"crf": str(_GOOD_FACTOR)})
    return float(len(good) * 8 * clip.rate / len(packets)), _name_first(_GOOD_FACTOR)


def _name_first(factor: int) -> dict[str, Any]:
    """Return the notes on the encoding of a clip that has no file."""
    return {"first_codec": "libx264", "first_rate_factor": factor}


def flip_bytes(data: bytes, every: int, state: int = 0) -> tuple[bytes, int]:
    """Replace about one byte in `every` of `data` like FFmpeg's filter ``noise``; also return its state.

    Parameters
    ----------
    data : bytes
        One packet.
    every : int
    state : int
        State after the packets before it, 0 to 2 ** 32 - 1.
    """
    values = np.frombuffer(data, np.uint8).astype(np.uint64)
    states = (np.cumsum(values + np.uint64(1)) + np.uint64(state)) & np.uint64(0xFFFFFFFF)
    hits = states % np.uint64(every) == 0
    values[hits] = states[hits] & np.uint64(255)
    return values.astype(np.uint8).tobytes(), int(states[-1]) if len(states) else state


def damage_bytes(clip: Clip, every: int) -> Clip:
    """Return the clip with about one byte in `every` of its bit stream replaced.

    A clip without a file, or whose codec MP4 cannot store, is first encoded by libx264.
    """
    if clip.data:
        try:
            return _open_whole(*_copy_damaged(clip.data, clip.rate, every))
        except (ValueError, import_av().FFmpegError):
            pass
    factor = USUAL_FACTORS["libx264"]
    first = compress(clip, "libx264", factor)
    made = _open_whole(*_copy_damaged(first.data, clip.rate, every))
    return replace(made, notes={**made.notes, **_name_first(factor)})


def _copy_damaged(data: bytes, rate: Fraction, every: int) -> tuple[bytes, Fraction, dict[str, Any]]:
    """Return the file with replaced bytes, its frame rate, and notes on the number of these bytes."""
    av, file, state, changed, total = import_av(), io.BytesIO(), 0, 0, 0
    with (
        av.open(io.BytesIO(data)) as source,
        av.open(file, "w", format="mp4", options={"fflags": "+bitexact"}) as target,
    ):
        stream = choose_stream(source)
        copy = target.add_stream_from_template(stream)
        _tag_container(copy, stream)
        for packet in demux(source, stream):
            if packet.dts is None and packet.size == 0:
                continue
            own = bytes(packet)
            damaged, state = flip_bytes(own, every, state)
            changed += count_changed(own, damaged)
            total += len(own)
            target.mux(_replace_packet(packet, damaged, copy))
    return file.getvalue(), rate, {"changed_bytes": changed, "bytes": total}


def _tag_container(copy: Any, stream: Any) -> None:
    """Name the colours in the container, as some codecs, such as FFV1, do not name them in their streams."""
    given, made = stream.codec_context, copy.codec_context
    if given.colorspace == _UNSPECIFIED and not given.color_range:
        return
    made.colorspace = _BT601 if given.colorspace == _UNSPECIFIED else given.colorspace
    # MP4 stores matrix and range beside primaries and transfer only.
    usual = made.colorspace if made.colorspace in (1, 9) else _BT601
    made.color_primaries = usual if given.color_primaries == _UNSPECIFIED else given.color_primaries
    made.color_trc = min(usual, _BT601) if given.color_trc == _UNSPECIFIED else given.color_trc
    made.color_range = given.color_range or _LIMITED


def count_changed(before: bytes, after: bytes) -> int:
    """Return the number of bytes that differ between two texts of one length."""
    return int(np.count_nonzero(np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)))


def _replace_packet(packet: Any, data: bytes, stream: Any) -> Any:
    """Return a packet of `stream` with other bytes, and the times of `packet`."""
    made = import_av().Packet(data)
    made.pts, made.dts, made.time_base = packet.pts, packet.dts, packet.time_base
    made.duration, made.is_keyframe, made.stream = packet.duration, packet.is_keyframe, stream
    return made


def cut_datagrams(packets: Iterable[bytes]) -> list[bytes]:
    """Return the datagrams in which FFmpeg sends the packets of an Annex B stream."""
    return [
        packet[start : start + _DATAGRAM] for packet in packets for start in range(0, len(packet), _DATAGRAM)
    ]


def drop_datagrams(pieces: Sequence[bytes], share: float, rng: Rng) -> list[bytes]:
    """Return the datagrams that arrive if each is lost with chance `share`.

    The first datagram always arrives, because nothing can be decoded without it.
    """
    kept = [rng.uniform(0, 1) >= share for _ in pieces]
    return [piece for number, piece in enumerate(pieces) if kept[number] or not number]


def lose_packets(clip: Clip, percent: float, rng: Rng) -> Clip:
    """Return the clip after two encodings by libx264 and a link that loses `percent` of its datagrams."""
    factor = USUAL_FACTORS["libx264"]
    once = compress(clip, "libx264", factor)
    _, packets = _encode(_list_pictures(once), clip.rate, "libx264", {"crf": str(factor)}, "h264")
    sent = cut_datagrams(packets)
    arrived = drop_datagrams(sent, percent / 100, rng)
    notes = {"datagrams": len(sent), "lost_datagrams": len(sent) - len(arrived), **_name_first(factor)}
    return _open_whole(_wrap(b"".join(arrived), clip.rate), clip.rate, notes)


def _wrap(stream: bytes, rate: Fraction) -> bytes:
    """Return an MP4 file with the packets of an Annex B stream."""
    av, file = import_av(), io.BytesIO()
    with (
        av.open(io.BytesIO(stream), format="h264", options={"framerate": str(rate)}) as source,
        av.open(file, "w", format="mp4", options={"fflags": "+bitexact"}) as target,
    ):
        copy = target.add_stream_from_template(source.streams.video[0])
        number = 0
        for packet in source.demux(video=0):
            if packet.size:
                packet.pts = packet.dts = number
                packet.duration, packet.time_base, packet.stream = 1, 1 / rate, copy
                target.mux(packet)
                number += 1
    return file.getvalue()
