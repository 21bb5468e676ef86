"""Measures seconds and peak memory of each command on a set of many small images.

    python scripts/bench_many.py [--images 200000] [--folder DIR]

Each image has 32 x 32 pixels, and the set has two variants of it: the clean one, and contrast. The source is
written first. Memory is the largest resident memory of a single process of the command.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 100
CONTENT = ("--edition", "imagenet@32", "--corruptions", "contrast", "--severities", "1")


def put_images(root: Path, count: int) -> list[str]:
    """Write `count` images in a hundred classes; return their keys."""
    pixels = np.tile(np.linspace(0, 200, 32, dtype=np.uint8)[:, None, None], (1, 32, 3))
    keys = [f"class{number % CLASSES:02d}/{number:07d}.png" for number in range(count)]
    for number in range(CLASSES):
        (root / f"class{number:02d}").mkdir(parents=True)
    for number, key in enumerate(keys):
        pixels[0, 0] = number % 256
        Image.fromarray(pixels).save(root / key, compress_level=1)
    return keys


def put_predictions(root: Path, keys: list[str]) -> None:
    """Write predictions of a model that is right about every other image."""
    labels = np.array([int(key[5:7]) for key in keys])
    top1 = np.where(np.arange(len(keys)) % 2, labels, 0)
    for name in ("clean", "contrast/1"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        np.savez(root / f"{name}.npz", top1=top1, labels=labels, keys=np.array(keys), classes=CLASSES)


def measure(*arguments: object) -> dict[str, float]:
    """Run a command; return its seconds, and the most megabytes that one of its processes had."""
    started = time.monotonic()
    command = [sys.executable, "-m", "robustgen", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}")
    return {
        "seconds": round(time.monotonic() - started, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "memory_mb": round(usage.ru_maxrss / 1024),
    }


def merge(parts: list[Path], merged: Path) -> None:
    """Link the files of all parts into one folder, as copying would place them."""
    for part in parts:
        for above, _, names in os.walk(part):
            target = merged / Path(above).relative_to(part)
            target.mkdir(parents=True, exist_ok=True)
            for name in names:
                (target / name).unlink(missing_ok=True)
                os.link(Path(above, name), target / name)


def run_all(home: Path, count: int) -> None:
    keys = put_images(home / "source", count)
    put_predictions(home / "predictions", keys)
    make = ("make-c", "--source", home / "source", *CONTENT, "--output")
    plan, out, parts = home / "plan.json", home / "out", [home / "part1", home / "part2"]

    def tell(name: str, *arguments: object) -> None:
        print(json.dumps({"command": name, "images": count, **measure(*arguments)}), flush=True)

    tell("plan", *make, out, "--write-plan", plan)
    tell("run", "run", plan, "--quiet")
    tell("nothing to do", "run", plan, "--quiet")
    tell("verify", "verify", out)
    tell("report", "report", out, "--output", home / "report.html")
    for number, part in enumerate(parts, 1):
        tell(f"shard {number} of 2", *make, part, "--shard", f"{number}/2", "--quiet")
    merge(parts, home / "merged")
    tell("verify of merged shards", "verify", home / "merged")
    tell("score", "score", home / "predictions", "--partial", "--baseline", "none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--folder", help="empty folder for everything; default a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        run_all(Path(folder), options.images)


if __name__ == "__main__":
    main()
