"""What others may have planted in an output: links, pipes, forged records. Nothing outside is touched."""

import hashlib
import json
import os
import shutil
import tracemalloc
import zlib
from pathlib import Path
from unittest import mock

import pytest
from helpers import cli, cli_error, put_photo, spawn

from robustgen.errors import OutputError
from robustgen.output import journal, state
from robustgen.output.ledger import Ledger
from robustgen.output.writers.jpeg import JpegTree
from robustgen.verify import contents

FEW = ("--corruptions", "contrast", "--severities", "1", "--jobs", "1")


def make_c(source, output, *flags, status=0):
    return cli("make-c", "--source", source, "--output", output, *FEW, *flags, status=status)


def findings(root, *flags, status=1):
    *lines, _ = cli("verify", root, *flags, status=status).stdout.splitlines()
    return [" ".join(line.split()) for line in lines]


@pytest.fixture(scope="module")
def made(photos, tmp_path_factory):
    """A finished output; not to be changed."""
    root = tmp_path_factory.mktemp("planted") / "out"
    make_c(photos, root)
    return root


@pytest.fixture
def copied(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "copied"))


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


def manifest(root):
    return json.loads((root / "dataset.json").read_text())


# --- links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["make-c", "verify"])
def test_a_state_folder_that_is_a_link_is_refused(photos, copied, victim, command):
    for path in (copied / ".robustgen").iterdir():
        shutil.copy(path, victim.parent / path.name) if path.is_file() else None
    shutil.rmtree(copied / ".robustgen")
    (copied / ".robustgen").symlink_to(victim)
    (victim.parent / "about.json").rename(victim.parent / "kept.json")
    args = ("--source", photos, "--output", copied, *FEW) if command == "make-c" else (copied,)
    if command == "verify":
        assert any("is a link" in line for line in findings(copied))
    else:
        assert "is a link" in cli_error(command, *args)


@pytest.mark.parametrize("name", ["tmp", "partial", "lock", "journal.jsonl", "settings.json"])
def test_a_link_in_the_state_folder_is_refused(photos, copied, victim, name):
    place = copied / ".robustgen" / name
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    place.symlink_to(victim if name in ("tmp", "partial") else victim / "x.txt")
    for args in (("verify", copied), ("make-c", "--source", photos, "--output", copied, *FEW, "--overwrite")):
        assert f"{place}: is a link" in cli_error(*args)


@pytest.mark.parametrize("overwrite", [(), ("--overwrite", "--seed", "1")])
def test_an_arm_that_is_a_link_is_refused(photos, copied, victim, overwrite):
    shutil.rmtree(copied / "contrast/1")
    (copied / "contrast/1").symlink_to(victim)
    message = cli_error("make-c", "--source", photos, "--output", copied, *FEW, *overwrite)
    assert message.startswith(f"{copied / 'contrast/1'}: is a link")
    assert any(line.startswith("extra contrast/1: is a link") for line in findings(copied))


def test_a_class_folder_that_is_a_link_is_refused(photos, copied, victim):
    shutil.rmtree(copied / "contrast/1/cat")
    (copied / "contrast/1/cat").symlink_to(victim)
    message = cli_error("make-c", "--source", photos, "--output", copied, *FEW)
    assert message.startswith(f"{copied / 'contrast/1/cat'}: is a link")
    assert any("contrast/1/cat: is a link" in line for line in findings(copied))


def test_a_forged_journal_removes_nothing_elsewhere(photos, copied, victim):
    (copied / "evil").symlink_to(victim)
    with (copied / ".robustgen" / "journal.jsonl").open("ab") as file:
        entry = {"key": "cat/a.JPEG", "size": 1, "files": {"evil": [["file", "evil/x.txt", 8, "0" * 64, ""]]}}
        file.write(journal.seal(entry))
    flags = ("--source", photos, "--output", copied, *FEW, "--seed", "1", "--overwrite")
    assert f"{copied / 'evil'}: is a link" in cli_error("make-c", *flags)


@pytest.mark.parametrize(
    ("path", "digest"),
    [
        ("../victim/x.txt", "0" * 64),
        ("/etc/hostname", "0" * 64),
        ("contrast/../../victim/x.txt", "0" * 64),
        ("contrast/1/cat/a\0b", "0" * 64),
        ("contrast/1/cat/a.JPEG", "0 0\n"),
    ],
)
def test_a_journal_that_names_what_no_run_wrote_is_damaged(photos, copied, victim, path, digest):
    with (copied / ".robustgen" / "journal.jsonl").open("ab") as file:
        entry = {"key": "cat/a.JPEG", "size": 1, "files": {"contrast/1": [["file", path, 8, digest, ""]]}}
        file.write(journal.seal(entry))
    (line,) = findings(copied)
    assert line.startswith("damaged .robustgen/journal.jsonl: line ")
    make_c(photos, copied, "--seed", "1", "--overwrite")
    assert findings(copied, status=0) == []


