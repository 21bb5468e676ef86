"""What a run survives and what can be checked of it: kills, full disks, power cuts, shards, `verify`."""

import contextlib
import errno
import fcntl
import gc
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import cv2
import numpy as np
import pytest
from helpers import cli, cli_error, errors_of, free_port, give_way, pictures, put_photo, spawn, until_open

from robustgen.benchmark import CLEAN_ARM
from robustgen.errors import OutputError
from robustgen.generation import config, plan, runner, selection
from robustgen.generation.recipes import CorruptionRecipe, PerturbationRecipe
from robustgen.name_lists import escape_name
from robustgen.output import journal
from robustgen.output.files import FileWriter, remove_tree, temporary_folder
from robustgen.output.manifest import read_sums
from robustgen.output.records import Receipt, WrittenRow, receipts_from_json, receipts_to_json
from robustgen.output.state import State
from robustgen.output.writers.base import Listing
from robustgen.output.writers.npy import Arrays

FEW = ("--corruptions", "contrast,gaussian_noise", "--severities", "1,4", "--jobs", "1")
FEW_ARMS = ("clean", "contrast/1", "contrast/4", "gaussian_noise/1", "gaussian_noise/4")
MANY = ("--corruptions", "all", "--no-clean", "--jobs", "2")
CIFAR = ("--dataset", "cifar-10", "--corruptions", "contrast,gaussian_noise", "--jobs", "1")


def make_c(source, output, *flags, status=0):
    return cli("make-c", "--source", source, "--output", output, *flags, status=status)


def whole(root):
    """Relative path to bytes of all files below `root`, dataset.json too, but for the run's own state."""
    paths = (path for path in Path(root).rglob("*") if path.is_file())
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return {name: path.read_bytes() for name, path in names.items() if not name.startswith(".robustgen/")}


def litter(root):
    """What a finished output should not hold: temporary files, arrays that were only begun."""
    state = root / ".robustgen"
    return [*state.glob("tmp/**/*"), *state.glob("partial/*.npy"), *Path(root).rglob("*.tmp")]


def manifest(root):
    return json.loads((root / "dataset.json").read_text())


def findings(root, *flags, status=1):
    """The lines of `verify`, but for the last, which sums up."""
    *lines, _ = cli("verify", root, *flags, status=status).stdout.splitlines()
    return [" ".join(line.split()) for line in lines]


def published(output, target):
    """A copy of `output` without the run's own state, as one would publish it."""
    return Path(shutil.copytree(output, target, ignore=shutil.ignore_patterns(".robustgen")))


@pytest.fixture(scope="module")
def output(photos, tmp_path_factory):
    """A finished output; not to be changed."""
    root = tmp_path_factory.mktemp("finished") / "out"
    make_c(photos, root, *FEW)
    return root


@pytest.fixture
def copied(output, tmp_path):
    """A finished output that a test may change."""
    return Path(shutil.copytree(output, tmp_path / "copied"))


@pytest.fixture(scope="module")
def cifar_output(cifar, tmp_path_factory):
    root = tmp_path_factory.mktemp("finished") / "cifar"
    make_c(cifar[0], root, *CIFAR)
    return root


@pytest.fixture(scope="module")
def undisturbed_many(many, tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed") / "out"
    make_c(many, root, *MANY)
    return whole(root)


# --- SHA256SUMS and dataset.json -----------------------------------------------------------------

ODD = ("with space", "-rf", "żółw 🐢", "new\nline", "back\\slash", "both\\\n", "\\n", "c\rr", "'\"$(id)")


def sha256sum(folder):
    """The files that plain `sha256sum -c` finds right in one folder; anything else is an error."""
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True, check=True
    )
    assert not done.stderr
    lines = done.stdout.decode().rstrip("\n").split("\n")
    assert all(line.endswith(": OK") for line in lines)
    return len(lines)


def test_sha256sum_accepts_the_sums_of_every_folder(output):
    assert [sha256sum(output / arm) for arm in FEW_ARMS] == [5] * 5
    assert sorted(path.parent for path in output.rglob("SHA256SUMS")) == [output / arm for arm in FEW_ARMS]


def test_sha256sum_accepts_the_sums_of_arrays(cifar_output):
    names = {"contrast.npy", "gaussian_noise.npy", "clean.npy", "labels.npy", "keys.txt"}
    assert set(read_sums(cifar_output / "SHA256SUMS")) == names
    assert sha256sum(cifar_output) == len(names)


def test_sha256sum_accepts_the_sums_of_odd_names(tmp_path):
    for name in ODD:
        put_photo(tmp_path / "src" / name / f"{name}.png")
    make_c(tmp_path / "src", tmp_path / "out", *FEW)
    assert sha256sum(tmp_path / "out" / "contrast" / "4") == len(ODD)
    sums = read_sums(tmp_path / "out" / "contrast" / "4" / "SHA256SUMS")
    assert set(sums) == {f"{name}/{name}.JPEG" for name in ODD}
    assert findings(tmp_path / "out", status=0) == []


def test_carriage_returns_are_left_as_they_are():
    # Only coreutils 9 and later know them escaped; every release takes them as they are.
    assert escape_name("a\rb") == ("", "a\rb")
    assert escape_name("a\r\\b\n") == ("\\", "a\r\\\\b\\n")


def test_videos_have_sums_of_their_files_and_of_their_frames(photos, tmp_path):
    flags = ("--perturbations", "translate", "--limit", "2", "--jobs", "1")
    cli("make-p", "--source", photos, "--output", tmp_path / "out", *flags)
    folder = tmp_path / "out" / "translate"
    assert sha256sum(folder) == 2
    assert set(read_sums(folder / "FRAMES.SHA256")) == set(read_sums(folder / "SHA256SUMS"))
    assert findings(tmp_path / "out", "--deep", "all", status=0) == []


def test_the_manifest_says_what_and_from_where(output, photos):
    held = manifest(output)
    keys = ["cat/a.JPEG", "cat/b.jpg", "cat/c.png", "dog/a.JPEG", "dog/d.JPEG"]
    listing = "".join(f"{(photos / key).stat().st_size} {key}\n" for key in keys)
    assert held["source"] == {
        "location": str(photos.resolve()),
        "images": 5,
        "digest": hashlib.sha256(listing.encode()).hexdigest(),
    }
    files = [data for name, data in whole(output).items() if name.lower().endswith((".jpeg", ".jpg"))]
    assert held["counts"] == {"files": 25, "bytes": sum(map(len, files))}
    assert (held["complete"], held["failures"], held["images"]) == (True, 0, 5)
    assert held["kind"] == "ImageNet-C" and held["edition"] == held["settings"]["edition"] == "folder"
    assert "Hendrycks" in held["citation"] and "terms" in held["licence"]


