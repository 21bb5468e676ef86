"""Sets of clips from source to verification: resumed, on one worker and two, as videos and as frames."""

import json
import os
import shutil
import signal
import tarfile
import weakref
import zipfile

import numpy as np
import pytest
from PIL import Image
from skimage import data

import robustgen
from robustgen.files.storage import open_store
from robustgen.lab.evaluation.rendering import FrameSampling
from robustgen.pixels.benchmarks.kinds import CLEAN, Variant
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.frames import Clip, Repeatable, sample_frames
from robustgen.sets.dataset.recipes import ClipRecipe
from robustgen.sets.formats.videos import ClipVideoEncoder
from tests.helpers import (
    cli,
    cli_error,
    errors_of,
    findings,
    kept,
    litter,
    make_c,
    manifest,
    photo,
    spawn,
    tree,
    until_under_way,
    whole,
)
from tests.servers import BUCKET

av = pytest.importorskip("av")
FLAGS = ("--dataset", "clips", "--severities", "1,4", "--jobs", "1")
FEW = ("--corruptions", "fog,gaussian_noise,video-c:bit_error,video-c:frame_rate")


def pan(seed, count=16):
    """A clip that moves across a bundled photograph, uint8 (T, 48, 64, 3)."""
    picture = (data.astronaut, data.chelsea, data.coffee)[seed % 3]()[:, :, :3]
    return np.stack([picture[60 + t : 108 + t, 90 + 2 * t : 154 + 2 * t] for t in range(count)])


