"""The short blocks of Python in README and docs run as they stand; test_torch_docs has those with loops."""

import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

import robustgen
from tests.digits import put_cifar, put_model
from tests.helpers import cli, photo, pixels_of, put_photo
from tests.sets.sources.test_published import put_medmnist

ROOT = Path(__file__).parent.parent
KEY = "n01440764/ILSVRC2012_val_00000293.JPEG"


def run(page, number=0, **names):
    """Run a block of Python of a page; returns the names that it leaves."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    exec(blocks[number], names)
    return names


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_c(source, *flags):
    cli("make-c", "--source", source, "--corruptions", "fog", "--severities", 3, "--jobs", 1, *flags)


def test_functions_of_images(folder):
    put_photo(folder / "photo.jpg", 300, 400)
    made = run("docs/use/python.md", 7)
    assert made["image"].shape == made["foggy"].shape == (224, 224, 3)
    assert made["frames"].shape == (31, 224, 224, 3)
    assert made["snowy"].shape == (300, 400, 3) and not np.array_equal(made["snowy"], made["large"])


def test_the_callers_backend_of_joblib(folder):
    put_photo(folder / "photos" / "a" / "b.png", 64, 64)
    assert run("docs/use/python.md", 3)["made"].made == 6


def test_the_stream_of_an_image_gives_what_make_c_writes(folder):
    put_photo(folder / "val" / KEY, 300, 400)
    make_c("val", "--edition", "imagenet", "--format", "png", "--output", "set")
    (made,) = (folder / "set" / "fog" / "3").rglob("*.png")
    assert np.array_equal(run("docs/background/reproducibility.md")["foggy"], pixels_of(made))


def test_augmix_mixes_an_image():
    image = photo(64, 64)
    mixed = run("docs/benchmarks/augmix.md", 1, image=image)["mixed"]
    assert np.array_equal(mixed, robustgen.augmix(image, rng=0)) and not np.array_equal(mixed, image)


def test_constants_between_the_published_ones():
    made = run("docs/use/calibrate.md", image384=photo(384, 384), robustgen=robustgen)
    assert made["foggy"].shape == (384, 384, 3)


def test_finer_severities():
    image = photo(64, 64)
    foggy = run("docs/use/corruptions.md", 0, image=image, robustgen=robustgen)["foggy"]
    assert not np.array_equal(foggy, robustgen.corrupt(image, "fog", 2, rng=0))


def test_the_names_of_imagecorruptions():
    made = run("docs/start/faq.md", image=photo(64, 64))
    assert made["corrupted"].shape == (64, 64, 3) and "fog" in made["get_corruption_names"]()


def test_coco_reads_the_annotations_of_an_variant(folder):
    put_photo(folder / "coco/val2017/000000000139.jpg")
    annotations = folder / "coco/annotations/instances_val2017.json"
    annotations.parent.mkdir()
    image = {"id": 139, "file_name": "000000000139.jpg", "height": 36, "width": 40}
    annotations.write_text(json.dumps({"images": [image], "annotations": [], "categories": []}))
    make_c("coco", "--dataset", "coco-c")
    assert run("docs/use/detection.md")["held"].getImgIds() == [139]


def test_readers_of_shards(folder):
    for number, name in enumerate(("cat", "dog")):
        put_photo(folder / "val" / name / f"{number}.JPEG", 300, 400, seed=number)
    make_c("val", "--edition", "imagenet", "--format", "webdataset", "--output", "out/imagenet-c")
    (folder / "out/imagenet-c/fog/3/000000.tar").rename(folder / "only.tar")
    for number in range(50):
        (folder / f"out/imagenet-c/fog/3/{number:06d}.tar").symlink_to(folder / "only.tar")
    made = run("docs/use/formats.md")
    assert (made["image"].size, made["label"]) == ((224, 224), 1)


@pytest.fixture
def wrn(folder, monkeypatch):
    """The model and the images of the page on Python, for one process."""
    monkeypatch.setattr("robustgen.lab.evaluation.evaluating.count_cores", lambda: 1)
    monkeypatch.setattr("robustgen.sets.dataset.run.count_cores", lambda: 1)
    put_model(folder / "wrn.onnx")
    (folder / "wrn.yaml").write_text("{mean: 0, std: 1}")
    put_cifar(folder, 10)
    with tarfile.open("cifar-10-python.tar.gz", "w:gz") as archive:
        archive.add("cifar-10-batches-py")


def test_scores_in_three_lines(wrn):
    scores = run("docs/use/python.md")["scores"]
    assert scores.clean_error < scores.mce < 0.5


def test_a_module_and_a_function_are_scored_and_compared(wrn):
    pytest.importorskip("torch")
    module = run("docs/use/python.md", 1)["scores"]
    assert module.models == ("Sequential",) and module.images == 10
    answers = run("docs/use/python.md", 2)
    assert answers["scores"].models == ("answer",)
    for name in ("wrn", "mine"):
        keys = {"corruptions": "fog", "jobs": 1, "name": name, "output": "preds"}
        robustgen.evaluate(answers["answer"], "cifar-10", source="cifar-10-python.tar.gz", **keys)
    made = run("docs/use/python.md", 4)
    assert [*made["frame"].model] == ["wrn", "mine"] and Path("scores.html").stat().st_size > 10_000


def test_the_tests_of_a_model_pass(wrn, monkeypatch):
    monkeypatch.setattr(pytest, "fixture", lambda scope: lambda function: function)
    made = run("docs/use/python.md", 5)
    tests = [name for name in made if name.startswith("test_")]
    assert len(tests) == 2
    scores = made["scores"]()
    for name in tests:
        made[name](scores)


def test_a_set_is_made_and_verified(wrn):
    made = run("docs/use/python.md", 6)
    assert made["made"].made == 20 and made["found"].remade == 10


def test_errors_of_several_labels(folder):
    path, content = put_medmnist(folder / "chestmnist_224.npz", grey=True, labels=14)
    chest = ("--dataset", "chestmnist", "--corruptions", "medmnist-c:contrast_up", "--severities", 3)
    cli("make-c", *chest, "--source", path, "--jobs", 1, "--output", "out/chestmnist-c")
    known = dict(zip(map(bytes, content["test_images"][:, :4, :4]), content["test_labels"], strict=True))

    def model(pixels):
        return [known.get(bytes(each[:4, :4, 0]), np.zeros(14)) for each in pixels]

    errors = run("docs/benchmarks/medmnist-c.md", 1, model=model)["errors"]
    assert errors["clean"] == 0 and errors["medmnist-c.contrast_up/3"] > 0


def test_hugging_faces_datasets_reads_parquet(folder):
    put_photo(folder / "val" / "cat" / "0.JPEG", 300, 400)
    make_c("val", "--edition", "imagenet", "--format", "parquet", "--output", "out/imagenet-c")
    images = run("docs/use/formats.md", 1)["images"]
    assert images[0]["image"].size == (224, 224) and images.features["label"].names == ["cat"]


def test_a_function_that_builds_a_model():
    torch = pytest.importorskip("torch")
    network, preprocessing = run("docs/use/evaluate.md")["build"]()
    assert network(torch.zeros(2, 3, 224, 224)).shape == (2, 1000) and preprocessing["input_size"] == 224


def test_lists_of_subtypes_are_split_at_the_last_space(folder):
    (folder / "out/subtypes").mkdir(parents=True)
    lines = ("n01530575/n01530575_10.JPEG 6", "n01530575/a name.JPEG 24")
    (folder / "out/subtypes/unseen.txt").write_text("\n".join(lines) + "\n")
    root = Path("/data/imagenet22k")
    samples = [(root / "n01530575/n01530575_10.JPEG", 6), (root / "n01530575/a name.JPEG", 24)]
    assert run("docs/benchmarks/subtypes.md")["samples"] == samples


def test_the_loss_of_augmix_trains(folder, monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    for number in range(2):
        put_photo(folder / "train" / "cat" / f"{number}.JPEG", 60, 70, seed=number)
    monkeypatch.setattr(torch.utils.data, "DataLoader", _without_workers(torch.utils.data.DataLoader))
    model = torch.nn.Sequential(torch.nn.AvgPool2d(32), torch.nn.Flatten(), torch.nn.Linear(147, 2))
    loss = run("docs/benchmarks/augmix.md", model=lambda images: model(images), range=lambda count: [0])[
        "loss"
    ]
    loss.backward()
    assert np.isfinite(loss.item()) and model[2].weight.grad.abs().sum() > 0


def _without_workers(loader):
    return lambda *args, num_workers, **settings: loader(*args, **settings)
