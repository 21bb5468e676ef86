"""`robustgen score-detection`: pycocotools' own numbers, their means and intervals, and wrong input."""

import contextlib
import copy
import csv
import io
import json
import re
import sys

import numpy as np
import pytest
from pycocotools import coco, cocoeval, mask

from robustgen.lab.evaluation.detection.reading import decode_runs, read_annotations
from robustgen.lab.scores.detection import (
    AP_METRICS,
    PRECISIONS,
    Evaluator,
    collect_matches,
    stats_of,
    weighted_precisions,
)
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from tests.helpers import cli, cli_error, latest

SIZE = (240, 320)


def blob(box):
    """A run-length mask of an ellipse in a box."""
    x, y, width, height = box
    rows, columns = np.ogrid[: SIZE[0], : SIZE[1]]
    inside = ((columns - x - width / 2) / (width / 2)) ** 2 + (
        (rows - y - height / 2) / (height / 2)
    ) ** 2 <= 1
    made = mask.encode(np.asfortranarray(inside.astype(np.uint8)))
    return {"size": list(SIZE), "counts": made["counts"].decode()}


def make_truth(rng, images=30, masks=False):
    """Annotations as COCO's: three categories, all sizes, some crowds; one image has nothing."""
    items = []
    for image in range(images - 1):
        for _ in range(rng.integers(3, 12)):
            width, height = np.exp(rng.uniform(2, 5) + rng.uniform(-0.3, 0.3, 2)).round(2).tolist()
            x, y = (rng.random(2) * (SIZE[1] - width, SIZE[0] - height)).round(2).tolist()
            box = [max(x, 0), max(y, 0), min(width, 200), min(height, 150)]
            crowd = int(rng.random() < 0.05)
            item = {"id": len(items) + 1, "image_id": 10 * image, "category_id": int(rng.choice([3, 7, 18]))}
            item |= {"bbox": box, "area": box[2] * box[3] * 0.7, "iscrowd": crowd}
            item["segmentation"] = (
                blob(box) if masks else [[box[0], box[1], box[0] + 9, box[1], box[0], box[1] + 9]]
            )
            items.append(item)
    listed = [
        {"id": 10 * i, "file_name": f"{i:012d}.jpg", "height": SIZE[0], "width": SIZE[1]}
        for i in range(images)
    ]
    return {
        "images": listed,
        "annotations": items,
        "categories": [{"id": c, "name": f"c{c}"} for c in (3, 7, 18)],
    }


def detect(rng, truth, noise, masks=False):
    """What a detector might find: moved boxes, some of another category, others of nothing."""
    found = []
    for item in truth["annotations"]:
        for _ in range(rng.poisson(1.5 - noise)):
            *_, width, height = item["bbox"]
            moved = item["bbox"] + noise * rng.normal(0, 0.4, 4) * (width, height, width, height)
            category = item["category_id"] if rng.random() > noise / 2 else 7
            found.append([item["image_id"], category, moved, 1 - noise * rng.random()])
    for _ in range(40):
        box = rng.random(4) * (200, 150, 100, 80)
        image = 10 * int(rng.integers(0, len(truth["images"])))
        found.append([image, int(rng.choice([3, 7, 18])), box, 0.6 * rng.random()])
    results = []
    for image, category, box, score in found:
        box = np.clip(box, [0, 0, 1, 1], [300, 230, 300, 230]).round(2).tolist()
        # Scores of two digits tie now and then.
        results.append({"image_id": image, "category_id": category, "bbox": box, "score": round(score, 2)})
        if masks:
            results[-1]["segmentation"] = blob(box)
    return results


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def put_run(root, masks=False, names=IMAGENET_C.common, levels=(1, 2, 3, 4, 5), images=30):
    rng = np.random.default_rng(0)
    truth = make_truth(rng, images, masks)
    put(root / "truth.json", truth)
    put(root / "clean.json", detect(rng, truth, 0.2, masks))
    for name in names:
        for level in levels:
            put(root / name / f"{level}.json", detect(rng, truth, 0.2 + level / 8, masks))
    return truth


def flags(root):
    pattern = root / "{corruption}" / "{severity}.json"
    files = (
        "--annotations",
        root / "truth.json",
        "--results",
        pattern,
        "--clean-results",
        root / "clean.json",
    )
    return ("score-detection", *files, "--jobs", 1)


