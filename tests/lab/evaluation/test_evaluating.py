"""`robustgen evaluate`: the predictions of `predict` on the written set, without the set."""

import errno
import io
import json
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import ImageError
from robustgen.files.ledger import Ledger, parse_record
from robustgen.files.storage import open_store, remote
from robustgen.lab.evaluation import evaluating
from robustgen.lab.evaluation.predicting import Predictor
from robustgen.lab.evaluation.predictions import ABOUT
from robustgen.lab.evaluation.store import choose_unit_size
from robustgen.lab.models.onnx import OnnxModel
from robustgen.sets.dataset.recipes import CorruptionRecipe
from robustgen.sets.sources.files import EncodedSource
from tests.digits import interrupt_model, logarithm, put_cifar, put_model
from tests.helpers import cli, cli_error, make_c, put_photo, records_of, tree, wait_until
from tests.sets.sources.test_published import put_medmnist
from tests.sets.sources.test_trees import files_of, put_tar

IMAGES = 30
PLAIN = ("--preprocessing", "mean=0", "--preprocessing", "std=1")
FOLDER = ("--set", "constants_for=32")
FEW_C = ("--corruptions", "gaussian_noise,fog", "--severities", "3,1")
FEW_P = ("--perturbations", "gaussian_noise,brightness", "--difficulty", "1,2", "--limit", "3")
BATCH = ("--batch-size", "8")
# One corruption, in batches of 8 by this process.
FOG = (*FOLDER, "--corruptions", "fog", "--severities", "1", *BATCH, "--jobs", "1")


def evaluate(source, model, output, *flags, status=0):
    common = ("--source", source, "--model", model, "--output", output, *PLAIN)
    return cli("evaluate", *common, *flags, status=status)


def predict_written(command, source, model, root, flags, *more):
    """The files that predict writes about the set that is written."""
    cli(command, "--source", source, "--output", root / "set", "--jobs", "1", *flags)
    cli("predict", root / "set", "--model", model, "--output", root / "predicted", *PLAIN, *BATCH, *more)
    return predictions(root / "predicted" / model.stem)


def evaluate_as_written(command, source, model, root, flags, *more):
    """Hold evaluate to the files that predict writes; return what it prints, and the files."""
    expected = predict_written(command, source, model, root, flags, *more)
    result = evaluate(source, model, root / "p", *flags, *BATCH, "--jobs", "1", *more)
    assert predictions(root / "p" / model.stem) == expected
    return result.stdout, expected


def held(folder, variant):
    with np.load(folder / f"{variant}.npz") as archive:
        return dict(archive)


def damaged_copy(digits, tmp_path, *places):
    """A copy of the source in which the images at `places` cannot be decoded; returns it and them."""
    source = shutil.copytree(digits, tmp_path / "source")
    victims = [sorted(source.rglob("*.png"))[place] for place in places]
    for victim in victims:
        victim.write_bytes(victim.read_bytes()[:80])
    return source, victims


