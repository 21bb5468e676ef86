"""What encoders and lossy links do to clips."""

import io
from fractions import Fraction

import numpy as np
import pytest
from skimage.data import astronaut

from robustgen.errors import ImageError
from robustgen.pixels.imaging import codecs, video
from robustgen.pixels.imaging.frames import Clip, choose_frames
from tests.helpers import photo

av = pytest.importorskip("av")


@pytest.fixture(scope="module")
def frames():
    picture = photo(120, 160)
    return np.stack([picture[t : t + 64, 2 * t : 2 * t + 96] for t in range(24)])


@pytest.fixture(scope="module")
def clip(frames):
    data = video.encode(frames, video.Encoding(preset="fast", crf=12, pixel_format="yuv420p", fps=25))
    return video.open_clip(data, "clip.mp4").hold()


def quality(first, second):
    return -10 * np.log10(np.mean((first.astype(float) - second) ** 2))


def packets_of(data):
    with av.open(io.BytesIO(data)) as container:
        return [bytes(packet) for packet in container.demux(video=0) if packet.size]


def codec_of(data):
    with av.open(io.BytesIO(data)) as container:
        return container.streams.video[0].codec_context.name


@pytest.mark.parametrize(("codec", "name"), [("libx264", "h264"), ("libx265", "hevc")])
def test_a_higher_rate_factor_lowers_quality_and_size(clip, codec, name):
    made = [codecs.compress(clip, codec, factor) for factor in (20, 35, 50)]
    found = [quality(each.stack(), clip.stack()) for each in made]
    assert found == sorted(found, reverse=True)
    assert len(made[0].data) > len(made[1].data) > len(made[2].data)
    assert {codec_of(each.data) for each in made} == {name}
    assert {each.stack().shape for each in made} == {clip.stack().shape}
    assert codecs.compress(clip, codec, 35).data == made[1].data


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_instruction_sets_do_not_change_a_byte(clip, monkeypatch, codec):
    made = [codecs.compress(clip, codec, 30).data, codecs.squeeze(clip, codec, 4).data]
    slow = {name: f"{value}:asm=0" for name, value in codecs._list_options(codec).items()}
    monkeypatch.setattr(codecs, "_list_options", lambda _: slow)
    assert [codecs.compress(clip, codec, 30).data, codecs.squeeze(clip, codec, 4).data] == made


def test_the_decoder_s_own_pictures_are_encoded(clip, frames):
    # Pictures that were converted to RGB and back differ.
    assert (
        codecs.compress(clip, "libx264", 10).data != codecs.compress(Clip(clip.stack()), "libx264", 10).data
    )


@pytest.mark.parametrize("with_file", [True, False])
def test_less_bandwidth_lowers_the_size(clip, with_file):
    given = clip if with_file else Clip(clip.stack(), clip.rate)
    sizes = [len(codecs.squeeze(given, "libx264", divisor).data) for divisor in (1, 4)]
    assert sizes[0] > sizes[1]


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_the_bit_rate_that_is_asked_for_is_kept(codec):
    picture = astronaut()
    moving = np.stack([picture[20 + t : 260 + t, 10 + t : 330 + t] for t in range(50)])
    data = video.encode(moving, video.Encoding(preset="fast", crf=16, pixel_format="yuv420p", fps=25))
    clip = video.open_clip(data, "clip.mp4").hold()
    for divisor in (1, 2):
        made = codecs.squeeze(clip, codec, divisor)
        wanted = made.notes["bit_rate"]
        assert wanted >= 50_000 and made.stack().shape == clip.stack().shape
        assert sum(map(len, packets_of(made.data))) * 8 / 2 <= 1.1 * wanted


def test_odd_sides_lose_a_row_and_a_column(frames):
    odd = frames[:, :63, :95]
    assert codecs.compress(Clip(odd), "libx264", 30).stack().shape == (24, 62, 94, 3)
    whole = video.encode(odd, video.Encoding(preset="fast", crf=12, fps=25))
    made = codecs.compress(video.open_clip(whole, "odd.mp4"), "libx264", 30)
    assert made.stack().shape == (24, 62, 94, 3)


