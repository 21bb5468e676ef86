"""Worker processes of this machine: joblib's, which outlive neither their parent nor a death among them."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path
from typing import Protocol

from robustgen.generation.pulse import Pulse
from robustgen.generation.tasks import Job, Result, run_job
from robustgen.generation.watch import at_clock
from robustgen.memory import collect_garbage_rarely, keep_freed_memory


class WorkersLostError(Exception):
    """Workers died with work in hand, which is to be done again."""


class Workers(Protocol):
    """Those who carry out tasks."""

    def carry_out(self, tasks: Iterable[Job[Result]]) -> Iterator[Result]:
        """Give the result of each task, in the order in which they are finished.

        Raises
        ------
        WorkersLostError
            What has not come back is to be handed out again.
        WriteError
            The output cannot be written, or there are no workers any more.
        """

    def describe_silence(self) -> str:
        """Who is silent and since when, in one line."""


def count_cores() -> int:
    """How many cores the machine, or the container, gives us."""
    from joblib import cpu_count

    return int(cpu_count())


@dataclass(frozen=True)
class ThisProcess:
    """No worker at all: the tasks are done here, one after the other."""

    def carry_out(self, tasks: Iterable[Job[Result]]) -> Iterator[Result]:
        """As `Workers.carry_out`."""
        return map(run_job, tasks)

    def describe_silence(self) -> str:
        """As `Workers.describe_silence`."""
        return "the output in hand takes long"


@dataclass(frozen=True)
class Processes:
    """`count` processes of this machine.

    Attributes
    ----------
    count : int
    pulse : Pulse
        Where they leave signs of life.
    """

    count: int
    pulse: Pulse

    def carry_out(self, tasks: Iterable[Job[Result]]) -> Iterator[Result]:
        """As `Workers.carry_out`."""
        from joblib import Parallel, delayed, parallel_config
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        # What loky's resource tracker says of workers that were killed is of no use to anyone.
        os.environ.setdefault(
            "PYTHONWARNINGS", "ignore::UserWarning:joblib.externals.loky.backend.resource_tracker"
        )
        start = {"initializer": _start_worker, "initargs": (os.getpid(),)}
        try:
            with parallel_config(backend="loky", inner_max_num_threads=1, **start):
                parallel = Parallel(
                    n_jobs=self.count, return_as="generator_unordered", pre_dispatch="3*n_jobs"
                )
                with _hold_back_interrupts():
                    results = parallel(delayed(run_job)(task) for task in tasks)
                yield from results
        except TerminatedWorkerError as error:
            raise WorkersLostError("a worker died (killed, or out of memory)") from error

    def describe_silence(self) -> str:
        """As `Workers.describe_silence`."""
        last = {sign.process: sign.time for sign in self.pulse.read() if sign.host == socket.gethostname()}
        workers = [child.pid for child in active_children() if child.pid]
        workers.sort(key=lambda worker: last.get(worker, 0.0))
        return "; ".join(_describe_worker(each, last.get(each)) for each in workers) or "no worker is left"


def _describe_worker(process: int, last: float | None) -> str:
    stopped = " is stopped," * _is_stopped(process)
    since = f"silent since {at_clock(last)}" if last else "has not begun"
    return f"worker {process}{stopped} {since}"


def _is_stopped(process: int) -> bool:
    """Whether a signal has stopped the process, as far as the system tells."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1] in ("T", "t")
    return False


def _start_worker(parent: int) -> None:
    """Prepare a worker process: it leaves Ctrl-C to its parent, and ends when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_garbage_rarely()
    keep_freed_memory()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _hold_back_interrupts() -> Iterator[None]:
    """Processes started meanwhile never see Ctrl-C, not even while they import; ours comes afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