def put_names(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("".join(f"digit {i}\n" for i in range(10)))
    return path


@pytest.fixture
def peers(monkeypatch):
    """From now on the output of the model for an image depends on the other images of its batch."""
    run = OnnxModel.run
    monkeypatch.setattr(
        OnnxModel, "run", lambda self, images, own: run(self, images, own) * (1 + np.mean(images))
    )


def predictions(folder):
    return {name: data for name, data in tree(folder).items() if name.endswith(".npz")}


@pytest.fixture(scope="module")
def written(digits, model, tmp_path_factory):
    return predict_written("make-c", digits, model, tmp_path_factory.mktemp("c"), (*FOLDER, *FEW_C))


# --- equality ------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_predictions_are_those_on_the_written_set(digits, model, written, tmp_path, jobs):
    result = evaluate(digits, model, tmp_path / "p", *FOLDER, *FEW_C, *BATCH, "--jobs", jobs)
    assert predictions(tmp_path / "p" / "digits") == written
    assert f"{5 * IMAGES} images predicted" in result.stdout
    table = cli("score", tmp_path / "p" / "digits", "--partial").stdout
    assert result.stdout.endswith(table) and "\nTop-1 error in %" in result.stdout
    again = evaluate(digits, model, tmp_path / "p", *FOLDER, *FEW_C, *BATCH)
    assert "0 images predicted in" in again.stdout and f"{5 * IMAGES} were there already" in again.stdout


@pytest.mark.parametrize(
    ("command", "flags", "published"),
    [
        ("make-c", FOG[:6], "JPEG, quality 85"),
        ("make-p", (*FOLDER, *FEW_P), "H.264 yuv444p, preset veryslow, rate factor 20"),
    ],
)
def test_uncompressed_images_are_those_of_png_files(
    digits, model, tmp_path, monkeypatch, command, flags, published
):
    expected = predict_written(command, digits, model, tmp_path, (*flags, "--format", "png"))
    monkeypatch.setattr("robustgen.pixels.imaging.video.encode", lambda *_: pytest.fail("encoded a video"))
    result = evaluate(digits, model, tmp_path / "p", *flags, *BATCH, "--jobs", "1", "--uncompressed")
    assert predictions(tmp_path / "p" / "digits") == expected
    said = f"uncompressed; published: {published}"
    for folder in ("p", "predicted"):
        about = json.loads((tmp_path / folder / "digits" / "predictions.json").read_text())
        assert about["compression"] == said
    assert f"images of digits: {said}" in " ".join(result.output.split())


def test_score_says_how_compressed_the_images_of_each_model_were(digits, model, tmp_path):
    flags = (*FOLDER, "--perturbations", "translate", "--limit", "4", *BATCH, "--jobs", "1")
    for name, own in {
        "made": ("--uncompressed",),
        "fast": ("--set", "video.preset=ultrafast"),
        "usual": (),
    }.items():
        evaluate(digits, model, tmp_path / name, *flags, *own)

    def tell(*names, more=()):
        folders = (tmp_path / name / "digits" for name in names)
        return " ".join(cli("score", *folders, "--partial", *more).output.split())

    assert "images of" not in tell("usual")
    assert "usual/digits: H.264 yuv444p, preset veryslow, rate factor 20" in tell("usual", "made")
    assert "warning: the models' images differ in compression" in tell("usual", "made")
    assert "uncompressed; published: H.264" in tell("usual", "made")
    assert "images of digits: H.264 yuv444p, preset ultrafast, rate factor 20; published" in tell("fast")
    assert "images of the baseline: uncompressed" in tell(
        "usual", more=("--baseline", tmp_path / "made" / "digits")
    )


@pytest.mark.parametrize(
    "flags",
    [
        "--set quality=30",
        "--set format=png",
        "--set format=original",
        "--set format=webdataset",
        "--set format=parquet",
        "--seed 4 --set clean=false",
        "--sample 12",
    ],
)
def test_what_decides_the_written_pixels_decides_the_predictions(digits, model, written, tmp_path, flags):
    some = (*FOG[:6], *flags.split())
    _, expected = evaluate_as_written("make-c", digits, model, tmp_path, some)
    # Shards hold the same JPEG files.
    same = flags in ("--set format=webdataset", "--set format=parquet")
    assert (expected["fog/1.npz"] == written["fog/1.npz"]) == same


def test_images_without_classes_are_for_detectors(model, tmp_path):
    put_photo(tmp_path / "coco" / "val2017" / "1.jpg")
    make_c(tmp_path / "coco", tmp_path / "set", *FEW_C, "--dataset", "coco-c")
    flags = ("--model", model, "--input-size", 32, "--output", tmp_path / "preds")
    for command in (
        ("evaluate", "--dataset", "coco-c", "--source", tmp_path / "coco"),
        ("predict", tmp_path / "set"),
    ):
        line = cli_error(*command, *flags)
        assert ": all images are in one folder, " in line and " has 10 classes: name the folder above" in line
        assert line.endswith("detectors, for sets such as COCO, need evaluate --annotations")


def test_images_with_several_labels_are_refused(model, tmp_path):
    path, _ = put_medmnist(tmp_path / "chestmnist_224.npz", grey=True, labels=14)
    few = ("--corruptions", "medmnist-c:contrast_up", "--jobs", 1)
    chest = ("--dataset", "chestmnist", "--source", path, *few)
    cli("make-c", *chest, "--output", tmp_path / "set")
    flags = ("--model", model, "--input-size", 32, "--output", tmp_path / "preds")
    for command in (("evaluate", *chest), ("predict", tmp_path / "set")):
        assert "several labels each" in cli_error(*command, *flags)
    assert not (tmp_path / "preds").exists()


def test_the_baseline_is_read_before_the_work(digits, model, tmp_path):
    flags = (*FOLDER, "--baseline", tmp_path / "none.yaml")
    result = evaluate(digits, model, tmp_path / "preds", *flags, status=2)
    assert "none.yaml: cannot be read" in result.stderr and not (tmp_path / "preds").exists()


def test_two_severities_need_no_baseline(digits, model, tmp_path):
    """What cannot be normalised is left out with a line, and the command succeeds."""
    (tmp_path / "own.yaml").write_text("model: Own\nclean_error: 0.1\nerrors: {contrast: 0.5}\n")
    few = ("--corruptions", "contrast,brightness", "--severities", "1,3", "--limit", 12, "--jobs", 1)
    result = evaluate(digits, model, tmp_path / "preds", *FOLDER, *few, "--baseline", tmp_path / "own.yaml")
    assert "Top-1 error in %, mean over severities 1, 3 only" in result.stdout
    assert "nothing is normalised, because baselines are means over five" in result.stderr


def test_the_index_of_the_source_is_kept(digits, model, written, tmp_path, monkeypatch):
    source = put_tar(tmp_path / "a.tar", files_of(digits))
    some = (*FOLDER, "--corruptions", "fog", "--severities", "1,3", *BATCH, "--jobs", "2")
    evaluate(source, model, tmp_path / "p", *some, "--set", "clean=false")
    assert (tmp_path / "p" / "digits" / ".robustgen" / "source-index").is_file()
    monkeypatch.setattr("robustgen.sets.sources.trees.ArchiveTree.build", None)
    evaluate(source, model, tmp_path / "p", *FOLDER, *FEW_C, *BATCH, "--jobs", "2")
    assert predictions(tmp_path / "p" / "digits") == written
    line = evaluate(source, model, tmp_path / "other", *some, status=2).stderr
    assert "a.tar" in line


def test_arrays_of_cifar(model, tmp_path):
    source = put_cifar(tmp_path, IMAGES)
    evaluate_as_written("make-c", source, model, tmp_path, ("--dataset", "cifar-10", *FEW_C))


@pytest.mark.parametrize("form", ["mp4", "png", "npy", "webdataset", "parquet"])
def test_sequences(digits, model, tmp_path, form):
    flags = (*FOLDER, *FEW_P, "--set", f"format={form}")
    more = () if form == "npy" else ("--classes", put_names(tmp_path))
    printed, _ = evaluate_as_written("make-p", digits, model, tmp_path, flags, *more)
    assert "Flip probability" in printed


def test_several_models_see_the_images_as_each_wants(digits, model, written, tmp_path):
    small = put_model(tmp_path / "other.onnx", scale=2.0)
    result = evaluate(digits, model, tmp_path / "p", "--model", small, *FOLDER, *FEW_C, *BATCH)
    assert predictions(tmp_path / "p" / "digits") == written
    first, second = (held(tmp_path / "p" / name, "fog/1") for name in ("digits", "other"))
    np.testing.assert_allclose(second["logits"], 2 * first["logits"], rtol=1e-4, atol=1e-5)
    assert "Differences from the means of digits" in result.stdout


def test_images_are_resized_and_equalised_as_predict_does(digits, tmp_path):
    model = put_model(tmp_path / "any.onnx", sides=("h", "w"))
    evaluate_as_written(
        "make-c", digits, model, tmp_path, FOG[:6], "--input-size", "32", "--clean-input", "clahe"
    )


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_the_sizes_of_a_models_images_have_one_name(command):
    words = cli(command, "--help-all").stdout.split()
    assert "--input-size" in words and "--pixel-scale" not in words
    assert "--size" not in words and "--scale" not in words


def test_a_limited_set_knows_the_classes_of_the_whole_source(digits, model, tmp_path):
    evaluate(digits, model, tmp_path / "p", *FOG, "--limit", "2")
    found = held(tmp_path / "p" / "digits", "fog/1")
    assert [f"digit {label}" for label in found["labels"]] == [key[:7] for key in found["keys"]]


@pytest.mark.parametrize("kind", ["c", "p"])
def test_units_can_be_processed_in_any_order(digits, model, tmp_path, monkeypatch, peers, kind):
    source, _ = damaged_copy(digits, tmp_path, 1, 10, 19)
    few = FEW_C if kind == "c" else (*FEW_P[:-1], "5", "--classes", put_names(tmp_path))
    flags = (*FOLDER, *few, *BATCH, "--jobs", "1")
    evaluate(source, model, tmp_path / "forwards", *flags, status=1)
    share = Ledger.share
    monkeypatch.setattr(Ledger, "share", lambda self, names, *rest: share(self, [*names][::-1], *rest))
    evaluate(source, model, tmp_path / "backwards", *flags, status=1)
    found = predictions(tmp_path / "backwards")
    assert found and found == predictions(tmp_path / "forwards")


# --- going on ------------------------------------------------------------------------------------


def evaluate_until(call, monkeypatch, *arguments):
    """A run that is interrupted at a call of the model."""
    with monkeypatch.context() as patch:
        interrupt_model(patch, call)
        evaluate(*arguments, status=130)


@pytest.mark.parametrize("after", [3, 7, 11])
def test_a_run_goes_on_where_it_was_cut_off(digits, model, written, tmp_path, monkeypatch, after):
    flags = (*FOLDER, *FEW_C, *BATCH, "--jobs", "1")
    evaluate_until(after, monkeypatch, digits, model, tmp_path / "p", *flags)
    assert not predictions(tmp_path / "p" / "digits")
    result = evaluate(digits, model, tmp_path / "p", *flags)
    assert predictions(tmp_path / "p" / "digits") == written
    # Each call after the first two, which find out whether all fits, is a unit: a batch in one variant.
    assert f"{5 * IMAGES - 8 * (after - 3)} images predicted" in result.stdout


def test_rows_of_an_image_that_another_run_could_not_make_do_not_count(digits, model, tmp_path, monkeypatch):
    source = shutil.copytree(digits, tmp_path / "source")
    flags = (*FOLDER, "--severities", "1", "--set", "clean=false", *BATCH, "--jobs", "1", "--corruptions")
    evaluate_until(4, monkeypatch, source, model, tmp_path / "p", *flags, "fog")
    victim = sorted(source.rglob("*.png"))[3]
    read = EncodedSource.read

    def fail(self, key):
        if key.endswith(victim.name):
            raise ImageError("cannot be read", key)
        return read(self, key)

    monkeypatch.setattr(EncodedSource, "read", fail)
    evaluate(source, model, tmp_path / "p", *flags, "brightness", status=1)
    result = evaluate(source, model, tmp_path / "p", *flags, "fog", status=1)
    assert f"{IMAGES - 8} images predicted" in result.stdout
    evaluate(source, model, tmp_path / "q", *flags, "fog,brightness", status=1)
    for variant in ("fog/1", "brightness/1"):
        found, expected = (held(tmp_path / name / "digits", variant) for name in "pq")
        assert len(found["keys"]) == IMAGES - 1
        assert np.array_equal(found["keys"], expected["keys"])
        np.testing.assert_allclose(found["logits"], expected["logits"], rtol=1e-5)


def test_a_unit_is_recorded_while_the_next_is_predicted(digits, model, tmp_path, records_wait):
    evaluate(digits, model, tmp_path / "p", *FOG)


# Time to kill the run between its units.
SLOW = """
import sys, time
from robustgen.cli import main
from robustgen.lab.models.onnx import OnnxModel
run = OnnxModel.run
def wait(self, images, preprocessing):
    time.sleep(0.1 * len(images))
    return run(self, images, preprocessing)
OnnxModel.run = wait
main()
"""


@pytest.mark.slow("kills a run of workers")
def test_a_killed_run_loses_only_its_unit(digits, model, written, tmp_path, monkeypatch):
    flags = (*FOLDER, *FEW_C, *BATCH, "--jobs", "1")
    common = ("--source", digits, "--model", model, "--output", tmp_path / "p", *PLAIN, *flags)
    command = [sys.executable, "-c", SLOW, "evaluate", *common]
    process = subprocess.Popen([str(each) for each in command], stderr=subprocess.PIPE)
    units = tmp_path / "p" / "digits" / ".robustgen" / "records" / "units"
    wait_until(lambda: len([*units.glob("*")]) >= 3, process)
    process.kill()
    process.communicate()
    assert not predictions(tmp_path / "p")
    done = sum(len(record["images"]) for record in records_of(tmp_path / "p" / "digits").values())
    assert 3 * 8 <= done < 5 * IMAGES
    shown, run = [], OnnxModel.run
    monkeypatch.setattr(
        OnnxModel, "run", lambda self, images, own: shown.append(len(images)) or run(self, images, own)
    )
    evaluate(digits, model, tmp_path / "p", *flags)
    # Two images find out whether all fits.
    assert sum(shown) - 2 == 5 * IMAGES - done
    assert predictions(tmp_path / "p" / "digits") == written


@pytest.mark.parametrize(
    ("images", "variants", "kind", "batch", "most"),
    [
        (22, 76, "c", 64, 256),
        (22, 76, "c", 1, 256),
        (1000, 76, "c", 64, 256),
        (10_000, 76, "c", 100, 256),
        (50_000, 76, "c", 64, 50_000 * 76 / 4096),
        (100, 10, "p", 64, 256),
        (50_000, 10, "p", 64, 50_000 * 10 * 32 / 4096),
    ],
)
def test_units_are_small(images, variants, kind, batch, most):
    """At four images a second, 256 are a minute; units of a large plan are a small part of it."""
    step, count = choose_unit_size(images * variants, kind, batch)
    inputs = step * count * (32 if kind == "p" else 1)
    assert inputs <= most and step == (batch if kind == "c" else 1)
    assert inputs > most / 2 or images * variants < 16 * 2 * step * count


def test_another_batch_size_uses_no_rows_of_this_one(digits, model, written, tmp_path, monkeypatch):
    flags = (*FOLDER, *FEW_C, "--jobs", "1")
    evaluate_until(9, monkeypatch, digits, model, tmp_path / "p", *flags, "--batch-size", "4")
    result = evaluate(digits, model, tmp_path / "p", *flags, *BATCH)
    assert f"{5 * IMAGES} images predicted" in result.stdout
    assert predictions(tmp_path / "p" / "digits") == written


def cut_short(path):
    path.write_bytes(path.read_bytes()[:100])


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut_short, empty])
@pytest.mark.parametrize("suffix", ["json", "npy"])
def test_what_was_lost_is_predicted_again(digits, model, written, tmp_path, monkeypatch, suffix, damage):
    evaluate_until(4, monkeypatch, digits, model, tmp_path / "p", *FOG, "--set", "clean=false")
    (path,) = (tmp_path / "p" / "digits" / ".robustgen").rglob(f"{16 * '?'}.{suffix}")
    damage(path)
    result = evaluate(digits, model, tmp_path / "p", *FOG, "--set", "clean=false")
    assert f"{IMAGES} images predicted" in result.stdout
    assert predictions(tmp_path / "p" / "digits") == {"fog/1.npz": written["fog/1.npz"]}


