"""The pages of report and compare in a browser: nothing overflows, pictures open larger."""

import json
import os
import re

import numpy as np
from PIL import Image

from tests.browser import NO_BROWSER, Browser
from tests.helpers import cli, photo, put_photo

WIDE = (
    "(document.documentElement.scrollWidth <= innerWidth) && [...document.querySelectorAll('.scroll')].every("
)
WIDE += "(each) => each.scrollWidth <= each.clientWidth)"
# The smallest letters of all charts, in pixels of the window.
LETTERS = """Math.min(...[...document.querySelectorAll("svg text")].filter(
  (each) => each.getClientRects().length
).map((each) => parseFloat(getComputedStyle(each).fontSize) * each.ownerSVGElement.getScreenCTM().a))"""
OPEN = "document.getElementById('larger').open"


def page_data(path):
    text = path.read_text()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def resize(browser, width, height=800):
    """Give the window this size; narrow ones are those of a telephone."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.call("Emulation.setDeviceMetricsOverride", **size)


# Pixels between the margins of 11 mm.
PAPER_A4, PAPER_LETTER = 710, 732


def print_on(browser, width):
    """Lay the page out as for paper whose margins leave this width."""
    browser.call("Emulation.setEmulatedMedia", media="print")
    resize(browser, width, 1000)


@NO_BROWSER
def test_the_page_of_a_comparison_fits_and_its_pictures_open_larger(browser, tmp_path):
    for seed in range(12):
        put_photo(tmp_path / "in" / f"{seed}.JPEG", 72, 80, seed)
    common = ("--source", tmp_path / "in", "--edition", "imagenet-64", "--jobs", 1)
    flags = (*common, "--corruptions", "elastic_transform,frost,fog")
    for seed, quality in ((0, 85), (1, 60)):
        cli("make-c", *flags, "--seed", seed, "--quality", quality, "--output", tmp_path / str(seed))
    cli("compare", tmp_path / "0", tmp_path / "1", "--output", tmp_path / "page.html", status=1)
    browser.open(tmp_path / "page.html")
    resize(browser, 1280, 900)
    assert browser.run("innerWidth") == 1280
    assert browser.run(WIDE)
    names = (
        "[...document.querySelectorAll('.section')].map((each) => each.querySelector('.panel'))"
        ".map((each) => [...each.querySelectorAll('figcaption, .tick:last-of-type')])"
        ".map((each) => each.map((part) => part.textContent))"
    )
    # Clean images have no severity.
    (clean, *others) = browser.run(names)
    assert clean == ["mean grey level", ""]
    first = "document.querySelector('.section .panel')"
    assert browser.run(f"{first}.querySelectorAll('.tick').length") == 3 + 1
    assert (
        browser.run(f"[...{first}.querySelectorAll('.dot')].map((each) => each.getAttribute('cx'))")
        == ["85.0"] * 2
    )
    assert {*map(tuple, others)} == {("mean grey level", "severity")}
    assert browser.run("document.querySelectorAll('.panel .other .mean').length") > len(others)
    assert browser.run(LETTERS) >= 10
    assert browser.run("document.querySelector('.answer').textContent").startswith(
        "B is not equivalent to A ("
    )
    for paper in (PAPER_A4, PAPER_LETTER):
        print_on(browser, paper)
        assert 0 < browser.run("document.getElementById('verdicts').getBoundingClientRect().right") <= paper
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    browser.call("Emulation.setEmulatedMedia", media="screen")
    resize(browser, 1280, 900)
    browser.run("document.querySelector('.trio img').click()")
    assert browser.run(OPEN)
    browser.run("new Promise((done) => setTimeout(done, 100))")
    assert browser.run("document.querySelector('#larger img').clientHeight") > 600
    browser.run("document.getElementById('larger').click()")
    assert not browser.run(OPEN)
    resize(browser, 390, 844)
    browser.open(tmp_path / "page.html")
    assert browser.run("document.querySelectorAll('.section[open]').length") == 1
    reasons = "[...document.querySelectorAll('.reason')].map((each) => each.getBoundingClientRect().right)"
    assert 0 < max(browser.run(reasons)) <= 390
    assert browser.run(LETTERS) >= 10


@NO_BROWSER
def test_the_page_of_a_set_caps_tall_images_and_opens_them_larger(browser, tmp_path):
    (tmp_path / "in").mkdir()
    Image.fromarray(photo(900, 60)).save(tmp_path / "in" / "tall.png")
    Image.fromarray(np.ascontiguousarray(photo(60, 900))).save(tmp_path / "in" / "wide.png")
    flags = ("--source", tmp_path / "in", "--corruptions", "contrast", "--jobs", 1)
    cli("make-c", *flags, "--output", tmp_path / "out")
    cli("report", tmp_path / "out", "--output", tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    pictures = "[...document.querySelectorAll('.strip.photo1 img')]"
    heights = browser.run(f"{pictures}.map((each) => each.clientHeight)")
    assert len(heights) == 6 and 100 < max(heights) <= 13 * 16
    print_on(browser, PAPER_LETTER)
    assert max(browser.run(f"{pictures}.map((each) => each.clientWidth)")) <= 116
    folded = "[...document.querySelectorAll('summary')].filter((each) => each.checkVisibility()).length"
    assert browser.run(folded) == 0
    browser.call("Emulation.setEmulatedMedia", media="screen")
    for what in (0, 1):
        browser.run(f"{pictures}[{what}].focus()")
        browser.press("Enter")
        assert browser.run(OPEN)
        assert browser.run("document.querySelector('#larger img').src.startsWith('data:image/jpeg')")
        browser.run("document.getElementById('larger').close()")


@NO_BROWSER
def test_the_page_of_a_set_tells_images_apart(browser, tmp_path):
    for number in (1, 2):
        put_photo(tmp_path / "in" / "n01440764" / f"ILSVRC2012_val_{number:08d}.JPEG", 224, 224, number)
    flags = ("--source", tmp_path / "in", "--edition", "imagenet", "--jobs", 1, "--set", "dataset=custom")
    cli("make-c", *flags, "--corruptions", "elastic_transform", "--output", tmp_path / "photos-c")
    cli("report", tmp_path / "photos-c", "--output", tmp_path / "page.html")
    for width in (1280, 390):
        resize(browser, width, 844)
        browser.open(tmp_path / "page.html")
        names = browser.run("[...document.querySelectorAll('.picker bdi')].map((each) => each.innerText)")
        assert [name.replace("\n", "")[-13:] for name in names] == ["00000001.JPEG", "00000002.JPEG"]
        assert browser.run(LETTERS) >= 10
    assert browser.run("document.querySelector('h1').textContent") == "ImageNet-C of photos"
    assert "elastic_transform" not in browser.run("document.body.innerText")
    # On paper, the rows of a corruption stay below its name, and clean images are side by side.
    print_on(browser, PAPER_A4)
    style = "[...document.querySelectorAll('.row')].map((each) => getComputedStyle(each).breakInside)"
    clean = "[...document.querySelectorAll('.row:not(.heads) .head img')]"
    tops = browser.run(f"{clean}.map((each) => each.getBoundingClientRect().top)")
    assert {*browser.run(style)} == {"avoid"} and len({*tops}) == 1 < len(tops)
    browser.call("Emulation.setEmulatedMedia", media="")


def test_the_page_of_a_set_says_what_it_is_and_shows_no_picture_twice(tmp_path):
    for number in range(2):
        put_photo(tmp_path / "in" / "a" / f"{number}.png", 60, 60, number)
    flags = ("--source", tmp_path / "in", "--corruptions", "contrast,brightness", "--jobs", 1)
    cli("make-c", *flags, "--set", "dataset=street", "--output", tmp_path / "out")
    cli("report", tmp_path / "out", "--output", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "<h1>ImageNet-C of street</h1>" in text
    assert "<title>ImageNet-C of street: 2 corruptions at 5 severities of 2 images</title>" in text
    pictures = re.findall(r"data:image/jpeg;base64,[^\"]*", text)
    assert len(pictures) == len({*pictures}) == 2 * (1 + 2 * 5)


@NO_BROWSER
def test_the_browser_starts_beside_many_open_files_and_tells_of_errors_in_the_page(tmp_path):
    held = [os.dup(0) for _ in range(120)]
    try:
        browser = Browser(tmp_path / "home")
        (tmp_path / "page.html").write_text("<script>setTimeout(() => { throw new Error('lost') })</script>")
        browser.open(tmp_path / "page.html")
        browser.run("new Promise((done) => setTimeout(done, 100))")
        (error,) = browser.errors()
        browser.close()
    finally:
        for number in held:
            os.close(number)
    assert "Error: lost" in error["message"]
