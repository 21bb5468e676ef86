"""Progress of a command: a bar on a terminal or in a notebook, otherwise some lines for a log."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO
from threading import RLock
from types import TracebackType
from typing import Any, TypeVar

from tqdm import tqdm

from robustgen.display.text import escape, format_time
from robustgen.files.storage.host import find_log_stream, is_notebook

SECONDS_BETWEEN_LINES = 60.0
SECONDS_BEFORE_LINES = 10.0
_COLUMNS = 100
_PAUSED = "{{desc}}{{percentage:3.0f}}%|{{bar}}| {{n_fmt}}/{{total_fmt}} [{{elapsed}}, {}]"
# Each thread has its own.
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)

_Item = TypeVar("_Item")


@contextmanager
def quiet(wanted: bool = True) -> Iterator[list[str]]:
    """Show no progress inside the context; `print_line` still prints. Yield the notes that it prints."""
    notes = list[str]()
    before = _quiet.set(wanted), _notes.set(notes)
    try:
        yield notes
    finally:
        _quiet.reset(before[0])
        _notes.reset(before[1])


class _Bar(tqdm):  # type: ignore[type-arg]
    """A bar without the thread that would refresh it between updates, which the system may refuse."""

    monitor_interval = 0


# Its own lock is for processes too: Python 3.14 starts one that tracks it.
_Bar.set_lock(RLock())


class _NotebookBar(_Bar):
    """A bar that is one output of its cell, and changes in place."""

    def __init__(self, **options: Any) -> None:
        # What a bar writes beside its output goes nowhere.
        super().__init__(**options, file=StringIO(), ascii=False, ncols=_COLUMNS)

    @staticmethod
    def status_printer(_: object) -> Callable[[str], None]:
        from IPython.display import display

        shown = display({"text/plain": ""}, raw=True, display_id=True)
        return lambda text: shown.update({"text/plain": text}, raw=True)


class Meter:
    """Progress towards `total`; a context manager.

    Parameters
    ----------
    total : int
    unit : str
        Plural noun of the counted things.

    Attributes
    ----------
    in_lines : bool
        Whether it prints lines, because there is no bar.
    """

    def __init__(self, total: int, unit: str) -> None:
        self.total, self.done = total, 0
        self._unit, self._pause = unit, ""
        # The rate is that since then.
        self._started, self._before = time.monotonic(), 0
        self._next = self._started + SECONDS_BEFORE_LINES
        stream = find_log_stream()
        shows_bars = is_notebook() or (stream is not None and stream.isatty())
        self.in_lines = not (shows_bars or _quiet.get())
        hidden = _quiet.get() or not shows_bars or not total
        bar_type = _NotebookBar if is_notebook() else _Bar
        self._bar = bar_type(total=total, unit=f" {unit}", disable=hidden, smoothing=0.05)

    def __enter__(self) -> "Meter":
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
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
        if done and not self.done:
            # The first ones also took the start of workers.
            self._restart(done)
        self._bar.update(done - self.done)
        self.done = done
        self._print_line()

    def pause(self, reason: str) -> None:
        """Show a `reason` instead of a rate, until it is empty; no rate includes that time."""
        if reason or self._pause:
            self._restart(self.done)
        if reason != self._pause:
            self._pause, self._bar.bar_format = reason, _PAUSED.format(reason) if reason else None
            self._bar.refresh()
        self._print_line()

    def _restart(self, done: int) -> None:
        self._started, self._before = time.monotonic(), done
        self._bar.unpause()

    def _print_line(self) -> None:
        now = time.monotonic()
        if not self.in_lines or now < self._next:
            return
        self._next = now + SECONDS_BETWEEN_LINES
        line = f"{self.done} of {self.total} {self._unit}"
        if self._pause:
            line += f", {self._pause}"
        elif self.done > self._before:
            rate = (self.done - self._before) / (now - self._started)
            left = format_time((self.total - self.done) / rate)
            line += f", {rate:.{2 if rate < 10 else 0}f}/s, {left} left"
        print_line(line)


def track(items: Iterable[_Item], total: int, unit: str) -> Iterator[_Item]:
    """Yield `items`, and count them with a bar."""
    with Meter(total, unit) as meter:
        for item in items:
            yield item
            meter.update()


def print_note(text: str) -> None:
    """Print `text` like `print_line`, unless progress is hidden."""
    if not _quiet.get():
        print_line(text)
        if (notes := _notes.get()) is not None:
            notes.append(text)


def print_line(text: str) -> None:
    """Print `text` for readers of the run, above the bar if there is one."""
    if stream := find_log_stream():
        _Bar.write(escape(text), file=stream)
        stream.flush()
