"""The guide of CONTRIBUTING.md, followed to the letter in a copy of the checkout."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from helpers import put_photo

ROOT = Path(__file__).parent.parent


def run(copy, *words):
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=copy, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_family_added_by_the_guide_passes_the_tests(tmp_path):
    for folder in ("robustgen", "tests", "configs", "docs", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    module, row = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "robustgen" / "corruptions" / "shades.py").write_text(module, encoding="utf-8")
    table = tmp_path / "robustgen" / "corruptions" / "__init__.py"
    before = table.read_text(encoding="utf-8")
    table.write_text(before.replace("LATER = {\n", f"LATER = {{\n{row}"), encoding="utf-8")
    assert table.read_text(encoding="utf-8") != before
    assert "Leave few shades" in run(tmp_path, "robustgen", "list", "shades:posterise")
    put_photo(tmp_path / "photos" / "a" / "b.png")
    words = ("--source", "photos", "--corruptions", "shades", "--severities", "1", "--output", "out")
    run(tmp_path, "robustgen", "make-c", *words, "--jobs", "1")
    assert (tmp_path / "out" / "shades.posterise" / "1" / "a" / "b.JPEG").is_file()
    chosen = "posterise or each_family or number_of"
    assert " passed" in run(tmp_path, "pytest", "-q", "-k", chosen, "tests/test_families.py")
