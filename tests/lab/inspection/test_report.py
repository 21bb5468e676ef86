"""`robustgen report`: one page about a finished set, whole, escaped, the same each time, and true."""

import json
import os
import shutil
import threading
import time
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean

import pytest

from robustgen.errors import SourceError
from robustgen.files.storage import base
from robustgen.lab.inspection.report import summarise_set
from robustgen.lab.inspection.report_pictures import spread_evenly
from robustgen.pixels.imaging.similarity import similarity
from robustgen.sets.formats import trees
from tests.helpers import THREE, cli, cli_error, pixels_of, put_photo, uploaded

VOID = {"meta", "link", "img", "input", "line", "circle", "polygon", "polyline", "br", "wbr"}


class Page(HTMLParser):
    """Holds that tags are balanced and that nothing is fetched; collects the text and the tags."""

    def __init__(self, content):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(content)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        for name, value in attributes:
            if name in ("src", "href", "srcset", "data", "action"):
                assert value.startswith(("data:", "#")), value
            assert not name.startswith("on")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text += data

    def values(self, tag, attribute):
        return [
            attributes[attribute] for name, attributes in self.tags if name == tag and attribute in attributes
        ]


def change_manifest(root, **changes):
    path = root / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def report(root, *flags):
    page = root.parent / "page.html"
    cli("report", root, "--output", page, *flags)
    return Page(page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def c_set(small_set):
    return small_set("c", "", *THREE)


@pytest.fixture
def copied(c_set, tmp_path):
    return shutil.copytree(c_set, tmp_path / "set")


# --- what is on it ---------------------------------------------------------------------------------


def test_a_set_without_a_name_of_its_own_is_called_like_its_folder(copied):
    for name, title in (("custom", "set"), ("street", "street")):
        change_manifest(copied, dataset=name)
        assert summarise_set(copied).title == f"ImageNet-C of {title}"


def test_a_page_shows_every_corruption_and_severity_and_what_decides_the_bytes(c_set):
    page = report(c_set, "--images", "2")
    for word in ("gaussian noise", "contrast", "fog", "Noise", "Weather", "Digital", "complete"):
        assert word in page.text
    shown = [alt for alt in page.values("img", "alt") if alt.startswith("fog")]
    assert shown == ["fog 1", "fog 4"] * 2
    assert len(page.values("svg", "aria-label")) == 3
    manifest = json.loads((c_set / "dataset.json").read_text())
    for decided in (manifest["digest"], *manifest["settings"]["versions"].values()):
        assert decided in page.text
    assert "2 of 5 images" in page.text and "JPEG, quality 85" in page.text
    assert "strength" in page.text and "@inproceedings" in page.text


@pytest.mark.parametrize(
    ("corruptions", "title", "coverage"),
    [
        ("c-bar", "ImageNet-C-bar of clean", "10 of 10 corruptions of ImageNet-C-bar"),
        ("laion-c:geometric_shapes", "LAION-C of clean", "0 of 6 corruptions of LAION-C"),
        ("laion-c:geometric_shapes,fog", "ImageNet-C of clean", "0 of 6 corruptions of LAION-C"),
    ],
)
def test_a_set_of_another_family_is_called_after_it(c_set, tmp_path, corruptions, title, coverage):
    levels = () if corruptions == "c-bar" else ("--severities", 1)
    few = ("--limit", 1, "--corruptions", corruptions, *levels)
    cli("make-c", "--source", c_set / "clean", "--output", tmp_path / "set", *few)
    page = report(tmp_path / "set")
    assert title in page.text and coverage in page.text
    assert ("common corruptions" in page.text) == ("@inproceedings" in page.text) == ("fog" in corruptions)
    # The family is named where there are several.
    assert ("laion-c:geometric shapes" in page.text) == (corruptions == "laion-c:geometric_shapes,fog")


def test_the_curves_are_the_mean_similarity_to_the_clean_images(c_set):
    (curve,) = (c for k in summarise_set(c_set).categories for c in k.curves if c.name == "contrast")
    clean = sorted(path for path in (c_set / "clean").rglob("*") if path.suffix in (".jpg", ".JPEG"))
    names = [path.relative_to(c_set / "clean") for path in clean]
    for level, mean, low in zip((1, 4), curve.mean, curve.low, strict=True):
        pairs = [(pixels_of(c_set / "clean" / n), pixels_of(c_set / f"contrast/{level}" / n)) for n in names]
        values = [similarity(first, second).ms_ssim for first, second in pairs]
        assert mean == pytest.approx(fmean(values)) and low == pytest.approx(min(values))
    assert curve.x == [1, 4] and curve.mean[0] > curve.mean[1]


def test_failures_are_listed(photos, tmp_path):
    source = shutil.copytree(photos, tmp_path / "source")
    (source / "cat" / "broken.jpg").write_bytes(b"no image")
    cli("make-c", "--source", source, "--output", tmp_path / "set", *THREE, status=1)
    page = report(tmp_path / "set")
    assert "1 failure" in page.text and "cat/broken.jpg" in page.text
    # Of many failures, the first are listed.
    lines = [json.dumps({"key": f"cat/{i:04d}.jpg", "reason": "why"}) for i in range(1234)]
    (tmp_path / "set" / "errors.jsonl").write_text("\n".join(lines) + "\n")
    page = report(tmp_path / "set")
    assert "cat/0049.jpg" in page.text and "cat/0050.jpg" not in page.text
    assert "1,184 more" in page.text


def test_own_constants_are_named(photos, tmp_path):
    config = tmp_path / "own.yaml"
    config.write_text(
        f"source: {photos}\ncorruptions: fog\nseverities: 3\nparameters: {{fog: {{3: {{strength: 2.25}}}}}}\n"
    )
    cli("make-c", "--config", config, "--output", tmp_path / "set")
    page = report(tmp_path / "set")
    assert "Own constants" in page.text and "2.25" in page.text


# --- every set -------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["mp4", "png"])
def test_sequences_show_six_frames(photos, tmp_path, layout):
    flags = ("--perturbations", "gaussian_noise,brightness", "--format", layout, "--limit", 2, "--jobs", 1)
    cli("make-p", "--source", photos, "--output", tmp_path / "set", *flags)
    page = report(tmp_path / "set", "--images", "1")
    frames = [alt for alt in page.values("img", "alt") if alt.startswith("brightness")]
    assert frames == [f"brightness, frame {n}" for n in (0, 6, 12, 18, 24, 30)]
    assert "2 sequences" in page.text and "2 images" in page.text
    (noise, brightness) = (c for k in summarise_set(tmp_path / "set").categories for c in k.curves)
    assert len(noise.x) == len(brightness.x) == 30
    # Noisy frames are all as far from the first one; a step of brightness changes little.
    assert max(noise.mean) - min(noise.mean) < 0.1
    assert min(brightness.mean) > max(noise.mean)


def test_arrays_have_a_page(cifar, tmp_path):
    flags = ("--dataset", "cifar-10", "--source", cifar[0], "--jobs", "1")
    cli("make-c", *flags, "--corruptions", "fog,contrast", "--output", tmp_path / "c")
    page = report(tmp_path / "c")
    assert "20 images" in page.text and "32 x 32" in page.text and "NumPy arrays" in page.text
    assert [alt for alt in page.values("img", "alt") if alt.startswith("fog")] == [
        f"fog {n}" for n in range(1, 6)
    ] * 3
    cli("make-p", *flags, "--perturbations", "tilt", "--limit", "3", "--output", tmp_path / "p")
    assert "tilt" in report(tmp_path / "p").text


def published(root, images=3):
    """A C set as it is downloaded: category folders, no clean images, no papers."""
    for level in (1, 2, 3, 4, 5):
        for i in range(images):
            put_photo(root / "weather" / "fog" / str(level) / "n01440764" / f"{i}.JPEG", seed=level + 10 * i)
    return root


def test_a_published_set_has_a_page_of_what_can_be_known_and_read(tmp_path):
    root = published(tmp_path / "ImageNet-C")
    page = report(root)
    assert "not recorded" in page.text and "no clean images" in page.text
    assert "ImageNet-C: 1 corruption at 5 severities of 3 images" in page.text
    assert page.values("svg", "aria-label") == []
    (root / "weather/fog/2/n01440764/0.JPEG").write_bytes(b"")
    page = report(root)
    assert [a["aria-label"] for tag, a in page.tags if a.get("class") == "missing"] == ["fog 2: missing"]


# --- the file ----------------------------------------------------------------------------------------


def test_the_same_set_gives_the_same_page_beside_it_wherever_it_lies(c_set, tmp_path, monkeypatch):
    pages = []
    for place in ("one", "two"):
        root = shutil.copytree(c_set, tmp_path / place / "set")
        monkeypatch.chdir(root)
        assert "set-report.html" in cli("report", root if place == "one" else ".").stdout
        pages.append((root.parent / "set-report.html").read_bytes())
        assert {path.name for path in root.parent.iterdir()} == {"set", "set-report.html"}
        cli("verify", root)
    assert pages[0] == pages[1]


def test_a_page_that_cannot_be_written_leaves_nothing(copied):
    assert str(copied) in cli_error("report", copied, "--output", copied / "report.html")
    assert not (copied / "report.html").exists()
    (copied.parent / "file").write_text("")
    assert "file" in cli_error("report", copied, "--output", copied.parent / "file" / "page.html")
    assert "is a folder" in cli_error("report", copied, "--output", copied.parent)
    assert {path.name for path in copied.parent.iterdir()} == {"set", "file"}


def test_names_cannot_become_markup(tmp_path):
    names = [
        "<img src=x onerror=alert(1)>",
        '"quoted" & more',
        "käse 猫",
        "turned\u202egnj",
        "two\nlines",
        "n" * 200,
    ]
    for seed, name in enumerate(names):
        put_photo(tmp_path / "source" / name / "a.JPEG", seed=seed)
    cli("make-c", "--source", tmp_path / "source", "--output", tmp_path / "set", *THREE)
    change_manifest(tmp_path / "set", dataset="<script>alert(1)</script>")
    page = report(tmp_path / "set", "--images", "12")
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2  # the page's own
    # Tabs show the beginning and the end of a long name.
    for shown in ("<img src", *names[1:3], r"two\nlines", r"turned\u202e"):
        assert shown in page.text
    assert "\u202e" not in page.text


def test_a_name_in_no_encoding_is_refused(tmp_path):
    root = published(tmp_path / "set", images=1)
    folder = os.fsencode(root / "weather/fog/1/n01440764")
    Path(os.fsdecode(folder + b"/0.JPEG")).rename(os.fsdecode(folder + b"/\xff.JPEG"))
    assert "xff.JPEG'" in cli_error("report", root)


def test_only_a_few_images_of_a_large_set_are_read(tmp_path, monkeypatch):
    root = published(tmp_path / "set", images=1)
    for level in range(1, 6):
        folder = root / f"weather/fog/{level}/n01440764"
        for i in range(1, 400):
            os.link(folder / "0.JPEG", folder / f"{i}.JPEG")
    read = []
    load = trees.VariantFolder.load
    monkeypatch.setattr(
        trees.VariantFolder, "load", lambda self, key: read.append((self.location, key)) or load(self, key)
    )
    assert summarise_set(root).sample.total == 400
    assert len(set(read)) <= 5 * 16 + 1 < 400


def test_places_lie_at_even_distances():
    assert spread_evenly(50000, 3) == [8333, 25000, 41666]
    assert spread_evenly(3, 16) == [0, 1, 2]
    assert spread_evenly(1, 3) == [0]


# --- what has no page ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"title": "AugMix"}, "AugMix"),
        ({"variants": ["fog/9"]}, "lacks"),
        ({"complete": False}, "not complete"),
    ],
)
def test_a_set_with_another_title_is_refused(copied, change, reason):
    change_manifest(copied, **change)
    assert reason in cli_error("report", copied)


