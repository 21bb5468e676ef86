"""Progress of a command: a bar on a terminal or in a notebook, otherwise one line a minute for a log."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import TracebackType
from typing import Any, TypeVar

from tqdm import tqdm

from robustgen.display.text import escape, format_time

SECONDS_BETWEEN_LINES = 60.0
_quiet = False

_Item = TypeVar("_Item")


@contextmanager
def quiet(wanted: bool = True) -> Iterator[None]:
    """Show no progress inside the context; `print_line` still prints."""
    global _quiet
    before, _quiet = _quiet, wanted
    try:
        yield
    finally:
        _quiet = before


class _Bar(tqdm):  # type: ignore[type-arg]
    """A bar without the thread that would refresh it between updates, which the system may refuse."""

    monitor_interval = 0


class Meter:
    """Progress towards `total`; a context manager.

    Parameters
    ----------
    total : int
    unit : str
        Plural noun of the counted things.
    """

    def __init__(self, total: int, unit: str) -> None:
        self.total, self.done = total, 0
        self._unit, self._started = unit, time.monotonic()
        self._told = self._started
        in_notebook = "ipykernel" in sys.modules
        shows_bars = in_notebook or sys.stderr.isatty()
        self._lines = not (shows_bars or _quiet)
        hidden = _quiet or not shows_bars
        kind = import_module("tqdm.auto").tqdm if in_notebook else _Bar
        self._bar: tqdm[Any] = kind(total=total, unit=f" {unit}", disable=hidden, smoothing=0.05)

    def __enter__(self) -> "Meter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def name(self, text: str) -> None:
        """Show `what` is being done, before the bar."""
        self._bar.set_description(escape(text))

    def update(self, more: int = 1) -> None:
        """Count `more` as done."""
        self.show(self.done + more)

    def show(self, done: int) -> None:
        """Set the number of finished things to `done`."""
        self._bar.update(done - self.done)
        self.done = done
        now = time.monotonic()
        if self._lines and now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            print_line(self._line(now - self._started))

    def _line(self, seconds: float) -> str:
        rate = self.done / seconds
        left = f", {format_time((self.total - self.done) / rate)} left" if rate else ""
        return f"{self.done} of {self.total} {self._unit}, {rate:.{2 if rate < 10 else 0}f}/s{left}"


def open_bar(total: int, unit: str) -> Meter:
    """Return a meter, as a context manager with the method ``update(n)``."""
    return Meter(total, unit)


def track(items: Iterable[_Item], total: int, unit: str) -> Iterator[_Item]:
    """Yield `items`, and count them with a bar."""
    with Meter(total, unit) as meter:
        for item in items:
            yield item
            meter.update()


def print_note(text: str) -> None:
    """Print `text` like `print_line`, unless progress is hidden."""
    if not _quiet:
        print_line(text)


def print_line(text: str) -> None:
    """Print `text` on standard error, above the bar if there is one."""
    tqdm.write(escape(text), file=sys.stderr)
    sys.stderr.flush()
