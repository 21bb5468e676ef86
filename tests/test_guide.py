"""The guides of CONTRIBUTING.md and docs/background/architecture.md, followed in a copy of the checkout."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import put_photo

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
    shutil.copy(ROOT / "pyproject.toml", tmp_path)  # how pytest imports
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


def follow(copy, heading, module, table, after, line, rows):
    """Add the example under `heading`: its module, and in `table` its import `after` a line and its row."""
    text, row = read_examples("docs/background/architecture.md", heading)
    (copy / "robustgen" / module).write_text(text, encoding="utf-8")
    insert(copy / "robustgen" / table, after, f"{line}\n")
    insert(copy / "robustgen" / table, rows, f"{row.rstrip().removesuffix(',')},\n")


def test_a_family_added_by_the_guide_passes_the_tests(copy):
    module, row = read_examples("CONTRIBUTING.md", "How to add a corruption")
    (copy / "robustgen" / "benchmarks" / "corruptions" / "shades.py").write_text(module, encoding="utf-8")
    insert(copy / "robustgen" / "benchmarks" / "corruptions" / "__init__.py", "LATER = {", row)
    assert "Leave few shades" in run(copy, "robustgen", "list", "shades:posterise")
    words = ("--source", "photos", "--corruptions", "shades", "--severities", "1", "--output", "out")
    run(copy, "robustgen", "make-c", *words, "--jobs", "1")
    assert (copy / "out" / "shades.posterise" / "1" / "a" / "b.JPEG").is_file()
    chosen = "posterise or each_family or number_of"
    assert " passed" in run(copy, "pytest", "-q", "-k", chosen, "tests/benchmarks/test_families.py")


def test_a_source_added_by_the_guide_is_recognised(copy):
    follow(
        copy,
        "How to add a source",
        "sources/stack.py",
        "sources/opening.py",
        "from robustgen.sources.places import Place, find_place",
        "from robustgen.sources.stack import Stack",
        "_KINDS: Final[Mapping[str, KnownSource]] = {",
    )
    np.save(copy / "x.stack.npy", np.random.default_rng(0).integers(0, 256, (3, 40, 40, 3), np.uint8))
    make(copy, "--source", "x.stack.npy", "--jobs", "2")
    assert len([*copy.glob("out/contrast/1/*.JPEG")]) == 3


def test_a_format_added_by_the_guide_passes_the_tests(copy):
    follow(
        copy,
        "How to add a format",
        "formats/bmp.py",
        "formats/__init__.py",
        "from robustgen.formats.base import parse_variant as parse_variant",
        "from robustgen.formats.bmp import BmpEncoder",
        "FORMATS: Final[Mapping[str, Format]] = {",
    )
    make(copy, "--source", "photos", "--format", "bmp")
    shutil.rmtree(copy / "out")
    make(copy, "--source", "photos", "--format", "webdataset", "--sample-format", "bmp")
    assert " passed" in run(copy, "pytest", "-q", "-k", "bmp", "tests/formats/test_formats.py")


def test_an_executor_added_by_the_guide_does_the_work(copy):
    follow(
        copy,
        "How to add an executor",
        "execution/threads.py",
        "execution/running.py",
        "from robustgen.execution.progress import Progress",
        "from robustgen.execution.threads import Threads",
        "_CLUSTERS: Final[Mapping[str, Callable[[str | None], Executor]]] = {",
    )
    make(copy, "--source", "photos", "--backend", "threads")
