#!/usr/bin/env python3
"""Compares the estimates of `--dry-run` with the runs that follow, for runs of half a minute or more.

    python scripts/bench_estimate.py [--quick] [--jobs N] [--folder DIR]

Starting and compiling are counted apart, as in the estimate: a run over a few images comes first. Each run
should take between 2/3 and 3/2 of its estimate on a machine with nothing else to do. With `--jobs 1`, the
processor time of the run is printed too, which depends less on other programs. Nothing is deleted before the
end, because some file systems (ext4 without a journal) create files slowly after many were deleted.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import cifar, photographs, planned  # type: ignore[import-not-found]

from robustgen.files.storage.host import collect_garbage_rarely
from robustgen.pixels.benchmarks.kinds import Kind
from robustgen.sets.dataset.estimate import estimate
from robustgen.sets.dataset.run import run_plan

# Name to kind, images for about a minute of two cores, and choices.
CASES: dict[str, tuple[Kind, int, dict[str, Any]]] = {
    "make-c --edition imagenet": ("c", 1200, {"edition": "imagenet"}),
    "make-c, sizes kept": ("c", 400, {}),
    "make-c --format png": ("c", 150, {"edition": "imagenet", "format": "png"}),
    "make-c --format webdataset": ("c", 1200, {"edition": "imagenet", "format": "webdataset"}),
    "make-c --edition cifar-10": ("c", 50_000, {"edition": "cifar-10"}),
    "make-c --edition cifar-10 --format jpeg": ("c", 10_000, {"edition": "cifar-10", "format": "jpeg"}),
    "make-p --edition imagenet": ("p", 20, {"edition": "imagenet"}),
}


def compare(folder: Path, kind: Kind, count: int, choices: dict[str, Any]) -> tuple[float, float, float]:
    """Return the estimated seconds, those of the run, and those of this process's processor."""
    put = cifar if choices.get("edition") == "cifar-10" else photographs
    choices = {"source": str(put(folder / "source", count)), **choices}
    # Processes load libraries and loops, and wait for the next run.
    run_plan(planned(kind, **choices, output=str(folder / "first"), limit=8))
    plan = planned(kind, **choices, output=str(folder / "out"))
    expected, processor = estimate(plan).seconds, time.process_time()
    return expected, run_plan(plan).seconds, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a twentieth of the images")
    parser.add_argument("--jobs", type=int, default=2, help="number of worker processes")
    parser.add_argument("--folder", type=Path, help="folder to write to")
    parser.add_argument("--only", choices=CASES, help="compare only this run")
    arguments = parser.parse_args()
    collect_garbage_rarely()
    print("| run | estimate | run | ratio | processor |\n|---|---|---|---|---|")
    chosen = [arguments.only] if arguments.only else CASES
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for name in chosen:
            kind, count, choices = CASES[name]
            count = count // 20 if arguments.quick else count
            each = {**choices, "jobs": arguments.jobs}
            expected, took, processor = compare(Path(folder, name), kind, count, each)
            times = f"{expected:.1f} s | {took:.1f} s | {took / expected:.2f} | {processor:.1f} s"
            print(f"| {name} | {times} |", flush=True)


if __name__ == "__main__":
    main()
