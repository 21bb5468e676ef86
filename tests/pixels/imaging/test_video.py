import dataclasses
import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter
from PIL import Image

from robustgen.errors import (
    ArgumentError,
    ImageError,
    MissingDependencyError,
    WriteError,
)
from robustgen.pixels.benchmarks.kinds import IMAGENET_P
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.video import Encoding, build, encode, frames_digest, read_sequence
from robustgen.sets.formats.videos import Mp4Encoder

FAST = Encoding(preset="ultrafast")


def waves(count, height, width):
    """Coloured waves that drift from frame to frame."""
    t, y, x, c = np.ogrid[:count, :height, :width, :3]
    return (127.5 + 120 * np.sin((x + 3 * t) / 17 + c) * np.cos((y - 2 * t) / (13 + c))).astype(np.uint8)


def noise(count, height, width):
    return np.random.default_rng(0).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


def decoded(data, pixel_format):
    with av.open(io.BytesIO(data)) as container:
        return np.stack([frame.to_ndarray(format=pixel_format) for frame in container.decode(video=0)])


def written(path, data):
    path.write_bytes(data)
    return path


# What is written


@pytest.mark.parametrize("encoding", [Encoding(), Encoding(fps=2)], ids=str)
def test_a_sequence_is_h264_stored_444_at_its_rate(encoding):
    with av.open(io.BytesIO(encode(waves(31, 32, 32), encoding))) as container:
        stream = container.streams.video[0]
        context, tick = stream.codec_context, stream.time_base * encoding.fps
        assert (context.name, context.profile) == ("h264", "High 4:4:4 Predictive")
        assert (context.pix_fmt, context.width, context.height) == ("yuv444p", 32, 32)
        assert (stream.frames, stream.average_rate, stream.duration * tick) == (31, encoding.fps, 31)
        packets = [packet for packet in container.demux(stream) if packet.size]
    assert sorted(packet.pts * tick for packet in packets) == list(range(31))
    assert {packet.duration * tick for packet in packets} == {1}


@pytest.mark.parametrize(
    ("encoding", "settings"),
    [
        (Encoding(), "subme=10 bframes=8 rc=crf crf=20.0 aq=1:1.00"),
        (Encoding(crf=None, tune="grain"), "subme=10 bframes=8 rc=crf crf=23.0 aq=1:0.50"),
        (Encoding(crf=17.5, preset="slow"), "subme=8 bframes=3 rc=crf crf=17.5"),
        (Encoding(preset="slow").lossless(), "subme=8 rc=cqp qp=0"),
        (Encoding(crf=None, tune="grain").playable(), "bframes=8 crf=23.0 aq=1:0.50"),
    ],
)
def test_x264_reports_the_settings_asked_for(encoding, settings):
    report = encode(waves(2, 16, 16), encoding).partition(b"options: ")[2].partition(b"\0")[0]
    assert {*settings.split(), "threads=1"} <= set(report.decode().split())


def test_colours_are_converted_as_bt601_of_limited_range():
    frames = noise(2, 24, 24)
    stored = decoded(encode(frames, Encoding(preset="fast").lossless()), "yuv444p")
    to_yuv = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112], [112, -93.786, -18.214]]) / 255
    expected = np.einsum("thwc,yc->tyhw", frames, to_yuv) + np.array([16, 128, 128])[:, None, None]
    assert np.abs(stored - expected).max() <= 1


@pytest.mark.parametrize(
    ("encoding", "stored", "frames", "most", "mean"),
    [
        # Colours are rounded.
        (FAST.lossless(), "yuv444p", noise(4, 40, 40), 2, 2),
        (Encoding("slow", pixel_format="rgb24").lossless(), "gbrp", noise(4, 40, 40), 0, 0),
        (Encoding(), "yuv444p", waves(5, 48, 48), 255, 3),
        (FAST.playable(), "yuv420p", waves(4, 32, 48), 255, 8),
    ],
)
def test_what_is_read_is_near_to_the_frames(encoding, stored, frames, most, mean):
    data = encode(frames, encoding)
    with av.open(io.BytesIO(data)) as container:
        assert container.streams.video[0].codec_context.pix_fmt == stored
    difference = np.abs(video.read_frames(data).astype(int) - frames)
    assert difference.max() <= most and difference.mean() <= mean


