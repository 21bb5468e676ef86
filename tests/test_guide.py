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


def read_examples(heading, page=GUIDES):
    """The blocks of code of the section under `heading`: a module, a row, and perhaps a test."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    return re.findall(r"^```(?:python|text)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def insert(path, table, row):
    """Put a row before all others of a table, which is a dict, a tuple or a list."""
    before, name, after = path.read_text(encoding="utf-8").partition(f"\n{table}")
    head, opened, rows = re.split(r"(\{\n|= [(\[]\n)(?=    )", after, maxsplit=1)
    assert name
    path.write_text(f"{before}{name}{head}{opened}{row}{rows}", encoding="utf-8")


def append(path, text):
    path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{text}", encoding="utf-8")


def add_corruptions(copy):
    """Add the family and the ingredient."""
    for name, example in {
        "shades": read_examples("How to add a corruption", "CONTRIBUTING.md"),
        "stamps": read_examples("How to add an ingredient"),
    }.items():
        module, row = example
        (copy / FAMILIES / f"{name}.py").write_text(module, encoding="utf-8")
        insert(copy / FAMILIES / "__init__.py", "LATER", row)


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


def add_rows(copy):
    """Add the source, the format and the executor, each with its test."""
    for heading, (path, _, file, table) in ADDED.items():
        module, row, test, *more = read_examples(heading)
        (copy / "robustgen" / path).write_text(module, encoding="utf-8")
        insert(copy / "robustgen" / file, table, row)
        if heading == "How to add a source":
            writers = copy / "tests" / "source_writers.py"
            insert(writers, "WRITERS", more[0])
            writer = test.partition("\n\n\n")[2].partition("def test")[0]
            before, line, after = writers.read_text().partition("# Each `source_kind` to")
            writers.write_text(f"{before}{writer}{line}{after}", encoding="utf-8")
        elif heading == "How to add a format":
            append(copy / "docs" / "use" / "formats.md", "`bmp` writes BMP files.\n")
            config = copy / "robustgen" / "settings" / "config.py"
            config.write_text(config.read_text().replace("jpeg, png, webp", "jpeg, png, bmp, webp"))
        else:
            (copy / "tests/sets/executors/test_threads.py").write_text(test, encoding="utf-8")


def add_metric(copy):
    """Add the metric, its score, and its test."""
    function, test, row = read_examples("How to add a metric")
    metrics, name = copy / "robustgen" / "metrics", re.match(r"def (\w+)", function)[1]
    append(metrics / "corruption_errors.py", function)
    # The tables have the order of these rows.
    before, end, after = (metrics / "corruption_errors.py").read_text().partition(')\n"""All scores')
    (metrics / "corruption_errors.py").write_text(f"{before}{row}{end}{after}", encoding="utf-8")
    insert(metrics / "corruption_errors.py", "__all__", f'    "{name}",\n')
    append(copy / "docs" / "api" / "robustgen.metrics.md", f"::: robustgen.metrics.{name}\n")
    append(copy / "tests" / "metrics" / "test_metrics.py", test)


def add_command(copy):
    """Add the command."""
    module, row = read_examples("How to add a command")
    (copy / "robustgen" / "cli" / "count.py").write_text(module, encoding="utf-8")
    insert(copy / "robustgen" / "cli" / "rows.py", "COMMANDS", row)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the checkout with all that the guides add, and a photograph."""
    copy = tmp_path_factory.mktemp("checkout")
    for folder in ("robustgen", "tests", "configs", "docs", "scripts"):
        shutil.copytree(ROOT / folder, copy / folder)
    for path in ROOT.glob("[!.]*"):
        if path.is_file():
            shutil.copy(path, copy)
    put_photo(copy / "photos" / "a" / "b.png")
    for add in (add_corruptions, add_rows, add_metric, add_command):
        add(copy)
    return copy


def make(folder, *words):
    few = ("--corruptions", "contrast", "--severities", "1", "--output", "out")
    robustgen(folder, "make-c", *few, *words)
    robustgen(folder, "verify", "out", "--deep", "all")
    shutil.rmtree(folder / "out")


# Tests that hold each row of a table by itself: the copy runs them for the rows that it adds.
EACH = (
    "test_pixels_are_the_published_ones",
    "test_a_seed_fixes_the_pixels_and_the_image_is_left_alone",
    "test_a_format_conforms",
    "test_tables_conform",
)
ROOMS = (
    "pixels/benchmarks/test_families.py",
    "sets/test_ingredients.py",
    "sets/sources/test_opening.py",
    "sets/formats/test_formats.py",
    "sets/executors/test_threads.py",
    "metrics",
    "lab/scores/test_measures.py",
    "lab/scores/test_score_page.py",
    "cli/test_help.py",
    "cli/test_completion.py",
)


def test_all_that_the_guides_add_passes_the_tests(copy):
    """The reference is written as `make docs` does; of the other pages only links can depend on a row."""
    run(copy, "scripts/docs_reference.py")
    added = ("posterise", "stack", "bmp")
    few = ("-m", "not slow", "-k", f"{' or '.join(added)} or not ({' or '.join(EACH)})")
    shape = ("tests/test_structure.py", "--deselect", "tests/test_structure.py::test_a_break_is_noticed")
    pages = ("tests/test_docs_reference.py", "tests/test_docs.py::test_links_and_pictures_lead_somewhere")
    rooms = (f"tests/{each}" for each in ROOMS)
    told = run(copy, "-m", "pytest", "-v", "-n", "0", "-p", "no:cacheprovider", *few, *shape, *pages, *rooms)
    for case in (
        "image_is_left_alone[shades:posterise]",
        "test_a_source_conforms[stack]",
        "test_a_format_conforms[bmp]",
        "test_threads",
        "test_range_of_errors",
    ):
        assert f"{case} PASSED" in told


def test_the_family_of_the_guide_is_listed_and_made(copy):
    assert "shades:posterise" in robustgen(copy, "list", "shades:posterise")
    words = ("--source", "photos", "--corruptions", "shades", "--severities", "1", "--output", "shades")
    robustgen(copy, "make-c", *words, "--jobs", "1")
    assert (copy / "shades" / "shades.posterise" / "1" / "a" / "b.JPEG").is_file()


def test_the_ingredient_of_the_guide_is_part_of_the_settings(copy):
    words = ("--source", "photos", "--corruptions", "stamps", "--severities", "5", "--format", "png")
    stamp = put_photo(copy / "stamp.png", 8, 50, seed=1)
    robustgen(copy, "make-c", *words, "--with", "stamp=stamp.png", "--output", "stamps", "--jobs", "2")
    made, image = (np.asarray(Image.open(copy / "stamps" / name / "a" / "b.png")) for name in FOLDERS)
    assert np.array_equal(made[:8], np.asarray(Image.open(stamp))[:, :40])
    assert np.array_equal(made[8:], image[8:])
    robustgen(copy, "verify", "stamps", "--deep", "all")
    held = json.loads((copy / "stamps" / "dataset.json").read_text())
    assert len(held["settings"]["parameters"]["stamps.stamped/5"]["224"]["stamp"]) == 16
    assert held["licence"].endswith("The stamp remains under its own terms.")


def test_the_command_of_the_guide_counts(copy):
    assert robustgen(copy, "count", "--source", "photos") == "1\n"


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


@pytest.mark.parametrize("heading", ADDED)
def test_a_row_added_by_the_guide_is_used(copy, heading):
    use_what_is_added(copy, heading)


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
