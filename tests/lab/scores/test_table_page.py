"""The pages of detectors, segmentation models and unknown classes."""

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustgen.display.text import Table
from robustgen.lab.evaluation.predictions import write_predictions as write
from robustgen.lab.scores.table_page import divide_table, name_models
from tests.browser import NO_BROWSER
from tests.helpers import cli, cli_error, put_photo
from tests.lab.inspection.test_pages import page_data, resize
from tests.lab.scores import test_detection, test_segmentation


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Commands that score a detector with a name that wants to be a tag, a segmentation model, and OOD."""
    root = tmp_path_factory.mktemp("tables")
    test_detection.put_run(root / "d", names=("shot_noise", "fog"), levels=(1, 2), images=6)
    test_segmentation.put_run(root / "s", names=("shot_noise", "fog"), levels=(1, 2))
    rng = np.random.default_rng(0)
    for name, skill in (("id", 3), ("far", 0.1), ("near", 1)):
        logits = rng.normal(size=(40, 4)) + skill * np.eye(4)[np.arange(40) % 4]
        write(root / name, "clean", [f"{i:02d}" for i in range(40)], np.arange(40) % 4, logits)
    ood = ("--ood", root / "far" / "clean.npz", "--ood", root / "near" / "clean.npz")
    return {
        "detection": (*test_detection.flags(root / "d"), "--partial", "--name", "<b>mine&"),
        "segmentation": (*test_segmentation.flags(root / "s"), "--partial"),
        "ood": ("score-ood", "--id", root / "id" / "clean.npz", *ood),
    }


def test_categories_have_their_own_means(commands, tmp_path):
    page = tmp_path / "page.html"
    for task in ("detection", "segmentation"):
        cli(*commands[task], "--output", page)
        found, rows = (
            page_data(page),
            re.findall(r"<tr><td>(Noise|Weather)</td>(.*?)</tr>", page.read_text(), re.S),
        )
        found = found["types"]["bbox"] if task == "detection" else found
        for (head, cells), name in zip(rows, ("shot_noise", "fog"), strict=True):
            own, own_mean = [*found["corruptions"][name].values()], found["categories"][head.lower()]
            if task == "detection":
                own, own_mean = [each["AP"] for each in own], own_mean["AP"]["mPC"]
            else:
                own_mean = own_mean["mean"]
            assert own_mean == pytest.approx(np.mean(own)) and f">{100 * own_mean:.1f}\n" in cells
            assert "range" in cells


@pytest.mark.parametrize("task", ["detection", "segmentation", "ood"])
def test_every_score_has_a_page(commands, task, tmp_path):
    page = tmp_path / "page.html"
    result = cli(*commands[task], "--output", page)
    assert "page.html, " in result.stderr.splitlines()[-1]
    assert page_data(page) == json.loads(cli(*commands[task], "--format", "json").stdout)
    text = page.read_text()
    assert not re.search(r'(src|href)="(?!data:)', text) and "<b>mine" not in text
    assert text.count("accuracy on") == (task == "ood")
    # Intervals are explained where there are any.
    assert 'class="range"' in text and "Intervals " in text
    plain = tmp_path / "plain.html"
    cli(*commands[task], "--replicates", 0, "--output", plain)
    assert 'class="range"' not in plain.read_text() and "Intervals " not in plain.read_text()


def list_pictures(page):
    """The pictures of a page with their names and captions."""
    found = re.findall(r'<img src="data:image/jpeg;base64,([^"]+)" alt="([^"]+)"', page.read_text())
    return {alt: np.asarray(Image.open(io.BytesIO(base64.b64decode(data))), int) for data, alt in found}


def test_pictures_show_true_and_found_boxes(commands, tmp_path):
    page, folder = tmp_path / "page.html", tmp_path / "photos"
    names = [f"{number:012d}.jpg" for number in range(6)]
    truth = json.loads(Path(commands["detection"][2]).read_text())
    for name in names:
        put_photo(folder / name, truth["images"][0]["height"], truth["images"][0]["width"], 1)
    flags = (
        "--corruptions",
        "shot_noise,fog",
        "--severities",
        "1,2",
        "--output",
        tmp_path / "set",
        "--jobs",
        1,
    )
    cli("make-c", "--dataset", "coco-c", "--source", folder, *flags)
    cli(*commands["detection"], "--output", page)
    grey = list_pictures(page)
    cli(*commands["detection"], "--output", page, "--predicted-set", tmp_path / "set")
    shown = list_pictures(page)
    assert len(grey) == 9 and grey.keys() == shown.keys()
    corrupted = [name for name in grey if "severity" in name]
    # Without the set, boxes are on grey; with it, on its pictures.
    for name in corrupted:
        is_grey = np.ptp(grey[name], axis=-1) < 12
        assert is_grey.mean() > 0.3 and abs(grey[name] - 128)[is_grey].mean() < 12
        assert abs(shown[name] - 128)[is_grey].mean() > 20
    green = [((each - [0, 158, 115]).__abs__().max(axis=-1) < 40).any() for each in grey.values()]
    assert all(green)


def test_pictures_of_maps_have_the_colours_of_the_palette(commands, tmp_path):
    page, palette = tmp_path / "page.html", tmp_path / "palette.txt"
    cli(*commands["segmentation"], "--output", page)
    plain = list_pictures(page)
    assert len(plain) == 3 * 4 and sum("truth" in name for name in plain) == 3
    palette.write_text("\n".join(f"{label} {10 * label} 0 200" for label in range(19)))
    cli(*commands["segmentation"], "--output", page, "--palette", palette)
    first = next(iter(list_pictures(page).values()))
    # White pixels are ignored.
    assert (abs(first[..., 2] - 200).min() < 12) and (first.min(axis=-1) > 240).any()


def test_a_curve_of_unknown_classes_is_that_of_the_ranks(commands, tmp_path):
    cli(*commands["ood"], "--output", tmp_path / "page.html")
    curves = re.findall(
        r'aria-label="[^"]*(far|near)[^"]*: mean ([^"]+)"', (tmp_path / "page.html").read_text()
    )
    values = {name: [float(each) for each in text.split()] for name, text in curves}
    assert values["far"][-1] == values["near"][-1] == 100 and len(values["far"]) == 21
    assert values["far"] == sorted(values["far"])
    for name, rates in page_data(tmp_path / "page.html")["sets"].items():
        short = next((each for each in values if f"/{each}/" in name), None)
        # The area under 21 points is about that under all.
        assert short is None or np.mean(values[short]) / 100 == pytest.approx(rates["auroc"], abs=0.06)


def test_pages_of_another_form_are_refused_before_the_work(commands, tmp_path):
    for command in commands.values():
        assert ".html" in cli_error(*command, "--output", tmp_path / "page.png")
        assert str(tmp_path) in cli_error(*command, "--output", tmp_path)


@NO_BROWSER
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_every_width(browser, commands, tmp_path, width):
    for task, command in reversed(commands.items()):
        cli(*command, "--output", tmp_path / "page.html")
        browser.open(tmp_path / "page.html")
        resize(browser, width)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth"), task
        assert not re.search("NaN|Infinity|undefined", browser.run("document.body.innerText")), task
    bars = "[...document.querySelectorAll('.range i')].map((each) => each.getBoundingClientRect())"
    assert browser.run(f"{bars}.length") > 10
    heads = browser.run("[...document.querySelectorAll('h3:not(:has(bdi))')].map((each) => each.textContent)")
    assert {*heads} == {"Noise", "Weather"}
    names = browser.run("[...document.querySelectorAll('.panel figcaption')].map((each) => each.textContent)")
    assert {*names} == {"shot noise", "fog"}
    outside = "document.querySelectorAll('.range')[at].getBoundingClientRect().right + 1"
    assert not browser.run(f"{bars}.some((each, at) => each.right > {outside})")


def test_wide_tables_are_divided_and_many_models_counted():
    table = Table("Errors", ["", *"abcdefgh"], [["fog", *map(str, range(8))]])
    parts = divide_table(table)
    assert [[*part.heads] for part in parts] == [["", *"abcdef"], ["", "g", "h"]]
    assert [part.title for part in parts] == ["Errors", ""]
    assert name_models(["a", "b"]) == "a, b" and name_models("abcd") == "4 models"
