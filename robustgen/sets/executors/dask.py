"""Executor on a Dask cluster."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any

from robustgen.errors import ArgumentError, ConfigError, MissingDependencyError
from robustgen.sets.executors.remote import Cluster, Submit


class DaskCluster(Cluster):
    """Executor on the workers of the Dask scheduler at `address`.

    Raises
    ------
    ConfigError
        There is no address.
    MissingDependencyError
        Dask is not installed.
    """

    kind = "Dask scheduler"

    def __init__(self, address: str) -> None:
        if not address:
            raise ConfigError("dask needs the address of its scheduler, such as dask:tcp://head:8786")
        try:
            import distributed
        except ImportError as error:
            raise MissingDependencyError("dask needs a library: pip install 'robustgen[dask]'") from error
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
