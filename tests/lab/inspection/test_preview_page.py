"""The page of `preview` in a browser: every corruption, slider, wipe, constants, at most 4 MB."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image
from skimage import data as photographs

from robustgen import CORRUPTIONS, corrupt, prepare
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.pixels.imaging.similarity import Reference
from tests.browser import NO_BROWSER
from tests.helpers import cli, cli_error, put_photo
from tests.lab.inspection.test_pages import page_data, resize


def decode_uri(uri):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).convert("RGB"))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    root = tmp_path_factory.mktemp("explorer")
    Image.fromarray(photographs.astronaut()).save(root / "photo.png")
    result = cli("preview", root / "photo.png", "--output", root / "photo.html")
    assert re.fullmatch(r".*photo\.html, \d\.\d+ MB\n", result.stdout)
    return root / "photo.html"


def test_it_has_every_corruption_at_every_severity_within_four_megabytes(page):
    assert page.stat().st_size <= 4_000_000
    data = page_data(page)
    assert {each["name"].replace(" ", "_") for each in data["corruptions"]} == {*IMAGENET_C.names}
    assert all([v["severity"] for v in each["variants"]] == [1, 2, 3, 4, 5] for each in data["corruptions"])
    assert not re.search(r'(src|href)="(?!data:)', page.read_text())


def test_pictures_similarity_and_constants_are_right(page):
    clean = prepare(Image.open(page.parent / "photo.png"), "imagenet")
    contrast = next(each for each in page_data(page)["corruptions"] if each["name"] == "contrast")
    for variant in contrast["variants"]:
        wanted = corrupt(clean, "contrast", variant["severity"], edition="imagenet")
        assert np.abs(decode_uri(variant["picture"]) - wanted.astype(int)).mean() < 4
        assert variant["ms_ssim"] == pytest.approx(Reference(clean).similarity(wanted).ms_ssim, abs=1e-4)
        constant = CORRUPTIONS["contrast"].parameters(variant["severity"], 224)
        assert [float(value) for value in variant["constants"].values()] == [*vars(constant).values()]


@pytest.mark.slow("makes whole pages")
def test_large_images_fit_the_page_and_small_ones_are_lossless(tmp_path):
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (900, 1200, 3), np.uint8)).save(
        tmp_path / "noise.png"
    )
    flags = ("--edition", "folder", "--corruptions", "contrast,saturate,brightness,pixelate")
    cli("preview", tmp_path / "noise.png", "--output", tmp_path / "noise.html", *flags)
    assert (tmp_path / "noise.html").stat().st_size <= 4_000_000
    small = put_photo(tmp_path / "x" / "small.png", 40, 48)
    flags = ("--edition", "folder", "--corruptions", "contrast")
    cli("preview", small, "--output", tmp_path / "small.html", *flags)
    data = page_data(tmp_path / "small.html")
    clean = np.asarray(Image.open(small).convert("RGB"))
    assert (decode_uri(data["clean"]) == clean).all()
    wanted = corrupt(clean, "contrast", 4, edition="folder")
    assert (decode_uri(data["corruptions"][0]["variants"][3]["picture"]) == wanted).all()


@NO_BROWSER
def test_the_sliders_move_severity_and_wipe(browser, page):
    browser.open(page)
    assert browser.run("document.querySelectorAll('.picks button').length") == 19
    name, level = (
        "document.getElementById('name').textContent",
        "document.getElementById('level').textContent",
    )
    assert (browser.run(name), browser.run(level)) == ("gaussian noise", "3")
    before = browser.run("document.getElementById('corrupted').src")
    browser.run("document.getElementById('severity').focus()")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", windowsVirtualKeyCode=39)
    assert browser.run(level) == "4" and browser.run("document.getElementById('corrupted').src") != before
    assert browser.run("document.querySelector('#constants tr.now th').textContent") == "4"
    browser.run(
        "[...document.querySelectorAll('.picks button')].find((b) => b.textContent === 'fog').click()"
    )
    assert (browser.run(name), browser.run(level)) == ("fog", "4")
    browser.run("scrollTo(0, 0)")
    stage = "document.getElementById('stage').getBoundingClientRect()"
    left, top, width = browser.run(f"(({{left, top, width}}) => [left, top, width])({stage})")
    where = {"x": left + width / 4, "y": top + 40, "button": "left", "clickCount": 1}
    browser.call("Input.dispatchMouseEvent", type="mousePressed", **where)
    browser.call("Input.dispatchMouseEvent", type="mouseReleased", **where)
    assert float(browser.run("document.getElementById('wipe').value")) == pytest.approx(25, abs=1)


def test_mistakes_are_answered_in_one_line(tmp_path):
    image = put_photo(tmp_path / "a" / "1.png", 60, 60)
    page = tmp_path / "x.html"
    for flags in (("--perturbations", "tilt"), ("--grid",), ("--cell", 50)):
        line = cli_error("preview", image, "--output", page, *flags)
        assert line.startswith(f"--output {page}: a page accepts only --corruptions,")
    (tmp_path / "x.html").mkdir()
    assert "is a folder" in cli_error("preview", image, "--output", tmp_path / "x.html")


@NO_BROWSER
def test_the_page_fits_and_has_the_corruptions_beside_the_image_where_there_is_room(browser, page):
    place = "(({left, right}) => [left / innerWidth, right / innerWidth])"
    places = f"['stage', 'choices'].map((id) => {place}(document.getElementById(id).getBoundingClientRect()))"
    for width, begins in ((1440, 0.5), (390, 0.0)):
        resize(browser, width, 900)
        browser.open(page)
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        (left, _), (start, end) = browser.run(places)
        assert left < 0.1 and begins <= start < begins + 0.1 and end > 0.9


@NO_BROWSER
def test_the_picture_and_its_constants_stay_in_sight(browser, page):
    place = "(({{top, bottom}}) => [top, bottom])(document.getElementById('{}').getBoundingClientRect())"
    resize(browser, 1280, 900)
    browser.open(page)
    assert browser.run(place.format("constants"))[1] <= 900
    for width, height in ((1280, 900), (390, 844)):
        resize(browser, width, height)
        browser.open(page)
        browser.run("scrollTo(0, document.documentElement.scrollHeight)")
        browser.run("buttons.at(-1).click()")
        top, bottom = browser.run(place.format("stage"))
        assert 0 <= top < bottom <= height
        assert browser.run("buttons.at(-1).getBoundingClientRect().top") > bottom or width > 390
    # White pictures have an edge.
    assert browser.run("getComputedStyle(document.querySelector('.picks img')).outlineStyle") == "solid"
