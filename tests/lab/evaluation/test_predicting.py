"""`robustgen predict` with a classifier of digits: every layout of data sets, going on, and wrong input."""

import json
import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from robustgen.files import ledger
from robustgen.files.storage.local import LocalStore
from robustgen.lab.evaluation.predicting import Predictor
from robustgen.lab.models import preprocessing
from robustgen.lab.models.base import FunctionModel
from robustgen.lab.models.onnx import list_weights
from robustgen.lab.models.pytorch import look_up_there
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.video import read_sequence
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.formats.base import WrittenSet
from tests.digits import (
    PLAIN,
    expected_logits,
    interrupt_model,
    logarithm,
    pictures,
    put_cifar,
    put_model,
    put_other_input,
)
from tests.helpers import (
    claim_elsewhere,
    cli,
    cli_error,
    manifest,
    pixels_of,
    published,
    records_of,
    tree,
    wait_until,
    without_beginning,
)

IMAGES = 30
FEW_C = ("--corruptions", "gaussian_noise,fog", "--severities", "3,1", "--jobs", "1")
FEW_P = ("--perturbations", "gaussian_noise,brightness", "--difficulty", "1,2", "--jobs", "1", "--limit", "6")
BATCH = ("--batch-size", "8")
VARIANTS = ["clean", "fog/1", "fog/3", "gaussian_noise/1", "gaussian_noise/3"]


def made(command, source, output, *flags):
    cli(command, "--source", source, "--output", output, *flags)
    return output


@pytest.fixture(scope="session")
def folder_c(digits, tmp_path_factory):
    flags = ("--set", "constants_for=32", "--quality", "95")
    return made("make-c", digits, tmp_path_factory.mktemp("folder") / "c", *flags, *FEW_C)


@pytest.fixture(scope="session")
def cifar_c(tmp_path_factory):
    root = tmp_path_factory.mktemp("cifar-c")
    return made("make-c", put_cifar(root, IMAGES), root / "c", "--dataset", "cifar-10", *FEW_C)


@pytest.fixture(scope="session")
def folder_p(digits, tmp_path_factory):
    flags = ("--set", "constants_for=32")
    return made("make-p", digits, tmp_path_factory.mktemp("folder") / "p", *flags, *FEW_P)


@pytest.fixture(scope="session", params=["mp4", "png", "npy"])
def set_p(request, digits, folder_p, tmp_path_factory):
    if request.param == "mp4":
        return folder_p
    root = tmp_path_factory.mktemp(f"p-{request.param}")
    flags = ("--set", "constants_for=32", "--format", request.param)
    return made("make-p", digits, root / "p", *flags, *FEW_P)


@pytest.fixture
def names(tmp_path):
    """A class list, in an order that is not the sorted one."""
    path = tmp_path / "names.txt"
    path.write_text("".join(f"digit {i}\n" for i in range(10)))
    return path


def predict(dataset, model, output, *flags, status=0):
    return cli("predict", dataset, "--model", model, "--output", output, *PLAIN, *flags, status=status)


def place(output):
    """The folder of the only model below `output`; `output` itself if it holds predictions."""
    return next((path.parent for path in output.glob("*/predictions.json")), output)


def held(output, variant):
    with np.load(place(output) / f"{variant}.npz") as archive:
        return dict(archive)


def files_of(output):
    root = place(output)
    return sorted(p.relative_to(root).with_suffix("").as_posix() for p in root.rglob("*.npz"))


def folders_of(found):
    """The class folder of each key."""
    return [key.partition("/")[0] for key in found["keys"]]


def assert_same_rows(ours, theirs, atol=1e-4):
    """Hold two files of predictions to the same keys and labels, and nearly the same logits."""
    assert set(ours) == set(theirs)
    np.testing.assert_array_equal(ours["keys"], theirs["keys"])
    np.testing.assert_array_equal(ours["labels"], theirs["labels"])
    np.testing.assert_allclose(ours["logits"], theirs["logits"], atol=atol)


def broken_copy(dataset, tmp_path):
    """A copy of a set that a test may damage."""
    return Path(shutil.copytree(dataset, tmp_path / "broken"))


# --- what is written -----------------------------------------------------------------------------


def test_logits_of_a_tree_are_those_of_the_classifier(folder_c, model, tmp_path):
    predict(folder_c, model, tmp_path / "p", "--batch-size", "7")
    assert files_of(tmp_path / "p") == VARIANTS
    for variant in VARIANTS:
        found = held(tmp_path / "p", variant)
        assert set(found) == {"logits", "labels", "keys"}
        assert list(found["keys"]) == sorted(
            p.relative_to(folder_c / variant).as_posix() for p in (folder_c / variant).rglob("*.JPEG")
        )
        assert [f"digit {label}" for label in found["labels"]] == folders_of(found)
        images = np.stack([pixels_of(folder_c / variant / key) for key in found["keys"]])
        np.testing.assert_allclose(found["logits"], expected_logits(images), atol=1e-4)
        assert found["logits"].dtype == np.float32
    clean = held(tmp_path / "p", "clean")
    assert np.mean(clean["logits"].argmax(1) == clean["labels"]) > 0.85


