"""Executor without workers: jobs run in this process, one after another."""

from collections.abc import Iterable, Iterator

from robustgen.execution.base import Job, Result, run_job
from robustgen.execution.progress import Reporter


class ThisProcess:
    """Executor in this process."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield the result of each job, in order."""
        return (run_job(job, reporter) for job in jobs)