def test_what_is_no_finished_set_is_refused(copied, tmp_path):
    assert "no such folder" in cli_error("report", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "contains no folder" in cli_error("report", tmp_path / "empty")
    (copied / "errors.jsonl").write_text("{\n")
    assert "errors.jsonl" in cli_error("report", copied)
    (copied / "dataset.json").unlink()
    assert "has not finished" in cli_error("report", copied)


OBJECTS = dict.fromkeys(("counts", "config", "source"), dict)
TEXTS = dict.fromkeys(("licence", "dataset"), str)


@pytest.mark.parametrize("value", [None, "text", [1], {"a": []}])
def test_a_manifest_of_other_types_is_refused(copied, value):
    manifest = json.loads((copied / "dataset.json").read_text())
    types = OBJECTS | TEXTS | {"images": int, "edition": object}
    for key in ("settings", *types):
        (copied / "dataset.json").write_text(json.dumps(manifest | {key: value}))
        if isinstance(value, types.get(key, ())):
            assert summarise_set(copied, 1).facts
        else:
            with pytest.raises(SourceError, match="is not robustgen's: it has no"):
                summarise_set(copied, 1)


def test_a_set_of_clean_images_alone_has_a_page(copied):
    change_manifest(copied, variants=["clean"])
    assert "0 corruptions" in report(copied).text


def test_sums_that_point_outside_are_not_followed(copied):
    sums = copied / "clean" / "SHA256SUMS"
    sums.write_text(f"{'0' * 64}  ../../secret.jpg\n{sums.read_text()}")
    assert summarise_set(copied).sample.total == 5


def test_images_of_many_sizes_share_a_page(tmp_path):
    for i, (height, width) in enumerate([(32, 32), (40, 300), (300, 40), (600, 700)]):
        put_photo(tmp_path / "source" / f"{i}.JPEG", height, width, seed=i)
    cli("make-c", "--source", tmp_path / "source", "--output", tmp_path / "set", *THREE)
    page = report(tmp_path / "set", "--images", "4")
    sides = [int(side) for name in ("width", "height") for side in page.values("img", name)]
    assert max(sides) <= 3 * 256
    assert "and others" in page.text


def test_a_set_behind_a_url(tmp_path, monkeypatch, c_set):
    from fsspec.implementations.memory import MemoryFileSystem

    monkeypatch.chdir(tmp_path)
    for path in c_set.rglob("*.*"):
        if path.is_file() and ".robustgen" not in path.parts:
            MemoryFileSystem().pipe(f"/report/{c_set.name}/{path.relative_to(c_set)}", path.read_bytes())
    cli("report", c_set, "--output", tmp_path / "local.html")
    load, seen = trees.VariantFolder.load, []
    # Each of the five images of a variant waits for the others.
    together = threading.Barrier(5, timeout=60)

    def load_together(source, key):
        seen.append(key)
        # The size of the first decides how many are sampled.
        if len(seen) > 1:
            together.wait()
        return load(source, key)

    monkeypatch.setattr(trees.VariantFolder, "load", load_together)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert cli("report", f"memory://report/{c_set.name}").stdout.startswith(f"{c_set.name}-report.html, ")
    # The first, the clean ones to compare with, and those of seven variants.
    assert len(seen) == 1 + 5 + 7 * 5
    assert (tmp_path / f"{c_set.name}-report.html").read_bytes() == (tmp_path / "local.html").read_bytes()


def test_few_bytes_are_read_ahead_from_a_server(tmp_path, monkeypatch, c_set):
    url, held, most = uploaded(c_set, f"memory://{tmp_path.name}/{c_set.name}"), [], []
    load = trees.VariantFolder.load

    def note(source, key):
        held.append(key)
        most.append(len(held))
        # Time in which others would begin.
        time.sleep(0.01)
        held.remove(key)
        return load(source, key)

    monkeypatch.setattr(trees.VariantFolder, "load", note)
    monkeypatch.setattr(base, "MOST_BYTES", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    cli("report", url, "--output", tmp_path / "page.html")
    assert len(most) > 30 and max(most) == 1


def test_pictures_stand_below_their_own_severity(photos, tmp_path):
    corruptions = ("--corruptions", "fog:2,4,snow:1-3,contrast:5")
    cli("make-c", "--source", photos, *corruptions, "--limit", 1, "--output", tmp_path / "c")
    summary = summarise_set(tmp_path / "c")
    assert "3 corruptions at 1 to 3 severities" in summary.lead
    weather, digital = summary.categories
    assert (weather.heads, digital.heads) == (["1", "2", "3", "4"], ["5"])
    shown = {row.name: [picture.caption for picture in row.strips[0]] for row in weather.rows}
    assert shown == {"fog": ["", "2", "", "4"], "snow": ["1", "2", "3", ""]}
    assert all(
        (picture.image is None) == (not picture.caption) for row in weather.rows for picture in row.strips[0]
    )
    assert "cannot be read" not in report(tmp_path / "c").text
