"""How far a command is, told on a terminal and nowhere else."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def open_bar(total: int, unit: str) -> "tqdm[Any]":
    """A progress bar, as a context manager: call ``update(n)`` on it."""
    return tqdm(total=total, unit=f" {unit}", disable=None, smoothing=0.05)


def track(items: Iterable[Item], total: int, unit: str) -> Iterator[Item]:
    """`items`, counted by a bar as they go by."""
    yield from tqdm(items, total=total, unit=f" {unit}", disable=None, smoothing=0.05)


def print_line(text: str) -> None:
    """Print `text` on standard error, above the bar if there is one."""
    tqdm.write(text, file=sys.stderr)
