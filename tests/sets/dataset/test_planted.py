"""What others may have planted in an output: links, pipes, forged records. Nothing outside is touched."""

import faulthandler
import hashlib
import json
import os
import shutil
import tracemalloc
from pathlib import Path

import pytest
from click.testing import CliRunner

from robustgen.cli import main
from robustgen.files.ledger import Record
from robustgen.files.set_files import WrittenFile
from robustgen.files.storage import open_store
from robustgen.lab.inspection.verify_contents import check_contents
from robustgen.sets.dataset.state import SetLedger
from tests.helpers import (
    FEW,
    PATIENCE,
    cli,
    cli_error,
    findings,
    make_c,
    manifest,
    put_photo,
    whole,
    without_beginning,
)


@pytest.fixture
def patient():
    """A function that runs a command in this process; one that never ends ends the process."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)

    def run(*args):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exception is None or isinstance(result.exception, SystemExit), args
        assert result.exit_code in (0, 1, 2)
        return result

    yield run
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def victim(tmp_path):
    """A folder that is none of the output's business."""
    root = tmp_path / "victim"
    for path in (root / "x.txt", root / "tmp" / "x.txt", root / "cat" / "a.JPEG"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    yield root
    assert {path.read_text() for path in root.rglob("*") if path.is_file()} == {"precious"}
    assert sum(path.is_file() for path in root.rglob("*")) == 3


# --- links ---------------------------------------------------------------------------------------


def test_a_state_folder_that_is_a_link_is_refused(photos, copied, victim):
    shutil.rmtree(copied / ".robustgen")
    (copied / ".robustgen").symlink_to(victim)
    assert any("is a link" in line for line in findings(copied))
    assert "is a link" in cli_error("make-c", "--source", photos, "--output", copied, *FEW)


@pytest.mark.parametrize("name", ["tmp", "records", "plans", "claims"])
def test_a_link_in_the_state_folder_is_not_followed(photos, copied, victim, name):
    place = copied / ".robustgen" / name
    shutil.rmtree(place, ignore_errors=True)
    place.symlink_to(victim)
    for flags in (("--severities", "2"), ("--seed", "1", "--overwrite")):
        assert f"{place}: is a link" in cli_error(
            "make-c", "--source", photos, "--output", copied, *FEW, *flags
        )


@pytest.mark.parametrize("name", ["settings.json", "finished"])
def test_a_linked_file_in_the_state_folder_is_replaced(photos, copied, victim, name):
    place = copied / ".robustgen" / name
    place.rename(victim.parent / name)
    place.symlink_to(victim.parent / name)
    before = (victim.parent / name).read_bytes()
    make_c(photos, copied, *FEW, "--seed", "1", "--overwrite")
    assert not place.is_symlink() and (victim.parent / name).read_bytes() == before


@pytest.mark.parametrize("overwrite", [(), ("--overwrite", "--seed", "1")])
@pytest.mark.parametrize("folder", ["contrast/1", "contrast/1/cat"])
def test_a_folder_that_is_a_link_is_refused(photos, copied, victim, folder, overwrite):
    shutil.rmtree(copied / folder)
    (copied / folder).symlink_to(victim)
    assert any(f"{folder}: is a link" in line for line in findings(copied))
    message = cli_error("make-c", "--source", photos, "--output", copied, *FEW, *overwrite)
    assert message.startswith(f"{copied / folder}: is a link")


def forge_record(root, path, folder="contrast/1", digest="0" * 64):
    """Add a record, sealed as it should be, of a file that no run wrote."""
    file = WrittenFile(f"{folder}/{path}" if folder else path, 8, digest)
    record = Record({"cat/a.JPEG": (1, "")}, [folder], [file])
    SetLedger(open_store(root)).put_record("000099-forged", record)


@pytest.mark.parametrize(
    "forged",
    [
        ("x.txt", "evil"),
        ("../victim/x.txt", ""),
        ("../../../victim/x.txt", "contrast/1"),
        ("x.txt", "../victim"),
        ("{victim}/x.txt", ""),
    ],
)
def test_a_forged_record_removes_nothing_elsewhere(photos, copied, victim, forged, patient):
    path, folder = forged
    (copied / "evil").symlink_to(victim)
    forge_record(copied, path.format(victim=victim), folder)
    for flags in ((), ("--seed", "1", "--overwrite")):
        patient("make-c", "--source", photos, "--output", copied, *FEW, *flags)
    patient("verify", copied)


def test_a_listed_file_that_is_a_link_is_a_finding(copied, victim):
    path = copied / "contrast/1/cat/a.JPEG"
    path.rename(victim.parent / "a.JPEG")
    path.symlink_to(victim.parent / "a.JPEG")
    assert findings(copied) == ["changed contrast/1/cat/a.JPEG: is a link"]


def test_an_array_that_is_a_link_is_not_written_through(cifar, tmp_path, victim):
    flags = ("--dataset", "cifar-10", "--corruptions", "contrast", "--jobs", "1")
    cli("make-c", "--source", cifar[0], "--output", tmp_path / "out", *flags, "--limit", "2")
    array = tmp_path / "out" / "contrast.npy"
    array.rename(tmp_path / "mine.npy")
    before = (tmp_path / "mine.npy").read_bytes()
    array.symlink_to(tmp_path / "mine.npy")
    cli("make-c", "--source", cifar[0], "--output", tmp_path / "out", *flags, "--limit", "3")
    assert (tmp_path / "mine.npy").read_bytes() == before


# --- what is no regular file -----------------------------------------------------------------------


def test_verify_waits_for_no_pipe(copied, patient):
    names = ("contrast/1/cat/a.JPEG", "contrast/4/SHA256SUMS", "mine")
    for name in names:
        (copied / name).unlink(missing_ok=True)
        os.mkfifo(copied / name)
    result = patient("verify", copied)
    assert result.exit_code == 1 and all(name in result.stdout for name in names)


@pytest.mark.parametrize(
    "name", ["settings.json", "finished", "plans/pipe.json", "records/pipe.json", "claims/pipe"]
)
def test_no_run_waits_for_a_pipe_in_the_state(photos, copied, name, patient):
    place = copied / ".robustgen" / name
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    for args in (
        ("verify", copied),
        ("make-c", "--source", photos, "--output", copied, *FEW, "--limit", "1"),
    ):
        assert len(without_beginning(patient(*args).stderr)) <= 1


MAKE = {
    "images": ("make-c", *FEW),
    "arrays": ("make-c", *FEW, "--edition", "imagenet-64", "--format", "npy"),
    "frames": ("make-p", "--perturbations", "tilt", "--format", "png", "--jobs", "1"),
}


@pytest.mark.parametrize(
    "case",
    [
        ("images", "contrast/1/cat/a.JPEG"),
        ("arrays", "contrast.npy"),
        ("frames", "tilt/cat/a/03.png"),
        ("images", "dataset.json"),
        ("images", "errors.jsonl"),
        ("arrays", "labels.npy"),
        ("arrays", "keys.txt"),
    ],
)
def test_no_reader_waits_for_a_pipe(photos, tmp_path, case, patient):
    form, name = case
    root = tmp_path / "out"
    cli(*MAKE[form], "--source", photos, "--output", root, "--limit", "2")
    (root / name).unlink(missing_ok=True)
    os.mkfifo(root / name)
    for command in (("report", root, "--output", tmp_path / "page.html"), ("compare", root, root)):
        patient(*command)


def test_sums_of_files_outside_are_findings(copied, victim):
    sums = copied / "contrast/1/SHA256SUMS"
    with sums.open("a") as file:
        file.write(f"{'0' * 64}  ../../../victim/x.txt\n{'0' * 64}  /etc/hostname\n")
    lines = {line for line in findings(copied) if line.startswith("missing")}
    assert lines == {"missing contrast/1/../../../victim/x.txt", "missing contrast/1//etc/hostname"}


# --- what verify must name -------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["missing", "emptied", "changed"])
@pytest.mark.parametrize("with_state", [True, False])
def test_damaged_digests_of_frames(photos, videos, tmp_path, damage, with_state):
    root = Path(shutil.copytree(videos, tmp_path / "p"))
    if not with_state:
        shutil.rmtree(root / ".robustgen")
    frames = root / "translate/FRAMES.SHA256"
    text = frames.read_text()
    frames.write_text("" if damage == "emptied" else text.replace(text[:8], "00000000"))
    if damage == "missing":
        frames.unlink()
    assert any("FRAMES.SHA256" in line or "frames_digest" in line for line in findings(root))
    if with_state:
        flags = ("--perturbations", "translate", "--limit", "2", "--jobs", "1")
        cli("make-p", "--source", photos, "--output", root, *flags)
        assert whole(root) == whole(videos)


@pytest.mark.parametrize("damage", ["missing", "", "no checksum\n", "\udcff\0\n"])
def test_damaged_checksums_are_written_again(photos, copied, output, damage):
    for sums in copied.glob("*/**/SHA256SUMS"):
        sums.unlink() if damage == "missing" else sums.write_bytes(damage.encode("utf-8", "surrogateescape"))
    make_c(photos, copied, *FEW)
    assert whole(copied) == whole(output)
    assert not findings(copied, status=0)


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (lambda held: held["settings"].update(seed=7), "settings.seed is 7, files and records give 0"),
        (lambda held: held["config"].update(seed=7), "config.seed is 7, files and records give 0"),
        (lambda held: held.update(images=4), "images is 4, files and records give 5"),
        (lambda held: held.update(licence="none"), "licence is 'none', files and records give"),
        (lambda held: held["counts"].update(files=9), "counts.files is 9, files and records give"),
        (lambda held: held.update(failures=3), "failures is 3, files and records give 0"),
        (lambda held: held.update(digest="0" * 64), "digest is '000"),
    ],
)
def test_a_manifest_that_disagrees_with_the_state(copied, forge, says):
    held = manifest(copied)
    forge(held)
    (copied / "dataset.json").write_text(json.dumps(held))
    assert any(line.startswith("changed ") and says in line for line in findings(copied))


