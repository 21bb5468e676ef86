"""Whole runs: the tree that they write, byte for byte, whatever happens on the way."""

import json
import os
import re
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from robustgen import CORRUPTIONS, corrupt, perturb, prepare
from robustgen.display import progress
from robustgen.files.set_files import MANIFEST_SUMS, NOTES
from robustgen.files.storage import open_store
from robustgen.pixels.imaging.video import read_sequence
from robustgen.sets.dataset.recipes import item_rng
from robustgen.sets.dataset.run import clear
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.sources.folder import ImageFolder
from tests.helpers import (
    ONE,
    THREE,
    cli,
    cli_error,
    errors_of,
    kept,
    make_c,
    make_p,
    manifest,
    pictures,
    pixels_of,
    put_photo,
    records_of,
    spawn,
    tree,
)

NAMES = {
    "cat/a.JPEG": "cat/a.JPEG",
    "cat/b.jpg": "cat/b.jpg",
    "cat/c.png": "cat/c.JPEG",
    "dog/a.JPEG": "dog/a.JPEG",
    "dog/d.JPEG": "dog/d.JPEG",
}


FEW_VARIANTS = [f"{name}/{level}" for name in ("gaussian_noise", "contrast", "fog") for level in (1, 4)]


@pytest.fixture(scope="module")
def undisturbed(small_set):
    """The tree of one plain run over `photos` with the flags THREE."""
    return tree(small_set("c", "", *THREE))


# --- what is written ------------------------------------------------------------------------------


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


def test_another_quality_can_be_chosen(photos, tmp_path):
    make_c(photos, tmp_path / "out", *THREE, "--quality", "40", "--limit", "1")
    assert tree(tmp_path / "out")["clean/cat/a.JPEG"] == as_jpeg(pixels_of(photos / "cat/a.JPEG"), 40)