def test_the_manifest_holds_seed_parameters_and_versions(output):
    settings = manifest(output)["settings"]
    assert settings["seed"] == 0 and settings["output"] == {
        "format": "jpeg",
        "quality": 85,
        "libjpeg": "turbo",
    }
    assert set(settings["parameters"]) == set(FEW_ARMS)
    assert settings["parameters"]["gaussian_noise/4"]["224"] == {"sigma": 0.26}
    versions = settings["versions"]
    assert {"robustgen", "numpy", "scipy", "opencv", "pillow", "libjpeg"} <= set(versions)
    assert versions["numpy"] == np.__version__
    # OpenCV's, which encodes; not Pillow's.
    assert "turbo" in versions["libjpeg"] and versions["libjpeg"] in cv2.getBuildInformation()


def test_the_manifest_of_videos_holds_the_versions_of_pyav_and_x264(photos, tmp_path):
    flags = ("--perturbations", "translate", "--limit", "1", "--jobs", "1")
    cli("make-p", "--source", photos, "--output", tmp_path / "out", *flags)
    video = manifest(tmp_path / "out")["settings"]["versions"]["video"].lower()
    assert "av" in video and "264" in video


def test_the_dataset_digest_is_that_of_the_sums(output):
    lines = []
    for path in sorted(output.rglob("SHA256SUMS")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{digest}  {path.relative_to(output).as_posix()}\n")
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert manifest(output)["digest"] == digest
    assert digest in cli("verify", output).stdout


def test_no_clock_and_no_output_path_in_the_manifest(output, photos, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 4e9)
    make_c(photos, tmp_path / "elsewhere", *FEW)
    assert whole(tmp_path / "elsewhere") == whole(output)


def test_failures_are_counted_and_leave_the_manifest_incomplete(photos, tmp_path):
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    (source / "cat" / "empty.png").write_bytes(b"")
    make_c(source, tmp_path / "out", *FEW, status=1)
    held = manifest(tmp_path / "out")
    assert (held["failures"], held["complete"], held["images"]) == (1, False, 6)
    assert held["counts"]["files"] == 25


def test_failures_of_images_that_are_gone_are_forgotten(photos, tmp_path):
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    (source / "cat" / "empty.png").write_bytes(b"")
    (source / "cat" / "link.png").symlink_to("/etc/hostname")
    make_c(source, tmp_path / "out", *FEW, status=1)
    for name in ("empty.png", "link.png"):
        (source / "cat" / name).unlink()
    make_c(source, tmp_path / "out", *FEW)
    assert manifest(tmp_path / "out")["failures"] == 0
    assert not (tmp_path / "out" / "errors.jsonl").exists()


def fail_in(arm, error, monkeypatch):
    """Have nothing made of cat/b.jpg by `arm`."""
    make = CorruptionRecipe.make

    def fail(recipe, wanted, key, *args):
        if (wanted.folder, key) == (arm, "cat/b.jpg"):
            raise error
        return make(recipe, wanted, key, *args)

    monkeypatch.setattr(CorruptionRecipe, "make", fail)


def test_failures_of_arms_stand_until_these_are_made(photos, tmp_path, monkeypatch):
    source, out = Path(shutil.copytree(photos, tmp_path / "src")), tmp_path / "out"
    with monkeypatch.context() as patch:
        fail_in("contrast/4", ArithmeticError("no luck"), patch)
        make_c(source, out, *FEW, status=1)
    # Other arms tell nothing of it, nor do other images.
    make_c(source, out, "--corruptions", "fog", "--severities", "1", "--jobs", "1")
    make_c(source, out, *FEW, "--limit", "1")
    (entry,) = errors_of(out)
    assert entry == {"key": "cat/b.jpg", "arm": "contrast/4", "reason": "ArithmeticError: no luck"}
    assert (manifest(out)["failures"], manifest(out)["complete"]) == (1, False)
    make_c(source, out, *FEW)
    assert not (out / "errors.jsonl").exists()
    assert (manifest(out)["failures"], manifest(out)["complete"]) == (0, True)


def test_verify_names_the_lines_of_errors_that_are_none(photos, tmp_path):
    source, out = Path(shutil.copytree(photos, tmp_path / "src")), tmp_path / "out"
    (source / "cat" / "empty.png").write_bytes(b"")
    make_c(source, out, *FEW, status=1)
    shutil.rmtree(out / ".robustgen")
    errors = out / "errors.jsonl"
    errors.write_text("{\n" + errors.read_text() + '{"key": 3}\n' + "[" * 100_000 + "\n")
    *findings, _ = cli("verify", out, status=1).stdout.splitlines()
    assert [" ".join(line.split()) for line in findings if "errors" in line] == [
        f"damaged errors.jsonl: line {number} is no entry of robustgen's" for number in (1, 3, 4)
    ]


@pytest.mark.parametrize("form", ["png", "mp4"])
def test_an_operation_that_fails_between_frames_is_no_full_disk(photos, tmp_path, monkeypatch, form):
    stream = PerturbationRecipe.stream

    def fail(recipe, arm, key, prepared):
        frames = stream(recipe, arm, key, prepared)
        yield next(frames)
        if key == "cat/b.jpg":
            raise FileNotFoundError(2, "No such file or directory", "/usr/share/frost.png")
        yield from frames

    monkeypatch.setattr(PerturbationRecipe, "stream", fail)
    flags = ("--perturbations", "brightness", "--format", form, "--jobs", "1")
    cli("make-p", "--source", photos, "--output", tmp_path / "out", *flags, status=1)
    (entry,) = errors_of(tmp_path / "out")
    assert (entry["key"], entry["arm"]) == ("cat/b.jpg", "brightness")
    assert entry["reason"].startswith("FileNotFoundError: ") and "frost.png" in entry["reason"]
    assert not [*(tmp_path / "out" / "brightness" / "cat").glob("b*")]


# --- verify --------------------------------------------------------------------------------------


def damage(root):
    (root / "contrast/1/cat/a.JPEG").unlink()
    (root / "clean/mine.txt").write_text("not listed")
    changed = root / "contrast/4/dog/d.JPEG"
    changed.write_bytes(bytes(len(changed.read_bytes())))
    cut = root / "clean/cat/b.jpg"
    cut.write_bytes(cut.read_bytes()[:100])


def test_verify_has_nothing_to_say_of_a_clean_tree(copied, output):
    assert findings(copied, "--jobs", "2", status=0) == []
    assert whole(copied) == whole(output)


def test_verify_lists_missing_extra_changed_and_truncated_files(copied):
    damage(copied)
    assert findings(copied) == [
        "changed contrast/4/dog/d.JPEG",
        "extra clean/mine.txt",
        "missing contrast/1/cat/a.JPEG",
        "truncated clean/cat/b.jpg",
    ]


def test_verify_needs_only_what_is_published(output, tmp_path):
    public = published(output, tmp_path / "public")
    assert findings(public, status=0) == []
    damage(public)
    assert len(findings(public)) == 4
    assert not (public / ".robustgen").exists()


def test_verify_sees_a_truncated_array(cifar_output, tmp_path):
    root = Path(shutil.copytree(cifar_output, tmp_path / "out"))
    whole = (cifar_output / "contrast.npy").read_bytes()
    for kept in (len(whole) // 2, len(whole) - 1):
        (root / "contrast.npy").write_bytes(whole[:kept])
        assert findings(root) == ["truncated contrast.npy"]


def test_verify_notices_an_arm_that_is_gone_with_its_sums(output, tmp_path):
    public = published(output, tmp_path / "public")
    shutil.rmtree(public / "gaussian_noise" / "4")
    assert any("dataset.json" in line for line in findings(public))


def test_verify_of_an_output_with_failures_says_unfinished(photos, tmp_path):
    (tmp_path / "src").mkdir()
    shutil.copy(photos / "cat" / "a.JPEG", tmp_path / "src")
    (tmp_path / "src" / "empty.png").write_bytes(b"")
    make_c(tmp_path / "src", tmp_path / "out", *FEW, status=1)
    assert findings(tmp_path / "out") == ["unfinished dataset.json: not all of the 2 images have all files"]


def forge(root, path):
    """Alter one file of a tree, and its sum with it."""
    file = root / path
    file.write_bytes(file.read_bytes()[:-3] + b"!\xff\xd9")
    sums = next(folder / "SHA256SUMS" for folder in file.parents if (folder / "SHA256SUMS").exists())
    listed = read_sums(sums) | {
        file.relative_to(sums.parent).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
    }
    sums.write_text("".join(f"{digest}  {name}\n" for name, digest in listed.items()))
    forge_manifest(root)


def forge_manifest(root):
    from robustgen.output.manifest import dataset_digest

    (root / "dataset.json").write_text(json.dumps(manifest(root) | {"digest": dataset_digest(root)}))


@pytest.mark.parametrize("deep", ["5", "all"])
def test_deep_finds_a_file_altered_with_its_sum(output, tmp_path, deep):
    public = published(output, tmp_path / "public")
    forge(public, "gaussian_noise/4/dog/d.JPEG")
    assert findings(public, status=0) == []
    (line,) = findings(public, "--deep", deep)
    assert line.startswith("differs gaussian_noise/4/dog/d.JPEG")


def test_deep_takes_a_sample(output, photos, tmp_path, monkeypatch):
    taken = []
    load = selection.open_source(photos).load
    monkeypatch.setattr(
        type(selection.open_source(photos)), "load", lambda _, key: taken.append(key) or load(key)
    )
    assert findings(output, "--deep", "2", status=0) == []
    assert len(set(taken)) == len(taken) == 2


def test_deep_finds_a_row_altered_with_the_sum_of_its_array(cifar_output, tmp_path):
    public = published(cifar_output, tmp_path / "public")
    assert findings(public, "--deep", "all", status=0) == []
    np.load(public / "contrast.npy", mmap_mode="r+")[2 * 20 + 7, 5, 5, 0] ^= 1
    digest = hashlib.sha256((public / "contrast.npy").read_bytes()).hexdigest()
    listed = read_sums(public / "SHA256SUMS") | {"contrast.npy": digest}
    (public / "SHA256SUMS").write_text("".join(f"{sum_}  {name}\n" for name, sum_ in listed.items()))
    forge_manifest(public)
    assert findings(public, status=0) == []
    (line,) = findings(public, "--deep", "all")
    assert line.startswith("differs contrast.npy: row 47 (00007, contrast/3)")


def test_deep_covers_what_earlier_runs_made(photos, tmp_path):
    make_c(photos, tmp_path / "out", *FEW, "--corruptions", "contrast")
    make_c(photos, tmp_path / "out", *FEW, "--corruptions", "gaussian_noise")
    public = published(tmp_path / "out", tmp_path / "public")
    forge(public, "contrast/4/dog/d.JPEG")
    assert any("contrast/4/dog/d.JPEG" in line for line in findings(public, "--deep", "all"))


def test_deep_works_from_any_folder(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(photos.parent)
    make_c(photos.name, tmp_path / "out", *FEW, "--limit", "1")
    monkeypatch.chdir(tmp_path)
    assert findings("out", "--deep", "all", status=0) == []


@pytest.mark.parametrize("loss", ["missing", "cut off"])
def test_deep_survives_a_lost_array(cifar_output, tmp_path, loss):
    public = published(cifar_output, tmp_path / "public")
    (public / "contrast.npy").write_bytes(b"\x93NUMPY")
    if loss == "missing":
        (public / "contrast.npy").unlink()
    assert any("contrast.npy" in line for line in findings(public, "--deep", "1"))


def test_deep_without_the_source_is_an_error(photos, tmp_path):
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    make_c(source, tmp_path / "out", *FEW, "--limit", "1")
    shutil.rmtree(source)
    assert "src" in cli_error("verify", tmp_path / "out", "--deep", "1")


def test_against_another_output(output, photos, tmp_path):
    other = tmp_path / "other"
    make_c(photos, other, *FEW, "--seed", "1", "--corruptions", "gaussian_noise", "--severities", "1-2")
    assert findings(output, "--against", published(output, tmp_path / "same"), status=0) == []
    lines = findings(output, "--against", other)
    assert len([line for line in lines if line.startswith("differs gaussian_noise/1/")]) == 5
    assert len([line for line in lines if line.startswith("missing gaussian_noise/2/")]) == 5
    assert len([line for line in lines if line.startswith("extra ")]) == 15
    assert len(lines) == 25


def test_against_videos_that_another_release_encoded(photos, tmp_path):
    """The lists are changed as another release of x264 would: other files, and only one with other frames."""
    for name in ("one", "two"):
        flags = ("--perturbations", "translate", "--limit", "2", "--jobs", "1")
        cli("make-p", "--source", photos, "--output", tmp_path / name, *flags)
    folder = tmp_path / "two" / "translate"
    (folder / "SHA256SUMS").write_text(
        "".join(f"{'0' * 64}  {name}\n" for name in read_sums(folder / "SHA256SUMS"))
    )
    first, second = sorted(read_sums(folder / "FRAMES.SHA256").items())
    (folder / "FRAMES.SHA256").write_text(f"{first[1]}  {first[0]}\n{'1' * 64}  {second[0]}\n")
    assert findings(tmp_path / "one", "--against", tmp_path / "two") == [
        f"differs translate/{first[0]}: from {tmp_path / 'two'}, with the same frames",
        f"differs translate/{second[0]}: from {tmp_path / 'two'}",
    ]


def test_against_a_digest(output):
    digest = manifest(output)["digest"]
    assert findings(output, "--against", digest, status=0) == []
    (line,) = findings(output, "--against", digest[::-1])
    assert line.startswith("differs . : the digest is") or line.startswith("differs .: the digest is")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--against", "nonsense"), "'nonsense' is neither a folder nor a dataset digest"),
        (("--against", "A" * 64), "neither a folder nor"),
        (("--against", "."), "holds no SHA256SUMS"),
        (("--deep", "0"), "must be a number of images, or all"),
        (("--deep", "some"), "not 'some'"),
        (("--deep", "-1"), "not '-1'"),
    ],
    ids=str,
)
def test_verify_refuses_nonsense(output, tmp_path, monkeypatch, flags, message):
    monkeypatch.chdir(tmp_path)
    assert message in cli_error("verify", output, *flags)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"{}", b"\xff\xfe"])