def put_frames(folder, frames, pattern="{:05d}.png", start=0):
    folder.mkdir(parents=True)
    for number, frame in enumerate(frames, start):
        Image.fromarray(frame).save(folder / pattern.format(number))


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Two clips as videos and two as folders of frames."""
    root = tmp_path_factory.mktemp("source") / "clips"
    encoding = video.Encoding(preset="fast", crf=18, pixel_format="yuv420p", fps=25)
    for number, name in enumerate(("cat/a.mp4", "dog/b.webm")):
        (root / name).parent.mkdir(parents=True)
        if name.endswith("mp4"):
            (root / name).write_bytes(video.encode(pan(number), encoding))
            continue
        with av.open(str(root / name), "w") as container:
            stream = container.add_stream("libvpx-vp9", rate=25)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            for frame in pan(number):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            container.mux(stream.encode(None))
    put_frames(root / "cat" / "c", pan(2))
    put_frames(root / "dog" / "d", pan(3), "image_{:05d}.png", 1)
    return root


@pytest.fixture(scope="module")
def made(clips, tmp_path_factory):
    """A set of these clips, by one worker."""
    output = tmp_path_factory.mktemp("made") / "out"
    make_c(clips, output, *FLAGS, *FEW)
    return output


def draws(name, severity, key):
    return robustgen.item_rng(0, "c", "kinetics", name, severity, key)


def test_a_set_has_a_video_of_each_clip_with_the_pixels_of_corrupt_clip(clips, made):
    dataset = robustgen.open_set(made)
    assert dataset.benchmark.noun == "clip"
    variant = Variant("fog", 4, "fog/4")
    names = {"cat/a.mp4": "cat/a.mp4", "cat/c.mp4": "cat/c", "dog/b.mp4": "dog/b.webm", "dog/d.mp4": "dog/d"}
    assert dataset.keys_of(variant) == tuple(names)
    for name, key in names.items():
        clean = dataset.load(Variant("clean", 0, "clean"), name)
        rng = draws("fog", 4, key)
        expected = robustgen.corrupt_clip(clean, "fog", 4, edition="kinetics", rng=rng)
        assert np.array_equal(dataset.load(variant, name), expected)
    assert np.array_equal(dataset.load(Variant("clean", 0, "clean"), "cat/c.mp4"), pan(2))
    assert dataset.labels(variant).tolist() == [0, 0, 1, 1]
    rates = {"video-c.frame_rate/1": 20, "video-c.frame_rate/4": 9, "fog/1": 25, "clean": 25}
    for folder, rate in rates.items():
        with av.open(str(made / folder / "cat" / "a.mp4")) as container:
            assert container.streams.video[0].average_rate == rate


def test_a_codec_s_own_file_is_written(clips, made):
    path = made / "video-c.bit_error" / "4" / "dog" / "b.mp4"
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec_context.name.startswith(("vp9", "libvpx"))
    assert manifest(made)["settings"]["output"]["format"] == "mp4"
    assert "x264" in manifest(made)["settings"]["versions"]["video"]


def notes_of(root):
    return [json.loads(line) for line in (root / "notes.jsonl").read_text().splitlines()]


def test_notes_tell_what_encoders_and_links_did(clips, made, tmp_path):
    notes = {(note["key"], note["variant"]): note for note in notes_of(made)}
    assert {variant for _, variant in notes} == {"video-c.bit_error/1", "video-c.bit_error/4"}
    assert notes["cat/c", "video-c.bit_error/4"]["first_rate_factor"] == 23
    assert "first_codec" not in notes["dog/b.webm", "video-c.bit_error/4"]
    assert manifest(made)["notes"] == len(notes) == 8
    # Frames have no bit rate of their own.
    names = "video-c:h265_abr,video-c:packet_loss"
    make_c(clips, tmp_path / "out", *FLAGS, "--corruptions", names, "--format", "png")
    make_c(clips, tmp_path / "out", *FLAGS, "--corruptions", "contrast,video-c:h264_crf", "--format", "png")
    notes = {(note["key"], note["variant"]): note for note in notes_of(tmp_path / "out")}
    assert notes["cat/c", "video-c.h265_abr/1"]["first_rate_factor"] == 18
    assert notes["cat/a.mp4", "video-c.h264_crf/4"]["rate_factor"] == 44
    assert len(notes) == 24 and findings(tmp_path / "out", "--deep", "1", status=0) == []
    (tmp_path / "out" / "notes.jsonl").write_text("{}\n")
    assert any("notes.jsonl" in line for line in findings(tmp_path / "out"))


def test_a_run_tells_which_clips_came_out_unharmed(clips, tmp_path):
    flags = (
        *FLAGS,
        "--corruptions",
        "video-c:bit_error",
        "--set",
        "parameters.video-c:bit_error.1.every=1e9",
    )
    shown = make_c(clips, tmp_path / "out", *flags).stderr
    assert "video-c.bit_error/1: 4 of 4 clips" in shown


def test_another_frame_rate_is_published_by_h265_unless_lossless_is_asked_for(clips, made, tmp_path):
    variant, path = Variant("video-c:frame_rate", 4, "video-c.frame_rate/4"), "video-c.frame_rate/4/cat/c.mp4"
    flags = (*FLAGS, "--corruptions", "video-c:frame_rate")
    make_c(clips, tmp_path / "whole", *flags, "--set", "video.lossless=true")
    make_c(clips, tmp_path / "small", *flags, "--preset", "ultrafast")
    whole_frames = robustgen.open_set(tmp_path / "whole").load(variant, "cat/c.mp4")
    assert np.array_equal(whole_frames, robustgen.corrupt_clip(pan(2), "video-c:frame_rate", 4))
    for root, codec in ((made, "hevc"), (tmp_path / "whole", "h264"), (tmp_path / "small", "hevc")):
        with av.open(str(root / path)) as container:
            assert container.streams.video[0].codec_context.name == codec
        assert len(robustgen.open_set(root).load(variant, "cat/c.mp4")) == len(whole_frames) == 6
        assert findings(root, "--deep", "1", status=0) == []
    assert manifest(tmp_path / "whole")["settings"]["output"]["frame_rate"] == "lossless"


def test_nothing_is_left_to_do_and_verify_finds_nothing(clips, made):
    assert kept(make_c(clips, made, *FLAGS, *FEW))
    assert findings(made, "--deep", "all", status=0) == []


def test_two_workers_write_the_same_files(clips, made, tmp_path):
    make_c(clips, tmp_path / "two", *FLAGS[:-1], "2", *FEW)
    assert tree(tmp_path / "two") == tree(made)


def pack(root, place):
    """An archive of all files below `root`, or copies in memory."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    if "://" in str(place):
        store = open_store(place)
        for path in files:
            store.put(path.relative_to(root).as_posix(), path.read_bytes())
    elif place.suffix == ".zip":
        with zipfile.ZipFile(place, "w") as archive:
            for path in files:
                archive.write(path, path.relative_to(root))
    else:
        with tarfile.open(place, "w") as archive:
            for path in files:
                archive.add(path, str(path.relative_to(root)))
    return place


S3 = pytest.param("s3", marks=pytest.mark.slow("sets in an S3 server"))


