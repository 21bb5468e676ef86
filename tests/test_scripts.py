"""Scripts that measure, and that nothing else runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow("plans 50,000 images")

SCRIPTS = Path(__file__).parents[1] / "scripts"


def test_a_run_on_a_finished_set_reads_each_record_once():
    command = [sys.executable, SCRIPTS / "bench_scale.py", "--images", "50000", "--latency", "0"]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert figures["units"] == 50
    assert figures["finish_requests"]["read"] < figures["units"] + 100
    assert figures["nothing_to_do_requests"]["read"] < figures["units"] + 10
    assert figures["requests_per_image"] < 0.1
