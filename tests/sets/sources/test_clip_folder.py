"""Sources of clips: videos and folders of frames, in every layout."""

import shutil
import tarfile
import zipfile
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import DecodingWarning, ImageError, SourceError
from robustgen.pixels.imaging import video
from robustgen.sets.sources.base import SourceOptions
from robustgen.sets.sources.clip_folder import group_files, order_naturally
from robustgen.sets.sources.opening import open_source
from tests.helpers import photo

av = pytest.importorskip("av")


def frames_of(count=6, seed=0):
    picture = photo(80, 120, seed)
    return np.stack([picture[t : t + 48, 2 * t : 2 * t + 64] for t in range(count)])


def put_video(path, frames=None, **more):
    """A video file that keeps every value, except in containers and codecs without RGB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encoding = video.Encoding(preset="ultrafast", crf=0, pixel_format="rgb24", **{"fps": 25, **more})
    path.write_bytes(video.encode(frames_of() if frames is None else frames, encoding))


def put_other(path, codec, rate=25, form=None, pixels="yuv420p", sound=False, times=None):
    """A video file of another container or codec."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", format=form) as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, pixels
        heard = container.add_stream("aac", rate=44100, layout="mono") if sound else None
        for number, frame in enumerate(frames_of()):
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format=pixels)
            if times:
                picture.pts, picture.time_base = times[number], Fraction(1, 100)
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
        if heard:
            silence = av.AudioFrame.from_ndarray(
                np.zeros((1, 1024), np.float32), format="fltp", layout="mono"
            )
            silence.rate, silence.pts = 44100, 0
            container.mux([*heard.encode(silence), *heard.encode(None)])


def put_frames(folder, names, frames=None):
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in zip(names, frames_of(len(names)) if frames is None else frames, strict=True):
        Image.fromarray(frame).save(folder / name)


def names_of(count, pattern="image_{:05d}.png"):
    return [pattern.format(number) for number in range(1, count + 1)]


def test_videos_and_folders_of_frames_are_clips(tmp_path):
    put_video(tmp_path / "cat" / "a.mp4")
    put_frames(tmp_path / "dog" / "b", names_of(6))
    source = open_source(tmp_path, "clips")
    assert source.keys() == ("cat/a.mp4", "dog/b")
    assert (source.classes, [*map(source.label, source.keys())]) == (("cat", "dog"), [0, 1])
    for key in [*source.keys()]:
        clip, identity = source.read(key)
        assert np.array_equal(clip.stack(), frames_of())
        assert clip.rate == 25 and len(identity) == 16
        assert source.dimensions(key) == (64, 48)
    sizes = [path.stat().st_size for path in (tmp_path / "dog" / "b").iterdir()]
    assert source.size("dog/b") == sum(sizes)
    assert source.size("cat/a.mp4") == (tmp_path / "cat" / "a.mp4").stat().st_size


def test_frames_are_in_the_order_of_their_numbers(tmp_path):
    put_frames(tmp_path / "cat" / "a", names_of(12, "image_{}.png"))
    (clip,) = map(open_source(tmp_path, "clips").load, ["cat/a"])
    assert np.array_equal(clip.stack(), frames_of(12))
    assert clip.names == tuple(names_of(12, "image_{}.png"))
    mixed = ["f10", "f9", "f2b", "2", "f", "10"]
    assert sorted(mixed, key=order_naturally) == ["2", "10", "f", "f2b", "f9", "f10"]


@pytest.mark.parametrize(
    ("suffix", "codec", "pixels"),
    [(".webm", "libvpx", "yuv420p"), (".mkv", "ffv1", "bgr0"), (".avi", "mpeg4", "yuv420p")]
    + [(".mov", "libx264", "yuv420p"), (".MP4", "libx264", "yuv420p"), (".mpg", "mpeg2video", "yuv420p")],
)
def test_every_container_is_read(tmp_path, suffix, codec, pixels):
    if codec not in av.codecs_available:
        pytest.skip(f"PyAV lacks {codec}")
    form = "mp4" if suffix == ".MP4" else None
    put_other(tmp_path / "cat" / f"a{suffix}", codec, form=form, pixels=pixels)
    clip = open_source(tmp_path, "clips").load(f"cat/a{suffix}")
    frames = clip.stack()
    assert (frames.shape, clip.rate) == ((6, 48, 64, 3), 25)
    assert np.abs(frames.astype(int) - frames_of()).mean() < 20


