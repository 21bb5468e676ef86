"""Worker processes on this machine: what runs in them, and how they are started and kept."""

import atexit
import errno
import gc
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, Final, NoReturn

from robustgen.files.storage.host import (
    CAN_FORK,
    CAN_HAND_OVER,
    ForkedProcess,
    collect_garbage_rarely,
    count_threads,
    hold_back_interrupts,
    keep_freed_memory,
    list_limits,
    receive_memory,
    return_freed_memory,
    send_memory,
    take_limits,
    take_streams,
)
from robustgen.pixels.imaging.kernels import call_before_compiling, loop_folder
from robustgen.sets.executors.base import Job, WorkersLostError, run_job
from robustgen.sets.executors.progress import NOBODY, Reporter

# --- in a worker ---------------------------------------------------------------------------------


START_METHOD: Final = "ROBUSTGEN_START_METHOD"
"""Variable of the environment that, with the value ``spawn``, has each worker start by itself."""
_SECONDS_IDLE: Final = 300
_SECONDS_BETWEEN_JOBS: Final = 0.1
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
            answers.write(_answer(_wait_for_job(jobs), memory))
            answers.flush()
    os._exit(1)


def _wait_for_job(jobs: SimpleQueue[bytes]) -> bytes:
    """Return the next job, and meanwhile give the memory of the last one back; raise Empty after minutes."""
    with suppress(Empty):
        return jobs.get(timeout=_SECONDS_BETWEEN_JOBS)
    return_freed_memory()
    job = jobs.get(timeout=_SECONDS_IDLE)
    keep_freed_memory()
    return job


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


# --- in the process that forks workers ---------------------------------------------------------------

_REHEARSE, _FORK = b"r", b"f"


def tend(control: int) -> NoReturn:
    """Load what jobs compute with, and fork workers, until the parent process has ended or asks for no more.

    This process has one thread and none of the files of a run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nobody waits for the workers here, and the parent process has their numbers.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # What is loaded lasts.
    gc.disable()
    # Nearly all jobs need both, which take half a second.
    import_module("robustgen.pixels.imaging.kernels.compiler")
    import_module("robustgen.sets.dataset.unit_jobs")
    with socket.socket(fileno=control) as channel, suppress(OSError):
        channel.settimeout(_SECONDS_IDLE)
        while True:
            request, files, *_ = socket.recv_fds(channel, 1, 3)
            if not request:
                break
            answer = _rehearse(*files) if request == _REHEARSE else _fork(channel, files)
            for each in files:
                os.close(each)
            channel.send(str(answer).encode())
    os._exit(0)


def _rehearse(received: int, _: int) -> int:
    """Compute with what a job needs, which loads it for all workers to come."""
    with open(received, "rb", closefd=False) as file:
        job, reporter = pickle.load(file)
    call_before_compiling(reporter.tell_compiling)
    # What goes wrong here goes wrong in the job, which tells of it.
    with suppress(Exception):
        job.rehearse()
    # Workers take fresh memory instead of copying what is free here.
    return_freed_memory()
    gc.freeze()
    return 0


def _fork(channel: socket.socket, files: list[int]) -> int:
    """Return the number of a new worker with these files, or the negative number of the system's error."""
    if count_threads() > 1:
        return 0
    try:
        number = os.fork()
    except OSError as error:
        return -(error.errno or errno.EAGAIN)
    if number:
        return number
    channel.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    gc.enable()
    received, answers, memory = files
    os.dup2(received, 0)
    os.dup2(answers, 1)
    os.close(received)
    os.close(answers)
    serve(memory if CAN_HAND_OVER else -1)


# --- in the process of a run ---------------------------------------------------------------------------

_LIBRARIES: Final = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")
_ONE_THREAD: Final = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}
# Unlike a process of multiprocessing, it does not import the script of the user.
_START: Final = (
    "import sys; sys.path[:] = sys.argv[3:]; from robustgen.sets.executors import workers; "
    "getattr(workers, sys.argv[1])(int(sys.argv[2]))"
)


def _start(
    function: str, channel: int, stdin: int, stdout: int, passed: socket.socket
) -> subprocess.Popen[bytes]:
    """Start a process that calls a function of this module with a socket's number, which it is passed."""
    # If no lasting folder can be written, each worker would choose another one and say so.
    with suppress(OSError):
        loop_folder()
    command = [sys.executable, "-c", _START, function, str(channel), *sys.path]
    environment = {**os.environ, **_ONE_THREAD}
    with hold_back_interrupts():
        return subprocess.Popen(
            command, stdin=stdin, stdout=stdout, env=environment, pass_fds=[passed.fileno()]
        )


@dataclass(frozen=True)
class _Adopt:
    """Job that gives a worker the environment, search path, folder and limits of this process."""

    environment: dict[str, str] = field(default_factory=lambda: {**os.environ, **_ONE_THREAD})
    path: list[str] = field(default_factory=lambda: [*sys.path])
    folder: str = field(default_factory=os.getcwd)
    limits: dict[int, tuple[int, int]] = field(default_factory=list_limits)

    def run(self, reporter: Reporter) -> None:
        os.environ.clear()
        os.environ.update(self.environment)
        sys.path[:] = self.path
        os.chdir(self.folder)
        take_limits(self.limits)


