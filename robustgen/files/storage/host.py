"""This machine: memory, regular files, signals, processes, streams and private folders."""

import atexit
import ctypes
import errno
import gc
import mmap
import os
import select
import signal
import socket
import stat
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

from robustgen.errors import MissingDependencyError

try:
    import fcntl
    import resource
except ImportError:
    # Windows: pixels are computed there, but no command runs.
    fcntl = resource = None  # type: ignore[assignment]


def check_unpacked() -> None:
    """Raise a MissingDependencyError inside a zip archive, as tables and configs are read by path."""
    if not Path(__file__).is_file():
        raise MissingDependencyError("robustgen cannot run inside a zip archive; install it, or use shiv")


def check_system() -> None:
    """Raise a MissingDependencyError if this system cannot run commands."""
    check_unpacked()
    if fcntl is None:
        raise MissingDependencyError("commands need Linux or macOS; on Windows, they work inside WSL")


# --- memory settings for processes that run only robustgen -----------------------------------------

# Little cyclic garbage arises, while imports and compilation allocate millions of lasting objects.
_ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4


@cache
def collect_garbage_rarely() -> None:
    """Collect cyclic garbage less often than Python's default, and not at all at exit.

    One pass over the objects of numba and SciPy takes several times as long as an image.
    """
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    atexit.register(_leave_garbage)


@contextmanager
def pause_collection() -> Iterator[None]:
    """Collect no cyclic garbage while importing modules or compiling loops."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _ALLOCATIONS_BETWEEN_COLLECTIONS:
            # Nearly all new objects last, so later collections can skip them.
            _leave_garbage()
        if was_enabled:
            gc.enable()


def _leave_garbage() -> None:
    # Libraries that come with PyTorch print warnings about objects that remain.
    if "torch" not in sys.modules:
        gc.freeze()


def keep_freed_memory() -> None:
    """Make glibc keep freed memory, because returning and requesting it takes longer than the arithmetic."""
    # The kernel clears each separate mapping; M_MMAP_THRESHOLD could avoid this only up to 32 MB.
    _set_parameters({_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: 1 << 28})


def return_freed_memory() -> None:
    """Make glibc return freed memory at once; next to large frames, kept memory adds up to gigabytes."""
    _set_parameters({_M_MMAP_MAX: 1 << 16, _M_MMAP_THRESHOLD: 1 << 20, _M_TRIM_THRESHOLD: 1 << 20})
    with suppress(OSError, AttributeError):
        _load_libc().malloc_trim(0)


def _set_parameters(values: dict[int, int]) -> None:
    with suppress(OSError, AttributeError):
        for parameter, value in values.items():
            _load_libc().mallopt(parameter, value)


@cache
def _load_libc() -> Any:
    return ctypes.CDLL(None)


# --- memory handed to another process ----------------------------------------------------------------

# Linux removes memory that has no name with the last process that has it open, however that ends.
CAN_HAND_OVER: Final = hasattr(os, "memfd_create") and hasattr(socket, "send_fds")
_ALIGNMENT: Final = 64
# Each mapping keeps a file open; beyond this number, memory is copied.
_MOST_MAPPED: Final = 256
_mapped = weakref.WeakSet[mmap.mmap]()


def send_memory(channel: socket.socket, parts: Sequence[memoryview]) -> bool:
    """Hand a copy of the `parts` to the process at the other end; return False if the system refuses."""
    try:
        with open(os.memfd_create("robustgen"), "wb") as file:
            for start, part in zip(_place_parts([len(part) for part in parts]), parts, strict=True):
                file.seek(start)
                file.write(part)
            file.flush()
            socket.send_fds(channel, [b"\0"], [file.fileno()])
    except OSError:
        return False
    return True


def receive_memory(channel: socket.socket, sizes: Sequence[int]) -> list[memoryview]:
    """Return the parts of these sizes that `send_memory` hands over at the other end, writable."""
    _, files, *_ = socket.recv_fds(channel, 1, 1)
    if not files:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    with open(files[0], "rb") as file:
        if len(_mapped) < _MOST_MAPPED:
            # Writing to such a mapping copies the page.
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            _mapped.add(mapping)
            whole = memoryview(mapping)
        else:
            # The position is shared with the writer.
            file.seek(0)
            whole = memoryview(bytearray(file.read()))
    return [whole[start : start + size] for start, size in zip(_place_parts(sizes), sizes, strict=True)]


def _place_parts(sizes: Sequence[int]) -> list[int]:
    """Return the offset of each part, aligned for any type of number."""
    starts = accumulate((-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes), initial=0)
    return [*starts][:-1]


# --- regular files, opened without waiting for pipes or devices ------------------------------------


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises
    ------
    OSError
        The file is a pipe, a device or a folder, or cannot be read.
    """
    # Opening a pipe would otherwise wait for a process at its other end.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return os.fdopen(file, "rb")


