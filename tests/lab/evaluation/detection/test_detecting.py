"""`robustgen evaluate --annotations FILE`: the same result files by both ways, resumed runs, wrong input."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask
from skimage import data as photographs

from robustgen.files.storage import open_store
from robustgen.lab.models.detectors import TorchvisionDetector, open_detector
from robustgen.pixels.imaging.decode import decode
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.sources import files
from robustgen.settings.models import Runtime
from tests.helpers import cli, cli_error, photo, pixels_of, put_tagged, read_upright, whole
from tests.servers import BUCKET

NAMES = ("contrast", "fog")
SIZE = (120, 160)
DETECTOR = """
from scipy import ndimage


def bright(image):
    grey = ndimage.gaussian_filter(image.mean(axis=2), 2)
    labels, count = ndimage.label(grey > grey.mean() + 10)
    found = []
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), 1):
        box = [columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start]
        score = float(grey[labels == number].mean() / 255)
        found.append({"category_id": 1 + number % 2, "bbox": box, "score": score})
    return found


def broken(image):
    raise RuntimeError("no\\nluck")


def wrong(image):
    return [{"bbox": [1, 2, 3, 4], "score": 1.0}]


def other(image):
    return [{"category_id": 99, "bbox": [1, 2, 3, 4], "score": 1.0}]


def text(image):
    return "boxes"


