"""Work units: whoever makes them and however often, the set is the same; and sources that have changed."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from PIL import Image

from robustgen.files import ledger
from robustgen.files.storage import local, open_store
from robustgen.sets.dataset.planning import plan_benchmark
from robustgen.sets.dataset.state import SetLedger
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from tests.helpers import (
    FEW,
    PATIENCE,
    cifar_folder,
    cli,
    cli_error,
    findings,
    kept,
    litter,
    make_c,
    photo,
    put_photo,
    spawn,
    wait_until,
    whole,
)

# Enough work that three runs meet.
LONG = ("--corruptions", "fog,frost,snow,elastic_transform,zoom_blur,glass_blur", "--edition", "imagenet")
FORMS = {
    "tree": (),
    "webdataset": ("--format", "webdataset", "--set", "shard_size=4"),
    "npy": ("--format", "npy"),
}


def records(output):
    """Name to record."""
    return dict(SetLedger(open_store(output)).read_records())


def claims(output):
    return Path(output) / ".robustgen" / "claims"


# --- file systems on which each operation takes long ------------------------------------------------


@pytest.mark.parametrize("blocked", ["clean", "contrast/4", "gaussian_noise/4"])
def test_a_slow_folder_gets_the_same_set(tmp_path, monkeypatch, blocked):
    """Many files are under way at once, also around an image whose output cannot have its name."""
    put_photo(tmp_path / "s/a/0.png")
    put_photo(tmp_path / "s/a/1.png", seed=1)
    outputs = [tmp_path / "fast", tmp_path / "slow"]
    for output, slow in zip(outputs, (float("inf"), -1.0), strict=True):
        monkeypatch.setattr(local, "_SLOW", slow)
        (output / blocked / "a/1.JPEG").mkdir(parents=True)
        make_c(tmp_path / "s", output, *FEW, status=1)
        assert (output / "errors.jsonl").read_text().count("a/1.png") == 1
    assert whole(outputs[0]) == whole(outputs[1])


# --- cooperation ---------------------------------------------------------------------------------


def counted(gate, *args):
    """Start the command line so that it says which units it makes, none before three runs have one."""
    code = """
import sys, time
from pathlib import Path
from robustgen.cli import main
from robustgen.sets.dataset import unit_jobs
real, gate = unit_jobs.write_unit, Path(sys.argv.pop(1))
def note(job, reporter):
    print("unit", job.unit.name, flush=True)
    (gate / job.unit.name).touch()
    while len([*gate.iterdir()]) < 3:
        time.sleep(0.01)
    return real(job, reporter)
unit_jobs.write_unit = note
main()
"""
    gate.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, (gate, *args))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow("three runs at once")
@pytest.mark.parametrize("form", FORMS)
def test_three_runs_at_once_make_each_unit_once(many, tmp_path, form):
    flags = ("--jobs", "1", *LONG, *FORMS[form])
    make_c(many, tmp_path / "one", *flags)
    units = {name for name, record in records(tmp_path / "one").items() if record.images}
    command = ("make-c", "--source", many, "--output", tmp_path / "out", *flags)
    together = [counted(tmp_path / "gate", *command) for _ in range(3)]
    answers = [process.communicate(timeout=PATIENCE) for process in together]
    assert [process.returncode for process in together] == [0, 0, 0], answers
    made = [re.findall(r"^unit (\S+)", said, re.MULTILINE) for said, _ in answers]
    assert all(made) and units == {name for each in made for name in each}
    assert sum(map(len, made)) <= 1.15 * len(units) + 1
    assert whole(tmp_path / "out") == whole(tmp_path / "one")
    assert not litter(tmp_path / "out")
    assert not claims(tmp_path / "out").exists()
    assert findings(tmp_path / "out", "--against", tmp_path / "one", status=0) == []


@pytest.mark.slow("three runs at once")
def test_one_of_three_runs_is_killed(many, tmp_path):
    flags = ("make-c", "--source", many, "--jobs", "1", *LONG)
    together = [spawn(*flags, "--output", tmp_path / "out") for _ in range(3)]
    wait_until(lambda: len([*claims(tmp_path / "out").glob("*")]) >= 4)
    together[0].kill()
    answers = [process.communicate(timeout=PATIENCE) for process in together]
    assert [process.returncode for process in together] == [-signal.SIGKILL, 0, 0], answers
    make_c(many, tmp_path / "one", *LONG, "--jobs", "2")
    assert whole(tmp_path / "out") == whole(tmp_path / "one")
    assert not litter(tmp_path / "out")


def test_a_run_that_begins_at_the_same_time_removes_nothing_of_the_other(photos, tmp_path, monkeypatch):
    """It found no output when it looked, and another one's settings when it put its own."""
    exists, others = SetLedger.exists, []

    def look(state):
        found = exists.fget(state)
        if not others and state.root.location == str(tmp_path / "out"):
            others.append({"source": str(photos), "output": state.root.location, "seed": 1})
            planned = plan_benchmark(load(Config, None, others[0]), "c")
            SetLedger(state.root).agree(planned.settings())
            SetLedger(state.root).add_plan(planned.manifest(), {})
        return found

    monkeypatch.setattr(SetLedger, "exists", property(look))
    message = cli_error("make-c", "--source", photos, "--output", tmp_path / "out", *FEW)
    assert "seed was 1 and is now 0" in message
    assert (tmp_path / "out" / ".robustgen" / "settings.json").exists()
    assert [*(tmp_path / "out" / ".robustgen" / "plans").iterdir()]


