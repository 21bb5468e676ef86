"""Cleaning: `predict --clean-input`, and `preprocess` of every layout."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import ConfigError
from robustgen.lab.models import preprocessing
from robustgen.pixels.imaging.cleaning import Clahe, Denoise, Median, clahe
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.sets.dataset.opening import open_set
from tests.digits import PLAIN, put_folder
from tests.helpers import cifar_folder, cli, cli_error, errors_of, photo, pictures, pixels_of, put_photo, tree

IMAGES = 30
CLEANED = ("--clean-input", "clahe")
FEW = ("--corruptions", "gaussian_noise,fog", "--severities", "1,3", "--jobs", "1")


# --- predicting ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("cleaning", [Denoise(), Median()])
def test_a_set_is_cleaned_as_predict_does_it(set_c, model, cleaning, tmp_path):
    name = cleaning.name
    for lossless in set_c.rglob("*.JPEG"):
        target = tmp_path / "png" / lossless.relative_to(set_c).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels_of(lossless)).save(target)
    preprocess(tmp_path / "png", tmp_path / "c", name=name)
    first = next((tmp_path / "c" / "fog").rglob("*.png"))
    image = pixels_of(tmp_path / "png" / first.relative_to(tmp_path / "c"))
    np.testing.assert_array_equal(pixels_of(first), cleaning.apply(image))
    assert "0 findings" in cli("verify", tmp_path / "c", "--deep", "3").stdout
    plain = predict(tmp_path / "png", model, tmp_path / "plain")
    stored = predict(tmp_path / "c", model, tmp_path / "stored")
    asked = predict(tmp_path / "png", model, tmp_path / "asked", "--clean-input", name)
    np.testing.assert_array_equal(stored["logits"], asked["logits"])
    assert np.abs(plain["logits"] - asked["logits"]).max() > 1e-4
    about = [
        json.loads((tmp_path / each / "digits" / "predictions.json").read_text())
        for each in ("stored", "asked")
    ]
    assert about[0]["cleaned"] == about[1]["preprocessing"]["clean_input"] == cleaning.settings()
    # Cleaned and other images are not compared in silence, whichever of the two commands cleaned them.
    for other in ("stored", "asked"):
        told = cli("score", "--partial", tmp_path / "plain", tmp_path / other).output
        assert f"{tmp_path}/plain/digits: images as they are" in told.replace("\n", " ")
        assert f"{tmp_path}/{other}/digits: {cleaning.title}" in told.replace("\n", " ")
    told = cli("score", "--partial", tmp_path / "stored", tmp_path / "asked").output
    assert "the inputs of the models differ" not in told


def load(path, **own):
    return preprocessing.load_preprocessing(path and str(path), own, "imagenet")


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


# --- whole sets ----------------------------------------------------------------------------------


def preprocess(source, output, *flags, name="clahe", status=0):
    return cli("preprocess", name, source, output, "--jobs", "1", *flags, status=status)


def test_a_c_set_keeps_layout_names_and_kind_and_is_scored_beside_the_original(set_c, model, tmp_path):
    preprocess(set_c, tmp_path / "c")
    before, after = open_set(set_c), open_set(tmp_path / "c")
    assert (after.kind, after.variants) == (before.kind, before.variants)
    for variant in before.variants:
        assert before.keys_of(variant) == after.keys_of(variant)
        np.testing.assert_array_equal(before.labels(variant), after.labels(variant))
        for key in before.keys_of(variant):
            expected = encode_jpeg(clahe(pixels_of(set_c / variant.folder / key)), 95, optimise=True)
            assert (tmp_path / "c" / variant.folder / key).read_bytes() == expected
    assert after.manifest["edition"] == "folder" and after.manifest["dataset"] == before.manifest["dataset"]
    for name, folder in (("plain", set_c), ("equalised", tmp_path / "c")):
        assert len(predict(folder, model, tmp_path / name)["keys"]) == IMAGES
    table = cli("score", "--partial", tmp_path / "plain", tmp_path / "equalised").output
    assert "plain" in table and "equalised" in table and "the inputs of the models differ" in table


def test_the_same_bytes_for_any_number_of_jobs_and_after_an_interruption(set_c, tmp_path):
    preprocess(set_c, tmp_path / "one")
    preprocess(set_c, tmp_path / "two", "--jobs", "2")
    preprocess(set_c, tmp_path / "parts", "--limit", "5")
    shutil.rmtree(tmp_path / "parts" / "fog" / "3")
    preprocess(set_c, tmp_path / "parts")
    assert tree(tmp_path / "one") == tree(tmp_path / "two") == tree(tmp_path / "parts")
    assert preprocess(set_c, tmp_path / "one").stdout.startswith("nothing to do: all 150 images")


def test_verify_makes_them_anew(set_c, tmp_path):
    preprocess(set_c, tmp_path / "c", "--quality", "90")
    assert "0 findings" in cli("verify", tmp_path / "c", "--deep", "all").stdout
    victim = next((tmp_path / "c" / "fog" / "3").rglob("*.JPEG"))
    victim.write_bytes(victim.read_bytes()[:-9])
    assert "truncated fog/3" in cli("verify", tmp_path / "c", status=1).stdout


def test_other_parameters_want_another_output(set_c, tmp_path):
    preprocess(set_c, tmp_path / "c")
    error = cli_error("preprocess", "clahe", set_c, tmp_path / "c", "--tiles", "4")
    assert "clahe.tiles was 8 and is now 4" in error


@pytest.fixture(scope="module", params=["ours", "published"])
def arrays(request, tmp_path_factory):
    root = tmp_path_factory.mktemp(request.param)
    folder, _, labels = cifar_folder(root, 7)
    few = FEW if request.param == "ours" else (*FEW[:2], "--jobs", "1")
    cli("make-c", "--dataset", "cifar-10", "--source", folder, "--output", root / "c", *few)
    if request.param == "published":
        (root / "published").mkdir()
        for name in ("fog.npy", "gaussian_noise.npy", "labels.npy"):
            shutil.copy(root / "c" / name, root / "published")
        return root / "published", labels
    return root / "c", labels


def test_arrays_stay_arrays(arrays, tmp_path):
    source, labels = arrays
    preprocess(source, tmp_path / "c", "--tiles", "4")
    names = {path.name for path in source.glob("*.npy")}
    assert {path.name for path in (tmp_path / "c").glob("*.npy")} == names
    for name in names - {"labels.npy"}:
        before, after = np.load(source / name), np.load(tmp_path / "c" / name)
        np.testing.assert_array_equal(after, [clahe(image, Clahe(2.0, 4)) for image in before])
    np.testing.assert_array_equal(np.load(source / "labels.npy"), np.load(tmp_path / "c" / "labels.npy"))
    before, after = open_set(source), open_set(tmp_path / "c")
    variant = before.variants[0]
    assert (after.kind, after.variants, after.keys_of(variant)) == (
        "c",
        before.variants,
        before.keys_of(variant),
    )
    assert after.labels(variant).tolist() == labels
    assert "0 findings" in cli("verify", tmp_path / "c", "--deep", "2").stdout


def test_any_folder_keeps_names_and_formats(photos, tmp_path):
    source = tmp_path / "my photos é"
    shutil.copytree(photos, source)
    Image.fromarray(photo(40, 30)).save(source / "cat" / "t.tiff")
    Image.fromarray(photo(40, 30)).save(source / "w.webp", lossless=True)
    preprocess(source, tmp_path / "out")
    names = {path.relative_to(source).as_posix() for path in source.rglob("*.*")}
    assert {name for name in tree(tmp_path / "out") if name != "SHA256SUMS"} == names
    for name in names:
        with Image.open(source / name) as before, Image.open(tmp_path / "out" / name) as after:
            assert before.format == after.format
        if not name.lower().endswith(("jpg", "jpeg")):
            expected = clahe(pixels_of(source / name))
            np.testing.assert_array_equal(pixels_of(tmp_path / "out" / name), expected)
    assert "0 findings" in cli("verify", tmp_path / "out", "--deep", "all").stdout


def test_state_called_like_corruptions_are_a_folder_of_images(tmp_path):
    put_photo(tmp_path / "weather" / "fog" / "a.JPEG")
    put_photo(tmp_path / "weather" / "snow" / "b.JPEG")
    preprocess(tmp_path / "weather", tmp_path / "out")
    assert {"fog/a.JPEG", "snow/b.JPEG"} <= set(tree(tmp_path / "out"))


def test_an_archive_per_category_is_taken_as_it_lies(set_c, tmp_path):
    source, output = tmp_path / "src", tmp_path / "out"
    for name, category in (("fog", "weather"), ("gaussian_noise", "noise"), ("clean", ".")):
        shutil.copytree(set_c / name, source / category / name)
    preprocess(source, output)
    assert pictures(output) == pictures(source)
    before, after = ([each.folder for each in open_set(root).variants] for root in (source, output))
    assert after == before


def test_a_damaged_image_is_named_and_the_others_are_made(set_c, tmp_path):
    shutil.copytree(set_c, tmp_path / "src")
    victim = next((tmp_path / "src" / "fog" / "3").rglob("*.JPEG"))
    victim.write_bytes(victim.read_bytes()[:200])
    preprocess(tmp_path / "src", tmp_path / "out", status=1)
    (entry,) = errors_of(tmp_path / "out")
    key = victim.relative_to(tmp_path / "src/fog/3").as_posix()
    assert (entry["variant"], entry["key"]) == ("fog/3", key)
    assert len(pictures(tmp_path / "out")) == 149


def test_gif_files_are_refused_one_by_one(tmp_path):
    put_photo(tmp_path / "src" / "a.png")
    Image.fromarray(photo(40, 40)).save(tmp_path / "src" / "b.gif")
    preprocess(tmp_path / "src", tmp_path / "out", status=1)
    (entry,) = errors_of(tmp_path / "out")
    assert entry["reason"] == "GIF files cannot store the result; convert them to PNG first"


def test_twice_is_refused(set_c, model, tmp_path):
    preprocess(set_c, tmp_path / "c")
    again = cli_error("preprocess", "clahe", tmp_path / "c", tmp_path / "d")
    assert again == f"{tmp_path / 'c'}: is already the result of preprocess clahe"
    flags = ("--model", model, "--output", tmp_path / "p", *PLAIN, "--clean-input", "median")
    assert "is already the result of preprocess clahe" in cli_error("predict", tmp_path / "c", *flags)


def test_wrong_input_is_answered_with_one_line(set_c, tmp_path):
    def error(source, *flags, output=tmp_path / "out"):
        return cli_error("preprocess", "clahe", source, output, *flags)

    (tmp_path / "empty").mkdir()
    assert "no images" in error(tmp_path / "empty")
    assert error(tmp_path / "none").endswith("none: no such folder")
    assert "is inside the source" in error(set_c, output=set_c / "out")
    for flag, value in (("tiles", "0"), ("clip-limit", "0"), ("clip-limit", "nan"), ("quality", "101")):
        assert f"--{flag}: " in error(set_c, f"--{flag}", value)
    np.save(tmp_path / "empty" / "fog.npy", np.zeros((5, 4), np.uint8))
    assert "fog.npy: uint8 (5, 4) is not uint8" in error(tmp_path / "empty")
    assert not (tmp_path / "out").exists()


def make_p(photos, output, *flags):
    few = ("--perturbations", "brightness", "--limit", "1", "--jobs", "1")
    cli("make-p", "--source", photos, "--output", output, *few, *flags)


def test_videos_want_predict(photos, tmp_path):
    make_p(photos, tmp_path / "p")
    error = cli_error("preprocess", "clahe", tmp_path / "p", tmp_path / "out")
    assert error == f"{tmp_path / 'p'}: contains sequences; use robustgen predict --clean-input clahe instead"


def test_frames_are_images_like_others(photos, tmp_path):
    make_p(photos, tmp_path / "p", "--format", "png")
    preprocess(tmp_path / "p", tmp_path / "out")
    before, after = open_set(tmp_path / "p"), open_set(tmp_path / "out")
    (variant,) = before.variants
    assert (after.kind, after.variants, after.keys_of(variant)) == ("p", (variant,), before.keys_of(variant))
    key = before.keys_of(variant)[0]
    equalised = [clahe(frame) for frame in before.load(variant, key)]
    np.testing.assert_array_equal(after.load(variant, key), equalised)