def read_regular(path: str | Path, most: int | None = None) -> bytes:
    """Read a regular file of at most `most` bytes.

    Raises
    ------
    OSError
        The file is not regular, cannot be read, or has more than `most` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise OSError(errno.EFBIG, f"has {size} bytes; at most {most} are allowed", str(path))
        return file.read()


# --- Ctrl-C and SIGTERM, recorded because compilers and imports may swallow them -------------------

_received = threading.Event()
_numbers: list[int] = []


def remember(*numbers: int, orderly: bool = False) -> None:
    """Make signals raise a KeyboardInterrupt, and record it; ignored signals stay ignored.

    Parameters
    ----------
    *numbers : int
    orderly : bool
        Whether stopping takes a while because of workers: a second signal is then ignored.
    """
    _received.clear()
    _numbers.clear()
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _receive_once if orderly else _receive)


def was_received() -> bool:
    """Return whether such a signal was received."""
    return _received.is_set()


def signal_number() -> int:
    """Return the number of the last signal received; that of Ctrl-C if there was none."""
    return _numbers[-1] if _numbers else int(signal.SIGINT)


def check() -> None:
    """Raise the KeyboardInterrupt that other code has swallowed."""
    if _received.is_set():
        raise KeyboardInterrupt


def _receive(number: int, frame: object) -> None:
    _numbers.append(number)
    _received.set()
    raise KeyboardInterrupt


def _receive_once(number: int, frame: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    # Threads that watch workers raise errors when these end, and so do finalizers of an interrupted
    # compilation; users need not see them.
    threading.excepthook = lambda _: None
    sys.unraisablehook = lambda _: None
    _receive(number, frame)


# --- processes, standard streams, terminal and private folders of this machine ---------------------

HOST: Final = socket.gethostname()
"""Name of this machine, for messages."""
HOST_ID = HOST
"""Identifies the machine or container within which process numbers are unique."""
# Containers may share a host name, but have processes of their own.
with suppress(OSError):
    HOST_ID = f"{HOST}-{Path('/proc/self/ns/pid').stat().st_ino}"


def is_alive(process: int) -> bool:
    """Return False if this machine or container certainly has no process with this number."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    # A process that has ended stays a zombie until its parent reads its status.
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1] != "Z"
    return True


class ForkedProcess:
    """A process that another process has forked for this one, which can end it and wait for its end."""

    def __init__(self, number: int) -> None:
        self._file = os.pidfd_open(number)

    def kill(self) -> None:
        """End the process, whatever it does."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._file, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until the process has ended."""
        select.select([self._file], [], [])
        os.close(self._file)


# A process with threads must not be forked, and Linux tells how many it has.
CAN_FORK: Final = sys.platform == "linux" and hasattr(os, "pidfd_open")


def count_threads() -> int:
    """Return the number of threads of this process, those of libraries included."""
    return len(os.listdir("/proc/self/task"))