def test_the_rate_is_kept_and_sound_is_dropped_which_is_said_once(tmp_path):
    put_other(tmp_path / "cat" / "a.mp4", "libx264", rate=Fraction(30000, 1001), sound=True)
    put_other(tmp_path / "cat" / "b.mp4", "libx264", rate=12)
    source = open_source(tmp_path, "clips")
    assert [clip.rate for clip in map(source.load, source.keys())] == [Fraction(30000, 1001), 12]
    assert sum("sound" in remark for remark in source.remarks()) == 1


def test_frames_have_the_rate_that_is_given(tmp_path):
    put_frames(tmp_path / "cat" / "a", names_of(3))
    source = open_source(tmp_path, "clips", SourceOptions(rate=Fraction(12)))
    assert source.load("cat/a").rate == 12
    assert not any("sound" in remark for remark in source.remarks())


def test_a_varying_frame_rate_is_told(tmp_path):
    put_other(tmp_path / "cat" / "a.mkv", "libx264", rate=100, times=[0, 4, 8, 30, 34, 38])
    source = open_source(tmp_path, "clips")
    with pytest.warns(DecodingWarning, match="varies"):
        clip = source.load("cat/a.mkv")
    assert len(clip.stack()) == 6
    # Six frames in 0.38 seconds, of which the container says 100 a second.
    assert clip.rate == pytest.approx(5 / 0.38, abs=0.1)


def test_a_turned_video_is_upright(tmp_path):
    path = tmp_path / "cat" / "a.mp4"
    put_video(path)
    data = bytearray(path.read_bytes())
    # The matrix of the track header: a quarter of a turn clockwise.
    place = data.index(b"tkhd") + 4 + 40
    matrix = np.array([0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30], ">i4").tobytes()
    data[place : place + 36] = matrix
    path.write_bytes(data)
    clip = open_source(tmp_path, "clips").load("cat/a.mp4")
    assert np.array_equal(clip.stack(), np.rot90(frames_of(), -1, axes=(1, 2)))
    assert clip.data == b""


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_broken_tail_is_the_failure_of_the_clip(tmp_path, cut):
    put_other(tmp_path / "cat" / "a.mkv", "libx264")
    put_video(tmp_path / "cat" / "b.mp4")
    put_other(tmp_path / "cat" / "d.webm", "libvpx-vp9")
    put_other(tmp_path / "cat" / "e.avi", "mpeg4")
    for path in (tmp_path / "cat").iterdir():
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * cut)])
    source = open_source(tmp_path, "clips")
    for name in ("a.mkv", "b.mp4", "d.webm", "e.avi"):
        with pytest.raises(ImageError, match=name):
            source.load(f"cat/{name}").stack()
    (tmp_path / "cat" / "c.mp4").write_bytes(b"no video")
    with pytest.raises(ImageError, match=r"c\.mp4"):
        open_source(tmp_path, "clips").load("cat/c.mp4")


def test_a_live_stream_without_a_size_is_whole(tmp_path):
    put_other(tmp_path / "cat" / "a.mkv", "libx264")
    data = bytearray((tmp_path / "cat" / "a.mkv").read_bytes())
    place = data.index(b"\x18\x53\x80\x67") + 4
    data[place : place + 8] = b"\x01" + b"\xff" * 7
    (tmp_path / "cat" / "a.mkv").write_bytes(data)
    assert len(open_source(tmp_path, "clips").load("cat/a.mkv").stack()) == 6


def test_frames_of_several_sizes_or_damaged_are_the_failure_of_the_clip(tmp_path):
    put_frames(tmp_path / "cat" / "a", names_of(2))
    Image.fromarray(photo(20, 20)).save(tmp_path / "cat" / "a" / "image_00003.png")
    put_frames(tmp_path / "cat" / "b", names_of(2))
    (tmp_path / "cat" / "b" / "image_00003.png").write_bytes(b"")
    source = open_source(tmp_path, "clips")
    for key in [*source.keys()]:
        with pytest.raises(ImageError, match="image_00003"):
            source.load(key).stack()


