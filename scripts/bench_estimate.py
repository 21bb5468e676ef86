#!/usr/bin/env python3
"""Compares the estimates of `--dry-run` with the runs that follow, for runs of half a minute or more.

    python scripts/bench_estimate.py [--quick] [--jobs N] [--folder DIR]

Starting and compiling are counted apart, as in the estimate: a run over a few images comes first. Each run
should take between 2/3 and 3/2 of its estimate on a machine with nothing else to do. With `--jobs 1`, the
processor time of the run is printed too, which depends less on other programs.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import cifar, photographs, planned  # type: ignore[import-not-found]

from robustgen.benchmarks.kinds import Kind
from robustgen.dataset.estimate import estimate
from robustgen.dataset.run import run
from robustgen.files.storage.memory import collect_garbage_rarely

# Name to kind, images for about a minute of two cores, and choices.
CASES: dict[str, tuple[Kind, int, dict[str, Any]]] = {
    "make-c --edition imagenet": ("c", 1200, {"edition": "imagenet"}),
    "make-c, sizes kept": ("c", 400, {}),
    "make-c --format png": ("c", 150, {"edition": "imagenet", "format": "png"}),
    "make-c --format webdataset": ("c", 1200, {"edition": "imagenet", "format": "webdataset"}),
    "make-c --dataset cifar-10": ("c", 10_000, {"dataset": "cifar-10"}),
    "make-p --edition imagenet": ("p", 120, {"edition": "imagenet"}),
}


def compare(folder: Path, kind: Kind, count: int, choices: dict[str, Any]) -> tuple[float, float, float]:
    """Return the estimated seconds, those of the run, and those of this process's processor."""
    source = cifar(folder / "cifar", count) if "dataset" in choices else photographs(folder, count)
    choices = {"source": str(source), **choices}
    # Processes load libraries and loops, and wait for the next run.
    run(planned(kind, **choices, output=str(folder / "first"), limit=8))
    plan = planned(kind, **choices, output=str(folder / "out"))
    expected, processor = estimate(plan).seconds, time.process_time()
    return expected, run(plan).seconds, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a twentieth of the images")
    parser.add_argument("--jobs", type=int, default=2, help="number of worker processes")
    parser.add_argument("--folder", type=Path, help="folder to write to")
    parser.add_argument("--only", choices=CASES, help="compare only this run")
    arguments = parser.parse_args()
    collect_garbage_rarely()
    print("| run | estimate | run | ratio | processor |\n|---|---|---|---|---|")
    for name, (kind, count, choices) in CASES.items():
        if arguments.only in (None, name):
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                count = count // 20 if arguments.quick else count
                each = {**choices, "jobs": arguments.jobs}
                expected, took, processor = compare(Path(folder), kind, count, each)
            print(f"| {name} | {expected:.1f} s | {took:.1f} s | {took / expected:.2f} | {processor:.1f} s |")


if __name__ == "__main__":
    main()