@pytest.mark.parametrize("form", ["clips.tar", "clips.zip", "memory", "memory tar", S3])
def test_archives_and_urls_of_clips_give_the_same_files(clips, made, tmp_path, form, request):
    if form == "s3":
        request.getfixturevalue("s3")
    if form in ("memory", "memory tar", "s3"):
        root = f"{form.partition(' ')[0]}://{BUCKET}/{tmp_path.name}"
        folder = tmp_path / "packed"
        folder.mkdir()
        source = pack(clips, folder / "clips.tar") if form == "memory tar" else clips
        place, output = pack(source if source is clips else folder, f"{root}/clips"), f"{root}/out"
        place = f"{place}/clips.tar" if form == "memory tar" else place
    else:
        place, output = pack(clips, tmp_path / form), tmp_path / "out"
    make_c(place, output, *FLAGS, *FEW)
    store = open_store(output)
    for name, content in tree(made).items():
        assert store.read(name) == content, name
    assert findings(output, "--deep", "1", status=0) == []
    assert "nothing to do" in make_c(place, output, *FLAGS, *FEW).stdout


@pytest.mark.parametrize(
    ("name", "most"),
    [("fog", 3), ("gaussian_noise", 3), ("video-c:h264_crf", 3), ("video-c:frame_rate", 3)]
    + [("video-c:packet_loss", 3), ("video-c:motion_blur", 12)],
)
def test_few_frames_of_a_large_clip_are_in_memory(monkeypatch, name, most):
    monkeypatch.setattr("robustgen.pixels.imaging.frames.MOST_HELD", 0)
    given, alive = [], []

    def decode():
        for pixels in pan(0, 24):
            given.append(weakref.ref(frame := np.pad(pixels, ((0, 48), (0, 32), (0, 0)))))
            alive.append(sum(each() is not None for each in given))
            yield frame
            del frame

    recipe, variant = ClipRecipe("kinetics"), Variant(name, 1, "folder")
    made = recipe.make(variant, "a", recipe.prepare(Clip(Repeatable(decode))))
    assert [*ClipVideoEncoder().encode(variant, "a", made)]
    assert len(given) > 24 and max(alive) <= most


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_is_resumed(clips, made, tmp_path, jobs):
    flags = (*FLAGS[:-1], jobs, *FEW)
    process = spawn("make-c", "--source", clips, "--output", tmp_path / "out", *flags)
    until_under_way(process, tmp_path / "out", files=3)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    make_c(clips, tmp_path / "out", *flags)
    assert tree(tmp_path / "out") == tree(made) and not litter(tmp_path / "out")


def test_a_lost_file_is_found_and_written_again(clips, made, tmp_path):
    make_c(clips, tmp_path / "out", *FLAGS, "--corruptions", "fog")
    before = whole(tmp_path / "out")
    (tmp_path / "out" / "fog" / "4" / "cat" / "a.mp4").write_bytes(b"changed")
    assert any("fog/4/cat/a.mp4" in line for line in findings(tmp_path / "out"))
    (tmp_path / "out" / "fog" / "4" / "cat" / "a.mp4").unlink()
    make_c(clips, tmp_path / "out", *FLAGS, "--corruptions", "fog")
    assert whole(tmp_path / "out") == before


@pytest.mark.parametrize(("form", "suffix"), [("png", ".png"), ("jpeg", ".jpg"), ("webp", ".webp")])
def test_frames_are_written_one_by_one(clips, tmp_path, form, suffix):
    make_c(clips, tmp_path / "out", *FLAGS, "--corruptions", "fog,video-c:frame_rate", "--format", form)
    folder = tmp_path / "out" / "fog" / "1"
    names = sorted(path.name for path in (folder / "cat" / "a").iterdir())
    assert names == [f"image_{number:05d}{suffix}" for number in range(1, 17)]
    # Frames keep the names of the source's.
    kept = sorted(path.stem for path in (folder / "cat" / "c").iterdir())
    assert kept == [f"{number:05d}" for number in range(16)]
    fewer = [*(tmp_path / "out" / "video-c.frame_rate" / "4" / "cat" / "c").iterdir()]
    assert len(fewer) == 6
    dataset = robustgen.open_set(tmp_path / "out")
    loaded = dataset.load(Variant("fog", 1, "fog/1"), "cat/c")
    expected = robustgen.corrupt_clip(pan(2), "fog", 1, edition="kinetics", rng=draws("fog", 1, "cat/c"))
    assert np.abs(loaded.astype(int) - expected).mean() <= (6 if form == "jpeg" else 0)
    if form == "jpeg":
        assert manifest(tmp_path / "out")["settings"]["output"]["quality"] == 80
    assert findings(tmp_path / "out", "--deep", "1", status=0) == []