@pytest.mark.parametrize("form", ["webdataset", "parquet"])
def test_predictions_from_shards_are_those_from_files(digits, folder_c, model, names, tmp_path, form):
    flags = ("--set", "constants_for=32", "--quality", "95", "--format", form, "--set", "shard_size=7")
    shards = made("make-c", digits, tmp_path / form, *flags, *FEW_C)
    for data, output in ((folder_c, tmp_path / "files-preds"), (shards, tmp_path / "preds")):
        predict(data, model, output, "--classes", names)
    assert files_of(tmp_path / "preds") == VARIANTS
    for variant in VARIANTS:
        assert_same_rows(held(tmp_path / "files-preds", variant), held(tmp_path / "preds", variant), atol=0)


def test_a_quiet_command_prints_nothing(folder_c, model, tmp_path):
    result = cli("predict", folder_c, "--model", model, "--output", tmp_path / "out", *PLAIN, "--quiet")
    assert result.output == "" and (tmp_path / "out/digits/clean.npz").is_file()


def test_logits_of_arrays_are_those_of_the_classifier(cifar_c, model, tmp_path):
    predict(cifar_c, model, tmp_path / "p")
    assert files_of(tmp_path / "p") == VARIANTS
    images, labels = pictures(IMAGES)
    clean = held(tmp_path / "p", "clean")
    np.testing.assert_array_equal(clean["labels"], labels)
    assert list(clean["keys"][:2]) == ["00000", "00001"]
    # Severity 3 was asked for first, but arrays begin with the lowest.
    rows = np.load(cifar_c / "fog.npy")
    for variant, pixels in (("clean", images), ("fog/1", rows[:IMAGES]), ("fog/3", rows[IMAGES:])):
        found = held(tmp_path / "p", variant)["logits"]
        np.testing.assert_allclose(found, expected_logits(pixels), atol=1e-4)


def test_top5_of_sequences_in_every_format(set_p, model, names, tmp_path):
    arrays = any(set_p.glob("*.npy"))
    predict(set_p, model, tmp_path / "p", *(() if arrays else ("--classes", names)))
    assert files_of(tmp_path / "p") == ["brightness", "gaussian_noise", "gaussian_noise_2"]
    for variant in files_of(tmp_path / "p"):
        found = held(tmp_path / "p", variant)
        if arrays:
            frames = read_sequence(set_p / f"{variant}.npy")
        else:
            paths = [p if (p := set_p / variant / key).is_dir() else f"{p}.mp4" for key in found["keys"]]
            frames = np.stack([read_sequence(Path(path)) for path in paths])
        logits = expected_logits(frames)
        assert found["top5"].shape == (*frames.shape[:2], 5) and found["classes"] == 10
        np.testing.assert_array_equal(found["top1"], found["top5"][..., 0])
        agree = found["top5"] == np.argsort(-logits, axis=-1)[..., :5]
        assert agree.mean() > 0.995  # float32 may exchange neighbours
        assert len(found["labels"]) == len(found["keys"]) == 6


def test_what_is_saved_can_be_chosen(folder_c, set_p, model, names, tmp_path):
    predict(folder_c, model, tmp_path / "c", "--save", "top5")
    assert {"top1", "top5", "labels", "keys"} < set(held(tmp_path / "c", "fog/3"))
    flags = () if any(set_p.glob("*.npy")) else ("--classes", names)
    predict(set_p, model, tmp_path / "p", "--save", "logits", *flags)
    assert held(tmp_path / "p", "brightness")["logits"].shape[0::2] == (6, 10)


@pytest.mark.parametrize("nested", [False, True])
def test_published_trees_need_no_manifest(folder_c, model, tmp_path, nested):
    root = published(folder_c, tmp_path / "published")
    (root / "dataset.json").unlink()
    if nested:
        for name, group in (("gaussian_noise", "noise"), ("fog", "weather")):
            (root / group).mkdir()
            (root / name).rename(root / group / name)
    predict(folder_c, model, tmp_path / "with")
    predict(root, model, tmp_path / "without")
    variants = [variant for variant in VARIANTS if variant != "clean"] if nested else VARIANTS
    assert files_of(tmp_path / "without") == variants
    for variant in variants:
        ours, theirs = (held(tmp_path / name, variant)["logits"] for name in ("with", "without"))
        np.testing.assert_array_equal(ours, theirs)