def test_too_many_frames_are_refused_before_they_are_read(tmp_path, monkeypatch):
    put_video(tmp_path / "cat" / "a.mp4")
    put_frames(tmp_path / "cat" / "b", names_of(6))
    source = open_source(tmp_path, "clips")
    monkeypatch.setattr("robustgen.pixels.imaging.video.MOST_FRAMES", 5)
    monkeypatch.setattr("robustgen.sets.sources.clip_folder.MOST_FRAMES", 5)
    for key in [*source.keys()]:
        with pytest.raises(ImageError, match="6 frames"):
            source.load(key)
    monkeypatch.setattr("robustgen.pixels.imaging.video.MOST_FRAMES", 6)
    monkeypatch.setattr("robustgen.pixels.imaging.video.MOST_PIXELS", 64 * 48 - 1)
    with pytest.raises(ImageError, match="64 x 48"):
        source.load("cat/a.mp4")


@pytest.mark.parametrize("layout", ["flat", "nested"])
def test_labels_name_the_classes(tmp_path, layout):
    below = "" if layout == "flat" else "part/"
    put_video(tmp_path / "clips" / f"{below}a.mp4")
    put_frames(tmp_path / "clips" / f"{below}b", names_of(2))
    (tmp_path / "labels.csv").write_text(f"{below}a.mp4,dog\n{below}b,cat\n")
    source = open_source(tmp_path / "clips", "clips", SourceOptions(labels=tmp_path / "labels.csv"))
    assert source.keys() == ("cat/b", "dog/a.mp4")
    assert [len(clip.stack()) for clip in map(source.load, source.keys())] == [2, 6]
    (tmp_path / "labels.csv").write_text(f"{below}a,dog\n")
    source = open_source(tmp_path / "clips", "clips", SourceOptions(labels=tmp_path / "labels.csv"))
    assert source.keys() == ("dog/a.mp4",)
    assert [*source.refused()] == ["b"]


def test_tracking_layouts_are_read(tmp_path):
    for name in ("MOT17-02", "MOT17-04"):
        put_frames(tmp_path / name / "img1", names_of(3, "{:06d}.jpg"))
        (tmp_path / name / "gt").mkdir()
        (tmp_path / name / "gt" / "gt.txt").write_text("1,1,0,0,5,5")
    (tmp_path / "MOT17-02" / "seqinfo.ini").write_text("[Sequence]\nname=MOT17-02\nframeRate=30\n")
    source = open_source(tmp_path, "clips")
    assert source.keys() == ("MOT17-02/img1", "MOT17-04/img1")
    assert [clip.rate for clip in map(source.load, source.keys())] == [30, 25]
    slow = open_source(tmp_path, "clips", SourceOptions(rate=Fraction(5)))
    assert slow.load("MOT17-02/img1").rate == 5


@pytest.mark.parametrize("form", ["zip", "tar", "tar.gz"])
def test_archives_are_read(tmp_path, form):
    put_video(tmp_path / "set" / "cat" / "a.mp4")
    put_frames(tmp_path / "set" / "dog" / "b", names_of(3))
    place = tmp_path / f"set.{form}"
    files = [path for path in sorted((tmp_path / "set").rglob("*")) if path.is_file()]
    if form == "zip":
        with zipfile.ZipFile(place, "w") as archive:
            for path in files:
                archive.write(path, path.relative_to(tmp_path))
    else:
        with tarfile.open(place, f"w:{form[4:]}") as archive:
            for path in files:
                archive.add(path, str(path.relative_to(tmp_path)))
    source = open_source(place, "clips")
    assert source.keys() == ("cat/a.mp4", "dog/b")
    assert [len(clip.stack()) for clip in map(source.load, source.keys())] == [6, 3]