@pytest.mark.parametrize("size", [(299, 299), (37, 20), (20, 37), (1, 1)])
def test_444_takes_any_size(size, tmp_path):
    path = written(tmp_path / "x.mp4", encode(waves(2, *size), FAST))
    assert read_sequence(path).shape == (2, *size, 3)


def test_the_layout_in_memory_does_not_matter_and_frames_are_left_alone():
    frames = waves(3, 20, 24)
    frames.flags.writeable = False
    assert encode(np.asfortranarray(frames), FAST) == encode(frames, FAST)
    assert encode(frames[:, :, ::-1], FAST) == encode(frames[:, :, ::-1].copy(), FAST)


# Reproducibility

DIGEST = """
import hashlib, sys
import numpy as np
from robustgen.pixels.imaging.video import Encoding, encode
for name in sys.argv[1:]:
    for encoding in (Encoding(), Encoding(crf=None, tune="grain")):
        print(hashlib.sha256(encode(np.load(name), encoding)).hexdigest())
"""


def test_bytes_are_the_same_in_every_process(tmp_path):
    contents = {"waves.npy": waves(9, 64, 64), "noise.npy": noise(5, 33, 33)}
    for name, frames in contents.items():
        np.save(tmp_path / name, frames)
    here = [
        hashlib.sha256(encode(frames, encoding)).hexdigest()
        for frames in contents.values()
        for encoding in (Encoding(), Encoding(crf=None, tune="grain"))
    ]
    # glibc fills fresh and freed memory with another byte in each, which any uninitialised read would show.
    for seed in ("1", "170"):
        settings = os.environ | {"MALLOC_PERTURB_": seed, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo"}
        command = [sys.executable, "-c", DIGEST, *(str(tmp_path / name) for name in contents)]
        run = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
        assert run.stdout.split() == here


def test_a_video_put_together_on_the_disk_has_the_same_bytes(monkeypatch):
    """Those of large frames are: noise of 4000 x 3000 pixels takes 240 MB."""
    frames = noise(3, 64, 64)
    in_memory = encode(frames, FAST)
    with video._make_room(video.LARGE + 1) as room:
        assert not isinstance(room, io.BytesIO)
    monkeypatch.setattr(video, "_make_room", lambda pixels: tempfile.TemporaryFile())  # noqa: SIM115
    assert encode(frames, FAST) == in_memory


def test_a_full_disk_is_not_the_fault_of_the_image(monkeypatch):
    full = Path("/dev/full")
    monkeypatch.setattr(video, "_make_room", lambda pixels: full.open("r+b", buffering=0))
    with pytest.raises(WriteError, match=f"^{tempfile.gettempdir()}: No space left on device$"):
        encode(noise(3, 64, 64), FAST)


def test_no_frame_is_kept_while_the_next_one_is_made():
    """Of a large photograph each takes a twentieth of the memory there is to be."""
    made = []

    def make():
        assert not any(each() is not None for each in made)
        frame = noise(1, 32, 32).reshape(32, 32, 3)
        made.append(weakref.ref(frame))
        return frame

    [*Mp4Encoder().encode(IMAGENET_P.variant("tilt", 1), "a/b.JPEG", (make() for _ in range(4)))]
    assert len(made) == 4


def test_the_container_holds_no_time_and_no_version():
    data = encode(waves(2, 16, 16), FAST)
    assert b"Lavf" not in data
    for box in (b"mvhd", b"tkhd", b"mdhd"):
        start = data.index(box) + len(box) + 4
        assert data[start : start + 8] == bytes(8)


def test_only_a_processor_with_avx2_is_told_to_use_it(monkeypatch):
    assert cv2.getHardwareFeatureName(video.CPU_AVX2) == "AVX2"
    for there, more in ((True, ":asm=AVX2"), (False, "")):
        monkeypatch.setattr(video.cv2, "checkHardwareSupport", lambda feature, there=there: there)
        assert video._options(FAST, 1024)["x264-params"] == f"threads=1:cpu-independent=1{more}"


@pytest.mark.parametrize("preset", video.X264_PRESETS)
@pytest.mark.parametrize("tune", [None, "grain"])
def test_instruction_sets_do_not_change_a_byte(monkeypatch, preset, tune):
    frames, encoding = waves(6, 48, 48), Encoding(preset, tune=tune)
    as_it_is, arithmetic = encode(frames, encoding), video.choose_arithmetic()
    monkeypatch.setattr(video, "choose_arithmetic", lambda: f"{arithmetic}:asm=0")
    assert encode(frames, encoding) == as_it_is


@pytest.mark.parametrize(
    ("height", "preset", "expected"),
    [
        (1024, "medium", b"ref=3 bframes=3 rc_lookahead=40"),
        (1025, "medium", b"ref=1 bframes=0 rc_lookahead=1"),
    ],
)
def test_the_memory_for_large_frames_is_bounded_and_never_raised(height, preset, expected):
    # x264 writes what it was told into each video.
    data = encode(np.zeros((1, height, 2048, 3), np.uint8), Encoding(preset=preset))
    found = [re.search(rb"\b%s=\d+" % name, data) for name in (b"ref", b"bframes", b"rc_lookahead")]
    assert b" ".join(each[0] for each in found) == expected
    assert video.bound_memory(Encoding(preset="superfast"), 4000 * 3000) == {"ref": 1, "bframes": 0}


def test_build_names_pyav_and_x264():
    assert build().startswith(f"PyAV {av.__version__}, x264 core 1")
    assert build() is build()


# What is refused


@pytest.mark.parametrize("size", [(20, 21), (21, 20)])
def test_420_refuses_odd_sides(size):
    with pytest.raises(ArgumentError, match=f"{size[0]} x {size[1]}"):
        encode(waves(1, *size), FAST.playable())


def test_a_video_that_lacks_frames_is_refused():
    data = encode(np.zeros((3, 32, 32, 3), np.uint8), FAST)
    assert video.digest_video(data, 3) == frames_digest(video.read_frames(data))
    with pytest.raises(ImageError, match="3 of 4"):
        video.digest_video(data, 4)


def test_a_size_that_x264_refuses_is_an_image_error():
    with pytest.raises(ImageError, match="encoder failed"):
        encode(np.zeros((1, 20000, 2, 3), np.uint8), FAST)


def test_pyav_without_x264_is_a_missing_dependency(monkeypatch):
    monkeypatch.setitem(video.CODECS, "yuv444p", "libx264_left_out")
    with pytest.raises(MissingDependencyError, match="pip install"):
        encode(waves(1, 4, 4), FAST)


# Reading


def test_every_colour_reads_as_ffmpeg_converts_it():
    values = np.arange(256, dtype=np.uint8)
    luma = np.tile(values, (256, 1))
    converter = VideoReformatter()
    for blue in range(256):
        planes = np.stack([luma, np.full_like(luma, blue), luma.T])
        frame = av.VideoFrame.from_ndarray(planes, format="yuv444p")
        expected = frame.reformat(format="rgb24", interpolation="BICUBIC").to_ndarray()
        assert np.array_equal(video.read_pixels(frame, converter), expected)


@pytest.mark.parametrize("pixel_format", ["yuv444p", "yuv420p", "rgb24"])
def test_frames_of_any_width_read_as_ffmpeg_converts_them(pixel_format, tmp_path):
    for width in (34, 250, 672):
        data = encode(noise(2, 36, width), dataclasses.replace(FAST, pixel_format=pixel_format))
        with av.open(io.BytesIO(data)) as container:
            frames = [
                frame.reformat(format="rgb24", interpolation="BICUBIC").to_ndarray()
                for frame in container.decode(video=0)
            ]
        assert np.array_equal(read_sequence(written(tmp_path / "a.mp4", data)), frames)


def test_no_threads_are_started_for_a_video():
    """Workers are processes, and would start as many as there are cores each."""
    others = set(Path("/proc/self/task").iterdir())
    count = 0
    for _ in video._decode_rgb(encode(noise(3, 64, 64), FAST), "video"):
        count += set(Path("/proc/self/task").iterdir()) <= others
    assert count == 3


def test_a_path_that_ffmpeg_would_take_for_a_protocol_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "concat:a|b.mp4", encode(waves(2, 8, 8), FAST))
    assert len(read_sequence("concat:a|b.mp4")) == 2