def test_published_arrays_have_five_severities(model, tmp_path):
    images, labels = pictures(4)
    root = tmp_path / "CIFAR-10-C"
    root.mkdir()
    np.save(root / "fog.npy", np.concatenate([images // divisor for divisor in range(1, 6)]))
    np.save(root / "labels.npy", np.tile(labels, 5))
    predict(root, model, tmp_path / "p")
    assert files_of(tmp_path / "p") == [f"fog/{level}" for level in range(1, 6)]
    np.testing.assert_allclose(
        held(tmp_path / "p", "fog/4")["logits"], expected_logits(images // 4), atol=1e-4
    )


def test_published_sequences_may_lack_labels(model, tmp_path):
    frames = np.stack([pictures(8)[0]] * 3)
    (tmp_path / "P").mkdir()
    np.save(tmp_path / "P" / "tilt.npy", frames)
    predict(tmp_path / "P", model, tmp_path / "p")
    assert set(held(tmp_path / "p", "tilt")) == {"top1", "top5", "classes", "keys"}


# --- models and preprocessing --------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"layout": "NHWC"}, {"batch": 4}, {"batch": 1}, {"sides": ("h", "w")}, {"dtype": np.float16}],
    ids=str,
)
def test_other_inputs_give_the_same_predictions(cifar_c, tmp_path, options):
    predict(cifar_c, put_model(tmp_path / "m.onnx", **options), tmp_path / "p", "--batch-size", "7")
    logits = held(tmp_path / "p", "clean")["logits"]
    assert logits.dtype == options.get("dtype", np.float32)
    tolerance = 0.05 if logits.dtype == np.float16 else 1e-4
    np.testing.assert_allclose(logits, expected_logits(pictures(IMAGES)[0]), atol=tolerance)


def test_a_yaml_file_does_what_the_flags_do(folder_c, model, tmp_path):
    (tmp_path / "names.json").write_text(json.dumps([f"digit {i}" for i in range(10)]))
    (tmp_path / "own.yaml").write_text(
        "mean: [1, 2, 3]\nstd: 4\npixel_scale: 0.5\nlayout: NCHW\ninput_size: 32\nclasses: names.json\n"
    )
    keys = ("mean=1,2,3", "std=4", "pixel_scale=0.5", "layout=nchw")
    scaled = [word for key in keys for word in ("--preprocessing", key)]
    common = ("predict", folder_c, "--model", model, "--output")
    cli(*common, tmp_path / "a", "--preprocessing", tmp_path / "own.yaml")
    cli(*common, tmp_path / "b", *scaled, "--classes", tmp_path / "names.json", "--input-size", "32,32")
    written, flagged = tree(tmp_path / "a"), tree(tmp_path / "b")
    # They tell where the settings come from.
    told = [json.loads(each.pop("digits/predictions.json")) for each in (written, flagged)]
    assert [each.pop("origins")["mean"] for each in told] == ["own.yaml", "given"]
    assert written == flagged and told[0] == told[1]
    cli(*common, tmp_path / "c")
    assert not np.allclose(held(tmp_path / "a", "clean")["logits"], held(tmp_path / "c", "clean")["logits"])


def test_the_default_is_that_of_the_edition(folder_c, cifar_c, model, tmp_path):
    for dataset, preset in ((folder_c, "imagenet"), (cifar_c, "cifar-10")):
        common = ("predict", dataset, "--model", model, "--output")
        (line,) = cli(*common, tmp_path / preset / "a").stderr.splitlines()
        assert line.startswith("input of digits: mean 0.4") and line.count(f"(default {preset})") == 2
        (line,) = cli(*common, tmp_path / preset / "b", "--preprocessing", preset).stderr.splitlines()
        assert line.count(f"({preset})") == 2 and line.endswith("scale 1/255 (default), size of the images")
        (line,) = cli(*common, tmp_path / preset / "c", *PLAIN).stderr.splitlines()
        assert (
            line
            == "input of digits: mean 0 (given), std 1 (given), scale 1/255 (default), size of the images"
        )
        a, b = (held(tmp_path / preset / name, "clean")["logits"] for name in "ab")
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def doubled(tmp_path):
    """A set of ten digits at twice the size."""
    images, labels = pictures(30)
    root = tmp_path / "doubled"
    for variant in ("clean", "fog/1"):
        for i, (image, label) in enumerate(zip(images, labels, strict=True)):
            path = root / variant / f"digit {label}" / f"{i:02d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.kron(image, np.ones((2, 2, 1), np.uint8))).save(path)
    return root


def test_images_are_resized_on_demand_alone(doubled, model, tmp_path):
    line = cli_error("predict", doubled, "--model", model, "--output", tmp_path / "p", *PLAIN)
    assert "takes images of 32 x 32 pixels, these are 64 x 64 (--input-size resizes them)" in line
    predict(doubled, model, tmp_path / "p", "--input-size", "32")
    found = held(tmp_path / "p", "clean")
    small = [
        Image.open(doubled / "clean" / key).resize((32, 32), Image.Resampling.BILINEAR)
        for key in found["keys"]
    ]
    np.testing.assert_allclose(found["logits"], expected_logits(np.stack(small)), atol=1e-4)


def test_images_of_several_sizes_want_one(doubled, tmp_path):
    victim = max((doubled / "fog" / "1").rglob("*.png"))
    Image.open(victim).resize((40, 32)).save(victim)
    common = ("predict", doubled, "--model", put_model(tmp_path / "any.onnx", sides=("h", "w")), "--output")
    cli(*common, tmp_path / "p", "--input-size", "32")
    assert "any.onnx: fails on images of 64 x 64" in cli(*common, tmp_path / "q", status=2).stderr


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"digit {i}\n" for i in reversed(range(10))),
        json.dumps([f"digit {i}" for i in reversed(range(10))]),
        json.dumps({str(9 - i): [f"digit {i}", "description"] for i in range(10)}),
    ],
    ids=["lines", "json", "keras"],
)
def test_labels_follow_the_class_list(folder_c, model, tmp_path, text):
    (tmp_path / "names").write_text(text)
    predict(folder_c, model, tmp_path / "p", "--classes", tmp_path / "names")
    found = held(tmp_path / "p", "fog/1")
    assert [f"digit {9 - label}" for label in found["labels"]] == folders_of(found)