# --- claims --------------------------------------------------------------------------------------


def claimed_by(root, source, content, *flags):
    """Have every unit of a run be claimed already."""
    planned = plan_benchmark(
        load(Config, None, {"source": str(source), "output": str(root), "corruptions": "contrast"}), "c"
    )
    state = SetLedger(open_store(root))
    parameters = (settings := planned.settings()).pop("parameters")
    manifest = planned.manifest()
    manifest["source"]["digest"] = ""
    state.agree(settings)
    state.add_plan(manifest, parameters)
    for unit in planned.cut():
        state.store.put(f"claims/{unit.name}", content.encode())
    return len([*planned.cut()])


def test_units_that_another_makes_meanwhile_are_not_made(photos, tmp_path, monkeypatch):
    """All units are claimed by a live process, which finishes them while this run waits."""
    flags = ("--corruptions", "contrast", "--jobs", "1")
    make_c(photos, tmp_path / "other", *flags)
    claimed_by(tmp_path / "out", photos, "1 another-host")
    state = tmp_path / "out" / ".robustgen"

    def finish(seconds):
        for path in (tmp_path / "other").rglob("*"):
            target = tmp_path / "out" / path.relative_to(tmp_path / "other")
            if (path.is_file() and "/records/" in str(path)) or path.suffix.lower() in (".jpeg", ".jpg"):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)

    monkeypatch.setattr(ledger.time, "sleep", finish)
    assert kept(make_c(photos, tmp_path / "out", *flags)) == 30
    assert whole(tmp_path / "out") == whole(tmp_path / "other")
    assert not (state / "claims").exists()


# --- resuming and extending ----------------------------------------------------------------------


def test_a_run_killed_while_it_removes_its_claims_leaves_none_for_long(photos, tmp_path):
    code = """
import os
from robustgen.cli import main
from robustgen.sets.dataset.state import SetLedger
SetLedger.release = lambda self, name: os.kill(os.getpid(), 9)
main()
"""
    command = ("make-c", "--source", photos, "--output", tmp_path / "out", *FEW)
    subprocess.run([sys.executable, "-c", code, *map(str, command)], check=False, capture_output=True)
    assert [*claims(tmp_path / "out").iterdir()]
    cli(*command)
    assert not claims(tmp_path / "out").exists()
    assert findings(tmp_path / "out", status=0) == []


def test_repeated_runs_have_nothing_to_do_and_change_nothing(photos, tmp_path):
    for form, flags in FORMS.items():
        square = ("--edition", "folder@32") if form == "npy" else ()
        make_c(photos, tmp_path / form, *FEW, *flags, *square)
        stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / form).rglob("*") if path.is_file()}
        for _ in range(2):
            assert kept(make_c(photos, tmp_path / form, *FEW, *flags, *square)) == 25
        assert stamps == {p: p.stat().st_mtime_ns for p in (tmp_path / form).rglob("*") if p.is_file()}


@pytest.mark.parametrize("form", FORMS)
def test_sets_grow_by_images_corruptions_and_severities(many, tmp_path, form):
    flags = (*FORMS[form], "--edition", "folder@32", "--jobs", "1")
    steps = [
        ("--corruptions", "contrast", "--severities", "1", "--limit", "6"),
        ("--corruptions", "contrast", "--severities", "1"),
        ("--corruptions", "fog", "--severities", "1"),
        ("--corruptions", "contrast,fog", "--severities", "1,4"),
    ]
    for step in steps:
        make_c(many, tmp_path / "out", *flags, *step)
        assert findings(tmp_path / "out", status=0) == []
    make_c(many, tmp_path / "one", *flags, *steps[-1])
    assert whole(tmp_path / "out") == whole(tmp_path / "one")
    # A part of it is there.
    assert kept(make_c(many, tmp_path / "out", *flags, *steps[2]))
    assert whole(tmp_path / "out") == whole(tmp_path / "one")


