"""Executor on a Ray cluster."""

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from typing import Any

from robustgen.errors import ArgumentError, MissingDependencyError
from robustgen.sets.executors.remote import Cluster, Submit

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

    kind = "Ray cluster"

    def __init__(self, address: str) -> None:
        try:
            import ray
            from ray import exceptions
        except ImportError as error:
            raise MissingDependencyError("ray needs a library: pip install 'robustgen[ray]'") from error
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