def test_one_clip_is_a_source(tmp_path):
    put_video(tmp_path / "videos" / "a.mp4")
    put_video(tmp_path / "videos" / "b.mp4")
    put_frames(tmp_path / "frames", names_of(4))
    one = open_source(tmp_path / "videos" / "a.mp4", "clips")
    assert one.keys() == ("a.mp4",) and len(one.load("a.mp4").stack()) == 6
    other = open_source(tmp_path / "frames", "clips")
    assert other.keys() == ("frames",) and len(other.load("frames").stack()) == 4


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_a_folder_may_be_called_like_a_video(tmp_path, form):
    put_frames(tmp_path / "set" / "cat" / "a.mp4", names_of(3))
    put_video(tmp_path / "set" / "dog.avi" / "b.mp4")
    place = tmp_path / "set"
    if form == "zip":
        place = shutil.make_archive(str(place), form, place)
    source = open_source(place, "clips")
    assert source.keys() == ("cat/a.mp4", "dog.avi/b.mp4")
    assert [len(clip.stack()) for clip in map(source.load, source.keys())] == [3, 6]
    assert [source.dimensions(key) for key in source.keys()] == [(64, 48)] * 2  # noqa: SIM118
    assert source.load("cat/a.mp4").names == tuple(names_of(3))


def test_frames_of_one_name_and_two_suffixes_are_told(tmp_path):
    put_frames(tmp_path / "a", ["1.png", "1.bmp", "2.png"])
    with pytest.warns(DecodingWarning, match="suffixes"):
        assert len(open_source(tmp_path, "clips").load("a").stack()) == 3


def test_images_beside_clips_are_skipped_and_counted():
    found = dict.fromkeys(
        ("cover.png", "cat/thumb.png", "cat/a.mp4", "dog/x/1.png", "dog/x/2.png", "dog/cover.png")
    )
    clips, others = group_files(found)
    assert (sorted(clips), others) == (
        ["cat/a.mp4", "dog/x"],
        ["cover.png", "cat/thumb.png", "dog/cover.png"],
    )


def test_skipped_files_are_named(tmp_path):
    put_video(tmp_path / "cat" / "a.mp4")
    for name in ("b.mxf", "c.heic", "d.gif", "notes.txt"):
        (tmp_path / "cat" / name).touch()
    source = open_source(tmp_path, "clips")
    assert source.keys() == ("cat/a.mp4",)
    unread, beside, _ = source.remarks()
    assert "1 .heic, 1 .mxf ('cat/b.mxf', ...)" in unread and "MP4" in unread
    assert "1 image ('cat/d.gif', ...)" in beside


def test_a_source_without_clips_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(SourceError, match="mp4"):
        open_source(tmp_path, "clips").keys()


def test_without_source_kind_videos_are_named_and_not_read(tmp_path):
    put_video(tmp_path / "cat" / "a.mp4")
    Image.fromarray(photo(40, 40)).save(tmp_path / "cat" / "b.png")
    source = open_source(tmp_path)
    assert source.keys() == ("cat/b.png",)
    assert any("a.mp4" in remark and "clips" in remark for remark in source.remarks())


def test_playlists_that_open_other_files_are_refused(tmp_path):
    put_video(tmp_path / "secret.mp4")
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.mp4").write_text(f"ffconcat version 1.0\nfile '{tmp_path}/secret.mp4'\n")
    with pytest.raises(ImageError):
        open_source(tmp_path / "cat", "clips").load("a.mp4")
    (tmp_path / "cat" / "b.mp4").write_text(f"#EXTM3U\n#EXTINF:1,\nfile://{tmp_path}/secret.mp4\n")
    with pytest.raises(ImageError):
        open_source(tmp_path / "cat", "clips").load("b.mp4")


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png", ".tif"])
def test_animations_are_refused_with_the_conversion(tmp_path, suffix):
    first, *rest = (Image.fromarray(frame) for frame in frames_of())
    (tmp_path / "walk").mkdir()
    first.save(tmp_path / "walk" / f"0{suffix}", save_all=True, append_images=rest)
    source = open_source(str(tmp_path), source_kind="clips")
    with pytest.raises(ImageError, match="ffmpeg"):
        source.load("walk")
    first.save(tmp_path / "walk" / f"0{suffix}")
    assert len(source.load("walk").stack()) == 1
