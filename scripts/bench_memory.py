#!/usr/bin/env python3
"""Measures the peak memory of every corruption for the largest pictures.

    python scripts/bench_memory.py [--megapixels N ...] [--longest N] [--only NAME,...]

Prints the table of docs/background/performance.md: the peak of a process that corrupts one picture at the
weakest and the strongest severity, for squares of so many pixels and for a strip of 32 times the longest
side. Every corruption and picture has a process of its own, and only one runs at a time.
"""

import argparse
import math
import resource
import subprocess
import sys
from typing import Any

import numpy as np

import robustgen
from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS, FAMILIES, get_corruption
from robustgen.pixels.benchmarks.corruptions.imagecorruptions import IMAGECORRUPTIONS

_WIDTH = 32
# Pillow refuses larger ones.
MOST_MEGAPIXELS = 179
# They are made of images of a few sizes only.
_FIXED = ("mnist-c", "laion-c")


def list_cases() -> list[str]:
    """Return each corruption, and those of the edition coco-c that differ, as ``coco-c/NAME``."""
    names = [
        *CORRUPTIONS,
        *(
            each.name
            for name in FAMILIES
            if name not in _FIXED
            for each in FAMILIES[name].corruptions.values()
            if each.over_time != "whole"
        ),
    ]
    own = [
        f"coco-c/{name}"
        for name, each in IMAGECORRUPTIONS.corruptions.items()
        if each.function is not get_corruption(name).function
    ]
    return [*dict.fromkeys([*names[: len(CORRUPTIONS)], *own, *names])]


def corrupt(case: str, height: int, width: int) -> None:
    """Corrupt one picture at the weakest and the strongest severity, and print the peak in bytes."""
    edition, _, name = case.rpartition("/")
    operation, beside = get_corruption(name), dict[str, Any]()
    if not any(isinstance(scale, int) for scale in operation.table):
        # The family has constants for its data sets alone.
        edition = str(next(iter(operation.table)))
    image = np.resize(np.arange(251, dtype=np.uint8), (height, width, 3))
    if operation.needs and operation.needs.name == "depth":
        beside["depth"] = np.linspace(0.02, 0.5, height * width, dtype=np.float32).reshape(height, width)
    levels = [*filter(None, operation.levels)]
    for severity in dict.fromkeys([levels[0], levels[-1]]):
        robustgen.corrupt(image, name, severity, edition=edition or None, rng=1, **beside)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def measure(case: str, height: int, width: int) -> str:
    """Return the peak of a process in GB, or why there is none."""
    command = [sys.executable, __file__, "--only", case, "--shape", str(height), str(width)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"signal {-done.returncode}"])[-1]
    return f"{int(done.stdout) / 1e9:.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megapixels", type=float, nargs="+", default=[12, 100, MOST_MEGAPIXELS])
    parser.add_argument("--longest", type=int, default=16384)
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--shape", type=int, nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.shape:
        corrupt(chosen.only, *chosen.shape)
        return
    sides = [math.isqrt(round(1e6 * each)) for each in chosen.megapixels]
    shapes = [*((side, side) for side in sides), (chosen.longest, _WIDTH)]
    titles = (f"{width} x {height}" for height, width in shapes)
    print(f"| corruption | {' | '.join(titles)} |\n|---{'|---' * len(shapes)}|")
    for case in chosen.only.split(",") if chosen.only else list_cases():
        print(f"| {case} | {' | '.join(measure(case, *shape) for shape in shapes)} |", flush=True)


if __name__ == "__main__":
    main()
