"""The page of `score` in a browser: what it shows, that it fits, sorts and fetches nothing."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from robustgen.display.charts import COLOURS
from robustgen.display.html import embed_data
from robustgen.lab.evaluation.predictions import write_predictions as write
from robustgen.lab.scores.measures import ALEXNET
from robustgen.lab.scores.results import ModelScores
from robustgen.lab.scores.score_page import write_page
from robustgen.lab.scores.scoreboard import Scoreboard
from robustgen.lab.scores.scoring import choose_published
from robustgen.metrics import brier_score, rms_calibration_error, softmax
from robustgen.pixels.benchmarks.corruptions import FAMILIES
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.sets.dataset.opening import open_set
from tests.browser import NO_BROWSER
from tests.helpers import cli, cli_error, put_photo
from tests.lab.inspection.test_pages import LETTERS, page_data, resize
from tests.lab.scores.test_scoring import put_c, put_p, random_set

ROWS = "[...document.querySelectorAll('#means tbody tr')].map((row) => row.querySelector('bdi').textContent)"


def press_enter(browser):
    """Press Enter as a keyboard does, which clicks a button that has the focus."""
    key = {"key": "Enter", "text": "\r", "windowsVirtualKeyCode": 13}
    browser.call("Input.dispatchKeyEvent", type="keyDown", **key)
    browser.call("Input.dispatchKeyEvent", type="keyUp", key="Enter")


NAMES = ("contrast", "fog", "pixelate", "saturate")


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A small C set, and predictions of three models on it; one has a name that wants to be a tag."""
    root = tmp_path_factory.mktemp("page")
    for number in range(24):
        put_photo(root / "in" / f"c{number % 4}" / f"{number}.png", 40, 44, number)
    flags = ("--source", root / "in", "--corruptions", ",".join(NAMES), "--jobs", 1)
    cli("make-c", *flags, "--output", root / "set")
    dataset = open_set(root / "set")
    keys, labels = dataset.keys_of(dataset.variants[0]), np.array(dataset.labels(dataset.variants[0]))
    rng = np.random.default_rng(0)
    for model, skill in (("good", 3.0), ("middle", 2.5), ("<b>bad&", 1.5)):
        for variant in dataset.variants:
            strength = skill if variant.folder == "clean" else skill * (1 - variant.level / 7)
            logits = rng.normal(size=(24, 4)) + strength * np.eye(4)[labels]
            write(root / "preds" / model, variant, keys, labels, logits)
    return root


@pytest.fixture(scope="module")
def page(evaluated):
    models = [evaluated / "preds" / name for name in ("middle", "good", "<b>bad&")]
    flags = ("--partial", "--predicted-set", evaluated / "set", "--output", evaluated / "scores.html")
    result = cli("score", *models, *flags)
    assert "scores.html, " in result.stderr.splitlines()[-1]
    return evaluated / "scores.html"


def test_the_data_are_those_of_the_report(page, evaluated):
    data = page_data(page)
    models = [evaluated / "preds" / name for name in ("middle", "good", "<b>bad&")]
    report = json.loads(cli("score", *models, "--partial", "--format", "json").stdout)
    assert [model["name"] for model in data["models"]] == ["middle", "good", "<b>bad&"]
    names = [operation["name"] for operation in data["operations"]]
    for found, wanted in zip(data["models"], report["models"], strict=True):
        for key, measure in wanted["measures"].items():
            assert found["measures"][key]["mean"] == pytest.approx(measure["mean"], rel=1e-4)
            assert found["measures"][key]["interval"] == pytest.approx(measure["mean_interval"], rel=1e-4)
            assert dict(zip(names, found["measures"][key]["values"], strict=True)) == pytest.approx(
                measure["values"], rel=1e-4
            )
        errors = dict(zip(names, found["errors"], strict=True))
        assert errors.keys() == wanted["errors"].keys()
        assert errors["fog"] == pytest.approx(wanted["errors"]["fog"], rel=1e-4)
    (difference,) = [
        each for each in report["differences"] if (each["model"], each["measure"]) == ("good", "error")
    ]
    assert data["pairs"]["error"][1][0] == pytest.approx(difference["interval"], rel=1e-4)