def test_a_forged_list_of_failures(source, tmp_path):
    (source / "cat" / "empty.png").write_bytes(b"")
    make_c(source, tmp_path / "out", *FEW, status=1)
    path = tmp_path / "out" / "errors.jsonl"
    assert path.read_bytes().endswith(b"}\n")
    path.write_text(json.dumps({"key": "cat/other.png", "reason": "forged"}) + "\n")
    # An incomplete set is written anew from the state; only a complete one is evidence.
    held = manifest(tmp_path / "out") | {"complete": True}
    (tmp_path / "out" / "dataset.json").write_text(json.dumps(held))
    (line,) = (each for each in findings(tmp_path / "out") if "cat/other.png" in each)
    assert line.startswith("changed errors.jsonl: ")


@pytest.mark.parametrize(
    "name", ["keys.txt", "labels.npy", "contrast/1/cat/SHA256SUMS", "clean/FRAMES.SHA256.old"]
)
def test_files_of_ours_in_wrong_places_are_extra(copied, name):
    (copied / name).write_text("")
    assert findings(copied) == [f"extra {name}"]


def test_empty_folders_and_links_are_extra(copied, victim):
    (copied / "contrast/1/mouse").mkdir()
    (copied / "link").symlink_to(victim)
    assert [each.split(": ")[0] for each in findings(copied)] == ["extra contrast/1/mouse/", "extra link"]


