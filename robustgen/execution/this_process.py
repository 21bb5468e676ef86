"""The executor without workers: jobs run in this process, one after the other."""

from collections.abc import Iterable, Iterator

from robustgen.execution.base import Job, Result, run_job
from robustgen.execution.progress import Reporter


class ThisProcess:
    """Runs jobs in this process."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield the result of each job, in order."""
        return (run_job(job, reporter) for job in jobs)

    def describe_silence(self, last: dict[str, float]) -> str:
        """Return why nothing happens: the current output takes long."""
        return "the current output takes long"
