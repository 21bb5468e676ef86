"""The executor of a Ray cluster: nodes that join and die, workers that are killed or have another release."""

import os
import pickle
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import robustgen
from robustgen.errors import ArgumentError, WriteError
from robustgen.plugins.conformance import check_executor
from robustgen.sets.dataset.planning import plan_benchmark
from robustgen.sets.dataset.run import run_plan
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.executors import clusters
from robustgen.settings.config import Config
from tests.helpers import PATIENCE, cli_error, make_c, need_cluster, put_photo, spawn, tree, wait_until
from tests.sets.sources.test_clip_folder import names_of, put_frames, put_video

pytestmark = pytest.mark.slow("starts Ray clusters")

FEW = ("--corruptions", "all", "--severities", "1,2,3,4,5", "--no-clean")


@pytest.fixture(scope="module")
def ray_cluster():
    """A head without cores, to which tests add nodes."""
    need_cluster("ray")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    yield cluster
    cluster.shutdown()


def list_ray_workers():
    """Process numbers of the workers that run a job, from the names that Ray gives them."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if command.read_bytes().startswith(b"ray::run_packed"):
                found.append(int(command.parent.name))
        except OSError:
            continue
    return found


def pause_a_worker():
    """Stop a worker within a job; return whether there was one."""
    for worker in list_ray_workers():
        os.kill(worker, signal.SIGSTOP)
        if worker in list_ray_workers():
            return True
        os.kill(worker, signal.SIGCONT)
    return False


def test_nodes_join_and_die_and_a_worker_is_killed_and_the_set_is_the_same(many, tmp_path, ray_cluster):
    make_c(many, tmp_path / "here", *FEW, "--jobs", "2")
    output = tmp_path / "out"
    cluster = ("--on", f"ray:{ray_cluster.address}")
    process = spawn("make-c", "--source", many, "--output", output, *FEW, *cluster)
    first = ray_cluster.add_node(num_cpus=1)
    wait_until(lambda: [*output.glob("*/*/*/*.JPEG")])
    # Otherwise, the run may end before the second node has started.
    wait_until(pause_a_worker)
    ray_cluster.add_node(num_cpus=1)
    wait_until(lambda: len(list_ray_workers()) == 2)
    os.kill(max(list_ray_workers()), signal.SIGKILL)
    ray_cluster.remove_node(first, allow_graceful=False)
    assert process.poll() is None
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert tree(output) == tree(tmp_path / "here")


def test_clips_of_a_cluster_are_those_of_this_process(tmp_path, ray_cluster):
    put_video(tmp_path / "clips" / "cat" / "a.mp4")
    put_frames(tmp_path / "clips" / "dog" / "b", names_of(6))
    flags = ("--dataset", "clips", "--severities", "5", "--corruptions", "fog,video-c:packet_loss")
    make_c(tmp_path / "clips", tmp_path / "here", *flags, "--jobs", "1")
    ray_cluster.add_node(num_cpus=1)
    make_c(tmp_path / "clips", tmp_path / "out", *flags, "--on", f"ray:{ray_cluster.address}")
    assert tree(tmp_path / "out") == tree(tmp_path / "here")


def test_ray_conforms(ray_cluster):
    ray_cluster.add_node(num_cpus=2)
    check_executor(f"ray:{ray_cluster.address}")


def test_a_cluster_that_does_not_answer_is_named(photos, tmp_path):
    pytest.importorskip("ray")
    for on in ("ray:127.0.0.1:1", "ray:ray://127.0.0.1:1", "ray://127.0.0.1:1"):
        address = "ray://127.0.0.1:1" if "//" in on else "127.0.0.1:1"
        flags = ("--source", photos, "--output", tmp_path / "out", "--on", on)
        assert cli_error("make-c", *flags).startswith(
            f"no Ray cluster answers at {address}; give the address"
        )
    assert not (tmp_path / "out").exists()


TOKENS = """
import os, sys
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "t" * 40}
from ray.cluster_utils import Cluster
print(Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}).address)
sys.stdout.flush()
sys.stdin.read()
"""


def test_a_cluster_with_a_token_says_how_to_give_it(photos, tmp_path):
    pytest.importorskip("ray")
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    head = subprocess.Popen([sys.executable, "-c", TOKENS], **piped, start_new_session=True)
    address = head.stdout.readline().strip()
    few = ("--source", photos, "--output", tmp_path / "out", "--on", f"ray:{address}")
    none, wrong = {"RAY_AUTH_MODE": "token", "HOME": str(tmp_path)}, {"RAY_AUTH_TOKEN": "u" * 40}
    try:
        for given in (none, none | wrong):
            process = spawn("make-c", *few, **given)
            _, errors = process.communicate(timeout=PATIENCE)
            last = errors.decode().splitlines()[-1]
            assert process.returncode == 2 and last.startswith("Error: Ray: ")
            assert "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what `ray get-auth-token` prints" in last
    finally:
        os.killpg(head.pid, signal.SIGKILL)
        head.wait()


class Elsewhere:
    """A cluster whose one worker has another `production` than was sent."""

    def __init__(self, change):
        self.change = change

    def map(self, jobs, reporter):
        return (replace(job, jobs=(*map(self.change, job.jobs),)).run(reporter) for job in jobs)


def open_plan(photos, output):
    return plan_benchmark(Config(source=str(photos), output=str(output), corruptions=("fog",)), "c")


def test_a_worker_with_another_library_or_without_the_paths_refuses(photos, tmp_path):
    gone = put_photo(tmp_path / "away" / "cat" / "a.JPEG")
    away = open_plan(tmp_path / "away", tmp_path / "unseen")
    gone.unlink()
    changes = {
        r"has numpy 2\.\S+, not 1\.0; install": lambda job: replace(
            job, versions={**job.versions, "numpy": "1.0"}
        ),
        r"cannot see \S+/unseen; all workers": lambda job: replace(job, state=SetLedger(away.store)),
        r"cannot see \S+/away; all workers": lambda job: replace(job, source=away.source),
    }
    for expected, change in changes.items():
        with pytest.raises(ArgumentError, match=rf"^the worker on \S+ {expected}"):
            run_plan(open_plan(photos, tmp_path / "out"), cluster=Elsewhere(change))
    assert run_plan(open_plan(photos, tmp_path / "out"), cluster=Elsewhere(lambda job: job)).made


class Told:
    """A job that says where it ran."""

    def run(self, reporter):
        return "done"


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        (None, r"worker on \S+ cannot import robustgen \S+ \(.*\); install it there"),
        (
            "__version__ = '0.0.9'",
            r"worker on \S+ has robustgen 0\.0\.9, this run \S+; install the same version",
        ),
    ],
)
def test_a_worker_without_the_package_or_with_another_release_refuses(tmp_path, package, expected):
    """The task in a process of its own, as Dask and Ray send it."""
    cloudpickle = pytest.importorskip("cloudpickle")
    if package:
        (tmp_path / "robustgen" / "sets" / "executors").mkdir(parents=True)
        (tmp_path / "robustgen" / "__init__.py").write_text(package)
        (tmp_path / "robustgen" / "sets" / "executors" / "__init__.py").write_text("")
        (tmp_path / "robustgen" / "sets" / "executors" / "base.py").write_text("")
    sent = cloudpickle.dumps((clusters.make_task(), b"not to be read", robustgen.__version__))
    hide = "" if package else "sys.modules['robustgen'] = None;"
    code = (
        f"import sys, pickle; sys.path.insert(0, {str(tmp_path)!r}); {hide}"
        "task, *rest = pickle.load(sys.stdin.buffer);"
        "sys.stdout.buffer.write(pickle.dumps(task(*rest)))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    answer = pickle.loads(done.stdout)
    assert re.match(expected, answer[0]) and answer[1] is None
    with pytest.raises(WriteError, match=r"^the cluster: worker on"):
        clusters.take_result(answer, "the cluster")


def test_a_job_with_the_same_release_is_run():
    task = clusters.make_task()
    assert task(pickle.dumps((Told(), None)), robustgen.__version__) == ("", "done")
