"""Whole runs: the tree that they write, byte for byte, whatever happens on the way."""

import json
import os
import re
import shutil
import time
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

from robustgen import CORRUPTIONS, PERTURBATIONS, corrupt, perturb, prepare
from robustgen.display import progress
from robustgen.files.storage.local import LocalStore
from robustgen.pixels.imaging.video import read_sequence
from robustgen.sets.dataset.estimate import estimate
from robustgen.sets.dataset.plan import plan_benchmark
from robustgen.sets.dataset.recipes import CorruptionRecipe, PerturbationRecipe, item_rng
from robustgen.sets.dataset.run import run_plan
from robustgen.sets.dataset.selection import sample_keys
from robustgen.sets.sources.folder import ImageFolder
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from tests.helpers import (
    cli,
    cli_error,
    errors_of,
    manifest,
    photo,
    pictures,
    pixels_of,
    put_photo,
    records_of,
    spawn,
    tree,
)
from tests.source_writers import WRITERS

NAMES = {
    "cat/a.JPEG": "cat/a.JPEG",
    "cat/b.jpg": "cat/b.jpg",
    "cat/c.png": "cat/c.JPEG",
    "dog/a.JPEG": "dog/a.JPEG",
    "dog/d.JPEG": "dog/d.JPEG",
}
# Quick ones that draw, that do not, and one of another kind of loop.
FEW = ("--corruptions", "gaussian_noise,contrast,fog", "--severities", "1,4", "--jobs", "1")
ONE = ("--corruptions", "contrast", "--severities", "1", "--jobs", "1")
FEW_VARIANTS = [f"{name}/{level}" for name in ("gaussian_noise", "contrast", "fog") for level in (1, 4)]


def make_c(source, output, *flags, status=0):
    return cli("make-c", "--source", source, "--output", output, *flags, status=status)


def make_p(source, output, *flags, status=0):
    return cli("make-p", "--source", source, "--output", output, *flags, status=status)


@pytest.fixture(scope="module")
def undisturbed(photos, tmp_path_factory):
    """The tree of one plain run over `photos` with the flags FEW."""
    output = tmp_path_factory.mktemp("undisturbed") / "out"
    make_c(photos, output, *FEW)
    return tree(output)


@pytest.fixture
def copied(photos, tmp_path):
    """A copy of `photos` that a test may change."""
    return Path(shutil.copytree(photos, tmp_path / "photos"))


# --- what is written -----------------------------------------------------------------------------


def as_jpeg(pixels, quality=85):
    file = BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality, optimize=True)
    return file.getvalue()


def test_every_corruption_is_that_of_the_python_function_in_a_published_jpeg(photos, tmp_path):
    flags = ("--edition", "imagenet-64", "--corruptions", "all", "--seed", "3", "--jobs", "1")
    make_c(photos, tmp_path / "out", *flags)
    written = tree(tmp_path / "out")
    for key, name in NAMES.items():
        image = prepare(pixels_of(photos / key), "imagenet-64")
        assert written[f"clean/{name}"] == as_jpeg(image)
        for corruption in CORRUPTIONS:
            for severity in (1, 2, 3, 4, 5):
                rng = item_rng(3, "c", "imagenet-64", corruption, severity, key)
                want = as_jpeg(corrupt(image, corruption, severity, edition="imagenet-64", rng=rng))
                assert written[f"{corruption}/{severity}/{name}"] == want, (corruption, severity, key)
    assert len(pictures(tmp_path / "out")) == 5 * (1 + 19 * 5)


def test_files_have_the_published_jpeg_settings(undisturbed):
    reference = Image.open(BytesIO(as_jpeg(photo(36, 40))))
    plain = BytesIO()
    for name in ("clean/cat/c.JPEG", "fog/4/dog/d.JPEG"):
        image = Image.open(BytesIO(undisturbed[name]))
        assert image.format == "JPEG" and image.mode == "RGB"
        assert image.quantization == reference.quantization
        assert JpegImagePlugin.get_sampling(image) == 2  # 4:2:0
        assert not image.getexif()
        image.save(plain, "JPEG", quality="keep", optimize=False)
        assert len(undisturbed[name]) < plain.tell()


