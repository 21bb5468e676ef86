"""H.264 videos of ImageNet-P: encoding of frames to MP4 and decoding, in process.

The same frames give the same bytes on each run, in each process and on each processor: x264
runs on one thread, as its decisions depend on their number, with the same algorithms and exact
divisions everywhere, and without AVX-512, as that code reads uninitialised memory. Other releases
of x264 may write other bytes; use `frames_digest` to compare the decoded frames.
"""

import io
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from hashlib import sha256
from itertools import count
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import (
    ArgumentError,
    ImageError,
    MissingDependencyError,
    WriteError,
    explain_import,
    raise_as,
)
from robustgen.files.storage.host import read_regular
from robustgen.pixels.imaging.decode import complain, decode
from robustgen.pixels.imaging.frames import USUAL_RATE, Clip, peek
from robustgen.pixels.imaging.third_party import cv2

Frames = NDArray[np.uint8]

X264_PRESETS = (
    *("ultrafast", "superfast", "veryfast", "faster", "fast"),
    *("medium", "slow", "slower", "veryslow", "placebo"),
)
TUNES = ("film", "animation", "grain", "stillimage", "psnr", "ssim", "fastdecode", "zerolatency")
CODECS = {"yuv444p": "libx264", "yuv420p": "libx264", "rgb24": "libx264rgb"}

# OpenCV's number for AVX2, which its Python module does not export.
CPU_AVX2 = 11

LARGE = 1 << 21
"""Pixels of the largest frame encoded with the full preset; Full HD has 2 073 600."""

# x264 needs 13 bytes per pixel of each reference frame, 4 of each look-ahead frame, and some 50 for B-frames:
# 3.7 GB for 4000 x 3000 with veryslow. Without look-ahead, files would be three times as large.
BOUNDS = MappingProxyType({"ref": 1, "bframes": 0, "rc-lookahead": 1})
# Demuxers of playlists would open other files.
CONTAINERS = "mov,mp4,matroska,webm,avi,mpegts,mpeg,flv,asf,ogg"
# Identifiers of Matroska: the first element, the one with all frames, and, with its size, a checksum.
_EBML, _SEGMENT, _CRC32 = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67", b"\xbf\x84"
# Bytes with their bits in the other order.
_TURNED = bytes(int(f"{value:08b}"[::-1], 2) for value in range(256))
_NONE: Mapping[str, str] = MappingProxyType({})
_LOOK_AHEAD_NOWHERE = ("ultrafast", "superfast", "zerolatency")

# Pixel formats without chroma subsampling, eight bits per channel.
_WHOLE_COLOURS = ("yuv444p", "gbrp")

# From this release on, PyAV converts on as many threads as there are cores by default.
_CONVERTS_ON_THREADS = 17


@dataclass(frozen=True)
class Encoding:
    """Compression settings of a sequence. Default: those of ImageNet-P's temporal perturbations.

    Parameters
    ----------
    preset : str
        x264's preset, which trades time for size, one of `X264_PRESETS`.
    crf : float or None
        Constant rate factor, 0 (lossless) to 51; None for x264's default, 23.
    tune : str or None
        x264's tuning, one of `TUNES`. ImageNet-P's noises use ``crf=None, tune="grain"``.
    pixel_format : str
        ``"yuv444p"``; ``"yuv420p"``, which browsers play; or ``"rgb24"``, which keeps RGB (as gbrp).
    fps : int or Fraction
        Frames per second, 1 to 1000.
    """

    preset: str = "veryslow"
    crf: float | None = 20
    tune: str | None = None
    pixel_format: str = "yuv444p"
    fps: int | Fraction = 1

    def lossless(self) -> "Encoding":
        """Return this encoding at rate factor 0, lossless for the stored pixels.

        Rounding RGB to yuv444p changes a value by at most 2; only the pixel format ``"rgb24"`` is exact.
        """
        return replace(self, crf=0)

    def playable(self) -> "Encoding":
        """Return this encoding in yuv420p, which browsers play unless `crf` is 0."""
        return replace(self, pixel_format="yuv420p")