def test_calibration_is_that_of_the_metrics(page, evaluated):
    data = page_data(page)
    wanted = {"rms": [], "brier": []}
    for level in range(1, 6):
        with np.load(evaluated / "preds" / "good" / "fog" / f"{level}.npz") as file:
            chances, labels = softmax(file["logits"]), file["labels"]
        wanted["rms"].append(rms_calibration_error(chances.max(axis=1), chances.argmax(axis=1) == labels))
        wanted["brier"].append(brier_score(chances, labels))
    found = data["models"][1]["calibration"]["fog"]
    assert found["rms"] == pytest.approx(np.mean(wanted["rms"]), abs=1e-5)
    assert found["brier"] == pytest.approx(np.mean(wanted["brier"]), abs=1e-5)
    assert sum(count for count, *_ in found["bins"]) == 5 * 24
    accuracy = sum(count * right for count, _, right in found["bins"]) / 120
    assert accuracy == pytest.approx(1 - np.mean(data["models"][1]["errors"][1]), abs=0.01)


def test_the_page_is_complete_in_itself(page):
    text = page.read_text()
    assert not re.search(r'(src|href)="(?!data:)', text) and 'http-equiv="Content-Security-Policy"' in text
    assert "<b>bad" not in text


@NO_BROWSER
def test_the_page_ranks_sorts_filters_and_unfolds(browser, page):
    browser.open(page)
    assert browser.run(ROWS) == ["good", "middle", "<b>bad&"]
    browser.run("document.querySelector('#means th.name button').focus()")
    press_enter(browser)
    assert browser.run(ROWS) == ["<b>bad&", "good", "middle"]
    # The focus stays where it was, though the table is drawn again.
    press_enter(browser)
    assert browser.run(ROWS) == ["middle", "good", "<b>bad&"]
    browser.run("document.querySelector('#filter').value = 'GOO'")
    browser.run("document.querySelector('#filter').dispatchEvent(new Event('input'))")
    assert (
        browser.run(ROWS) == ["good"]
        and browser.run("document.querySelectorAll('#heat tbody tr').length") == 1
    )
    heads = "document.querySelectorAll('#heat thead tr:last-child th').length"
    before = browser.run(heads)
    browser.run("document.querySelector('#heat [data-op=fog]').click()")
    assert browser.run(heads) == before + 5
    expanded = "document.activeElement.getAttribute('aria-expanded')"
    assert browser.run(expanded) == "true"
    press_enter(browser)
    assert browser.run(heads) == before and browser.run(expanded) == "false"


@NO_BROWSER
def test_the_charts_show_the_ticked_models(browser, page):
    browser.open(page)
    curves = "document.querySelectorAll('#curves .curve').length"
    panels = browser.run("document.querySelectorAll('#curves svg').length")
    assert panels == 3 and browser.run(curves) == 3 * panels
    assert browser.run("document.querySelectorAll('#calibration svg').length") == 3
    browser.run("document.querySelector('#means input').click()")
    assert browser.run(curves) == 2 * panels
    assert browser.run("document.activeElement.getAttribute('aria-label')") == "show good in the charts"
    assert browser.run("document.querySelectorAll('#gain rect').length") == 4
    assert browser.run("document.querySelectorAll('#scatter circle').length") == 3
    note = browser.run("document.getElementById('scatter-note').textContent")
    assert note.startswith("Fewer than four models")


@NO_BROWSER
@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_every_width(browser, page, width, scheme):
    browser.open(page)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    resize(browser, width)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(23, 25, 28)")
    # Names and the numbers beside them do not run into each other.
    cells = "[...document.querySelectorAll('#means td.name')]"
    assert not browser.run(f"{cells}.some((cell) => cell.scrollWidth > cell.clientWidth + 1)")


@NO_BROWSER
def test_the_page_prints_without_its_controls(browser, page):
    browser.open(page)
    display = "getComputedStyle(document.querySelector('.bar')).display"
    assert browser.run(display) == "flex"
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.run(display) == "none"
    assert len(browser.call("Page.printToPDF")["data"]) > 10_000


