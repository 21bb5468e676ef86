"""The interface between jobs and those who run them."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from robustgen.execution.progress import Reporter
from robustgen.imaging.kernels.loop_cache import call_before_compiling

Result = TypeVar("Result")
Covariant = TypeVar("Covariant", covariant=True)


class WorkersLostError(Exception):
    """Workers died before their jobs were done; the jobs have to run again."""


class Job(Protocol[Covariant]):
    """A piece of work for one worker. Picklable."""

    def run(self, reporter: Reporter) -> Covariant:
        """Do the work, and tell the `reporter` how far it is."""


class Executor(Protocol):
    """Runs jobs, in any order and any number at a time."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield the result of each job as it is finished.

        Raises
        ------
        WorkersLostError
            The jobs without a result have to run again.
        WriteError
            The output cannot be written, or there are no workers any more.
        """

    def describe_silence(self, last: dict[str, float]) -> str:
        """Name the silent workers in one line, given when each was heard last (seconds since 1970)."""


def run_job(job: Job[Result], reporter: Reporter) -> Result:
    """Run `job`; a function of a module, as worker processes need it."""
    call_before_compiling(reporter.tell_compiling)
    return job.run(reporter)
