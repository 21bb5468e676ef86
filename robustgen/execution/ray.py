"""Executor on a Ray cluster whose workers see the same paths as this process."""

import logging
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from robustgen import __version__
from robustgen.errors import ArgumentError, MissingDependencyError, RobustgenError, WriteError, name_error
from robustgen.execution.base import Job, Result, WorkersLostError
from robustgen.execution.progress import Reporter
from robustgen.execution.remote import JOBS_AHEAD, make_task, pack, take_result

_SECONDS_FOR_AN_ANSWER = 10.0


class RayCluster:
    """Executor of one-core tasks on the Ray cluster at `address`; nodes may join and leave.

    Raises
    ------
    MissingDependencyError
        Ray is not installed.
    """

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingDependencyError("--backend ray needs Ray: pip install 'robustgen[ray]'") from error
        self.address, self._ray = address, ray

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield each result as its job finishes; raise a WorkersLostError if a job keeps killing workers."""
        with self._connect():
            # Ray itself repeats a task up to three times if its worker or node dies.
            task = self._ray.remote(num_cpus=1)(make_task())
            tasks = (task.remote(pack(job, reporter), __version__) for job in jobs)
            under_way = [*islice(tasks, JOBS_AHEAD)]
            while under_way:
                (done, *_), under_way = self._ray.wait(under_way)
                yield self._result_of(done)
                under_way += islice(tasks, 1)

    @contextmanager
    def _connect(self) -> Iterator[None]:
        ours = signal.getsignal(signal.SIGTERM)
        host, colon, port = self.address.rpartition("/")[2].rpartition(":")
        try:
            if colon and port.isdecimal():
                # Check the address first, because Ray itself tries for ten minutes.
                socket.create_connection((host, int(port)), _SECONDS_FOR_AN_ANSWER).close()
            self._ray.init(address=self.address, log_to_driver=False, logging_level=logging.CRITICAL)
        except OSError as error:
            raise ArgumentError(f"no Ray cluster answers at {self.address}") from error
        except (RuntimeError, ValueError) as error:
            # The versions of Ray and Python must match those of the cluster.
            told = " ".join(str(error).split())
            raise ArgumentError(f"the Ray cluster at {self.address} cannot be used: {told}") from error
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)
        try:
            yield
        finally:
            self._ray.shutdown()

    def _result_of(self, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return take_result(self._ray.get(reference), f"the Ray cluster at {self.address}")
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError) as error:
            raise WorkersLostError("workers of the cluster died (killed, or their node is lost)") from error
        except errors.OutOfMemoryError as error:
            raise WorkersLostError("Ray ended workers because a node ran out of memory") from error
        except errors.RayTaskError as error:
            # The cause is the worker's error.
            if isinstance(error.cause, RobustgenError):
                raise error.cause from None
            raise WriteError(f"a worker of {self.address} failed: {name_error(error.cause)}") from error
