"""The page of `filter a` and `filter o`: what is in it, and what it does in a browser."""

import base64
import io
import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from PIL import Image

from robustgen.files.storage import open_store
from robustgen.related.filtration import reviewing
from tests.browser import NO_BROWSER
from tests.helpers import photo

HOSTILE = [
    "a/plain.png",
    """b/it's "quoted".png""",
    "c/<b>&amp;<script>alert(1)</script>.png",
    "d/żółw 海龜 🐢.png",
    "e/ space \ttab, and \u202eback.png",
    "f/${1}`\\n{{ 7 * 7 }}.png",
]


def write(root, keys, *, true_confidence=0.031, words=None):
    """The review pages of `keys`; each picture has its own size."""
    told = {} if true_confidence is None else {"true_confidence": true_confidence}
    common = {"predicted": "n2", "confidence": 0.876} | told
    entries = [{"key": key, "class": key.partition("/")[0]} | common for key in keys]
    sizes = {key: (300 + 10 * place, 700) for place, key in enumerate(keys)}
    load = lambda key: photo(*sizes[key])  # noqa: E731
    pages = reviewing.write_pages(open_store(root), "ImageNet-A", "abc123", entries, load, words or {})
    return tuple(Path(root, page.path) for page in pages)


class Reader(HTMLParser):
    """All start tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self._silent = [], "", False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._silent = False

    def handle_data(self, data):
        self.text += "" if self._silent else data

    def attributes(self, tag, name):
        return [attrs[name] for each, attrs in self.tags if tag in (each, None) and name in attrs]


# --- what is in it -------------------------------------------------------------------------------


def test_nothing_is_fetched_from_elsewhere_and_all_keys_are_escaped(tmp_path):
    (page,) = write(tmp_path, HOSTILE)
    reader = Reader(page)
    urls = [url for name in ("src", "href", "action", "srcset") for url in reader.attributes(None, name)]
    assert len(urls) > len(HOSTILE) and all(url.startswith("data:") for url in urls)
    style = re.search(r"<style>(.*)</style>", page.read_text(), re.DOTALL)[1]
    assert "url(" not in style and "@import" not in style
    (policy,) = reader.attributes("meta", "content")[1:]
    assert policy.startswith("default-src 'none'; img-src data:")
    assert reader.attributes("li", "data-key") == HOSTILE
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("script") == 1 and tags.count("b") == 0
    # What cannot be seen is shown as an escape.
    for shown in (*HOSTILE[:4], "e/ space \\ttab, and \\u202eback.png"):
        assert shown in reader.text


def test_pictures_are_small_jpegs_of_the_whole_image(tmp_path):
    (page,) = write(tmp_path, HOSTILE[:2])
    sources = [each.removeprefix("data:image/jpeg;base64,") for each in Reader(page).attributes("img", "src")]
    found = [Image.open(io.BytesIO(base64.b64decode(source))) for source in sources]
    heights = [round(256 * height / 700) for height in (300, 310)]
    assert [(image.format, image.size) for image in found] == [("JPEG", (256, height)) for height in heights]
    assert reviewing.thumbnail(np.zeros((10, 20, 3), np.uint8)).shape == (10, 20, 3)
    assert reviewing.thumbnail(np.zeros((9000, 2, 3), np.uint8)).shape == (256, 1, 3)


def test_words_and_confidences_are_shown(tmp_path):
    (page,) = write(tmp_path, ["n1/x.png"], words={"n1": "tench & co", "n2": "goldfish"})
    text = " ".join(Reader(page).text.split())
    assert "tench & co 3.1 % goldfish 87.6 %" in text and "Images 1 to 1 of 1" in text
    (page,) = write(tmp_path, ["n1/x.png"], true_confidence=None)
    assert "n1 n2 87.6 %" in " ".join(Reader(page).text.split())


def test_long_shortlists_have_several_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(reviewing, "PER_PAGE", 2)
    keys = [f"a/{i}.png" for i in range(5)]
    pages = write(tmp_path, keys)
    assert [page.name for page in pages] == ["review.html", "review-2.html", "review-3.html"]
    assert [Reader(page).attributes("li", "data-key") for page in pages] == [keys[:2], keys[2:4], keys[4:]]
    assert Reader(pages[1]).attributes("a", "href") == ["review.html", "review-3.html"]
    # Each keeps its own decisions and saves its own list.
    places = {re.search(r"robustgen-review abc123 \d", page.read_text())[0] for page in pages}
    assert len(places) == 3 and 'accepted-2.txt"' in pages[1].read_text()
    assert [page.name for page in write(tmp_path, keys[:3])] == ["review.html", "review-2.html"]
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["review-2.html", "review.html"]


# --- what it does --------------------------------------------------------------------------------


def counts(browser):
    return browser.run("document.getElementById('counts').textContent")


def open_again(browser, page):
    """Open `page` until it knows of decisions, which a new browser hands on with a moment of delay."""
    for _ in range(20):
        browser.open(page)
        if not counts(browser).startswith("0 kept, 0 dropped"):
            return
        time.sleep(0.1)


def load(browser, text):
    """Give `text` to "Load list" as a file."""
    browser.run(
        "(() => { const files = new DataTransfer(); "
        f"files.items.add(new File([{json.dumps(text)}], 'list.txt')); "
        "const input = document.getElementById('load'); input.files = files.files; "
        "input.dispatchEvent(new Event('change')); return new Promise((done) => setTimeout(done, 200)); })()"
    )


def show(browser, letter):
    """Choose in "Show" as a person does: the list has the focus meanwhile."""
    browser.run(
        "(() => { const s = document.getElementById('show'); s.focus(); "
        f"s.value = '{letter}'; s.dispatchEvent(new Event('change')); }})()"
    )


@NO_BROWSER
def test_in_a_browser(browser, tmp_path):
    (page,) = write(tmp_path, HOSTILE)
    browser.open(page)
    assert counts(browser) == "0 kept, 0 dropped, 6 undecided"

    # Keep 0, drop 1, keep 2, take that back, keep it again, go back to 1, keep that after all; keep 3 and 4.
    browser.press("k", "d", "k", "u", "k", "ArrowLeft", "ArrowLeft", "k", "ArrowRight", "k", "k")
    assert counts(browser) == "5 kept, 0 dropped, 1 undecided"
    browser.press("d")
    assert browser.saved(tmp_path) == "".join(f"{key}\n" for key in HOSTILE[:5]).encode()

    # A key that is held down decides once.
    browser.press("ArrowLeft", "ArrowLeft", "ArrowLeft")
    for again in (False, True, True):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="d", text="d", autoRepeat=again)
    assert counts(browser) == "4 kept, 2 dropped, 0 undecided"
    browser.press("u", "ArrowRight", "ArrowRight", "ArrowRight")

    # A button does the same as a key.
    browser.run("document.querySelectorAll('.drop')[0].click()")
    assert counts(browser) == "4 kept, 2 dropped, 0 undecided"

    # What was decided is still there after the page is opened again, and so is what can be taken back.
    open_again(browser, page)
    assert counts(browser) == "4 kept, 2 dropped, 0 undecided"
    browser.press("u")
    assert counts(browser) == "5 kept, 1 dropped, 0 undecided"
    browser.press("d")
    assert counts(browser) == "4 kept, 2 dropped, 0 undecided"

    # A list that undoes decisions is loaded only if that is wanted.
    listed = "\ufeff" + "\r\n".join([HOSTILE[5], HOSTILE[2], "strange.png", ""])
    browser.run(
        "window.asked = []; window.confirm = (text) => { asked.push(text); return asked.length > 1; }"
    )
    load(browser, listed)
    assert counts(browser) == "4 kept, 2 dropped, 0 undecided"
    assert browser.run("asked") == ["The list replaces 4 of your decisions. Load it?"]

    # A list that comes back replaces what was kept; what it does not name is undecided, or still dropped.
    load(browser, listed)
    assert counts(browser) == "2 kept, 1 dropped, 3 undecided"
    said = browser.run("document.getElementById('said').textContent")
    assert said == "2 keys loaded. Not on this page: 1, for instance strange.png."
    assert browser.saved(tmp_path).decode().splitlines() == [HOSTILE[2], HOSTILE[5]]
    browser.press("u")
    assert counts(browser) == "4 kept, 2 dropped, 0 undecided"

    # Only some can be shown; arrows pass over the others.
    show(browser, "d")
    assert browser.run("document.querySelectorAll('.card:not([hidden])').length") == 2
    browser.press("k")
    assert browser.run("document.querySelectorAll('.card:not([hidden])').length") == 1
    assert counts(browser) == "5 kept, 1 dropped, 0 undecided"


def marked(browser):
    return browser.run("document.querySelector('.card[aria-current]').dataset.key")


@NO_BROWSER
def test_keys_act_on_the_marked_card_whatever_is_shown(browser, tmp_path):
    (page,) = write(tmp_path, HOSTILE)
    browser.open(page)
    browser.press("k", "k", "d")
    assert marked(browser) == HOSTILE[3]
    show(browser, "k")
    assert marked(browser) == HOSTILE[1]
    browser.press("ArrowLeft")
    assert marked(browser) == HOSTILE[0]
    browser.press("d")
    assert counts(browser) == "1 kept, 2 dropped, 3 undecided"
    assert browser.run("document.getElementById('show').value") == "k"

    # With the focus in the list, letters decide and choose nothing there.
    browser.run("document.getElementById('show').focus()")
    browser.press("k")
    assert browser.run("document.getElementById('show').value") == "k"
    assert counts(browser) == "1 kept, 2 dropped, 3 undecided"

    # Where nothing is shown, nothing is decided.
    browser.press("d")
    assert counts(browser) == "0 kept, 3 dropped, 3 undecided"
    browser.press("k", "d", "k")
    assert counts(browser) == "0 kept, 3 dropped, 3 undecided"

    # What is taken back is seen, though it would not be among those shown.
    show(browser, "-")
    browser.press("u")
    assert marked(browser) == HOSTILE[1]
    assert counts(browser) == "1 kept, 2 dropped, 3 undecided"
    assert browser.run("document.getElementById('show').value") == ""
    browser.press("d")
    assert counts(browser) == "0 kept, 3 dropped, 3 undecided"