def test_a_changed_image_leaves_no_empty_folder(tmp_path):
    put_photo(tmp_path / "src" / "cat" / "a.png")
    put_photo(tmp_path / "src" / "dog" / "b.png")
    make_c(tmp_path / "src", tmp_path / "out", *FEW)
    (tmp_path / "src" / "cat" / "a.png").write_bytes(b"")
    make_c(tmp_path / "src", tmp_path / "out", *FEW, status=1)
    assert not [line for line in findings(tmp_path / "out") if "empty folder" in line]


# --- damaged records -------------------------------------------------------------------------------


def test_a_flipped_letter_in_a_record_is_named_and_mended(photos, copied, output):
    records = sorted((copied / ".robustgen" / "records").iterdir())
    path = next(path for path in records if b'"cat/b.jpg"' in path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b'"cat/b.jpg"', b'"dat/b.jpg"', 1))
    (line,) = findings(copied)
    assert line.startswith(f"damaged .robustgen/records/{path.name}: ")
    make_c(photos, copied, *FEW)
    assert findings(copied, "--against", output, status=0) == []


@pytest.mark.parametrize("content", ["", "[1]", "{", "\x00"])
def test_damaged_settings_are_named_with_the_remedy(photos, copied, output, content):
    path = copied / ".robustgen" / "settings.json"
    path.write_text(content)
    message = cli_error("make-c", "--source", photos, "--output", copied, *FEW)
    assert "settings.json" in message and "--overwrite" in message
    make_c(photos, copied, *FEW, "--overwrite")
    assert findings(copied, "--against", output, status=0) == []


