"""Who does the work of a run: worker processes that stop, the workers of a Dask cluster that come and go."""

import contextlib
import errno
import io
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from robustgen.errors import WriteError
from robustgen.files.storage import host
from robustgen.plugins.conformance import check_executor
from robustgen.sets.dataset import planning
from robustgen.sets.dataset.unit_jobs import ImageWork
from robustgen.sets.executors import jobs, progress, workers
from robustgen.sets.executors.base import WorkersLostError
from robustgen.sets.executors.jobs import ThisProcess, submit_jobs
from robustgen.sets.executors.processes import Processes
from robustgen.sets.executors.progress import NOBODY
from robustgen.sets.executors.workers import end_idle_workers
from robustgen.sets.formats.base import Encoder
from tests.helpers import (
    cli,
    free_port,
    latest,
    maker,
    put_photo,
    spawn,
    tree,
    until_open,
    wait_until,
    without_beginning,
)
from tests.sets.sources.test_clip_folder import names_of, put_frames, put_video


@dataclass(frozen=True)
class _Tell:
    """Job that returns the number of its process, and a variable of its environment."""

    def run(self, reporter):
        return os.getpid(), os.environ.get("ROBUSTGEN_TEST")


FEW = ("--corruptions", "all", "--severities", "1,4", "--no-clean")


@pytest.fixture(scope="module")
def undisturbed(many, tmp_path_factory):
    output = tmp_path_factory.mktemp("undisturbed") / "out"
    make_c(many, output, "--jobs", "1")
    return tree(output)


@pytest.fixture
def soon_silent(monkeypatch):
    """Silence counts after a second and a half, instead of a minute."""
    monkeypatch.setattr(progress, "SECONDS_OF_SILENCE", 1.5)


make_c = maker(*FEW)


def files_in(root):
    return sum(1 for _ in root.glob("*/*/*/*.JPEG"))


def soon(output, act, files=1):
    """Call `act` in another thread as soon as the run at `output` has written so many files."""

    def wait():
        wait_until(lambda: files_in(output) >= files)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def list_children(process):
    """The numbers of the child processes of a process, and of those of these."""
    lists = Path(f"/proc/{process}/task").glob("*/children")
    found = [int(number) for each in lists for number in each.read_text().split()]
    return [*found, *(child for each in found for child in list_children(each))]


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="needs /proc (Linux) to find the processes"
)


# --- worker processes ----------------------------------------------------------------------------


@pytest.mark.slow("kills workers")
@pytest.mark.parametrize("executor", [ThisProcess(), Processes(2)], ids=["here", "processes"])
def test_executors_of_this_machine_conform(executor):
    check_executor(executor)


@pytest.fixture
def silence(monkeypatch):
    """Is set as soon as a silence has been described; machines differ in how long that takes."""
    described, original = threading.Event(), progress.Progress.describe_silence

    def describe(self):
        described.set()
        return original(self)

    monkeypatch.setattr(progress.Progress, "describe_silence", describe)
    return described


@pytest.mark.slow("waits for silence")
@needs_proc
def test_a_stopped_worker_is_named(many, tmp_path, undisturbed, soon_silent, silence):
    stopped = []
    end_idle_workers()
    # Other tests may have left servers.
    others = {*list_children(os.getpid())}

    def stop():
        stopped.extend({*list_children(os.getpid())} - others)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        # On a busy machine there may have been one before the first output.
        silence.clear()
        silence.wait(60)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)

    thread = soon(tmp_path / "out", stop)
    result = make_c(many, tmp_path / "out", "--jobs", "2")
    thread.join()
    lines = "\n".join(line for line in result.stderr.splitlines() if "no result for" in line)
    # The workers, and the process that forked them.
    assert len(stopped) == 3
    # One of them may not have had its first task yet.
    assert any(re.search(rf"worker \S+:{pid} silent since \d\d:\d\d:\d\d", lines) for pid in stopped)
    assert tree(tmp_path / "out") == undisturbed


@pytest.mark.parametrize("refused", ["Thread-", "ThreadPoolExecutor"])
def test_a_thread_that_cannot_start_is_not_waited_for(many, tmp_path, monkeypatch, refused):
    """The system refuses the threads of the run itself, or those that wait for workers."""
    start = threading.Thread.start

    def refuse(thread):
        if thread.name.startswith(refused):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(host, "find_task_limit", lambda: (10, "pids.max"))
    result = make_c(many, tmp_path / "out", "--jobs", "2", status=1)
    (line,) = without_beginning(result.stderr)
    assert "10 (pids.max)" in line
    assert not tree(tmp_path / "out")