# --- going on ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(folder_c, model, tmp_path_factory):
    """The files of an undisturbed run with batches of 8."""
    output = tmp_path_factory.mktemp("whole") / "p"
    predict(folder_c, model, output, *BATCH)
    return tree(output)


def predict_until(call, monkeypatch, folder_c, model, output):
    """A run with batches of 8 that is interrupted at a call of the model."""
    with monkeypatch.context() as patch:
        interrupt_model(patch, call)
        predict(folder_c, model, output, *BATCH, status=130)


@pytest.mark.parametrize("after", [2, 5, 9, 17])
def test_a_run_goes_on_where_it_was_cut_off(folder_c, model, whole, tmp_path, monkeypatch, after):
    predict_until(after, monkeypatch, folder_c, model, tmp_path / "p")
    calls = interrupt_model(monkeypatch, 0)
    predict(folder_c, model, tmp_path / "p", *BATCH)
    # One call each finds out the number of classes; the call that was cut off is made again.
    assert len(calls) - 1 == 5 * 4 - (after - 2)
    assert tree(tmp_path / "p") == whole
    assert sorted(records_of(place(tmp_path / "p"))) == VARIANTS
    assert not [*(place(tmp_path / "p") / ".robustgen").rglob("*.npy")]


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-4])


def falsify(path):
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def test_rows_that_were_lost_are_predicted_again(folder_c, model, whole, tmp_path, monkeypatch):
    for damage in (cut_short, falsify, Path.unlink):
        output = tmp_path / damage.__name__
        predict_until(3, monkeypatch, folder_c, model, output)
        (part,) = (place(output) / ".robustgen" / "parts" / "clean").iterdir()
        damage(part)
        common = ("predict", folder_c, "--model", model, "--output", output, *PLAIN, *BATCH)
        if damage is falsify:
            assert "damaged; run the same command again" in cli_error(*common)
        cli(*common)
        assert tree(output) == whole


@pytest.mark.parametrize("damage", [cut_short, falsify])
def test_a_damaged_record_counts_for_nothing(folder_c, model, whole, tmp_path, monkeypatch, damage):
    predict_until(3, monkeypatch, folder_c, model, tmp_path / "p")
    (name,) = records_of(place(tmp_path / "p"))
    line = cli_error("score", tmp_path / "p")
    assert line.endswith("digits: the run is unfinished; the same command resumes it")
    damage(place(tmp_path / "p") / ".robustgen" / "records" / f"{name}.json")
    assert "150 images predicted" in predict(folder_c, model, tmp_path / "p", *BATCH).stdout
    assert tree(tmp_path / "p") == whole


def test_a_unit_that_another_run_has_claimed_is_waited_for(folder_c, model, tmp_path, monkeypatch):
    predict_until(3, monkeypatch, folder_c, model, tmp_path / "p")
    (name,) = records_of(place(tmp_path / "p"))
    (place(tmp_path / "p") / ".robustgen" / "records" / f"{name}.json").unlink()
    claim_elsewhere(place(tmp_path / "p"), name)
    looked = []
    monkeypatch.setattr(ledger.time, "sleep", looked.append)
    monkeypatch.setattr(ledger, "_PATIENCE", 1.0)
    assert "150 images predicted" in predict(folder_c, model, tmp_path / "p", *BATCH).stdout
    assert looked and sorted(records_of(place(tmp_path / "p"))) == VARIANTS


def test_sets_and_predictions_behind_urls(folder_c, model, tmp_path):
    from fsspec.implementations.memory import MemoryFileSystem

    predict(folder_c, model, tmp_path / "p")
    for name, data in tree(folder_c).items():
        MemoryFileSystem().pipe(f"/predict/set/{name}", data)
    MemoryFileSystem().pipe("/predict/set/dataset.json", (folder_c / "dataset.json").read_bytes())
    stdout = predict("memory://predict/set", model, "memory://predict/out").stdout
    assert "150 images predicted" in stdout and "memory://predict/out" in stdout
    for name, data in tree(tmp_path / "p").items():
        assert MemoryFileSystem().cat(f"/predict/out/{name}") == data
    assert "0 images predicted" in predict("memory://predict/set", model, "memory://predict/out").stdout
    scored = cli(
        "score", "memory://predict/out", "--partial", "--predicted-set", "memory://predict/set"
    ).stdout
    (tmp_path / "p").rename(tmp_path / "out")
    assert scored == cli("score", tmp_path / "out", "--partial").stdout