def test_wrong_bytes_are_those_of_the_filter_noise(clip):
    every = 300
    with av.open(io.BytesIO(clip.data)) as container:
        stream = container.streams.video[0]
        target = av.open(io.BytesIO(), "w", format="mp4")
        noise = av.BitStreamFilterContext(f"noise={every}", stream, target.add_stream_from_template(stream))
        packets = [packet for packet in container.demux(stream) if packet.size]
        expected = [bytes(made) for packet in [*packets, None] for made in noise.filter(packet)]
    damaged = codecs.damage_bytes(clip, every)
    assert packets_of(damaged.data) == expected
    whole = b"".join(packets_of(clip.data))
    changed = sum(a != b for a, b in zip(whole, b"".join(expected), strict=True))
    assert 0 < changed < 4 * len(whole) / every
    assert np.array_equal(damaged.stack(), damaged.stack())
    assert damaged.notes == {"changed_bytes": changed, "bytes": len(whole)}


def test_notes_tell_what_the_encoders_got_and_did(clip):
    frames = Clip(clip.stack(), clip.rate)
    first = {"first_codec": "libx264", "first_rate_factor": 23}
    assert codecs.damage_bytes(frames, 10**9).notes.items() >= {"changed_bytes": 0, **first}.items()
    assert codecs.compress(clip, "libx265", 39).notes == {"codec": "libx265", "rate_factor": 39}
    with av.open(io.BytesIO(clip.data)) as container:
        own = container.bit_rate
    notes = {"codec": "libx264", "source_bit_rate": own, "bit_rate": own // 4}
    assert codecs.squeeze(clip, "libx264", 4).notes == notes
    good = codecs.compress(frames, "libx264", 18).data
    measured = codecs.squeeze(frames, "libx264", 4).notes
    assert measured["source_bit_rate"] == round(len(good) * 8 * 25 / 24)
    assert (measured["first_codec"], measured["first_rate_factor"]) == ("libx264", 18)
    lost = codecs.lose_packets(clip, 20, np.random.default_rng(1)).notes
    assert 0 < lost["lost_datagrams"] < lost["datagrams"] and lost.items() >= first.items()


@pytest.mark.parametrize("with_file", [True, False])
def test_another_frame_rate_is_published_as_h265(clip, with_file):
    given = clip if with_file else Clip(clip.stack(), clip.rate)
    made = codecs.compress_at_rate(given, Fraction(10))
    chosen = clip.stack()[choose_frames(24, Fraction(25), Fraction(10))]
    assert made.rate == 10 and made.stack().shape == chosen.shape
    assert -23 < quality(made.stack(), chosen) < 0
    assert made.notes == {"codec": "libx265", "rate_factor": 28}
    assert codec_of(made.data) == "hevc"
    with av.open(io.BytesIO(made.data)) as container:
        assert container.streams.video[0].average_rate == 10


def test_the_state_of_the_filter_goes_on_from_packet_to_packet():
    data = bytes(range(256)) * 40
    whole, state = codecs.flip_bytes(data, 97)
    first, between = codecs.flip_bytes(data[:1000], 97)
    second, end = codecs.flip_bytes(data[1000:], 97, between)
    assert (first + second, end) == (whole, state)
    expected, total = bytearray(data), 0
    for place, value in enumerate(data):
        total = (total + value + 1) % 2**32
        if total % 97 == 0:
            expected[place] = total & 255
    assert whole == bytes(expected)
    assert codecs.flip_bytes(b"", 97, 5) == (b"", 5)


def test_datagrams_are_lost_by_their_own_draws_but_not_the_first():
    packets = [bytes([number]) * size for number, size in enumerate((3000, 10, 1472, 1473))]
    pieces = [1472, 1472, 56, 10, 1472, 1472, 1]
    draws = np.random.RandomState(3).uniform(size=7)
    sent = codecs.cut_datagrams(packets)
    assert [*map(len, sent)] == pieces and b"".join(sent) == b"".join(packets)
    kept = codecs.drop_datagrams(sent, 0.5, np.random.RandomState(3))
    assert kept == [piece for number, piece in enumerate(sent) if draws[number] >= 0.5 or number == 0]
    assert codecs.drop_datagrams(sent, 1.0, np.random.RandomState(3)) == sent[:1]


def test_a_lossy_link_loses_frames_or_parts_of_them_and_repeats(clip):
    made = codecs.lose_packets(clip, 20, np.random.default_rng(1))
    again = codecs.lose_packets(clip, 20, np.random.default_rng(1))
    assert made.data == again.data and np.array_equal(made.stack(), again.stack())
    assert len(made.stack()) <= 24
    whole = codecs.lose_packets(clip, 0, np.random.default_rng(1)).stack()
    assert whole.shape == clip.stack().shape
    assert len(made.data) < len(codecs.lose_packets(clip, 0, np.random.default_rng(1)).data)


def test_a_stream_without_any_frame_is_an_error():
    data = codecs.compress(Clip(np.zeros((2, 64, 64, 3), np.uint8)), "libx264", 30).data
    with pytest.raises(ImageError):
        [*codecs.damage_bytes(Clip((), data=data), 1)]


def test_versions_of_the_encoders_are_known():
    assert "PyAV" in codecs.build() and "x264" in codecs.build()


def read_rgb(data):
    with av.open(io.BytesIO(data)) as container:
        pictures = [*container.decode(video=0)]
    pixels = np.stack([each.to_ndarray(format="rgb24", interpolation="BICUBIC") for each in pictures])
    return pixels, {(int(each.colorspace), int(each.color_range)) for each in pictures}


def write_video(pixels, codec, form, matrix=None, extent=None, container="matroska"):
    file = io.BytesIO()
    with av.open(file, "w", format=container) as made:
        stream = made.add_stream(codec, rate=25)
        stream.height, stream.width, stream.pix_fmt = *pixels[0].shape[:2], form
        named = {"colorspace": matrix, "color_range": extent}
        for name, value in named.items():
            if value:
                setattr(stream.codec_context, name, value)
        for number, each in enumerate(pixels):
            picture = av.VideoFrame.from_ndarray(each, format="rgb24")
            picture = picture.reformat(format=form, dst_colorspace=matrix, dst_color_range=extent)
            for name, value in named.items():
                if value:
                    setattr(picture, name, value)
            picture.pts = number
            made.mux(stream.encode(picture))
        made.mux(stream.encode(None))
    return file.getvalue()


@pytest.mark.parametrize(
    ("codec", "form", "matrix", "extent"),
    [
        ("libx264", "yuv420p", None, None),
        ("libx265", "yuv420p", 1, 1),
        ("ffv1", "yuv420p", 9, 1),
        ("ffv1", "yuv444p", None, 2),
        ("ffv1", "yuv422p10le", 1, 2),
        ("ffv1", "bgr0", None, None),
        ("ffv1", "gray", None, None),
        ("ffv1", "yuva420p", None, None),
        ("mjpeg", "yuvj420p", None, 2),
        ("libx264rgb", "rgb24", None, None),
    ],
)
def test_colours_stay_and_are_named(codec, form, matrix, extent):
    y, x = np.mgrid[:64, :96]
    smooth = np.stack([np.stack([x * 2 + t, y * 3 + t, 80 + 0 * x], 2) for t in range(8)]).astype(np.uint8)
    clip = video.open_clip(write_video(smooth, codec, form, matrix, extent), "clip.mkv").hold()
    made = [codecs.compress(clip, each, 20) for each in ("libx264", "libx265")]
    made += [codecs.damage_bytes(clip, 10**9), codecs.lose_packets(clip, 0, np.random.default_rng(0))]
    for each in made:
        pixels, named = read_rgb(each.data)
        assert np.abs(pixels.astype(int) - clip.stack()).mean() < 2.5
        if each is not made[2]:
            assert all(extent and (matrix != 2 or form == "gray") for matrix, extent in named), named


@pytest.mark.parametrize("width", [48, 49])
def test_narrow_frames_are_refused_by_x265(width):
    narrow = Clip(np.zeros((4, 64, width, 3), np.uint8))
    for corrupt in (codecs.compress, codecs.squeeze):
        with pytest.raises(ImageError, match="50"):
            corrupt(narrow, "libx265", 28)
    assert codecs.compress(narrow, "libx264", 28).data


def test_what_an_encoder_refuses_is_an_image_error():
    with pytest.raises(ImageError, match="libx265"):
        codecs.compress(Clip(np.zeros((4, 8, 96, 3), np.uint8)), "libx265", 28)