def corners(image):
    height, width = image.shape[:2]
    score = float(image[: height // 2, : width // 2].mean())
    return [{"category_id": 1, "bbox": [0, 0, width, height], "score": score}]


left = [1000]


def tired(image):
    left[0] -= 1
    if left[0] < 0:
        raise RuntimeError("tired")
    return bright(image)
"""


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    """Twenty pieces of real photographs, JPEG and PNG, laid out as COCO is."""
    root = tmp_path_factory.mktemp("coco")
    rng = np.random.default_rng(0)
    sources = [photographs.astronaut(), photographs.coffee(), photographs.chelsea(), photographs.rocket()]
    images, items = [], []
    (root / "coco" / "val2017").mkdir(parents=True)
    for number in range(20):
        photo = sources[number % 4]
        top, left = (rng.integers(0, own - side) for own, side in zip(photo.shape[:2], SIZE, strict=True))
        name = f"{number:012d}.{'png' if number % 5 == 0 else 'jpg'}"
        piece = photo[top : top + SIZE[0], left : left + SIZE[1]]
        Image.fromarray(piece).save(root / "coco" / "val2017" / name)
        images.append({"id": number + 1, "file_name": name, "height": SIZE[0], "width": SIZE[1]})
        for _ in range(3):
            x, y, w, h = (rng.random(4) * (100, 70, 50, 40) + (0, 0, 8, 8)).round(1).tolist()
            own = {"id": len(items) + 1, "image_id": number + 1, "category_id": int(rng.integers(1, 3))}
            outline = [[x, y, x + w, y, x + w, y + h, x, y + h]]
            items.append(own | {"bbox": [x, y, w, h], "area": w * h, "iscrowd": 0, "segmentation": outline})
    content = {
        "images": images,
        "annotations": items,
        "categories": [{"id": number} for number in range(1, 91)],
    }
    (root / "instances.json").write_text(json.dumps(content))
    (root / "mydetector.py").write_text(DETECTOR)
    return root


@pytest.fixture
def at_home(coco, monkeypatch):
    monkeypatch.chdir(coco)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield coco
    sys.modules.pop("mydetector", None)


def images_of(root):
    chosen = ("--corruptions", ",".join(NAMES), "--severities", "2,5", "--set", "constants_for=224")
    return ("--source", root / "coco", *chosen, "--set", "format=original")


def command(root, output, *more, model="mydetector:bright", jobs=1):
    own = ("--annotations", root / "instances.json", "--model", model)
    return ("evaluate", *own, *images_of(root), "--jobs", jobs, "--output", output, *more)


def by_the_other_way(root, tmp_path, detector, *more):
    """Result files of the images that make-c writes, in the order of the annotations."""
    cli("make-c", *images_of(root), *more, "--jobs", 1, "--output", tmp_path / "set")
    images = json.loads((root / "instances.json").read_text())["images"]
    for variant in open_set(tmp_path / "set").variants:
        variant = variant.folder
        results = []
        for each in images:
            pixels = decode(tmp_path / "set" / variant / "val2017" / each["file_name"])
            results += [{"image_id": each["id"], **found} for found in detector.detect(pixels)]
        yield variant, results


def test_a_function_gives_the_same_results_by_both_ways(at_home, tmp_path):
    result = cli(*command(at_home, tmp_path / "out"))
    assert (
        "5 files written, 0 were there already" in result.stdout
        and "Box AP in % by severity" in result.stdout
    )
    detector = open_detector("mydetector:bright", Runtime())
    for variant, wanted in by_the_other_way(at_home, tmp_path, detector):
        found = json.loads((tmp_path / "out" / "mydetector-bright" / f"{variant}.json").read_text())
        assert found == wanted and found


def test_results_on_a_server_are_those_on_disk(at_home, tmp_path, s3):
    store = open_store(f"s3://{BUCKET}/out")
    for output in (tmp_path / "out", store.location):
        cli(*command(at_home, output))
    wanted = whole(tmp_path / "out" / "mydetector-bright")
    assert {name: store.read(f"mydetector-bright/{name}") for name in wanted} == wanted


@pytest.mark.slow("runs a detector of torchvision")
def test_a_detector_of_torchvision_gives_the_same_results_by_both_ways(coco, tmp_path):
    torch = pytest.importorskip("torch")
    models = pytest.importorskip("torchvision").models
    torch.manual_seed(0)
    # The fastest of them; untrained, it finds something nearly everywhere.
    name = "ssdlite320_mobilenet_v3_large"
    module = models.get_model(name, weights=None, weights_backbone=None)
    torch.save(module.state_dict(), tmp_path / "weights.pth")
    model = f"torchvision:{name}@{tmp_path / 'weights.pth'}"
    few = ("--corruptions", "fog", "--severities", 2)
    cli(*command(coco, tmp_path / "out", *few, "--threads", 1, "--quiet", model=model))
    folder = tmp_path / "out" / f"torchvision-{name}"
    detector = open_detector(model, Runtime(threads=1))
    total = 0
    for variant, results in by_the_other_way(coco, tmp_path, detector, *few):
        found = json.loads((folder / f"{variant}.json").read_text())
        assert found == results
        total += len(found)
    assert total > 100


def test_masks_and_corners_become_those_of_coco():
    torch = pytest.importorskip("torch")

    class Finder(torch.nn.Module):
        def forward(self, images):
            (image,) = images
            assert image.shape == (3, 8, 10) and float(image.max()) <= 1
            masks = torch.zeros(1, 1, 8, 10)
            masks[0, 0, 2:5, 3:7] = 0.9
            boxes = torch.tensor([[3.0, 2.0, 7.0, 5.0]])
            return [
                {"boxes": boxes, "labels": torch.tensor([4]), "scores": torch.tensor([0.5]), "masks": masks}
            ]

    detector = TorchvisionDetector("torchvision:finder@x", Finder(), Path(__file__), Runtime(device="cpu"))
    (found,) = detector.detect(np.full((8, 10, 3), 255, np.uint8))
    assert (found["category_id"], found["bbox"], found["score"]) == (4, [3.0, 2.0, 4.0, 3.0], 0.5)
    wanted = np.zeros((8, 10), np.uint8)
    wanted[2:5, 3:7] = 1
    assert (mask.decode(found["segmentation"]) == wanted).all()
    assert json.loads(json.dumps(found)) == found


@pytest.mark.slow("runs again for each file")
def test_a_run_goes_on_where_files_are_missing(at_home, tmp_path):
    cli(*command(at_home, tmp_path / "out", "--quiet"))
    folder = tmp_path / "out" / "mydetector-bright"
    before = (folder / "fog" / "5.json").read_bytes()
    (folder / "fog" / "5.json").unlink()
    result = cli(*command(at_home, tmp_path / "out", "--quiet", jobs=2))
    assert "1 files written, 4 were there already" in result.stdout
    assert (folder / "fog" / "5.json").read_bytes() == before
    line = cli_error(*command(at_home, tmp_path / "out", "--seed", 1))
    assert line.startswith(f"{folder}: created with different settings: images.seed was 0 and is now 1.")
    # Constants of one's own are other settings; more corruptions are not.
    (tmp_path / "own.yaml").write_text("parameters: {fog: {2: {strength: 3.0}}}\n")
    assert "different settings" in cli_error(
        *command(at_home, tmp_path / "out", "--config", tmp_path / "own.yaml")
    )
    more = cli(*command(at_home, tmp_path / "out", "--corruptions", "contrast,fog,pixelate", "--quiet"))
    assert "2 files written, 5 were there already" in more.stdout
    result = cli(*command(at_home, tmp_path / "out", "--seed", 1, "--overwrite", "--quiet"))
    assert "5 files written" in result.stdout and (folder / "fog" / "5.json").read_bytes() != before


def test_images_are_read_once_for_all_variants_and_detectors_and_not_again_after_an_interruption(
    at_home, tmp_path, monkeypatch
):
    read, decoded = files.EncodedSource.read, list[str]()
    monkeypatch.setattr(
        files.EncodedSource, "read", lambda self, key: (decoded.append(key), read(self, key))[1]
    )
    both = [*command(at_home, tmp_path / "out", "--quiet", "--model", "mydetector:tired")]
    cli(*both)
    assert len(decoded) == len({*decoded}) == 20
    whole = {
        each.relative_to(tmp_path / "out"): each.read_bytes() for each in (tmp_path / "out").rglob("*.json")
    }
    first, second = (tmp_path / "out" / f"mydetector-{name}" for name in ("bright", "tired"))
    for name in ("clean", "contrast/2", "fog/5"):
        assert (first / f"{name}.json").read_bytes() == (second / f"{name}.json").read_bytes()
    # The second detector fails in the eighth image, after seven in five variants.
    decoded.clear()
    both[both.index("--output") + 1] = tmp_path / "again"
    monkeypatch.setattr(sys.modules["mydetector"], "left", [7 * 5 + 2])
    assert "tired" in cli_error(*both)
    monkeypatch.setattr(sys.modules["mydetector"], "left", [1000])
    decoded.clear()
    cli(*both)
    assert len(decoded) == len({*decoded}) == 13
    again = tmp_path / "again"
    assert whole == {each.relative_to(again): each.read_bytes() for each in again.rglob("*.json")}


def test_some_images_are_scored_against_their_own_annotations(at_home, tmp_path):
    result = cli(*command(at_home, tmp_path / "out", "--limit", 6))
    folder = tmp_path / "out" / "mydetector-bright"
    content = json.loads((folder / "annotations.json").read_text())
    assert len(content["images"]) == 6 and len(content["annotations"]) == 18
    assert "Box: clean (P)" in result.stdout


def test_wrong_input(at_home, tmp_path):
    def error(*more, **how):
        return cli_error(*command(at_home, tmp_path / "x", *more, **how))

    for model, says in (
        ("mydetector:broken", "RuntimeError: no"),
        ("mydetector:wrong", "a detection lacks category_id"),
        ("mydetector:text", "must return a list, not str"),
        ("nowhere:bright", "ModuleNotFoundError"),
        ("model.onnx", "a detector is torchvision:NAME@FILE or module:function"),
    ):
        assert says in error(model=model)
    unknown = error(model="torchvision:resnet50@x.pth")
    without_weights = error(model="torchvision:retinanet_resnet50_fpn")
    if find_spec("torchvision"):
        assert "torchvision's detectors are" in unknown
        assert "name its weights" in without_weights
    else:
        assert "pip install 'robustgen[torch]'" in unknown
    for flag, value in (("--perturbations", "tilt"), ("--batch-size", "10")):
        assert f"{flag} cannot be combined with --annotations" in error(flag, value)
    assert "where the annotations have 160 x 120" in error("--edition", "imagenet-64")
    truth = json.loads((at_home / "instances.json").read_text())
    truth["images"][4]["file_name"] = "elsewhere.jpg"
    (tmp_path / "other.json").write_text(json.dumps(truth))
    others = {at_home / "instances.json": tmp_path / "other.json"}
    line = cli_error(*(others.get(each, each) for each in command(at_home, tmp_path / "x")))
    assert "1 of 20 images of" in line and "are missing: elsewhere.jpg" in line
    (tmp_path / "taken" / "mydetector-bright").mkdir(parents=True)
    (tmp_path / "taken" / "mydetector-bright" / "notes.txt").write_text("mine")
    assert "no run recorded notes.txt" in cli_error(*command(at_home, tmp_path / "taken"))


def test_detections_of_other_categories_are_counted(at_home, tmp_path):
    result = cli(*command(at_home, tmp_path / "out", "--quiet", model="mydetector:other"))
    assert result.stderr.startswith("100 detections with categories that ")


# --- orientation ---------------------------------------------------------------------------------

STORED = (40, 64)


def put_turned(root, forms, orientations=range(1, 9), size=STORED, suffix=".jpg"):
    """Tagged images and their annotations, which have the size of the form of each: stored or upright."""
    images = []
    for number, (orientation, form) in enumerate(zip(orientations, forms, strict=True), 1):
        file = put_tagged(root / "src" / "val" / f"{number}{suffix}", orientation, *size)
        height, width = read_upright(file).shape[:2] if form == "upright" else size
        images.append({"id": number, "file_name": file.name, "width": width, "height": height})
    box = {"category_id": 1, "bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0}
    boxes = [{"id": each["id"], "image_id": each["id"], **box} for each in images]
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1}]}
    (root / "a.json").write_text(json.dumps(content))
    return root / "src"


def see(root, output, *more):
    """Run a detector; return the result, and size and mean of a corner of each image in each variant."""
    source = ("--dataset", "coco-c", "--source", root / "src", "--annotations", root / "a.json")
    few = ("--corruptions", "contrast", "--severities", 2, "--jobs", 1)
    done = cli("evaluate", *source, "--model", "mydetector:corners", *few, "--output", output, *more)
    found = {}
    for variant in ("clean", "contrast/2"):
        content = json.loads((output / "mydetector-corners" / f"{variant}.json").read_text())
        found[variant] = {each["image_id"]: (each["bbox"][2:], each["score"]) for each in content}
    return done, found


def look(pixels):
    """What the detector sees of them."""
    height, width = pixels.shape[:2]
    return [width, height], pytest.approx(float(pixels[: height // 2, : width // 2].mean()))


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tif"])
def test_a_detector_gets_what_readers_of_the_set_get(at_home, tmp_path, suffix):
    source = put_turned(tmp_path, ["upright"] * 8, suffix=suffix)
    few = ("--corruptions", "contrast", "--severities", 2, "--jobs", 1)
    cli("make-c", "--dataset", "coco-c", "--source", source, *few, "--output", tmp_path / "set")
    done, found = see(tmp_path, tmp_path / "out")
    assert "7 of 8 images have an EXIF orientation" in done.stderr and "7 upright" in done.stderr
    for variant, seen in found.items():
        for number in range(1, 9):
            file = tmp_path / "set" / variant / "val" / f"{number}{suffix}"
            assert seen[number] == look(read_upright(file)), (variant, number)


@pytest.mark.parametrize(
    ("forms", "orientations", "size", "flags", "wanted"),
    [
        # The sizes of the turned ones decide also for those whose sides are the same.
        (["stored"] * 8, range(1, 9), STORED, (), ["stored"] * 8),
        (["upright"] * 8, range(1, 9), STORED, (), ["upright"] * 8),
        # Nothing decides, and one does.
        (["stored"] * 3, (2, 3, 4), STORED, (), ["upright"] * 3),
        (["stored"] * 4, (2, 3, 4, 6), STORED, (), ["stored"] * 4),
        (["stored"] * 3, (5, 6, 8), (40, 40), (), ["upright"] * 3),
        # They disagree.
        (["stored", "stored", "upright"], (3, 6, 6), STORED, (), ["upright", "stored", "upright"]),
        # One that is not chosen decides.
        (["stored"] * 2, (3, 6), STORED, ("--limit", 1), ["stored"]),
        (["stored"] * 3, (2, 3, 4), STORED, ("--set", "orientation=stored"), ["stored"] * 3),
        (["stored"] * 2, (3, 4), STORED, ("--set", "orientation=upright"), ["upright"] * 2),
        (["stored"] * 2, (6, 3), STORED, ("--set", "orientation=stored"), ["stored"] * 2),
    ],
)
def test_annotations_decide_what_a_detector_gets(at_home, tmp_path, forms, orientations, size, flags, wanted):
    source = put_turned(tmp_path, forms, orientations, size, suffix=".png")
    _, found = see(tmp_path, tmp_path / "out", *flags)
    for number, form in enumerate(wanted, 1):
        file = source / "val" / f"{number}.png"
        read = {"upright": read_upright, "stored": pixels_of}[form]
        assert found["clean"][number] == look(read(file)), number


def test_an_orientation_against_the_annotations_is_refused_with_the_way_out(at_home, tmp_path):
    put_turned(tmp_path, ["stored"], [6])
    own = ("--source", tmp_path / "src", "--annotations", tmp_path / "a.json", "--output", tmp_path / "out")
    flags = ("--model", "mydetector:corners", "--corruptions", "contrast", "--severities", 2, "--jobs", 1)
    command = ("evaluate", "--dataset", "coco-c", *own, *flags)
    *_, line = cli(*command, "--set", "orientation=upright", status=2).stderr.splitlines()
    assert "'val/1.jpg'" in line and "orientation=upright" in line
    # The way out works, and results of one form are not those of another.
    see(tmp_path, tmp_path / "out")
    *_, line = cli(*command, "--set", "orientation=stored", status=2).stderr.splitlines()
    assert "images.orientation" in line


def test_files_without_a_tag_are_not_mentioned(at_home, tmp_path):
    put_turned(tmp_path, ["stored"] * 2, [0, 1])
    done, _ = see(tmp_path, tmp_path / "out")
    assert "EXIF" not in done.stderr
    settings = json.loads((tmp_path / "out" / "mydetector-corners" / "detections.json").read_text())
    assert "orientation" not in settings["images"]


def test_a_finished_run_names_an_image_that_changed(at_home, tmp_path):
    source = put_turned(tmp_path, ["stored"] * 3, [0, 0, 0], suffix=".bmp")
    see(tmp_path, tmp_path / "out")
    Image.fromarray(photo(*STORED, seed=77)).save(source / "val" / "2.bmp")
    own = ("--source", source, "--annotations", tmp_path / "a.json", "--output", tmp_path / "out")
    flags = ("--model", "mydetector:corners", "--corruptions", "contrast", "--severities", 2, "--jobs", 1)
    line = cli_error("evaluate", "--dataset", "coco-c", *own, *flags)
    assert "'val/2.bmp'" in line and "--overwrite" in line
    see(tmp_path, tmp_path / "out", "--overwrite")
    done, _ = see(tmp_path, tmp_path / "out")
    assert "0 files written" in done.stdout