def test_an_edition_at_another_size(photos, tmp_path):
    """As the edition does it: shorter side to 8/7 of the size, then the middle."""
    make_c(photos, tmp_path / "out", *THREE, "--edition", "imagenet@96", "--format", "png")
    source = Image.fromarray(pixels_of(photos / "cat/a.JPEG"))
    resized = source.resize((round(110 * 40 / 36) // 1, 110), Image.Resampling.BILINEAR)
    left, top = round((resized.width - 96) / 2), 7
    wanted = np.asarray(resized.crop((left, top, left + 96, top + 96)))
    assert np.array_equal(pixels_of(tmp_path / "out/clean/cat/a.png"), wanted)


def test_the_demo_needs_no_images_of_one_s_own(tmp_path):
    cli("make-c", "--dataset", "smoke", "--output", tmp_path / "out", *ONE, "--no-clean")
    assert pictures(tmp_path / "out") == {
        "contrast/1/astronaut/astronaut.JPEG",
        "contrast/1/chelsea/chelsea.JPEG",
    }


# --- sequences ------------------------------------------------------------------------------------


SOME = ("--perturbations", "brightness,translate,gaussian_noise")


def sequence(photos, key, name, level=1):
    rng = item_rng(0, "p", "folder", name, level, key)
    return perturb(pixels_of(photos / key), name, edition="folder", difficulty=level, rng=rng)


def test_videos_without_loss_show_the_very_pixels(photos, tmp_path):
    config = tmp_path / "my.yaml"
    config.write_text("video: {pixel_format: rgb24, lossless: true, preset: ultrafast}")
    make_p(photos, tmp_path / "out", "--config", config, *SOME, "--jobs", "1")
    for name in ("brightness", "translate", "gaussian_noise"):
        for key in ("cat/b.jpg", "dog/d.JPEG"):
            got = read_sequence(tmp_path / "out" / name / f"{key.rpartition('.')[0]}.mp4")
            assert np.array_equal(got, sequence(photos, key, name)), (name, key)


def test_only_noises_get_further_difficulties(photos, tmp_path):
    flags = ("--perturbations", "shot_noise,rotate", "--difficulty", "all", "--format", "png", "--limit", "1")
    make_p(photos, tmp_path / "out", *flags, "--jobs", "1")
    variants = {name.split("/")[0] for name in pictures(tmp_path / "out")}
    assert variants == {"shot_noise", "shot_noise_2", "shot_noise_3", "rotate"}
    last = pixels_of(tmp_path / "out" / "shot_noise_3" / "cat" / "a" / "30.png")
    assert np.array_equal(last, sequence(photos, "cat/a.JPEG", "shot_noise", 3)[30])


# --- the same bytes on any road -------------------------------------------------------------------


def test_the_hash_seed_makes_no_difference(photos, tmp_path, undisturbed):
    command = ("make-c", "--source", photos, "--output", tmp_path / "out", *THREE)
    process = spawn(*command, PYTHONHASHSEED="77")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert tree(tmp_path / "out") == undisturbed


def test_relative_paths_and_the_current_folder_make_no_difference(photos, tmp_path, undisturbed, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        make_c(os.path.relpath(photos), "out", *THREE, "--jobs", "2")
        assert tree(tmp_path / name / "out") == undisturbed


def test_two_records_of_the_same_files(photos, tmp_path, undisturbed):
    """A run of one corruption records files again; the next run, of all, has to keep them or make them."""
    output = tmp_path / "out"
    make_c(photos, output, *THREE)
    (output / "clean/cat/a.JPEG").unlink()
    assert make_c(photos, output, *THREE, "--corruptions", "fog", "--no-clean").stdout.startswith(
        "2 images in "
    )
    assert make_c(photos, output, *THREE).stdout.startswith("5 images in ")
    assert tree(output) == undisturbed
    assert cli("verify", output).stdout.startswith("35 files checked, 0 findings")


def test_a_changed_source_image_is_made_again_once(source, tmp_path):
    photo, output = source / "cat/a.JPEG", tmp_path / "out"
    first_bytes = photo.read_bytes()
    make_c(source, output, *THREE)
    first = tree(output)
    put_photo(photo, height=48, seed=9)
    make_c(source, tmp_path / "fresh", *THREE)
    fresh = tree(tmp_path / "fresh")
    assert fresh["fog/1/cat/a.JPEG"] != first["fog/1/cat/a.JPEG"]
    for data, want in ((photo.read_bytes(), fresh), (first_bytes, first)):
        photo.write_bytes(data)
        assert make_c(source, output, *THREE).stdout.startswith("7 images in ")
        assert kept(make_c(source, output, *THREE))
        assert tree(output) == want


# --- outputs that hold something else -------------------------------------------------------------


def test_a_c_set_is_not_mixed_with_a_p_set(photos, tmp_path):
    make_c(photos, tmp_path / "out", *THREE)
    flags = ("--perturbations", "rotate", "--format", "png", "--jobs", "1")
    message = cli_error("make-p", "--source", photos, "--output", tmp_path / "out", *flags)
    assert "kind was 'c' and is now 'p'" in message


def test_files_of_others_are_not_written_over(photos, tmp_path, undisturbed):
    stranger = tmp_path / "out" / "fog" / "1" / "cat" / "a.JPEG"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("precious")
    message = cli_error("make-c", "--source", photos, "--output", tmp_path / "out", *THREE)
    assert "fog/1/cat/a.JPEG" in message
    assert stranger.read_text() == "precious"
    make_c(photos, tmp_path / "out", *THREE, "--overwrite")
    assert tree(tmp_path / "out") == undisturbed


def test_starting_over_deletes_the_notes_of_a_run_that_was_killed(photos, tmp_path):
    make_c(photos, tmp_path / "out", *ONE)
    # Killed before it had written the checksums that name them.
    (tmp_path / "out" / MANIFEST_SUMS).unlink()
    (tmp_path / "out" / NOTES).write_text("{}\n")
    (tmp_path / "out" / "own.txt").write_text("mine")
    clear(SetLedger(open_store(tmp_path / "out")))
    assert not (tmp_path / "out" / NOTES).exists() and (tmp_path / "out" / "own.txt").exists()


def test_another_source_is_refused_where_a_set_is(tmp_path):
    ours, theirs, output = tmp_path / "ours", tmp_path / "theirs", tmp_path / "out"
    put_photo(ours / "cat" / "a.JPEG", seed=1)
    put_photo(theirs / "dog" / "b.JPEG", seed=2)
    make_c(ours, output, *THREE)
    before = tree(output)
    refusal = cli_error("make-c", "--source", theirs, "--output", output, *THREE)
    assert refusal.startswith(f"{output}: ")
    assert all(each in refusal for each in ("'cat/a.JPEG'", "'dog/b.JPEG'", "--overwrite"))
    assert tree(output) == before
    make_c(theirs, output, *THREE, "--overwrite")
    assert {name.rpartition("/")[2] for name in pictures(output)} == {"b.JPEG"}
    make_c(theirs, tmp_path / "alone", *THREE)
    assert tree(output) == tree(tmp_path / "alone")


def test_a_set_without_labels_is_not_continued_with_them(tmp_path):
    put_photo(tmp_path / "flat" / "a.JPEG", seed=1)
    (tmp_path / "labels.txt").write_text("a.JPEG cat\n")
    make_c(tmp_path / "flat", tmp_path / "out", *THREE)
    labelled = ("--source", tmp_path / "flat", "--labels", tmp_path / "labels.txt")
    refusal = cli_error("make-c", *labelled, "--output", tmp_path / "out", *THREE)
    assert re.findall("'(.*?)'", refusal) == ["a.JPEG", "cat/a.JPEG"]


def test_a_run_that_cannot_begin_leaves_nothing_behind(photos, tmp_path):
    put_photo(tmp_path / "own" / "contrast" / "a.jpg")
    assert "contrast/a.jpg" in cli_error("make-c", "--source", photos, "--output", tmp_path / "own", *THREE)
    nowhere = ("--on", "dask:nowhere")
    cli_error("make-c", "--source", photos, "--output", tmp_path / "new" / "out", *THREE, *nowhere)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.jpg", "contrast", "own"]


# --- images that fail -----------------------------------------------------------------------------


def test_a_truncated_image_is_named_and_the_rest_is_made(source, tmp_path, undisturbed):
    broken = source / "cat" / "b.jpg"
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    result = make_c(source, tmp_path / "out", *THREE, status=1)
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
    assert make_c(source, tmp_path / "out", *THREE).stdout.startswith("7 images in ")
    assert tree(tmp_path / "out") == undisturbed


def test_when_all_images_fail_the_run_still_ends_properly(tmp_path):
    put_photo(tmp_path / "src" / "tiny.png", height=20)
    make_c(tmp_path / "src", tmp_path / "out", *THREE, status=1)
    (entry,) = errors_of(tmp_path / "out")
    assert entry["key"] == "tiny.png" and "40 x 20" in entry["reason"]
    assert not pictures(tmp_path / "out")


def test_an_image_that_an_edition_cannot_take_is_an_error_of_that_image(source, tmp_path):
    Image.new("RGB", (6000, 32)).save(source / "cat" / "ribbon.png")
    Image.new("RGB", (1, 1)).save(source / "cat" / "speck.png")
    make_c(source, tmp_path / "out", "--edition", "imagenet-inception", *ONE, status=1)
    assert [entry["key"] for entry in errors_of(tmp_path / "out")] == ["cat/speck.png"]


# --- what a run says and reads --------------------------------------------------------------------


def test_the_file_of_a_source_image_is_asked_for_its_size_once(photos, tmp_path, monkeypatch):
    asked = []
    stat = ImageFolder.stat
    monkeypatch.setattr(ImageFolder, "stat", lambda self, key: asked.append(key) or stat(self, key))
    make_c(photos, tmp_path / "out", *THREE)
    assert sorted(asked) == sorted(NAMES)


def test_the_default_output_is_named_after_the_source(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli("make-c", "--source", source, *THREE)
    flags = ("--perturbations", "tilt", "--format", "png", "--limit", "1", "--jobs", "1")
    cli("make-p", "--source", "src", *flags)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"src-c", "src-p"}


def test_a_quiet_run_says_only_what_failed(source, tmp_path):
    assert make_c(source, tmp_path / "out", *THREE, "--quiet").output == ""
    (source / "cat" / "z.JPEG").write_bytes(b"nothing")
    assert "cat/z.JPEG" in make_c(source, tmp_path / "out", *THREE, "--quiet", status=1).stderr


def test_each_unit_that_is_made_is_a_line_of_json(source, tmp_path):
    log = tmp_path / "log.jsonl"
    (source / "cat" / "z.JPEG").write_bytes(b"nothing")
    make_c(source, tmp_path / "out", *THREE, "--log-json", log, status=1)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    names = {name for name, record in records_of(tmp_path / "out").items() if record["images"]}
    assert {line["unit"] for line in lines} == names and len(lines) == len(names)
    assert sum(line["images"] for line in lines) == 6 and sum(line["outputs"] for line in lines) == 35
    assert sum(line["failures"] for line in lines) == 1 and all(line["seconds"] >= 0 for line in lines)
    assert sum(line["bytes"] for line in lines) == manifest(tmp_path / "out")["counts"]["bytes"]
    (source / "cat" / "z.JPEG").unlink()
    make_c(source, tmp_path / "out", *THREE, "--log-json", log)
    assert len(log.read_text().splitlines()) == len(lines)
    flags, log = ("--source", source, "--output", tmp_path / "new"), tmp_path / "no" / "log"
    assert cli_error("make-c", *flags, "--log-json", log).startswith(f"--log-json {log}: ")
    assert not (tmp_path / "new").exists()


def test_without_a_terminal_lines_tell_how_far_it_is(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BEFORE_LINES", 0)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    lines = make_c(photos, tmp_path / "out", *THREE).stderr.splitlines()
    assert re.fullmatch(r"35 of 35 images(, [\d.]+/s, 0 s left)?", lines[-1])
    few = ("--perturbations", "translate", "--limit", 2, "--jobs", 1)
    lines = cli("make-p", "--source", photos, "--output", tmp_path / "p", *few).stderr.splitlines()
    assert re.fullmatch(r"2 of 2 sequences(, [\d.]+/s, 0 s left)?", lines[-1])


# --- severities that differ by corruption --------------------------------------------------------


@pytest.mark.parametrize("form", ["jpeg", "npy", "webdataset"])
def test_each_corruption_has_its_own_severities(photos, tmp_path, form):
    flags = ("--edition", "folder@64", "--format", form, "--jobs", "1", "--severities", "1,4")
    wanted = {"clean", "fog/2", "fog/5", "contrast/3"}
    for _ in range(2):
        result = make_c(photos, tmp_path / "out", *flags, "--corruptions", "fog:2,5,contrast:3")
        assert {*manifest(tmp_path / "out")["variants"]} == wanted
    assert kept(result)
    cli("verify", tmp_path / "out", "--deep", "all")
    # Another run adds to them, and files of whole corruptions are made again with what they had.
    make_c(photos, tmp_path / "out", *flags, "--corruptions", "contrast:1,saturate:4-5")
    wanted |= {"contrast/1", "saturate/4", "saturate/5"}
    assert {*manifest(tmp_path / "out")["variants"]} == wanted
    cli("verify", tmp_path / "out", "--deep", "all")
    make_c(photos, tmp_path / "other", *flags, "--corruptions", "fog", "--severities", "2,5")
    assert whole_of(tmp_path / "out", "fog") == whole_of(tmp_path / "other", "fog") or form == "webdataset"


def whole_of(root, name):
    files = [*(root / name).rglob("*.JPEG"), *root.glob(f"{name}.npy")]
    return {path.relative_to(root): path.read_bytes() for path in files}