def test_verify_refuses_a_folder_that_is_no_output(tmp_path, content):
    if content is not None:
        (tmp_path / "dataset.json").write_bytes(content)
    assert "dataset.json" in cli_error("verify", tmp_path)
    assert "no such folder" in cli_error("verify", tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["about.json", "settings.json"])
def test_verify_tells_of_damaged_state(copied, name):
    (copied / ".robustgen" / name).write_bytes(b"")
    assert name in cli_error("verify", copied)


def test_verify_waits_for_no_run(copied):
    with (copied / ".robustgen" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert "another run is writing here" in cli_error("verify", copied)
    assert findings(copied, status=0) == []


def without_privileges(*args):
    """Run the command line as one to whom file permissions apply, root or not."""
    drop = "import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, cap, 0, 0, 0) for cap in (1, 2)]; "
    command = [sys.executable, "-c", f"{drop}os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"]
    return subprocess.run([*command, "-m", "robustgen", *map(str, args)], capture_output=True, text=True)


def test_anyone_can_verify_what_he_cannot_write(copied):
    folders = [copied, *(path for path in copied.rglob("*") if path.is_dir())]
    for path in copied.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    copied.chmod(0o555)
    try:
        done = without_privileges("verify", copied)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    assert "25 files checked, 0 findings" in done.stdout


# --- shards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
def test_shards_one_after_another_give_the_tree_of_one_run(photos, output, tmp_path, order):
    for number in order:
        made = make_c(photos, tmp_path / "out", *FEW, "--shard", f"{number}/3").stdout
        assert made.startswith(f"{10 if number < 3 else 5} images in ")
        assert manifest(tmp_path / "out")["complete"] == (number == order[-1])
    assert whole(tmp_path / "out") == whole(output)
    assert not litter(tmp_path / "out")


def test_more_shards_than_images(photos, output, tmp_path):
    for number in range(1, 8):
        make_c(photos, tmp_path / "out", *FEW, "--shard", f"{number}/7")
    assert whole(tmp_path / "out") == whole(output)


def test_shards_at_the_same_time_give_the_tree_of_one_run(many, tmp_path):
    flags = ("--source", many, "--output", tmp_path / "out", *FEW)
    both = [spawn("make-c", *flags, "--shard", f"{number}/2") for number in (1, 2)]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert manifest(tmp_path / "out")["complete"] is True
    make_c(many, tmp_path / "one", *FEW)
    assert whole(tmp_path / "out") == whole(tmp_path / "one")
    assert not litter(tmp_path / "out")


def test_a_shard_that_ends_while_another_works_leaves_the_manifest_to_it(photos, output, tmp_path):
    make_c(photos, tmp_path / "out", *FEW, "--shard", "1/2")
    (tmp_path / "out" / "dataset.json").unlink()
    with (tmp_path / "out" / ".robustgen" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert "still at work" in make_c(photos, tmp_path / "out", *FEW, "--shard", "2/2").stdout
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert findings(tmp_path / "out", status=0) == []
    assert whole(tmp_path / "out") == whole(output)


@pytest.mark.parametrize("order", [(1, 2, 3), (2, 3, 1)])
def test_shards_of_arrays_on_one_disk(cifar, cifar_output, tmp_path, order):
    for number in order:
        make_c(cifar[0], tmp_path / "out", *CIFAR, "--shard", f"{number}/3")
    assert whole(tmp_path / "out") == whole(cifar_output)
    assert not litter(tmp_path / "out")


def test_shards_of_arrays_agree_on_the_plan_whichever_starts_first(cifar, tmp_path):
    """The first takes the arms in the order asked for, later ones as the output has them."""
    choices = {"edition": "cifar-10", "source": str(cifar[0]), "jobs": 1, "output": str(tmp_path / "out")}
    wanted = config.load(None, choices | {"corruptions": "fog,contrast,gaussian_noise", "limit": 2})
    first = plan.plan_benchmark(wanted, "c")
    runner.run(first, shard=(1, 2))
    second = plan.plan_benchmark(wanted, "c")
    assert second.arms != first.arms and second.digest() == first.digest()


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
    assert manifest(root)["complete"] is False
    assert findings(root, status=0) == []
    assert whole(root) == whole(output)
    assert findings(root, "--deep", "all", "--against", output, status=0) == []


def test_a_shard_that_was_not_merged_is_missed(photos, tmp_path):
    root = merged(photos, tmp_path, *FEW)
    (root / ".robustgen" / "journal-2-of-3.jsonl").unlink()
    kinds = [line.split()[0] for line in findings(root)]
    assert kinds == ["extra"] * 10 + ["unfinished"]


def test_failures_of_all_merged_shards_are_listed(photos, tmp_path):
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    for key in ("cat/a.JPEG", "cat/c.png"):
        (source / key).write_bytes(b"")
    root = merged(source, tmp_path, *FEW, failing=(1, 3))
    findings(root)
    make_c(source, tmp_path / "one", *FEW, status=1)
    assert [entry["key"] for entry in errors_of(root)] == ["cat/a.JPEG", "cat/c.png"]
    assert whole(root) == whole(tmp_path / "one")


def test_an_image_repaired_between_a_run_and_its_shards(photos, output, tmp_path):
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    (source / "cat" / "a.JPEG").write_bytes(b"")
    make_c(source, tmp_path / "out", *FEW, status=1)
    shutil.copy(photos / "cat" / "a.JPEG", source / "cat")
    for number in (1, 2):
        make_c(source, tmp_path / "out", *FEW, "--shard", f"{number}/2")
    assert manifest(tmp_path / "out")["failures"] == 0
    assert not (tmp_path / "out" / "errors.jsonl").exists()


def test_an_image_changed_between_a_run_and_its_shards(photos, tmp_path):
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    make_c(source, tmp_path / "out", *FEW)
    put_photo(source / "cat" / "a.JPEG", height=60, seed=9)
    for number in (1, 2):
        make_c(source, tmp_path / "out", *FEW, "--shard", f"{number}/2")
    assert findings(tmp_path / "out", status=0) == []


def fill_array(root, keys):
    """An array of a few pixels that is made from nothing to its final name; and what was written of it."""
    writer = open_array(root, keys)
    pixels = np.zeros((2, 2, 3), np.uint8)
    written = [writer.write(root, CLEAN_ARM, row, key, pixels)[0] for row, key in enumerate(keys)]
    writer.flush()
    clean = frozenset({CLEAN_ARM.folder})
    writer.finish(root, clean, clean, Listing(keys, lambda key: 0, lambda: ()))
    return written


def open_array(root, keys):
    writer = Arrays((CLEAN_ARM,), keys, {CLEAN_ARM.folder: (2, 2, 3)}, per_name=True)
    State(root).clear_temporary()
    writer.start(root)
    return writer


def test_shards_that_start_together_take_an_array_back_once(tmp_path, monkeypatch):
    (tmp_path / ".robustgen").mkdir()
    fill_array(tmp_path, ("a", "b"))
    first, second = (open_array(tmp_path, ("a", "b")) for _ in range(2))
    clean, forget = frozenset({CLEAN_ARM.folder}), State.forget_assembled
    other = threading.Thread(target=second.reopen, args=(tmp_path, clean))

    def forget_while_the_other_starts(self, name):
        if other.ident is None:
            other.start()
            other.join(0.3)
        forget(self, name)

    monkeypatch.setattr(State, "forget_assembled", forget_while_the_other_starts)
    first.reopen(tmp_path, clean)
    other.join()
    assert not (tmp_path / "clean.npy").exists() and len(litter(tmp_path)) == 1


def test_a_begun_array_that_was_cut_short_is_named_and_not_written_to(tmp_path):
    (tmp_path / ".robustgen").mkdir()
    writer = open_array(tmp_path, ("a", "b"))
    (begun,) = litter(tmp_path)
    os.truncate(begun, begun.stat().st_size - 1)
    before = begun.read_bytes()
    with pytest.raises(OutputError, match=f"{begun.name} is damaged; remove it"):
        writer.write(tmp_path, CLEAN_ARM, 0, "a", np.zeros((2, 2, 3), np.uint8))
    assert begun.read_bytes() == before


def test_an_array_that_a_killed_run_replaced_does_not_pass_for_the_one_before(tmp_path, monkeypatch):
    (tmp_path / ".robustgen").mkdir()
    written = fill_array(tmp_path, ("a", "b"))
    assert all(open_array(tmp_path, ("a", "b")).holds(tmp_path, each) for each in written)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(State, "record_assembled", mock.Mock(side_effect=KeyboardInterrupt))
        fill_array(tmp_path, ("c", "d"))
    again = open_array(tmp_path, ("a", "b"))
    assert not any(again.holds(tmp_path, each) for each in written)


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
    assert message.startswith("--shard: must be I/N with I from 1 to N")
    assert not (tmp_path / "out").exists()


def test_shards_do_not_overwrite(copied, photos):
    message = cli_error("make-c", "--source", photos, "--output", copied, "--shard", "1/2", "--overwrite")
    assert "--overwrite and --shard exclude each other" in message


# --- one run per output --------------------------------------------------------------------------


@contextlib.contextmanager
def held(path, how=fcntl.LOCK_EX):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, how)
        yield


@pytest.mark.parametrize("shard", [(), ("--shard", "1/2")])
def test_a_second_run_is_refused(photos, copied, output, shard):
    with held(copied / ".robustgen" / "lock"):
        message = cli_error("make-c", "--source", photos, "--output", copied, *FEW, *shard)
    assert message.endswith("another run is writing here")
    assert whole(copied) == whole(output)
    assert "nothing to do" in make_c(photos, copied, *FEW).stdout


def test_shards_of_one_plan_tolerate_each_other_and_no_one_else(photos, tmp_path):
    make_c(photos, tmp_path / "out", *FEW, "--shard", "1/2")
    state = tmp_path / "out" / ".robustgen"
    (own,) = state.glob("shard-1-of-2-*.lock")
    flags = ("make-c", "--source", photos, "--output", tmp_path / "out", *FEW)
    with held(state / "lock", fcntl.LOCK_SH), held(own):
        assert "another run" in cli_error(*flags)
        assert "another run" in cli_error(*flags, "--shard", "1/2")
        assert "another run" in cli_error(*flags, "--shard", "2/3")
        assert "another run" in cli_error(*flags, "--severities", "1", "--shard", "2/2")
        cli(*flags, "--shard", "2/2")
    cli(*flags, "--shard", "2/3")


def test_a_lock_dies_with_its_process(photos, tmp_path, output):
    flags = ("--source", photos, "--output", tmp_path / "out", *FEW)
    process = spawn("make-c", *flags, "--corruptions", "all", "--severities", "1-5")
    under_way(process, tmp_path / "out", files=2)
    process.send_signal(signal.SIGSTOP)
    assert "another run" in cli_error("make-c", *flags)
    process.kill()
    process.communicate()
    make_c(photos, tmp_path / "out", *FEW)
    made = whole(tmp_path / "out")
    assert all(made[name] == data for name, data in whole(output).items() if name.startswith("contrast"))


# --- configs that differ -------------------------------------------------------------------------


def refused(photos, root, *flags):
    before = whole(root)
    message = cli_error("make-c", "--source", photos, "--output", root, *FEW, *flags)
    assert whole(root) == before and message.endswith("or begin anew with --overwrite")
    return message


@pytest.mark.parametrize(
    ("flags", "difference"),
    [
        (("--seed", "7"), "was made otherwise: seed is 0 there and 7 here. "),
        (("--quality", "90"), "output.quality is 85 there and 90 here"),
        (("--edition", "imagenet-64"), "edition is 'folder' there and 'imagenet-64' here"),
    ],
    ids=str,
)
def test_another_config_is_refused_with_the_difference(photos, output, flags, difference):
    assert difference in refused(photos, output, *flags)


def test_another_constant_is_refused_with_the_difference(photos, output, tmp_path):
    (tmp_path / "my.yaml").write_text("parameters: {gaussian_noise: {4: {sigma: 0.5}}}")
    message = refused(photos, output, "--config", tmp_path / "my.yaml")
    assert "parameters.gaussian_noise/4.224.sigma is 0.26 there and 0.5 here" in message


def test_another_version_of_a_library_is_refused_with_the_difference(photos, output, monkeypatch):
    versions = plan.list_versions()
    monkeypatch.setattr(plan, "list_versions", lambda _: versions | {"scipy": "9.9"})
    assert f"versions.scipy is '{versions['scipy']}' there and '9.9' here" in refused(photos, output)


def test_corruptions_and_severities_may_be_added(photos, output, tmp_path):
    make_c(photos, tmp_path / "out", *FEW, "--corruptions", "contrast", "--severities", "4", "--no-clean")
    make_c(photos, tmp_path / "out", *FEW)
    assert whole(tmp_path / "out") == whole(output)


def test_overwrite_begins_anew_and_leaves_the_user_s_files_alone(photos, copied, tmp_path):
    for place in ("mine.txt", "contrast/4/cat/mine.txt", "notes/mine.txt"):
        (copied / place).parent.mkdir(exist_ok=True)
        (copied / place).write_text("precious")
    make_c(photos, copied, *FEW, "--seed", "1", "--severities", "1", "--overwrite")
    make_c(photos, tmp_path / "fresh", *FEW, "--seed", "1", "--severities", "1")
    made = whole(copied)
    assert {name for name, data in made.items() if data == b"precious"} == {
        "mine.txt",
        "contrast/4/cat/mine.txt",
        "notes/mine.txt",
    }
    assert {name: data for name, data in made.items() if data != b"precious"} == whole(tmp_path / "fresh")


# --- a full disk ---------------------------------------------------------------------------------


class Disk:
    """Stands in for the system calls that write: after `room` bytes there is no space left."""

    def __init__(self, monkeypatch, room):
        self.room, self.written = room, 0
        for name in ("open", "write", "pwrite"):
            monkeypatch.setattr(os, name, getattr(self, name)(getattr(os, name)))

    def open(self, real):
        def call(path, flags, *mode, **options):
            if flags & os.O_CREAT and self.written >= self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return real(path, flags, *mode, **options)

        return call

    def write(self, real):
        def call(file, data, *place):
            if self.written >= self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done = real(file, data[: self.room - self.written], *place)
            self.written += done
            return done

        return call

    pwrite = write


def receipts_hold(root):
    """Whether the journal is whole lines, and all files that it tells of are there, byte for byte."""
    for path in (root / ".robustgen").glob("journal*.jsonl"):
        for line in path.read_text().splitlines():
            for files in json.loads(line).get("files", {}).values():
                for _, name, size, digest, _ in files:
                    data = (root / name).read_bytes()
                    assert (len(data), hashlib.sha256(data).hexdigest()) == (size, digest)


def bytes_needed(source, root, *flags):
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, room=10**12)
        make_c(source, root, *flags)
    return disk.written


