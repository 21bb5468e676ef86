"""Plans: what they show, what they refuse, and where an output may lie."""

import json
import re

import pytest

from tests.helpers import ONE, cli, cli_error, errors_of, make_c, put_photo, tree

# --- dry runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["make-c", "make-p"])
def test_a_dry_run_writes_nothing(photos, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = tree(photos)
    result = cli(command, "--source", photos, "--output", "out", "--dry-run", "--jobs", "1", "--limit", "2")
    assert not list(tmp_path.iterdir())
    assert tree(photos) == before
    assert "2 images of 1 of the 2 classes of the source" in result.stdout
    assert "gaussian_noise" in result.stdout
    assert f"{2 * (76 if command == 'make-c' else 10)} outputs," in result.stdout


def test_a_dry_run_over_an_output_leaves_it_alone(photos, tmp_path):
    make_c(photos, tmp_path / "out", *ONE)
    before = tree(tmp_path / "out")
    make_c(photos, tmp_path / "out", *ONE, "--dry-run", "--seed", "5")
    assert tree(tmp_path / "out") == before


def test_the_preset_of_the_encoder_is_a_key(photos, tmp_path):
    few = ("--perturbations", "tilt", "--limit", "1", "--jobs", "1", "--set")
    flags = ("make-p", "--source", photos, *few)
    cli(*flags, "video.preset=ultrafast", "--output", tmp_path / "fast")
    settings = json.loads((tmp_path / "fast" / "dataset.json").read_text())["settings"]["output"]
    assert settings["video"]["preset"] == settings["noise_video"]["preset"] == "ultrafast"
    wrong = cli_error(*flags, "video.preset=quick", "--output", tmp_path / "out")
    assert wrong.startswith("--set video.preset: unknown preset 'quick'")


@pytest.mark.parametrize(
    ("command", "flags", "key"),
    [
        ("make-c", ("--quality", "90", "--format", "png"), "quality"),
        ("make-c", ("--set", "shard_size=2", "--format", "npy", "--edition", "imagenet-64"), "shard_size"),
        ("make-p", ("--preset", "medium", "--format", "png"), "video"),
        ("make-c", ("--quality", "90", "--format", "webdataset", "--set", "shard_size=2"), None),
        ("make-p", ("--preset", "medium"), None),
    ],
)
def test_choices_without_effect_are_named(photos, tmp_path, command, flags, key):
    shown = cli(
        command, "--source", photos, "--output", tmp_path / "out", "--limit", "1", *flags, "--dry-run"
    )
    form = flags[flags.index("--format") + 1] if key else ""
    assert re.findall(r"\w+: has no effect on .*", shown.output) == (
        [f"{key}: has no effect on the format {form}"] if key else []
    )


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("fog.2.decay=0", "fog.2: cannot be used: "),
        ("pixelate.2.fraction=0", "pixelate: fraction 0 leaves no"),
    ],
)
def test_values_that_suit_no_image_are_refused_at_once(photos, tmp_path, value, says):
    flags = ("--source", photos, "--output", tmp_path / "out", "--set", f"parameters.{value}")
    assert says in cli_error("make-c", *flags)
    assert not (tmp_path / "out").exists()


# --- outputs and their names ----------------------------------------------------------------------


def test_an_output_around_its_source_is_refused(photos):
    for output in (photos.parent, photos.parent.parent):
        refusal = cli_error("make-c", "--source", photos, "--output", output)
        assert refusal.startswith(f"output {output} contains the source {photos}; ")


def test_an_output_inside_another_set_is_refused(photos, tmp_path):
    make_c(photos, tmp_path / "set", *ONE, "--limit", "1")
    inside = tmp_path / "set" / "more" / "p"
    refusal = cli_error("make-p", "--source", photos, "--output", inside)
    assert refusal.startswith(f"output {inside} ") and str(tmp_path / "set") in refusal
    assert not inside.parent.exists()


def test_arrays_of_images_of_different_sizes_are_refused_at_once(photos, tmp_path):
    flags = ("--source", photos, "--output", tmp_path / "out", "--format", "npy")
    for command in ("make-c", "make-p"):
        refusal = cli_error(command, *flags)
        assert refusal.startswith(
            "format npy: 'cat/a.JPEG' is 40 x 36, 'dog/d.JPEG' is 33 x 50: choose an edition with a size"
        )
    assert not (tmp_path / "out").exists()


def test_the_demo_does_not_pass_its_photographs_for_one_s_own(photos, tmp_path):
    message = cli_error("make-c", "--dataset", "demo", "--source", photos, "--output", tmp_path / "out")
    assert message.startswith(f"{photos}: ") and message.endswith("--dataset")
    assert not (tmp_path / "out").exists()


def test_the_first_of_two_with_one_output_name_keeps_it(tmp_path):
    for name in ("a.JPEG", "a.png", "a.jpg", "A.png"):
        put_photo(tmp_path / "src" / "c" / name, seed=len(name))
    make_c(tmp_path / "src", tmp_path / "jpeg", *ONE, status=1)
    (failure,) = errors_of(tmp_path / "jpeg")
    assert failure["key"] == "c/a.png" and "'c/a.JPEG'" in failure["reason"]
    make_c(tmp_path / "src", tmp_path / "same", *ONE, "--format", "original")
    assert len([*tmp_path.glob("same/clean/c/*")]) == 4


def test_a_damaged_image_gives_way_to_another_of_its_output_name(tmp_path):
    put_photo(tmp_path / "src" / "c" / "a.png")
    (tmp_path / "src" / "c" / "a.bmp").write_bytes(b"BM")
    make_c(tmp_path / "src", tmp_path / "out", *ONE, status=1)
    (failure,) = errors_of(tmp_path / "out")
    assert failure["key"] == "c/a.bmp" and failure["reason"].startswith("damaged BMP file: ")
    assert [path.name for path in tmp_path.glob("out/clean/c/*")] == ["a.JPEG"]
