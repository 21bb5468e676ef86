"""The executor without workers: jobs run in this process, one after the other."""

from collections.abc import Iterable, Iterator
from operator import methodcaller

from robustgen.execution.base import Job, Result
from robustgen.execution.progress import Reporter


class ThisProcess:
    """Runs jobs in this process."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield the result of each job, in order."""
        return map(methodcaller("run", reporter), jobs)

    def describe_silence(self, last: dict[str, float]) -> str:
        """Return why nothing happens: the current output takes long."""
        return "the current output takes long"