def encode(frames: Iterable[Frames], encoding: Encoding) -> bytes:
    """Encode `frames` as H.264, and return the bytes of the MP4 file.

    Parameters
    ----------
    frames : iterable of ndarray of uint8, shape (H, W, 3), or ndarray of shape (T, H, W, 3)
        RGB frames, consumed one by one; H and W must be even for yuv420p.
    encoding : Encoding
        How to compress them.

    Raises
    ------
    ArgumentError
        If frames of that size cannot be encoded.
    ImageError
        If the encoder fails.
    MissingDependencyError
        If PyAV was built without x264.
    """
    av = import_av()
    from av.codec.codec import UnknownCodecError

    first, frames = peek(frames)
    height, width, _ = first.shape
    del first
    _check_sides(height, width, encoding.pixel_format)
    with _make_room(height * width) as file:
        try:
            _write(file, height, width, frames, encoding)
            file.seek(0)
            return file.read()
        except UnknownCodecError as error:
            again = "pip install --force-reinstall --only-binary av av"
            raise MissingDependencyError(f"PyAV was built without libx264: {again}") from error
        except av.FFmpegError as error:
            raise ImageError(
                f"the H.264 encoder failed on frames of {(height, width, 3)}: {error.strerror}"
            ) from error
        except OSError as error:
            raise WriteError(f"{tempfile.gettempdir()}: {error.strerror or error}") from error


def read_sequence(path: str | PathLike[str]) -> Frames:
    """Read one sequence, or all the sequences of a CIFAR edition.

    Parameters
    ----------
    path : path
        An MP4 file, a folder of frames ``<number>.png``, or an ``.npy`` array of sequences.

    Returns
    -------
    ndarray of uint8, shape (T, H, W, 3)
        RGB frames in order; for an ``.npy``, its array, (N, T, H, W, 3), memory-mapped.

    Raises
    ------
    ImageError
        If the file is missing, damaged or no video; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> np.save("frames.npy", np.zeros((1, 4, 32, 32, 3), np.uint8))
    >>> robustgen.read_sequence("frames.npy").shape
    (1, 4, 32, 32, 3)
    """
    path = Path(path)
    if path.is_dir():
        return stack_frames(((str(each), _read_bytes(each)) for each in path.glob("*.png")), path)
    if path.suffix == ".npy":
        return _map_array(path)
    return read_frames(_read_bytes(path), str(path))


def read_frames(data: bytes, name: str = "video") -> Frames:
    """Return the frames, uint8 (T, H, W, 3) RGB, of a video file given as its bytes.

    Raises
    ------
    ImageError
        If the data are damaged or not a video; the message contains `name`.
    """
    return _stack(_decode_rgb(data, name), name)


MOST_FRAMES = 100_000
"""Frames of the longest clip."""

MOST_PIXELS = 1 << 26
"""Pixels of the largest frame of a clip."""


@dataclass(frozen=True)
class VideoFrames:
    """The frames of a video file, uint8 (H, W, 3) RGB, upright; decoded each time anew."""

    data: bytes
    name: str
    count: int

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Frames]:
        converter, shape = open_converter(), None
        with _name_clip(self.name):
            for picture in read_pictures(self.data, self.name):
                pixels = read_pixels(picture, converter)
                turned = np.ascontiguousarray(_turn(pixels, _read_matrix(picture)))
                if turned.shape != (shape := shape or turned.shape):
                    raise ImageError("frames differ in size")
                yield turned


@contextmanager
def _name_clip(name: str) -> Iterator[None]:
    """Name the key of a clip in its errors, once."""
    try:
        yield
    except ImageError as error:
        raise ImageError(error.reason.removeprefix(f"{name}: "), name) from error


_UPRIGHT = (1, 0, 0, 1)


def _read_matrix(picture: Any) -> tuple[int, ...]:
    """Return the signs a, b, c, d by which a player moves a pixel at x, y to a x + c y, b x + d y."""
    if (stored := picture.side_data.get("DISPLAYMATRIX")) is None:
        return _UPRIGHT
    a, b, _, c, d, *_ = np.frombuffer(bytes(stored), np.int32).tolist()
    upright = abs(a) + abs(d) >= abs(b) + abs(c)
    kept = (a, 0, 0, d) if upright else (0, b, c, 0)
    return tuple((each > 0) - (each < 0) for each in kept)


def _turn(pixels: Frames, matrix: tuple[int, ...]) -> Frames:
    """Return the pixels of a frame as a player shows them."""
    a, b, c, d = matrix
    if b or c:
        pixels = pixels.swapaxes(0, 1)
    return pixels[:: -1 if b + d < 0 else 1, :: -1 if a + c < 0 else 1]


