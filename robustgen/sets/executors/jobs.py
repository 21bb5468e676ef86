"""Execution of jobs, in this process or in worker processes, repeated if workers die."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from robustgen.display.progress import print_line
from robustgen.errors import WriteError
from robustgen.sets.executors.base import Executor, Job, Result, WorkersLostError, run_job
from robustgen.sets.executors.progress import Progress, Reporter


class ThisProcess:
    """Executor in this process."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield the result of each job, in order."""
        return (run_job(job, reporter) for job in jobs)


Name = TypeVar("Name", bound=Hashable)
_MOST_DEATHS = 3


def count_cores() -> int:
    """Return the number of cores available to this process on the machine or in the container."""
    from joblib import cpu_count

    return int(cpu_count())


def open_executor(workers: int, job: Job[Any]) -> Executor:
    """Return the executor of jobs like this one in `workers` processes of this machine."""
    if workers == 1:
        return ThisProcess()
    from robustgen.sets.executors.workers import begin_nursery

    if hasattr(job, "rehearse"):
        # Joblib is imported meanwhile.
        begin_nursery()
    from robustgen.sets.executors.processes import Processes

    return Processes(workers)


def submit_jobs(
    jobs: Mapping[Name, Job[Result]],
    name_of: Callable[[Result], Name],
    workers: int,
    progress: Progress,
    cluster: Executor | None = None,
    remedy: str = "",
) -> Iterator[Result]:
    """Start all `jobs` in order and yield their results; lost jobs run again.

    Parameters
    ----------
    jobs : mapping
        Name to job.
    name_of : callable
        Returns the name of the job of a result.
    workers : int
        Maximum number of processes.
    progress : Progress
    cluster : Executor, optional
        Runs the jobs instead of processes of this machine.
    remedy : str
        End of the message if workers keep dying.

    Raises
    ------
    WriteError
        The output can no longer be written, or workers keep dying.
    """
    left, deaths = dict(jobs), 0
    while left:
        executor = cluster or open_executor(min(workers, len(left)), next(iter(left.values())))
        progress.forget_workers()
        before = len(left)
        try:
            for result in executor.map(list(left.values()), progress.reporter):
                del left[name_of(result)]
                yield result
        except WorkersLostError as error:
            deaths = 1 if len(left) < before else deaths + 1
            print_line(f"{error}; repeating its jobs")
            if deaths >= _MOST_DEATHS:
                fewer = f"try fewer --jobs (now {workers}){remedy}"
                raise WriteError(f"workers keep dying; memory may be short: {fewer}") from None
