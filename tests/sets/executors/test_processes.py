"""joblib fans out the jobs: to processes of our own, or to the backend that the caller has chosen."""

import os
import signal
import time
from dataclasses import dataclass

import pytest
from joblib import Parallel, delayed, parallel_config

import robustgen
from robustgen.sets.executors.processes import Processes
from robustgen.sets.executors.progress import NOBODY
from tests.helpers import tree


@dataclass(frozen=True)
class _Square:
    """Job that returns a square, and the number of its process."""

    number: int

    def run(self, reporter):
        return self.number**2, os.getpid()


JOBS = [_Square(number) for number in range(40)]


def test_all_results_arrive_and_joblib_remains_as_it_was():
    answers = [*Processes(2).map(JOBS, NOBODY)]
    assert sorted(square for square, _ in answers) == [each.number**2 for each in JOBS]
    assert os.getpid() not in {process for _, process in answers}
    assert Parallel(2, backend="threading")(delayed(abs)(each) for each in (-1, 2)) == [1, 2]
    assert [*Processes(2).map([], NOBODY)] == []


def test_few_results_wait_for_those_who_take_them_slowly():
    handed_out = []

    def count():
        for job in JOBS:
            handed_out.append(job)
            yield job

    results = Processes(2).map(count(), NOBODY)
    next(results)
    time.sleep(0.5)
    assert len(handed_out) <= 13
    assert len([*results]) == len(JOBS) - 1


@pytest.mark.parametrize(
    "backend", ["threading", "multiprocessing", pytest.param("loky", marks=pytest.mark.slow("starts loky"))]
)
def test_the_backend_of_the_caller_writes_the_same_bytes(photos, tmp_path, backend):
    few = {"corruptions": "contrast,gaussian_noise", "severities": (1,), "quiet": True}
    # Commands of other tests leave a handler; with one, a child that is being forked loses the signal to end.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    robustgen.make_c(source=photos, output=tmp_path / "own", jobs=2, **few)
    with parallel_config(backend=backend):
        processes = {process for _, process in Processes(2).map(JOBS, NOBODY)}
        robustgen.make_c(source=photos, output=tmp_path / "theirs", jobs=2, **few)
    assert (processes == {os.getpid()}) == (backend == "threading")
    assert tree(tmp_path / "own") == tree(tmp_path / "theirs")