def test_a_preset_compresses_as_for_imagenet_p(clips, tmp_path):
    make_c(clips, tmp_path / "out", *FLAGS, "--corruptions", "fog", "--preset", "ultrafast")
    coded = manifest(tmp_path / "out")["settings"]["output"]["video"]
    assert (coded["preset"], coded["crf"], coded["pixel_format"]) == ("ultrafast", 20, "yuv444p")


def test_draws_in_every_frame_are_chosen_by_temporal(tmp_path):
    still = np.repeat(photo(48, 64)[None], 3, axis=0)
    put_frames(tmp_path / "source" / "cat" / "a", still)
    for temporal, same in (("clip", True), ("frame", False)):
        output = tmp_path / temporal
        make_c(
            tmp_path / "source", output, *FLAGS, "--corruptions", "fog,video-c:fog", "--temporal", temporal
        )
        dataset = robustgen.open_set(output)
        fog = dataset.load(Variant("fog", 1, "fog/1"), "cat/a.mp4")
        assert np.array_equal(fog[0], fog[1]) == same
        published = dataset.load(Variant("video-c:fog", 1, "video-c.fog/1"), "cat/a.mp4")
        assert np.array_equal(published[0], published[1])
        assert manifest(output)["settings"]["temporal"] == temporal
    assert "temporal" in cli_error(
        "make-c",
        "--source",
        tmp_path / "source",
        "--output",
        tmp_path / "clip",
        *FLAGS,
        "--temporal",
        "frame",
    )


def test_a_preparation_applies_to_every_frame(clips, tmp_path):
    flags = ("--corruptions", "video-c:h264_crf,contrast", "--edition", "kinetics@32")
    make_c(clips, tmp_path / "out", *FLAGS, *flags)
    dataset = robustgen.open_set(tmp_path / "out")
    for variant in dataset:
        assert dataset.load(variant, "cat/c.mp4").shape == (16, 32, 32, 3)
    clean = dataset.load(Variant("clean", 0, "clean"), "cat/c.mp4")
    assert np.array_equal(clean[0], robustgen.prepare(pan(2)[0], "imagenet@32"))


def test_bad_clips_fail_and_the_others_are_made(clips, tmp_path):
    source = tmp_path / "source"
    put_frames(source / "cat" / "long", pan(0, 9))
    put_frames(source / "cat" / "short", pan(0, 4))
    (source / "cat" / "bad.mp4").write_bytes(b"no video")
    output = tmp_path / "out"
    flags = ("--dataset", "ssv2", "--corruptions", "video-c:motion_blur", "--severities", "2")
    cli("make-c", "--source", source, "--output", output, *flags, "--jobs", "1", status=1)
    failed = {(entry["key"], entry.get("variant", "")) for entry in errors_of(output)}
    assert failed == {("cat/bad.mp4", ""), ("cat/short", "video-c.motion_blur/2")}
    assert (output / "video-c.motion_blur" / "2" / "cat" / "long.mp4").exists()


def test_annotations_beside_clips_are_mirrored(tmp_path):
    source = tmp_path / "MOT17"
    for number, name in enumerate(("MOT17-02", "MOT17-04")):
        put_frames(source / name / "img1", pan(number, 3), "{:06d}.png", 1)
        (source / name / "gt").mkdir()
        (source / name / "gt" / "gt.txt").write_text("1,1,0,0,5,5\n")
        (source / name / "seqinfo.ini").write_text("[Sequence]\n")
    flags = ("--corruptions", "fog", "--format", "original", "--set", "mirror=copy")
    make_c(source, tmp_path / "out", *FLAGS, *flags)
    fog = tmp_path / "out" / "fog" / "1"
    files = {path.relative_to(fog).as_posix() for path in fog.rglob("*") if path.is_file()}
    own = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert files - {"SHA256SUMS"} == own
    assert (fog / "MOT17-02" / "gt" / "gt.txt").read_text() == "1,1,0,0,5,5\n"
    assert findings(tmp_path / "out", status=0) == []
    # Another corruption is added to the set, and each part of it is complete.
    for name in ("contrast", "fog"):
        make_c(source, tmp_path / "out", *FLAGS, "--corruptions", name, *flags[2:])
        assert findings(tmp_path / "out", status=0) == []


