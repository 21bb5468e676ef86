"""The guides of CONTRIBUTING.md and docs/background/architecture.md, followed in a copy of the checkout."""

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
FOLDERS = ("stamps.stamped/5", "clean")


def run(copy, *words):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=copy, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def read_examples(page, heading):
    """The blocks of Python of the section under `heading`: a module, a row, and perhaps a test."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    return re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def insert(path, after, text):
    """Put `text` after the first line that is `after`."""
    before, line, rest = path.read_text(encoding="utf-8").partition(f"{after}\n")
    assert line
    path.write_text(f"{before}{line}{text}{rest}", encoding="utf-8")


@pytest.fixture
def copy(tmp_path):
    """A copy of the checkout with a photograph in it."""
    for folder in ("robustgen", "tests", "configs", "docs", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)  # how pytest imports
    put_photo(tmp_path / "photos" / "a" / "b.png")
    return tmp_path


def make(folder, *words):
    few = ("--corruptions", "contrast", "--severities", "1", "--output", "out")
    run(folder, "robustgen", "make-c", *few, *words)
    assert ", 0 findings" in run(folder, "robustgen", "verify", "out", "--deep", "all")
    shutil.rmtree(folder / "out")


def use_what_is_added(folder, heading):
    """Use the example of a guide on the command line, and run the test that the guide ends with."""
    if heading == "How to add a source":
        images = np.random.default_rng(0).integers(0, 256, (3, 40, 40, 3), np.uint8)
        np.save(folder / "x.stack.npy", images)
        make(folder, "--source", "x.stack.npy", "--jobs", "2")
    elif heading == "How to add a format":
        make(folder, "--source", "photos", "--format", "bmp")
        make(folder, "--source", "photos", "--format", "webdataset:bmp")
    else:
        make(folder, "--source", "photos", "--on", "threads")
    (folder / "test_added.py").write_text(read_examples(GUIDES, heading)[2], encoding="utf-8")
    assert "1 passed" in run(folder, "pytest", "-q", "-p", "no:cacheprovider", "test_added.py")


GUIDES = "docs/background/architecture.md"
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


def test_a_family_added_by_the_guide_passes_the_tests(copy):
    module, row = read_examples("CONTRIBUTING.md", "How to add a corruption")
    (copy / "robustgen" / "pixels" / "benchmarks" / "corruptions" / "shades.py").write_text(
        module, encoding="utf-8"
    )
    insert(copy / "robustgen" / "pixels" / "benchmarks" / "corruptions" / "__init__.py", "LATER = {", row)
    assert "Leave few shades" in run(copy, "robustgen", "list", "shades:posterise")
    words = ("--source", "photos", "--corruptions", "shades", "--severities", "1", "--output", "out")
    run(copy, "robustgen", "make-c", *words, "--jobs", "1")
    assert (copy / "out" / "shades.posterise" / "1" / "a" / "b.JPEG").is_file()
    chosen = "posterise or each_family or number_of"
    assert " passed" in run(copy, "pytest", "-q", "-k", chosen, "tests/pixels/benchmarks/test_families.py")


def test_an_ingredient_added_by_the_guide_is_part_of_the_settings(copy):
    module, row = read_examples("docs/background/architecture.md", "How to add an ingredient")
    (copy / "robustgen" / "pixels" / "benchmarks" / "corruptions" / "stamps.py").write_text(
        module, encoding="utf-8"
    )
    insert(copy / "robustgen" / "pixels" / "benchmarks" / "corruptions" / "__init__.py", "LATER = {", row)
    words = ("--source", "photos", "--corruptions", "stamps", "--severities", "5", "--format", "png")
    stamp = put_photo(copy / "stamp.png", 8, 50, seed=1)
    run(copy, "robustgen", "make-c", *words, "--with", "stamp=stamp.png", "--output", "out", "--jobs", "2")
    made, image = (np.asarray(Image.open(copy / "out" / name / "a" / "b.png")) for name in FOLDERS)
    assert np.array_equal(made[:8], np.asarray(Image.open(stamp))[:, :40])
    assert np.array_equal(made[8:], image[8:])
    assert ", 0 findings" in run(copy, "robustgen", "verify", "out", "--deep", "all")
    held = json.loads((copy / "out" / "dataset.json").read_text())
    assert len(held["settings"]["parameters"]["stamps.stamped/5"]["224"]["stamp"]) == 16
    assert held["licence"].endswith("The stamp remains under its own terms.")


@pytest.mark.parametrize("heading", ADDED)
def test_a_row_added_by_the_guide_is_used(copy, heading):
    (path, _, file, table), (module, row, _) = ADDED[heading], read_examples(GUIDES, heading)
    (copy / "robustgen" / path).write_text(module, encoding="utf-8")
    file = copy / "robustgen" / file
    before, name, after = file.read_text(encoding="utf-8").partition(f"{table}: ")
    head, brace, rows = after.partition("    {\n")
    assert brace
    file.write_text(f"{before}{name}{head}{brace}{row}{rows}", encoding="utf-8")
    use_what_is_added(copy, heading)


@pytest.mark.parametrize("heading", ADDED)
def test_a_row_of_another_package_is_used(tmp_path, heading):
    (_, group, *_), (module, row, _) = ADDED[heading], read_examples(GUIDES, heading)
    name, attribute = re.fullmatch(r' *"(\w+)": "[\w.]+:(\w+)",\n', row).groups()
    entries = [(name, f"robustgen_{name}:{attribute}")]
    install(tmp_path, "example", entries, {f"robustgen_{name}": module}, group)
    put_photo(tmp_path / "photos" / "a" / "b.png")
    use_what_is_added(tmp_path, heading)


def test_the_entry_point_of_the_guide_is_that_of_its_format():
    text = (ROOT / GUIDES).read_text(encoding="utf-8")
    assert '[project.entry-points."robustgen.formats"]\nbmp = "robustgen_bmp:BMP"\n' in text
