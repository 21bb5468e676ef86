"""Measures `make-c` into a tree on a file system whose operations take long, as over a network.

    python scripts/bench_slow_files.py [--photographs 6] [--milliseconds 2]

Each operation on files of the output sleeps so long before. Prints a row for an output without the delay, one
file after another with it, and many files at once: milliseconds for each photograph of 500 x 375 pixels (76
files) in one process, and its processor time; each the least of two runs.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

from bench_waits import put_photographs  # type: ignore[import-not-found]

import robustgen
from robustgen.files.storage import local

OPERATIONS = ("open", "write", "close", "replace", "stat", "unlink", "link")


class SlowSystem:
    """The module `os`, with operations on files that take `seconds` longer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        if name not in OPERATIONS:
            return found

        def act(*arguments: Any, **options: Any) -> Any:
            time.sleep(self._seconds)
            return found(*arguments, **options)

        return act


def measure(source: Path, output: Path, count: int) -> tuple[float, float]:
    """Return the milliseconds of a run for each photograph, and those of its processor time."""
    started, before = time.perf_counter(), time.process_time()
    robustgen.make_c(source=source, output=output, edition="imagenet", jobs=1)
    return 1000 * (time.perf_counter() - started) / count, 1000 * (time.process_time() - before) / count


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--photographs", type=int, default=6)
    parser.add_argument("--milliseconds", type=float, default=2)
    chosen = parser.parse_args()
    slow = SlowSystem(chosen.milliseconds / 1000)
    rows: dict[str, tuple[Any, float]] = {
        "without the delay": (os, local._SLOW),
        "one file after another": (slow, float("inf")),
        "many files at once": (slow, local._SLOW),
    }
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        put_photographs(home / "source", chosen.photographs)
        measure(home / "source", home / "first", chosen.photographs)
        print("| files | ms per photograph | processor, ms |\n|---|---|---|")
        for number, (row, (system, limit)) in enumerate(rows.items()):
            with mock.patch.object(local, "os", system), mock.patch.object(local, "_SLOW", limit):
                outputs = [home / f"{number}-{turn}" for turn in range(2)]
                found = [measure(home / "source", output, chosen.photographs) for output in outputs]
            whole, processor = map(min, zip(*found, strict=True))
            print(f"| {row} | {whole:.0f} | {processor:.0f} |", flush=True)


if __name__ == "__main__":
    main()
