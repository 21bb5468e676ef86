"""Interface between jobs and executors."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

from robustgen.pixels.imaging.kernels import call_before_compiling
from robustgen.sets.executors.progress import Reporter

Result = TypeVar("Result")
Covariant = TypeVar("Covariant", covariant=True)


class WorkersLostError(Exception):
    """Error: workers died before they finished their jobs, which have to run again."""


class Job(Protocol[Covariant]):
    """Piece of work for one worker. Picklable.

    Examples
    --------
    >>> from robustgen.plugins import Reporter, run_job
    >>> class Square:
    ...     def run(self, reporter):
    ...         return 3**2
    >>> run_job(Square(), Reporter())
    9
    """

    def run(self, reporter: Reporter) -> Covariant:
        """Run the job, report progress to the `reporter`, and return the result."""


class Executor(Protocol):
    """Runner of jobs, in any order and any number at a time.

    Examples
    --------
    >>> from robustgen.plugins import Reporter, run_job
    >>> class OneByOne:
    ...     def map(self, jobs, reporter):
    ...         yield from (run_job(job, reporter) for job in jobs)
    >>> class Square:
    ...     def run(self, reporter):
    ...         return 3**2
    >>> [*OneByOne().map([Square(), Square()], Reporter())]
    [9, 9]
    """

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield the result of each job as it is finished.

        Raises
        ------
        WorkersLostError
            The jobs without a result have to run again.
        WriteError
            The output cannot be written, or no workers are left.
        """


class Launcher(ABC):
    """Starter of the shards of a plan elsewhere, for instance as an array of jobs of a batch system.

    Attributes
    ----------
    scheduler : str
        Name of the system in messages; in small letters, the suffix of the folder for plan, script and logs.
    shards : int
        Number of shards, each of which one job processes.
    wait : bool
        Whether `submit` waits until all jobs have ended.

    Examples
    --------
    >>> from robustgen.plugins import Launcher
    >>> class Queue(Launcher):
    ...     scheduler, shards, wait = "Queue", 2, False
    ...     def compose_script(self, command, shards, folder):
    ...         return "; ".join(f"{' '.join(command)} --shard {each}/2 --jobs 4" for each in shards)
    ...     def submit(self, script):
    ...         return "1"
    >>> Queue().compose_script(["robustgen", "run", "plan.json"], [1, 2], "logs")
    'robustgen run plan.json --shard 1/2 --jobs 4; robustgen run plan.json --shard 2/2 --jobs 4'
    """

    scheduler: ClassVar[str]
    shards: int
    wait: bool

    @abstractmethod
    def compose_script(self, command: Sequence[str], shards: Sequence[int], folder: str) -> str:
        """Return a script that starts `command` with ``--shard I/N --jobs J`` for each I in `shards`.

        N is the number of all shards, J the number of cores of a job. Jobs write their logs to `folder`.
        """

    @abstractmethod
    def submit(self, script: str) -> str:
        """Submit the file `script`, and return the number of the job.

        Raises
        ------
        ConfigError
            The batch system is missing, or rejects the script.
        """


def run_job(job: Job[Result], reporter: Reporter) -> Result:
    """Run `job`; a module-level function, because worker processes need to import it.

    Examples
    --------
    >>> from robustgen.plugins import Reporter, run_job
    >>> class Square:
    ...     def run(self, reporter):
    ...         return 3**2
    >>> run_job(Square(), Reporter())
    9
    """
    call_before_compiling(reporter.tell_compiling)
    return job.run(reporter)


def wait_for_any(tasks: Iterator[Future[Any]], ahead: int) -> Iterator[Future[Any]]:
    """Yield each of the `tasks` as it ends, with `ahead` of them submitted."""
    under_way = {*islice(tasks, ahead)}
    while under_way:
        done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
        yield from done
        under_way |= {*islice(tasks, len(done))}
