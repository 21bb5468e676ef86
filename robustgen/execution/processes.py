"""Executors on this machine: this process, or worker processes of joblib."""

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from robustgen.execution.base import Job, Result, WorkersLostError, run_job
from robustgen.execution.progress import Reporter
from robustgen.files.storage.host import hold_back_interrupts
from robustgen.files.storage.memory import collect_garbage_rarely, keep_freed_memory


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
        """Yield each result as its job finishes; raise a WorkersLostError if a worker dies."""
        from joblib import Parallel, delayed, parallel_config
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        # loky's resource tracker prints useless warnings about killed workers.
        os.environ.setdefault(
            "PYTHONWARNINGS", "ignore::UserWarning:joblib.externals.loky.backend.resource_tracker"
        )
        start = {"initializer": _start_worker, "initargs": (os.getpid(),)}
        try:
            with parallel_config(backend="loky", inner_max_num_threads=1, **start):
                parallel = Parallel(
                    n_jobs=self.count, return_as="generator_unordered", pre_dispatch="3*n_jobs"
                )
                with hold_back_interrupts():
                    results = parallel(delayed(run_job)(job, reporter) for job in jobs)
                yield from results
        except TerminatedWorkerError as error:
            raise WorkersLostError("a worker died (killed, or out of memory)") from error


def _start_worker(parent: int) -> None:
    """Prepare a worker process: ignore Ctrl-C, and exit when the parent process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_garbage_rarely()
    keep_freed_memory()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