@pytest.mark.parametrize(
    ("number", "reason"), [(errno.EAGAIN, "processes and threads"), (errno.EMFILE, "open files")]
)
def test_a_process_that_cannot_start_is_told_of_in_one_line(many, tmp_path, monkeypatch, number, reason):
    end_idle_workers()

    def refuse(*_, **settings):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(host, "find_task_limit", lambda: (10, "pids.max"))
    result = make_c(many, tmp_path / "out", "--jobs", "2", status=1)
    (line,) = without_beginning(result.stderr)
    assert "2 workers: " in line and reason in line
    assert not (tmp_path / "out").exists()


@pytest.mark.slow("starts workers twice")
def test_workers_are_used_again_and_replaced_when_they_died(monkeypatch):
    def ask():
        answers = [*Processes(2).map([_Tell()] * 8, NOBODY)]
        return {process for process, _ in answers}, {value for _, value in answers}

    end_idle_workers()
    ask()
    before = {*list_children(os.getpid())}
    monkeypatch.setenv("ROBUSTGEN_TEST", "here")
    told, values = ask()
    assert told <= before and values == {"here"}
    for process in before:
        os.kill(process, signal.SIGKILL)
    told, values = ask()
    assert not told & before and values == {"here"}


@dataclass(frozen=True)
class _Rehearsed:
    """Job that returns its process, the parent of that, its folder, a limit and a random number."""

    def rehearse(self):
        os.environ["ROBUSTGEN_REHEARSED"] = "1"

    def run(self, reporter):
        import random
        import resource

        limit = resource.getrlimit(resource.RLIMIT_CORE)[0]
        return os.getpid(), os.getppid(), str(Path.cwd()), limit, random.random()