def list_limits() -> dict[int, tuple[int, int]]:
    """Return the limits of this process, for `take_limits` in another one."""
    numbers = {getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
    return {number: resource.getrlimit(number) for number in numbers}


def take_limits(limits: Mapping[int, tuple[int, int]]) -> None:
    """Give this process other limits, as far as the system allows."""
    for number, (soft, hard) in limits.items():
        with suppress(OSError, ValueError):
            resource.setrlimit(number, (soft, hard))


def is_left_over(name: str) -> bool:
    """Return whether ``<host>-<process>-<number>`` is the temporary file of a dead process of this host."""
    host, process, _ = ("", "", *name.rsplit("-", 2))[-3:]
    return host == HOST_ID and process.isdigit() and not is_alive(int(process))


def find_task_limit() -> tuple[int, str]:
    """Return the lowest limit of processes and threads of this user and container, and its name."""
    limits, groups = [(sys.maxsize, "")], list[list[str]]()
    if resource:
        limits.append((resource.getrlimit(resource.RLIMIT_NPROC)[0], "ulimit -u"))
    with suppress(OSError):
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for _, controller, path in groups:
        folder = Path(f"/sys/fs/cgroup/{controller}{path}")
        for above in (folder, *folder.parents) if controller in ("", "pids") else ():
            with suppress(OSError, ValueError):
                limits.append((int((above / "pids.max").read_text()), "pids.max"))
    return min(limit for limit in limits if limit[0] >= 0)


# OpenCV and numba crash while they are loaded, or while they compile, with less.
_LEAST_ADDRESSES: Final = 1_000_000 << 10


def check_address_space() -> None:
    """Raise a MissingDependencyError if the limit of address space is too low for OpenCV and numba."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0] if resource else -1
    if 0 <= limit < _LEAST_ADDRESSES:
        raise MissingDependencyError(
            f"OpenCV and numba need {_LEAST_ADDRESSES >> 10} kB of address space, and its limit is "
            f"{limit >> 10} kB (ulimit -v); raise it, for instance with ulimit -v unlimited"
        )


def explain_refusal(error: BaseException) -> str:
    """Return why the system or Python refuses a thread, process, file or folder; "" for another error."""
    number = error.errno if isinstance(error, OSError) and error.filename is None else None
    if number == errno.ENOENT:
        return "the working folder was deleted; change to another"
    if number in (errno.EMFILE, errno.ENFILE):
        return "the limit of open files is reached (ulimit -n); raise it, or use fewer jobs"
    if isinstance(error, RuntimeError) and str(error).endswith("shutdown"):
        return "Python is ending and starts no threads; call robustgen before the main thread ends"
    if number != errno.EAGAIN and str(error) != "can't start new thread":
        return ""
    limit, name = find_task_limit()
    found = f"the limit of processes and threads is {limit} ({name})"
    return f"{found if name else 'the system has reached a limit'}; raise it, or use fewer jobs"


@contextmanager
def hold_back_interrupts() -> Iterator[None]:
    """Block Ctrl-C for processes started in this block, even while they import modules."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def private_folder(name: str) -> Path:
    """Create a folder in the folder for temporary files that no other user can write to, and return it.

    Raises
    ------
    OSError
        There is no folder for temporary files, or ``TMPDIR`` does not name one.
    """
    # Python would take another folder, which may be on a small disk.
    if (chosen := os.environ.get("TMPDIR")) and not Path(chosen).is_dir():
        raise OSError(errno.EINVAL, f"TMPDIR is {chosen}, which is not a folder", chosen)
    folder = Path(tempfile.gettempdir()) / f"{name}-{os.getuid() if fcntl else 0}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder if _is_private(folder, 0o077) else Path(tempfile.mkdtemp(prefix=f"{name}-"))


def cache_folder(name: str) -> Path:
    """Create a folder in the user's cache (`XDG_CACHE_HOME`, ~/.cache), and return it.

    Raises
    ------
    OSError
        It cannot be created, or another user can write to it.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(folder, 0o022):
        raise PermissionError(f"{folder} belongs to another user")
    return folder


def _is_private(folder: Path, others: int) -> bool:
    """Return whether this user owns `folder`, and the permissions `others` are not given."""
    status = folder.lstat()
    if not fcntl:
        return True
    return not folder.is_symlink() and status.st_uid == os.getuid() and not status.st_mode & others


@contextmanager
def lock(path: str) -> Iterator[None]:
    """Wait until no other process holds the lock `path`, and hold it; a process that dies holds none."""
    with open(path, "ab") as file:
        # Some network file systems have no such locks, nor has Windows.
        with suppress(OSError):
            if fcntl:
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def use_utf8() -> None:
    """Start this process again in Python's UTF-8 mode, if its locale gives file names another encoding."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    # Clients of kernels import ipykernel too, but not its shell.
    return "ipykernel.zmqshell" in sys.modules


def find_log_stream() -> TextIO | None:
    """Return the stream for lines about a run; None if there is none, or if the caller has closed it.

    It is standard error; in a notebook, which paints that red, standard output.
    """
    stream = sys.stdout if is_notebook() else sys.stderr
    return None if stream is None or getattr(stream, "closed", False) else stream


def open_closed_streams() -> None:
    """Open the null device for standard streams that the caller has closed, for instance with ``2>&-``.

    Libraries write to these streams unconditionally, and other files would get their descriptors.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # The lowest free descriptor is that of the stream.
            stream = open(os.devnull, "w" if number else "r")  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return standard input and output, which nothing else in this process reads or prints to from now on."""
    taken = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    sys.stdout = sys.stderr
    return taken
