"""Worker processes on this machine: what runs in them, and how they are started and kept."""

import atexit
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, NoReturn

from robustgen.files.storage.host import (
    CAN_HAND_OVER,
    collect_garbage_rarely,
    hold_back_interrupts,
    keep_freed_memory,
    receive_memory,
    send_memory,
    take_streams,
)
from robustgen.sets.executors.base import Job, WorkersLostError, run_job
from robustgen.sets.executors.progress import NOBODY, Reporter

# --- in a worker ---------------------------------------------------------------------------------


_SECONDS_IDLE: Final = 300
# Smaller results fit into a pipe or two.
_FEWEST_BYTES: Final = 1 << 17


def serve(channel: int) -> NoReturn:
    """Run jobs until the parent process has ended, or has sent none for five minutes.

    Arrays in results are handed over through the socket with the number `channel`, or piped if it is -1.
    """
    memory = None if channel < 0 else socket.socket(fileno=channel)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    received, answers = take_streams()
    collect_garbage_rarely()
    keep_freed_memory()
    jobs = SimpleQueue[bytes]()

    def receive() -> None:
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                jobs.put(pickle.load(received))
        os._exit(1)

    with suppress(Empty, OSError, RuntimeError):
        threading.Thread(target=receive, daemon=True).start()
        while True:
            answers.write(_answer(jobs.get(timeout=_SECONDS_IDLE), memory))
            answers.flush()
    os._exit(1)


def _answer(packed: bytes, memory: socket.socket | None) -> bytes:
    """Run a job; return its result, or its error and traceback."""
    try:
        job, reporter = pickle.loads(packed)
        return _pack((run_job(job, reporter), None, ""), memory)
    except Exception as error:
        return _pack((None, error, traceback.format_exc()), None)


def _pack(answer: object, memory: socket.socket | None) -> bytes:
    """Return the sizes of the arrays that were handed over by `memory`, pickled, and then the rest."""
    if memory:
        buffers = list[pickle.PickleBuffer]()
        rest = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
        parts = [each.raw() for each in buffers]
        sizes = [*map(len, parts)]
        if sum(sizes) >= _FEWEST_BYTES and send_memory(memory, parts):
            return pickle.dumps(sizes) + rest
    return pickle.dumps([]) + pickle.dumps(answer)


_LIBRARIES: Final = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")
_ONE_THREAD: Final = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}
# Unlike a process of multiprocessing, it does not import the script of the user.
_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from robustgen.sets.executors import workers; "
    "workers.serve(int(sys.argv[1]))"
)


@dataclass(frozen=True)
class _Adopt:
    """Job that gives a worker the environment and the search path of this process."""

    environment: dict[str, str]
    path: list[str]

    def run(self, reporter: Reporter) -> None:
        os.environ.clear()
        os.environ.update(self.environment)
        sys.path[:] = self.path


class Worker:
    """Worker process; it ends when its standard input is closed, so with this process at the latest."""

    def __init__(self) -> None:
        # A forked copy of this process has no share in it.
        self.owner = os.getpid()
        self._memory, theirs = socket.socketpair()
        channel, pipe = theirs.fileno() if CAN_HAND_OVER else -1, subprocess.PIPE
        command = [sys.executable, "-c", _START, str(channel), *sys.path]
        with theirs, hold_back_interrupts():
            self._process = subprocess.Popen(
                command,
                stdin=pipe,
                stdout=pipe,
                env={**os.environ, **_ONE_THREAD},
                pass_fds=[theirs.fileno()],
            )
        assert self._process.stdin and self._process.stdout
        self._jobs, self._results = self._process.stdin, self._process.stdout

    def call(self, job: Job[Any], reporter: Reporter) -> Any:
        """Return the result of a job."""
        packed = pickle.dumps((job, reporter))
        try:
            pickle.dump(packed, self._jobs)
            self._jobs.flush()
            sizes = pickle.load(self._results)
            arrays = receive_memory(self._memory, sizes) if sizes else None
            result, error, trace = pickle.load(self._results, buffers=arrays)
        except (OSError, EOFError, pickle.UnpicklingError) as lost:
            raise WorkersLostError("a worker died (killed, or out of memory)") from lost
        if error:
            raise error from RuntimeError(f"in a worker:\n{trace}")
        return result

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._jobs.close()
        self._results.close()
        self._memory.close()


_idle = list[Worker]()
"""Workers of earlier runs, which start at once; they end themselves after five minutes."""


def borrow_workers(count: int) -> list[Worker]:
    """Return so many workers, idle or new ones."""
    workers = list[Worker]()
    try:
        while len(workers) < count:
            workers.append(_take_idle() or Worker())
    except BaseException:
        for worker in workers:
            worker.end()
        raise
    return workers


def keep_workers(workers: list[Worker]) -> None:
    """Keep workers that have no job for later runs."""
    _idle.extend(workers)


def _take_idle() -> Worker | None:
    """Return an idle worker that still answers, if there is one."""
    adopt = _Adopt({**os.environ, **_ONE_THREAD}, [*sys.path])
    with suppress(IndexError):
        while True:
            worker = _idle.pop()
            with suppress(WorkersLostError):
                if worker.owner == os.getpid():
                    worker.call(adopt, NOBODY)
                    return worker
    return None


@atexit.register
def end_idle_workers() -> None:
    """End the workers that wait for jobs."""
    with suppress(IndexError):
        while True:
            worker = _idle.pop()
            if worker.owner == os.getpid():
                worker.end()