@NO_BROWSER
def test_the_data_can_be_downloaded_and_nothing_is_fetched(browser, page, tmp_path):
    browser.open(page)
    assert json.loads(browser.saved(tmp_path, "download", "scores.json")) == page_data(page)
    fetched = browser.run("performance.getEntriesByType('resource').map((each) => each.name)")
    assert [each for each in fetched if not each.startswith(("data:", "blob:"))] == []


@NO_BROWSER
def test_flip_curves_of_perturbations(browser, tmp_path):
    logits = put_p(tmp_path / "a", sequences=6)
    put_p(tmp_path / "b", seed=1, sequences=6)
    cli("score", tmp_path / "a", tmp_path / "b", "--output", tmp_path / "p.html")
    data = page_data(tmp_path / "p.html")
    best = logits["tilt"].argmax(axis=-1)
    assert data["models"][0]["curves"]["tilt"] == pytest.approx(
        (best[:, 1:] != best[:, :-1]).mean(axis=0), abs=1e-4
    )
    noise = logits["shot_noise"].argmax(axis=-1)
    wanted = (noise[:, 1:] != noise[:, :1]).mean(axis=0)
    assert data["models"][0]["curves"]["shot_noise"] == pytest.approx(wanted, abs=1e-4)
    report = json.loads(cli("score", tmp_path / "a", tmp_path / "b", "--format", "json").stdout)
    one, other = (model["measures"]["flip_rate"]["values"] for model in report["models"])
    for operation, (low, high) in zip(data["operations"], data["gain"]["flip_rate"], strict=True):
        assert low < other[operation["name"]] - one[operation["name"]] < high
    browser.open(tmp_path / "p.html")
    assert browser.run("document.querySelectorAll('#curves svg').length") == 10
    assert browser.run("document.querySelectorAll('#gain .whisker').length") == 10


@NO_BROWSER
def test_published_models_lie_in_the_page(browser, tmp_path):
    put_c(tmp_path / "mine")
    command = ("score", tmp_path / "mine", "--compare-with", "published", "--output", tmp_path / "page.html")
    cli(*command)
    data = page_data(tmp_path / "page.html")
    assert sum("published" in model for model in data["models"]) == 18
    assert data["line"]["source"] == "the 12 models of RobustBench's table (its 5000 images)"
    browser.open(tmp_path / "page.html")
    assert len(browser.run(ROWS)) == 19
    sources = browser.run("[...document.querySelectorAll('td.fact')].map((each) => each.textContent)")
    assert [sources.count(each) for each in ("yours", "ICLR 2019", "RobustBench")] == [1, 6, 11]
    # The axis covers them all.
    assert browser.run("document.querySelectorAll('#means .span').length") == 19
    assert browser.run("document.querySelector('#means-note').textContent").startswith("19 of 19 models")
    assert "effective robustness" in browser.run("document.getElementById('scatter-note').textContent")
    assert browser.run("document.querySelectorAll('#sources li').length") == 4
    # Each line stands once, and folders are hidden.
    lines = browser.run("[...document.querySelectorAll('li')].map((each) => each.textContent)")
    assert len({*lines}) == len(lines) and not any(str(tmp_path) in line for line in lines)


def fake_scores(models, images):
    """Scores of models that err with growing chances, on shared draws."""
    rng = np.random.default_rng(0)
    folders = ["clean", *(f"{name}/{level}" for name in IMAGENET_C.names for level in range(1, 6))]
    draws = {folder: rng.random(images) for folder in folders}
    made = []
    for number in range(models):
        chances = {
            f: min(0.95, 0.2 + 0.01 * number + (int(f[-1]) / 9 if f != "clean" else 0)) for f in folders
        }
        mistakes = {folder: draws[folder] < chances[folder] for folder in folders}
        made.append(ModelScores(f"network-{number:02d}", "c", images, (), mistakes=mistakes))
    return made