def run_on_full_disk(room, source, root, *flags):
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, room)
        result = make_c(source, root, *flags, status=1)
    (line,) = result.stderr.splitlines()
    assert line == f"Error: {root}: No space left on device"
    assert not litter_of_a_stopped_run(root)


def litter_of_a_stopped_run(root):
    return [*(root / ".robustgen").glob("tmp/**/*"), *root.rglob("*.tmp")]


def test_a_full_disk_leaves_no_array_open(cifar, tmp_path, monkeypatch):
    choices = {"edition": "cifar-10", "source": str(cifar[0]), "output": str(tmp_path / "out")}
    planned = plan.plan_benchmark(
        config.load(None, choices | {"corruptions": "fog,snow", "severities": "1"}), "c"
    )
    temporary_folder(planned.output).mkdir(parents=True)
    planned.writer.start(planned.output)
    for arm in planned.arms:
        planned.writer.write(planned.output, arm, 0, "", np.zeros((32, 32, 3), np.uint8))
    Disk(monkeypatch, room=0)
    with pytest.raises(OSError, match="No space left"):
        planned.writer.flush()
    planned.writer.flush()


def test_a_full_disk_is_told_in_one_line_and_costs_nothing_later(photos, output, tmp_path):
    needed = bytes_needed(photos, tmp_path / "needed", *FEW)
    settings = (output / ".robustgen" / "settings.json").stat().st_size
    last = needed - (output / "dataset.json").stat().st_size
    rooms = [*np.linspace(settings + 1, last, 12).astype(int), last - 1, last + 10, needed - 1]
    for number, room in enumerate(rooms):
        root = tmp_path / f"{number}"
        run_on_full_disk(room, photos, root, *FEW)
        receipts_hold(root)
        assert not (root / "dataset.json").exists()
        make_c(photos, root, *FEW)
        assert whole(root) == whole(output)
        assert not litter(root)


