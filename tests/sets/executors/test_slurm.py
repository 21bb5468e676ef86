"""Arrays of SLURM, with an `sbatch` that runs the tasks as processes of this machine."""

import os
import sys

import pytest

from robustgen.plugins.conformance import check_executor
from robustgen.sets.executors import parse_executor
from tests.helpers import FEW, cli, cli_error, kept, latest, make_c, tree

# It skips the tasks that LOST names, as if their nodes had died.
SBATCH = f"""#!{sys.executable}
import os, re, subprocess, sys
*flags, script = sys.argv[1:]
text = open(script).read()
if "--partition=nowhere" in text:
    sys.exit("sbatch: error: invalid partition specified: nowhere")
print(7, flush=True)
ranges = [part.split("-") for part in re.search("--array=(.*)", text)[1].split(",")]
tasks = [task for ends in ranges for task in range(int(ends[0]), int(ends[-1]) + 1)]
log = re.search("--output=(.*)", text)[1].replace("%A", "7")
for task in tasks:
    if str(task) not in os.environ["LOST"].split(","):
        with open(log.replace("%a", str(task)), "w") as out:
            environment = {{**os.environ, "SLURM_ARRAY_TASK_ID": str(task)}}
            subprocess.run(["bash", script], env=environment, stdout=out, stderr=out)
sys.exit(1 if os.environ["LOST"] else 0)
"""


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sbatch").write_text(SBATCH)
    (folder / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOST", "")


WAIT = "partition=cpu,wait"


def submit(photos, output, *flags, options="partition=cpu", status=0):
    few = [flag for flag in latest(*FEW, "--severities", "one") if flag not in ("--jobs", "1")]
    few[few.index("one")] = "1"
    slurm = ("--on", f"slurm:{options},shards=3")
    return cli("make-c", "--source", photos, "--output", output, *few, *slurm, *flags, status=status)


def test_slurm_conforms(sbatch):
    check_executor("slurm:partition=cpu,shards=3,wait")


@pytest.mark.slow("runs an array of jobs")
def test_a_shard_that_did_not_end_is_named_and_the_same_command_resumes(
    photos, tmp_path, sbatch, monkeypatch
):
    output = tmp_path / "out"
    monkeypatch.setenv("LOST", "2")
    result = submit(photos, output, options=WAIT, status=1)
    assert "SLURM job 7: 3 shards of 3; logs in" in result.stdout
    assert result.stderr.startswith(f"unfinished shards: 2; see {output}.slurm/7-*.log, ")
    assert "unfinished shards: 2" in (tmp_path / "out.slurm" / "7-3.log").read_text()
    assert not (output / "dataset.json").exists()
    monkeypatch.setenv("LOST", "")
    assert "#SBATCH --array=2\n" in submit(photos, output, "--dry-run").stdout
    assert "all shards are in" in submit(photos, output, options=WAIT).stdout
    assert kept(submit(photos, output)) == 3
    make_c(photos, tmp_path / "here", *FEW, "--severities", "1")
    assert tree(output) == tree(tmp_path / "here")


def test_a_dry_run_prints_the_script_and_creates_nothing(photos, tmp_path):
    script = submit(
        photos, tmp_path / "out", "--dry-run", options="partition=cpu,cpus-per-task=16,time=2:00:00"
    )
    lines = script.stdout.splitlines()
    assert lines[0] == "#!/bin/bash"
    for option in ("partition=cpu", "cpus-per-task=16", "time=2:00:00", "array=1-3", "job-name=out"):
        assert f"#SBATCH --{option}" in lines
    assert f"{tmp_path}/out.slurm/plan.json" in lines[-2]
    assert '--shard "$SLURM_ARRAY_TASK_ID/3" --jobs "${SLURM_CPUS_PER_TASK:-1}"' in lines[-1]
    assert not [*tmp_path.iterdir()]


def test_what_slurm_refuses_and_where_there_is_none(photos, tmp_path, sbatch, monkeypatch):
    refused = submit(photos, tmp_path / "out", options="partition=nowhere", status=2)
    assert refused.stderr == "Error: slurm: sbatch: error: invalid partition specified: nowhere\n"
    monkeypatch.setenv("PATH", str(tmp_path))
    lacking = submit(photos, tmp_path / "out", status=2).stderr
    assert "sbatch " in lacking and f"{tmp_path}/out.slurm/array.sh" in lacking


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("slurm", "--on: slurm needs the number of its jobs, such as slurm:partition=cpu,shards=64"),
        ("slurm:partition=cpu,wait", "--on: slurm needs the number of its jobs"),
        ("slurm:shards=0", "--on: slurm needs the number of its jobs"),
        ("slurm:shards=3,wait=no", "--on: slurm: wait has no value; write wait, not wait=no"),
        ("slurm:array=1-4,shards=3", "--on: slurm: array is set by robustgen; leave it out"),
        ("slurm:=cpu,shards=3", "--on: slurm takes options of sbatch, such as partition=cpu, not '=cpu'"),
        ("slrum:shards=3", "--on: unknown executor 'slrum' (did you mean 'slurm'?)"),
        ("dask", "--on: dask needs the address of its scheduler, such as dask:tcp://head:8786"),
        ("", "--on: unknown executor '' (known: dask, ray, slurm)"),
    ],
)
def test_wrong_texts_are_refused(photos, text, expected):
    if text == "dask":
        pytest.importorskip("distributed")
    assert cli_error("make-c", "--source", photos, "--on", text).startswith(expected)


@pytest.mark.parametrize("flag", [("--overwrite",), ("--shard", "1/3"), ("--write-plan", "x.json")])
def test_flags_that_an_array_sets_itself_are_refused(photos, flag):
    refusal = cli_error("make-c", "--source", photos, "--on", "slurm:partition=cpu,shards=3", *flag)
    assert refusal == f"--on slurm and {flag[0]} cannot be combined"


def test_options_of_sbatch_may_have_brackets_spaces_and_no_value():
    array = parse_executor("slurm:nodelist=n[1,3-5],exclusive,shards=9,comment=two words")
    assert array.options == {"nodelist": "n[1,3-5]", "exclusive": "", "comment": "two words"}
    assert array.shards == 9 and not array.wait
    script = array.compose_script(["robustgen", "run", "a plan"], [1, 2, 3, 5, 8, 9], "/logs")
    assert "#SBATCH --array=1-3,5,8-9\n" in script and "#SBATCH --exclusive\n" in script
    assert "#SBATCH --comment='two words'\n" in script
    assert "exec robustgen run 'a plan' \\\n" in script
