"""Executors on Dask and Ray clusters, where robustgen may be missing or have another version."""

import logging
import pickle
import signal
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, ClassVar, Final

from robustgen import __version__
from robustgen.errors import (
    ArgumentError,
    ConfigError,
    RobustgenError,
    WriteError,
    explain_import,
    name_error,
)
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
    scheduler : str
        Name of the cluster in messages.
    address : str
    deaths : tuple of type
        Errors of a task whose worker died.
    """

    scheduler: ClassVar[str]
    address: str
    deaths: tuple[type[Exception], ...]

    @abstractmethod
    def connect(self) -> AbstractContextManager[Submit]:
        """Connect to the cluster for a block; raise an ArgumentError if it does not answer."""

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield each result as its job finishes; raise a WorkersLostError if a job keeps killing workers."""
        name, task = f"the {self.scheduler} at {self.address}", make_task()
        with self.connect() as submit:
            # A worker unpickles a job only after comparing versions.
            tasks = (submit(task, pickle.dumps((job, reporter)), __version__) for job in jobs)
            for future in wait_for_any(tasks, JOBS_AHEAD):
                try:
                    answer = future.result()
                except CancelledError:
                    raise WriteError(f"{name} is lost; run the same command to resume") from None
                except self.deaths as error:
                    raise WorkersLostError("workers died (killed, out of memory, or node lost)") from error
                except Exception as error:
                    raise WriteError(f"{name} failed: {name_error(error)}") from error
                yield take_result(answer, name)


def make_task() -> Callable[[bytes, str], tuple[str, Any]]:
    """Return a function that runs a packed job; it returns why it cannot, and the result or error."""

    # Dask and Ray send the code of a nested function, which runs even where robustgen is missing.
    def run_packed(packed: bytes, release: str) -> tuple[str, Any]:
        import pickle
        import socket

        worker = f"worker on {socket.gethostname()}"
        try:
            from robustgen import __version__ as found
            from robustgen.sets.executors import base  # noqa: F401
        except ImportError as error:
            return f"{worker} cannot import robustgen {release} ({error}); install it there", None
        if found != release:
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


# --- Dask ----------------------------------------------------------------------------------------


class DaskCluster(Cluster):
    """Executor on the workers of the Dask scheduler at `address`.

    Raises
    ------
    ConfigError
        There is no address.
    MissingDependencyError
        Dask is not installed.
    """

    scheduler = "Dask scheduler"

    def __init__(self, address: str) -> None:
        if not address:
            raise ConfigError("dask needs the address of its scheduler, such as dask:tcp://head:8786")
        with explain_import("dask needs a library", "dask"):
            import distributed
        self.address, self._distributed, self.deaths = address, distributed, (distributed.KilledWorker,)

    @contextmanager
    def connect(self) -> Iterator[Submit]:
        """Connect to the scheduler."""
        # robustgen reports the same in one line.
        logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
        try:
            client = self._distributed.Client(self.address, timeout="10s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise ArgumentError(f"no Dask scheduler answers at {self.address}") from error

        def submit(task: Callable[..., Any], packed: bytes, release: str) -> Future[Any]:
            # Not `get_executor`: its futures fail if a worker dies after it returned a result.
            future = Future[Any]()

            def pass_on(finished: Any) -> None:
                try:
                    future.set_result(finished.result())
                except CancelledError:
                    future.cancel()
                    future.set_running_or_notify_cancel()
                except Exception as error:
                    future.set_exception(error)

            # Dask would run pure jobs with equal content only once.
            client.submit(task, packed, release, pure=False).add_done_callback(pass_on)
            return future

        try:
            yield submit
        finally:
            client.close(timeout=2)


# --- Ray -----------------------------------------------------------------------------------------


_SECONDS_FOR_AN_ANSWER = 10.0
_ADDRESS = "give the address that `ray start --head` printed, such as ray:head:6379"
_TOKEN = (
    "if the cluster has a token, set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what `ray get-auth-token` "
    "prints on its head"
)


class RayCluster(Cluster):
    """Executor of one-core tasks on the Ray cluster at `address`; default that of this machine.

    Raises
    ------
    MissingDependencyError
        Ray is not installed.
    """

    scheduler = "Ray cluster"

    def __init__(self, address: str) -> None:
        with explain_import("ray needs a library", "ray"):
            import ray
            from ray import exceptions
        # In `--on ray://head:10001`, Ray's own prefix stands for ours.
        self.address, self._ray = f"ray:{address}" if address[:2] == "//" else address or "auto", ray
        self.deaths = (
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.ObjectLostError,
            exceptions.OutOfMemoryError,
        )

    @contextmanager
    def connect(self) -> Iterator[Submit]:
        """Connect to the cluster."""
        ours = signal.getsignal(signal.SIGTERM)
        host, colon, port = self.address.rpartition("/")[2].rpartition(":")
        try:
            if colon and port.isdecimal():
                # Check the address first, because Ray itself tries for ten minutes.
                socket.create_connection((host, int(port)), _SECONDS_FOR_AN_ANSWER).close()
        except (OSError, OverflowError) as error:
            raise ArgumentError(f"no Ray cluster answers at {self.address}; {_ADDRESS}") from error
        try:
            self._ray.init(address=self.address, log_to_driver=False, logging_level=logging.CRITICAL)
        except (ConnectionError, self._ray.exceptions.RayError) as error:
            # Ray does not tell a wrong token from a port at which something else answers.
            told = str(error).partition(". ")[0].removesuffix(".")
            raise ArgumentError(f"Ray: {told}; {_ADDRESS}; {_TOKEN}") from error
        except (RuntimeError, ValueError) as error:
            # The versions of Ray and Python must match those of the cluster.
            told = " ".join(str(error).split())
            raise ArgumentError(f"the Ray cluster at {self.address} cannot be used: {told}") from error
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)
        remote = cache(self._ray.remote(num_cpus=1))

        def submit(task: Callable[..., Any], *arguments: Any) -> Future[Any]:
            # Ray itself repeats a task up to three times if its worker or node dies.
            future: Future[Any] = remote(task).remote(*arguments).future()
            return future

        try:
            yield submit
        finally:
            self._ray.shutdown()
