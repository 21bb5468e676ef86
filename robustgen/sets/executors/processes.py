"""Executors on this machine: this process, or worker processes."""

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Final

from robustgen.errors import WriteError
from robustgen.files.storage.host import explain_refusal, hold_back_interrupts
from robustgen.pixels.imaging.kernels import call_before_compiling
from robustgen.sets.executors.base import Job, Result, WorkersLostError, wait_for_any
from robustgen.sets.executors.progress import NOBODY, Reporter

_LIBRARIES: Final = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")
_ONE_THREAD: Final = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}
# Unlike a process of multiprocessing, it does not import the script of the user.
_START: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; from robustgen.sets.executors import worker; worker.serve()"
)


class ThisProcess:
    """Executor in this process."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield the result of each job, in order."""
        call_before_compiling(reporter.tell_compiling)
        for job in jobs:
            yield job.run(reporter)


@dataclass(frozen=True)
class Processes:
    """Executor in `count` processes of this machine."""

    count: int

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield each result as its job finishes.

        Raises
        ------
        WorkersLostError
            A worker died.
        WriteError
            The system refuses to start the workers.
        """
        free = SimpleQueue[_Worker]()

        def call(job: Job[Result]) -> Result:
            worker = free.get()
            try:
                result: Result = worker.call(job, reporter)
                return result
            finally:
                free.put(worker)

        try:
            with ThreadPoolExecutor(self.count) as threads, _borrow_workers(self.count) as workers:
                for worker in workers:
                    free.put(worker)
                for task in wait_for_any((threads.submit(call, job) for job in jobs), 3 * self.count):
                    yield task.result()
        except (OSError, RuntimeError) as error:
            if not (reason := explain_refusal(error)):
                raise
            raise WriteError(f"cannot start {self.count} workers: {reason}") from error


@dataclass(frozen=True)
class _Adopt:
    """Job that gives a worker the environment and the search path of this process."""

    environment: dict[str, str]
    path: list[str]

    def run(self, reporter: Reporter) -> None:
        os.environ.clear()
        os.environ.update(self.environment)
        sys.path[:] = self.path


class _Worker:
    """Worker process; it ends when its standard input is closed, so with this process at the latest."""

    def __init__(self) -> None:
        # A forked copy of this process has no share in it.
        self.owner = os.getpid()
        command, pipe = [sys.executable, "-c", _START, *sys.path], subprocess.PIPE
        with hold_back_interrupts():
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, env={**os.environ, **_ONE_THREAD}
            )
        assert self._process.stdin and self._process.stdout
        self._jobs, self._results = self._process.stdin, self._process.stdout

    def call(self, job: Job[Any], reporter: Reporter) -> Any:
        """Return the result of a job."""
        packed = pickle.dumps((job, reporter))
        try:
            pickle.dump(packed, self._jobs)
            self._jobs.flush()
            result, error, trace = pickle.load(self._results)
        except (OSError, EOFError, pickle.UnpicklingError) as lost:
            raise WorkersLostError("a worker died (killed, or out of memory)") from lost
        if error:
            raise error from RuntimeError(f"in a worker:\n{trace}")
        return result

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._jobs.close()
        self._results.close()


_idle = list[_Worker]()
"""Workers of earlier runs, which start at once; they end themselves after five minutes."""


@contextmanager
def _borrow_workers(count: int) -> Iterator[list[_Worker]]:
    """Yield so many workers, which are ended if the block fails and otherwise kept for later."""
    workers = list[_Worker]()
    try:
        while len(workers) < count:
            workers.append(_take_idle() or _Worker())
        yield workers
    except BaseException:
        for worker in workers:
            worker.end()
        raise
    _idle.extend(workers)


def _take_idle() -> _Worker | None:
    """Return an idle worker that still answers, if there is one."""
    adopt = _Adopt({**os.environ, **_ONE_THREAD}, [*sys.path])
    with suppress(IndexError):
        while True:
            worker = _idle.pop()
            with suppress(WorkersLostError):
                if worker.owner == os.getpid():
                    worker.call(adopt, NOBODY)
                    return worker
    return None


@atexit.register
def end_idle_workers() -> None:
    """End the workers that wait for jobs."""
    with suppress(IndexError):
        while True:
            worker = _idle.pop()
            if worker.owner == os.getpid():
                worker.end()