def test_records_name_the_images_that_were_read(digits, model, tmp_path):
    flags = (*FOLDER, *BATCH, "--jobs", "1", "--severities", "1", "--set", "clean=false", "--corruptions")
    source = shutil.copytree(digits, tmp_path / "source")
    evaluate(source, model, tmp_path / "p", *flags, "fog")
    records = records_of(tmp_path / "p" / "digits")
    assert [name.partition("/")[0] for name in sorted(records)] == ["fog", *["units"] * 4]
    images = {
        key: origin for name in records if name != "fog/1" for key, origin in records[name]["images"].items()
    }
    assert [*images] == sorted(images) and len(images) == IMAGES
    # Another picture in a file of the same size.
    first, second = sorted(source.rglob("*.png"), key=lambda path: path.stat().st_size)[:2]
    second.write_bytes(first.read_bytes().ljust(second.stat().st_size, b"\0"))
    line = evaluate(source, model, tmp_path / "p", *flags, "brightness", status=2).stderr
    assert f"'{second.parent.name}/{second.name}' differs from the image" in line
    evaluate(source, model, tmp_path / "p", *flags, "brightness", "--overwrite")


def test_a_finished_run_names_an_image_that_changed(digits, model, tmp_path):
    flags = (
        *FOLDER,
        *BATCH,
        "--jobs",
        "1",
        "--severities",
        "1",
        "--set",
        "clean=false",
        "--corruptions",
        "fog",
    )
    source = shutil.copytree(digits, tmp_path / "source")
    evaluate(source, model, tmp_path / "p", *flags)
    before = predictions(tmp_path / "p" / "digits")
    # A copy has other stamps, and the same images.
    for file in source.rglob("*.png"):
        os.utime(file, ns=(1, 1))
    assert "0 images predicted" in evaluate(source, model, tmp_path / "p", *flags).stdout
    first, second = sorted(source.rglob("*.png"), key=lambda path: path.stat().st_size)[:2]
    second.write_bytes(first.read_bytes().ljust(second.stat().st_size, b"\0"))
    line = evaluate(source, model, tmp_path / "p", *flags, status=2).stderr
    assert f"'{second.parent.name}/{second.name}'" in line and "--overwrite" in line
    assert predictions(tmp_path / "p" / "digits") == before
    evaluate(source, model, tmp_path / "p", *flags, "--overwrite")
    assert "0 images predicted" in evaluate(source, model, tmp_path / "p", *flags).stdout


