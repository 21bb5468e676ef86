"""The pages of detectors, segmentation models and unknown classes."""

import json
import re

import numpy as np
import pytest

from robustgen.lab.evaluation.predictions import write_predictions as write
from tests.browser import NO_BROWSER
from tests.helpers import cli, cli_error
from tests.lab.inspection.test_pages import page_data, resize
from tests.lab.scores import test_detection, test_segmentation


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Commands that score a detector with a name that wants to be a tag, a segmentation model, and OOD."""
    root = tmp_path_factory.mktemp("tables")
    test_detection.put_run(root / "d", names=("fog", "snow"), levels=(1, 2), images=6)
    test_segmentation.put_run(root / "s", names=("fog",), levels=(1, 2))
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


def test_pages_of_another_form_are_refused_before_the_work(commands, tmp_path):
    for command in commands.values():
        assert ".html" in cli_error(*command, "--output", tmp_path / "page.png")
        assert str(tmp_path) in cli_error(*command, "--output", tmp_path)


@NO_BROWSER
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_every_width(browser, commands, tmp_path, width):
    cli(*commands["detection"], "--output", tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    resize(browser, width)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    bars = "[...document.querySelectorAll('.range i')].map((each) => each.getBoundingClientRect())"
    assert browser.run(f"{bars}.length") > 10
    # Both corruptions are weather; each has a curve of boxes and one of masks where there are masks.
    assert {*browser.run("[...document.querySelectorAll('h3')].map((each) => each.textContent)")} == {
        "Weather"
    }
    names = browser.run("[...document.querySelectorAll('.panel figcaption')].map((each) => each.textContent)")
    assert {*names} == {"fog", "snow"}
    assert not re.search("NaN|Infinity|undefined", browser.run("document.body.innerText"))
    outside = "document.querySelectorAll('.range')[at].getBoundingClientRect().right + 1"
    assert not browser.run(f"{bars}.some((each, at) => each.right > {outside})")
