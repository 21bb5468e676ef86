"""Ctrl-C and SIGTERM, recorded, because compilers and imports may swallow their KeyboardInterrupt."""

import signal
import sys
import threading

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
