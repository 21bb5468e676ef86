"""Preparation of a model's images: the YAML file, and the cleaning that `--clean-input` names."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import ConfigError
from robustgen.lab.models import preprocessing
from robustgen.pixels.imaging.cleaning import Clahe, Denoise, Median, clahe
from tests.digits import PLAIN, put_folder
from tests.helpers import cli, cli_error, photo, pixels_of

IMAGES = 30
CLEANED = ("--clean-input", "clahe")
FEW = ("--corruptions", "gaussian_noise,fog", "--severities", "1,3", "--jobs", "1")


@pytest.fixture(scope="module")
def set_c(tmp_path_factory):
    root = tmp_path_factory.mktemp("set")
    source = put_folder(root / "digits", IMAGES)
    cli("make-c", "--source", source, "--output", root / "c", "--set", "constants_for=32", *FEW)
    return root / "c"


def predict(dataset, model, output, *flags):
    cli("predict", dataset, "--model", model, "--output", output, *PLAIN, *flags)
    with np.load(output / "digits" / "fog" / "3.npz") as archive:
        return dict(archive)


def test_the_model_sees_equalised_images(set_c, model, tmp_path):
    plain, equalised = (predict(set_c, model, tmp_path / str(f), *f) for f in ((), CLEANED))
    assert np.abs(plain["logits"] - equalised["logits"]).max() > 0.1
    # The same as predicting what was equalised beforehand and stored without loss.
    for path in set_c.rglob("*.JPEG"):
        target = tmp_path / "stored" / path.relative_to(set_c)
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(clahe(pixels_of(path))).save(target, "PNG")
    stored = predict(tmp_path / "stored", model, tmp_path / "p")
    np.testing.assert_array_equal(stored["logits"], equalised["logits"])
    assert list(stored["keys"]) == list(equalised["keys"])


def test_predictions_say_so_and_are_not_mixed(set_c, model, tmp_path):
    predict(set_c, model, tmp_path / "with", *CLEANED)
    settings = json.loads((tmp_path / "with" / "digits" / "predictions.json").read_text())
    assert settings["preprocessing"]["clean_input"] == {"clahe": {"clip_limit": 2.0, "tiles": 8}}
    error = cli_error("predict", set_c, "--model", model, "--output", tmp_path / "with", *PLAIN)
    assert "created with different settings: preprocessing." in error
    predict(set_c, model, tmp_path / "without")
    # Predictions from before there was CLAHE can be continued.
    assert (
        "clean_input"
        not in json.loads((tmp_path / "without" / "digits" / "predictions.json").read_text())["preprocessing"]
    )


def load(path, **own):
    return preprocessing.load_preprocessing([str(path)] if path else [], own, "imagenet")


def test_sequences_are_equalised_frame_by_frame():
    frames = np.stack([photo(32, 32, seed) for seed in range(3)])
    prepared = load(None, clean_input="clahe", input_size="16").prepare(frames)
    assert prepared.shape == (3, 16, 16, 3)
    np.testing.assert_array_equal(prepared[1], load(None, input_size="16").resize(clahe(frames[1])))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clean_input: clahe", Clahe(2.0, 8)),
        ("clean_input: {clahe: {tiles: 4}}", Clahe(2.0, 4)),
        ("clean_input: {clahe: {clip_limit: 3, tiles: 2}}", Clahe(3.0, 2)),
        ("clean_input: {denoise: {patch: 7}}", Denoise(7, 6, 0.6)),
        ("clean_input: median", Median(3)),
        ("clean_input: none", None),
        ("", None),
    ],
)
def test_the_yaml_key_and_the_flag_that_wins_over_it(tmp_path, text, expected):
    (tmp_path / "p.yaml").write_text(text)
    assert load(tmp_path / "p.yaml").clean_input == expected
    assert load(tmp_path / "p.yaml", clean_input="none").clean_input is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "clean_input: 2",
            "clean_input: must be clahe, denoise, median, none, or a mapping of one of them, not 2",
        ),
        ("clean_input: {clahe: {}, median: {}}", "clean_input: must be one of clahe, denoise, median"),
        ("clean_input: {}", "clean_input: must be one of clahe, denoise, median"),
        ("clean_input: {median: {size: 4}}", "clean_input.median.size: must be odd, not 4"),
        (
            "clean_input: {clahe: {tiles: 65}}",
            "clean_input.clahe.tiles: must be less than or equal to 64, not 65",
        ),
        ("clean_input: {clahe: {tiles: 2.5}}", "clean_input.clahe.tiles: must be a valid integer, not 2.5"),
        (
            "clean_input: {clahe: {clip_limt: 1}}",
            "clean_input.clahe: unknown key 'clip_limt' (did you mean 'clip_limit'?)",
        ),
    ],
)
def test_wrong_yaml(tmp_path, text, says):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "p.yaml")
    assert str(caught.value) == f"{tmp_path / 'p.yaml'}:1: {says}"


def test_scores_load_no_blur():
    loads = "import sys, robustgen.lab.scores.public, robustgen.lab.scores.scoring; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True).stdout
    assert "robustgen.lab.models.preprocessing" in loaded.split()
    assert not {"robustgen.pixels.imaging.blur", "robustgen.pixels.imaging.warps"} & {*loaded.split()}