def test_sequences_of_several_lengths(model, tmp_path):
    for name, frames in (("a", 3), ("b", 4)):
        for i, picture in enumerate(pictures(frames)[0]):
            path = tmp_path / "P" / "tilt" / "digit" / name / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(path)
    (tmp_path / "names.json").write_text(json.dumps(["digit", *"123456789"]))
    line = wrong(tmp_path / "P", model, tmp_path, "--classes", tmp_path / "names.json")
    assert line == "tilt: its sequences differ in length"


@pytest.mark.parametrize("is_local", [True, False])
def test_the_next_variant_is_read_while_the_model_computes(folder_c, model, tmp_path, monkeypatch, is_local):
    begun, read, compute = list[Variant](), WrittenSet.batch, Predictor.predict

    def note(self, variant, *place):
        begun.append(variant)
        return read(self, variant, *place)

    def wait(self, items, keys, variant):
        place = [*dict.fromkeys(begun)].index(variant)
        wait_until(lambda: len({*begun}) >= min(place + 2, len(VARIANTS)))
        return compute(self, items, keys, variant)

    monkeypatch.setattr(WrittenSet, "batch", note)
    monkeypatch.setattr(Predictor, "predict", wait)
    monkeypatch.setattr(LocalStore, "is_local", is_local)
    predict(folder_c, model, tmp_path / "p")
    assert sorted(each.folder for each in {*begun}) == VARIANTS == files_of(tmp_path / "p")


def test_a_second_run_predicts_nothing(folder_c, model, tmp_path):
    assert "150 images predicted" in predict(folder_c, model, tmp_path / "p").stdout
    before = tree(tmp_path / "p")
    assert "0 images predicted" in (second := predict(folder_c, model, tmp_path / "p").stdout)
    assert "150 were there already" in second
    (tmp_path / "p" / "digits" / "fog" / "3.npz").unlink()
    assert "30 images predicted" in predict(folder_c, model, tmp_path / "p").stdout
    assert tree(tmp_path / "p") == before


def test_another_model_or_preprocessing_wants_another_folder(folder_c, model, tmp_path):
    predict(folder_c, model, tmp_path / "p")
    (tmp_path / "other").mkdir()
    other = put_model(tmp_path / "other" / "digits.onnx", scale=2.0)
    common = ("predict", folder_c, "--output", tmp_path / "p", "--model")
    assert "created with different settings: model." in cli_error(*common, other, *PLAIN)
    assert "settings: preprocessing." in cli_error(*common, model)
    predict(folder_c, other, tmp_path / "p", "--overwrite")
    predict(folder_c, other, tmp_path / "fresh", "--overwrite")
    assert tree(tmp_path / "p") == tree(tmp_path / "fresh")


def test_weights_in_files_of_their_own_belong_to_the_model(folder_c, model, tmp_path):
    inside, path = onnx.load(model), tmp_path / "m.onnx"
    onnx.save_model(inside, path, save_as_external_data=True, location="m.data", size_threshold=100)
    assert list_weights(path.read_bytes()) == ["m.data"] and not list_weights(Path(model).read_bytes())
    predict(folder_c, path, tmp_path / "p")
    predict(folder_c, model, tmp_path / "q")
    assert_same_rows(held(tmp_path / "p", "fog/3"), held(tmp_path / "q", "fog/3"), atol=0)
    weights = np.fromfile(tmp_path / "m.data", np.uint8)
    (weights ^ 1).tofile(tmp_path / "m.data")
    assert "created with different settings: model." in wrong(folder_c, path, tmp_path, *PLAIN)


def test_overwriting_removes_only_what_the_tool_wrote(folder_c, model, tmp_path):
    (tmp_path / "other").mkdir()
    other = put_model(tmp_path / "other" / "digits.onnx", scale=2.0)
    output, foreign = tmp_path / "preds", tmp_path / "preds" / "digits" / "resnet" / "clean.npz"
    predict(folder_c, model, output)
    before = tree(output)
    foreign.parent.mkdir()
    np.savez(foreign, logits=np.zeros((1, 1)))
    again = ("predict", folder_c, "--model", other, "--output", output, *PLAIN, "--overwrite")
    assert f"{foreign}: changed, so --overwrite keeps it" in cli_error(*again)
    foreign.unlink()
    changed = output / "digits" / "fog" / "3.npz"
    changed.write_bytes(changed.read_bytes()[::-1])
    assert f"{changed}: changed, so --overwrite keeps it" in cli_error(*again)
    assert {**tree(output), "digits/fog/3.npz": b""} == {**before, "digits/fog/3.npz": b""}
    changed.unlink()
    predict(folder_c, other, output, "--overwrite")
    assert tree(output).keys() == before.keys()


