"""Looks after a run from a thread of its own: draws its progress, and says who is silent if none is made."""

import threading
import time
from collections.abc import Callable
from types import TracebackType

from robustgen.display.progress import Meter, print_line
from robustgen.generation.pulse import Pulse

SECONDS_OF_SILENCE = 60.0
_SECONDS_BETWEEN_LOOKS = 0.5


class Watch:
    """The watch over one run, as a context manager.

    Parameters
    ----------
    meter : Meter or None
        Shows the number of outputs, where nobody else does.
    pulse : Pulse
    """

    def __init__(self, meter: Meter | None, pulse: Pulse) -> None:
        self._meter, self._pulse = meter, pulse
        # Who works at present: what describes its silence.
        self.describe: Callable[[], str] = lambda: "no worker has been started yet"
        self._received = self._shown = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._show(max(self._shown, self._received))
        self._pulse.forget()

    def receive(self, outputs: int) -> None:
        """Take note of `outputs` whose receipts have come in."""
        self._received += outputs

    def _show(self, outputs: int) -> None:
        if self._meter:
            self._shown = min(outputs, self._meter.total)
            self._meter.show(self._shown)

    def _look(self) -> None:
        silent, limit, last = 0.0, SECONDS_OF_SILENCE, (-1, -1)
        while not self._over.wait(_SECONDS_BETWEEN_LOOKS):
            made = sum(sign.made for sign in self._pulse.read())
            # A task that is handed in counts twice or not at all for a moment.
            self._show(max(self._shown, self._received + made))
            # Counted in own looks, so that a machine that slept was not silent.
            silent = silent + _SECONDS_BETWEEN_LOOKS if (self._received, made) == last else 0.0
            last = self._received, made
            limit = SECONDS_OF_SILENCE if not silent else limit
            if silent >= limit:
                print_line(f"no result for {silent:.0f} s: {self.describe()}")
                limit *= 2


def at_clock(seconds: float) -> str:
    """``"15:03:12"``: the time of day of `seconds` since 1970."""
    return time.strftime("%H:%M:%S", time.localtime(seconds))
