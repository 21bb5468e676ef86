"""Jobs in processes of this machine, which joblib fans out."""

import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain
from queue import SimpleQueue
from typing import Any

from joblib import Parallel, delayed
from joblib.parallel import ParallelBackendBase, get_active_backend

from robustgen.errors import WriteError
from robustgen.files.storage.host import explain_refusal
from robustgen.sets.executors.base import Job, Result, WorkersLostError, run_job
from robustgen.sets.executors.progress import Reporter
from robustgen.sets.executors.workers import Worker, borrow_workers, keep_workers


@dataclass(frozen=True)
class Processes:
    """Executor in `count` processes of this machine, or in the workers of the caller's joblib backend.

    joblib fans out the jobs, to processes of robustgen's own unless the caller has chosen a backend with
    `joblib.parallel_config`.
    """

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
        left, started, taken = iter(jobs), 0, 0
        first = next(left, None)
        if first is None:
            return
        left = chain([first], left)

        def hand_out() -> Iterator[Any]:
            nonlocal started
            for job in left:
                started += 1
                yield delayed(run_job)(job, reporter)
                # joblib does not wait for those who take the results, which would fill the memory.
                if started - taken >= 2 * ahead:
                    return

        ahead, before = 3 * self.count, -1
        backend = _find_chosen_backend() or _OwnWorkers(first, reporter)
        try:
            with Parallel(
                self.count,
                backend=backend,
                # Those that fork, as Ray's, return all results of a call at once.
                return_as="generator_unordered" if backend.supports_return_generator else "list",
                batch_size=1,
                pre_dispatch=ahead,
            ) as parallel:
                while started > before:
                    before = started
                    results = iter(parallel(hand_out()))
                    try:
                        for result in results:
                            taken += 1
                            yield result
                    finally:
                        with warnings.catch_warnings():
                            # Of results that nobody takes any more.
                            warnings.simplefilter("ignore")
                            getattr(results, "close", list)()
        except BrokenProcessPool as error:
            raise WorkersLostError("a worker died (killed, or out of memory)") from error
        except (OSError, RuntimeError) as error:
            if not (reason := explain_refusal(error)):
                raise
            raise WriteError(f"cannot start {self.count} workers: {reason}") from error


def _find_chosen_backend() -> Any:
    """Return the backend of joblib that the caller has chosen; only the default one follows such hints."""
    one, other = (get_active_backend(prefer=hint)[0] for hint in ("threads", "processes"))
    return one if type(one) is type(other) else None


class _OwnWorkers(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """Backend of joblib: robustgen's own worker processes, and a thread for each that waits for it."""

    supports_retrieve_callback = True

    def __init__(self, job: Job[Any], reporter: Reporter) -> None:
        super().__init__(nesting_level=0)
        self._job, self._reporter = job, reporter

    def effective_n_jobs(self, n_jobs: int) -> int:
        return n_jobs

    def configure(self, n_jobs: int = 1, parallel: Any = None, **settings: Any) -> int:
        self.parallel = parallel
        self._workers = borrow_workers(n_jobs, self._job, self._reporter)
        self._threads, self._free = ThreadPoolExecutor(n_jobs), SimpleQueue[Worker]()
        for worker in self._workers:
            self._free.put(worker)
        return n_jobs

    def submit(self, func: Any, callback: Any = None) -> Any:
        # Of what joblib wraps around a job, the job alone: its own classes take long to import.
        ((_, arguments, _),) = func.items
        task = self._threads.submit(self._call, *arguments)
        task.add_done_callback(callback)
        return task

    def _call(self, job: Job[Any], reporter: Reporter) -> list[Any]:
        worker = self._free.get()
        try:
            return [worker.call(job, reporter)]
        finally:
            self._free.put(worker)

    def retrieve_result_callback(self, out: Any) -> Any:
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []

    def terminate(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        keep_workers(self._workers)
        self._workers = []