@pytest.mark.parametrize(
    "row",
    [
        ["../victim/x.npy", 12, "f3a9", ["contrast/1"]],
        ["fog.npy", 12, "f3a9", ["../victim"]],
        ["fog.npy", "12", "f3a9", ["contrast/1"]],
        ["fog.npy", 12, "f3a9", [["contrast/1"]]],
        ["fog.npy", 12, "f3a9"],
        [],
    ],
)
def test_a_journal_that_names_rows_that_no_run_wrote_is_damaged(copied, row):
    with (copied / ".robustgen" / "journal.jsonl").open("ab") as file:
        file.write(journal.seal({"images": {"cat/a.JPEG": 1}, "rows": [row]}))
    (line,) = findings(copied)
    assert line.startswith("damaged .robustgen/journal.jsonl: line ")


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


@pytest.mark.parametrize("name", ["contrast/1/cat/a.JPEG", "contrast/1/SHA256SUMS", "mine"])
def test_verify_waits_for_no_pipe(copied, name):
    (copied / name).unlink(missing_ok=True)
    os.mkfifo(copied / name)
    process = spawn("verify", copied)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and name in said.decode()


@pytest.mark.parametrize("name", ["lock", "journal.jsonl", "settings.json", "about.json"])
def test_no_run_waits_for_a_pipe_in_the_state(photos, copied, name):
    (copied / ".robustgen" / name).unlink(missing_ok=True)
    os.mkfifo(copied / ".robustgen" / name)
    for args in (
        ("verify", copied),
        ("make-c", "--source", photos, "--output", copied, *FEW, "--limit", "1"),
    ):
        process = spawn(*args)
        _, said = process.communicate(timeout=60)
        assert len(said.decode().splitlines()) <= 1 and "Traceback" not in said.decode()


@pytest.mark.parametrize("name", ["contrast/1/cat/a.JPEG", "dataset.json", "errors.jsonl"])
def test_no_reader_of_files_waits_for_a_pipe(copied, tmp_path, name):
    read_beside_a_pipe(copied, name, tmp_path / "page.html")


@pytest.mark.parametrize("name", ["contrast.npy", "labels.npy", "keys.txt"])
def test_no_reader_of_arrays_waits_for_a_pipe(cifar, tmp_path, name):
    flags = ("--dataset", "cifar-10", *FEW, "--limit", "2")
    cli("make-c", "--source", cifar[0], "--output", tmp_path / "out", *flags)
    read_beside_a_pipe(tmp_path / "out", name, tmp_path / "page.html")


def test_no_reader_of_frames_waits_for_a_pipe(photos, tmp_path):
    flags = ("--perturbations", "brightness", "--format", "png", "--limit", "2", "--jobs", "1")
    cli("make-p", "--source", photos, "--output", tmp_path / "out", *flags)
    read_beside_a_pipe(tmp_path / "out", "brightness/cat/a/03.png", tmp_path / "page.html")


def read_beside_a_pipe(root, name, page):
    (root / name).unlink(missing_ok=True)
    os.mkfifo(root / name)
    for command in (("report", root, "--output", page), ("compare", root, root)):
        process = spawn(*command)
        _, said = process.communicate(timeout=120)
        assert "Traceback" not in said.decode()


def test_sums_of_files_outside_are_findings(copied, victim):
    sums = copied / "contrast/1/SHA256SUMS"
    with sums.open("a") as file:
        file.write(f"{'0' * 64}  ../../../victim/x.txt\n{'0' * 64}  /etc/hostname\n")
    lines = [line for line in findings(copied) if "lies outside" in line]
    assert len(lines) == 2 and all(line.startswith("changed contrast/1/SHA256SUMS: names") for line in lines)


# --- what verify must name -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def videos(photos, tmp_path_factory):
    root = tmp_path_factory.mktemp("planted") / "p"
    flags = ("--perturbations", "translate", "--limit", "2", "--jobs", "1")
    cli("make-p", "--source", photos, "--output", root, *flags)
    return root


