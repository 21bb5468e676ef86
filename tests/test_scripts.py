"""Scripts: those that measure, which nothing else runs, and the one that installs."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.mark.slow("plans 50,000 images")
def test_a_run_on_a_finished_set_reads_each_record_once():
    command = [sys.executable, SCRIPTS / "bench_scale.py", "--images", "50000", "--latency", "0"]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert figures["units"] == 50
    assert figures["finish_requests"]["read"] < figures["units"] + 100
    assert figures["nothing_to_do_requests"]["read"] < figures["units"] + 20
    assert figures["requests_per_image"] < 0.1


def test_the_site_shows_no_backslash_in_tables_and_its_search_quotes_no_table():
    spec = importlib.util.spec_from_file_location("site_links", SCRIPTS / "site_links.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="reference/commands.md"))
    table = "| flag | meaning |\n|---|---|\n| `--on A\\|B` | a \\| b |\n\n`a\\|b`"
    shown = script.on_page_markdown(table, page, {"repo_url": ""}, None)
    assert shown == table.replace("A\\|B", "A|B")
    row = '<tr>\n<td>Source</td>\n<td style="x"><code>--on A</code></td>\n<td><code>0</code></td>\n</tr>'
    cells = re.findall(r"<td[^>]*>", script.on_page_content(row, page, {}, None))
    assert ["data-search-exclude" in cell for cell in cells] == [True, False, True]


def test_a_corruption_that_fails_is_named_and_its_time_left_out(monkeypatch):
    spec = importlib.util.spec_from_file_location("alternatives", SCRIPTS / "bench_alternatives.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    corruptions = {"fog/1": lambda: None, "glass_blur/1": lambda: 1 / 0}
    monkeypatch.setitem(script.OPENERS, "imagecorruptions", lambda _: corruptions)
    found = script.measure("imagecorruptions", "photograph.png", 3)
    assert [*found["seconds"]] == ["fog/1"] and len(found["seconds"]["fog/1"]) == 3
    assert found["failures"] == {"glass_blur/1": "ZeroDivisionError: division by zero"}


@pytest.mark.skipif(
    sys.platform != "linux" or Path("/proc/driver/nvidia").exists(), reason="concerns Linux without a GPU"
)
@pytest.mark.parametrize(("torch", "extras"), [("", "test"), ("cuda", "test,timm")])
def test_without_its_wheels_for_processors_pytorch_is_left_out(tmp_path, torch, extras):
    """The stub of an interpreter refuses to import torch, and to install it from another index."""
    refusal = 'case "$*" in "-c import torch"*|*index-url*) exit 1 ;; esac'
    (tmp_path / "bin").mkdir()
    for name in ("python", "robustgen"):
        stub = tmp_path / "bin" / name
        stub.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n{refusal}\n')
        stub.chmod(0o755)
    environment = {**os.environ, "VENV": str(tmp_path), "TORCH": torch}
    done = subprocess.run(
        [SCRIPTS / "setup.sh", "test,timm"], env=environment, capture_output=True, text=True, check=True
    )
    asked = (tmp_path / "asked").read_text()
    assert f"--editable .[opencv,video,demo,{extras}]\n" in asked and "fetch frost ink" in asked
    assert ("the tests that need them are skipped" in done.stdout) == (not torch)