def test_nothing_is_removed_or_written_through_a_link(folder_c, model, tmp_path):
    output, victim, new = tmp_path / "preds", tmp_path / "victim", tmp_path / "new"
    predict(folder_c, model, output)
    (output / "digits" / "fog").rename(victim)
    (output / "digits" / "fog").symlink_to(victim)
    before = tree(victim)
    common = ("predict", folder_c, "--model", model, *PLAIN, "--output")
    assert "changed, so --overwrite keeps it" in cli_error(*common, output, "--overwrite")
    (victim / "3.npz").unlink()
    assert "fog: is a link" in cli_error(*common, output)
    assert tree(victim) == {name: data for name, data in before.items() if name != "3.npz"}
    (new / "digits").mkdir(parents=True)
    (new / "digits" / ".robustgen").symlink_to(victim)
    assert ".robustgen: is a link" in cli_error(*common, new)


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(folder_c, model, tmp_path):
    output = tmp_path / "preds"
    predict(folder_c, model, output)
    (output / "digits" / "fog" / "3.npz").unlink()
    os.mkfifo(output / "digits" / "fog" / "3.npz")
    assert "3.npz: not a complete file of predictions" in cli_error("score", output, "--partial")
    common = ("predict", folder_c, "--model", model, "--output", output, *PLAIN)
    assert "3.npz: not a complete file of predictions" in cli_error(*common)
    assert "changed, so --overwrite keeps it" in cli_error(*common, "--overwrite")
    (output / "digits" / "predictions.json").unlink()
    os.mkfifo(output / "digits" / "predictions.json")
    assert "predictions.json: cannot be read" in cli_error(*common)


def test_a_video_and_its_frames_have_the_same_key(folder_p, digits, tmp_path):
    flags = ("--format", "png", "--set", "constants_for=32", "--limit", "2")
    frames = made("make-p", digits, tmp_path / "png", *flags, "--perturbations", "brightness")
    videos = open_set(folder_p)
    (variant,) = open_set(frames).variants
    keys = open_set(frames).keys_of(variant)
    assert len(keys) == 2 and set(keys) <= set(videos.keys_of(videos.variants[0]))
    assert not videos[videos.variants[0]].has_frames(keys[0])


# --- other frameworks ----------------------------------------------------------------------------


def recipe():
    readme = (Path(__file__).parents[3] / "docs" / "use" / "scoring.md").read_text()
    (code,) = re.findall(r"```python\n(import torch\n.*?)```", readme, re.DOTALL)
    assert len(code.splitlines()) <= 15
    return code


@pytest.mark.parametrize("kind", ["c", "p"])
def test_the_pytorch_recipe_writes_the_same_files(folder_c, folder_p, names, tmp_path, monkeypatch, kind):
    torch = pytest.importorskip("torch")
    from tests.digits import classifier

    network = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(192, 10))
    with torch.no_grad():
        network[2].weight[:] = torch.from_numpy(np.tile(classifier().coef_, 3) / 3)
        network[2].bias[:] = torch.from_numpy(classifier().intercept_)
    monkeypatch.chdir(tmp_path)
    torch.save(network, "model.pt")
    shutil.copytree(folder_c if kind == "c" else folder_p, "out/imagenet-c")
    shutil.copy(names, "classes.txt")
    exec(recipe(), {})
    model = put_model(tmp_path / "m.onnx")
    flags = ("--classes", names, "--save", "logits")
    cli("predict", "out/imagenet-c", "--model", model, "--output", "onnx", *flags)
    assert files_of(Path("preds/mine")) == files_of(Path("onnx"))
    for variant in files_of(Path("onnx")):
        assert_same_rows(held(Path("onnx"), variant), held(Path("preds/mine"), variant))


# --- wrong input ---------------------------------------------------------------------------------


def wrong(folder_c, model, tmp_path, *flags):
    return cli_error("predict", folder_c, "--model", model, "--output", tmp_path / "p", *flags)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--preprocessing mean=1,2", "--preprocessing mean: "),
        (
            "--preprocessing mean=1,2 --preprocessing std=1",
            "mean: must be one number, or three, not '1,2'",
        ),
        ("--preprocessing mean=0 --preprocessing std=0", "--preprocessing std: must be greater than 0"),
        ("--preprocessing mean=nan --preprocessing std=1", "--preprocessing mean: must be"),
        ("--preprocessing pixel_scale=1", "pixel_scale also needs mean and std"),
        ("--preprocessing layout=CHWN", "--preprocessing layout: must be 'NCHW' or 'NHWC', not 'CHWN'"),
        ("--preprocessing layout=NHWC", "takes NCHW"),
        ("--input-size 0", "--input-size: must be a number of pixels"),
        ("--input-size 64", "takes images of 32 x 32 pixels, these are 64 x 64"),
        ("--classes missing.txt", "--classes: missing.txt cannot be read"),
        ("--preprocessing meen=0", "did you mean 'mean'?"),
        ("--preprocessing imagnet", "did you mean 'imagenet'?"),
        ("--preprocessing missing.yaml", "missing.yaml: cannot be read"),
        ("--device TPU", "--device TPU: ONNX Runtime has no TPU here; it has"),
    ],
)
def test_wrong_flags(folder_c, model, tmp_path, flags, says):
    assert says in wrong(folder_c, model, tmp_path, *flags.split())
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("means: 1", "own.yaml:1: unknown key 'means' (did you mean 'mean'?)"),
        ("mean: [a, b, c]\nstd: 1", "own.yaml:1: mean: must be one number or several"),
        ("classes: []", "own.yaml:1: classes: must list at least one class"),
        ("classes: [a, b, a]", "own.yaml:1: classes: 'a' is listed twice"),
        ("classes: [a, b]", "the class list has 2 names"),
        ("classes: 3", "own.yaml:1: classes: must be imagenet, a file, or a list of class folders, not 3"),
        ("mean: [", "own.yaml: line"),
        ("input_size: true", "own.yaml:1: input_size: must be"),
    ],
)
def test_wrong_yaml(folder_c, model, tmp_path, text, says):
    (tmp_path / "own.yaml").write_text(text)
    assert says in wrong(folder_c, model, tmp_path, "--preprocessing", tmp_path / "own.yaml")


