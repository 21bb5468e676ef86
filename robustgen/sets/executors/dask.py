"""Executor on a Dask cluster."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

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
        try:
            # Dask would run pure jobs with equal content only once.
            yield client.get_executor(pure=False).submit
        finally:
            client.close(timeout=2)
