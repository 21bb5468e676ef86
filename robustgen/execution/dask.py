"""Executor on a Dask cluster whose workers see the same paths as this process."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from robustgen import __version__
from robustgen.errors import ArgumentError, MissingDependencyError, RobustgenError, WriteError, name_error
from robustgen.execution.base import Job, Result, WorkersLostError
from robustgen.execution.progress import Reporter
from robustgen.execution.remote import JOBS_AHEAD, make_task, pack, take_result


class DaskCluster:
    """Executor on the workers of the Dask scheduler at `address`; workers may join at any time.

    Raises
    ------
    MissingDependencyError
        Dask is not installed.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise MissingDependencyError("--scheduler needs Dask: pip install 'robustgen[dask]'") from error
        self.address, self._distributed = address, distributed

    def map(self, jobs: Iterable[Job[Result]], reporter: Reporter) -> Iterator[Result]:
        """Yield each result as its job finishes; raise a WorkersLostError if a job keeps killing workers."""
        with _silence_log(), self._connect() as client:
            ahead, task = iter(jobs), make_task()

            def submit(count: int) -> list[Any]:
                if client.status != "running":
                    raise self._lost()
                # Dask would run pure jobs with equal content only once.
                return [
                    client.submit(task, pack(job, reporter), __version__, pure=False)
                    for job in islice(ahead, count)
                ]

            under_way = self._distributed.as_completed(submit(JOBS_AHEAD))
            for future in under_way:
                yield self._result_of(future)
                under_way.update(submit(1))

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        try:
            client = self._distributed.Client(self.address, timeout="10s")
        except (OSError, ValueError) as error:
            raise ArgumentError(f"no Dask scheduler answers at {self.address}") from error
        try:
            yield client
        finally:
            client.close(timeout=2)

    def _result_of(self, future: Any) -> Any:
        if future.cancelled():
            raise self._lost()
        try:
            return take_result(future.result(), f"the Dask cluster at {self.address}")
        except self._distributed.KilledWorker as error:
            raise WorkersLostError("workers of the cluster died (killed, or out of memory)") from error
        except RobustgenError:
            raise
        except OSError as error:
            raise WriteError(f"a worker of {self.address}: {error.strerror or error}") from error
        except Exception as error:
            raise WriteError(f"a worker of {self.address} failed: {name_error(error)}") from error

    def _lost(self) -> WriteError:
        return WriteError(f"the Dask scheduler at {self.address} is lost; run the same command to resume")


@contextmanager
def _silence_log() -> Iterator[None]:
    """Silence Dask's log, because robustgen reports the same in one line."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)
