"""Executors on this machine: this process, or worker processes of joblib."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import active_children
from typing import Any, Final

from robustgen.errors import WriteError
from robustgen.execution.base import Job, Result, WorkersLostError, run_job, wait_for_any
from robustgen.execution.progress import Reporter
from robustgen.files.storage.host import can_start, explain_task_limit, hold_back_interrupts, is_refused_task
from robustgen.files.storage.memory import collect_garbage_rarely, keep_freed_memory

_LIBRARIES: Final = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")
_ONE_THREAD: Final = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}
_SECONDS_IDLE: Final = 300
# Processes and threads of a pool and of each worker, one of them for requests to servers.
_TASKS, _TASKS_OF_WORKER = 4, 3


class ThisProcess:
    """Executor in this process."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield the result of each job, in order."""
        return (run_job(job, reporter) for job in jobs)


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
        # `joblib.Parallel` would wait for ever for workers if its own thread cannot start another.
        from joblib.externals.loky import get_reusable_executor
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        _silence_loky()
        # Workers of an earlier run are used again.
        if not active_children() and not can_start(_TASKS + _TASKS_OF_WORKER * self.count):
            raise self._refuse()
        start = {"initializer": _start_worker, "initargs": (os.getpid(),), "env": _ONE_THREAD}
        pool = get_reusable_executor(self.count, timeout=_SECONDS_IDLE, **start)

        def submit(job: Job[Result]) -> Future[Result]:
            with hold_back_interrupts():
                task: Future[Result] = pool.submit(run_job, job, reporter)
                return task

        try:
            with _notice_refused_threads() as check:
                for task in wait_for_any(map(submit, jobs), 3 * self.count, check):
                    yield task.result()
        except TerminatedWorkerError as error:
            raise WorkersLostError("a worker died (killed, or out of memory)") from error
        except BaseException as error:
            if not is_refused_task(error):
                pool.shutdown(kill_workers=True)
                raise
            # The thread that ends workers may not have started.
            for worker in active_children():
                worker.terminate()
            pool.shutdown(wait=False)
            raise self._refuse() from error

    def _refuse(self) -> WriteError:
        fewer = ", or try fewer --jobs" * (self.count > 1)
        return WriteError(f"cannot start {self.count} workers: {explain_task_limit()}{fewer}")


@cache
def _silence_loky() -> None:
    """Hide what loky prints about processes that were killed, or that it replaces as they grow by 300 MB."""
    from joblib.externals.loky.backend import resource_tracker

    start = resource_tracker.spawnv_passfds

    def start_silently(path: str, args: list[str], descriptors: list[int]) -> Any:
        return start(path, [*args[:-1], f"import sys; sys.stderr = None; {args[-1]}"], descriptors)

    resource_tracker.spawnv_passfds = start_silently
    for message in ("resource_tracker: process died", "A worker stopped while some jobs"):
        warnings.filterwarnings("ignore", message, UserWarning)


@contextmanager
def _notice_refused_threads() -> Iterator[Callable[[], None]]:
    """Yield a check that raises the error of a thread that could not start another."""
    refused, before = list[BaseException](), threading.excepthook

    def notice(failure: Any) -> None:
        refused.append(failure.exc_value) if is_refused_task(failure.exc_value) else before(failure)

    def check() -> None:
        if refused:
            raise refused[0]

    threading.excepthook = notice
    try:
        yield check
    finally:
        if threading.excepthook is notice:
            threading.excepthook = before


def _start_worker(parent: int) -> None:
    """Prepare a worker process: ignore Ctrl-C, and exit when the parent process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_garbage_rarely()
    keep_freed_memory()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    try:
        threading.Thread(target=watch, daemon=True).start()
    except RuntimeError:
        # The parent process notices, and names the limit.
        os._exit(1)