def test_a_folder_reads_in_the_order_of_its_numbers(tmp_path):
    frames = noise(12, 6, 5)
    for number, frame in enumerate(frames):
        Image.fromarray(frame).save(tmp_path / f"{number}.png")
    np.testing.assert_array_equal(read_sequence(tmp_path), frames)


def test_an_array_is_mapped_not_read(tmp_path):
    sequences = noise(6, 4, 4).reshape(2, 3, 4, 4, 3)
    np.save(tmp_path / "x.npy", sequences)
    array = read_sequence(tmp_path / "x.npy")
    assert isinstance(array, np.memmap)
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, sequences)


def index_first(data):
    """The same video with its index in front, so that a cut at the end leaves it readable."""
    head, start = int.from_bytes(data[:4], "big"), data.index(b"moov") - 4
    index = bytearray(data[start:])
    table = index.index(b"stco") + 8
    count = int.from_bytes(index[table : table + 4], "big")
    offsets = np.frombuffer(index, ">u4", count, table + 4)
    offsets += len(index)
    return data[:head] + bytes(index) + data[head:start]


def last_frame(data):
    with av.open(io.BytesIO(data)) as container:
        return max(packet.pos for packet in container.demux(video=0) if packet.size)


def damaged(data):
    """The same video with zeros in its last frame."""
    middle = last_frame(data) + 200
    return data[:middle] + bytes(400) + data[middle + 400 :]


