"""make-augmix: copies by class, their files, and what is refused."""

import dataclasses
import json

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.pixels.imaging.augmix import AugMix
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.sets.dataset.recipes import item_rng
from tests.helpers import cifar_folder, cli, cli_error, kept, maker, pictures, pixels_of, put_photo, tree


@pytest.fixture
def photos(tmp_path):
    """Five photographs of two classes, one of them smaller than any corruption allows."""
    folder = tmp_path / "train"
    for i, name in enumerate(["a/one.jpg", "a/two.png", "b/drei ü.JPEG", "b/four.jpg"]):
        put_photo(folder / name, 40 + i, 50, i)
    put_photo(folder / "b" / "tiny.png", 9, 20, 9)
    return folder


make = maker("--jobs", 1, command="make-augmix")


def test_make_augmix_writes_copies_by_class(photos, tmp_path):
    result = make(photos, tmp_path / "out")
    assert result.stdout.startswith("10 images in ")
    names = ["a/one.jpg", "a/two.JPEG", "b/drei ü.JPEG", "b/four.jpg", "b/tiny.JPEG"]
    assert pictures(tmp_path / "out") == {f"augmix/{copy}/{name}" for copy in (1, 2) for name in names}
    assert kept(make(photos, tmp_path / "out")) == 10
    checked = cli("verify", tmp_path / "out", "--deep", "all")
    assert checked.output.startswith("10 files checked, 5 images regenerated, 0 findings")
    manifest = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert manifest["title"] == "AugMix" and "AugMix" in manifest["citation"]
    assert manifest["settings"]["parameters"]["augmix/2"] == dataclasses.asdict(AugMix())
    assert "corruptions" not in manifest["config"]
    put_photo(photos / "a" / "one.jpg", 40, 50, seed=77)
    found = cli("verify", tmp_path / "out", "--deep", "all", status=1).output
    assert "differs" in found and "augmix/2/a/one.jpg" in found and "two" not in found


def test_the_files_hold_what_the_function_gives(photos, tmp_path):
    choices = {"severity": 5, "width": 2, "depth": 2, "alpha": 0.5, "operations": "all"}
    flags = [part for name, value in choices.items() for part in (f"--{name}", value)]
    make(photos, tmp_path / "out", "--seed", 4, "--quality", 70, *flags)
    image = pixels_of(photos / "a" / "two.png")
    for copy in (1, 2):
        rng = item_rng(4, "augmix", "folder", "augmix", copy, "a/two.png")
        expected = encode_jpeg(robustgen.augmix(image, rng=rng, **choices), 70, optimise=True)
        assert (tmp_path / "out" / "augmix" / str(copy) / "a" / "two.JPEG").read_bytes() == expected


def test_more_copies_later_leave_the_earlier_ones_alone(photos, tmp_path):
    make(photos, tmp_path / "out", "--copies", 1)
    before = {name: content for name, content in tree(tmp_path / "out").items() if name.endswith("one.jpg")}
    make(photos, tmp_path / "out", "--copies", 3)
    after = tree(tmp_path / "out")
    assert before.items() <= after.items()
    assert len(pictures(tmp_path / "out")) == 15
    assert len({after[f"augmix/{copy}/a/one.jpg"] for copy in (1, 2, 3)}) == 3
    cli("verify", tmp_path / "out", "--deep", "all")


def test_other_parameters_on_the_same_output_are_refused(photos, tmp_path):
    make(photos, tmp_path / "out")
    message = cli_error("make-augmix", "--source", photos, "--output", tmp_path / "out", "--severity", 4)
    assert "parameters.augmix/1.severity was 3.0 and is now 4.0" in message
    assert make(photos, tmp_path / "out", "--severity", 4, "--overwrite").stdout.startswith("10 images")


def test_a_damaged_image_is_named_and_the_others_are_made(photos, tmp_path):
    (photos / "a" / "one.jpg").write_bytes((photos / "a" / "one.jpg").read_bytes()[:300])
    result = make(photos, tmp_path / "out", status=1)
    assert "'a/one.jpg'" in result.stderr
    assert len(pictures(tmp_path / "out")) == 8


