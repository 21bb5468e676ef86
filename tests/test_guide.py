"""The guides of CONTRIBUTING.md and docs/background/architecture.md, followed in copies of the checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers import install, put_photo

pytestmark = pytest.mark.slow("copies the package and tests each example of the guide")

ROOT = Path(__file__).parent.parent
GUIDES = "docs/background/architecture.md"
FAMILIES = "robustgen/pixels/benchmarks/corruptions"
FOLDERS = ("stamps.stamped/5", "clean")


def run(folder, *words):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def robustgen(folder, *words):
    return run(folder, "-m", "robustgen", *words)


# Tests that hold each row of a table by itself: a copy runs them for the row that it adds.
EACH = (
    "test_pixels_are_the_published_ones",
    "test_a_seed_fixes_the_pixels_and_the_image_is_left_alone",
    "test_a_format_conforms",
    "test_tables_conform",
)


def check(copy, added, *words):
    """Write the reference as `make docs` does; test it, the shape of the package, and what `words` name.

    The other pages are those of the checkout; only their links can depend on a row.
    """
    run(copy, "scripts/docs_reference.py")
    shape = ("tests/test_structure.py", "--deselect", "tests/test_structure.py::test_a_break_is_noticed")
    pages = ("tests/test_docs_reference.py", "tests/test_docs.py::test_links_and_pictures_lead_somewhere")
    few = ("-m", "not slow", "-k", f"{added} or not ({' or '.join(EACH)})")
    return run(copy, "-m", "pytest", "-v", "-n", "0", "-p", "no:cacheprovider", *few, *shape, *pages, *words)


def read_examples(heading, page=GUIDES):
    """The blocks of code of the section under `heading`: a module, a row, and perhaps a test."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    return re.findall(r"^```(?:python|text)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def insert(path, table, row):
    """Put a row before all others of a table, which is a dict or a tuple."""
    before, name, after = path.read_text(encoding="utf-8").partition(f"\n{table}")
    head, opened, rows = re.split(r"(\{\n|= \(\n)(?=    )", after, maxsplit=1)
    assert name
    path.write_text(f"{before}{name}{head}{opened}{row}{rows}", encoding="utf-8")


def append(path, text):
    path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{text}", encoding="utf-8")


@pytest.fixture
def copy(tmp_path):
    """A copy of the checkout with a photograph in it."""
    for folder in ("robustgen", "tests", "configs", "docs", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.glob("[!.]*"):
        if path.is_file():
            shutil.copy(path, tmp_path)
    put_photo(tmp_path / "photos" / "a" / "b.png")
    return tmp_path


def make(folder, *words):
    few = ("--corruptions", "contrast", "--severities", "1", "--output", "out")
    robustgen(folder, "make-c", *few, *words)
    robustgen(folder, "verify", "out", "--deep", "all")
    shutil.rmtree(folder / "out")


# --- corruptions -----------------------------------------------------------------------------------


def test_a_family_added_by_the_guide_passes_the_tests(copy):
    module, row = read_examples("How to add a corruption", "CONTRIBUTING.md")
    (copy / FAMILIES / "shades.py").write_text(module, encoding="utf-8")
    insert(copy / FAMILIES / "__init__.py", "LATER", row)
    assert "shades:posterise" in robustgen(copy, "list", "shades:posterise")
    words = ("--source", "photos", "--corruptions", "shades", "--severities", "1", "--output", "out")
    robustgen(copy, "make-c", *words, "--jobs", "1")
    assert (copy / "out" / "shades.posterise" / "1" / "a" / "b.JPEG").is_file()
    told = check(copy, "posterise", "tests/pixels/benchmarks/test_families.py")
    assert "image_is_left_alone[shades:posterise] PASSED" in told


def test_an_ingredient_added_by_the_guide_is_part_of_the_settings(copy):
    module, row = read_examples("How to add an ingredient")
    (copy / FAMILIES / "stamps.py").write_text(module, encoding="utf-8")
    insert(copy / FAMILIES / "__init__.py", "LATER", row)
    words = ("--source", "photos", "--corruptions", "stamps", "--severities", "5", "--format", "png")
    stamp = put_photo(copy / "stamp.png", 8, 50, seed=1)
    robustgen(copy, "make-c", *words, "--with", "stamp=stamp.png", "--output", "out", "--jobs", "2")
    made, image = (np.asarray(Image.open(copy / "out" / name / "a" / "b.png")) for name in FOLDERS)
    assert np.array_equal(made[:8], np.asarray(Image.open(stamp))[:, :40])
    assert np.array_equal(made[8:], image[8:])
    robustgen(copy, "verify", "out", "--deep", "all")
    held = json.loads((copy / "out" / "dataset.json").read_text())
    assert len(held["settings"]["parameters"]["stamps.stamped/5"]["224"]["stamp"]) == 16
    assert held["licence"].endswith("The stamp remains under its own terms.")
    check(copy, "stamp", "tests/sets/test_ingredients.py")


# --- sources, formats, executors -------------------------------------------------------------------


def use_what_is_added(folder, heading):
    """Use the example of a guide on the command line."""
    if heading == "How to add a source":
        images = np.random.default_rng(0).integers(0, 256, (3, 40, 40, 3), np.uint8)
        np.save(folder / "x.stack.npy", images)
        make(folder, "--source", "x.stack.npy", "--jobs", "2")
    elif heading == "How to add a format":
        make(folder, "--source", "photos", "--format", "bmp")
        make(folder, "--source", "photos", "--format", "webdataset:bmp")
    else:
        make(folder, "--source", "photos", "--on", "threads")


# Heading of a guide to its module in this package, its group of entry points, and its table.
ADDED = {
    "How to add a source": ("sets/sources/stack.py", "robustgen.sources", "files/registry.py", "SOURCE_ROWS"),
    "How to add a format": ("sets/formats/bmp.py", "robustgen.formats", "files/registry.py", "FORMAT_ROWS"),
    "How to add an executor": (
        "sets/executors/threads.py",
        "robustgen.executors",
        "sets/executors/__init__.py",
        "EXECUTORS",
    ),
}


@pytest.mark.parametrize("heading", ADDED)
def test_a_row_added_by_the_guide_is_used_and_passes_the_tests(copy, heading):
    (path, _, file, table), (module, row, test, *more) = ADDED[heading], read_examples(heading)
    (copy / "robustgen" / path).write_text(module, encoding="utf-8")
    insert(copy / "robustgen" / file, table, row)
    room = f"tests/{Path(path).parent}"
    if heading == "How to add a source":
        writer = test.partition("\n\n\n")[2].partition("def test")[0]
        insert(copy / "tests" / "source_writers.py", "WRITERS", more[0])
        before, line, after = (
            (copy / "tests/source_writers.py").read_text().partition("# Each `source_kind` to")
        )
        (copy / "tests" / "source_writers.py").write_text(f"{before}{writer}{line}{after}", encoding="utf-8")
        tests, case = f"{room}/test_opening.py", "test_a_source_conforms[stack]"
    elif heading == "How to add a format":
        append(copy / "docs" / "use" / "formats.md", "`bmp` writes BMP files.\n")
        tests, case = f"{room}/test_formats.py", "test_a_format_conforms[bmp]"
    else:
        (copy / room / "test_threads.py").write_text(test, encoding="utf-8")
        tests, case = f"{room}/test_threads.py", "test_threads"
    use_what_is_added(copy, heading)
    assert f"{case} PASSED" in check(copy, Path(path).stem, tests)


@pytest.mark.parametrize("heading", ADDED)
def test_a_row_of_another_package_is_used(tmp_path, heading):
    (_, group, *_), (module, row, test, *_) = ADDED[heading], read_examples(heading)
    name, attribute = re.fullmatch(r' *"(\w+)": "[\w.]+:(\w+)",\n', row).groups()
    module = re.sub(r"from robustgen\.sets[\w.]* import", "from robustgen.plugins import", module)
    entries = [(name, f"robustgen_{name}:{attribute}")]
    install(tmp_path, "example", entries, {f"robustgen_{name}": module}, group)
    put_photo(tmp_path / "photos" / "a" / "b.png")
    use_what_is_added(tmp_path, heading)
    (tmp_path / "test_added.py").write_text(test, encoding="utf-8")
    assert "1 passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_added.py")


def test_the_entry_point_of_the_guide_is_that_of_its_format():
    text = (ROOT / GUIDES).read_text(encoding="utf-8")
    assert '[project.entry-points."robustgen.formats"]\nbmp = "robustgen_bmp:BMP"\n' in text


# --- metrics and commands --------------------------------------------------------------------------


def test_a_metric_added_by_the_guide_passes_the_tests(copy):
    function, line, test, row = read_examples("How to add a metric")
    metrics, name = copy / "robustgen" / "metrics", re.match(r"def (\w+)", function)[1]
    append(metrics / "corruption_errors.py", function)
    # The tables have the order of these rows.
    before, end, after = (metrics / "corruption_errors.py").read_text().partition(')\n"""All scores')
    (metrics / "corruption_errors.py").write_text(f"{before}{row}{end}{after}", encoding="utf-8")
    append(metrics / "__init__.py", line)
    append(copy / "docs" / "api" / "robustgen.metrics.md", f"::: robustgen.metrics.{name}\n")
    append(copy / "tests" / "metrics" / "test_metrics.py", test)
    # Detectors and segmentation models have scores of their own.
    others = (f"--ignore=tests/lab/scores/test_{each}.py" for each in ("detection", "segmentation"))
    check(copy, name, "tests/metrics", "tests/lab/scores", *others)


def test_a_command_added_by_the_guide_is_listed_and_described(copy):
    module, row = read_examples("How to add a command")
    (copy / "robustgen" / "cli" / "count.py").write_text(module, encoding="utf-8")
    insert(copy / "robustgen" / "cli" / "rows.py", "COMMANDS", row)
    assert robustgen(copy, "count", "--source", "photos") == "1\n"
    check(copy, "count", "tests/cli/test_help.py", "tests/cli/test_completion.py")
