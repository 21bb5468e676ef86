"""The workers of a Dask cluster, which see the same paths as this process."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from robustgen.errors import ArgumentError, MissingDependencyError, RobustgenError, WriteError, name_error
from robustgen.generation.tasks import Job, Result, run_job
from robustgen.generation.watch import at_clock
from robustgen.generation.workers import WorkersLostError

# So many tasks are under way as keep all threads busy, those of workers that joined later among them.
_TASKS_PER_THREAD, _FEWEST_TASKS, _SECONDS_BETWEEN_COUNTS = 3, 16, 1.0
_SECONDS_FOR_AN_ANSWER = 5.0


class Cluster:
    """The workers of the scheduler at `address`, whenever they join.

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
        self._client: Any = None

    def carry_out(self, tasks: Iterable[Job[Result]]) -> Iterator[Result]:
        """As `Workers.carry_out`."""
        with _silence_log(), self._connect() as client:
            ahead = iter(tasks)
            first = islice(ahead, self._count_tasks())
            under_way = self._distributed.as_completed([self._submit(client, task) for task in first])
            for future in under_way:
                yield self._result_of(future)
                for task in islice(ahead, max(0, self._count_tasks() - under_way.count())):
                    under_way.add(self._submit(client, task))

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        try:
            self._client = self._distributed.Client(self.address, timeout="10s")
        except (OSError, ValueError) as error:
            raise ArgumentError(f"no Dask scheduler answers at {self.address}") from error
        self._threads, self._counted = 0, 0.0
        try:
            yield self._client
        finally:
            self._client.close(timeout=2)

    def _submit(self, client: Any, task: Job[Any]) -> Any:
        if client.status != "running":
            raise self._lost()
        # Pure tasks of equal content would be done once.
        return client.submit(run_job, task, pure=False)

    def _result_of(self, future: Any) -> Any:
        if future.cancelled():
            raise self._lost()
        try:
            return future.result()
        except self._distributed.KilledWorker as error:
            raise WorkersLostError("workers of the cluster died (killed, or out of memory)") from error
        except RobustgenError:
            raise
        except OSError as error:
            raise WriteError(f"a worker of {self.address}: {error.strerror or error}") from error
        except Exception as error:
            # A worker without robustgen, or with another release of it.
            raise WriteError(f"a worker of {self.address} failed: {name_error(error)}") from error

    def _lost(self) -> WriteError:
        return WriteError(f"the Dask scheduler at {self.address} is lost; the same command goes on from here")

    def _count_tasks(self) -> int:
        """How many tasks are to be under way."""
        now = time.monotonic()
        if now - self._counted >= _SECONDS_BETWEEN_COUNTS:
            self._threads, self._counted = sum(self._ask("nthreads", {}).values()), now
        return max(_FEWEST_TASKS, _TASKS_PER_THREAD * self._threads)

    # --- what the scheduler knows

    def describe_silence(self) -> str:
        """As `Workers.describe_silence`."""
        workers = self._ask("scheduler_info", None)
        if workers is None:
            return f"the Dask scheduler at {self.address} does not answer"
        if not workers["workers"]:
            return f"the Dask cluster at {self.address} has no workers"
        last = sorted((about["last_seen"], name) for name, about in workers["workers"].items())
        return "; ".join(f"worker {name} last heard of at {at_clock(seen)}" for seen, name in last)

    def _ask(self, question: str, otherwise: Any) -> Any:
        """The scheduler's answer to a `question` that the client can ask; `otherwise` if it gives none."""
        answers: list[Any] = []

        def ask() -> None:
            # A scheduler that is lost is told of where results are waited for.
            try:
                answers.append(getattr(self._client, question)())
            except Exception:
                return

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(_SECONDS_FOR_AN_ANSWER)
        return answers[0] if answers else otherwise


@contextmanager
def _silence_log() -> Iterator[None]:
    """Keep Dask from telling in many lines what is told in one."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)
