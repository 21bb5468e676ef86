"""`robustgen filter a` and `filter o`: decisions on arrays, then whole runs with models that tell colours."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from robustgen.errors import ArgumentError
from robustgen.lab.models.base import Classifier
from robustgen.related.filtration import ensemble, funnel, reviewing
from robustgen.related.filtration.funnel import FunnelStep, Opinions
from robustgen.settings.class_lists import read_classes
from tests.digits import interrupt_model
from tests.helpers import cli, cli_error, errors_of, put_photo, records_of, tree, uploaded

# The models see pixels from 0 to 1.
PLAIN = ("--preprocessing", "mean=0", "--preprocessing", "std=1")


# --- crops ---------------------------------------------------------------------------------------


def test_ten_crops_are_the_corners_the_centre_and_their_mirror_images():
    image = np.random.default_rng(0).integers(0, 256, (20, 31, 3), np.uint8)
    found = ensemble.CropSizes(16, 16, 20).crop(image, ten=True)
    assert found.shape == (10, 16, 16, 3)
    for half, seen in ((found[:5], image), (found[5:], image[:, ::-1])):
        # The centre of 31 - 16 = 15 columns lies at 7.5, which Python rounds to 8.
        for crop, (top, left) in zip(half, [(0, 0), (0, 15), (4, 0), (4, 15), (2, 8)], strict=True):
            np.testing.assert_array_equal(crop, seen[top : top + 16, left : left + 16])


def test_images_are_resized_by_their_shorter_side_first():
    shape = ensemble.geometry(224, 224)
    assert shape.shorter == 256 and ensemble.geometry(299, 299).shorter == 342
    wide = np.zeros((100, 300, 3), np.uint8)
    assert shape.crop(wide.transpose(1, 0, 2)).shape == (1, 224, 224, 3)
    assert ensemble.geometry(32, 32, 32).crop(wide, ten=True).shape == (10, 32, 32, 3)


# --- decisions -----------------------------------------------------------------------------------


def test_opinions_are_means_over_crops_and_models():
    # Two models, one image, two crops, three classes; the true one is 0.
    probabilities = np.array([[[[0.1, 0.7, 0.2], [0.6, 0.3, 0.1]]], [[[0.2, 0.2, 0.6], [0.0, 0.4, 0.6]]]])
    said = funnel.summarise_opinions(probabilities, np.array([0]))
    assert said.right.tolist() == [[1], [0]]
    np.testing.assert_allclose(said.truth, [[0.35], [0.1]])
    assert said.own.tolist() == [[1], [2]]
    np.testing.assert_allclose(said.sure, [[0.5], [0.6]])
    # Mean over all: 0.225, 0.4, 0.375.
    assert said.predicted.tolist() == [1]
    np.testing.assert_allclose(said.confidence, [0.4])


def test_the_prediction_is_never_the_true_class():
    probabilities = np.array([[[[0.4, 0.5, 0.1], [0.4, 0.1, 0.5]]]])
    said = funnel.summarise_opinions(probabilities, np.array([0]))
    assert said.right.tolist() == [[0]] and said.own.tolist() == [[0]]
    # Of classes 1 and 2, equally probable, the first.
    assert said.predicted.tolist() == [1] and said.confidence.tolist() == [0.3]
    assert funnel.summarise_opinions(probabilities).predicted.tolist() == [0]
    with pytest.raises(ArgumentError, match="at least two"):
        funnel.summarise_opinions(np.ones((1, 1, 1, 1)), np.array([0]))


def said_of(right, truth, predicted):
    """Opinions of which only these matter; `right` and `truth` are (models, images)."""
    truth, predicted = np.array(truth, float), np.array(predicted)
    other = np.zeros(truth.shape)
    return Opinions(np.array(right), truth, other.astype(int), other, predicted, np.zeros(predicted.shape))


FEW_SURE = [[0.15, 0.2, 0.0, 0.1], [0.0, 0.0, 0.1501, 0.15]]
# The surest model says 0.05, 0.04, 0.02, - and 0.03 of the confusion of 0 and 1.
CONFUSED = [[0.05, 0.01, 0.02, 0.01, 0.03], [0.0, 0.04, 0.01, 0.01, 0.01]]


@pytest.mark.parametrize(
    ("right", "truth", "true", "predicted", "keys", "most", "steps"),
    [
        (
            [[0, 1, 0, 0], [0, 0, 10, 0]],
            [[0.01] * 4] * 2,
            "0000",
            "1111",
            "abcd",
            15,
            "KEPT CORRECT CORRECT KEPT",
        ),
        ([[0] * 4] * 2, FEW_SURE, "0000", "1111", "abcd", 15, "KEPT CONFIDENT CONFIDENT KEPT"),
        ([[0] * 5] * 2, CONFUSED, "00000", "11121", "abcde", 2, "CROWDED CROWDED KEPT KEPT KEPT"),
        ([[0] * 5], [[0.01] * 5], "00010", "11102", "cabde", 1, "CROWDED KEPT CROWDED KEPT KEPT"),
        ([[1, 0, 0]], [[0.0, 0.5, 0.1]], "000", "111", "abc", 1, "CORRECT CONFIDENT KEPT"),
    ],
    ids=["a right crop", "over 15 %", "least sure", "directions and ties", "what has gone takes no place"],
)
def test_which_adversarial_images_stay(right, truth, true, predicted, keys, most, steps):
    said = said_of(right, truth, [*map(int, predicted)])
    found = funnel.judge_adversarial(said, np.array([*map(int, true)]), keys, per_confusion=most)
    assert [FunnelStep(step).name for step in found] == steps.split()


def test_decisions_do_not_depend_on_the_order_of_images():
    rng = np.random.default_rng(3)
    n, keys = 400, [f"{i:03d}" for i in range(400)]
    true = rng.integers(0, 4, n)
    # Few values, so that there are many ties.
    said = said_of(
        rng.integers(0, 20, (2, n)) == 0, rng.integers(0, 18, (2, n)) / 100, (true + 1 + n % 3) % 4
    )
    steps = funnel.judge_adversarial(said, true, keys)
    order = rng.permutation(n)
    again = funnel.judge_adversarial(said.select(order), true[order], [keys[i] for i in order])
    np.testing.assert_array_equal(again, steps[order])
    assert len({*steps.tolist()}) == 4
    kept = steps == FunnelStep.KEPT
    counts = [(kept & (true == t) & (said.predicted == p)).sum() for t in range(4) for p in range(4)]
    assert max(counts) == 15


def test_outliers_have_to_convince_every_model():
    said = said_of(np.zeros((2, 4), int), np.zeros((2, 4)), [0, 0, 0, 0])
    said.sure[:] = [[0.9, 0.99, 0.89, 1.0], [0.9, 0.5, 0.99, 1.0]]
    steps = funnel.judge_outlying(said, np.array([False, False, False, True]))
    assert steps.tolist() == [FunnelStep.KEPT, FunnelStep.UNSURE, FunnelStep.UNSURE, FunnelStep.KNOWN]


# --- models and candidates -----------------------------------------------------------------------


def put_model(path, *, scale=8.0, side=16, order=(0, 1, 2), probabilities=False):
    """A classifier by mean colour: its logits are `scale` times the mean red, green and blue, in `order`."""
    weights = scale * np.eye(3, dtype=np.float32)[list(order)]
    arrays = {"weights": np.ascontiguousarray(weights.T), "axes": np.array([2, 3])}
    last = "logits" if not probabilities else "scores"
    nodes = [
        helper.make_node("ReduceMean", ["images", "axes"], ["means"], keepdims=0),
        helper.make_node("MatMul", ["means", "weights"], [last]),
        *([helper.make_node("Softmax", ["scores"], ["logits"])] if probabilities else []),
    ]
    images, logits = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("images", ["n", 3, side, side]), ("logits", ["n", len(order)]))
    )
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "colours", [images], [logits], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def expected(rgb, scale=8.0):
    """Probabilities of red, green and blue for a plain image of that colour, 0 to 255."""
    powers = np.exp(scale * np.array(rgb) / 255)
    return powers / powers.sum()


def put(path, rgb, size=(20, 24), left=None):
    """A plain PNG file of the colour `rgb`, or one whose left third has another."""
    pixels = np.empty((*size, 3), np.uint8)
    pixels[:] = rgb
    if left is not None:
        pixels[:, : size[1] // 3] = left
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return put_model(tmp_path_factory.mktemp("models") / "m.onnx")


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    path = tmp_path_factory.mktemp("classes") / "classes.txt"
    path.write_text("red\ngreen\nblue\n")
    return path


@pytest.fixture(scope="module")
def candidates(tmp_path_factory):
    """Red images that are taken for blue or green, and some that are not."""
    root = tmp_path_factory.mktemp("candidates")
    put(root / "red" / "right.png", (200, 0, 0))
    put(root / "red" / "left.png", (0, 0, 255), size=(20, 80), left=(255, 0, 0))
    put(root / "red" / "sure.png", (150, 0, 190))
    for shade in range(4):
        put(root / "red" / f"blue {shade}.png", (10 * shade, 0, 220))
    put(root / "red" / "deep" / "green.png", (0, 230, 10))
    put(root / "green" / "as blue.png", (0, 0, 240), size=(40, 18))
    put(root / "green" / "right.png", (0, 250, 0))
    put(root / "blue" / "right.png", (0, 0, 200))
    return root


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def keys_of(output):
    return [entry["key"] for entry in lines_of(output / "shortlist.jsonl")]


def dropped_of(output):
    """Key to entry of the dropped images."""
    return {entry["key"]: entry for entry in lines_of(output / "dropped.jsonl")}


def funnel_of(output):
    return json.loads((output / "funnel.json").read_text())


def filter_a(candidates, model, output, *flags, status=0):
    return cli("filter", "a", candidates, "--model", model, "--output", output, *PLAIN, *flags, status=status)


def refused(command, candidates, model, output, *flags):
    return cli_error(*command.split(), candidates, "--model", model, "--output", output, *PLAIN, *flags)


# --- ImageNet-A ----------------------------------------------------------------------------------


def test_filter_a_from_candidates_to_shortlist(candidates, model, classes, tmp_path):
    output = tmp_path / "a"
    result = filter_a(candidates, model, output, "--classes", classes, "--per-confusion", "3")
    blue = [f"red/blue {shade}.png" for shade in range(3)]
    assert keys_of(output) == ["green/as blue.png", *blue, "red/deep/green.png"]
    dropped = dropped_of(output)
    right = ("blue/right.png", "green/right.png", "red/right.png", "red/left.png")
    assert {key: entry["step"] for key, entry in dropped.items()} == {
        **dict.fromkeys(right, "correct"),
        **{"red/sure.png": "confident", "red/blue 3.png": "crowded"},
    }
    assert dropped["red/right.png"]["reason"] == "m.onnx: right in 10 of 10 crops"
    # Two corners, and of the mirror image two others.
    assert dropped["red/left.png"]["reason"] == "m.onnx: right in 4 of 10 crops"
    assert re.fullmatch(r"m.onnx: true class 0\.2\d*, over 0\.15", dropped["red/sure.png"]["reason"])
    assert dropped["red/blue 3.png"]["reason"] == "rank 4 of 4 in its confusion, of which 3 stay"
    funnel = funnel_of(output)
    assert funnel["images"] == [11, 7, 6, 5]
    assert funnel["classes"] == {"blue": [1, 0, 0, 0], "green": [2, 1, 1, 1], "red": [8, 6, 5, 4]}
    assert [line.split()[-1] for line in result.stdout.splitlines()[:4]] == ["11", "7", "6", "5"]


def test_dark_candidates_are_warned_of_once(model, classes, tmp_path):
    (tmp_path / "in" / "red").mkdir(parents=True)
    for number in range(3):
        values = np.arange(480, dtype=np.uint16).reshape(20, 24) + 1000 * number
        Image.fromarray(values).save(tmp_path / "in" / "red" / f"{number}.png")
    said = filter_a(tmp_path / "in", model, tmp_path / "a", "--classes", classes).stderr
    assert said.count("in at most 16 grey levels") == said.count("warning: ") == 1


def test_entries_hold_what_each_model_says(candidates, model, classes, tmp_path):
    other = put_model(tmp_path / "other.onnx", scale=4.0)
    filter_a(candidates, model, tmp_path / "a", "--model", other, "--classes", classes)
    (entry,) = [e for e in lines_of(tmp_path / "a" / "shortlist.jsonl") if e["key"] == "red/blue 2.png"]
    strong, weak = (expected((20, 0, 220), scale) for scale in (8.0, 4.0))
    assert (entry["class"], entry["predicted"]) == ("red", "blue")
    assert entry["confidence"] == pytest.approx((strong[2] + weak[2]) / 2, abs=1e-6)
    assert entry["true_confidence"] == pytest.approx(max(strong[0], weak[0]), abs=1e-6)
    for model_entry, values, label in zip(entry["models"], (strong, weak), ("m", "other"), strict=True):
        assert model_entry["model"] == f"{label}.onnx" and model_entry["predicted"] == "blue"
        assert model_entry["confidence"] == pytest.approx(values[2], abs=1e-6)
        assert model_entry["true_confidence"] == pytest.approx(values[0], abs=1e-6)
        assert model_entry["right_crops"] == 0


def test_any_model_that_is_right_is_enough(candidates, model, classes, tmp_path):
    # This one takes blue for red.
    other = put_model(tmp_path / "other.onnx", order=(2, 1, 0))
    filter_a(candidates, model, tmp_path / "a", "--model", other, "--classes", classes)
    assert keys_of(tmp_path / "a") == ["green/as blue.png", "red/deep/green.png"]
    assert dropped_of(tmp_path / "a")["red/blue 0.png"]["reason"] == "other.onnx: right in 10 of 10 crops"


def test_without_a_class_list_the_sorted_folders_count(candidates, model, classes, tmp_path):
    sorted_model = put_model(tmp_path / "m.onnx", order=(2, 1, 0))
    filter_a(candidates, sorted_model, tmp_path / "a")
    filter_a(candidates, model, tmp_path / "b", "--classes", classes)
    assert keys_of(tmp_path / "a") == keys_of(tmp_path / "b") != []


def test_only_some_classes(candidates, model, classes, tmp_path):
    (tmp_path / "only.txt").write_text("red\nblue\n")
    flags = ("--classes", classes, "--only", tmp_path / "only.txt")
    result = filter_a(candidates, model, tmp_path / "a", *flags)
    assert "2 images of other classes skipped" in result.stdout
    entries = {entry["key"]: entry for entry in lines_of(tmp_path / "a" / "shortlist.jsonl")}
    # Green is no answer any more, so the green image is all but undecided between the two.
    assert "red/deep/green.png" not in entries
    red, _, blue = expected((20, 0, 220))
    assert entries["red/blue 2.png"]["confidence"] == pytest.approx(blue / (red + blue), abs=1e-6)
    assert funnel_of(tmp_path / "a")["passed_over"] == 2


def test_models_of_several_class_lists_meet_in_those_that_matter(candidates, model, classes, tmp_path):
    pair = put_model(tmp_path / "pair.onnx", order=(2, 0))
    (tmp_path / "pair.txt").write_text("blue\nred\n")
    lists = ("--model", pair, "--classes", classes, "--classes", tmp_path / "pair.txt")
    line = refused("filter a", candidates, model, tmp_path / "a", *lists)
    assert line.endswith("know different classes: name the relevant ones with --only")
    filter_a(candidates, model, tmp_path / "a", *lists, "--only", tmp_path / "pair.txt")
    assert keys_of(tmp_path / "a") == [f"red/blue {shade}.png" for shade in range(4)]
    entries = lines_of(tmp_path / "a" / "shortlist.jsonl")
    assert {member["predicted"] for entry in entries for member in entry["models"]} == {"blue"}


def test_probabilities_are_noticed(candidates, model, classes, tmp_path):
    soft = put_model(tmp_path / "m.onnx", probabilities=True)
    filter_a(candidates, model, tmp_path / "logits", "--classes", classes)
    filter_a(candidates, soft, tmp_path / "found", "--classes", classes)
    assert funnel_of(tmp_path / "found")["settings"]["models"][0]["outputs"] == "probabilities"
    pair = (lines_of(tmp_path / name / "shortlist.jsonl") for name in ("logits", "found"))
    for one, other in zip(*pair, strict=True):
        assert one["key"] == other["key"]
        assert one["confidence"] == pytest.approx(other["confidence"], abs=1e-5)
    # Taken for logits, nothing would be sure of anything.
    filter_a(candidates, soft, tmp_path / "wrong", "--classes", classes, "--preprocessing", "outputs=logits")
    assert keys_of(tmp_path / "wrong") != keys_of(tmp_path / "logits")


@pytest.mark.parametrize(
    ("side", "flags", "geometry"),
    [(48, (), (48, 48, 55)), ("s", ("--input-size", "20", "--resize", "30"), (20, 20, 30))],
)
def test_crops_are_of_the_size_that_the_model_takes(candidates, classes, tmp_path, side, flags, geometry):
    model = put_model(tmp_path / "sized.onnx", side=side)
    filter_a(candidates, model, tmp_path / "a", "--classes", classes, *flags)
    (member,) = funnel_of(tmp_path / "a")["settings"]["models"]
    assert member["geometry"] == dict(zip(("height", "width", "shorter"), geometry, strict=True))


def test_images_are_equalised_before_they_are_cropped(model, classes, tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 60, (40, 40, 3), np.uint8) * np.array([0, 0, 1], np.uint8)
    (tmp_path / "in" / "red").mkdir(parents=True)
    Image.fromarray(pixels).save(tmp_path / "in" / "red" / "dim.png")
    found = []
    for name, flags in (("plain", ()), ("clahe", ("--clean-input", "clahe"))):
        loose = ("--classes", classes, "--max-confidence", "1", *flags)
        filter_a(tmp_path / "in", model, tmp_path / name, *loose)
        found += [entry["confidence"] for entry in lines_of(tmp_path / name / "shortlist.jsonl")]
    assert found[0] != found[1]


# --- ImageNet-O ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """Images of no class of the models, one of a known class, and one in no folder."""
    root = tmp_path_factory.mktemp("strangers")
    put(root / "jellyfish" / "blue.png", (0, 0, 255))
    put(root / "jellyfish" / "purple.png", (200, 0, 210))
    put(root / "jellyfish" / "red.png", (240, 0, 0))
    put(root / "red" / "blue.png", (0, 0, 255))
    put(root / "green.png", (0, 200, 0))
    return root


def test_filter_o_from_candidates_to_a_shortlist(strangers, model, classes, tmp_path):
    output, flags = tmp_path / "o", ("--model", model, "--classes", classes, *PLAIN)
    result = cli("filter", "o", strangers, "--output", output, *flags)
    # The surest first.
    assert keys_of(output) == ["jellyfish/blue.png", "jellyfish/red.png", "green.png"]
    first = lines_of(output / "shortlist.jsonl")[0]
    assert first["class"] == "jellyfish" and first["predicted"] == "blue"
    assert first["confidence"] == pytest.approx(expected((0, 0, 255))[2], abs=1e-6)
    assert "true_confidence" not in first
    dropped = dropped_of(output)
    known = dropped["red/blue.png"]
    assert (known["step"], known["reason"]) == ("known", "its class is known")
    assert dropped["jellyfish/purple.png"]["step"] == "unsure"
    assert [line.split()[-1] for line in result.stdout.splitlines()[:3]] == ["5", "4", "3"]


def test_all_models_have_to_be_sure(strangers, model, classes, tmp_path):
    weak = put_model(tmp_path / "weak.onnx", scale=4.0)
    flags = ("--model", model, "--model", weak, "--classes", classes, *PLAIN)
    cli("filter", "o", strangers, "--output", tmp_path / "o", *flags, "--min-confidence", "0.96")
    assert keys_of(tmp_path / "o") == ["jellyfish/blue.png"]
    reason = dropped_of(tmp_path / "o")["jellyfish/red.png"]["reason"]
    assert re.fullmatch(r"weak.onnx: predicted with 0\.9\d*, under 0\.96", reason)


def test_only_the_centre_is_seen(model, classes, tmp_path):
    framed = np.full((32, 32, 3), (255, 0, 0), np.uint8)
    framed[6:26, 6:26] = (0, 0, 255)
    (tmp_path / "in" / "thing").mkdir(parents=True)
    Image.fromarray(framed).save(tmp_path / "in" / "thing" / "framed.png")
    flags = ("--model", model, "--classes", classes, *PLAIN, "--resize", "32")
    cli("filter", "o", tmp_path / "in", "--output", tmp_path / "o", *flags)
    (entry,) = lines_of(tmp_path / "o" / "shortlist.jsonl")
    assert entry["confidence"] == pytest.approx(expected((0, 0, 255))[2], abs=1e-6)


def test_filter_o_wants_to_know_the_classes(strangers, model, tmp_path):
    line = refused("filter o", strangers, model, tmp_path / "o")
    assert "m.onnx has 3 classes, no list of them: list the classes" in line


# --- going on ------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [3, 4, 7])
def test_a_run_goes_on_where_it_was_cut_off(candidates, model, classes, tmp_path, monkeypatch, after):
    flags = ("--classes", classes, "--batch-size", "2")
    filter_a(candidates, model, tmp_path / "whole", *flags)
    with monkeypatch.context() as patch:
        interrupt_model(patch, after)
        filter_a(candidates, model, tmp_path / "a", *flags, status=130)
    assert not (tmp_path / "a" / "shortlist.jsonl").exists()
    with monkeypatch.context() as patch:
        calls = interrupt_model(patch, 0)
        filter_a(candidates, model, tmp_path / "a", *flags)
    # Two calls each find out what the model gives; of six batches the one that was cut off is asked again.
    assert len(calls) == 2 + 6 - (after - 3)
    assert tree(tmp_path / "a") == tree(tmp_path / "whole")


def test_a_record_that_is_damaged_is_asked_for_again(candidates, model, classes, tmp_path):
    flags = ("--classes", classes, "--batch-size", "2")
    filter_a(candidates, model, tmp_path / "a", *flags)
    before = tree(tmp_path / "a")
    (last,) = [name for name, record in records_of(tmp_path / "a").items() if len(record["images"]) == 1]
    path = tmp_path / "a" / ".robustgen" / "records" / f"{last}.json"
    for content in (path.read_bytes()[:-10], path.read_bytes().replace(b"0.", b"1."), b""):
        path.write_bytes(content)
        assert "1 image predicted in" in filter_a(candidates, model, tmp_path / "a", *flags).stdout
        assert tree(tmp_path / "a") == before


def test_more_candidates_and_changed_ones_are_asked_about(candidates, model, classes, tmp_path):
    mine = Path(shutil.copytree(candidates, tmp_path / "mine"))
    flags = ("--classes", classes, "--batch-size", "2")
    filter_a(mine, model, tmp_path / "a", *flags)
    # A change behind the size is seen only when the image is read.
    victim = mine / keys_of(tmp_path / "a")[0]
    data = victim.read_bytes()
    victim.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    line = refused("filter a", mine, model, tmp_path / "a", *flags)
    assert "has changed" in line
    assert "2 images predicted in" in filter_a(mine, model, tmp_path / "a", *flags).stdout
    filter_a(mine, model, tmp_path / "changed", *flags)
    assert tree(tmp_path / "a") == tree(tmp_path / "changed")
    put(mine / "red" / "new.png", (0, 0, 200))
    put(mine / "red" / "right.png", (0, 0, 201), size=(33, 44))
    assert "2 images predicted in" in filter_a(mine, model, tmp_path / "a", *flags).stdout
    assert {"red/new.png", "red/right.png"} < {*keys_of(tmp_path / "a")}
    filter_a(mine, model, tmp_path / "more", *flags)
    assert tree(tmp_path / "a") == tree(tmp_path / "more")


@pytest.fixture
def reviewed(candidates, model, classes, tmp_path):
    filter_a(candidates, model, tmp_path / "a", "--classes", classes)
    return tmp_path / "a"


def test_candidates_and_shortlists_behind_urls(candidates, reviewed, model, classes, tmp_path):
    from fsspec.implementations.memory import MemoryFileSystem

    files = MemoryFileSystem()
    for name, data in tree(candidates).items():
        files.pipe(f"/filter/in/{name}", data)
    filter_a("memory://filter/in", model, "memory://filter/out", "--classes", classes)
    for name, data in tree(reviewed).items():
        assert files.cat(f"/filter/out/{name}") == data


def test_candidates_on_a_server_are_read_at_once(candidates, reviewed, model, classes, tmp_path, gather):
    url = uploaded(candidates, f"memory://{tmp_path.name}/in")
    # The first image is read alone.
    images = gather("/in/red/blue", 2)
    filter_a(url, model, tmp_path / "out", "--classes", classes, "--batch-size", "110")
    assert images.is_set() and keys_of(tmp_path / "out") == keys_of(reviewed)


def test_few_crops_are_shown_to_a_model_at_once(candidates, model, classes, tmp_path, monkeypatch):
    shown, call = [], Classifier.__call__
    counted = lambda self, images: shown.append(len(images)) or call(self, images)  # noqa: E731
    monkeypatch.setattr(Classifier, "__call__", counted)
    filter_a(candidates, model, tmp_path / "a", "--classes", classes)
    assert max(shown) == 20 and len(shown) > 3


def test_batches_and_several_folders_give_the_same_bytes(candidates, model, classes, tmp_path):
    for batch in ("1", "3", "64"):
        filter_a(candidates, model, tmp_path / batch, "--classes", classes, "--batch-size", batch)
    assert tree(tmp_path / "1") == tree(tmp_path / "3") == tree(tmp_path / "64")


def test_other_settings_want_another_folder(candidates, model, classes, tmp_path):
    output, flags = tmp_path / "a", ("--classes", classes)
    filter_a(candidates, model, output, *flags)
    other = put_model(tmp_path / "other.onnx", scale=4.0)
    line = refused("filter a", candidates, other, output, *flags)
    assert line.startswith(f"{output}: created with different settings: models.0.") and "--overwrite" in line
    for command, more, says in (
        ("filter a", ("--preprocessing", "pixel_scale=1"), "models.0."),
        ("filter a", ("--max-confidence", "0.3"), "thresholds.max_confidence was 0.15 and is now 0.3"),
        ("filter o", (), "set was "),
    ):
        assert says in refused(command, candidates, model, output, *flags, *more)
    assert "11 images predicted in" in filter_a(candidates, other, output, *flags, "--overwrite").stdout
    filter_a(candidates, other, tmp_path / "fresh", *flags)
    assert tree(output) == tree(tmp_path / "fresh")


def test_other_thresholds_need_no_model_again(candidates, model, classes, tmp_path):
    flags = ("--classes", classes)
    filter_a(candidates, model, tmp_path / "a", *flags)
    again = ("--max-confidence", "0.3", "--per-confusion", "1", "--overwrite")
    assert "0 images predicted in" in filter_a(candidates, model, tmp_path / "a", *flags, *again).stdout
    assert keys_of(tmp_path / "a") == ["green/as blue.png", "red/blue 0.png", "red/deep/green.png"]
    assert dropped_of(tmp_path / "a")["red/sure.png"]["step"] == "crowded"


# --- wrong input ---------------------------------------------------------------------------------


def test_images_that_cannot_be_used_are_named(candidates, model, classes, tmp_path):
    mine = Path(shutil.copytree(candidates, tmp_path / "mine"))
    (mine / "red" / "text.png").write_text("no image")
    (mine / "red" / "cut.png").write_bytes((mine / "red" / "right.png").read_bytes()[:60])
    put(mine / "red" / "two\nlines.png", (0, 0, 255))
    put(mine / "red" / "long.png", (0, 0, 255), size=(1, 65000))
    flags = ("--classes", classes, "--input-size", "400", "--resize", "2000")
    big = put_model(tmp_path / "big.onnx", side="s")
    result = filter_a(mine, big, tmp_path / "a", *flags, status=1)
    named = {entry["key"]: entry["reason"] for entry in errors_of(tmp_path / "a")}
    assert {*named} == {"red/text.png", "red/cut.png", "red/two\nlines.png", "red/long.png"}
    assert named["red/two\nlines.png"].startswith("its name has a line break")
    assert named["red/long.png"].startswith("too elongated")
    assert "4 images unusable" in result.stderr and "'red/text.png': in none of" in result.stderr
    assert "red/deep/green.png" in keys_of(tmp_path / "a")
    for key in named:
        (mine / key).unlink()
    filter_a(mine, big, tmp_path / "a", *flags)
    assert not (tmp_path / "a" / "errors.jsonl").exists()


def test_files_of_one_name_and_several_formats_are_all_candidates(model, classes, tmp_path):
    for name in ("a.png", "a.bmp", "a.JPEG"):
        put(tmp_path / "in" / "red" / name, (0, 0, 250))
    filter_a(tmp_path / "in", model, tmp_path / "a", "--classes", classes)
    assert len(keys_of(tmp_path / "a")) == 3


def test_an_empty_shortlist_is_a_result(model, classes, tmp_path):
    put(tmp_path / "in" / "red" / "a.png", (255, 0, 0))
    result = filter_a(tmp_path / "in", model, tmp_path / "a", "--classes", classes)
    assert keys_of(tmp_path / "a") == [] and result.stdout.splitlines()[3].endswith(" 0")
    assert "No candidate is left" in (tmp_path / "a" / "review.html").read_text()


@pytest.mark.parametrize(("command", "folder"), [("filter a", "red"), ("filter o", "other")])
def test_nothing_but_damaged_images(model, classes, tmp_path, command, folder):
    (tmp_path / "in" / folder).mkdir(parents=True)
    (tmp_path / "in" / folder / "a.png").write_text("no image")
    flags = ("--model", model, "--classes", classes, "--output", tmp_path / "x")
    result = cli(*command.split(), tmp_path / "in", *flags, status=1)
    assert "1 image unusable" in result.stderr and keys_of(tmp_path / "x") == []


@pytest.mark.parametrize(
    ("image", "only", "says"),
    [
        (None, None, "in: no images"),
        ("gren/a.png", None, "in: class folder: unknown class 'gren' (did you mean 'green'?)"),
        ("green/a.png", "red\nblue\n", "no image has one of the classes in ONLY"),
        ("a.png", None, "some images are not in a class folder"),
        ("red/a.png", "red\ngren\n", "ONLY: unknown class 'gren' (did you mean 'green'?) of"),
        ("red/a.png", "red\npurple\n", "ONLY: unknown class 'purple' (known: red, green, blue) of"),
        ("red/a.png", "red\nblue\nred\n", "ONLY: 'red' is listed twice"),
        ("red/a.png", "red\n", "ONLY: names fewer than two classes"),
    ],
)
def test_candidates_and_classes_that_are_none(model, classes, tmp_path, image, only, says):
    flags = ["--classes", classes]
    (tmp_path / "in").mkdir()
    if image:
        put(tmp_path / "in" / image, (0, 0, 0))
    if only:
        (tmp_path / "only.txt").write_text(only)
        flags += ["--only", tmp_path / "only.txt"]
    line = refused("filter a", tmp_path / "in", model, tmp_path / "a", *flags)
    assert says.replace("ONLY", str(tmp_path / "only.txt")) in line
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--classes", "CLASSES", "--classes", "CLASSES"), "--classes: given 2 times; give it once, or once"),
        (("--classes", "CLASSES", "--resize", "15"), "--resize: 15 pixels are fewer than the 16 of a crop"),
        (("--classes", "CLASSES", "--input-size", "20"), "takes images of 16 x 16 pixels, these are 20 x 20"),
        (("--classes", "CLASSES", "--preprocessing", "layout=NHWC"), "takes NCHW"),
        (("--classes", "missing.txt"), "--classes: missing.txt cannot be read"),
        (("--device", "TPU"), "ONNX Runtime has no TPU"),
        (("--classes", "DEEP"), "is not a list of class folders"),
        (("--max-confidence", "nan"), "--max-confidence: must be a finite number, not nan"),
        (
            ("--classes", "CLASSES", "--preprocessing", "outputs=probabilities"),
            "returns -1, which is not a probability",
        ),
    ],
)
def test_wrong_flags(candidates, model, classes, tmp_path, flags, says):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    files = {"CLASSES": classes, "DEEP": tmp_path / "deep.json"}
    flags = [files.get(flag, flag) for flag in flags]
    model = put_model(tmp_path / "minus.onnx", scale=-1.0) if "outputs=probabilities" in flags else model
    assert says in refused("filter a", candidates, model, tmp_path / "a", *flags)
    assert not (tmp_path / "a").exists()


def test_numbers_that_are_none(candidates, tmp_path):
    model = put_model(tmp_path / "nan.onnx", scale=np.nan)
    line = refused("filter a", candidates, model, tmp_path / "a")
    assert "nan.onnx: returns NaN or infinity for 'blue/right.png'" in line


def test_outputs_that_are_not_ours(candidates, model, classes, tmp_path):
    wrong = lambda output: refused("filter a", candidates, model, output, "--classes", classes)  # noqa: E731
    assert f"is inside the source {candidates}" in wrong(candidates / "out")
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file", tmp_path / "file" / "a"):
        assert wrong(output) == f"{tmp_path / 'file'}: is a file, not a folder"
    filter_a(candidates, model, tmp_path / "a", "--classes", classes)
    (tmp_path / "a" / ".robustgen" / "filter.json").write_text("{")
    assert "filter.json: cannot be read" in wrong(tmp_path / "a")


@pytest.mark.parametrize("name", ["shortlist.jsonl", "predictions.json"])
def test_outputs_of_something_else_are_left_alone(candidates, model, classes, tmp_path, name):
    (tmp_path / name).write_text("mine")
    line = refused("filter a", candidates, model, tmp_path, "--classes", classes, "--overwrite")
    assert f"no run recorded {name}" in line
    assert (tmp_path / name).read_text() == "mine"


# --- words ---------------------------------------------------------------------------------------


def test_words_for_classes(tmp_path):
    (tmp_path / "a").write_text("n00000001 tench, Tinca tinca\r\nn00000002\nn00000003\tfish\nother thing\n")
    (tmp_path / "b").write_text("n00000001 a fish")
    assert reviewing.read_words([tmp_path / "a"]) == {"n00000001": "tench, Tinca tinca", "n00000003": "fish"}
    assert reviewing.read_words([tmp_path / "a", tmp_path / "b"])["n00000001"] == "a fish"
    # As Windows' editors write it.
    (tmp_path / "d").write_text("n00000001 tench\n", encoding="utf-8-sig")
    assert reviewing.read_words([tmp_path / "d"]) == {"n00000001": "tench"}
    assert read_classes(str(tmp_path / "d")) == ["n00000001"]


@pytest.mark.parametrize("command", ["filter a", "filter o"])
def test_the_sizes_of_a_models_images_have_one_name(command):
    words = cli(*command.split(), "--help-all").stdout.split()
    assert "--input-size" in words and "--pixel-scale" not in words
    assert "--size" not in words and "--scale" not in words


def test_filtration_asks_models_of_pytorch_too(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    (tmp_path / "own_nets.py").write_text(
        "from torch import nn\n\n\ndef plain():\n"
        "    layers = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2)\n"
        "    return nn.Sequential(*layers), {'mean': 0, 'std': 1}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in "ab":
        put_photo(tmp_path / "in" / name / "x.png", 40, 40)
    (tmp_path / "names.txt").write_text("a\nb\n")
    flags = ("--classes", tmp_path / "names.txt", "--resize", "32", "--input-size", "32")
    cli("filter", "a", tmp_path / "in", "--model", "own_nets:plain", "--output", tmp_path / "a", *flags)
    asked = json.loads((tmp_path / "a" / "funnel.json").read_text())
    assert "own_nets:plain" in str(asked) and "'torch': " in str(asked)
