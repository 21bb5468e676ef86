"""Executors on clusters, where robustgen may be missing or have another version."""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final

from robustgen import __version__
from robustgen.errors import RobustgenError, WriteError, name_error
from robustgen.sets.executors.base import Job, Result, WorkersLostError, wait_for_any
from robustgen.sets.executors.progress import Reporter

JOBS_AHEAD: Final = 500
"""Number of jobs submitted at a time, which keeps clusters of some hundred cores busy."""

Submit = Callable[[Callable[..., Any], bytes, str], Future[Any]]
"""Function that submits a call of a function with its arguments, and returns the future result."""


class Cluster(ABC):
    """Executor on a cluster whose workers see the same paths as this process; workers may join at any time.

    Attributes
    ----------
    kind : str
        Name of the cluster in messages.
    address : str
    deaths : tuple of type
        Errors of a task whose worker died.
    """

    kind: ClassVar[str]
    address: str
    deaths: tuple[type[Exception], ...]

    @abstractmethod
    def connect(self) -> AbstractContextManager[Submit]:
        """Connect to the cluster for a block; raise an ArgumentError if it does not answer."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield each result as its job finishes; raise a WorkersLostError if a job keeps killing workers."""
        name, task = f"the {self.kind} at {self.address}", make_task()
        with self.connect() as submit:
            tasks = (submit(task, pack(job, reporter), __version__) for job in jobs)
            for future in wait_for_any(tasks, JOBS_AHEAD):
                try:
                    answer = future.result()
                except CancelledError:
                    raise WriteError(f"{name} is lost; run the same command to resume") from None
                except self.deaths as error:
                    raise WorkersLostError(
                        "workers of the cluster died (killed, out of memory, or their node is lost)"
                    ) from error
                except Exception as error:
                    raise WriteError(f"{name} failed: {name_error(error)}") from error
                yield take_result(answer, name)


def pack(job: Job[Any], reporter: Reporter) -> bytes:
    """Return a job as bytes, which a worker unpickles only after comparing versions."""
    return pickle.dumps((job, reporter))


def make_task() -> Callable[[bytes, str], tuple[str, Any]]:
    """Return a function that runs a packed job; it returns why it cannot, and the result or error."""

    # Dask and Ray send the code of a nested function, which runs even where robustgen is missing.
    def run_packed(packed: bytes, release: str) -> tuple[str, Any]:
        import pickle
        import socket

        worker = f"worker on {socket.gethostname()}"
        try:
            import robustgen.sets.executors.base
        except ImportError as error:
            return f"{worker} cannot import robustgen {release} ({error}); install it there", None
        if robustgen.__version__ != release:
            found = robustgen.__version__
            return f"{worker} has robustgen {found}, this run {release}; install the same version there", None
        try:
            job, reporter = pickle.loads(packed)
            return "", job.run(reporter)
        except Exception as error:
            return "", error

    return run_packed


def take_result(answer: tuple[str, Any], cluster: str) -> Any:
    """Return the result of a task from its answer; raise the error of the job, if there is one.

    Raises
    ------
    WriteError
        The worker cannot run jobs of this version, or failed.
    """
    refusal, result = answer
    if refusal:
        raise WriteError(f"{cluster}: {refusal}")
    if isinstance(result, RobustgenError):
        raise result
    if isinstance(result, Exception):
        raise WriteError(f"a worker of {cluster} failed: {name_error(result)}") from result
    return result