def test_a_finished_variant_keeps_what_another_run_began(digits, model, written, tmp_path, monkeypatch):
    flags = (*FOLDER, *BATCH, "--jobs", "1", "--severities", "3,1", "--corruptions")
    # Two calls find out whether all fits; the next five are the units of the first batch.
    evaluate_until(8, monkeypatch, digits, model, tmp_path / "p", *flags, "gaussian_noise,fog")
    evaluate(digits, model, tmp_path / "p", *flags, "fog", "--set", "clean=false")
    result = evaluate(digits, model, tmp_path / "p", *flags, "gaussian_noise,fog")
    assert f"{3 * (IMAGES - 8)} images predicted" in result.stdout
    assert predictions(tmp_path / "p" / "digits") == written


def test_outputs_behind_urls(digits, model, written, tmp_path):
    from fsspec.implementations.memory import MemoryFileSystem

    result = evaluate(digits, model, "memory://evaluate/p", *FOLDER, *FEW_C, *BATCH, "--jobs", "1")
    assert "predictions in memory://evaluate/p/digits" in result.stdout and "Top-1 error" in result.stdout
    for name, data in written.items():
        assert MemoryFileSystem().cat(f"/evaluate/p/digits/{name}") == data


@pytest.fixture
def runs(digits, model, written, tmp_path):
    """Predict and evaluate, each with its output on a server."""
    url, common = f"memory://{tmp_path.name}", ("--model", model, *PLAIN, *BATCH)
    cli("make-c", "--source", digits, "--output", tmp_path / "set", "--jobs", "1", *FOLDER, *FEW_C)
    return {
        "predict": ("predict", tmp_path / "set", *common, "--output", f"{url}/predict"),
        "evaluate": (
            *("evaluate", "--source", digits, *common, "--output", f"{url}/evaluate"),
            *(*FOLDER, *FEW_C, "--jobs", "1"),
        ),
    }


