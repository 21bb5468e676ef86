"""Interface between jobs and executors."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from robustgen.execution.progress import Reporter
from robustgen.imaging.kernels.loop_cache import call_before_compiling

Result = TypeVar("Result")
Covariant = TypeVar("Covariant", covariant=True)


class WorkersLostError(Exception):
    """Error: workers died before they finished their jobs, which have to run again."""


class Job(Protocol[Covariant]):
    """Piece of work for one worker. Picklable."""

    def run(self, reporter: Reporter) -> Covariant:
        """Run the job, report progress to the `reporter`, and return the result."""


class Executor(Protocol):
    """Runner of jobs, in any order and any number at a time."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield the result of each job as it is finished.

        Raises
        ------
        WorkersLostError
            The jobs without a result have to run again.
        WriteError
            The output cannot be written, or no workers are left.
        """


def run_job(job: Job[Result], reporter: Reporter) -> Result:
    """Run `job`; a module-level function, because worker processes need to import it."""
    call_before_compiling(reporter.tell_compiling)
    return job.run(reporter)