def test_a_disk_that_is_full_before_the_run_begins(photos, output, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, 100)
        message = cli_error("make-c", "--source", photos, "--output", tmp_path / "out", *FEW)
    assert message == f"{tmp_path / 'out'}: cannot be written: No space left on device"
    make_c(photos, tmp_path / "out", *FEW)
    assert whole(tmp_path / "out") == whole(output)


def test_a_full_disk_under_arrays(cifar, cifar_output, tmp_path):
    needed = bytes_needed(cifar[0], tmp_path / "needed", *CIFAR)
    for number, share in enumerate((0.2, 0.5, 0.9)):
        root = tmp_path / f"{number}"
        run_on_full_disk(int(needed * share), cifar[0], root, *CIFAR)
        make_c(cifar[0], root, *CIFAR)
        assert whole(root) == whole(cifar_output)
        assert not litter(root)


def test_images_of_arrays_share_lines_of_the_journal(cifar, cifar_output):
    lines = (cifar_output / ".robustgen" / "journal.jsonl").read_text().splitlines()
    images = [each["images"] for each in map(json.loads, lines) if "images" in each]
    assert len(images) < sum(map(len, images)) == len({key for each in images for key in each})


def test_receipts_of_rows_are_one_entry_with_the_failures_of_each():
    row, reason = [WrittenRow("fog.npy", 12, "f3a9")], {"arm": "snow/1", "reason": "ValueError"}
    failures = tuple({"key": "b"} | reason | {"arm": arm} for arm in ("snow/1", "snow/2"))
    files = {"fog/1": row, "fog/2": row}
    receipts = [Receipt("a", 1, files), Receipt("b", 2, files, failures), Receipt("c", 3, files)]
    (content,) = receipts_to_json(receipts)
    assert receipts_from_json(json.loads(json.dumps(content))) == receipts