OVERLAPS = """(() => {
  const labels = [...document.querySelectorAll('#scatter text.strong')];
  const boxes = labels.map((each) => each.getBoundingClientRect());
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  const pairs = boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => !apart(a, b)));
  return `${boxes.length} labels, ${pairs.length} overlaps`;
})()"""
# Lines of a name of a model that end in the middle of a word, and not before a capital.
BROKEN = """[...document.querySelectorAll('td.name bdi')].flatMap((cell) => {
  const lines = new Map();
  for (const node of cell.childNodes) for (let at = 0; at < (node.length ?? 0); at++) {
    const range = document.createRange();
    range.setStart(node, at); range.setEnd(node, at + 1);
    const top = Math.round(range.getBoundingClientRect().top);
    lines.set(top, (lines.get(top) ?? "") + node.data[at]);
  }
  const all = [...lines.values()];
  return all.filter((line, at) => all[at + 1] && !/[ _./-]$/.test(line) && !/^[A-Z]/.test(all[at + 1]));
})"""


@NO_BROWSER
def test_labels_and_names_can_be_read(browser, tmp_path):
    models = [replace(each, model=f"a_long-name/of.{each.model}") for each in fake_scores(5, 300)]
    report = Scoreboard(models, ALEXNET, replicates=0, published=choose_published(models, 1, []))
    write_page(report, tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    assert browser.run(OVERLAPS) == "5 labels, 0 overlaps"
    resize(browser, 390)
    assert browser.run(f"{BROKEN}.length") == 0
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    names = browser.run(ROWS)
    assert len({*names}) == len(names) == 5 + 18 and [name.lower() for name in names].count("alexnet") == 1
    assert browser.run("document.querySelectorAll('#means tr.own').length") == 5


@NO_BROWSER
def test_only_corruptions_with_the_chosen_value_have_columns(browser, tmp_path):
    models = fake_scores(2, 300)
    for model in models:
        for level in IMAGENET_C.levels:
            model.mistakes[f"c-bar.sparkles/{level}"] = model.mistakes[f"fog/{level}"]
    write_page(Scoreboard(models, ALEXNET, replicates=0), tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    heads = "[...document.querySelectorAll('#heat th.op')].map((each) => each.textContent)"
    assert "fog" in browser.run(heads) and "sparkles" not in " ".join(browser.run(heads))
    choose = "(() => { const box = document.getElementById('heat-measure'); box.value = 'error';"
    browser.run(f"{choose} box.dispatchEvent(new Event('change')); }})()")
    assert "fog" in browser.run(heads) and "sparkles" in " ".join(browser.run(heads))


def score_variants(models, names, settings=None, levels=IMAGENET_C.levels, images=60):
    """Scores of models on other corruptions, at some severities."""
    rng, found = np.random.default_rng(0), []
    draws = {IMAGENET_C.variant(n, level).folder: rng.random(images) for n in names for level in levels}
    draws["clean"] = rng.random(images)
    for place in range(models):
        mistakes = {folder: each < 0.2 + place / 20 for folder, each in draws.items()}
        more = {"settings": settings or {}, "labels": np.arange(images) % 9}
        found.append(ModelScores(f"net{place}", "c", images, (), mistakes=mistakes, **more))
    return [replace(each, levels=(1,)) for each in found] if len(levels) == 1 else found


STRANGE = """(() => {
  const words = /NaN|Infinity|undefined|\\[object/;
  const all = [...document.querySelectorAll("*")];
  const marks = all.flatMap((each) => [...each.attributes]).map((own) => own.value);
  const wide = document.documentElement.scrollWidth > innerWidth ? ["too wide"] : [];
  const outside = [...document.querySelectorAll("svg")].flatMap((drawn) => {
    const box = (each) => each.getBoundingClientRect(), edge = box(drawn);
    const is_out = (each) => each.width && (each.left < edge.left - 1 || each.right > edge.right + 1);
    return [...drawn.querySelectorAll("text")].filter((each) => is_out(box(each))).map((a) => a.textContent);
  });
  return [...[document.body.innerText, ...marks].filter((each) => words.test(each)), ...wide, ...outside];
})()"""
SETS = {
    "c-bar": (FAMILIES["c-bar"].names(224), {}, IMAGENET_C.levels),
    "both": ([*IMAGENET_C.common, *FAMILIES["c-bar"].names(224)], {}, IMAGENET_C.levels),
    "medmnist-c": (FAMILIES["medmnist-c"].names("pathmnist"), {"edition": "pathmnist"}, IMAGENET_C.levels),
    "mnist-c": (FAMILIES["mnist-c"].names(), {}, [1]),
    "not installed": ([f"shine:{letter}" for letter in "abcdefghij"], {}, [1, 2, 3]),
    "clips": (FAMILIES["video-c"].names(), {"title": "ImageNet-C for clips"}, IMAGENET_C.levels),
}


@NO_BROWSER
@pytest.mark.parametrize("name", SETS)
def test_every_family_has_its_mean_direction_ranking_and_groups(browser, tmp_path, name):
    names, settings, levels = SETS[name]
    for count in (1, 8):
        models = score_variants(count, names, settings, levels)
        write_page(Scoreboard(models, None), tmp_path / "page.html")
        for width in (1280, 390):
            resize(browser, width, 844)
            browser.open(tmp_path / "page.html")
            measures = page_data(tmp_path / "page.html")["measures"]
            keys = [each["key"] for each in measures if each["averages"]]
            for key in keys:
                choose = f"box.value = '{key}'; box.dispatchEvent(new Event('change'))"
                browser.run(f"(() => {{ const box = document.getElementById('measure'); {choose}; }})()")
                assert browser.run(STRANGE) == []
                order = browser.run(ROWS)
                # Relative scores do not rise with the number of mistakes.
                assert key.endswith((".rpc", ".rbe")) or order == [f"net{place}" for place in range(count)]
                words = browser.run("document.querySelector('#means').textContent")
                is_tested = count > 1 and not key.startswith("medmnist-c.") and not key.endswith(".rpc")
                assert is_tested <= ("worse" in words)
            assert browser.run("document.querySelectorAll('#heat tbody td.number').length") >= count * 10
    assert not browser.errors()
    heading = browser.run("document.querySelector('h1').textContent")
    assert heading == browser.run("document.title") and "scores" in heading
    captions = browser.run(
        "[...document.querySelectorAll('#curves figcaption')].map((each) => each.textContent)"
    )
    (first, *others) = page_data(tmp_path / "page.html")["groups"]
    # A family that is alone is in the heading, not again above each chart.
    assert captions and (others or not any(each.startswith(f"{first['title']}, ") for each in captions))


@NO_BROWSER
def test_a_click_on_a_number_shows_the_images_that_fail(browser, page, evaluated):
    resize(browser, 1280, 844)
    browser.open(page)
    browser.run("document.querySelector('#heat [data-op=fog]').click()")
    browser.run("document.querySelectorAll('#heat tbody tr:first-child td.raw button')[4].click()")
    text = browser.run("document.querySelector('#failures').innerText")
    with np.load(evaluated / "preds" / "good" / "fog" / "5.npz") as file:
        wrong = file["logits"].argmax(axis=1) != file["labels"]
        keys = [*file["keys"][wrong]]
    assert text.startswith("good, fog at severity 5") and f"{len(keys)} of 24 images" in text
    named = [key for key in keys if key in text.replace("\n", "")]
    pictures = browser.run("document.querySelectorAll('#failures img').length")
    assert len(named) == min(len(keys), 12) and pictures == min(len(keys), 6)
    assert "confused" in text and " for c" in text


def test_the_conclusion_names_the_best_model_and_its_weakest_corruption(page):
    text, data = page.read_text(), page_data(page)
    scores = data["models"][1]["measures"]["error"]
    operations = [each for each in data["operations"] if each["category"] != "in no mean"]
    worst = max(zip(scores["values"], (each["label"] for each in operations), strict=False))[1]
    assert f"good: Error (3/15) {100 * scores['mean']:.1f}" in text
    assert "best of 3" in text and f"weakest: {worst.replace('_', ' ')}" in text


def test_a_named_baseline_is_the_reference(tmp_path):
    models = [replace(each, model=name) for each, name in zip(fake_scores(3, 60), "zab", strict=True)]
    for name, wanted in (("z", "z"), ("b", "b-baseline")):
        named = [replace(each, model=wanted) if each.model == name else each for each in models]
        write_page(Scoreboard(named, ALEXNET, replicates=0), tmp_path / "page.html")
        assert page_data(tmp_path / "page.html")["reference"] == wanted


@NO_BROWSER
def test_labels_of_long_names_tell_the_models_apart(browser, tmp_path):
    names = [f"a-rather-long-name-with-number-{i:02d}-{size}.augmix" for i in range(3) for size in ("b", "l")]
    names = [*names, "resnet50"]
    models = [replace(model, model=name) for model, name in zip(fake_scores(7, 300), names, strict=True)]
    report = Scoreboard(models, ALEXNET, replicates=0)
    write_page(report, tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    labels = browser.run(
        "[...document.querySelectorAll('#scatter text.strong')].map((each) => each.textContent.split(' ')[0])"
    )
    assert {*labels} <= {*(f"…{name[31:]}" for name in names[:-1]), "resnet50"}
    assert len({*labels}) == len(labels) >= 6


COVERED = """(() => {
  const boxes = (all) => [...document.querySelectorAll(all)].map((each) => each.getBoundingClientRect());
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const bars = boxes('#gain rect').filter((bar) => bar.width);
  return boxes('#gain text').filter((text) => bars.some((bar) => meet(text, bar))).length;
})()"""
STRUCK = """(() => {
  const all = (selector) => [...document.querySelectorAll(`#scatter ${selector}`)];
  const highest = Math.min(...all('.rule').map((each) => each.getBoundingClientRect().top));
  const titles = all('text').filter((each) => each.textContent.startsWith('Mean'));
  return titles.filter((each) => each.getBoundingClientRect().bottom > highest).length;
})()"""


@NO_BROWSER
def test_charts_are_legible_on_every_screen(browser, tmp_path):
    """The second model is better and worse; the third has more clean errors than any published one."""
    models = fake_scores(13, 200)[10:]
    models[2].mistakes["clean"][:] = True
    worse = models[1].mistakes
    worse |= {name: ~each for name, each in worse.items() if name.startswith(("fog", "snow"))}
    note = f"not normalised: {tmp_path / 'p' / 'a'} has 10"
    report = Scoreboard(models, ALEXNET, remarks=[note], replicates=0)
    write_page(report, tmp_path / "page.html")
    for width in (1280, 390):
        resize(browser, width, 844)
        browser.open(tmp_path / "page.html")
        assert browser.run(COVERED) == browser.run(STRUCK) == 0
        assert browser.run(LETTERS) >= 10
        wide = "[...document.querySelectorAll('.wide')]"
        assert browser.run(f"{wide}.every((each) => each.scrollWidth <= each.clientWidth)")
    circles = "[...document.querySelectorAll('#scatter circle title')]"
    titles = browser.run(f"{circles}.map((each) => each.textContent)")
    assert ["effective robustness" in title for title in titles] == [True, True, False]


@NO_BROWSER
def test_twenty_models_are_told_apart(browser, tmp_path):
    """Bars show intervals, verdicts are corrected, and colours are those of the charts."""
    models = [replace(each, model=f"model-with-a-rather-long-{each.model}") for each in fake_scores(20, 300)]
    models[4] = replace(models[4], mistakes=models[3].mistakes)
    report = Scoreboard(models, ALEXNET)
    write_page(report, tmp_path / "page.html")
    resize(browser, 1280, 900)
    browser.open(tmp_path / "page.html")
    bars = "[...document.querySelectorAll('#means tbody .span')]"
    edges = "each.getBoundingClientRect().left, each.getBoundingClientRect().right"
    rows = browser.run(f"{bars}.map((bar) => [...bar.children].map((each) => [{edges}]))")
    assert len(rows) == 20 and all(low < mark[0] < high + 1 for (low, high), mark in rows)
    assert rows == sorted(rows)
    words = browser.run(
        "[...document.querySelectorAll('#means tbody tr')].map((row) => row.lastChild.textContent)"
    )
    assert words[0] == "reference" and "worse" in words[-1]
    browser.run("document.querySelector('#reference').selectedIndex = 3")
    browser.run("document.querySelector('#reference').dispatchEvent(new Event('change'))")
    assert "not told apart" in browser.run(
        "document.querySelectorAll('#means tbody tr')[4].lastChild.textContent"
    )
    note = browser.run("document.querySelector('#means-note').textContent")
    assert "Holm" in note and "19" in note
    data = page_data(tmp_path / "page.html")
    chances = np.array(data["chances"]["corruption_error"])
    assert chances.shape == (20, 20) and chances[3, 4] == 1 and chances[0, 19] < 1e-6
    assert (chances.diagonal() == 1).all()
    colours = "[...document.querySelectorAll('#legend .curve')].map((each) => getComputedStyle(each).stroke)"
    wanted = [tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5)) for colour in COLOURS]
    assert browser.run(colours) == [f"rgb({red}, {green}, {blue})" for red, green, blue in wanted]
    # Labels say what differs, and lie on no point.
    assert browser.run(OVERLAPS).endswith(" 0 overlaps")
    labels = browser.run(
        "[...document.querySelectorAll('#scatter text.strong')].map((each) => each.textContent)"
    )
    assert len({*labels}) == len(labels) > 3
    assert not browser.run(COVERED_POINTS)
    titles = (
        "[...document.querySelectorAll('#curves svg')].every((each) => each.textContent.includes('Severity'))"
    )
    assert browser.run(titles)


COVERED_POINTS = """(() => {
  const all = (selector) => [...document.querySelectorAll(`#scatter ${selector}`)];
  const boxes = (selector) => all(selector).map((each) => each.getBoundingClientRect());
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 2 && b.top < a.bottom - 2;
  return boxes("text.strong").filter((text) => boxes("circle").some((point) => meet(text, point))).length;
})()"""


@NO_BROWSER
def test_severities_and_normalised_errors_are_kept_apart(browser, tmp_path):
    write_page(Scoreboard(fake_scores(2, 100), ALEXNET), tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.run("document.querySelector('#heat [data-op=fog]').click()")
    groups = browser.run("[...document.querySelectorAll('#heat th.group')].map((each) => each.textContent)")
    assert "fog, raw error" in groups and groups.count("weather") == 2
    assert browser.run("document.querySelectorAll('#heat td.raw').length") == 10
    selectors = ("td.raw", ".number:not(.raw)")
    cells = [f"document.querySelector('#heat {each}').style.background" for each in selectors]
    assert len({browser.run(f"{cell}.match(/--\\w+/)[0]") for cell in cells}) == 2


@NO_BROWSER
def test_a_telephone_shows_the_column_that_sorts_in_the_same_order(browser, tmp_path):
    models = fake_scores(3, 100)
    report = Scoreboard(models, ALEXNET, published=choose_published(models, 1, []))
    write_page(report, tmp_path / "page.html")
    resize(browser, 390, 844)
    browser.open(tmp_path / "page.html")
    for key in ("corruption_error", "relative_corruption_error", "clean"):
        browser.run(f"document.querySelector('#means [data-key={key}]').click()")
        assert browser.run(
            f"document.querySelector('#means [data-key={key}]').getBoundingClientRect().right <= innerWidth"
        )
    narrow = browser.run(ROWS)
    resize(browser, 1280, 844)
    assert browser.run(ROWS) == narrow


@NO_BROWSER
def test_print_begins_with_the_ranking_and_cuts_no_column(browser, tmp_path):
    names = [f"model-with-a-rather-long-name-{i:02d}.augmix_in1k_224" for i in range(20)]
    models = [replace(each, model=name) for each, name in zip(fake_scores(20, 100), names, strict=True)]
    notes = [f"note {i}" for i in range(30)] + ["warning: labels"]
    write_page(Scoreboard(models, ALEXNET, remarks=notes), tmp_path / "page.html")
    # The width of A4 and of Letter in print, less the margins.
    for width in (710, 732):
        resize(browser, width, 1000)
        browser.open(tmp_path / "page.html")
        browser.call("Emulation.setEmulatedMedia", media="print")
        edges = "[...document.querySelectorAll('table')].map((each) => each.getBoundingClientRect().right)"
        assert browser.run(f"Math.max(...{edges}) <= innerWidth")
        tops = "['#means', '#h-how'].map((each) => document.querySelector(each).getBoundingClientRect().top)"
        ranking, how = browser.run(tops)
        assert ranking < 300 < how
        # The height of Letter, which is the shorter one, less the margins.
        assert browser.run("document.querySelector('#means').getBoundingClientRect().bottom") < 972
        lines = browser.run("document.body.innerText")
        assert "Click" not in lines
        assert lines.index("warning: labels") < lines.index("Ranking") < lines.index("note 7")
    browser.call("Emulation.setEmulatedMedia", media="")


def test_a_page_does_not_name_folders_of_this_machine(evaluated, tmp_path):
    models = [evaluated / "preds" / name for name in ("middle", "good")]
    cli("score", *models, "--partial", "--output", tmp_path / "page.html")
    assert str(evaluated) not in (tmp_path / "page.html").read_text()


@pytest.mark.slow("a page of fifty models")
@NO_BROWSER
def test_fifty_models_of_fifty_thousand_images(browser, tmp_path):
    report = Scoreboard(fake_scores(50, 50_000), ALEXNET, replicates=0)
    size = write_page(report, tmp_path / "page.html")
    assert size == (tmp_path / "page.html").stat().st_size < 5_000_000
    browser.open(tmp_path / "page.html")
    assert len(browser.run(ROWS)) == 50
    assert browser.run("document.querySelectorAll('#heat tbody td.number').length") == 50 * 19
    browser.run("document.querySelector('#means input').click()")
    assert page_data(tmp_path / "page.html")["line"]["source"] == "these 50 models"


def test_data_cannot_end_their_element():
    text = embed_data({"name": "</script><!--<script>&"})
    assert "<" not in text and json.loads(str(text)) == {"name": "</script><!--<script>&"}


def test_pages_that_cannot_be_written(evaluated, tmp_path):
    root = random_set(tmp_path / "a", 0.3)
    wrong = cli_error("score", root, "--partial", "--output", tmp_path / "x.txt")
    assert wrong == f"--output {tmp_path / 'x.txt'}: must end in .png, .svg, .pdf, .html"
    assert "is a folder" in cli_error("score", root, "--partial", "--output", tmp_path)
    inside = evaluated / "set" / "page.html"
    command = ("score", evaluated / "preds" / "good", "--partial", "--predicted-set", evaluated / "set")
    assert "is inside the set" in cli_error(*command, "--output", inside)
    (tmp_path / "file").write_text("")
    result = cli("score", root, "--partial", "--output", tmp_path / "file" / "page.html", status=2)
    assert "Error: --output " in result.stderr


@NO_BROWSER
def test_the_page_has_links_to_papers_and_the_deviation_of_seeds(browser, tmp_path):
    for seed in range(3):
        random_set(tmp_path / f"mine-{seed}", 0.3 + seed / 20, seed=seed)
    facts = {"paper": "On Nets", "url": "https://example.org/a", "parameters": 25557032, "image_size": 224}
    (tmp_path / "models.json").write_text(json.dumps({"mine": facts}))
    flags = (
        "--group",
        "mine=mine-*",
        "--models",
        tmp_path / "models.json",
        "--output",
        tmp_path / "page.html",
    )
    cli("score", tmp_path, "--partial", *flags)
    browser.open(tmp_path / "page.html")
    assert browser.run(
        "[...document.querySelectorAll('#means td.fact')].map((each) => each.textContent)"
    ) == [*("On Nets", "25.6 M", "224")]
    assert browser.run("document.querySelector('td.fact a').href") == "https://example.org/a"
    assert "3 seeds" in browser.run("document.getElementById('means').textContent")
    assert "Satterthwaite" in browser.run("document.body.textContent")
    browser.call("Emulation.setEmulatedMedia", media="print")
    resize(browser, 718)
    # An A4 page has room for all columns.
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert not browser.errors()