# --- another content of the same size ------------------------------------------------------------


def replaced(path, data):
    """Have the file at `path` hold other bytes: its size, times and inode stay."""
    status = path.stat()
    assert len(data) == status.st_size
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (status.st_ino, status.st_mtime_ns)


def bmp(seed):
    buffer = io.BytesIO()
    Image.fromarray(photo(36, 40, seed)).save(buffer, "BMP")
    return buffer.getvalue()


def refused_then_overwritten(source, output, name, *flags):
    """Continuing is refused, and changes nothing; starting over gives what a new output would hold."""
    before = {k: v for k, v in whole(output).items() if k != "dataset.json"}
    message = cli_error("make-c", "--source", source, "--output", output, *flags)
    assert repr(name) in message and str(output) in message
    assert message.endswith("--overwrite")
    assert {k: v for k, v in whole(output).items() if k in before} == before
    assert not litter(output)
    make_c(source, output, *flags, "--overwrite")
    fresh = output.with_name("fresh")
    make_c(source, fresh, *flags)
    assert whole(output) == whole(fresh)
    assert findings(output, "--deep", "all", status=0) == []


@pytest.mark.parametrize("form", ["tree", "webdataset", "npy"])
def test_an_image_replaced_by_another_of_the_same_size(tmp_path, form):
    for number in range(3):
        put_photo(tmp_path / "src" / "cat" / f"{number}.bmp", seed=number)
    flags = (*FORMS[form], "--edition", "folder@32", "--corruptions", "contrast", "--jobs", "1")
    make_c(tmp_path / "src", tmp_path / "out", *flags, "--severities", "1")
    replaced(tmp_path / "src" / "cat" / "1.bmp", bmp(9))
    refused_then_overwritten(tmp_path / "src", tmp_path / "out", "cat/1.bmp", *flags, "--severities", "1,4")


def test_an_image_replaced_before_a_file_of_it_was_lost(tmp_path):
    put_photo(tmp_path / "src" / "a.bmp", seed=1)
    flags = ("--corruptions", "contrast", "--jobs", "1")
    make_c(tmp_path / "src", tmp_path / "out", *flags)
    (tmp_path / "out" / "contrast" / "4" / "a.JPEG").unlink()
    replaced(tmp_path / "src" / "a.bmp", bmp(2))
    refused_then_overwritten(tmp_path / "src", tmp_path / "out", "a.bmp", *flags)


def test_another_archive_of_the_same_shape(tmp_path):
    one, other = (cifar_folder(tmp_path / str(seed), 6, seed)[0] for seed in (0, 10))
    flags = ("--dataset", "cifar-10", "--jobs", "1")
    for form in ("npy", "png"):
        out = tmp_path / f"out-{form}"
        make_c(one, out, *flags, "--format", form, "--corruptions", "contrast")
        more = (*flags, "--format", form, "--corruptions", "contrast,fog")
        message = cli_error("make-c", "--source", other, "--output", out, *more)
        assert "differs from the image that " in message
        # Nothing has been touched.
        assert findings(out, status=0) == []
        make_c(one, out, *more)
        assert findings(out, "--deep", "all", status=0) == []


def test_more_images_of_another_archive_of_the_same_shape(tmp_path):
    """None of the images that there are is made again, so one of them is looked at."""
    one, other = (cifar_folder(tmp_path / str(seed), 6, seed)[0] for seed in (0, 10))
    flags = ("--output", tmp_path / "out", "--dataset", "cifar-10", "--format", "png", *FEW)
    cli("make-c", "--source", one, *flags, "--limit", "3")
    assert "differs from the image that " in cli_error("make-c", "--source", other, *flags)


def put_tar(path, seeds):
    with tarfile.open(path, "w") as archive:
        for number, seed in enumerate(seeds):
            for suffix, data in ((".bmp", bmp(seed)), (".cls", b"%d" % (number % 2))):
                member = tarfile.TarInfo(f"{number:03d}{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def test_a_tar_rewritten_with_the_same_size_and_time(tmp_path):
    put_tar(tmp_path / "val.tar", range(4))
    flags = ("--corruptions", "contrast", "--jobs", "1")
    make_c(tmp_path / "val.tar", tmp_path / "out", *flags, "--severities", "1")
    put_tar(tmp_path / "new.tar", (0, 1, 7, 3))
    replaced(tmp_path / "val.tar", (tmp_path / "new.tar").read_bytes())
    flags = (*flags, "--severities", "1,4")
    refused_then_overwritten(tmp_path / "val.tar", tmp_path / "out", "0/002.bmp", *flags)
