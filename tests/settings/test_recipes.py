"""Recipes: the command of each row, tried on a stand-in of the set and opened by its usual loader."""

import shlex

import numpy as np
import pytest

from robustgen.settings.recipes import list_recipes
from tests.helpers import cli, pixels_of, slow_after
from tests.set_trees import HEIGHT, TREES, WIDTH, put_tree

RECIPES = {row.name: row for row in list_recipes()}


def open_coco(folder, annotations="annotations/instances_val2017.json", images="val2017"):
    held = pytest.importorskip("pycocotools.coco").COCO(folder / annotations)
    return [images + "/" + held.imgs[held.anns[1]["image_id"]]["file_name"]]


def open_torchvision(name, *arguments, **options):
    def load(folder):
        datasets = pytest.importorskip("torchvision.datasets")
        found = getattr(datasets, name)(folder, *arguments, **options)
        return [np.asarray(each) for each in found[0] if hasattr(each, "size") and not np.isscalar(each)][:1]

    return load


def open_celeba(folder):
    datasets = pytest.importorskip("torchvision.datasets")

    class Stand(datasets.CelebA):
        def _check_integrity(self):
            # The digests are those of the published files.
            return True

    return [np.asarray(Stand(folder, "test")[0][0])]


def open_flickr(folder):
    datasets = pytest.importorskip("torchvision.datasets")
    found = datasets.Flickr30k(folder / "flickr30k-images", folder / "results_20130124.token")
    return [np.asarray(found[0][0])]


# What a loader returns: names of pictures that it would open, or pixels.
LOADERS = {
    "COCO": open_coco,
    "DocLayNet": lambda folder: open_coco(folder, "COCO/val.json", "PNG"),
    "Pascal VOC": open_torchvision("VOCDetection", image_set="val", download=False),
    "Cityscapes": open_torchvision("Cityscapes", split="val", target_type="semantic"),
    "KITTI object": open_torchvision("Kitti"),
    "KITTI 2015": open_torchvision("Kitti2015Stereo"),
    "CelebA": open_celeba,
    "Oxford-IIIT Pet": open_torchvision("OxfordIIITPet", split="test"),
    "Food-101": open_torchvision("Food101", split="test"),
    "Flickr30k": open_flickr,
    "EuroSAT": open_torchvision("ImageFolder"),
    "PACS": open_torchvision("ImageFolder"),
    "ImageNet from the Hub": open_torchvision("ImageFolder"),
}


def make(tmp_path, monkeypatch, name, *flags):
    pictures = put_tree(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    *command, flag, _ = shlex.split(RECIPES[name].command)
    assert flag == "--output"
    more = [] if "--corruptions" in command else ["--corruptions", "brightness"]
    more += ["--severities", RECIPES[name].severities[-1], "--jobs", "1"]
    result = cli(*command, *more, *flags, "--output", "out")
    source = command[command.index("--source") + 1]
    return source, pictures, result


@pytest.mark.parametrize("name", slow_after(2, "all recipes", [*RECIPES]))
def test_the_command_of_a_recipe_keeps_what_the_loader_opens(tmp_path, monkeypatch, name):
    source, pictures, _ = make(tmp_path, monkeypatch, name)
    variants = {"Market-1501": "mixed", "nuScenes": "robobev.brightness/3"}
    folder = tmp_path / "out" / variants.get(name, "brightness/5")
    if not pictures:
        inside = [path for path in folder.rglob("*.*") if path.is_file()]
        assert len(inside) >= sum(path.startswith(source) for path in TREES[name])
    for path in TREES[name] if pictures else ():
        inside = path.removeprefix(f"{source}/")
        same = (tmp_path / path).read_bytes() == (folder / inside).read_bytes()
        assert same == (path not in pictures), inside
    opened = LOADERS[name](folder) if name in LOADERS else []
    assert opened or name not in LOADERS
    for each in opened:
        pixels = pixels_of(folder / each) if isinstance(each, str) else each
        assert pixels.shape == ((224, 224, 3) if "imagenet" in RECIPES[name].command else (HEIGHT, WIDTH, 3))


def test_loaders_that_are_named_are_tried():
    named = {name for name, row in RECIPES.items() if "torchvision" in row.loader or "coco" in row.loader}
    assert named == {*LOADERS} and RECIPES.keys() == TREES.keys()


@pytest.mark.slow("imports datasets")
def test_tables_are_opened_by_datasets(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    make(tmp_path, monkeypatch, "VQA in Parquet")
    files = [str(path) for path in (tmp_path / "out").glob("brightness/5/**/*.parquet")]
    (row,) = datasets.load_dataset("parquet", data_files=files, cache_dir=tmp_path / "cache")["train"]
    assert row["question"] == "What?" and row["answers"] == ["cat"]


def test_each_recipe_has_an_output_of_its_own():
    # A second set in the same folder is refused.
    outputs = {shlex.split(row.command)[-1] for row in RECIPES.values()}
    assert len(outputs) == len(RECIPES) and all(output.startswith("out/") for output in outputs)


def test_recipes_are_listed():
    said = cli("list", "recipes").stdout
    assert all(row.name in said and row.command in said for row in list_recipes())
    assert "pycocotools" in cli("list", "COCO").stdout


@pytest.mark.parametrize(("name", "layout"), [("COCO", "COCO"), ("KITTI object", "KITTI"), ("DOTA", "")])
def test_a_dry_run_names_the_layout(tmp_path, monkeypatch, name, layout):
    *_, result = make(tmp_path, monkeypatch, name, "--dry-run")
    assert [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("layout")] == [
        layout.split()
    ] * bool(layout)