WHOLE = encode(noise(4, 32, 32), FAST)
BAD_VIDEOS = {
    "empty": b"",
    "text": b"not a video\n" * 100,
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(99),
    **{f"cut after {share}": WHOLE[: int(share * len(WHOLE))] for share in (0.001, 0.3, 0.6, 0.98)},
    "an unknown codec": WHOLE.replace(b"avc1", b"zzzz"),
    # The decoder would conceal it.
    "a damaged frame": damaged(WHOLE),
}


@pytest.mark.parametrize("content", BAD_VIDEOS.values(), ids=BAD_VIDEOS)
def test_a_damaged_video_is_an_image_error_that_names_it(content, tmp_path):
    with pytest.raises(ImageError, match=r"x\.mp4: "):
        read_sequence(written(tmp_path / "x.mp4", content))


def test_names_in_a_video_may_be_damaged():
    assert b"VideoHandler" in WHOLE
    renamed = WHOLE.replace(b"VideoHandler", b"\xa6\xffdeoHandler")
    assert np.array_equal(video.read_frames(renamed), video.read_frames(WHOLE))


def test_a_video_cut_between_two_frames_is_an_image_error():
    data = index_first(encode(waves(4, 16, 16), FAST))
    assert len(video.read_frames(data)) == 4
    with pytest.raises(ImageError, match="3 of its 4"):
        video.read_frames(data[: last_frame(data)])


def test_a_sound_without_pictures_is_an_image_error(tmp_path):
    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))
        container.mux(stream.encode(None))
    with pytest.raises(ImageError, match="no video"):
        read_sequence(tmp_path / "sound.mp4")


def test_a_missing_file_is_an_image_error_that_names_it(tmp_path):
    for name in ("no.mp4", "no.npy", "no"):
        with pytest.raises(ImageError, match=f"{name}: "):
            read_sequence(tmp_path / name)


def png(side):
    file = io.BytesIO()
    Image.fromarray(noise(1, side, side)[0]).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "no frames"),
        ({"0.png": png(4), "mean.png": b""}, r"mean\.png: "),
        ({"0.png": png(4), "1.png": b"\x89PNG"}, r"1\.png': "),
        ({"0.png": png(40)[:2000]}, r"0\.png': "),
        ({"4.png": png(4), "5.png": png(5)}, "size"),
    ],
)
def test_a_folder_of_bad_frames_is_an_image_error(files, says, tmp_path):
    for name, content in files.items():
        written(tmp_path / name, content)
    with pytest.raises(ImageError, match=says):
        read_sequence(tmp_path)