NAMED = {
    "UCF101": ("UCF-101/{}.avi", "ucfTrainTestlist/testlist01.txt"),
    "SSv2": ("20bn/{}.webm", "labels/validation.txt"),
    "Charades": ("{}.mp4", "test.csv"),
    "wrong suffix": ("{}.MPG", "list.txt"),
}


@pytest.mark.parametrize("name", NAMED)
def test_lists_beside_clips_name_their_files(clips, tmp_path, name):
    pattern, listed = NAMED[name]
    source, names = tmp_path / "source", [pattern.format(each) for each in ("cat/a", "dog/b")]
    for each in names:
        (source / each).parent.mkdir(parents=True)
        shutil.copy(clips / "cat/a.mp4", source / each)
    (source / listed).parent.mkdir(exist_ok=True)
    (source / listed).write_text("\n".join(names))
    shutil.copy(clips / "cat/a.mp4", source / "preview.mp4.part")
    few = ("--corruptions", "fog,video-c:h264_crf", "--format", "original", "--set", "mirror=link")
    make_c(source, tmp_path / "out", *FLAGS, *few)
    for variant in ("clean", "fog/4", "video-c.h264_crf/1"):
        folder = tmp_path / "out" / variant
        for each in (folder / listed).read_text().split():
            assert len(video.read_frames((folder / each).read_bytes())) == 16
    assert findings(tmp_path / "out", status=0) == []
    keys = robustgen.open_set(tmp_path / "out").keys_of(Variant("fog", 4, "fog/4"))
    assert keys == tuple(sorted(names))
    (tmp_path / "out/fog/4/FRAMES.SHA256").unlink()
    assert any("fog/4/FRAMES.SHA256" in line for line in findings(tmp_path / "out"))


def test_frames_that_an_encoder_returns_keep_their_names(tmp_path):
    put_frames(tmp_path / "source/cat/a", pan(0, 9), "{:06d}.jpg", 1)
    flags = ("--corruptions", "video-c:h264_crf", "--format", "original", "--no-clean")
    make_c(tmp_path / "source", tmp_path / "out", *FLAGS, *flags)
    assert sorted(path.name for path in (tmp_path / "out").glob("*/4/cat/a/*")) == [
        f"{n:06d}.jpg" for n in range(1, 10)
    ]


def test_masks_of_clips_are_mirrored_and_not_corrupted(tmp_path):
    source = tmp_path / "DAVIS"
    for number, name in enumerate(("bear", "goat")):
        put_frames(source / "JPEGImages" / "480p" / name, pan(number, 3), "{:05d}.jpg")
        mask = (pan(number, 3)[..., 0] > 100).astype(np.uint8)
        put_frames(source / "Annotations" / "480p" / name, mask)
    flags = ("--corruptions", "fog", "--format", "original", "--set", "mirror=copy")
    make_c(source, tmp_path / "out", *FLAGS, *flags)
    fog = tmp_path / "out" / "fog" / "1"
    name = "Annotations/480p/bear/00001.png"
    assert (fog / name).read_bytes() == (source / name).read_bytes()
    dataset = robustgen.open_set(tmp_path / "out")
    keys = dataset.keys_of(Variant("fog", 1, "fog/1"))
    assert keys == ("JPEGImages/480p/bear", "JPEGImages/480p/goat")


def test_every_text_about_a_set_says_clips(clips, made, tmp_path):
    for name in ("README.md", "croissant.json"):
        text = (made / name).read_text()
        assert "4 clips" in text and "4 images" not in text
    assert "video-classification" in (made / "README.md").read_text()
    checked = cli("verify", made, "--deep", "1").stdout
    assert "1 clip regenerated" in checked
    make_c(clips, tmp_path / "out", *FLAGS, "--corruptions", "fog", "--format", "png")
    # The folders of the frames are no classes.
    assert "drop_labels: true" in (tmp_path / "out" / "README.md").read_text()
    source = tmp_path / "source"
    put_frames(source / "cat" / "a", pan(0, 3))
    (source / "cat" / "bad.mp4").write_bytes(b"no video")
    cli("make-c", "--source", source, "--output", tmp_path / "bad", *FLAGS, "--corruptions", "fog", status=1)
    assert "1 of 2 clips" in cli("verify", tmp_path / "bad", status=1).stdout
    (source / "cat" / "bad.mp4").unlink()
    plan = ("--write-plan", tmp_path / "plan.json")
    assert "1 clip" in make_c(source, tmp_path / "c", *FLAGS, "--corruptions", "fog", *plan).stdout


