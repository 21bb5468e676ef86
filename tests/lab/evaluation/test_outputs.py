"""Ten crops, and the outputs of some of the classes, in `predict` and `evaluate`."""

import json
import re

import numpy as np
import pytest
from PIL import Image
from scipy.special import softmax

import robustgen
from robustgen.errors import ConfigError, SourceError
from tests.digits import PLAIN, expected_logits, pictures, put_model
from tests.helpers import cli, cli_error, pixels_of

SIDE, CROP = 40, 32
CLASSES = (7, 1, 3)
PIXELS = {"mean": 0, "std": 1}
FOG = ("--corruptions", "fog", "--severities", "1", "--set", "constants_for=32", "--set", "format=png")
ALL = [f"digit {i}" for i in range(10)]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Digits of three of ten classes, in larger pictures."""
    root = tmp_path_factory.mktemp("outputs") / "digits"
    for i, (picture, label) in enumerate(zip(*pictures(40), strict=True)):
        if label in CLASSES:
            folder = root / f"digit {label}"
            folder.mkdir(parents=True, exist_ok=True)
            wide = np.pad(picture, ((3, 5), (2, 6), (0, 0)))
            Image.fromarray(wide).save(folder / f"{i:03d}.png")
    return root


@pytest.fixture(scope="module")
def dataset(source):
    cli("make-c", "--source", source, *FOG, "--output", source.parent / "c", "--jobs", 1)
    return source.parent / "c"


@pytest.fixture(scope="module")
def listed(source):
    """A function that writes a list of classes, by default all, and returns the flag."""

    def write(*numbers):
        path = source.parent / f"classes{numbers}.txt"
        path.write_text("\n".join([ALL[number] for number in numbers or range(10)]))
        return "--classes", path

    return write


@pytest.fixture(scope="module")
def model(source):
    return put_model(source.parent / "model.onnx")


def ten_crops(image):
    """The four corners and the centre, then those of the mirrored image, cut out one by one."""
    far, half = SIDE - CROP, (SIDE - CROP) // 2
    places = ((0, 0), (0, far), (far, 0), (far, far), (half, half))
    cut = [each[y : y + CROP, x : x + CROP] for each in (image, image[:, ::-1]) for y, x in places]
    return np.stack(cut)


def expected(image, crops, classes):
    """The logits, or with ten crops their mean probability, of an image."""
    if crops == 1:
        return expected_logits(image)[classes]
    return np.log(softmax(expected_logits(ten_crops(image))[:, classes], axis=1).mean(axis=0))


@pytest.mark.parametrize(
    "flags", [("--crops", "10"), ("--only-classes",), ("--crops", "10", "--only-classes")]
)
def test_predict_and_evaluate_choose_crops_and_classes(source, dataset, model, listed, tmp_path, flags):
    crops = 10 if "10" in flags else 1
    size = () if crops == 10 else ("--input-size", CROP)
    common = ("--model", model, *PLAIN, *listed(), *size, *flags, "--batch-size", 4)
    cli("predict", dataset, *common, "--output", tmp_path / "p")
    told = cli("evaluate", "--source", source, *FOG, *common, "--output", tmp_path / "e", "--jobs", 1).output
    files = {name: (tmp_path / name / "model/fog/1.npz") for name in "pe"}
    assert files["p"].read_bytes() == files["e"].read_bytes()
    settings = json.loads((tmp_path / "p/model/predictions.json").read_text())
    assert settings.get("crops", 1) == crops and ("mean of ten crops" in told) == (crops == 10)
    classes = sorted(CLASSES) if "--only-classes" in flags else [*range(10)]
    names = [ALL[number] for number in classes]
    assert settings.get("only_classes", names) == names
    assert ("among the 3 classes of the set" in told) == ("--only-classes" in flags)
    with np.load(files["p"]) as held:
        for key, label, logits in zip(held["keys"], held["labels"], held["logits"], strict=True):
            assert names[label] == key.split("/")[0]
            if crops == 10:
                image = pixels_of(dataset / "fog/1" / key)
                np.testing.assert_allclose(logits, expected(image, crops, classes), atol=1e-3)
        assert held["logits"].shape[1] == len(names) and held["logits"].dtype == np.float32


def test_restricted_outputs_are_those_of_all_classes(dataset, model, listed, tmp_path):
    common = ("--model", model, *PLAIN, *listed(), "--input-size", CROP)
    cli("predict", dataset, *common, "--output", tmp_path / "all")
    cli("predict", dataset, *common, "--only-classes", "--output", tmp_path / "only")
    every, own = (np.load(tmp_path / name / "model/clean.npz") for name in ("all", "only"))
    np.testing.assert_array_equal(own["logits"], every["logits"][:, sorted(CLASSES)])
    np.testing.assert_array_equal(np.array(sorted(CLASSES))[own["labels"]], every["labels"])
    told = cli_error("score", tmp_path / "all/model", tmp_path / "only/model", "--partial")
    assert "only/model: predicted among 3 classes" in told and "all of its outputs" in told
    folder = str(tmp_path / "all/model")
    with pytest.raises(SourceError, match="predicted among"):
        robustgen.score(tmp_path / "only/model", partial=True, baseline=folder)
    # Ten crops are not compared with one in silence, and neither are published values with such predictions.
    cli("predict", dataset, "--model", model, *PLAIN, *listed(), "--crops", 10, "--output", tmp_path / "ten")
    told = cli(
        "score", tmp_path / "all/model", tmp_path / "ten/model", "--partial", "--baseline", "none"
    ).output
    assert "the inputs of the models differ" in told and "ten/model: mean of ten crops" in told
    # Another choice is another folder of predictions.
    told = cli_error("predict", dataset, *common, "--output", tmp_path / "only")
    assert "only_classes" in told


def test_probabilities_are_averaged_as_they_are(source):
    def confide(images):
        return softmax(expected_logits(images), axis=1)

    keys = {"corruptions": "fog", "severities": "1", "constants_for": 32, "format": "png", "jobs": 1}
    scores = robustgen.evaluate(
        confide, source=source, crops=10, input_size=CROP, classes=ALL, **PIXELS, **keys
    )
    with np.load(f"{scores.predictions[0]}/clean.npz") as held:
        image = pixels_of(source / str(held["keys"][0]))
        logits = expected(image, 10, [*range(10)])
        np.testing.assert_allclose(held["logits"][0], logits, atol=1e-4)


@pytest.mark.parametrize(
    ("flags", "numbers", "named"),
    [
        (
            ("--crops", "10", "--input-size", "40"),
            range(10),
            "ten crops of 40 x 40 pixels need more",
        ),
        (("--crops", "10", "--input-size", "44,36"), range(10), "ten crops of 44 x 36 pixels need more"),
        (("--only-classes", "--input-size", CROP), None, "list the classes of all outputs"),
        (("--only-classes", "--input-size", CROP), (1, 3), "class 'digit 7' is not in the class list"),
        (("--only-classes", "--input-size", CROP), (1, 3, 7), "has 3 names, .* has 10 classes"),
    ],
)
def test_what_does_not_fit_is_refused(source, dataset, model, listed, tmp_path, flags, numbers, named):
    classes = () if numbers is None else listed(*numbers)
    common = ("--model", model, *PLAIN, *classes, *flags, "--output", tmp_path)
    assert re.search(named, cli_error("predict", dataset, *common))
    assert re.search(named, cli_error("evaluate", "--source", source, *FOG, *common))


def test_crops_need_a_size(source):
    with pytest.raises(ConfigError, match="give the size of a crop with input_size"):
        robustgen.evaluate(lambda images: images[:, 0, 0], source=source, crops=10, classes=ALL)