def with_single_rows(line):
    """Lines of a journal as earlier versions had them, one for each image, with a record of each row."""
    if "rows" not in line:
        return [line]
    rows = line["rows"]
    files = {arm: [["row", path, 0, *fields]] for path, *fields, arms in rows for arm in arms}
    return [{"key": key, "size": size, "files": files} for key, size in line["images"].items()]


def test_rows_recorded_by_earlier_versions_count(cifar, cifar_output, tmp_path):
    root = Path(shutil.copytree(cifar_output, tmp_path / "out"))
    rewritten(root, lambda lines: [single for line in lines for single in with_single_rows(line)])
    assert "nothing to do" in make_c(cifar[0], root, *CIFAR).stdout
    (root / "dataset.json").unlink()
    make_c(cifar[0], root, *CIFAR)
    assert whole(root) == whole(cifar_output)


def test_arrays_begun_for_fewer_images_do_not_stay_behind(cifar, cifar_output, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, 20_000)
        make_c(cifar[0], tmp_path / "out", *CIFAR, "--limit", "3", status=1)
    make_c(cifar[0], tmp_path / "out", *CIFAR)
    assert whole(tmp_path / "out") == whole(cifar_output)
    assert not litter(tmp_path / "out")


@contextlib.contextmanager
def no_file_over(size):
    """Have the system refuse to let any file grow beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_room_for_the_journal(many, tmp_path):
    make_c(many, tmp_path / "one", *FEW)
    state = tmp_path / "one" / ".robustgen"
    smallest = max(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file() and "journal" not in f.name)
    largest = (state / "journal.jsonl").stat().st_size
    assert largest > smallest + 2000
    for number, size in enumerate(np.linspace(smallest + 100, largest - 5, 4).astype(int)):
        root = tmp_path / f"{number}"
        with no_file_over(int(size)):
            result = make_c(many, root, *FEW, status=1)
        assert result.stderr == f"Error: {root}: File too large\n"
        assert not litter_of_a_stopped_run(root)
        make_c(many, root, *FEW)
        assert whole(root) == whole(tmp_path / "one")


def test_no_room_for_the_papers_that_verify_writes(copied, output):
    (copied / "dataset.json").unlink()
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, 300)
        result = cli("verify", copied, status=1)
    assert len(result.stderr.splitlines()) == 1 and "No space left on device" in result.stderr
    assert findings(copied, status=0) == []
    assert whole(copied) == whole(output)


# --- a power cut ---------------------------------------------------------------------------------


def rewritten(root, change):
    path = root / ".robustgen" / "journal.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_bytes(
        b"".join(journal.seal({k: v for k, v in line.items() if k != "crc"}) for line in change(lines))
    )


def files_of(root, key):
    stem = Path(key).with_suffix("").as_posix()
    return [path for arm in FEW_ARMS for path in (root / arm).glob(f"{stem}.*")]


def before_the_cut(root, synced):
    """Have the journal tell of another boot, with the receipts after the first `synced` not on the disk."""

    def change(lines):
        receipts = [line for line in lines if "key" in line]
        return [{"boot": "another"}, *receipts[:synced], {"synced": True}, *receipts[synced:]]

    rewritten(root, change)
    (root / "dataset.json").unlink()


def test_after_a_power_cut_what_was_not_synced_is_made_again(photos, copied, output):
    before_the_cut(copied, 2)
    for path in files_of(copied, "cat/c.png"):
        path.write_bytes(b"")
    for path in files_of(copied, "dog/a.JPEG"):
        path.write_bytes(bytes(path.stat().st_size))
    stamps = {path: path.stat().st_ino for path in copied.rglob("*.j*")}
    assert make_c(photos, copied, *FEW).stdout.startswith("15 images in ")
    assert whole(copied) == whole(output)
    kept = {*files_of(copied, "cat/a.JPEG"), *files_of(copied, "cat/b.jpg")}
    assert all(path.stat().st_ino == inode for path, inode in stamps.items() if path in kept)


def test_a_second_power_cut_before_anything_was_synced(photos, copied, output):
    rewritten(copied, lambda lines: [{"boot": "first"}, *lines[1:4], {"boot": "second"}, *lines[4:6]])
    garbage = copied / "clean" / "cat" / "a.JPEG"
    garbage.write_bytes(bytes(garbage.stat().st_size))
    assert make_c(photos, copied, *FEW).stdout.startswith("25 images in ")
    assert whole(copied) == whole(output)


def test_a_mark_covers_only_its_own_boot(photos, copied, output):
    rewritten(
        copied,
        lambda lines: [
            {"boot": "first"},
            *lines[1:4],
            {"boot": "second"},
            *lines[4:6],
            {"synced": True},
        ],
    )
    assert make_c(photos, copied, *FEW).stdout.startswith("15 images in ")
    assert whole(copied) == whole(output)


def test_without_a_power_cut_unsynced_receipts_hold(photos, copied, output):
    rewritten(copied, lambda lines: [line for line in lines if "synced" not in line])
    assert "nothing to do" in make_c(photos, copied, *FEW).stdout
    assert whole(copied) == whole(output)


@pytest.mark.parametrize("where", ["middle", "end"])
def test_a_journal_with_blocks_of_zeros(photos, copied, output, where):
    before_the_cut(copied, 2)
    path = copied / ".robustgen" / "journal.jsonl"
    data = bytearray(path.read_bytes())
    start = data.index(b'"dog/a.JPEG"') if where == "middle" else len(data) - 300
    data[start - 100 : start + 200] = bytes(300)
    path.write_bytes(data + b"\0" * 4096 * (where == "end"))
    make_c(photos, copied, *FEW)
    assert whole(copied) == whole(output)
    assert findings(copied, status=0) == []


def test_papers_cut_off_by_a_power_cut(photos, copied, output):
    # All that is not waited for may be empty afterwards, as long as dataset.json is not there.
    (copied / "dataset.json").unlink()
    for path in [*copied.rglob("SHA256SUMS"), copied / ".robustgen" / "about.json"]:
        path.write_bytes(b"")
    make_c(photos, copied, *FEW)
    assert whole(copied) == whole(output)


def test_the_sums_are_on_the_disk_before_the_manifest_is(photos, tmp_path, monkeypatch):
    happened = []
    replace, sync = os.replace, journal._sync_file_system
    monkeypatch.setattr(
        os,
        "replace",
        lambda old, new, **folders: happened.append(Path(new).name) or replace(old, new, **folders),
    )
    monkeypatch.setattr(journal, "_sync_file_system", lambda file: happened.append("sync") or sync(file))
    make_c(photos, tmp_path / "out", *FEW)
    last_sums = len(happened) - 1 - happened[::-1].index("SHA256SUMS")
    assert "sync" in happened[last_sums : happened.index("dataset.json")]


def test_the_journal_is_synced_every_half_minute(photos, tmp_path, monkeypatch):
    clock = iter(range(0, 100_000, 20))
    monkeypatch.setattr(journal.time, "monotonic", lambda: next(clock))
    make_c(photos, tmp_path / "out", *FEW)
    lines = (tmp_path / "out" / ".robustgen" / "journal.jsonl").read_text().splitlines()
    assert sum("synced" in line for line in lines) > 2


# --- files ---------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    temporary_folder(tmp_path / "out").mkdir(parents=True)
    with contextlib.closing(FileWriter(tmp_path / "out")) as writer:
        yield writer


def test_folders_that_go_while_they_are_written_to_are_made_again(files, tmp_path):
    files.write("fog/3/a", b"1")
    shutil.rmtree(tmp_path / "out" / "fog")
    assert files.write("fog/3/b", b"22").size == 2
    assert whole(tmp_path / "out") == {"fog/3/b": b"22"}
    assert not litter(tmp_path / "out")


def test_files_go_to_the_root_and_back(files, tmp_path):
    for path in ("a", "fog/b", "c", "fog/a"):
        files.write(path, path.encode())
    assert whole(tmp_path / "out") == {path: path.encode() for path in ("a", "fog/b", "c", "fog/a")}


def test_no_file_is_written_by_way_of_a_link(files, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    files.write("snow/a", b"1")
    (tmp_path / "out" / "fog").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="out/fog: is a link"):
        files.write("fog/a", b"1")
    assert not [*(tmp_path / "elsewhere").iterdir()]
    assert not litter(tmp_path / "out")


def test_a_folder_that_a_killed_run_s_workers_still_write_to_is_removed(tmp_path):
    temporary = tmp_path / "out" / ".robustgen" / "tmp"
    (temporary / "a").mkdir(parents=True)
    rmdir, late = os.rmdir, iter(("b", "c"))

    def call(*place, **folder):
        for name in late:
            (temporary / name).write_bytes(b"1")
            break
        rmdir(*place, **folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rmdir", call)
        remove_tree(tmp_path / "out", ".robustgen/tmp")
    assert not temporary.exists()


# --- killed --------------------------------------------------------------------------------------


def snapshots(source, root, *flags):
    """Copies of the output at `root` just before and after each renaming: what a kill there leaves behind."""
    taken = []
    replace = os.replace

    def snap():
        taken.append(Path(shutil.copytree(root, root.parent / f"{len(taken)}", symlinks=True)))

    def call(*names, **folders):
        snap()
        replace(*names, **folders)
        snap()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", call)
        make_c(source, root, *flags)
    return taken


def test_killed_at_any_point(photos, tmp_path):
    flags = (*FEW, "--limit", "2", "--corruptions", "contrast")
    taken = snapshots(photos, tmp_path / "out", *flags)
    assert len(taken) >= 2 * (1 + 6 + 1 + 3 + 1)
    for root in taken:
        make_c(photos, root, *flags)
        assert whole(root) == whole(tmp_path / "out")
        assert not litter(root)


def test_killed_at_any_point_of_a_later_run(photos, tmp_path):
    root = tmp_path / "out"
    make_c(photos, root, *FEW, "--limit", "2")
    flags = (*FEW, "--limit", "2", "--corruptions", "contrast")
    for snapshot in snapshots(photos, root, *flags):
        make_c(photos, snapshot, *flags)
        assert whole(snapshot) == whole(root)


def test_arrays_killed_at_any_point(cifar, tmp_path):
    flags = (*CIFAR, "--limit", "3", "--corruptions", "contrast")
    taken = snapshots(cifar[0], tmp_path / "out", *flags)
    for root in taken:
        make_c(cifar[0], root, *flags)
        assert whole(root) == whole(tmp_path / "out")
        assert not litter(root)


def test_shards_killed_at_any_point(photos, tmp_path):
    flags = (*FEW, "--limit", "2", "--corruptions", "contrast", "--severities", "1", "--shard")
    make_c(photos, tmp_path / "out", *flags, "2/2")
    taken = snapshots(photos, tmp_path / "out", *flags, "1/2")
    for root in taken:
        make_c(photos, root, *flags, "1/2")
        assert whole(root) == whole(tmp_path / "out")
        assert not litter(root)


def under_way(process, root, files=60):
    """Wait until a run has written some files."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if sum(1 for _ in root.glob("*/*/*/*.*")) >= files:
            return
        time.sleep(0.01)
    raise AssertionError(f"never under way: {process.communicate()}")