@needs_proc
@pytest.mark.slow("starts workers several times")
def test_workers_are_forked_by_one_process_that_is_replaced_when_it_died(tmp_path, monkeypatch):
    import resource

    def ask(count=3):
        found = [*Processes(count).map([_Rehearsed()] * 40, NOBODY)]
        return [{*each} for each in zip(*found, strict=True)]

    end_idle_workers()
    processes, parents, *_, draws = ask()
    assert len(parents) == 1 and parents.isdisjoint({os.getpid()}) and len(draws) == 40
    (nursery,) = parents
    assert len([*Path(f"/proc/{nursery}/task").iterdir()]) == 1
    # Neither files of the run nor the ends of the workers' pipes, of which these would never see the end.
    links = [str(each.readlink()) for each in Path(f"/proc/{nursery}/fd").iterdir()]
    assert sum("pipe:" in each for each in links) <= 1 and sum("socket:" in each for each in links) == 1
    # Workers adopt the folder and the limits of a later run.
    monkeypatch.chdir(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    os.kill(nursery, signal.SIGKILL)
    for process in processes:
        os.kill(process, signal.SIGKILL)
    again, others, folders, limits, _ = ask()
    assert again.isdisjoint(processes) and nursery not in others
    assert folders == {str(tmp_path)} and limits == {0}
    resource.setrlimit(resource.RLIMIT_CORE, before)


@pytest.mark.slow("starts workers")
def test_a_variable_has_each_worker_start_by_itself(monkeypatch):
    monkeypatch.setenv(workers.START_METHOD, "spawn")
    end_idle_workers()
    assert {parent for _, parent, *_ in Processes(2).map([_Rehearsed()] * 8, NOBODY)} == {os.getpid()}


@pytest.mark.parametrize(("dataset", "suffix"), [("clips", "frame 0.png"), ("folder", "a.png")])
def test_a_rehearsal_makes_and_encodes_all_that_the_units_do(tmp_path, monkeypatch, dataset, suffix):
    put_photo(tmp_path / "source" / "class" / "one" / suffix, 48, 40)
    encoded, encode = [], Encoder.encode_with_tags

    def record(encoder, variant, key, pixels, tags):
        found = [*encode(encoder, variant, key, pixels, tags)]
        encoded.append((variant.folder, Path(found[0].name).suffix))
        return found

    class Rehearsing:
        def map(self, found, reporter):
            (job,) = found
            job.rehearse()
            rehearsed = sorted(encoded)
            del encoded[:]
            yield job.run(reporter)
            assert rehearsed == sorted(encoded) and len(rehearsed) == 4

    monkeypatch.setattr(Encoder, "encode_with_tags", record)
    monkeypatch.setattr(jobs, "open_executor", lambda *given: Rehearsing())
    which = ("--dataset", dataset, "--format", "original", "--corruptions", "contrast,jpeg_compression")
    make_c(tmp_path / "source", tmp_path / "out", *which, "--severities", "1,3")


@needs_proc
def test_nothing_is_started_where_nothing_is_to_do(many, tmp_path):
    make_c(many, tmp_path / "out", "--jobs", "1", "--limit", "2")
    end_idle_workers()
    make_c(many, tmp_path / "out", "--jobs", "2", "--limit", "2")
    assert not workers._nurseries and not workers._idle


@needs_proc
@pytest.mark.parametrize("flags", [(), ("--jobs", "1"), ("--dry-run",)], ids=["", "one", "dry"])
def test_what_workers_need_is_loaded_while_a_new_set_is_planned(many, tmp_path, monkeypatch, flags):
    begun, plan_benchmark = list[int](), planning.plan_benchmark

    def plan(*given, **options):
        begun.append(len(workers._nurseries))
        return plan_benchmark(*given, **options)

    monkeypatch.setattr(planning, "plan_benchmark", plan)
    for _ in range(2):
        end_idle_workers()
        make_c(many, tmp_path / "out", *latest("--jobs", "2", "--limit", "2", *flags))
    # A finished set may have nothing to do.
    assert begun == [0 if flags else 1, 0]


@dataclass(frozen=True)
class _Draw:
    """Job that returns arrays of several types and layouts, with a megabyte and more in sum."""

    def run(self, reporter):
        draws = np.random.default_rng(0)
        image, odd = draws.integers(0, 256, (700, 500, 3), np.uint8), np.arange(7, dtype=np.uint8)
        constant = np.arange(3.0)
        constant.flags.writeable = False
        floats = draws.normal(size=(9, 11))
        return {"a": [odd, image, floats], "b": (floats.T, image[:, ::2], np.empty((0, 3)), constant, "text")}


@needs_proc
@pytest.mark.parametrize("way", ["mapped", "copied", "piped"])
def test_arrays_of_workers_outlive_them_and_leave_nothing_behind(monkeypatch, way):
    def count_shared():
        return Path("/proc/self/maps").read_text().count("memfd:robustgen")

    if way == "copied":
        monkeypatch.setattr(host, "_MOST_MAPPED", 0)
    if way == "piped":
        monkeypatch.setattr(workers, "CAN_HAND_OVER", False)
    end_idle_workers()
    (found,) = Processes(2).map([_Draw()], NOBODY)
    # Kills the worker.
    end_idle_workers()
    assert count_shared() == (way == "mapped")
    expected = _Draw().run(NOBODY)
    for one, other in zip([*found["a"], *found["b"]], [*expected["a"], *expected["b"]], strict=True):
        assert np.array_equal(one, other) and getattr(one, "dtype", None) == getattr(other, "dtype", None)
    for each in found["a"]:
        assert each.flags.aligned and each.flags.writeable
        each[:] = 0
    del found, one, each
    assert not count_shared()
    assert not [*Path("/dev/shm").glob("*robustgen*")]


def test_arrays_that_cannot_be_handed_over_are_piped():
    mine, theirs = socket.socketpair()
    theirs.close()
    with mine:
        packed = io.BytesIO(workers._pack(_Draw().run(NOBODY), mine))
    assert not pickle.load(packed) and np.array_equal(
        pickle.load(packed)["a"][1], _Draw().run(NOBODY)["a"][1]
    )


@pytest.mark.skipif(sys.platform != "linux", reason="tells limits of Linux")
def test_the_lowest_limit_of_processes_is_named(tmp_path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_NPROC)
    lowest = min(host.find_task_limit()[0], 100_000) - 1
    resource.setrlimit(resource.RLIMIT_NPROC, (lowest, before[1]))
    try:
        found = host.explain_refusal(BlockingIOError(errno.EAGAIN, "refused"))
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, before)
    assert f"{lowest} (ulimit -u)" in found


@pytest.mark.parametrize(("finished", "ends"), [(1, True), (0, False)])
def test_workers_may_die_as_often_as_they_like_while_jobs_are_finished(finished, ends):
    def die_after_some(jobs, reporter):
        yield from jobs[:finished]
        raise WorkersLostError("a worker died")

    silent = SimpleNamespace(forget_workers=lambda: None, reporter=None)
    results = submit_jobs(dict(enumerate(range(5))), int, 2, silent, SimpleNamespace(map=die_after_some))
    with contextlib.nullcontext() if ends else pytest.raises(WriteError, match="workers keep dying"):
        assert [*results] == [*range(5)]