@pytest.mark.parametrize("damage", ["missing", "emptied", "changed"])
@pytest.mark.parametrize("with_state", [True, False])
def test_damaged_digests_of_frames(videos, tmp_path, damage, with_state):
    root = Path(shutil.copytree(videos, tmp_path / "p"))
    if not with_state:
        shutil.rmtree(root / ".robustgen")
    frames = root / "translate/FRAMES.SHA256"
    text = frames.read_text()
    frames.write_text("" if damage == "emptied" else text.replace(text[:8], "00000000"))
    if damage == "missing":
        frames.unlink()
    assert any("FRAMES.SHA256" in line for line in findings(root))


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (lambda held: held["settings"].update(seed=7), "settings.seed is 7, where 0 was recorded"),
        (lambda held: held["config"].update(seed=7), "config.seed is 7, where 0 was recorded"),
        (lambda held: held.update(images=4), "images is 4, where 5 was recorded"),
        (lambda held: held.update(licence="none"), "licence is 'none', where"),
        (lambda held: held["counts"].update(files=9), "the counts are {'bytes'"),
        (lambda held: held.update(failures=3), "lists 0 failures, dataset.json 3"),
        (lambda held: held.update(digest="0" * 64), "the sums give the digest"),
    ],
)
def test_a_manifest_that_disagrees_with_the_state(copied, forge, says):
    held = manifest(copied)
    forge(held)
    (copied / "dataset.json").write_text(json.dumps(held))
    (line,) = findings(copied)
    assert line.startswith("changed ") and says in line


def test_a_forged_list_of_failures(photos, tmp_path):
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    (source / "cat" / "empty.png").write_bytes(b"")
    make_c(source, tmp_path / "out", status=1)
    path = tmp_path / "out" / "errors.jsonl"
    assert path.read_bytes().endswith(b"}\n")
    path.write_text(json.dumps({"key": "cat/other.png", "reason": "forged"}) + "\n")
    # An incomplete set is written anew from the state; only a complete one is evidence.
    held = manifest(tmp_path / "out") | {"complete": True}
    (tmp_path / "out" / "dataset.json").write_text(json.dumps(held))
    assert "changed errors.jsonl: no run recorded the failure of 'cat/other.png'" in findings(
        tmp_path / "out"
    )


@pytest.mark.parametrize(
    "name", ["keys.txt", "labels.npy", "contrast/1/cat/SHA256SUMS", "clean/FRAMES.SHA256.old"]
)
def test_files_of_ours_in_wrong_places_are_extra(copied, name):
    (copied / name).write_text("")
    assert findings(copied) == [f"extra {name}"]


def test_empty_folders_and_links_are_extra(copied, victim):
    (copied / "contrast/1/mouse").mkdir()
    (copied / "link").symlink_to(victim)
    assert findings(copied) == ["extra contrast/1/mouse/: is an empty folder", "extra link: is a link"]


def test_a_changed_image_leaves_no_empty_folder(tmp_path):
    put_photo(tmp_path / "src" / "cat" / "a.png")
    put_photo(tmp_path / "src" / "dog" / "b.png")
    make_c(tmp_path / "src", tmp_path / "out")
    (tmp_path / "src" / "cat" / "a.png").write_bytes(b"")
    make_c(tmp_path / "src", tmp_path / "out", status=1)
    assert not [line for line in findings(tmp_path / "out") if "empty folder" in line]


# --- damaged records -------------------------------------------------------------------------------


def flip_a_path(root):
    """Change one letter of a path in the journal; return the number of its line."""
    path = root / ".robustgen" / "journal.jsonl"
    data = path.read_bytes()
    place = data.index(b"contrast/1/cat/b.jpg")
    path.write_bytes(data[:place] + b"d" + data[place + 1 :])
    return data[:place].count(b"\n") + 1


def test_a_flipped_letter_in_the_journal_is_named_and_mended(photos, copied, made):
    number = flip_a_path(copied)
    (line,) = findings(copied)
    assert line.startswith(
        f"damaged .robustgen/journal.jsonl: line {number} is not as it was written; give the"
    )
    make_c(photos, copied)
    assert findings(copied, "--against", made, status=0) == []


