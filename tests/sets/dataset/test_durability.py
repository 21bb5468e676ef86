"""What a run survives: kills, full disks, power cuts, signals, workers of a cluster that die."""

import contextlib
import errno
import gc
import hashlib
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from robustgen.cli import flags as cli_flags
from robustgen.files.storage import host, open_store
from robustgen.pixels.imaging.colour import Hsv
from robustgen.sets.dataset import plan
from robustgen.sets.dataset.state import SetLedger
from tests.helpers import (
    CIFAR,
    FEW,
    FEW_VARIANTS,
    PATIENCE,
    cli,
    cli_error,
    findings,
    free_port,
    give_way,
    litter,
    make_c,
    pictures,
    until_under_way,
    wait_until,
    whole,
    without_beginning,
)

MANY = ("--corruptions", "all", "--no-clean", "--jobs", "2")


@pytest.fixture(scope="module")
def undisturbed_many(many, tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed") / "out"
    make_c(many, root, *MANY)
    return whole(root)


# --- configs that differ -------------------------------------------------------------------------


def refused(photos, root, *flags):
    before = whole(root)
    message = cli_error("make-c", "--source", photos, "--output", root, *FEW, *flags)
    assert whole(root) == before and message.endswith("Choose another output, or start over with --overwrite")
    return message


@pytest.mark.parametrize(
    ("flags", "difference"),
    [
        (("--seed", "7"), "created with different settings: seed was 0 and is now 7. "),
        (("--quality", "90"), "output.quality was 85 and is now 90"),
        (("--edition", "imagenet-64"), "edition was 'folder' and is now 'imagenet-64'"),
        (("--set", "constants_for=64"), "scale was 'nearest' and is now 64"),
    ],
    ids=str,
)
def test_another_config_is_refused_with_the_difference(photos, output, flags, difference):
    assert difference in refused(photos, output, *flags)


def test_another_constant_is_refused_with_the_difference(photos, output, tmp_path):
    (tmp_path / "my.yaml").write_text("parameters: {gaussian_noise: {4: {sigma: 0.5}}}")
    message = refused(photos, output, "--config", tmp_path / "my.yaml")
    assert "parameters.gaussian_noise/4.224.sigma was 0.26 and is now 0.5" in message


def test_another_version_of_a_library_is_refused_with_the_difference(photos, output, monkeypatch):
    versions = plan.list_versions()
    monkeypatch.setattr(plan, "list_versions", lambda _: versions | {"scipy": "9.9"})
    assert f"versions.scipy was '{versions['scipy']}' and is now '9.9'" in refused(photos, output)


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
        for name in ("open", "write"):
            monkeypatch.setattr(os, name, getattr(self, name)(getattr(os, name)))
        monkeypatch.setattr(os, "fdopen", self.fdopen)

    def open(self, real):
        def call(path, flags, *mode, **options):
            if flags & os.O_CREAT and self.written >= self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return real(path, flags, *mode, **options)

        return call

    def write(self, real):
        def call(*file_and_data):
            *file, data = file_and_data
            if self.written >= self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done = real(*file, data[: self.room - self.written])
            self.written += done
            return done

        return call

    def fdopen(self, number, mode, buffering=-1):
        disk = self

        class File(io.FileIO):
            def write(self, data):
                return disk.write(super().write)(data)

        if "w" not in mode:
            return io.FileIO(number, mode.replace("b", ""))
        return io.BufferedRandom(File(number, "w+"), max(1, buffering))


def bytes_needed(source, root, *flags):
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, room=10**12)
        make_c(source, root, *flags)
    return disk.written


def run_on_full_disk(room, source, root, *flags):
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, room)
        result = make_c(source, root, *flags, status=1)
    (line,) = without_beginning(result.stderr)
    assert line == f"Error: {root}: No space left on device"
    assert not litter(root)


def records_hold(root):
    """Whether all files that records tell of are there, byte for byte."""
    store = open_store(root)
    records = [record for _, record in SetLedger(store).read_records()]
    for file in (file for record in records for file in record.files):
        data = store.read(file.path)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file.size, file.sha256)
    return len(records)


@pytest.mark.slow("fills the disk at every write")
def test_a_full_disk_is_told_in_one_line_and_costs_nothing_later(photos, output, tmp_path):
    needed = bytes_needed(photos, tmp_path / "needed", *FEW)
    settings = (output / ".robustgen" / "settings.json").stat().st_size
    last = needed - (output / "dataset.json").stat().st_size
    rooms = [*np.linspace(settings + 1, last, 12).astype(int), last - 1, last + 10, needed - 1]
    for number, room in enumerate(rooms):
        root = tmp_path / f"{number}"
        run_on_full_disk(room, photos, root, *FEW)
        records_hold(root)
        assert not (root / "dataset.json").exists() or whole(root) == whole(output)
        make_c(photos, root, *FEW)
        assert whole(root) == whole(output)
        assert not litter(root)


def test_a_disk_that_is_full_before_the_run_begins(photos, output, tmp_path):
    run_on_full_disk(100, photos, tmp_path / "out", *FEW)
    assert not [*(tmp_path / "out").rglob("*")]
    make_c(photos, tmp_path / "out", *FEW)
    assert whole(tmp_path / "out") == whole(output)


