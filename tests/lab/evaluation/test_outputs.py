"""The outputs of some of the classes, in `predict` and `evaluate`."""

import json
import re

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import SourceError
from tests.digits import PLAIN, pictures, put_model
from tests.helpers import cli, cli_error

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


def test_predict_and_evaluate_choose_classes(source, dataset, model, listed, tmp_path):
    common = ("--model", model, *PLAIN, *listed(), "--input-size", CROP, "--only-classes", "--batch-size", 4)
    cli("predict", dataset, *common, "--output", tmp_path / "p")
    told = cli("evaluate", "--source", source, *FOG, *common, "--output", tmp_path / "e", "--jobs", 1).output
    files = {name: (tmp_path / name / "model/fog/1.npz") for name in "pe"}
    assert files["p"].read_bytes() == files["e"].read_bytes()
    names = [ALL[number] for number in sorted(CLASSES)]
    assert json.loads((tmp_path / "p/model/predictions.json").read_text())["only_classes"] == names
    assert "among the 3 classes of the set" in told
    with np.load(files["p"]) as held:
        assert [names[label] for label in held["labels"]] == [key.split("/")[0] for key in held["keys"]]
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
    # Another choice is another folder of predictions.
    told = cli_error("predict", dataset, *common, "--output", tmp_path / "only")
    assert "only_classes" in told


@pytest.mark.parametrize(
    ("flags", "numbers", "named"),
    [
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