def test_a_dry_run_makes_nothing(photos, tmp_path):
    output = make(photos, tmp_path / "out", "--dry-run", "--copies", 4, "--limit", 3).output
    assert "12 outputs, 4 of each image" in output
    assert not (tmp_path / "out").exists()


def test_folders_of_maps_and_lists_are_named_as_by_make_c(tmp_path):
    for place in range(3):
        put_photo(tmp_path / f"set/images/{place}.png", seed=place)
        Image.fromarray(np.eye(36, dtype=np.uint8) * place).save(
            put_photo(tmp_path / f"set/masks/{place}.png")
        )
    (tmp_path / "list.txt").write_text("0.png 0\n1.png 1\n2.png 2\n")

    def say(command, *flags):
        run = (command, "--source", tmp_path / "set", "--dry-run", "--output", tmp_path / command, *flags)
        return [line for line in cli(*run).stdout.splitlines() if "masks" in line or "column" in line]

    pictures_alone = ("--subset", f"@{tmp_path / 'list.txt'}", "--set", "file_column=1")
    assert "masks" in say("make-augmix")[0] and say("make-augmix") == say("make-c")
    (tmp_path / "list.txt").write_text("images/0.png 0\nimages/1.png 1\nimages/2.png 2\n")
    assert len(say("make-augmix", *pictures_alone)) == 1 + 4


def test_choices_come_from_a_file_too(photos, tmp_path):
    config = tmp_path / "my.yaml"
    config.write_text(f"source: {photos}\nedition: imagenet-64\ncopies: 1\nwidth: 1\nseverities: 1-3\n")
    cli("make-augmix", "--config", config, "--output", tmp_path / "out", "--jobs", 1)
    assert pixels_of(tmp_path / "out" / "augmix" / "1" / "a" / "one.jpg").shape == (64, 64, 3)
    settings = json.loads((tmp_path / "out" / "dataset.json").read_text())["settings"]
    assert settings["parameters"]["augmix/1"]["width"] == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--copies", 0], "--copies: must be greater than or equal to 1, not 0"),
        (["--severity", 0], "--severity: must be greater than or equal to 0.1, not 0.0"),
        (["--width", 101], "--width: must be less than or equal to 100, not 101"),
        (["--depth", 0], "--depth: must be -1 or 1 to 100, not 0"),
        (["--alpha", 0], "--alpha: must be greater than or equal to 0.1, not 0.0"),
        (["--operations", "every"], "--operations: must be 'augmix' or 'all', not 'every'"),
    ],
)
def test_wrong_flags_are_answered_in_one_line(photos, tmp_path, flags, message):
    error = cli_error("make-augmix", "--source", photos, "--output", tmp_path / "out", *flags)
    assert error == message
    assert not (tmp_path / "out").exists()


def test_the_images_that_models_are_scored_on_are_refused(tmp_path, monkeypatch, photos):
    output = ["--output", tmp_path / "out"]
    monkeypatch.setenv("IMAGENET_VAL", str(photos))
    message = cli_error("make-augmix", "--dataset", "imagenet", *output)
    assert message.startswith("--dataset imagenet: ") and "--source" in message
    cifar, _, _ = cifar_folder(tmp_path / "cifar")
    assert str(cifar) in cli_error("make-augmix", "--source", cifar, *output)
    (photos / "val").mkdir()
    (photos / "val" / "val_annotations.txt").write_text("")
    assert "Tiny ImageNet" in cli_error("make-augmix", "--source", photos, *output)
    assert "no source: give" in cli_error("make-augmix", *output)


def test_the_edition_of_a_data_set_goes_with_training_images(photos, tmp_path):
    make(photos, tmp_path / "out", "--dataset", "imagenet-64", "--limit", 1, "--jobs", 1)
    (name,) = {name for name in pictures(tmp_path / "out") if name.startswith("augmix/1/")}
    assert pixels_of(tmp_path / "out" / name).shape == (64, 64, 3)