def alive(session):
    """The processes of a session, but for zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, own = stat.read_text().rpartition(") ")[2].split()[:4]
            if int(own) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


def none_alive(sessions, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(map(alive, sessions)):
            return True
        time.sleep(0.05)
    return False


def start(*args):
    """The command line in a session of its own, which its workers share; they must not hold our pipes."""
    command = [sys.executable, "-m", "robustgen", *map(str, args)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, start_new_session=True, **quiet)
    give_way(process)
    return process


def test_killed_again_and_again(many, tmp_path, undisturbed_many):
    root, rng = tmp_path / "out", random.Random(11)
    sessions, made = [], 0
    for _ in range(3):
        process = start("make-c", "--source", many, "--output", root, *MANY)
        sessions.append(process.pid)
        under_way(process, root, made + 1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0, 0.25))
        process.kill()
        assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
        made = len(pictures(root))
    make_c(many, root, *MANY)
    assert whole(root) == undisturbed_many
    assert not litter(root)
    assert none_alive(sessions, 5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal(many, tmp_path, number):
    process = start("make-c", "--source", many, "--output", tmp_path / "out", *MANY)
    under_way(process, tmp_path / "out")
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert len(pictures(tmp_path / "out")) < 24 * 19 * 5, "it went on after it was asked to stop"
    assert errors == b"stopped; the same command goes on from here\n"
    assert none_alive([process.pid], 5)
    assert not litter_of_a_stopped_run(tmp_path / "out")


# --- Dask ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster_run(many, tmp_path_factory, dask):
    """A run on two workers, one of them killed midway: its output, and how many receipts there were then."""
    port, home = free_port(), tmp_path_factory.mktemp("cluster")
    address = f"tcp://127.0.0.1:{port}"
    dask("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
    until_open(port)
    common = ("--nworkers", 1, "--nthreads", 1, "--no-nanny", "--no-dashboard", "--local-directory", home)
    workers = [dask("worker", address, "--host", "127.0.0.1", *common) for _ in range(2)]
    cluster = ("--backend", "dask", "--scheduler", address)
    process = start("make-c", "--source", many, "--output", home / "out", *MANY, *cluster)
    under_way(process, home / "out", files=1000)
    receipts = (home / "out" / ".robustgen" / "journal.jsonl").read_text().count('"key"')
    workers[0].kill()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert workers[1].poll() is None
    return home / "out", receipts


def test_a_cluster_gives_the_same_tree_though_a_worker_dies(cluster_run, undisturbed_many):
    assert whole(cluster_run[0]) == undisturbed_many
    assert not litter(cluster_run[0])


def test_a_cluster_s_work_is_recorded_as_it_comes_in(cluster_run):
    assert cluster_run[1] > 2


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{}", "nowhere", "foo://bar:1"])
def test_a_scheduler_that_does_not_answer(photos, tmp_path, dask, monkeypatch, address):
    from distributed import Client

    # Not ten seconds.
    monkeypatch.setattr("distributed.Client", lambda address, timeout: Client(address, timeout="0.5s"))
    address = address.format(free_port())
    flags = ("--source", photos, "--output", tmp_path / "out", *FEW, "--backend", "dask")
    assert f"no Dask scheduler answers at {address}" in cli_error("make-c", *flags, "--scheduler", address)
    # Were a client that never came up collected in the thread of the next one, Dask would wait for itself.
    gc.collect()


def test_a_cluster_needs_both_flags(photos):
    for flags in (("--backend", "dask"), ("--scheduler", "tcp://127.0.0.1:1")):
        assert "go together" in cli_error("make-c", "--source", photos, *flags)
