"""Progress of a run: workers report it by datagrams; a thread displays it and names silent workers."""

import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field

from robustgen.display.progress import Meter, print_line, print_note

SECONDS_OF_SILENCE = 60.0
COMPILING = "compiling loops, once"
_SECONDS_BETWEEN_REPORTS = 0.5
_COMPILING = "compiling"
_last_told: dict[str, tuple[float, int]] = {}


@dataclass(frozen=True)
class Reporter:
    """Sender of progress reports to the run. Picklable; lost reports do no harm.

    Attributes
    ----------
    address : (str, int) or None
        Address at which the run listens; None if nobody listens.
    token : str
        Distinguishes this run from others.
    before : int
        Outputs of the current job that are finished before those that are told.

    Examples
    --------
    >>> from robustgen.plugins import Reporter, run_job
    >>> class Square:
    ...     def run(self, reporter):
    ...         reporter.tell(1)
    ...         return 3**2
    >>> run_job(Square(), Reporter())  # nobody listens
    9
    """

    address: tuple[str, int] | None = None
    token: str = field(default="", repr=False)
    before: int = 0

    def tell(self, done: int) -> None:
        """Report that `done` more outputs of the current job are finished, at most twice a second."""
        done += self.before
        now, (told, before) = time.monotonic(), _last_told.get(self.token, (0.0, -1))
        too_soon = done and now - told < _SECONDS_BETWEEN_REPORTS
        if self.address is None or too_soon or done == before:
            return
        _last_told[self.token] = now, done
        self._send(str(done))

    def tell_compiling(self) -> None:
        """Report that the worker is compiling a loop."""
        if self.address is not None:
            _last_told.pop(self.token, None)
            self._send(_COMPILING)

    def tell_over(self) -> None:
        """Report that the run is over."""
        self._send("0")

    def _send(self, text: str) -> None:
        assert self.address is not None
        worker = f"{socket.gethostname()}:{os.getpid()}"
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(f"{self.token} {worker} {text}".encode(), self.address)


NOBODY = Reporter()


class Progress:
    """Display of one run's progress and silent workers, as a context manager.

    Parameters
    ----------
    meter : Meter, optional
        Shows the number of outputs, and when loops are compiled.
    counts : bool
        Whether the number of outputs is that of the workers.
    everywhere : bool
        Whether to listen to other machines too.
    """

    def __init__(self, meter: Meter | None = None, *, counts: bool = True, everywhere: bool = False) -> None:
        self._meter, self._counts = meter, counts
        self._finished = self._shown = 0
        self._told_of_compiling = False
        self._compiling = set[str]()
        self._done: dict[str, int] = {}
        self._heard: dict[str, float] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("" if everywhere else "127.0.0.1", 0))
        self._socket.settimeout(_SECONDS_BETWEEN_REPORTS)
        host = socket.gethostbyname(socket.gethostname()) if everywhere else "127.0.0.1"
        self.reporter = Reporter((host, self._socket.getsockname()[1]), secrets.token_hex(8))
        self._over = threading.Event()
        # In the context of the run, which may be quiet.
        self._thread = threading.Thread(target=copy_context().run, args=(self._watch,), daemon=True)

    def __enter__(self) -> "Progress":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        # Wake the thread, which would wait for half a second.
        self.reporter.tell_over()
        self._thread.join()
        self._socket.close()
        self._compiling.clear()
        self._show(max(self._shown, self._finished))

    def finish(self, outputs: int) -> None:
        """Count `outputs` of a finished job."""
        self._finished += outputs

    def _show(self, outputs: int) -> None:
        if self._meter:
            self._meter.pause(COMPILING if self._compiling else "")
        if self._meter and self._counts:
            self._shown = min(outputs, self._meter.total)
            self._meter.show(self._shown)

    def _watch(self) -> None:
        looked = changed = time.monotonic()
        limit, before = SECONDS_OF_SILENCE, (-1, -1)
        while not self._over.is_set():
            self._listen()
            now = time.monotonic()
            if now - looked < _SECONDS_BETWEEN_REPORTS:
                continue
            looked, state = now, (self._finished, sum(self._done.values()))
            # For a moment, a job that finishes counts twice or not at all.
            self._show(max(self._shown, sum(state)))
            if state != before or self._compiling:
                changed, limit, before = now, SECONDS_OF_SILENCE, state
            elif now - changed >= limit:
                print_line(f"no result for {now - changed:.0f} s: {self.describe_silence()}")
                limit *= 2

    def describe_silence(self) -> str:
        """Return when each worker last reported, the oldest first."""
        heard = sorted((seconds, worker) for worker, seconds in dict(self._heard).items())
        clock = [(time.strftime("%H:%M:%S", time.localtime(seconds)), worker) for seconds, worker in heard]
        lines = [f"worker {worker} silent since {since}" for since, worker in clock]
        return "; ".join(lines) or "no worker has reported yet"

    def _listen(self) -> None:
        """Wait half a second for a report; note what its worker has done, or that it compiles loops."""
        with suppress(OSError, ValueError):
            token, worker, done = self._socket.recv(512).decode().split(" ")
            if token != self.reporter.token:
                return
            self._heard[worker] = time.time()
            if done == _COMPILING:
                self._compiling.add(worker)
                # A bar says it itself.
                if not self._told_of_compiling and (self._meter is None or self._meter.in_lines):
                    self._told_of_compiling = True
                    print_note(COMPILING)
            else:
                self._compiling.discard(worker)
                self._done[worker] = int(done)

    def forget_workers(self) -> None:
        """Discard the reports of workers before new workers replace them."""
        self._done.clear()
        self._heard.clear()
        self._compiling.clear()
