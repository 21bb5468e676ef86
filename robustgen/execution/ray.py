"""Executor on a Ray cluster whose workers see the same paths as this process."""

import logging
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from robustgen import __version__
from robustgen.errors import ArgumentError, MissingDependencyError, RobustgenError, WriteError, name_error
from robustgen.execution.base import Job, Result, WorkersLostError
from robustgen.execution.progress import Reporter
from robustgen.execution.remote import make_task, pack, take_result

# Enough tasks to keep all cores busy, including cores of nodes that join later.
_JOBS_PER_CORE, _FEWEST_JOBS, _SECONDS_BETWEEN_COUNTS = 3, 16, 1.0
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
            ahead, wanted, counted = iter(jobs), 0, 0.0
            under_way: list[Any] = []
            while True:
                if time.monotonic() - counted >= _SECONDS_BETWEEN_COUNTS:
                    cores = int(self._ray.cluster_resources().get("CPU", 0))
                    wanted, counted = max(_FEWEST_JOBS, _JOBS_PER_CORE * cores), time.monotonic()
                for job in islice(ahead, max(0, wanted - len(under_way))):
                    under_way.append(task.remote(pack(job, reporter), __version__))
                if not under_way:
                    return
                done, under_way = self._ray.wait(under_way, timeout=_SECONDS_BETWEEN_COUNTS)
                for each in done:
                    yield self._result_of(each)

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

    def describe_silence(self, last: dict[str, float]) -> str:
        """Return the number of cores of each node, and the lost nodes."""
        if not self._ray.is_initialized():
            return f"no connection to the Ray cluster at {self.address}"
        nodes = [
            f"node {node['NodeManagerHostname']} "
            + (f"has {node['Resources'].get('CPU', 0):.0f} cores" if node["Alive"] else "is lost")
            for node in self._ray.nodes()
        ]
        return f"the Ray cluster at {self.address}: {'; '.join(nodes)}"
