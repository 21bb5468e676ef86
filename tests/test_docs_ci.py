"""The job of docs/use/ci.md: its commands run as they stand, on few images."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.digits import put_folder, put_model
from tests.test_docs import commands, parse

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "use" / "ci.md").read_text(encoding="utf-8")
FILES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
# Of GitHub's and GitLab's job for one's own model, and of the other workflows: what each step runs.
GITLAB = next(file["robustness"]["script"] for file in FILES if "jobs" not in file)
RUN = [
    [step["run"] for step in job["steps"] if "run" in step]
    for file in FILES
    for job in file.get("jobs", {}).values()
]
STEPS = [step for steps in (*RUN, GITLAB) for step in steps]


@pytest.mark.parametrize("step", STEPS)
def test_commands_of_the_jobs_can_be_given_as_they_stand(step):
    for words in commands(f"```sh\n{step}\n```"):
        parse(words)


def shell(folder, script):
    """Run a step of a job in `folder`, as GitHub does."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_both_jobs_for_ones_own_model_do_the_same():
    (prepare, evaluate, gate), (own_prepare, own_evaluate, own_gate) = RUN[0], GITLAB
    assert own_evaluate == evaluate
    assert all(line in own_prepare for line in prepare.splitlines())
    assert gate.split(" --format markdown")[0] in own_gate
    assert re.findall("--fail-if '.*?'", gate) == re.findall("--fail-if '.*?'", own_gate)


@pytest.mark.slow("five commands in processes of their own")
def test_the_job_for_ones_own_model_fails_at_its_gate(tmp_path):
    steps = RUN[0]
    assert [step.count("robustgen") > 0 for step in steps] == [True] * 3
    put_folder(tmp_path / "val", 30)
    put_model(tmp_path / "model.onnx")
    script = tmp_path / ".venv" / "bin" / "robustgen"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m robustgen "$@"\n')
    script.chmod(0o755)
    few = steps[1].replace("--sample 200", "--sample 10 --jobs 1")
    # The digits have 32 pixels.
    done = shell(
        tmp_path,
        few.replace(
            "--edition imagenet", "--set constants_for=32 --preprocessing mean=0 --preprocessing std=1"
        ),
    )
    assert done.returncode == 0, done.stderr
    gate = steps[2]
    assert shell(tmp_path, gate.replace("> 40", "> 100").replace("> 60", "> 100")).returncode == 0
    assert (tmp_path / "scores.html").stat().st_size > 10_000
    done = shell(tmp_path, gate.replace("> 40", "> 0"))
    assert done.returncode == 1 and "failed: model: error.mean is " in done.stderr
    summary = (tmp_path / "summary.md").read_text()
    assert "| model |" in summary and summary.splitlines()[-1].endswith("(error.mean > 0)")
    (block,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    lines = [line.removeprefix("$ ") for line in block.splitlines()]
    done = shell(tmp_path, "PATH=.venv/bin:$PATH\n" + "\n".join(lines))
    assert done.returncode == 0 and "mCE" in done.stdout and " 100.0" in done.stdout, done.stderr