# --- deep, and what the disk says --------------------------------------------------------------------


def test_deep_says_how_many_and_takes_a_source_that_has_moved(source, tmp_path):
    make_c(source, tmp_path / "out", *FEW, "--limit", "1")
    source.rename(tmp_path / "moved")
    said = cli("verify", tmp_path / "out", "--deep", "all", "--source", tmp_path / "moved").stdout
    assert said.startswith("5 files checked, 1 image regenerated, 0 findings; digest ")
    assert "--source needs --deep" in cli_error("verify", tmp_path / "out", "--source", tmp_path / "moved")


def test_one_is_not_a_plural(photos, tmp_path):
    one = ("--corruptions", "fog", "--severities", "1", "--limit", "1", "--no-clean")
    make_c(photos, tmp_path / "out", *one)
    (tmp_path / "out" / "mine").write_text("")
    assert "1 file checked, 1 finding; digest" in cli("verify", tmp_path / "out", status=1).stdout


def peak_of_checking(root, folders):
    """Bytes at most that comparing so many folders of 400 files with their sums takes."""
    for folder in range(folders):
        variant = root / f"fog{folder}" / "1"
        variant.mkdir(parents=True)
        names = [f"{number:0100d}.jpg" for number in range(400)]
        for name in names:
            (variant / name).write_bytes(b"")
        empty = hashlib.sha256(b"").hexdigest()
        (variant / "SHA256SUMS").write_text("".join(f"{empty}  {name}\n" for name in names))
    tracemalloc.start()
    try:
        assert check_contents(open_store(root), 2, {})[0] == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_verify_takes_no_more_memory_for_more_folders(tmp_path):
    peak_of_checking(tmp_path / "warm", 1)
    few, many = peak_of_checking(tmp_path / "few", 2), peak_of_checking(tmp_path / "many", 8)
    # Two folders may be under way at once; four times as many are not.
    assert many < 3 * few


@pytest.mark.parametrize("content", ["{}", '{"manifest": {"variants": ["fog/3"]}}', "{"])
def test_a_plan_without_its_keys_is_damaged(photos, copied, output, content):
    (path,) = (copied / ".robustgen" / "plans").iterdir()
    path.write_text(content)
    said = f"{copied}/.robustgen: contains no plan; run the same make command again"
    assert cli_error("verify", copied) == said
    make_c(photos, copied, *FEW)
    assert findings(copied, "--against", output, status=0) == []


@pytest.mark.parametrize("name", ["dataset.json", ".robustgen/settings.json", ".robustgen/plans"])
def test_nesting_without_end_is_one_line(copied, name):
    path = copied / name if name.endswith(".json") else min((copied / name).iterdir())
    path.write_bytes(b'{"images":' * 100_000)
    assert cli_error("verify", copied).startswith(f"{copied / name.removesuffix('/plans')}: ")