def test_an_estimate_counts_clips(clips, tmp_path):
    shown = make_c(clips, tmp_path / "out", *FLAGS, *FEW, "--dry-run").stdout
    assert "4 clips" in shown and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--dataset", "folder", "--corruptions", "video-c:motion_blur"), "clips"),
        (("--dataset", "clips", "--format", "npy"), "npy"),
        (("--dataset", "clips", "--edition", "cifar-10", "--corruptions", "fog"), "kinetics"),
        (("--dataset", "clips", "--corruptions", "3dcc:fog_3d"), "depth"),
        (("--dataset", "clips", "--set", "one_per_image=true"), "one_per_image"),
        (("--dataset", "clips", "--set", "fps=fast"), "fps"),
    ],
)
def test_what_no_set_of_clips_can_be_is_refused(clips, tmp_path, flags, text):
    assert text in cli_error("make-c", "--source", clips, "--output", tmp_path / "out", *flags)


def test_sequences_are_made_of_images_alone(clips, tmp_path):
    flags = ("--source", clips, "--output", tmp_path / "out")
    assert "perturbations" in cli_error("make-p", "--dataset", "clips", *flags)
    assert "make-p" in cli_error("make-p", "--dataset", "clips", "--edition", "folder", *flags)


def test_a_plan_of_clips_can_be_written_and_run(clips, tmp_path):
    flags = (*FLAGS, "--corruptions", "fog", "--write-plan", tmp_path / "plan.json")
    make_c(clips, tmp_path / "out", *flags)
    assert json.loads((tmp_path / "plan.json").read_text())
    cli("run", tmp_path / "plan.json")
    assert findings(tmp_path / "out", status=0) == []


# --- use of the clips -----------------------------------------------------------------------------


def judge(clips):
    """Scores of two classes, from the colour of the frames."""
    assert clips.dtype == np.uint8 and clips.shape[1:] == (8, 48, 64, 3)
    red, _, blue = clips.mean(axis=(1, 2, 3)).T
    return np.stack([red - blue, blue - red], axis=1)


def test_a_function_of_clips_is_evaluated_and_scored(clips, tmp_path):
    choices = {"source": clips, "jobs": 1, "frames": 8, "quiet": True, "name": "judge"}
    names = "video-c:contrast,video-c:frame_rate"
    scores = robustgen.evaluate(judge, "clips", corruptions=names, output=tmp_path, **choices)
    (family,) = scores.to_dict()["models"][0]["families"].values()
    errors = scores.to_dict()["models"][0]["errors"]
    every = [error for name in names.split(",") for error in errors[name]]
    assert family["mpc"] == pytest.approx(1 - np.mean(every))
    assert family["rpc"] == pytest.approx((1 - np.mean(every)) / (1 - scores.clean_error))
    made = json.loads((tmp_path / "judge" / "predictions.json").read_text())
    assert (made["title"], made["frames"]) == ("ImageNet-C for clips", {"frames": 8, "seed": None})
    shown = cli("score", tmp_path / "judge", "--partial", "--compare-with", "published").stdout
    assert "mPC" in shown and "rPC" in shown and "4 clips" not in shown
    again = robustgen.evaluate(judge, "clips", corruptions=names, output=tmp_path, **choices)
    assert again.to_dict() == scores.to_dict()


def test_a_clip_that_fails_is_named_by_evaluate(tmp_path):
    put_frames(tmp_path / "clips" / "cat" / "a", pan(0, 9))
    put_frames(tmp_path / "clips" / "dog" / "b", pan(1, 9))
    (tmp_path / "clips" / "dog" / "bad.mp4").write_bytes(b"no video")
    choices = {"source": tmp_path / "clips", "jobs": 1, "frames": 8, "quiet": True}
    scores = robustgen.evaluate(judge, "clips", corruptions="contrast", severities=1, **choices)
    assert any("1 clip could" in note and "dog/bad.mp4" in note for note in scores.notes)


