"""Processes, standard streams, terminal and private folders of this machine."""

import os
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

HOST: Final = socket.gethostname()


def is_alive(process: int) -> bool:
    """Return False if this machine certainly has no process of this number."""
    # On Windows signal 0 would end it.
    if os.name == "posix":
        with suppress(PermissionError):
            try:
                os.kill(process, 0)
            except (ProcessLookupError, OverflowError):
                return False
    # One that has ended stays a zombie until its parent asks for its status.
    return _read_state(process) != "Z"


def is_left_over(name: str) -> bool:
    """Return True if ``<host>-<process>-<number>`` is the temporary file of a dead process of this host."""
    host, process, _ = ("", "", *name.rsplit("-", 2))[-3:]
    return host == HOST and process.isdigit() and not is_alive(int(process))


def is_stopped(process: int) -> bool:
    """Return True if a signal has stopped the process, as far as the system tells."""
    return _read_state(process) in ("T", "t")


def _read_state(process: int) -> str:
    """Return the letter that Linux has for the state of a process; empty if it does not tell."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1]
    return ""


@contextmanager
def hold_back_interrupts() -> Iterator[None]:
    """Hold back Ctrl-C: processes started in this block never see it, not even while they import."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def private_folder(name: str) -> Path:
    """Create a folder below the temporary ones that nobody else can have put anything into.

    Raises
    ------
    OSError
        There is no folder for temporary files.
    """
    # Folders of Windows' users are their own.
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"{name}-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if os.name == "posix" and (folder.is_symlink() or about.st_uid != user or about.st_mode & 0o077):
        return Path(tempfile.mkdtemp(prefix=f"{name}-"))
    return folder


def window_width(terminal: BinaryIO) -> int:
    """Return the width in pixels of the window of a terminal; 0 if the system does not tell."""
    try:
        import fcntl
        import termios

        told = fcntl.ioctl(terminal.fileno(), termios.TIOCGWINSZ, bytes(8))
    except (ImportError, OSError):
        return 0
    _, columns, width, _ = struct.unpack("4H", told)
    return int(width or columns * 8)


def open_closed_streams() -> None:
    """Open the null device for standard streams that the caller has closed, as ``2>&-`` does.

    Libraries write to them without looking, and files of ours would get their numbers.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # The lowest number that is free is that of the stream.
            null = os.open(os.devnull, os.O_RDWR)
            if null > number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))