def test_models_that_are_none(folder_c, tmp_path):
    (tmp_path / "text.onnx").write_text("no model")
    put_other_input(tmp_path / "rows.onnx")
    put_model(tmp_path / "nan.onnx", extra=(logarithm(),))
    for name, says in (
        ("missing", "--model: there is no file"),
        ("text", "text.onnx: ONNX Runtime cannot load it: "),
        ("rows", "rows.onnx: needs one input of four axes"),
        ("nan", r"nan.onnx: returns NaN or infinity for 'digit \d/\d+.JPEG' of clean"),
    ):
        assert re.search(says, wrong(folder_c, tmp_path / f"{name}.onnx", tmp_path, *PLAIN))


def test_classes_that_do_not_fit(digits, model, names, tmp_path):
    few = made("make-c", digits, tmp_path / "c", "--set", "constants_for=32", *FEW_C, "--limit", "5")
    predict(few, model, tmp_path / "all")
    few = published(few, tmp_path / "published")
    (few / "dataset.json").unlink()
    assert "has 2 classes" in (line := wrong(few, model, tmp_path)) and "--classes" in line
    predict(few, model, tmp_path / "q", "--classes", names)
    names.write_text("".join(f"number {i}\n" for i in range(10)))
    line = wrong(few, model, tmp_path, "--classes", names)
    assert "class 'digit 0' is not in the class list" in line


@pytest.mark.parametrize(
    ("file", "array", "says"),
    [
        (
            "fog.npy",
            np.zeros((60, 32, 32), np.uint8),
            "fog.npy: uint8 (60, 32, 32) is not uint8 (N, H, W, 3)",
        ),
        ("fog.npy", np.zeros((60, 32, 32, 3)), "fog.npy: float64"),
        ("fog.npy", np.zeros((7, 32, 32, 3), np.uint8), "fog.npy: its 7 rows are not 2 severities"),
        ("fog.npy", np.zeros((8, 32, 32, 3), np.uint8), "fog.npy: 4 images, where other arrays have 30"),
        ("labels.npy", np.zeros(7, int), "labels.npy: int64 (7,) is not a class for each of 30 images"),
        ("labels.npy", np.zeros(60), "labels.npy: float64"),
        ("labels.npy", np.full(60, 10), "labels 10 to 10 are out of range for the 10 classes of"),
    ],
)
def test_wrong_arrays(cifar_c, model, tmp_path, file, array, says):
    broken = broken_copy(cifar_c, tmp_path)
    np.save(broken / file, array)
    assert says in wrong(broken, model, tmp_path)


def test_sets_that_are_not_whole(folder_c, model, tmp_path):
    broken = broken_copy(folder_c, tmp_path)
    about, described = broken / "dataset.json", manifest(broken)

    def says(text):
        assert text in wrong(broken, model, tmp_path)

    victim = min((broken / "fog" / "3").rglob("*.JPEG"))
    victim.unlink()
    says(f"fog/3: 1 of 30 images are missing, for instance '{victim.parent.name}/{victim.name}'")
    shutil.rmtree(broken / "fog" / "3")
    says("lacks fog/3, which its dataset.json lists")
    for variants in ([1], "fog/1"):
        about.write_text(json.dumps(described | {"variants": variants}))
        says("dataset.json is not robustgen's: it has no 'variants'")
    about.unlink()
    says("no dataset.json: its run has not finished; the same 'robustgen make-c ...' command")
    about.write_text("{")
    says("dataset.json: cannot be read")


def test_no_set_at_all(digits, model, tmp_path):
    assert "contains no folder or array of a corruption" in wrong(digits, model, tmp_path)
    assert "no such folder" in wrong(tmp_path / "missing", model, tmp_path)


def test_predictions_that_are_damaged_or_of_other_keys_are_not_continued(folder_c, model, tmp_path):
    predict(folder_c, model, tmp_path / "p")
    found = held(tmp_path / "p", "fog/3")
    found["keys"] = np.array([f"x{key}" for key in found["keys"]])
    np.savez(tmp_path / "p" / "digits" / "fog" / "3.npz", **found)
    assert "fog/3.npz: not the images of" in wrong(folder_c, model, tmp_path, *PLAIN)
    (tmp_path / "p" / "digits" / "fog" / "3.npz").write_bytes(b"damaged")
    assert "3.npz: not a complete file of predictions" in wrong(folder_c, model, tmp_path, *PLAIN)