@pytest.mark.slow("fills the disk at every write")
def test_a_full_disk_under_arrays(cifar, cifar_output, tmp_path):
    needed = bytes_needed(cifar[0], tmp_path / "needed", *CIFAR)
    for number, share in enumerate((0.2, 0.5, 0.9)):
        root = tmp_path / f"{number}"
        run_on_full_disk(int(needed * share), cifar[0], root, *CIFAR)
        make_c(cifar[0], root, *CIFAR)
        assert whole(root) == whole(cifar_output)
        assert not litter(root)


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


@pytest.mark.slow("fills the disk at every write")
def test_no_room_for_records(many, tmp_path):
    make_c(many, tmp_path / "one", *FEW)
    sizes = sorted({f.stat().st_size for f in tmp_path.rglob("*") if f.is_file()})
    for number, size in enumerate(np.linspace(sizes[0] + 10, sizes[-1] - 5, 5).astype(int)):
        root = tmp_path / f"{number}"
        with no_file_over(int(size)):
            result = make_c(many, root, *FEW, status=1)
        assert without_beginning(result.stderr) == [f"Error: {root}: File too large"]
        assert not litter(root)
        make_c(many, root, *FEW)
        assert whole(root) == whole(tmp_path / "one")


def test_no_room_for_what_verify_writes(copied, output):
    (copied / "dataset.json").unlink()
    (copied / ".robustgen" / "finished").unlink()
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, 300)
        result = cli("verify", copied, status=1)
    assert len(result.stderr.splitlines()) == 1 and "No space left on device" in result.stderr
    assert findings(copied, status=0) == []
    assert whole(copied) == whole(output)


# --- a power cut ---------------------------------------------------------------------------------


def files_of(root, key):
    stem = Path(key).with_suffix("").as_posix()
    return [path for variant in FEW_VARIANTS for path in (root / variant).glob(f"{stem}.*")]


def cut_off(path, kept):
    """Lose the file at `path`, or all but its first bytes."""
    path.unlink() if kept is None else path.write_bytes(path.read_bytes()[:kept])


@pytest.mark.parametrize("kept", [None, 0, 100])
def test_after_a_power_cut_what_is_not_whole_is_made_again(photos, copied, output, kept):
    """Records reached the disk, and some of the files that they name did not, or not all of their bytes."""
    (copied / "dataset.json").unlink()
    lost = [*files_of(copied, "cat/c.png"), *files_of(copied, "dog/a.JPEG")[:2]]
    for path in lost:
        cut_off(path, kept)
    lost = [*files_of(copied, "cat/c.png"), *files_of(copied, "dog/a.JPEG")]
    stamps = {path: path.stat().st_ino for path in copied.rglob("*.[Jj][Pp]*")}
    # Both images are made again in all variants, and no other.
    assert make_c(photos, copied, *FEW).stdout.startswith("10 images in ")
    assert whole(copied) == whole(output)
    assert all(path.stat().st_ino == inode for path, inode in stamps.items() if path not in lost)


@pytest.mark.parametrize("kept", [None, 0, -20])
def test_records_that_did_not_reach_the_disk_are_made_again(photos, copied, output, kept):
    (copied / "dataset.json").unlink()
    for path in sorted((copied / ".robustgen" / "records").iterdir())[1:3]:
        cut_off(path, kept)
    assert make_c(photos, copied, *FEW).stdout.startswith("10 images in ")
    assert whole(copied) == whole(output)
    assert findings(copied, status=0) == []


def test_small_files_cut_off_by_a_power_cut(photos, copied, output):
    # All that is not waited for may be empty afterwards, as long as dataset.json is not there.
    (copied / "dataset.json").unlink()
    for path in [*copied.rglob("SHA256SUMS"), *(copied / ".robustgen" / "plans").iterdir()]:
        path.write_bytes(b"")
    (copied / ".robustgen" / "finished").write_bytes(b"")
    make_c(photos, copied, *FEW)
    assert whole(copied) == whole(output)
    assert findings(copied, status=0) == []


# --- killed --------------------------------------------------------------------------------------


# Above the highest number that Linux gives a process; that of an ended one would soon be another's.
DEAD = 2**22 + 1


def snapshots(source, root, *flags):
    """Copies of the output at `root` just before and after each renaming: what a kill there leaves behind."""
    taken = []

    def snap():
        taken.append(Path(shutil.copytree(root, root.parent / f"{len(taken)}", symlinks=True)))
        for path in litter(taken[-1]):
            # As if this process were dead.
            path.rename(path.with_name(path.name.replace(f"-{os.getpid()}-", f"-{DEAD}-")))

    def around(real):
        def call(*names, **folders):
            snap()
            try:
                return real(*names, **folders)
            finally:
                snap()

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", around(os.replace))
        patch.setattr(os, "link", around(os.link))
        # The copies take as long as a slow folder, into which several files are written at once.
        patch.setattr("robustgen.files.storage.local._SLOW", 60)
        make_c(source, root, *flags)
    return taken