class _Nursery:
    """Process that forks the workers of the runs of this process; it ends with this process at the latest."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        # What is imported before the first units sets variables.
        self._setting: tuple[dict[str, str], list[str]] | None = None
        self._control, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            null = subprocess.DEVNULL
            self._process = _start("tend", theirs.fileno(), null, null, theirs)

    def is_of_this_run(self) -> bool:
        """Return whether it serves this process, whose environment is still the same."""
        return self.owner == os.getpid() and self._setting in (None, ({**os.environ}, [*sys.path]))

    def rehearse(self, job: Job[Any], reporter: Reporter) -> None:
        """Have it load what a job computes with; end it if that fails, with an OSError if it has ended."""
        self._setting = {**os.environ}, [*sys.path]
        received, sent = os.pipe()
        try:
            with suppress(BrokenPipeError), os.fdopen(sent, "wb") as file:
                try:
                    socket.send_fds(self._control, [_REHEARSE], [received, sent])
                finally:
                    os.close(received)
                pickle.dump((job, reporter), file)
            self._receive()
        except BaseException:
            self.end()
            raise

    def fork(self, *files: int) -> ForkedProcess | None:
        """Return a new worker with these files; None if it must not be forked.

        Raises
        ------
        OSError
            The system refuses a process, or the nursery has ended.
        """
        socket.send_fds(self._control, [_FORK], files)
        number = self._receive()
        if number < 0:
            raise OSError(-number, os.strerror(-number))
        return ForkedProcess(number) if number else None

    def _receive(self) -> int:
        answer = self._control.recv(32)
        if not answer:
            raise BrokenPipeError(errno.EPIPE, "the process that starts workers has ended")
        return int(answer)

    def end(self) -> None:
        """End the process; its workers go on."""
        self._control.close()
        if self.owner == os.getpid():
            self._process.kill()
            self._process.wait()


class Worker:
    """Worker process; it ends when its standard input is closed, so with this process at the latest.

    Without a `nursery` that forks it, it is started and loads everything itself.
    """

    def __init__(self, nursery: _Nursery | None = None) -> None:
        # A forked copy of this process has no share in it.
        self.owner = os.getpid()
        (received, jobs), (results, answers) = os.pipe(), os.pipe()
        self._jobs, self._results = os.fdopen(jobs, "wb"), os.fdopen(results, "rb")
        self._process: ForkedProcess | subprocess.Popen[bytes]
        self._memory, theirs = socket.socketpair()
        channel = theirs.fileno() if CAN_HAND_OVER else -1
        try:
            with theirs:
                forked = nursery.fork(received, answers, theirs.fileno()) if nursery else None
                self._process = forked or _start("serve", channel, received, answers, theirs)
        except BaseException:
            self._close()
            raise
        finally:
            os.close(received)
            os.close(answers)

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
        self._close()

    def _close(self) -> None:
        with suppress(OSError):
            self._jobs.close()
        self._results.close()
        self._memory.close()


_idle = list[Worker]()
"""Workers of earlier runs, which start at once; they end themselves after five minutes."""
_nurseries = list[_Nursery]()
"""The nursery of this process, if it has one that no thread is using."""


def begin_nursery() -> None:
    """Start the process that forks workers, unless workers or such a process are idle."""
    if not _idle and not _nurseries and _may_fork():
        # What the system refuses is told when workers are borrowed.
        with suppress(OSError):
            _nurseries.append(_Nursery())


def _may_fork() -> bool:
    """Return whether workers may be forked."""
    return CAN_FORK and os.environ.get(START_METHOD) != "spawn"


def borrow_workers(count: int, job: Job[Any], reporter: Reporter) -> list[Worker]:
    """Return so many workers for jobs like this one, idle or new ones."""
    workers = list[Worker]()
    try:
        while len(workers) < count and (idle := _take_idle()):
            workers.append(idle)
        if len(workers) < count:
            workers += _start_workers(count - len(workers), job, reporter)
    except BaseException:
        for worker in workers:
            worker.end()
        raise
    return workers


def _start_workers(count: int, job: Job[Any], reporter: Reporter) -> list[Worker]:
    """Start workers; several are forked by a process that has loaded what they need."""
    nursery = _find_nursery(count, job, reporter)
    workers = list[Worker]()
    try:
        for _ in range(count):
            workers.append(Worker(nursery))
            if nursery:
                workers[-1].call(_Adopt(), NOBODY)
    except BaseException:
        for worker in workers:
            worker.end()
        if nursery:
            nursery.end()
        raise
    if nursery:
        _nurseries.append(nursery)
    return workers


def _find_nursery(count: int, job: Job[Any], reporter: Reporter) -> _Nursery | None:
    """Return a nursery that has rehearsed a job; None where workers load everything themselves."""
    if not (hasattr(job, "rehearse") and _may_fork()):
        return None
    found = None
    with suppress(IndexError):
        found = _nurseries.pop()
    if found and not found.is_of_this_run():
        found.end()
    elif found:
        # It may have waited for too long.
        with suppress(OSError):
            found.rehearse(job, reporter)
            return found
    if count == 1:
        return None
    found = _Nursery()
    found.rehearse(job, reporter)
    return found


def keep_workers(workers: list[Worker]) -> None:
    """Keep workers that have no job for later runs."""
    _idle.extend(workers)


def _take_idle() -> Worker | None:
    """Return an idle worker that still answers, if there is one."""
    with suppress(IndexError):
        while True:
            worker = _idle.pop()
            if worker.owner == os.getpid():
                try:
                    worker.call(_Adopt(), NOBODY)
                    return worker
                except WorkersLostError:
                    worker.end()
    return None


@atexit.register
def end_idle_workers() -> None:
    """End the workers that wait for jobs, and what forks them."""
    for kept in (_idle, _nurseries):
        with suppress(IndexError):
            while True:
                each = kept.pop()
                if each.owner == os.getpid():
                    each.end()
