"""Who does the work of a run: worker processes that stop, the workers of a Dask cluster that come and go."""

import os
import re
import signal
import threading
import time
from multiprocessing import active_children

import pytest

from robustgen.dataset.produce import ImageWork
from robustgen.execution import progress
from robustgen.execution.processes import Processes, ThisProcess
from robustgen.inspection.conformance import check_executor
from tests.helpers import cli, free_port, tree, until_open, without_beginning

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


def make_c(source, output, *flags, status=0):
    return cli("make-c", "--source", source, "--output", output, *FEW, *flags, status=status)


def files_in(root):
    return sum(1 for _ in root.glob("*/*/*/*.JPEG"))


def soon(output, act, files=1, seconds=30):
    """Call `act` in another thread as soon as the run at `output` has written so many files."""

    def wait():
        deadline = time.monotonic() + seconds
        while files_in(output) < files and time.monotonic() < deadline:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


# --- worker processes ----------------------------------------------------------------------------


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


def test_a_stopped_worker_is_named(many, tmp_path, undisturbed, soon_silent, silence):
    stopped = []

    def stop():
        stopped.extend(child.pid for child in active_children())
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
    assert len(stopped) == 2
    # One of them may not have had its first task yet.
    assert any(re.search(rf"worker \S+:{pid} silent since \d\d:\d\d:\d\d", lines) for pid in stopped)
    assert tree(tmp_path / "out") == undisturbed


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


def test_dask_conforms(cluster):
    cluster.add_worker("--nanny")
    check_executor(f"dask:{cluster.address}")


def test_the_only_worker_of_a_cluster_joins_late_and_does_all_the_work(
    many, tmp_path, undisturbed, cluster, soon_silent, silence, monkeypatch
):
    monkeypatch.setattr(ImageWork, "make", lambda *_: pytest.fail("work is done in the client"))

    def join():
        silence.wait(60)
        cluster.add_worker()

    threading.Thread(target=join, daemon=True).start()
    result = make_c(many, tmp_path / "out", *cluster.flags)
    assert re.search(r"no result for \d+ s: no worker has reported yet", result.stderr)
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
        deadline = time.monotonic() + 60
        while second[0].pid not in seen and time.monotonic() < deadline:
            time.sleep(0.05)
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