def test_published_rows_stand_beside_all_twelve_corruptions(tmp_path):
    names = robustgen.FAMILIES["video-c"].names()
    keys = [f"{label}/{number}" for label in "ab" for number in range(3)]
    labels = [0, 0, 0, 1, 1, 1]
    robustgen.write_predictions(tmp_path / "mine", CLEAN, keys, labels, np.eye(2)[labels])
    for variant in robustgen.IMAGENET_C.variants(names, range(1, 6)):
        wrong = np.eye(2)[[0, 0, 1, 1, 1, 0]]
        robustgen.write_predictions(tmp_path / "mine", variant, keys, labels, wrong)
    about = {"schema": 1, "title": "ImageNet-C for clips", "edition": "kinetics"}
    (tmp_path / "mine" / "predictions.json").write_text(json.dumps(about))
    plain = cli("score", tmp_path / "mine").stdout
    compared = cli("score", tmp_path / "mine", "--compare-with", "published").stdout
    assert "TimeSformer" not in plain and "66.7" in plain
    assert "TimeSformer" in compared and "71.4" in compared and "86.9" in compared


def test_models_of_images_do_not_take_clips(clips, made, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    (tmp_path / "network.py").write_text("import torch\ndef build():\n    return torch.nn.Identity()\n")
    monkeypatch.chdir(tmp_path)
    refused = cli_error("predict", made, "--model", "network:build", "--output", tmp_path / "preds")
    assert "network:build" in refused and "clips" in refused


def test_calibrate_refuses_clips(clips):
    found = cli_error("calibrate", "--corruptions", "fog", "--dataset", "clips", "--source", clips)
    assert "images, not clips" in found


def test_a_written_set_and_clips_on_the_fly_give_the_same_predictions(clips, made, tmp_path, monkeypatch):
    names = "video-c:bit_error,video-c:frame_rate"
    (tmp_path / "judging.py").write_text(
        "import numpy as np\n"
        "def build():\n"
        "    return lambda clips: clips[:, :, :2, :2, 0].reshape(len(clips), -1)[:, :2].astype(float)\n"
    )
    monkeypatch.chdir(tmp_path)
    flags = ("--model", "judging:build", "--frames", "8", "--batch-size", "16", "--output")
    assert "36 clips" in cli("predict", made, *flags, tmp_path / "a").stdout
    chosen = ("--source", clips, *FLAGS, "--corruptions", names)
    cli("evaluate", *chosen, *flags, tmp_path / "b")
    for folder in ("clean", "video-c.bit_error/4", "video-c.frame_rate/1"):
        a, b = (np.load(tmp_path / name / "judging-build" / f"{folder}.npz") for name in "ab")
        assert a["keys"].tolist() == b["keys"].tolist() and np.array_equal(a["logits"], b["logits"])
    about = [json.loads((tmp_path / n / "judging-build" / "predictions.json").read_text()) for n in "ab"]
    assert about[0]["frames"] == about[1]["frames"] == {"frames": 8, "seed": None}
    assert "0 clips" in cli("predict", made, *flags, tmp_path / "a").stdout


def compared(*args, status=1):
    return json.loads(cli("compare", *args, "--format", "json", "--jobs", "1", status=status).stdout)


def test_sets_of_clips_are_compared_by_their_frames(clips, made, tmp_path):
    same = compared(made, made, status=0)
    assert {each["verdict"] for each in same["operations"]} == {"identical"}
    flags = (*FLAGS, "--corruptions", "fog,video-c:bit_error", "--set")
    make_c(clips, tmp_path / "b", *flags, "parameters.fog.4.strength=3")
    shown = compared(made, tmp_path / "b", "--partial", "--output", tmp_path / "page.html")
    verdicts = {each["name"]: each["verdict"] for each in shown["operations"]}
    assert verdicts == {"clean": "identical", "fog": "too few images", "video-c:bit_error": "identical"}
    assert "4 clips" in (tmp_path / "page.html").read_text()
    table = cli("compare", made, tmp_path / "b", "--partial", status=1).stdout
    assert "4 clips" in table and "4 images" not in table


def test_clips_in_other_files_have_the_same_keys_and_no_sizes_to_compare(clips, made, tmp_path):
    make_c(clips, tmp_path / "frames", *FLAGS, "--corruptions", "fog,gaussian_noise", "--format", "png")
    shown = compared(made, tmp_path / "frames", "--partial", status=0)
    assert {each["name"] for each in shown["operations"]} == {"clean", "fog", "gaussian_noise"}
    clean = compared(made, made, "--clean-images", tmp_path / "frames" / "clean", status=0)
    assert clean["equivalent"]


def test_clips_of_unequal_length_are_compared_only_where_frames_may_be_lost(tmp_path):
    for number in range(2):
        put_frames(tmp_path / "clips" / "cat" / "ab"[number], pan(number, 8))
    names = "fog,video-c:bit_error,video-c:packet_loss"
    flags = (
        "--dataset",
        "clips",
        "--severities",
        "1",
        "--jobs",
        "1",
        "--format",
        "png",
        "--corruptions",
        names,
    )
    make_c(tmp_path / "clips", tmp_path / "a", *flags)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for folder in tmp_path.glob("b/*/1/cat/*"):
        for frame in sorted(folder.iterdir())[6:]:
            frame.unlink()
    found = compared(tmp_path / "a", tmp_path / "b")
    problems = {(each["side"], each["folder"], each["key"]) for each in found["problems"]}
    assert problems == {("B", "fog/1", "cat/a"), ("B", "fog/1", "cat/b")}
    assert "8 frames" in found["problems"][0]["reason"] and "6 frames" in found["problems"][0]["reason"]
    pairs = {v["variant"]: v["pairs"] for each in found["operations"] for v in each["variants"]}
    assert pairs == {"clean": 2, "fog/1": 0, "video-c.bit_error/1": 2, "video-c.packet_loss/1": 2}
    assert any("4 clips" in note and "unequal" in note for note in found["notes"])


def test_clips_and_images_are_not_compared(made, tmp_path):
    put_frames(tmp_path / "photos" / "cat", pan(0, 2))
    flags = ("--corruptions", "fog", "--edition", "folder", "--jobs", "1")
    make_c(tmp_path / "photos", tmp_path / "out", *flags)
    assert "clips" in cli_error("compare", made, tmp_path / "out")


def test_models_get_frames_that_are_spread_evenly():
    assert sample_frames(10, 4) == [0, 2, 4, 6]
    assert sample_frames(10, 4, 1) == [1, 3, 5, 7]
    assert sample_frames(3, 4) == [0, 0, 1, 2]
    frames = np.arange(40, dtype=np.uint8)
    drawn = {tuple(FrameSampling(8, seed).take("a", frames)) for seed in range(20)}
    assert {each[0] for each in drawn} == {0, 1, 2, 3}
    assert FrameSampling(8).take("a", frames).tolist() == [0, 4, 8, 12, 16, 20, 24, 28]


def test_the_report_tells_which_part_of_video_c_there_is(clips, made, tmp_path):
    cli("report", made, "--output", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    # Two of the twelve corruptions, at two severities; of ImageNet-C's, fog and noise.
    assert "0 of 12 corruptions" in page and "0 of 15 common" in page and "of 4 extra" not in page
    assert "Left out: video-c:frame rate." in page and "video-c." not in page
    assert "Every clip" in page and "Every image" not in page


def test_the_report_plays_the_clips_and_shows_frames(made, tmp_path):
    cli("report", made, "--output", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    # For each clip shown, the clean clip and the last severity play; a frame of the first, five of the last.
    assert page.count("data:image/webp") == 3 * (1 + 4)
    assert page.count("data:image/jpeg") == 3 * 4 * (1 + 5)
    assert "4 clips" in page and "frames at severity 4" in page


@pytest.mark.parametrize("form", ["png", "webp", "jpeg"])
def test_frames_with_one_stem_are_all_written(tmp_path, form):
    (tmp_path / "s" / "c" / "a").mkdir(parents=True)
    for number, name in enumerate(("1.png", "1.bmp", "2.png", "2.bmp")):
        Image.new("RGB", (48, 40), (40 * number,) * 3).save(tmp_path / "s" / "c" / "a" / name)
    own = {"corruptions": "contrast", "severities": 1, "jobs": 1, "quiet": True}
    robustgen.make_c("clips", source=tmp_path / "s", output=tmp_path / "o", format=form, **own)
    assert len([*(tmp_path / "o" / "clean" / "c" / "a").iterdir()]) == 4
