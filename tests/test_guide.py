"""The guides of CONTRIBUTING.md and docs/architecture.md, followed in a copy of the checkout."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import put_photo

ROOT = Path(__file__).parent.parent


def run(copy, *words):
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=copy, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def read_examples(page, heading):
    """The module and the row of the section under `heading`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    module, row = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return module, row


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
    put_photo(tmp_path / "photos" / "a" / "b.png")
    return tmp_path


def make(copy, *words):
    run(
        copy,
        "robustgen",
        "make-c",
        "--corruptions",
        "contrast",
        "--severities",
        "1",
        "--output",
        "out",
        *words,
    )
    assert ", 0 findings" in run(copy, "robustgen", "verify", "out", "--deep", "all")


def test_a_family_added_by_the_guide_passes_the_tests(copy):
    module, row = read_examples("CONTRIBUTING.md", "How to add a corruption")
    (copy / "robustgen" / "corruptions" / "shades.py").write_text(module, encoding="utf-8")
    insert(copy / "robustgen" / "corruptions" / "__init__.py", "LATER = {", row)
    assert "Leave few shades" in run(copy, "robustgen", "list", "shades:posterise")
    words = ("--source", "photos", "--corruptions", "shades", "--severities", "1", "--output", "out")
    run(copy, "robustgen", "make-c", *words, "--jobs", "1")
    assert (copy / "out" / "shades.posterise" / "1" / "a" / "b.JPEG").is_file()
    chosen = "posterise or each_family or number_of"
    assert " passed" in run(copy, "pytest", "-q", "-k", chosen, "tests/test_families.py")


def test_a_source_added_by_the_guide_is_recognised(copy):
    module, row = read_examples("docs/architecture.md", "How to add a source")
    (copy / "robustgen" / "sources" / "stack.py").write_text(module, encoding="utf-8")
    opening = copy / "robustgen" / "sources" / "opening.py"
    insert(
        opening,
        "from robustgen.sources.places import Place, find_place",
        "from robustgen.sources.stack import Stack\n",
    )
    insert(opening, "_ROWS = (", f"{row.rstrip()},\n")
    np.save(copy / "x.stack.npy", np.random.default_rng(0).integers(0, 256, (3, 40, 40, 3), np.uint8))
    make(copy, "--source", "x.stack.npy", "--jobs", "2")
    assert len([*copy.glob("out/contrast/1/*.JPEG")]) == 3


def test_a_format_added_by_the_guide_passes_the_tests(copy):
    module, row = read_examples("docs/architecture.md", "How to add a format")
    (copy / "robustgen" / "formats" / "bmp.py").write_text(module, encoding="utf-8")
    table = copy / "robustgen" / "formats" / "__init__.py"
    insert(
        table,
        "from robustgen.formats.base import parse_variant as parse_variant",
        "from robustgen.formats.bmp import BmpTree\n",
    )
    insert(table, "FORMATS: Final[Mapping[str, Format]] = {", row)
    make(copy, "--source", "photos", "--format", "bmp")
    shutil.rmtree(copy / "out")
    make(copy, "--source", "photos", "--format", "webdataset", "--sample-format", "bmp")
    assert " passed" in run(copy, "pytest", "-q", "-k", "bmp", "tests/test_formats.py")


def test_an_executor_added_by_the_guide_does_the_work(copy):
    module, row = read_examples("docs/architecture.md", "How to add an executor")
    (copy / "robustgen" / "execution" / "threads.py").write_text(module, encoding="utf-8")
    running = copy / "robustgen" / "execution" / "running.py"
    insert(
        running,
        "from robustgen.execution.progress import Progress",
        "from robustgen.execution.threads import Threads\n",
    )
    insert(running, "_CLUSTERS: Final[Mapping[str, Callable[[str | None], Executor]]] = {", row)
    make(copy, "--source", "photos", "--backend", "threads")