def test_an_incomplete_set_is_not_rewritten_from_a_damaged_journal(photos, tmp_path):
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    (source / "cat" / "empty.png").write_bytes(b"")
    make_c(source, tmp_path / "out", status=1)
    flip_a_path(tmp_path / "out")
    before = (tmp_path / "out" / "contrast/1/SHA256SUMS").read_bytes()
    kinds = {line.split()[0] for line in findings(tmp_path / "out")}
    assert kinds == {"damaged", "unfinished"}
    assert (tmp_path / "out" / "contrast/1/SHA256SUMS").read_bytes() == before


@pytest.mark.parametrize("content", [None, "", "[1]", "{}", '{"output": {}}', "\x00"])
def test_damaged_settings_are_named_with_the_remedy(photos, copied, made, content):
    path = copied / ".robustgen" / "settings.json"
    path.unlink() if content is None else path.write_text(content)
    message = cli_error("make-c", "--source", photos, "--output", copied, *FEW)
    assert "settings.json" in message and message.endswith("begin anew with --overwrite")
    make_c(photos, copied, "--overwrite")
    assert findings(copied, "--against", made, status=0) == []


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("about.json", "Give the make command again"), ("settings.json", "begin anew with --overwrite")],
)
def test_verify_names_damaged_state_with_the_remedy(photos, copied, made, name, remedy):
    (copied / ".robustgen" / name).write_text("{")
    message = cli_error("verify", copied)
    assert f"{name} is damaged" in message and message.endswith(remedy)
    make_c(photos, copied, *(["--overwrite"] if name == "settings.json" else []))
    assert findings(copied, "--against", made, status=0) == []


@pytest.mark.parametrize("content", ["", "{}", '{"files": [["file"]], "layout": ""}', '{"files": 3}', "[]"])
@pytest.mark.parametrize("flags", [(), ("--overwrite", "--seed", "1")])
def test_damaged_records_of_arrays(cifar, tmp_path, content, flags):
    command = ("make-c", "--source", cifar[0], "--output", tmp_path / "out", "--dataset", "cifar-10", *FEW)
    cli(*command, "--limit", "2")
    (tmp_path / "out" / ".robustgen" / "assembled" / "contrast.npy.json").write_text(content)
    cli(*command, "--limit", "2", *flags)
    assert findings(tmp_path / "out", status=0) == []


def test_journals_are_ordered_by_content(photos, made, tmp_path):
    """The run that recorded an image last has the last word, whatever the clock says."""
    for number in (1, 2):
        make_c(photos, tmp_path / "out", "--shard", f"{number}/2")
    folder = tmp_path / "out" / ".robustgen"
    runs = [json.loads(path.read_text().splitlines()[0])["run"] for path in sorted(folder.glob("journal*"))]
    assert runs == [1, 2]
    put_photo(tmp_path / "new" / "cat" / "a.JPEG", seed=9, height=48)
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    shutil.copy(tmp_path / "new/cat/a.JPEG", source / "cat/a.JPEG")

    def sizes():
        receipts = state.State(tmp_path / "out").receipts()
        return [receipt.size for receipt in receipts if receipt.key == "cat/a.JPEG"]

    make_c(source, tmp_path / "out")
    before = sizes()
    for stamp, path in enumerate(sorted(folder.glob("journal*"), reverse=True)):
        os.utime(path, (stamp, stamp))
    assert sizes() == before and before[-1] == (source / "cat/a.JPEG").stat().st_size


# --- deep, and what the disk says --------------------------------------------------------------------


def test_deep_says_how_many_and_takes_a_source_that_has_moved(photos, tmp_path):
    source = Path(shutil.copytree(photos, tmp_path / "src"))
    make_c(source, tmp_path / "out", "--limit", "1")
    source.rename(tmp_path / "moved")
    said = cli("verify", tmp_path / "out", "--deep", "all", "--source", tmp_path / "moved").stdout
    assert said.startswith("2 files checked, 1 image made anew, 0 findings; digest ")
    assert "--source: tells where" in cli_error("verify", tmp_path / "out", "--source", tmp_path / "moved")


def test_one_is_not_a_plural(photos, tmp_path):
    make_c(photos, tmp_path / "out", "--limit", "1", "--no-clean")
    (tmp_path / "out" / "mine").write_text("")
    assert "1 file checked, 1 finding; digest" in cli("verify", tmp_path / "out", status=1).stdout