TWO = (*FEW, "--limit", "2")


@pytest.mark.slow("kills many runs")
@pytest.mark.parametrize(
    ("earlier", "flags"),
    [
        ((), (*TWO, "--corruptions", "contrast")),
        ((*TWO, "--corruptions", "contrast"), TWO),
        ((*TWO, "--shard", "2/2"), (*TWO, "--shard", "1/2")),
        ((), (*CIFAR, "--limit", "3", "--corruptions", "contrast")),
    ],
    ids=["first run", "later run", "shard", "arrays"],
)
def test_killed_at_any_point(photos, cifar, tmp_path, earlier, flags):
    source = cifar[0] if "cifar-10" in flags else photos
    if earlier:
        make_c(source, tmp_path / "out", *earlier)
    taken = snapshots(source, tmp_path / "out", *flags)
    assert len(taken) >= 20
    for root in taken:
        make_c(source, root, *flags)
        assert whole(root) == whole(tmp_path / "out")
        assert not litter(root)


def alive(session):
    """The processes of a session, but for zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, own = stat.read_text().rpartition(") ")[2].split()[:4]
            if int(own) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


def start(*args):
    """The command line in a session of its own, which its workers share; they must not hold our pipes."""
    command = [sys.executable, "-m", "robustgen", *map(str, args)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, start_new_session=True, **quiet)
    give_way(process)
    return process


@pytest.mark.slow("stops runs of workers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal(many, tmp_path, undisturbed_many, number):
    process = start("make-c", "--source", many, "--output", tmp_path / "out", *MANY)
    until_under_way(process, tmp_path / "out")
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    assert len(pictures(tmp_path / "out")) < 24 * 19 * 5, "it went on after it was asked to stop"
    assert without_beginning(errors.decode()) == ["stopped; run the same command to resume"]
    wait_until(lambda: not alive(process.pid))
    assert not litter(tmp_path / "out")
    make_c(many, tmp_path / "out", *MANY)
    assert whole(tmp_path / "out") == undisturbed_many


@pytest.fixture
def signals():
    """Whatever a command changes for signals, and the memory of one, is put back."""
    numbers = signal.SIGINT, signal.SIGTERM
    handlers, hooks = [*map(signal.getsignal, numbers)], (threading.excepthook, sys.unraisablehook)
    yield
    host.remember()
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)
    threading.excepthook, sys.unraisablehook = hooks


def test_an_interrupt_that_something_swallows_ends_the_run(many, tmp_path, signals, monkeypatch):
    def swallow(*args, **named):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except KeyboardInterrupt as error:
            raise ValueError("half of a loop") from error

    monkeypatch.setattr(Hsv, "change", swallow)
    flags = ("--corruptions", "saturate,fog", "--severities", "1", "--jobs", "1", "--no-clean")
    result = cli("make-c", "--source", many, "--output", tmp_path / "out", *flags, status=143)
    assert without_beginning(result.stderr) == ["stopped; run the same command to resume"]
    assert not (tmp_path / "out" / "errors.jsonl").exists() and not pictures(tmp_path / "out" / "saturate")
    monkeypatch.undo()
    cli("make-c", "--source", many, "--output", tmp_path / "out", *flags)
    assert len(pictures(tmp_path / "out")) == 48


def test_an_interrupt_that_breaks_an_import_is_no_error_of_its_own(many, tmp_path, signals, monkeypatch):
    def half_import(*args, **settings):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt as error:
            raise ImportError("IMPORTANT: PLEASE READ THIS FOR ADVICE") from error

    monkeypatch.setattr(cli_flags, "load", half_import)
    result = cli("make-c", "--source", many, "--output", tmp_path / "out", status=130)
    assert without_beginning(result.stderr) == ["stopped; run the same command to resume"]


def test_an_interrupt_before_the_command_begins_is_one_line():
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'robustgen.cli.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from robustgen.cli import main"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.slow("a run with worker processes")
def test_closed_streams_do_not_matter(many, tmp_path):
    closed = "<&- >&- 2>&-"
    flags = f"--source {many} --output {tmp_path}/out --corruptions fog --severities 1 --jobs 2 --limit 4"
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m robustgen make-c {flags} {closed}"], timeout=120)
    assert done.returncode == 0
    assert len(pictures(tmp_path / "out")) == 8


# --- Dask ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{}", "nowhere", "foo://bar:1"])
def test_a_scheduler_that_does_not_answer(photos, tmp_path, dask, monkeypatch, address):
    from distributed import Client, default_client

    # Not ten seconds.
    monkeypatch.setattr("distributed.Client", lambda place, **few: Client(place, **few | {"timeout": "0.5s"}))
    address = address.format(free_port())
    flags = ("--source", photos, "--output", tmp_path / "out", *FEW, "--on", f"dask:{address}")
    assert f"no Dask scheduler answers at {address}" in cli_error("make-c", *flags)
    # Dask would use a client that is left for everything that this process computes.
    with pytest.raises(ValueError):
        default_client()
    # Were a client that never came up collected in the thread of the next one, Dask would wait for itself.
    gc.collect()