def stored(url):
    store = open_store(f"{url}/digits")
    return {entry.path: store.read(entry.path) for entry in store.list() if entry.path.endswith(".npz")}


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_unit_is_written_while_the_next_one_is_predicted(runs, written, tmp_path, monkeypatch, command):
    call, predict, store = remote._call, Predictor.predict, open_store(f"memory://{tmp_path.name}")
    changed, shown, records = threading.Condition(), [0], []

    def show(self, items, keys, variant):
        with changed:
            shown[0] += len(keys)
            changed.notify_all()
        return predict(self, items, keys, variant)

    def wait(location, verb, url, *arguments, **options):
        if verb == "pipe_file" and "/records/units/" in url:
            parts = [file.path for file in parse_record(arguments[0]).files]
            # A kill at this point leaves no record without its files.
            held = [np.load(io.BytesIO(store.read(f"{command}/digits/{path}"))) for path in parts]
            with changed:
                # Evaluate has tried the model with one image.
                more = sum(map(len, held)) + (command == "evaluate")
                assert records or changed.wait_for(lambda: shown[0] > more, 20)
            records.append(url)
        return call(location, verb, url, *arguments, **options)

    monkeypatch.setattr(Predictor, "predict", show)
    monkeypatch.setattr(remote, "_call", wait)
    cli(*runs[command])
    assert len(records) > 1 and stored(f"memory://{tmp_path.name}/{command}") == written


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_the_files_of_variants_are_written_several_at_once(runs, written, tmp_path, gather, command):
    files = gather(r"^put_file .*\.npz$", 3)
    cli(*runs[command])
    assert files.is_set() and stored(f"memory://{tmp_path.name}/{command}") == written


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize("what", [r"/parts/fog", "/records/units/"])
def test_a_unit_that_cannot_be_written_has_no_record(runs, written, tmp_path, monkeypatch, command, what):
    call, url = remote._call, f"memory://{tmp_path.name}/{command}"

    def refuse(location, verb, url, *arguments, **options):
        if verb == "pipe_file" and what in url:
            raise PermissionError(errno.EACCES, "access refused", url)
        return call(location, verb, url, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(remote, "_call", refuse)
        said = cli(*runs[command], status=1).stderr.splitlines()
    assert said[-1] == f"Error: {url}/digits: access refused"
    store = open_store(f"{url}/digits")
    recorded = {file.path for _, record in Ledger(store, ABOUT).read_records() for file in record.files}
    assert recorded <= {entry.path for entry in store.list()} and not any("fog" in path for path in recorded)
    cli(*runs[command])
    assert stored(url) == written


def test_other_choices_want_another_folder(digits, model, tmp_path):
    evaluate(digits, model, tmp_path / "p", *FOG)
    line = evaluate(digits, model, tmp_path / "p", *FOG, "--seed", "1", status=2).stderr
    assert "created with different settings: made.seed was 0 and is now 1. " in line
    evaluate(digits, model, tmp_path / "p", *FOG, "--seed", "1", "--overwrite")


def test_other_images_are_named(digits, model, tmp_path):
    source = shutil.copytree(digits, tmp_path / "source")
    evaluate(source, model, tmp_path / "p", *FOG, "--limit", "20")
    names = sorted(path.relative_to(source).as_posix() for path in source.rglob("*.png"))

    def says(text, *flags):
        line = evaluate(source, model, tmp_path / "p", *FOG, *flags, status=2).stderr
        assert f"{tmp_path / 'p' / 'digits'}: created with different settings: {text}" in line

    says(f"other images (10 that are new, for instance '{names[20]}'). Choose another output")
    with (source / names[3]).open("ab") as file:
        file.write(b"more")
    changed = f"1 of other sizes, for instance '{names[3]}'"
    says(f"the same names, but other files ({changed})", "--limit", "20")
    (source / names[3]).unlink()
    says(f"other images (1 that are missing now, for instance '{names[3]}'). Choose", "--limit", "19")


# --- bad input -----------------------------------------------------------------------------------


def test_images_that_cannot_be_made_are_left_out_and_named(digits, model, tmp_path):
    source, (victim,) = damaged_copy(digits, tmp_path, 3)
    result = evaluate(source, model, tmp_path / "p", *FOG, status=1)
    assert "1 image could not be made:" in result.stderr and victim.name in result.stderr
    damaged = evaluate(source, model, tmp_path / "p", *FOG, status=1)
    assert "0 images predicted" in damaged.stdout and victim.name in damaged.stderr
    victim.unlink()
    expected = predict_written("make-c", source, model, tmp_path, FOG[:6])
    assert predictions(tmp_path / "p" / "digits").keys() == expected.keys()
    for variant in ("clean", "fog/1"):
        found, written = (
            held(tmp_path / "p" / "digits", variant),
            held(tmp_path / "predicted" / "digits", variant),
        )
        assert np.array_equal(found["keys"], written["keys"])
        assert np.array_equal(found["labels"], written["labels"])
        np.testing.assert_allclose(found["logits"], written["logits"], rtol=1e-5)
    again = evaluate(source, model, tmp_path / "q", *FOG)
    assert predictions(tmp_path / "q" / "digits") == expected and "could not be made" not in again.stderr


@pytest.mark.parametrize("place", [0, 11, IMAGES - 1])
def test_a_failed_image_changes_no_other_batch(digits, model, tmp_path, peers, place):
    source, _ = damaged_copy(digits, tmp_path, place)
    evaluate(digits, model, tmp_path / "whole", *FOG)
    evaluate(source, model, tmp_path / "p", *FOG, status=1)
    for variant in ("clean", "fog/1"):
        whole, found = (held(tmp_path / name / "digits", variant) for name in ("whole", "p"))
        assert [*found["keys"]] == [*whole["keys"][:place], *whole["keys"][place + 1 :]]
        expected = np.delete(whole["logits"], place, axis=0)
        first = place // 8 * 8
        outside = np.r_[0:first, first + 7 : IMAGES - 1]
        assert len(outside) and np.array_equal(found["logits"][outside], expected[outside])
        # Those of its own batch show that the model tells batches apart.
        assert not np.array_equal(found["logits"][first : first + 5], expected[first : first + 5])


def test_a_batch_without_any_image(digits, model, tmp_path):
    source, _ = damaged_copy(digits, tmp_path, *range(8, 16))
    evaluate(source, model, tmp_path / "p", *FOG, status=1)
    evaluate(digits, model, tmp_path / "whole", *FOG)
    found, whole = (held(tmp_path / name / "digits", "fog/1") for name in ("p", "whole"))
    assert np.array_equal(found["logits"], np.delete(whole["logits"], np.s_[8:16], axis=0))
    again = evaluate(source, model, tmp_path / "p", *FOG, status=1)
    assert "0 images predicted" in again.stdout and "8 images could not be made" in again.stderr


@pytest.fixture
def bad_fog(monkeypatch):
    """From now on one image cannot be corrupted with fog; returns its name."""
    make, name = CorruptionRecipe.make, "005.png"

    def fail(self, variant, key, *rest):
        if variant.name == "fog" and key.endswith(name):
            raise ValueError("too thick")
        return make(self, variant, key, *rest)

    monkeypatch.setattr(CorruptionRecipe, "make", fail)
    return name


def test_an_image_that_fails_in_one_variant_is_left_out_of_all(digits, model, tmp_path, bad_fog):
    flags = (*FOLDER, "--corruptions", "gaussian_noise,fog", "--severities", "1", *BATCH, "--jobs", "1")
    result = evaluate(digits, model, tmp_path / "p", *flags, status=1)
    assert f"{bad_fog}': ValueError: too thick" in result.stderr
    for variant in ("clean", "fog/1", "gaussian_noise/1"):
        keys = held(tmp_path / "p" / "digits", variant)["keys"]
        assert len(keys) == IMAGES - 1 and not any(bad_fog in key for key in keys)
    again = evaluate(digits, model, tmp_path / "p", *flags, status=1)
    assert "0 images predicted" in again.stdout
    cli("score", tmp_path / "p" / "digits", "--partial")


def test_a_variant_of_fewer_images_is_not_added(digits, model, tmp_path, monkeypatch, bad_fog):
    flags = (*FOLDER, "--severities", "1", *BATCH, "--jobs", "1", "--corruptions")
    evaluate(digits, model, tmp_path / "p", *flags, "gaussian_noise")
    before = predictions(tmp_path / "p")
    line = evaluate(digits, model, tmp_path / "p", *flags, "gaussian_noise,fog", status=2).stderr
    assert f"{bad_fog}' cannot be made in fog/1 (ValueError: too thick), but" in line
    assert "clean.npz contains it" in line and predictions(tmp_path / "p") == before
    # The failure is not recorded, so the image can be repaired.
    monkeypatch.undo()
    evaluate(digits, model, tmp_path / "p", *flags, "gaussian_noise,fog")
    evaluate(digits, model, tmp_path / "q", *flags, "gaussian_noise,fog")
    assert predictions(tmp_path / "p") == predictions(tmp_path / "q")


def test_a_model_that_is_added_is_not_shown_what_failed(digits, model, tmp_path):
    source, _ = damaged_copy(digits, tmp_path, 3)
    first = evaluate(source, model, tmp_path / "p", *FOG, "--set", "clean=false", status=1)
    assert f"{IMAGES - 1} images predicted" in first.stdout
    other = put_model(tmp_path / "other.onnx", scale=2.0)
    both = evaluate(source, other, tmp_path / "p", *FOG, "--set", "clean=false", "--model", model, status=1)
    assert f"{IMAGES - 1} images predicted" in both.stdout and f"{IMAGES - 1} were there" in both.stdout
    alone = evaluate(source, other, tmp_path / "p", *FOG, "--set", "clean=false", status=1)
    assert "0 images predicted" in alone.stdout and f"{IMAGES - 1} were there" in alone.stdout


def test_what_does_not_fit_is_told_before_the_work(digits, model, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluating._EvaluationRun, "_make", lambda *_: pytest.fail("the work has begun"))
    flags = (*FOLDER, *FEW_C, "--jobs", "1", *PLAIN)
    common = ("evaluate", "--source", digits, "--output", tmp_path / "p", *flags, "--model")
    nan = put_model(tmp_path / "nan.onnx", extra=[logarithm()])
    assert "nan.onnx: returns NaN or infinity for" in cli_error(*common, nan)
    names = tmp_path / "names.txt"
    names.write_text("one\ntwo\n")
    assert "the class list has 2 names" in cli_error(*common, model, "--classes", names)
    assert "there is no file" in cli_error(*common, tmp_path / "missing.onnx")
    assert "takes images of 32 x 32 pixels" in cli_error(*common, model, "--edition", "imagenet@64")
    assert not [*tmp_path.glob("p/**/*.npz")]


def test_a_source_of_nothing_usable(model, tmp_path):
    (tmp_path / "source" / "digit 0").mkdir(parents=True)
    (tmp_path / "source" / "digit 0" / "a.png").write_bytes(b"x")
    line = evaluate(tmp_path / "source", model, tmp_path / "p", *FOLDER, status=2).stderr
    assert "none of the images can be made" in line
    assert cli_error("evaluate", "--model", model, "--output", tmp_path / "p").startswith("no source: give")


def test_images_of_several_sizes_want_one(digits, tmp_path):
    source = shutil.copytree(digits, tmp_path / "source")
    victim = sorted(source.rglob("*.png"))[3]
    Image.open(victim).resize((40, 32)).save(victim)
    model = put_model(tmp_path / "any.onnx", sides=("h", "w"))
    result = evaluate(source, model, tmp_path / "p", *FOG, status=1)
    assert "images differ in size: 32x32 and 32x40 (--input-size" in result.stderr


def test_what_is_recorded_of_the_images(digits, model, tmp_path):
    predict_written("make-c", digits, model, tmp_path, FOG[:6])
    evaluate(digits, model, tmp_path / "p", *FOG)
    one, two = (
        json.loads((folder / "predictions.json").read_text())
        for folder in (tmp_path / "predicted" / "digits", tmp_path / "p" / "digits")
    )
    same = ("title", "edition", "source_digest", "keys", "model", "preprocessing", "save")
    assert [one[name] for name in same] == [two[name] for name in same]
    assert two["made"]["seed"] == 0 and two["made"]["output"]["quality"] == 85
    cli("score", tmp_path / "predicted", tmp_path / "p", "--partial")