@pytest.mark.parametrize(
    "array", [np.zeros((2, 4, 4, 3), np.uint8), np.zeros((1, 2, 4, 4, 3)), np.array([{}])], ids=range(3)
)
def test_another_array_is_an_image_error(array, tmp_path):
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    with pytest.raises(ImageError, match=r"x\.npy: "):
        read_sequence(tmp_path / "x.npy")


# Digests


def test_a_digest_depends_on_values_shape_and_type_alone():
    frames = waves(2, 4, 6)
    same = frames_digest(frames)
    assert len(same) == 64
    assert frames_digest(np.asfortranarray(frames)) == frames_digest(frames[::-1][::-1]) == same
    others = [frames ^ 1, frames.reshape(2, 6, 4, 3), frames.view(np.int8), frames[:1], frames[::-1]]
    assert len({same, *map(frames_digest, others)}) == 1 + len(others)


def copied(data, change=lambda packet: None, **options):
    """The video of a file in a new MP4 file, with the packets changed."""
    file = io.BytesIO()
    with av.open(io.BytesIO(data)) as source, av.open(file, "w", format="mp4", options=options) as target:
        stream = source.streams.video[0]
        copy = target.add_stream_from_template(stream)
        for packet in source.demux(stream):
            if packet.dts is not None:
                change(packet)
                packet.stream = copy
                target.mux(packet)
    return file.getvalue()


def with_matrix(data, *signs):
    """The file with a display matrix of a, b, c and d."""
    upright = np.array([1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30], ">i4").tobytes()
    a, b, c, d = (each << 16 for each in signs)
    assert data.count(upright) == 2
    place = data.rindex(upright)
    return data[:place] + np.array([a, b, 0, c, d, 0, 0, 0, 1 << 30], ">i4").tobytes() + data[place + 36 :]


@pytest.mark.parametrize(
    ("signs", "turn"),
    [
        ((1, 0, 0, 1), lambda x: x),
        ((0, 1, -1, 0), lambda x: np.rot90(x, -1, (1, 2))),
        ((-1, 0, 0, -1), lambda x: np.rot90(x, 2, (1, 2))),
        ((0, -1, 1, 0), lambda x: np.rot90(x, 1, (1, 2))),
        ((-1, 0, 0, 1), lambda x: x[:, :, ::-1]),
        ((1, 0, 0, -1), lambda x: x[:, ::-1]),
        ((0, 1, 1, 0), lambda x: x.swapaxes(1, 2)),
        ((0, -1, -1, 0), lambda x: np.rot90(x, 2, (1, 2)).swapaxes(1, 2)),
    ],
)
def test_display_matrices_are_obeyed(signs, turn):
    data = encode(waves(3, 32, 48), FAST.lossless())
    clip = video.open_clip(with_matrix(data, *signs), "a.mp4")
    assert np.array_equal(clip.stack(), turn(video.read_frames(data)))
    assert bool(clip.data) == (signs == (1, 0, 0, 1))