def open_clip(data: bytes, name: str) -> Clip:
    """Return the clip in a video file given as its bytes, with its frame rate and without sound.

    All frames are kept. If their distances vary, the rate is the average, which is a complaint.

    Raises
    ------
    ImageError
        The file is no video, has more than `MOST_FRAMES` frames, or frames of more than `MOST_PIXELS` pixels.
    """
    with _name_clip(name):
        width, height, rate, times = read_header(data, name)
        if len(times) > MOST_FRAMES:
            raise ImageError(f"has {len(times)} frames, more than {MOST_FRAMES}; cut it into clips")
        if width * height > MOST_PIXELS:
            raise ImageError(f"frames of {width} x {height} pixels have more than {MOST_PIXELS}")
        if (first := next(read_pictures(data, name), None)) is None:
            raise ImageError("contains no frames")
        if len(data) < (whole := _find_end(data)):
            raise ImageError(f"not a complete video (has {len(data)} of its {whole} bytes)")
        _check_matroska(data)
    steps = np.diff(np.sort(np.array(times, float)))
    # Times in Matroska are whole milliseconds.
    if len(steps) and steps.max() - steps.min() > 0.0021 + 0.1 / rate:
        # Containers may name another rate than the average.
        rate = Fraction(1 / float(steps.mean())).limit_denominator(1001)
        complain(name, [f"the frame rate varies: all frames are kept, at {float(rate):.2f} a second"])
    # The encoder's file of a turned clip would have other frames.
    return Clip(VideoFrames(data, name, len(times)), rate, data if _read_matrix(first) == _UPRIGHT else b"")