def test_an_io_error_when_an_array_is_closed_is_one_line(cifar, tmp_path, monkeypatch):
    close, opened = os.close, set()
    open_ = os.open

    def opening(path, flags, *mode, **folder):
        number = open_(path, flags, *mode, **folder)
        if str(path).endswith(".npy"):
            opened.add(number)
        return number

    def closing(number):
        close(number)
        if number in opened:
            opened.discard(number)
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "open", opening)
    monkeypatch.setattr(os, "close", closing)
    flags = (
        "--source",
        cifar[0],
        "--output",
        tmp_path / "out",
        "--dataset",
        "cifar-10",
        *FEW,
        "--limit",
        "2",
    )
    result = cli("make-c", *flags, status=1)
    assert result.stderr == f"Error: {tmp_path / 'out'}: Input/output error\n"


def test_a_file_system_without_locks_is_named(photos, tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(state.fcntl, "flock", no_locks)
    message = cli_error("make-c", "--source", photos, "--output", tmp_path / "out", *FEW)
    assert "its file system has no locks (Operation not supported)" in message
    assert not (tmp_path / "out").exists()


def test_nothing_is_left_where_there_are_no_locks(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(state.fcntl, "flock", mock.Mock(side_effect=OSError(37, "No locks available")))
    out = tmp_path / "new" / "out"
    assert "no locks" in cli_error("make-c", "--source", photos, "--output", out, *FEW, "--shard", "1/2")
    assert not out.parent.exists()
    with pytest.raises(OutputError, match="no locks"), state.claim_output(out, photos, lambda _: None):
        pass
    assert not out.parent.exists()


def peak_of_checking(root, folders):
    """Bytes at most that comparing so many folders of 400 files with their sums takes."""
    for folder in range(folders):
        arm = root / f"fog{folder}" / "1"
        arm.mkdir(parents=True)
        names = [f"{number:0100d}.jpg" for number in range(400)]
        for name in names:
            (arm / name).write_bytes(b"")
        empty = hashlib.sha256(b"").hexdigest()
        (arm / "SHA256SUMS").write_text("".join(f"{empty}  {name}\n" for name in names))
    tracemalloc.start()
    try:
        assert contents.check_contents(root, jobs=2).findings == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_verify_takes_no_more_memory_for_more_folders(tmp_path):
    peak_of_checking(tmp_path / "warm", 1)
    few, many = peak_of_checking(tmp_path / "few", 2), peak_of_checking(tmp_path / "many", 16)
    # Two folders may be under way at once; eight times as many are not.
    assert many < 3 * few


def test_a_run_that_begins_at_the_same_time_removes_nothing_of_the_other(photos, tmp_path, monkeypatch):
    output, began = tmp_path / "new" / "set", []
    open_ledger = Ledger._open

    def open_late(ledger):
        if not began:
            began.append(True)
            # The other one finds no folder either, and is first to lock it.
            other = Ledger(output, JpegTree(), {"output": {}, "parameters": {}, "versions": {}})
            began.append(other.__enter__())
        open_ledger(ledger)

    monkeypatch.setattr(Ledger, "_open", open_late)
    refusal = cli_error("make-c", "--source", photos, "--output", output, *FEW)
    assert refusal == f"{output}: another run is writing here"
    assert (output / ".robustgen" / "settings.json").exists()
    began[1].__exit__(None, None, None)


@pytest.mark.parametrize(
    "entry",
    [
        '{"boot": "x", "run": "last"',
        "{nonsense",
        '{"key": [], "size": 1, "files": {}',
        '{"key": "a", "size": "1"',
    ],
)
def test_a_forged_line_with_a_right_checksum_is_damage(copied, entry):
    seal = f', "crc": "{zlib.crc32(entry.encode()):08x}"}}\n'
    path = copied / ".robustgen" / "journal.jsonl"
    path.write_text(path.read_text() + entry + seal)
    assert any("journal.jsonl" in line for line in findings(copied))


NAMELESS = '{"arms": [[]], "arrays": [], "images": 5, "source": {}}'


@pytest.mark.parametrize("content", ["{}", '{"arms": ["fog/3"]}', '{"arms": 1, "arrays": 2}', NAMELESS])
def test_a_description_without_its_keys_is_damaged(photos, copied, made, content):
    (copied / ".robustgen" / "about.json").write_text(content)
    assert "about.json is damaged: " in cli_error("verify", copied)
    make_c(photos, copied)
    assert findings(copied, "--against", made, status=0) == []


@pytest.mark.parametrize(("name", "value"), [("settings", []), ("counts", 1), ("arms", None), ("kind", {})])
def test_a_manifest_of_other_types_is_refused(copied, name, value):
    path = copied / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    assert cli_error("verify", copied) == f"{path} is none of robustgen's: it has no {name!r}"
