"""Ctrl-C and SIGTERM, remembered: compilers and imports may swallow the KeyboardInterrupt of these."""

import signal
import sys
import threading

_received = threading.Event()
_numbers: list[int] = []


def remember(*numbers: int, orderly: bool = False) -> None:
    """Let signals raise a KeyboardInterrupt that is remembered; those that are ignored stay so.

    Parameters
    ----------
    *numbers : int
    orderly : bool
        Whether the end takes a while and looks after workers: then a second signal is ignored.
    """
    _received.clear()
    _numbers.clear()
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _receive_once if orderly else _receive)


def was_received() -> bool:
    """Return whether such a signal has come."""
    return _received.is_set()


def signal_number() -> int:
    """Return the number of the signal that has come last; that of Ctrl-C if none has."""
    return _numbers[-1] if _numbers else int(signal.SIGINT)


def check() -> None:
    """Raise the KeyboardInterrupt that something else has swallowed."""
    if _received.is_set():
        raise KeyboardInterrupt


def _receive(number: int, frame: object) -> None:
    _numbers.append(number)
    _received.set()
    raise KeyboardInterrupt


def _receive_once(number: int, frame: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    # Threads that look after workers trip over their sudden end, and finalizers over half of a compilation;
    # nobody need hear of that.
    threading.excepthook = lambda _: None
    sys.unraisablehook = lambda _: None
    _receive(number, frame)
