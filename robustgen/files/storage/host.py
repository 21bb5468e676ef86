"""Processes, standard streams, terminal and private folders of this machine."""

import errno
import os
import re
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final

HOST: Final = socket.gethostname()
"""Name of this machine, for messages."""
# On Windows, each user has private folders.
_USER: Final = os.getuid() if hasattr(os, "getuid") else 0
IS_WINDOWS: Final = os.name == "nt"

# Windows takes these names for devices, drives or streams of other files, or changes them.
_NOT_FOR_WINDOWS: Final = re.compile(
    r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[1-9\u00b9\u00b2\u00b3]) *(?:\..*)?|"
    r'.*[\x00-\x1f<>:"|?*\\].*|.*[. ]',
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_ON_WINDOWS: Final = 259


def check_for_windows(location: str, path: str) -> None:
    """Raise an OSError for a path that Windows would write to a device or elsewhere, or rename.

    Raises
    ------
    OSError
        A part of `path` is not a valid name on Windows, or the full path is too long for its settings.
    """
    for part in path.split("/"):
        if _NOT_FOR_WINDOWS.fullmatch(part):
            raise OSError(errno.EINVAL, f"{part!r} cannot be a file name on Windows", location)
    if len(location) + 1 + len(path) > _LONGEST_ON_WINDOWS and not _has_long_paths():
        reason = f"more than {_LONGEST_ON_WINDOWS} characters; enable long paths in Windows"
        raise OSError(errno.ENAMETOOLONG, reason, f"{location}/{path}")


@cache
def _has_long_paths() -> bool:
    """Return whether this process may use paths of more than 259 characters on Windows."""
    import ctypes

    system: Any = ctypes
    return bool(system.windll.ntdll.RtlAreLongPathsEnabled() & 1)


def _identify_host() -> str:
    # Containers may share a host name, but have processes of their own.
    with suppress(OSError):
        return f"{HOST}-{Path('/proc/self/ns/pid').stat().st_ino}"
    return HOST


HOST_ID: Final = _identify_host()
"""Identifies the machine or container within which process numbers are unique."""


def is_alive(process: int) -> bool:
    """Return False if this machine or container certainly has no process with this number."""
    # On Windows, signal 0 would end the process.
    if os.name == "posix":
        with suppress(PermissionError):
            try:
                os.kill(process, 0)
            except (ProcessLookupError, OverflowError):
                return False
    # A process that has ended stays a zombie until its parent reads its status.
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1] != "Z"
    return True


def is_left_over(name: str) -> bool:
    """Return whether ``<host>-<process>-<number>`` is the temporary file of a dead process of this host."""
    host, process, _ = ("", "", *name.rsplit("-", 2))[-3:]
    return host == HOST_ID and process.isdigit() and not is_alive(int(process))


def find_task_limit() -> tuple[int, str]:
    """Return the lowest limit of processes and threads of this user and container, and its name."""
    limits, groups = [(sys.maxsize, "")], list[list[str]]()
    with suppress(ImportError):
        import resource

        limits.append((resource.getrlimit(resource.RLIMIT_NPROC)[0], "ulimit -u"))
    with suppress(OSError):
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for _, controller, path in groups:
        folder = Path(f"/sys/fs/cgroup/{controller}{path}")
        for above in (folder, *folder.parents) if controller in ("", "pids") else ():
            with suppress(OSError, ValueError):
                limits.append((int((above / "pids.max").read_text()), "pids.max"))
    return min(limit for limit in limits if limit[0] >= 0)


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
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
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
    folder = Path(tempfile.gettempdir()) / f"{name}-{_USER}"
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
    mine = not folder.is_symlink() and status.st_uid == _USER and not status.st_mode & others
    return os.name != "posix" or mine


@contextmanager
def lock(path: str) -> Iterator[None]:
    """Wait until no other process holds the lock `path`, and hold it; a process that dies holds none."""
    with open(path, "ab") as file:
        # Windows and some network file systems have no such locks.
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def use_utf8() -> None:
    """Start this process again in Python's UTF-8 mode, if its locale gives file names another encoding."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


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
