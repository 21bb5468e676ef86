"""Parts of a set made by several runs: `--shard`, one after another, at once, and merged."""

import shutil
from pathlib import Path

import pytest

from robustgen.sets.dataset.planning import plan_benchmark
from robustgen.sets.dataset.run import run_plan
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from robustgen.settings.running import Running
from tests.helpers import FEW, cli, cli_error, findings, kept, make_c, manifest, put_photo, whole

# --- shards --------------------------------------------------------------------------------------


def test_shards_of_arrays_agree_on_the_plan_whichever_starts_first(cifar, tmp_path):
    choices = {"edition": "cifar-10", "source": str(cifar[0]), "jobs": 1, "output": str(tmp_path / "out")}
    wanted = load(Config, None, choices | {"corruptions": "fog,contrast,gaussian_noise", "limit": 2})
    first = plan_benchmark(wanted, "c")
    assert run_plan(first, Running(shard="1/2")).waiting == [2]
    second = plan_benchmark(wanted, "c")
    assert [unit.name for unit in second.cut()] == [unit.name for unit in first.cut()]
    assert run_plan(second, Running(shard="2/2")).waiting == []


def merged(source, folder, *flags, failing=()):
    """Three shards, each written to a disk of its own, and copied into one folder."""
    for number in (1, 2, 3):
        cli(
            *("make-c", "--source", source, "--output", folder / f"{number}", *flags),
            *("--shard", f"{number}/3"),
            status=1 if number in failing else 0,
        )
        shutil.copytree(folder / f"{number}", folder / "merged", dirs_exist_ok=True)
    return folder / "merged"


def test_verify_completes_the_papers_of_merged_shards(photos, output, tmp_path):
    root = merged(photos, tmp_path, *FEW)
    assert not (root / "dataset.json").exists()
    assert findings(root, status=0) == []
    assert whole(root) == whole(output)
    assert findings(root, "--deep", "all", "--against", output, status=0) == []


def test_a_shard_that_was_not_merged_is_missed(photos, tmp_path):
    root = merged(photos, tmp_path, *FEW)
    for path in (tmp_path / "2" / ".robustgen" / "records").iterdir():
        (root / ".robustgen" / "records" / path.name).unlink()
    faults = [line.split()[0] for line in findings(root)]
    assert faults == ["extra"] * 10 + ["unfinished"]


def test_an_image_repaired_between_a_run_and_its_shards(photos, source, output, tmp_path):
    (source / "cat" / "a.JPEG").write_bytes(b"")
    make_c(source, tmp_path / "out", *FEW, status=1)
    shutil.copy(photos / "cat" / "a.JPEG", source / "cat")
    for number in (1, 2):
        make_c(source, tmp_path / "out", *FEW, "--shard", f"{number}/2")
    assert manifest(tmp_path / "out")["failures"] == 0
    assert not (tmp_path / "out" / "errors.jsonl").exists()


def test_an_image_changed_between_a_run_and_its_shards(source, tmp_path):
    make_c(source, tmp_path / "out", *FEW)
    put_photo(source / "cat" / "a.JPEG", height=60, seed=9)
    for number in (1, 2):
        make_c(source, tmp_path / "out", *FEW, "--shard", f"{number}/2")
    assert findings(tmp_path / "out", status=0) == []


def test_shards_withhold_an_array_that_an_image_changed_and_now_unreadable_lacks(photos, tmp_path):
    source, output = Path(shutil.copytree(photos / "cat", tmp_path / "src")), tmp_path / "out"
    flags = ("--format", "npy", "--perturbations", "translate", "--jobs", "1")
    cli("make-p", "--source", source, "--output", output, *flags)
    (source / "a.JPEG").write_bytes((source / "a.JPEG").read_bytes()[:500])
    for number in (1, 2):
        shard = ("--shard", f"{number}/2")
        cli("make-p", "--source", source, "--output", output, *flags, *shard, status=1)
    assert not (output / "translate.npy").exists()


@pytest.mark.parametrize(
    "shard", ["0/3", "4/3", "1", "/3", "1/", "a/b", "1/0", "-1/3", "1.0/3", "1/3/5", "²/3", ""]
)
def test_shards_that_there_are_not(photos, tmp_path, shard):
    message = cli_error("make-c", "--source", photos, "--output", tmp_path / "out", "--shard", shard)
    assert message.startswith("--shard: must be I/N")
    assert not (tmp_path / "out").exists()


def test_shards_do_not_overwrite(copied, photos):
    message = cli_error("make-c", "--source", photos, "--output", copied, "--shard", "1/2", "--overwrite")
    assert "--overwrite" in message and "--shard" in message


# --- what shards say, and batch systems ----------------------------------------------------------


def test_shards_that_have_not_ended_are_named(photos, tmp_path):
    said = make_c(photos, tmp_path / "out", *FEW, "--shard", "2/4").stdout
    assert "unfinished shards: 1, 3, 4; " in said
    assert "unfinished shards: 1, 4;" in make_c(photos, tmp_path / "out", *FEW, "--shard", "3/4").stdout
    assert kept(make_c(photos, tmp_path / "out", *FEW, "--shard", "3/4")) == 5
    make_c(photos, tmp_path / "out", *FEW, "--shard", "1/4")
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert "unfinished shards" not in make_c(photos, tmp_path / "out", *FEW, "--shard", "4/4").stdout
    assert manifest(tmp_path / "out")["complete"] is True


@pytest.mark.parametrize("first", [0, 1, 5])
def test_shards_by_the_environment_of_slurm(photos, output, tmp_path, monkeypatch, first):
    monkeypatch.setenv("SLURM_ARRAY_TASK_MIN", str(first))
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "3")
    for number, others in ((first, "2, 3"), (first + 2, "2"), (first + 1, None)):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(number))
        said = make_c(photos, tmp_path / "out", *FEW, "--shard", "auto").stdout
        assert (f"unfinished shards: {others};" in said) == (others is not None)
    assert whole(tmp_path / "out") == whole(output)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "--shard: auto: SLURM_ARRAY_TASK_ID is not set; it is meant for jobs of a SLURM array"),
        ({"ID": "1", "MIN": "1"}, "--shard: auto: SLURM_ARRAY_TASK_COUNT is not set"),
        ({"ID": "one", "MIN": "1", "COUNT": "2"}, "SLURM_ARRAY_TASK_ID"),
        ({"ID": "8", "MIN": "0", "COUNT": "3"}, "--shard: auto: "),
        ({"ID": "0", "MIN": "1", "COUNT": "3"}, "--shard: auto: "),
    ],
    ids=str,
)
def test_an_environment_without_a_shard(photos, tmp_path, monkeypatch, variables, message):
    for name in ("ID", "MIN", "MAX", "STEP", "COUNT"):
        monkeypatch.delenv(f"SLURM_ARRAY_TASK_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", value)
    flags = ("--source", photos, "--output", tmp_path / "out", *FEW, "--shard", "auto")
    assert message in cli_error("make-c", *flags)
    assert not (tmp_path / "out").exists()