def test_frames_that_an_edit_list_hides_are_not_missing():
    data = encode(waves(12, 32, 48), dataclasses.replace(FAST, fps=25))

    def earlier(packet):
        packet.pts, packet.dts = (each - int(0.2 / packet.time_base) for each in (packet.pts, packet.dts))

    trimmed = copied(data, earlier, use_editlist="1", avoid_negative_ts="disabled")
    assert len(video.open_clip(trimmed, "a.mp4").stack()) == 7
    with pytest.raises(ImageError):
        video.open_clip(trimmed[: len(trimmed) // 2], "a.mp4").stack()
    assert len(video.open_clip(data, "a.mp4").stack()) == 12


def test_attached_pictures_are_no_clips():
    file = io.BytesIO()
    with (
        av.open(io.BytesIO(encode(waves(4, 32, 48), FAST))) as source,
        av.open(file, "w", format="mp4") as made,
    ):
        picture = made.add_stream("png", rate=1)
        picture.width = picture.height = 64
        picture.pix_fmt, picture.disposition = "rgb24", av.stream.Disposition.attached_pic
        copy = made.add_stream_from_template(source.streams.video[0])
        made.mux(picture.encode(av.VideoFrame.from_image(Image.new("RGB", (64, 64)))))
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = copy
                made.mux(packet)
        made.mux(picture.encode(None))
    assert video.open_clip(file.getvalue(), "a.mp4").stack().shape == (4, 32, 48, 3)


def write_container(codec, form, container, first=0, **options):
    file = io.BytesIO()
    with av.open(file, "w", format=container) as made:
        stream = made.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 64, 48, form
        for number, frame in enumerate(waves(25, 48, 64), first):
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format=form)
            picture.pts = number
            made.mux(stream.encode(picture))
        made.mux(stream.encode(None))
    return file.getvalue()


@pytest.mark.parametrize(
    ("codec", "form", "container"),
    [
        ("wmv2", "yuv420p", "asf"),
        ("flv1", "yuv420p", "flv"),
        ("mpeg4", "yuv420p", "mp4"),
        ("libvpx-vp9", "yuv420p", "webm"),
        ("mjpeg", "yuvj420p", "avi"),
        ("prores_ks", "yuv422p10le", "mov"),
        ("huffyuv", "yuv422p", "avi"),
        ("mpeg2video", "yuv420p", "mpegts"),
    ],
)
def test_a_cut_video_is_no_shorter_clip(codec, form, container):
    data = write_container(codec, form, container)
    assert len(video.open_clip(data, "whole").stack()) == 25
    for share in np.linspace(0.3, 0.95, 8):
        with pytest.raises(ImageError):
            video.open_clip(data[: int(share * len(data))], "cut").stack()


@pytest.mark.parametrize(
    ("codec", "form", "container"),
    [
        ("prores_ks", "yuv422p10le", "mov"),
        ("mpeg4", "yuv420p", "avi"),
        ("mpeg2video", "yuv420p", "mpegts"),
        ("wmv2", "yuv420p", "asf"),
    ],
)
def test_changed_bytes_are_noticed(codec, form, container):
    data = write_container(codec, form, container)
    for seed in range(4):
        draws, changed = np.random.default_rng(seed), bytearray(data)
        for place in draws.integers(len(data) // 5, len(data) * 9 // 10, 16):
            changed[place] ^= int(draws.integers(1, 256))
        with pytest.raises(ImageError):
            video.open_clip(bytes(changed), "changed").stack()


@pytest.mark.parametrize(
    ("codec", "form", "container"),
    [
        ("libvpx", "yuv420p", "matroska"),
        ("libvpx-vp9", "yuv420p", "matroska"),
        ("libx264", "yuv420p", "matroska"),
        ("ffv1", "yuv420p", "matroska"),
        ("ffv1", "yuv420p", "avi"),
        ("png", "rgb24", "mov"),
    ],
)
def test_checksums_notice_one_changed_byte(codec, form, container):
    options = {"level": "3", "slicecrc": "1"} if codec == "ffv1" else {}
    data = write_container(codec, form, container, **options)
    whole = video.open_clip(data, "whole").stack()
    for place in np.linspace(len(data) // 5, len(data) * 9 // 10, 12, dtype=int):
        changed = bytearray(data)
        changed[place] ^= 4
        # Some bytes lie between frames.
        with suppress(ImageError):
            assert np.array_equal(video.open_clip(bytes(changed), "changed").stack(), whole)


@pytest.mark.parametrize("level", [1, 3])
def test_ffv1_without_checksums_is_read(level):
    data = write_container("ffv1", "yuv420p", "avi", level=str(level), slicecrc="0")
    assert len(video.open_clip(data, "a.avi").stack()) == 25


@pytest.mark.parametrize("first", [0, 40])
@pytest.mark.parametrize(
    ("codec", "container"),
    [
        *[("libx264", each) for each in ("mp4", "mov", "matroska", "flv", "mpegts")],
        *[("libvpx-vp9", "webm"), ("mpeg4", "avi"), ("wmv2", "asf"), ("mpeg2video", "mpeg")],
    ],
)
def test_a_clip_may_begin_late(codec, container, first):
    data = write_container(codec, "yuv420p", container, first)
    assert len(video.open_clip(data, "late").stack()) == 25


def test_mpeg_program_streams_keep_their_rate():
    data = write_container("mpeg2video", "yuv420p", "mpeg")
    clip = video.open_clip(data, "a.mpg")
    assert (clip.rate, len(clip.stack())) == (25, 25)