@pytest.mark.slow("starts workers twice")
@needs_proc
def test_nothing_is_printed_about_killed_processes_but_one_line(many, tmp_path, undisturbed):
    """All child processes are killed."""
    process = spawn("make-c", "--source", many, "--output", tmp_path / "out", *latest(*FEW, "--jobs", "2"))
    wait_until(lambda: files_in(tmp_path / "out"), process)
    for pid in list_children(process.pid):
        os.kill(pid, signal.SIGKILL)
    _, told = process.communicate()
    lines = without_beginning(told.decode())
    assert len(lines) == 1 and "worker died" in lines[0]
    assert tree(tmp_path / "out") == undisturbed


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_output_that_vanishes_is_named_as_lost(many, tmp_path, jobs):
    """As if the file system of the output was unmounted: an empty folder is left."""
    output = tmp_path / "out"
    output.mkdir()

    def unmount():
        output.rename(tmp_path / "unmounted")
        output.mkdir()

    thread = soon(output, unmount)
    result = make_c(many, output, "--jobs", jobs, status=1)
    thread.join()
    (line,) = without_beginning(result.stderr)
    assert line.startswith(f"Error: {output}: ") and "unmounted" in line
    assert not [*output.iterdir()]


# --- Dask ----------------------------------------------------------------------------------------


class Cluster:
    """A scheduler, and workers of one thread that can be added."""

    def __init__(self, dask, home):
        self._dask, self._home, self._port = dask, home, free_port()
        self.address = f"tcp://127.0.0.1:{self._port}"
        self.flags = ("--on", f"dask:{self.address}")
        self.scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", self._port, "--no-dashboard")
        until_open(self._port)

    def add_worker(self, nanny="--no-nanny"):
        few = ("--nworkers", 1, "--nthreads", 1, nanny, "--no-dashboard")
        place = ("--host", "127.0.0.1", "--local-directory", self._home)
        return self._dask("worker", self.address, *few, *place)


@pytest.fixture
def cluster(dask, tmp_path):
    return Cluster(dask, tmp_path / "dask")


def test_clips_of_a_cluster_are_those_of_this_process(tmp_path, cluster):
    pytest.importorskip("av")
    put_video(tmp_path / "clips" / "cat" / "a.mp4")
    put_frames(tmp_path / "clips" / "dog" / "b", names_of(6))
    flags = ("--dataset", "clips", "--severities", "5", "--corruptions")
    flags += ("fog,video-c:h265_crf,video-c:bit_error,video-c:packet_loss,video-c:frame_rate",)
    flags = ("make-c", "--source", tmp_path / "clips", *flags, "--output")
    cli(*flags, tmp_path / "here", "--jobs", "1")
    cluster.add_worker("--nanny")
    cli(*flags, tmp_path / "out", *cluster.flags)
    assert tree(tmp_path / "out") == tree(tmp_path / "here")


def test_dask_conforms(cluster):
    cluster.add_worker("--nanny")
    check_executor(f"dask:{cluster.address}")


def test_the_only_worker_of_a_cluster_joins_late_and_does_all_the_work(
    many, tmp_path, undisturbed, cluster, soon_silent, silence, monkeypatch
):
    monkeypatch.setattr(ImageWork, "write_variant", lambda *_: pytest.fail("work is done in the client"))

    def join():
        silence.wait(60)
        cluster.add_worker()

    threading.Thread(target=join, daemon=True).start()
    result = make_c(many, tmp_path / "out", *cluster.flags)
    assert re.search(r"no result for \d+ s: no worker ", result.stderr)
    assert tree(tmp_path / "out") == undisturbed


def test_a_second_worker_that_joins_late_gets_work(many, tmp_path, undisturbed, cluster, monkeypatch):
    first, seen, listen = cluster.add_worker(), set(), progress.Progress._listen
    second = []

    def note(self):
        listen(self)
        seen.update(int(worker.rpartition(":")[2]) for worker in self._heard)

    monkeypatch.setattr(progress.Progress, "_listen", note)

    def join_then_kill_the_first():
        # Else it might do all the work before the second one is there.
        first.send_signal(signal.SIGSTOP)
        second.append(cluster.add_worker())
        wait_until(lambda: second[0].pid in seen)
        first.kill()

    thread = soon(tmp_path / "out", join_then_kill_the_first)
    make_c(many, tmp_path / "out", *cluster.flags)
    thread.join()
    assert {first.pid, second[0].pid} <= seen
    assert tree(tmp_path / "out") == undisturbed


def test_a_scheduler_that_dies_is_told_of_in_one_line(many, tmp_path, undisturbed, cluster):
    cluster.add_worker()
    soon(tmp_path / "out", cluster.scheduler.kill)
    result = make_c(many, tmp_path / "out", *cluster.flags, status=1)
    lost = f"Error: the Dask scheduler at {cluster.address} is lost; run the same command to resume"
    assert without_beginning(result.stderr) == [lost]
    make_c(many, tmp_path / "out", "--jobs", "1")
    assert tree(tmp_path / "out") == undisturbed
