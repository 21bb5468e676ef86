"""`preprocess` of every layout."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from robustgen.pixels.imaging.cleaning import Clahe, Denoise, Median, clahe
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.sets.dataset.opening import open_set
from tests.digits import PLAIN
from tests.helpers import (
    cifar_folder,
    cli,
    cli_error,
    errors_of,
    kept,
    latest,
    make_c,
    maker,
    photo,
    pictures,
    pixels_of,
    put_photo,
    tree,
    uploaded,
)
from tests.lab.inspection.test_report import report
from tests.lab.models.test_preprocessing import FEW, IMAGES, predict
from tests.sets.dataset.test_descriptions import names_in
from tests.sets.dataset.test_detection import LINK, PROFILE
from tests.sets.formats.test_shards import FORMATS
from tests.sets.sources.test_published import make_medmnist


@pytest.mark.parametrize("cleaning", [Denoise(), Median()])
def test_a_set_is_cleaned_as_predict_does_it(set_c, model, cleaning, tmp_path):
    name = cleaning.name
    for lossless in (*set_c.glob("clean/*/*"), *set_c.glob("fog/3/*/*")):
        target = tmp_path / "png" / lossless.relative_to(set_c).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels_of(lossless)).save(target)
    preprocess(tmp_path / "png", tmp_path / "c", name=name)
    first = next((tmp_path / "c" / "fog").rglob("*.png"))
    image = pixels_of(tmp_path / "png" / first.relative_to(tmp_path / "c"))
    np.testing.assert_array_equal(pixels_of(first), cleaning.apply(image))
    cli("verify", tmp_path / "c", "--deep", "3")
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
        assert f"{tmp_path}/plain/digits: images" in told.replace("\n", " ")
        assert f"{tmp_path}/{other}/digits: {cleaning.title}" in told.replace("\n", " ")
    told = cli("score", "--partial", tmp_path / "stored", tmp_path / "asked").output
    assert "models differ" not in told


# --- whole sets ----------------------------------------------------------------------------------


def preprocess(source, output, *flags, name="clahe", status=0):
    return cli("preprocess", name, source, output, *latest("--jobs", "1", *flags), status=status)


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
    assert "plain" in table and "equalised" in table and "models differ" in " ".join(table.split())


def test_the_same_bytes_for_any_number_of_jobs_and_after_an_interruption(set_c, tmp_path):
    preprocess(set_c, tmp_path / "one")
    preprocess(set_c, tmp_path / "two", "--jobs", "2")
    preprocess(set_c, tmp_path / "parts", "--limit", "5")
    shutil.rmtree(tmp_path / "parts" / "fog" / "3")
    preprocess(set_c, tmp_path / "parts")
    assert tree(tmp_path / "one") == tree(tmp_path / "two") == tree(tmp_path / "parts")
    assert kept(preprocess(set_c, tmp_path / "one")) == 150


def test_verify_makes_them_anew(set_c, tmp_path):
    preprocess(set_c, tmp_path / "c", "--quality", "90")
    cli("verify", tmp_path / "c", "--deep", "all")
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
    cli("verify", tmp_path / "c", "--deep", "2")


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
    cli("verify", tmp_path / "out", "--deep", "all")


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
    assert "GIF" in entry["reason"] and "PNG" in entry["reason"]


def test_twice_is_refused(set_c, model, tmp_path):
    preprocess(set_c, tmp_path / "c")
    again = cli_error("preprocess", "clahe", tmp_path / "c", tmp_path / "d")
    assert again.startswith(f"{tmp_path / 'c'}: ") and again.endswith("preprocess clahe")
    flags = ("--model", model, "--output", tmp_path / "p", *PLAIN, "--clean-input", "median")
    assert "clahe" in cli_error("predict", tmp_path / "c", *flags)


def test_wrong_input_is_answered_with_one_line(set_c, tmp_path):
    def error(source, *flags, output=tmp_path / "out"):
        return cli_error("preprocess", "clahe", source, output, *flags)

    (tmp_path / "empty").mkdir()
    assert "no images" in error(tmp_path / "empty")
    assert error(tmp_path / "none").startswith(f"{tmp_path}/none: ")
    assert str(set_c / "out") in error(set_c, output=set_c / "out")
    for flag, value in (("tiles", "0"), ("clip-limit", "0"), ("clip-limit", "nan"), ("quality", "101")):
        assert f"--{flag}: " in error(set_c, f"--{flag}", value)
    np.save(tmp_path / "empty" / "fog.npy", np.zeros((5, 4), np.uint8))
    assert "fog.npy: uint8 (5, 4)" in error(tmp_path / "empty")
    assert not (tmp_path / "out").exists()


make_p = maker("--perturbations", "brightness", "--limit", "1", "--jobs", "1", command="make-p")


def test_videos_want_predict(photos, tmp_path):
    make_p(photos, tmp_path / "p")
    error = cli_error("preprocess", "clahe", tmp_path / "p", tmp_path / "out")
    assert error.startswith(f"{tmp_path / 'p'}: ") and "predict --clean-input clahe" in error


def test_frames_are_images_like_others(photos, tmp_path):
    make_p(photos, tmp_path / "p", "--format", "png")
    preprocess(tmp_path / "p", tmp_path / "out")
    before, after = open_set(tmp_path / "p"), open_set(tmp_path / "out")
    (variant,) = before.variants
    assert (after.kind, after.variants, after.keys_of(variant)) == ("p", (variant,), before.keys_of(variant))
    key = before.keys_of(variant)[0]
    equalised = [clahe(frame) for frame in before.load(variant, key)]
    np.testing.assert_array_equal(after.load(variant, key), equalised)


# --- sets of other wings' tests --------------------------------------------------------------------


def test_a_set_that_went_through_clahe_says_so(set_c, tmp_path):
    cli("preprocess", "clahe", set_c, tmp_path / "equal", "--clip-limit", "3", "--jobs", "1")
    page = report(tmp_path / "equal")
    assert all(each in page.text for each in ("CLAHE", "clip limit 3.0", "tiles 8"))
    assert "not recorded" not in page.text


def test_equalised_archives_keep_all_labels(tmp_path, chest):
    make_medmnist(chest[0], tmp_path / "out", "--corruptions", "medmnist-c:pixelate", "--severities", "1")
    cli("preprocess", "clahe", tmp_path / "out", tmp_path / "equal", "--jobs", "1")
    for name in ("clean.npz", "pixelate.npz"):
        before, after = (np.load(tmp_path / folder / name) for folder in ("out", "equal"))
        assert (before["test_labels"] == after["test_labels"]).all() and after["test_labels"].shape == (3, 14)
        assert before["test_images"].shape == after["test_images"].shape == (3, 224, 224)


def test_a_set_whose_classes_are_at_the_root_is_one_config(photos, tmp_path, load):
    cli("preprocess", "clahe", photos, tmp_path / "out")
    assert names_in(tmp_path / "out") == ["default"]
    found = load(tmp_path / "out")
    assert sorted(found["label"]) == [0, 0, 0, 1, 1]
    assert cli("verify", tmp_path / "out").output


@pytest.mark.parametrize("form", FORMATS)
def test_shards_stay_shards(sets, tmp_path, form):
    cli("preprocess", "clahe", sets / form, tmp_path / "clahe")
    equalised = open_set(tmp_path / "clahe", ["dog", "cat"])
    assert equalised.format == form and equalised.labels(equalised.variants[0]).tolist() == [1, 1, 1, 0, 0]
    cli("preprocess", "clahe", sets / "jpeg", tmp_path / "files")
    assert "identical" in cli("compare", tmp_path / "files", tmp_path / "clahe").output


def test_maps_of_labels_are_not_cleaned(cityscapes, tmp_path):
    make_c(cityscapes, tmp_path / "out", "--format", "original", "--severities", "2", *LINK)
    cli("preprocess", "clahe", tmp_path / "out", tmp_path / "clahe")
    assert not (tmp_path / "clahe" / "contrast" / "2" / "gtFine").exists()


def test_orientation_and_profile_are_kept(turned, tmp_path):
    for source in (turned.parent / "out", turned):
        cli("preprocess", "median", source, tmp_path / source.name, "--jobs", 1)
    for folder in (tmp_path / "out" / "clean", tmp_path / "out" / "contrast" / "2", tmp_path / "src"):
        for number in range(9):
            with Image.open(folder / "val" / f"{number}jpg.jpg") as image:
                assert image.getexif().get(0x0112, 0) == number and image.info["icc_profile"] == PROFILE


def test_sets_of_clips_are_refused(made, tmp_path):
    assert "clips" in cli_error("preprocess", "median", made, tmp_path / "cleaned")


def test_variants_on_a_server_are_read_at_once(output, tmp_path, gather):
    preprocess(output, tmp_path / "local")
    url = uploaded(output, f"memory://{tmp_path.name}/set")
    files = gather(r"/(contrast|gaussian_noise)/.*\.\w+$", 3)
    preprocess(url, tmp_path / "remote")
    assert pictures(tmp_path / "remote") == pictures(tmp_path / "local") and files.is_set()
    assert tree(tmp_path / "remote") == tree(tmp_path / "local")