def _find_end(data: bytes) -> int:
    """Return the bytes of a whole file as its first bytes tell them; 0 if unknown.

    FFmpeg reads a truncated file of these containers without complaint.
    """
    if data.startswith(b"RIFF"):
        # Streams have no size, or all bits set.
        return 8 + int.from_bytes(data[4:8], "little") % 0xFFFFFFFF
    for start, size in ((0, 188), (4, 192)):
        # MPEG-TS and M2TS consist of packets that begin alike.
        if data[start::size][:5] == b"G" * 5:
            return -(-len(data) // size) * size
    return _find_asf_end(data)


def _check_matroska(data: bytes) -> None:
    """Raise an ImageError if a Matroska or WebM file is truncated, or a checksum in it is wrong.

    FFmpeg writes a checksum into each part of a Matroska file, and compares none.
    """
    if not data.startswith(_EBML):
        return
    place, end = 0, len(data)
    while place < end:
        identifier, start, stop = _read_element(data, place)
        if stop is None and identifier != _SEGMENT:
            # Parts of live streams may have no size.
            return
        place, end = (start, stop or end) if identifier == _SEGMENT else (stop or end, end)
        if (whole := max(place, end)) > len(data):
            raise ImageError(f"not a complete video (has {len(data)} of its {whole} bytes)")
        if data[start : start + 2] == _CRC32 and stop:
            given = int.from_bytes(data[start + 2 : start + 6], "little")
            if zlib.crc32(memoryview(data)[start + 6 : stop]) != given:
                raise ImageError(f"not a complete video (damaged between bytes {start} and {stop})")


def _read_element(data: bytes, place: int) -> tuple[bytes, int, int | None]:
    """Return identifier of a Matroska element, and where its content begins and ends; None if unknown."""
    # The zeros before the first one of the bits tell how many bytes a number has.
    middle = place + 9 - data[place].bit_length()
    if middle >= len(data):
        raise ImageError("not a complete video (damaged at its end)")
    length = 9 - data[middle].bit_length()
    start, most = middle + length, (1 << 7 * length) - 1
    size = int.from_bytes(data[middle:start], "big") & most
    return data[place:middle], start, None if size == most else start + size


def _find_asf_end(data: bytes) -> int:
    """Return the bytes of a whole ASF or WMV file, which its header tells; 0 if unknown."""
    place = data.find(b"\xa1\xdc\xab\x8c\x47\xa9\xcf\x11\x8e\xe4\x00\xc0\x0c\x20\x53\x65", 0, 1 << 16)
    is_live = place < 0 or len(data) < place + 92 or data[place + 88] & 1
    known = data.startswith(b"\x30\x26\xb2\x75") and not is_live
    return int.from_bytes(data[place + 40 : place + 48], "little") if known else 0


def read_header(data: bytes, name: str) -> tuple[int, int, Fraction, list[float]]:
    """Return width, height, frames per second, and the times of all frames in seconds."""
    with _open_video(data, name) as (container, stream):
        rate = stream.average_rate or stream.guessed_rate or USUAL_RATE
        times, ends, unknown = list[float](), [0.0], False
        for packet in demux(container):
            if packet.size:
                start = float((packet.pts or 0) * packet.time_base)
                # Packets of FLV and ASF have no duration.
                ends.append(start + float((packet.duration or 0) * packet.time_base or 1 / rate))
                if packet.stream == stream:
                    times.append(start)
                    unknown |= packet.pts is None
        if unknown:
            # Several frames of MPEG-PS may share one packet's time.
            times = [number / float(rate) for number in range(len(times))]
        _check_end(container, max(ends), float(np.median(np.diff(sorted(times)) if times[1:] else 0)), name)
        return stream.width, stream.height, Fraction(rate), times


def _check_end(container: Any, end: float, step: float, name: str) -> None:
    """Raise an ImageError if a file ends, by a frame of `step` s, before the duration in its header."""
    form = container.format.name
    # The bytes of these tell where they end, and durations of ASF may be too long.
    if form in ("matroska,webm", "asf"):
        return
    # Durations have whole milliseconds, and sound may end elsewhere than its last packet.
    margin = 0.9 * step + 0.001 if len(container.streams) == len(container.streams.video) else 0.5
    start = 0 if form == "flv" else max(container.start_time or 0, 0)
    whole = ((container.duration or 0) + start) / 1e6
    if end < whole - margin:
        raise ImageError(f"{name}: not a complete video (ends after {end:.2f} of its {whole:.2f} seconds)")


def read_clip_size(data: bytes, name: str) -> tuple[int, int]:
    """Return width and height of the frames of a video file, from its header."""
    with _open_video(data, name) as (_, stream):
        return stream.width, stream.height


def frames_digest(frames: NDArray[Any]) -> str:
    """Return the hexadecimal SHA-256 of an array's type, shape and values."""
    digest = sha256(f"{frames.dtype.str} {frames.shape}".encode())
    digest.update(np.ascontiguousarray(frames).data)
    return digest.hexdigest()


def digest_video(data: bytes, count: int) -> str:
    """Return the `frames_digest` of the `count` frames of an MP4 file, decoded one at a time.

    Raises
    ------
    ImageError
        If the file decodes to another number of frames.
    """
    return digest_frames(_decode_rgb(data, "video"), count)


def digest_frames(frames: Iterable[Frames], count: int) -> str:
    """Return the `frames_digest` of `count` frames; raise an ImageError if there are more or fewer."""
    digest, kept = sha256(), 0
    for pixels in frames:
        if not kept:
            digest.update(f"{pixels.dtype.str} {(count, *pixels.shape)}".encode())
        digest.update(np.ascontiguousarray(pixels).data)
        kept += 1
    check_kept(kept, count)
    return digest.hexdigest()


def check_kept(kept: int, count: int) -> None:
    """Raise an ImageError if the encoder did not keep all frames."""
    if kept != count:
        raise ImageError(f"the encoder kept {kept} of {count} frames")


@cache
def import_av() -> Any:
    """Return the package PyAV; raise a MissingDependencyError without it."""
    with explain_import("videos need PyAV (make-p --format png does not)", "video"):
        import av
    return av


@cache
def build() -> str:
    """Return the versions that determine the bytes of a video, as x264 writes them into each file."""
    av = import_av()

    video = encode(np.zeros((1, 16, 16, 3), np.uint8), Encoding(preset="ultrafast"))
    x264 = re.search(rb"x264 - ([\w ]+) - ", video)
    return f"PyAV {av.__version__}, x264 {x264[1].decode() if x264 else 'unknown'}"


@cache
def _conversion() -> dict[str, Any]:
    """Return PyAV's settings for pixel conversion: flags, and one thread."""
    av = import_av()

    threads = {"threads": 1} if int(av.__version__.split(".")[0]) >= _CONVERTS_ON_THREADS else {}
    # Same as FFmpeg's command line; PyAV's default rounds the colours of yuv420p differently.
    return {"interpolation": "BICUBIC", **threads}


def open_converter() -> Any:
    """Return what converts pictures of one size between pixel formats (av.VideoReformatter)."""
    from av.video.reformatter import VideoReformatter

    return VideoReformatter()


def convert_picture(converter: Any, picture: Any, form: str, **colours: int) -> Any:
    """Return a picture (av.VideoFrame) in the pixel format `form`, the same on every run.

    `colours` are PyAV's matrix and range of the result, by default those of the picture.
    """
    return converter.reformat(picture, format=form, **colours, **_conversion())


def _make_room(pixels: int) -> IO[bytes]:
    """Return a file for a video: on disk for large frames, as noise needs 240 MB."""
    return tempfile.TemporaryFile() if pixels > LARGE else io.BytesIO()


def _check_sides(height: int, width: int, pixel_format: str) -> None:
    if pixel_format == "yuv420p" and (height % 2 or width % 2):
        raise ArgumentError(f"yuv420p needs even sides, not {height} x {width}")


def _write(file: IO[bytes], height: int, width: int, frames: Iterator[Frames], encoding: Encoding) -> None:
    av = import_av()
    # Bit-exact: the container does not contain the version of the library.
    with av.open(file, "w", format="mp4", options={"fflags": "+bitexact"}) as container:
        codec = CODECS[encoding.pixel_format]
        options = _options(encoding, height * width)
        stream = container.add_stream(codec, rate=encoding.fps, options=options)
        stream.height, stream.width = height, width
        stream.pix_fmt = encoding.pixel_format
        # Older PyAV sets a bit rate, which would replace x264's default rate factor.
        stream.bit_rate = 0
        # Shared by all frames, as setting it up dominates the conversion of small frames.
        converter = open_converter()
        numbers = count()
        # Unlike `enumerate`, this releases large frames once they are copied or converted.
        for frame in frames:
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
            del frame
            picture = convert_picture(converter, picture, encoding.pixel_format)
            picture.pts = next(numbers)
            container.mux(stream.encode(picture))
            del picture
        container.mux(stream.encode(None))


def bound_memory(encoding: Encoding, pixels: int) -> dict[str, int]:
    """Return options of x264 that limit its memory to 60 bytes per pixel for frames of `pixels` pixels.

    Empty for up to `LARGE` pixels.
    """
    if pixels <= LARGE:
        return {}
    known = {encoding.preset, encoding.tune}
    return {
        name: value
        for name, value in BOUNDS.items()
        # At most the preset's value.
        if name != "rc-lookahead" or known.isdisjoint(_LOOK_AHEAD_NOWHERE)
    }


def _options(encoding: Encoding, pixels: int) -> dict[str, str]:
    named = {"preset": encoding.preset, "tune": encoding.tune, "crf": encoding.crf}
    options = {name: str(value) for name, value in named.items() if value is not None}
    bounds = "".join(f":{name}={value}" for name, value in bound_memory(encoding, pixels).items())
    return options | {"x264-params": choose_arithmetic() + bounds}


def choose_arithmetic() -> str:
    """Return the settings of x264 that give the same bytes on every processor.

    By default, the macroblock tree multiplies by the processor's own approximations of reciprocals, whose
    last bits differ between makers, and some searches take shortcuts that depend on the instruction set.
    """
    # x264 does not check forced instruction sets, so AVX2 is set only if the processor has it.
    without_avx512 = ":asm=AVX2" if cv2.checkHardwareSupport(CPU_AVX2) else ""
    return "threads=1:cpu-independent=1" + without_avx512


def _read_bytes(path: Path) -> bytes:
    with raise_as(ImageError, str(path), OSError):
        return read_regular(path)


@contextmanager
def _open_video(data: bytes, name: str, options: Mapping[str, str] = _NONE) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the first video of a file; raise an ImageError at damage."""
    av = import_av()
    # Later releases of PyAV read damaged metadata without being told.
    lenient = {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < 19 else {}
    allowed, damage = {"format_whitelist": CONTAINERS, **options}, f"{name}: not a complete video"
    with (
        raise_as(ImageError, damage, av.FFmpegError),
        av.open(io.BytesIO(data), options=allowed, **lenient) as container,
    ):
        stream = choose_stream(container)
        if stream is None:
            raise ImageError(f"{name}: contains no video")
        if stream.codec_context is None:
            raise ImageError(f"{damage} (unknown codec)")
        yield container, stream


def choose_stream(container: Any) -> Any:
    """Return the first video of a container (av.InputContainer) that is no attached picture, or None."""
    covers = import_av().stream.Disposition.attached_pic
    return next((each for each in container.streams.video if not each.disposition & covers), None)


def read_pictures(data: bytes, name: str) -> Iterator[Any]:
    """Yield the frames (av.VideoFrame) of the first video of a file; raise an ImageError at damage."""
    with _open_video(data, name) as (container, stream):
        # By default, the decoder conceals damage by inventing pixels.
        stream.codec_context.options = {"err_detect": "crccheck+bitstream+buffer+explode"}
        stream.codec_context.thread_count = 1
        count, slices = 0, set[bool]()
        for packet in demux(container, stream):
            if stream.codec_context.name == "ffv1":
                slices.update(_check_slices(bytes(packet)))
            if packet.is_corrupt or len(slices) > 1:
                raise ImageError(f"{name}: not a complete video (damaged after frame {count})")
            for frame in packet.decode():
                if frame.is_corrupt:
                    raise ImageError(f"{name}: not a complete video (frame {count + 1} is damaged)")
                count += 1
                yield frame
        # AVI counts frames that repeat the one before, which have no packet.
        whole = 0 if container.format.name == "avi" else stream.frames
    # Frames that an edit list hides are there.
    if count < whole and (there := _count_packets(data, name, {"ignore_editlist": "1"})) < whole:
        raise ImageError(f"{name}: has {there} of its {whole} frames")


def _count_packets(data: bytes, name: str, options: Mapping[str, str]) -> int:
    """Return the number of frames in a file opened with `options`, without decoding them."""
    with _open_video(data, name, options) as (container, stream):
        return sum(1 for packet in demux(container, stream) if packet.size)


def demux(container: Any, *streams: Any) -> Iterator[Any]:
    """Yield the packets of a container (av.InputContainer), of all its streams or of some."""
    # PyAV asks streams that it has not known from the beginning for what is left in them.
    with suppress(IndexError):
        yield from container.demux(*streams)


def _check_slices(packet: bytes) -> Iterator[bool]:
    """Yield for each slice in a packet of FFV1 whether it ends in its checksum, which FFmpeg only logs.

    Other versions than 3 have none, or others, so that none of their slices does.
    """
    end = len(packet)
    while end >= 8:
        start = max(0, end - 8 - int.from_bytes(packet[end - 8 : end - 5], "big"))
        # Unlike those of zlib, its checksums begin at 0, and with the highest bit of each byte.
        yield zlib.crc32(packet[start:end].translate(_TURNED), 0xFFFFFFFF) == 0xFFFFFFFF
        end = start


def _decode_rgb(data: bytes, name: str) -> Iterator[Frames]:
    """Yield the frames, uint8 (H, W, 3) RGB, like `read_pictures`."""
    converter = open_converter()
    for frame in read_pictures(data, name):
        yield read_pixels(frame, converter)


def read_pixels(frame: Any, converter: Any) -> Frames:
    """Return the pixels, uint8 (H, W, 3) RGB, of a frame (av.VideoFrame)."""
    # Without chroma subsampling, reading planes gives the same values in half the time.
    planar = frame.format.name in _WHOLE_COLOURS
    converted = convert_picture(converter, frame, "gbrp" if planar else "rgb24")
    pixels: Frames = _merge_planes(converted) if planar else converted.to_ndarray()
    return pixels


def _merge_planes(frame: Any) -> Frames:
    """Return the pixels, uint8 (H, W, 3) RGB, of a frame (av.VideoFrame) with planes G, B and R."""
    green, blue, red = (
        np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
        for plane in frame.planes
    )
    return np.asarray(cv2.merge((red, green, blue)))


def _number(file: Path) -> int:
    if not file.stem.isdecimal():
        raise ImageError(f"{file}: a frame must be named <number>.png")
    return int(file.stem)


def stack_frames(files: Iterable[tuple[str, bytes]], path: object) -> Frames:
    """Return the frames (T, H, W, 3) of image files ``<number>.png``, in numerical order.

    Raises
    ------
    ImageError
        A file is damaged, sizes differ, or there are no files; the message names the file or `path`.
    """
    numbered = sorted((_number(Path(name)), name, data) for name, data in files)
    return _stack((decode(io.BytesIO(data), name) for _, name, data in numbered), path)


def _stack(frames: Iterable[Frames], path: object) -> Frames:
    frames = list(frames)
    if len({frame.shape for frame in frames}) != 1:
        raise ImageError(f"{path}: " + ("frames differ in size" if frames else "contains no frames"))
    return np.stack(frames)


def _map_array(path: Path) -> Frames:
    with raise_as(ImageError, str(path), OSError, ValueError):
        array: Frames = np.lib.format.open_memmap(path, mode="r")
    if array.dtype != np.uint8 or array.ndim != 5 or array.shape[4] != 3:
        raise ImageError(f"{path}: {array.dtype} {array.shape} is not uint8 (N, T, H, W, 3)")
    return array