def report_of(root, *more):
    command, *given = flags(root)
    return json.loads(cli(command, *latest(*given, "--format", "json", *more)).stdout)


def theirs(root, results, iou_type):
    """The stats of pycocotools, used as its own example does."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO(str(root / "truth.json"))
        content = json.loads(results.read_text())
        if iou_type == "segm":
            # With boxes, loadRes would take the areas of these.
            content = [{k: v for k, v in each.items() if k != "bbox"} for each in content]
        evaluation = cocoeval.COCOeval(truth, truth.loadRes(content), iou_type)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("detection")
    put_run(root)
    return root


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    root = tmp_path_factory.mktemp("small")
    put_run(root, images=4)
    return root


@pytest.mark.slow("scores 96 folders of detections twice")
def test_every_number_is_that_of_pycocotools(run):
    report = report_of(run, "--replicates", 20)
    (found,) = report["types"].values()
    by_cell = {
        (name, level): theirs(run, run / name / f"{level}.json", "bbox")
        for name in IMAGENET_C.common
        for level in range(1, 6)
    }
    for (name, level), stats in by_cell.items():
        assert [*found["corruptions"][name][str(level)].values()] == stats.tolist()
    clean = theirs(run, run / "clean.json", "bbox")
    means = np.mean([*by_cell.values()], axis=0)
    for place, metric in enumerate(AP_METRICS):
        p, mean, relative = found["summary"][metric].values()
        assert (p, mean, relative) == pytest.approx((clean[place], means[place], means[place] / clean[place]))
    assert report_of(run, "--replicates", 20, "--jobs", 2) == report
    for metric in PRECISIONS:
        for name, (low, high) in found["intervals"][metric].items():
            # Of thirty images, in whose samples average precision has a bias upwards.
            assert 0 <= low < found["summary"][metric][name] < high


def test_masks_are_scored_by_their_own_areas(tmp_path):
    put_run(tmp_path, masks=True, names=["fog"], levels=[2])
    report = report_of(tmp_path, "--partial")
    assert list(report["types"]) == ["bbox", "segm"]
    for form, found in report["types"].items():
        stats = theirs(tmp_path, tmp_path / "fog" / "2.json", form)
        assert [*found["corruptions"]["fog"]["2"].values()] == [v if v >= 0 else None for v in stats]
    assert report_of(tmp_path, "--partial", "--type", "segm")["types"] == {"segm": report["types"]["segm"]}


def test_a_bootstrap_sample_is_the_set_with_its_images_repeated(run):
    truth = read_annotations(run / "truth.json")
    results = json.loads((run / "fog" / "3.json").read_text())
    rng = np.random.default_rng(5)
    # Equal scores within an image would stand in another order.
    results = [each | {"score": each["score"] + 1e-6 * rng.random()} for each in results]
    weights = np.array([np.bincount(rng.integers(0, 30, 30), minlength=30) for _ in range(6)])
    weights = np.concatenate([np.ones((1, 30), int), weights])
    matches = collect_matches(Evaluator(truth, "bbox").evaluate(results))
    found = weighted_precisions(matches, weights)
    for row, wanted in zip(weights, found, strict=True):
        images, items, detections = [], [], []
        for place, times in enumerate(row):
            for copy_number in range(times):
                own = 1000 * (place + 1) + copy_number
                images.append({"id": own, "height": SIZE[0], "width": SIZE[1]})
                for each in truth.content["annotations"]:
                    if each["image_id"] == 10 * place:
                        items.append(copy.deepcopy(each) | {"image_id": own, "id": len(items) + 1})
                detections += [each | {"image_id": own} for each in results if each["image_id"] == 10 * place]
        repeated = type(truth)(
            truth.path,
            {"images": images, "annotations": items, "categories": truth.content["categories"]},
            {each["id"]: SIZE for each in images},
            truth.categories,
        )
        stats = stats_of(Evaluator(repeated, "bbox").evaluate(detections))
        assert wanted == pytest.approx([stats[name] for name in PRECISIONS], abs=1e-12)


def test_more_than_a_hundred_boxes_of_an_image_change_nothing(run, tmp_path):
    truth = read_annotations(run / "truth.json")
    results = json.loads((run / "clean.json").read_text())
    rng = np.random.default_rng(2)
    for _ in range(300):
        box = (rng.random(4) * 100 + 1).tolist()
        results.append({"image_id": 0, "category_id": 3, "bbox": box, "score": rng.random()})
    ours = Evaluator(truth, "bbox").evaluate(results).stats
    assert ours.tolist() == theirs(run, put(tmp_path / "many.json", results), "bbox").tolist()


def test_tables_and_csv(small, lone):
    text = cli(*flags(small), "--replicates", 10).stdout
    lines = text.splitlines()
    start = "Box: clean (P), mean under corruption (mPC), and rPC = mPC / P, in %"
    assert lines[0].startswith(f"{start}, ") and "95 % interval" in lines[0]
    assert lines[1].split() == ["P", "mPC", "rPC"]
    assert re.fullmatch(r"AP( +\d+\.\d (± *\d+\.\d|\[ *[\d.]+, [\d.]+\])){3}", lines[2]) and re.fullmatch(
        r"AR1( +\d+\.\d){3}", lines[8]
    )
    assert [line.split()[0] for line in lines[2:14]] == [*AP_METRICS]
    assert "Box AP in % by severity" in lines and lines[-1].startswith("jpeg_compression")
    few = (*flags(lone.parents[1]), "--partial", "--format", "csv", "--replicates")
    rows, drawn = ([*csv.DictReader(io.StringIO(cli(*few, count).stdout))] for count in (0, 10))
    assert [row["column"] for row in rows[:3]] == ["P", "mPC", "rPC"] and {*map(len, rows)} == {6}
    clean, mean, relative = (float(row["value"]) for row in rows[:3])
    assert relative == pytest.approx(mean / clean) and rows[0]["low"] == ""
    found = report_of(lone.parents[1], "--partial", "--replicates", 10)
    ends = found["types"]["bbox"]["intervals"]["AP"]["mPC"]
    assert [float(drawn[1][end]) for end in ("low", "high")] == ends


def test_published_detectors_stand_beside_ones_own(small, lone):
    command = (*flags(small), "--replicates", 0, "--compare-with", "published", "--name", "Mine")
    result = cli(*command)
    lines = result.stdout.splitlines()
    rows = lines[lines.index("Box AP in % among published detectors (yours is marked with >)") + 2 :]
    assert rows[0].split() == ["Hybrid", "Task", "Cascade", "X-101-64x4d-FPN-DCN", "50.6", "32.7", "64.7"]
    assert len(rows) == 13 and any(row.startswith("> Mine") for row in rows)
    assert "MMDetection, COCO-C: COCO val2017" in result.stderr
    published = report_of(lone.parents[1], "--partial", "--compare-with", "published")["published"]
    for each in published["models"]:
        for form in ("bbox", "segm"):
            if form in each:
                assert each[form]["mPC"] / each[form]["P"] == pytest.approx(each[form]["rPC"], abs=0.0025)


def test_a_partial_set_says_what_is_missing(tmp_path):
    put_run(tmp_path, names=["fog", "snow"], levels=[1, 3])
    assert "--results: incomplete: gaussian_noise, " in cli_error(*flags(tmp_path))
    (tmp_path / "snow" / "1.json").unlink()
    result = cli(*flags(tmp_path), "--partial", "--format", "json")
    assert json.loads(result.stdout)["types"]["bbox"]["mean_over"] == ["snow/3", "fog/3"]
    assert "snow/1" in result.stderr


@pytest.fixture
def lone(tmp_path):
    """The results of one corruption at one severity."""
    put_run(tmp_path, names=["fog"], levels=[1])
    return tmp_path / "fog" / "1.json"


def change(number, **values):
    return lambda results: results[number].update(values)


def mask_of(counts, size=SIZE):
    return change(0, segmentation={"size": [*size], "counts": counts})


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (change(3, image_id=5), "detection 3: image_id 5 is not among the images of"),
        (change(0, category_id=99), "detection 0: category_id 99 is not among those of"),
        (change(0, score=float("nan")), "detection 0: score nan is not a finite number"),
        (change(0, score="high"), "detection 0: score 'high' is not a finite number"),
        (change(1, bbox=[1, 2, 3]), "detection 1: bbox [1, 2, 3] is not [x, y, width, height]"),
        (change(1, bbox=[1, 2, float("inf"), 3]), "is not [x, y, width, height]"),
        (change(1, bbox=[1, 2, -3, 3]), "is not [x, y, width, height]"),
        (lambda results: results[0].pop("score"), "has no image_id, category_id and score"),
        (lambda results: results[0].pop("bbox"), "has neither bbox nor segmentation"),
        (lambda results: results.insert(0, 3), "has no image_id, category_id and score"),
        (mask_of("0", (3, 4)), "a mask of size [3, 4] for an image of size"),
        (mask_of("zz"), "the runs of its mask do not fill the image"),
        (mask_of([5]), "the runs of its mask do not fill the image"),
        (mask_of("o" * 1_000_000), "the runs of its mask do not fill the image"),
        (change(0, score=10**400), "is not a finite number"),
        (change(0, segmentation=[[1, 2, 3]]), "its segmentation is not a run-length mask"),
    ],
)
def test_wrong_results(lone, tmp_path, damage, says):
    results = json.loads(lone.read_text())
    damage(results)
    put(lone, results)
    line = cli_error(*flags(tmp_path), "--partial")
    assert line.startswith(f"{lone}: ") and says in line


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda truth: truth.pop("images"), "not COCO annotations (KeyError: 'images')"),
        (lambda truth: truth["images"].clear(), "image_id"),
        (lambda truth: truth["annotations"][0].update(category_id=1), "category_id 1"),
        (lambda truth: truth["annotations"][0].update(bbox=[1]), "bbox, area or id is malformed"),
        (lambda truth: truth["images"][0].update(height=10**9), "image 0 is 320 x 1000000000 pixels"),
        (lambda truth: truth["images"][0].update(width=0), "image 0 is 0 x 240 pixels"),
        (lambda truth: truth["annotations"][0].update(id=2**60), "must be distinct and positive"),
        (lambda truth: truth["annotations"][0].update(id=2), "must be distinct and positive"),
        (lambda truth: truth["images"].append({**truth["images"][0], "file_name": "x.jpg"}), "2 images have"),
        (lambda truth: truth["categories"].append(dict(truth["categories"][0])), "2 categories have the id"),
    ],
)
def test_wrong_annotations(tmp_path, damage, says):
    truth = put_run(tmp_path, names=["fog"], levels=[1])
    damage(truth)
    put(tmp_path / "truth.json", truth)
    assert says in cli_error(*flags(tmp_path), "--partial")


def test_files_that_are_none(lone, tmp_path, monkeypatch):
    command = [*flags(tmp_path), "--partial"]
    for text in ("{", "[" * 100_000):
        lone.write_text(text)
        assert "fog/1.json: " in cli_error(*command)
    put(lone, {})
    assert "COCO results" in cli_error(*command)
    lone.unlink()
    assert "no such files" in cli_error(*command)
    command[4] = tmp_path / "{corruption}.json"
    assert "{corruption} and {severity}" in cli_error(*command)
    put(tmp_path / "truth.json", [])
    command[4] = flags(tmp_path)[4]
    put(lone, [])
    assert "COCO annotations" in cli_error(*command)
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    put_run(tmp_path, names=["fog"], levels=[1])
    assert cli_error(*command).endswith("pip install 'robustgen[detection]'")


def test_empty_results_count_as_nothing_found(lone, tmp_path):
    put(lone, [])
    result = cli(*flags(tmp_path), "--partial", "--format", "json")
    assert json.loads(result.stdout)["types"]["bbox"]["summary"]["AP"]["mPC"] == 0
    put(tmp_path / "fog" / "2.json", [])
    result = cli(*flags(tmp_path), "--partial")
    # All such files share one line.
    (line,) = [line for line in result.stderr.splitlines() if "without detections" in line]
    assert "fog/1" in line and "fog/2" in line
    (tmp_path / "fog" / "2.json").unlink()
    put(tmp_path / "clean.json", [])
    assert "--type" in cli_error(*flags(tmp_path), "--partial")
    result = cli(*flags(tmp_path), "--partial", "--type", "bbox")
    assert "no rPC" in result.stderr


def test_runs_are_decoded_as_pycocotools_does():
    rng = np.random.default_rng(0)
    for _ in range(20):
        made = mask.encode(np.asfortranarray(rng.random((40, 50)) < rng.random(), dtype=np.uint8))
        runs = decode_runs(made["counts"])
        again = mask.frPyObjects({"size": [40, 50], "counts": runs}, 40, 50)
        assert again == made and sum(runs) == 2000
