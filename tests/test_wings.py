"""A copy of the checkout without the wing `related`: the core stands alone, and `make test-core` tests it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robustgen.cli.rows import COMMANDS
from tests.helpers import put_photo

pytestmark = pytest.mark.slow("copies the checkout and starts several processes in it")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """The copy, and a photograph in it."""
    copy = tmp_path_factory.mktemp("core")
    for folder in ("robustgen", "tests", "configs", "docs", "scripts"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.glob("[!.]*"):
        if path.is_file():
            shutil.copy(path, copy)
    for folder in ("robustgen", "tests"):
        shutil.rmtree(copy / folder / "related", ignore_errors=True)
    put_photo(copy / "photos" / "a" / "b.png")
    return copy


def run(copy, *words, status=0):
    """Run a module of Python in the copy; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_the_help_lists_the_commands_that_are_left(core):
    listed = re.findall(r"^  ([a-z][a-z-]*)  +\S", run(core, "robustgen", "--help"), re.MULTILINE)
    assert listed == [row.name for row in COMMANDS]
    assert {"make-icons", "stream"}.isdisjoint(listed)
    run(core, "robustgen", "make-icons", status=2)


def test_sets_are_written_and_verified(core):
    few = ("--source", "photos", "--corruptions", "fog", "--severities", "1", "--output", "out")
    run(core, "robustgen", "make-c", *few, "--jobs", "1")
    run(core, "robustgen", "verify", "out", "--deep", "all")