def test_a_folder_of_other_things_is_not_written_into(folder_c, model, tmp_path):
    (tmp_path / "p").write_text("")
    assert "p: is a file" in wrong(folder_c, model, tmp_path)
    (tmp_path / "p").unlink()
    (tmp_path / "p" / "digits" / "fog").mkdir(parents=True)
    np.savez(tmp_path / "p" / "digits" / "fog" / "1.npz", logits=np.zeros((1, 1)))
    assert "no run recorded" in wrong(folder_c, model, tmp_path)


def test_a_damaged_image_is_named(folder_c, model, tmp_path):
    broken = broken_copy(folder_c, tmp_path)
    victim = min((broken / "fog" / "3").rglob("*.JPEG"))
    victim.write_bytes(victim.read_bytes()[:200])
    result = predict(broken, model, tmp_path / "p", status=1)
    (line,) = without_beginning(result.stderr)
    assert str(victim) in line


def test_a_function_from_another_file_is_another_model(folder_c, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "import numpy as np\ndef build():\n    return lambda pixels: pixels[:, :10, 0, 0] / {}\n"
    Path("dividing.py").write_text(code.format(1))
    flags = ("--model", "dividing:build", "--output", tmp_path / "p")
    cli("predict", folder_c, *flags)
    assert "0 images" in cli("predict", folder_c, *flags).stdout
    Path("dividing.py").write_text(code.format(2))
    assert "sha256" in cli_error("predict", folder_c, *flags)
    preset = "def build():\n    return (lambda pixels: pixels), {'mean': 0, 'std': 1}\n"
    Path("paired.py").write_text(preset)
    refused = cli_error("predict", folder_c, "--model", "paired:build", "--output", tmp_path / "q")
    assert "returns a function with preprocessing" in refused


def test_no_unit_after_the_next_is_claimed_while_one_is_predicted(folder_c, model, tmp_path, monkeypatch):
    claimed, begun, waiting = [], set(), []
    usual, predict_batch = ledger.Ledger.claim, Predictor.predict

    def claim(owner, name):
        claimed.append(name)
        return usual(owner, name)

    def watch(predictor, items, keys, variant):
        waiting.append(len([each for each in claimed if each.startswith("units/")]) - len(begun))
        # The last key tells the units of a variant apart.
        begun.add((variant, keys[-1]))
        return predict_batch(predictor, items, keys, variant)

    monkeypatch.setattr(ledger.Ledger, "claim", claim)
    monkeypatch.setattr(Predictor, "predict", watch)
    monkeypatch.setattr("robustgen.lab.evaluation.predicting.count_cores", lambda: 64)
    predict(folder_c, model, tmp_path / "p", *BATCH)
    assert len(begun) > 4 and max(waiting) == 2


def test_a_unit_is_recorded_while_the_next_is_predicted(folder_c, model, tmp_path, records_wait):
    predict(folder_c, model, tmp_path / "p", *BATCH)


def test_without_onnx_runtime_the_remedy_is_named(folder_c, model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert wrong(folder_c, model, tmp_path) == "ONNX models need ONNX Runtime: pip install 'robustgen[onnx]'"


# --- normalisation -------------------------------------------------------------------------------


class Recorder(FunctionModel):
    """A model of images of any size and layout, with values of this type."""

    shape = None, None, None, None

    def __init__(self, dtype):
        super().__init__(lambda images: images, "recorder")
        self.dtype = np.dtype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_pixels_are_normalised_in_double_precision_and_rounded_once(dtype, layout):
    pixels = np.random.default_rng(0).integers(0, 256, (2, 5, 7, 3), np.uint8)
    preset = replace(preprocessing.PRESETS["imagenet"], layout=layout)
    exact = (pixels * (1 / 255) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    exact = exact.astype(dtype)
    if layout == "NCHW":
        exact = exact.transpose(0, 3, 1, 2)
    model = Recorder(dtype)
    normalised = model.normalise(pixels, preset)
    assert normalised.dtype == dtype and np.array_equal(normalised, exact)
    assert np.array_equal(model.normalise([*pixels], preset), exact), "images need not be in one array"
    # An array that is kept does not change with the next batch.
    others = model.normalise(255 - pixels, preset)
    assert np.array_equal(normalised, exact) and not np.array_equal(others, exact)
    del normalised, others
    assert len({model.normalise(pixels, preset).ctypes.data for _ in range(2)}) == 1, (
        "the memory is used again"
    )


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_device_looks_up_the_same_floats(layout):
    torch = pytest.importorskip("torch")
    pixels = np.random.default_rng(1).integers(0, 256, (2, 5, 7, 3), np.uint8)
    preset = replace(preprocessing.PRESETS["imagenet"], layout=layout)
    tables = torch.from_numpy(preset.tabulate(np.dtype(np.float32)))
    found = look_up_there(torch.from_numpy(pixels), tables, layout).numpy()
    assert np.array_equal(found, Recorder(np.float32).normalise(pixels, preset))