def test_another_quality_can_be_chosen(photos, tmp_path):
    make_c(photos, tmp_path / "out", *FEW, "--quality", "40", "--limit", "1")
    assert tree(tmp_path / "out")["clean/cat/a.JPEG"] == as_jpeg(pixels_of(photos / "cat/a.JPEG"), 40)


# --- the same bytes on any road ------------------------------------------------------------------


def test_the_hash_seed_makes_no_difference(photos, tmp_path, undisturbed):
    command = ("make-c", "--source", photos, "--output", tmp_path / "out", *FEW)
    process = spawn(*command, PYTHONHASHSEED="77")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert tree(tmp_path / "out") == undisturbed


def test_relative_paths_and_the_current_folder_make_no_difference(photos, tmp_path, undisturbed, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        make_c(os.path.relpath(photos), "out", *FEW, "--jobs", "2")
        assert tree(tmp_path / name / "out") == undisturbed


def test_two_records_of_the_same_files(photos, tmp_path, undisturbed):
    """A run of one corruption records files again; the next run, of all, has to keep them or make them."""
    output = tmp_path / "out"
    make_c(photos, output, *FEW)
    (output / "clean/cat/a.JPEG").unlink()
    assert make_c(photos, output, *FEW, "--corruptions", "fog", "--no-clean").stdout.startswith(
        "2 images in "
    )
    assert make_c(photos, output, *FEW).stdout.startswith("5 images in ")
    assert tree(output) == undisturbed
    assert cli("verify", output).stdout.startswith("35 files checked, 0 findings")


def test_a_changed_source_image_is_made_again_once(copied, tmp_path):
    photo, output = copied / "cat/a.JPEG", tmp_path / "out"
    first_bytes = photo.read_bytes()
    make_c(copied, output, *FEW)
    first = tree(output)
    put_photo(photo, height=48, seed=9)
    make_c(copied, tmp_path / "fresh", *FEW)
    fresh = tree(tmp_path / "fresh")
    assert fresh["fog/1/cat/a.JPEG"] != first["fog/1/cat/a.JPEG"]
    for data, want in ((photo.read_bytes(), fresh), (first_bytes, first)):
        photo.write_bytes(data)
        assert make_c(copied, output, *FEW).stdout.startswith("7 images in ")
        assert "nothing to do" in make_c(copied, output, *FEW).stdout
        assert tree(output) == want


# --- outputs that hold something else ------------------------------------------------------------


def test_a_c_set_is_not_mixed_with_a_p_set(photos, tmp_path):
    make_c(photos, tmp_path / "out", *FEW)
    flags = ("--perturbations", "rotate", "--format", "png", "--jobs", "1")
    message = cli_error("make-p", "--source", photos, "--output", tmp_path / "out", *flags)
    assert "kind was 'c' and is now 'p'" in message


def test_files_of_others_are_not_written_over(photos, tmp_path, undisturbed):
    stranger = tmp_path / "out" / "fog" / "1" / "cat" / "a.JPEG"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("precious")
    message = cli_error("make-c", "--source", photos, "--output", tmp_path / "out", *FEW)
    assert "contains fog" in message
    assert stranger.read_text() == "precious"
    make_c(photos, tmp_path / "out", *FEW, "--overwrite")
    assert tree(tmp_path / "out") == undisturbed


# --- images that fail ----------------------------------------------------------------------------


def test_a_truncated_image_is_named_and_the_rest_is_made(copied, tmp_path, undisturbed):
    broken = copied / "cat" / "b.jpg"
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    result = make_c(copied, tmp_path / "out", *FEW, status=1)
    assert "cat/b.jpg" in result.stderr and "errors.jsonl" in result.stderr
    (entry,) = errors_of(tmp_path / "out")
    assert entry["key"] == "cat/b.jpg" and entry["reason"]
    want = {
        f"{variant}/{name}"
        for variant in ["clean", *FEW_VARIANTS]
        for name in NAMES.values()
        if "b.jpg" not in name
    }
    assert pictures(tmp_path / "out") == want
    # Repaired, it is made up for.
    broken.write_bytes(whole)
    assert make_c(copied, tmp_path / "out", *FEW).stdout.startswith("7 images in ")
    assert tree(tmp_path / "out") == undisturbed


def test_when_all_images_fail_the_run_still_ends_properly(tmp_path):
    put_photo(tmp_path / "src" / "tiny.png", height=20)
    make_c(tmp_path / "src", tmp_path / "out", *FEW, status=1)
    (entry,) = errors_of(tmp_path / "out")
    assert entry["key"] == "tiny.png" and "40 x 20" in entry["reason"]
    assert not pictures(tmp_path / "out")


def test_an_image_that_an_edition_cannot_take_is_an_error_of_that_image(copied, tmp_path):
    Image.new("RGB", (6000, 32)).save(copied / "cat" / "ribbon.png")
    Image.new("RGB", (1, 1)).save(copied / "cat" / "speck.png")
    make_c(copied, tmp_path / "out", "--edition", "imagenet-inception", *ONE, status=1)
    assert [entry["key"] for entry in errors_of(tmp_path / "out")] == ["cat/speck.png"]


# --- CIFAR ---------------------------------------------------------------------------------------


def test_cifar_arrays_and_labels_are_severity_major(cifar, tmp_path):
    folder, images, of_images = cifar
    names, out = ("gaussian_noise", "frost", "pixelate"), tmp_path / "out"
    make_c(folder, out, "--dataset", "cifar-10", "--corruptions", ",".join(names), "--jobs", "1")
    for name in names:
        rows = np.load(out / f"{name}.npy")
        assert rows.dtype == np.uint8 and rows.shape == (100, 32, 32, 3)
        for severity in (1, 3, 5):
            for i in (0, 7, 19):
                rng = item_rng(0, "c", "cifar-10", name, severity, f"{i:05d}")
                want = corrupt(images[i], name, severity, edition="cifar-10", rng=rng)
                assert np.array_equal(rows[(severity - 1) * 20 + i], want)
    assert np.array_equal(np.load(out / "clean.npy"), images)
    labels = np.load(out / "labels.npy")
    assert labels.dtype == np.uint8 and labels.tolist() == of_images * 5


def test_cifar_sequences(cifar, tmp_path):
    flags = ("--dataset", "cifar-10", "--perturbations", "all", "--difficulty", "all", "--limit", "4")
    make_p(cifar[0], tmp_path / "one", *flags, "--jobs", "1")
    make_p(cifar[0], tmp_path / "two", *flags, "--jobs", "2")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    noises = ("gaussian_noise", "shot_noise", "speckle_noise")
    for name in PERTURBATIONS:
        for level in (1, 2, 3) if name in noises else (1,):
            rows = np.load(tmp_path / "one" / (f"{name}.npy" if level == 1 else f"{name}_{level}.npy"))
            assert rows.dtype == np.uint8
            assert rows.shape == (4, {"translate": 16, "motion_blur": 21}.get(name, 31), 32, 32, 3)
            rng = item_rng(0, "p", "cifar-10", name, level, "00002")
            want = perturb(cifar[1][2], name, edition="cifar-10", difficulty=level, rng=rng)
            assert np.array_equal(rows[2], want), (name, level)
    assert not (tmp_path / "one" / "rotate_2.npy").exists()


# --- sequences -----------------------------------------------------------------------------------

SOME = ("--perturbations", "brightness,translate,gaussian_noise")


def sequence(photos, key, name, level=1):
    rng = item_rng(0, "p", "folder", name, level, key)
    return perturb(pixels_of(photos / key), name, edition="folder", difficulty=level, rng=rng)


def test_videos_show_the_sequences(photos, tmp_path):
    make_p(photos, tmp_path / "out", *SOME, "--jobs", "1")
    videos = {name for name in tree(tmp_path / "out") if name.endswith(".mp4")}
    assert videos == {
        f"{perturbation}/{name.rpartition('.')[0]}.mp4"
        for perturbation in ("brightness", "translate", "gaussian_noise")
        for name in NAMES
    }
    for name in ("brightness", "translate", "gaussian_noise"):
        want = sequence(photos, "cat/c.png", name).astype(int)
        got = read_sequence(tmp_path / "out" / name / "cat" / "c.mp4")
        assert got.shape == want.shape
        assert np.abs(got - want).mean() < 6


def test_videos_without_loss_show_the_very_pixels(photos, tmp_path):
    config = tmp_path / "my.yaml"
    config.write_text("video: {pixel_format: rgb24, lossless: true, preset: ultrafast}")
    make_p(photos, tmp_path / "out", "--config", config, *SOME, "--jobs", "1")
    for name in ("brightness", "translate", "gaussian_noise"):
        for key in ("cat/b.jpg", "dog/d.JPEG"):
            got = read_sequence(tmp_path / "out" / name / f"{key.rpartition('.')[0]}.mp4")
            assert np.array_equal(got, sequence(photos, key, name)), (name, key)


def test_frames_as_png_are_the_very_pixels(photos, tmp_path):
    make_p(photos, tmp_path / "out", *SOME, "--format", "png", "--limit", "2", "--jobs", "2")
    for key in ("cat/a.JPEG", "cat/b.jpg"):
        for name in ("brightness", "translate", "gaussian_noise"):
            folder = tmp_path / "out" / name / key.rpartition(".")[0]
            frames = np.stack(
                [pixels_of(folder / f"{i:02d}.png") for i in range(len(list(folder.iterdir())))]
            )
            assert np.array_equal(frames, sequence(photos, key, name)), (name, key)


def test_only_noises_get_further_difficulties(photos, tmp_path):
    flags = ("--perturbations", "shot_noise,rotate", "--difficulty", "all", "--format", "png", "--limit", "1")
    make_p(photos, tmp_path / "out", *flags, "--jobs", "1")
    variants = {name.split("/")[0] for name in pictures(tmp_path / "out")}
    assert variants == {"shot_noise", "shot_noise_2", "shot_noise_3", "rotate"}
    last = pixels_of(tmp_path / "out" / "shot_noise_3" / "cat" / "a" / "30.png")
    assert np.array_equal(last, sequence(photos, "cat/a.JPEG", "shot_noise", 3)[30])


# --- dry runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["make-c", "make-p"])
def test_a_dry_run_writes_nothing(photos, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = tree(photos)
    result = cli(command, "--source", photos, "--output", "out", "--dry-run", "--jobs", "1", "--limit", "2")
    assert not list(tmp_path.iterdir())
    assert tree(photos) == before
    assert "2 images of 1 of the 2 classes of the source, 0 refused" in result.stdout
    assert "gaussian_noise" in result.stdout
    assert f"{2 * (76 if command == 'make-c' else 10)} outputs," in result.stdout


def test_a_dry_run_over_an_output_leaves_it_alone(photos, tmp_path, undisturbed):
    make_c(photos, tmp_path / "out", *FEW)
    make_c(photos, tmp_path / "out", *FEW, "--dry-run", "--seed", "5")
    assert tree(tmp_path / "out") == undisturbed


def test_the_demo_does_not_pass_its_photographs_for_one_s_own(photos, tmp_path):
    message = cli_error("make-c", "--dataset", "demo", "--source", photos, "--output", tmp_path / "out")
    assert message == f"{photos}: the demo has its own photographs; choose another --dataset"
    assert not (tmp_path / "out").exists()


def test_the_demo_needs_no_images_of_one_s_own(tmp_path):
    cli("make-c", "--dataset", "smoke", "--output", tmp_path / "out", *ONE, "--no-clean")
    assert pictures(tmp_path / "out") == {
        "contrast/1/astronaut/astronaut.JPEG",
        "contrast/1/chelsea/chelsea.JPEG",
    }


def test_the_file_of_a_source_image_is_asked_for_its_size_once(photos, tmp_path, monkeypatch):
    asked = []
    size = ImageFolder.size
    monkeypatch.setattr(ImageFolder, "size", lambda self, key: asked.append(key) or size(self, key))
    make_c(photos, tmp_path / "out", *FEW)
    assert sorted(asked) == sorted(NAMES)


# --- the source is part of what an output is -----------------------------------------------------


def test_another_source_is_refused_where_a_set_is(tmp_path):
    ours, theirs, output = tmp_path / "ours", tmp_path / "theirs", tmp_path / "out"
    put_photo(ours / "cat" / "a.JPEG", seed=1)
    put_photo(theirs / "dog" / "b.JPEG", seed=2)
    make_c(ours, output, *FEW)
    before = tree(output)
    refusal = cli_error("make-c", "--source", theirs, "--output", output, *FEW)
    assert refusal == (
        f"{output}: created from another source: it contains 'cat/a.JPEG', "
        "this source contains 'dog/b.JPEG'. "
        "Choose another output, or start over with --overwrite"
    )
    assert tree(output) == before
    make_c(theirs, output, *FEW, "--overwrite")
    assert {name.rpartition("/")[2] for name in pictures(output)} == {"b.JPEG"}
    make_c(theirs, tmp_path / "alone", *FEW)
    assert tree(output) == tree(tmp_path / "alone")


def test_a_set_without_labels_is_not_continued_with_them(tmp_path):
    put_photo(tmp_path / "flat" / "a.JPEG", seed=1)
    (tmp_path / "labels.txt").write_text("a.JPEG cat\n")
    make_c(tmp_path / "flat", tmp_path / "out", *FEW)
    labelled = ("--source", tmp_path / "flat", "--labels", tmp_path / "labels.txt")
    refusal = cli_error("make-c", *labelled, "--output", tmp_path / "out", *FEW)
    assert "it contains 'a.JPEG', this source contains 'cat/a.JPEG'" in refusal


def test_images_that_are_added_to_a_source_are_made_too(copied, tmp_path):
    make_c(copied, tmp_path / "out", *FEW)
    put_photo(copied / "fox" / "f.JPEG", seed=8)
    assert "35 images there already" in make_c(copied, tmp_path / "out", *FEW).stdout
    assert {f"{variant}/fox/f.JPEG" for variant in FEW_VARIANTS} <= pictures(tmp_path / "out")


def test_the_default_output_is_named_after_the_source(copied, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli("make-c", "--source", copied, *FEW)
    flags = ("--perturbations", "tilt", "--format", "png", "--limit", "1", "--jobs", "1")
    cli("make-p", "--source", "photos", *flags)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"photos-c", "photos-p"}


# --- which images --------------------------------------------------------------------------------


def images_of(output, variant="clean"):
    return sorted(path.relative_to(output / variant).as_posix() for path in (output / variant).rglob("*.J*"))


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """Three classes of 6, 2 and 1 images."""
    root = tmp_path_factory.mktemp("uneven")
    for folder, count in (("a", 6), ("b", 2), ("c", 1)):
        for i in range(count):
            put_photo(root / folder / f"{i}.JPEG", seed=i)
    return root


def test_a_sample_has_of_every_class_as_many_as_can_be(uneven, tmp_path):
    counts = {}
    for size in (3, 5, 6, 9):
        make_c(uneven, tmp_path / str(size), *ONE, "--sample", size)
        names = images_of(tmp_path / str(size))
        counts[size] = [sum(name.startswith(letter) for name in names) for letter in "abc"]
    assert counts == {3: [1, 1, 1], 5: [2, 2, 1], 6: [3, 2, 1], 9: [6, 2, 1]}
    assert set(images_of(tmp_path / "3")) < set(images_of(tmp_path / "5")) < set(images_of(tmp_path / "6"))


def test_a_sample_is_decided_by_the_seed():
    keys, label = [f"{i:05d}" for i in range(1000)], lambda _: 0
    samples = [sample_keys(keys, label, 20, seed) for seed in (0, 0, 1)]
    assert samples[0] == samples[1] != samples[2]
    assert all(list(sample) == sorted(sample) for sample in samples)


def test_a_sample_of_more_images_than_there_are_is_all_of_them(uneven, tmp_path):
    make_c(uneven, tmp_path / "out", *ONE, "--sample", 100_000)
    assert manifest(tmp_path / "out")["images"] == 9
    flags = ("--source", uneven, "--output", tmp_path / "none", "--sample", "2", "--limit", "2")
    assert "sample and limit cannot be combined" in cli_error("make-c", *flags)


def test_the_keys_of_a_source_make_a_subset(uneven, tmp_path):
    keys = cli("list", "--keys", uneven).stdout
    assert keys.splitlines() == [*(f"a/{i}.JPEG" for i in range(6)), "b/0.JPEG", "b/1.JPEG", "c/0.JPEG"]
    (tmp_path / "subset.txt").write_text("".join(keys.splitlines(keepends=True)[5:7]))
    make_c(uneven, tmp_path / "out", *FEW, "--subset", f"@{tmp_path}/subset.txt")
    assert images_of(tmp_path / "out") == ["a/5.JPEG", "b/0.JPEG"]


# --- size, preset, quiet -------------------------------------------------------------------------


def test_an_edition_at_another_size(photos, tmp_path):
    """As the edition does it: shorter side to 8/7 of the size, then the middle."""
    make_c(photos, tmp_path / "out", *FEW, "--edition", "imagenet@96", "--format", "png")
    source = Image.fromarray(pixels_of(photos / "cat/a.JPEG"))
    resized = source.resize((round(110 * 40 / 36) // 1, 110), Image.Resampling.BILINEAR)
    left, top = round((resized.width - 96) / 2), 7
    wanted = np.asarray(resized.crop((left, top, left + 96, top + 96)))
    assert np.array_equal(pixels_of(tmp_path / "out/clean/cat/a.png"), wanted)


def test_cifar_has_one_size(cifar, tmp_path):
    flags = ("--edition", "cifar-10@64", "--source", cifar[0], "--output", tmp_path / "out")
    assert "cifar-10@64 is 32 x 32 pixels, and has no other size" in cli_error("make-c", *flags)


def test_the_preset_of_the_encoder_is_a_key(photos, tmp_path):
    few = ("--perturbations", "tilt", "--limit", "1", "--jobs", "1", "--set")
    make_p(photos, tmp_path / "fast", *few, "video.preset=ultrafast")
    settings = json.loads((tmp_path / "fast" / "dataset.json").read_text())["settings"]["output"]
    assert settings["video"]["preset"] == settings["noise_video"]["preset"] == "ultrafast"
    wrong = cli_error("make-p", "--source", photos, "--output", tmp_path / "out", *few, "video.preset=quick")
    assert wrong.startswith("--set video.preset: unknown preset 'quick'")


def test_a_quiet_run_says_only_what_failed(copied, tmp_path):
    assert make_c(copied, tmp_path / "out", *FEW, "--quiet").output == ""
    (copied / "cat" / "z.JPEG").write_bytes(b"nothing")
    assert "cat/z.JPEG" in make_c(copied, tmp_path / "out", *FEW, "--quiet", status=1).stderr


def test_each_unit_that_is_made_is_a_line_of_json(copied, tmp_path):
    log = tmp_path / "log.jsonl"
    (copied / "cat" / "z.JPEG").write_bytes(b"nothing")
    make_c(copied, tmp_path / "out", *FEW, "--log-json", log, status=1)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    names = {name for name, record in records_of(tmp_path / "out").items() if record["images"]}
    assert {line["unit"] for line in lines} == names and len(lines) == len(names)
    assert sum(line["images"] for line in lines) == 6 and sum(line["outputs"] for line in lines) == 35
    assert sum(line["failures"] for line in lines) == 1 and all(line["seconds"] >= 0 for line in lines)
    assert sum(line["bytes"] for line in lines) == manifest(tmp_path / "out")["counts"]["bytes"]
    (copied / "cat" / "z.JPEG").unlink()
    make_c(copied, tmp_path / "out", *FEW, "--log-json", log)
    assert len(log.read_text().splitlines()) == len(lines)
    flags, log = ("--source", copied, "--output", tmp_path / "new"), tmp_path / "no" / "log"
    assert cli_error("make-c", *flags, "--log-json", log) == f"--log-json {log}: No such file or directory"
    assert not (tmp_path / "new").exists()


def test_without_a_terminal_lines_tell_how_far_it_is(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BEFORE_LINES", 0)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    lines = make_c(photos, tmp_path / "out", *FEW).stderr.splitlines()
    assert re.fullmatch(r"35 of 35 images(, [\d.]+/s, 0 s left)?", lines[-1])
    few = ("--perturbations", "translate", "--limit", 2, "--jobs", 1)
    lines = cli("make-p", "--source", photos, "--output", tmp_path / "p", *few).stderr.splitlines()
    assert re.fullmatch(r"2 of 2 sequences(, [\d.]+/s, 0 s left)?", lines[-1])


# --- where an output may lie, and what is left of a run that could not begin ------------------------


def test_an_output_around_its_source_is_refused(copied):
    for output in (copied.parent, copied.parent.parent):
        refusal = cli_error("make-c", "--source", copied, "--output", output, *FEW)
        assert refusal == f"output {output} contains the source {copied}; choose another output"


def test_an_output_inside_another_set_is_refused(photos, tmp_path):
    make_c(photos, tmp_path / "set", *FEW, "--limit", "1")
    inside = tmp_path / "set" / "more" / "p"
    refusal = cli_error("make-p", "--source", photos, "--output", inside)
    assert refusal == f"output {inside} is inside another set, {tmp_path / 'set'}; choose another output"
    assert not inside.parent.exists()


def test_a_run_that_cannot_begin_leaves_nothing_behind(photos, tmp_path):
    put_photo(tmp_path / "own" / "contrast" / "a.jpg")
    assert "contains contrast/a.jpg" in cli_error(
        "make-c", "--source", photos, "--output", tmp_path / "own", *FEW
    )
    nowhere = ("--on", "dask:nowhere")
    cli_error("make-c", "--source", photos, "--output", tmp_path / "new" / "out", *FEW, *nowhere)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.jpg", "contrast", "own"]


def test_arrays_of_images_of_different_sizes_are_refused_at_once(photos, tmp_path):
    flags = ("--source", photos, "--output", tmp_path / "out", "--format", "npy")
    for command in ("make-c", "make-p"):
        refusal = cli_error(command, *flags)
        assert refusal.startswith(
            "format npy: 'cat/a.JPEG' is 40 x 36, 'dog/d.JPEG' is 33 x 50; all images must have one size"
        )
    assert not (tmp_path / "out").exists()


def planned(source, output, kind="c", jobs=1, **choices):
    """The plan of a run by so many processes."""
    choices |= {"source": str(source), "output": str(output), "jobs": jobs}
    return plan_benchmark(load(Config, None, choices), kind)


@pytest.fixture
def worked(monkeypatch):
    """The sizes of the images given to operations; a clock counts them instead of seconds."""
    sizes = []
    for recipe in (CorruptionRecipe, PerturbationRecipe):

        def count(self, variant, key, image, *shared, make=recipe.make):
            sizes.append(image.size)
            return make(self, variant, key, image, *shared)

        monkeypatch.setattr(recipe, "make", count)
    monkeypatch.setattr(time, "process_time", lambda: sum(sizes) / 1e9)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr("robustgen.sets.dataset.estimate._FINISHING", 0.0)
    return sizes


def test_an_estimate_is_near_to_what_the_run_does(tmp_path, worked):
    """Photographs of two sizes."""
    for i in range(6):
        put_photo(tmp_path / "src" / "a" / f"{i}.JPEG", height=300 - 150 * (i % 2), width=400, seed=i)
    plan = planned(tmp_path / "src", tmp_path / "out", severities="1-3")
    judged = estimate(plan)
    assert not (tmp_path / "out").exists()
    worked.clear()
    done = run_plan(plan)
    assert judged.outputs == done.made == len(worked)
    assert 2 / 3 < judged.size / done.size < 1.5
    assert judged.seconds * 1e9 == pytest.approx(sum(worked))


def test_an_estimate_counts_files_and_what_precedes_the_first(photos, tmp_path, worked, monkeypatch):
    written, put = [], LocalStore.put

    def count(self, *arguments, **options):
        written.append(arguments)
        return put(self, *arguments, **options)

    monkeypatch.setattr(LocalStore, "put", count)
    monkeypatch.setattr(time, "perf_counter", lambda: float(len(written)))
    judged = estimate(planned(photos, tmp_path / "out", corruptions="contrast"))
    # A file of each output, and no image is created twice in the meantime.
    assert round(judged.seconds) == judged.outputs == 30
    assert judged.starting < 1 and judged.free > judged.disk
    assert not (tmp_path / "out").exists()


def test_a_set_that_does_not_fit_is_refused_before_the_first_byte(photos, tmp_path, monkeypatch):
    flags = ("--source", photos, "--output", tmp_path / "out", "--corruptions", "contrast", "--jobs", "1")
    monkeypatch.setattr(LocalStore, "measure_free_space", lambda _: 50_000)
    tried = cli("make-c", *flags, "--dry-run")
    assert "50 kB are free" in tried.stdout
    assert tried.stderr == "warning: the set will not fit on the file system of the output\n"
    message = cli_error("make-c", *flags)
    assert "the set needs about 123 kB, but only 50 kB are free" in message
    assert not (tmp_path / "out").exists()
    # Little is missing from a set that is nearly complete.
    monkeypatch.setattr(LocalStore, "measure_free_space", lambda _: 10**9)
    cli("make-c", *flags)
    (tmp_path / "out/contrast/1/cat/a.JPEG").unlink()
    monkeypatch.setattr(LocalStore, "measure_free_space", lambda _: 50_000)
    assert cli("make-c", *flags).stdout.startswith("6 images in ")


@pytest.mark.parametrize("form", ["webdataset", "tsv"])
def test_an_estimate_counts_what_surrounds_the_images(tmp_path, form):
    """Headers and padding of archives; base64 in tables of text. The images are alike."""
    images = [photo(64, 64)] * 40
    source, own = WRITERS["table"]["tsv"](tmp_path / "tsv", images), {"edition": "folder"}
    if form != "tsv":
        source, own = WRITERS["folder"]["folder"](tmp_path / "folder", images), {"format": form}
    made = planned(source, tmp_path / "out", corruptions="contrast", **own)
    judged = estimate(made).size
    assert judged == pytest.approx(run_plan(made).size, rel=0.1)


def test_an_estimate_knows_that_a_process_may_wait_for_the_last_shard(photos, tmp_path, worked, monkeypatch):
    """Of two processes, one has 3 of 5 images in shards of 2."""
    monkeypatch.setattr("robustgen.sets.dataset.estimate.count_cores", lambda: 2)
    shards = {"corruptions": "contrast", "format": "webdataset", "shard_size": 2}
    one, two = (estimate(planned(photos, tmp_path, jobs=jobs, **shards)).seconds for jobs in (1, 2))
    assert two == pytest.approx(0.6 * one)


@pytest.mark.slow("a photograph of three million pixels")
def test_an_estimate_of_large_sequences_does_not_make_one(tmp_path, worked):
    put_photo(tmp_path / "src" / "a" / "large.JPEG", height=1500, width=2000)
    plan = planned(tmp_path / "src", tmp_path / "out", "p", perturbations="tilt")
    judged = estimate(plan)
    assert max(worked) == 448 * 448 * 3
    assert judged.seconds * 1e9 == pytest.approx(len(plan.variants) * 1500 * 2000 * 3)
