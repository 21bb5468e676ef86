#!/usr/bin/env python3
"""Times robustgen against the codecs it cannot do without.

    python scripts/bench.py [--only NAME] [--quick] [--json FILE]

Prints a table per corruption beside the published functions' figures, and the
ratios that matter: make-c to its JPEG codec, CIFAR per image, make-p to x264,
two workers to one, and peak memory. Ratios are taken in one run, because the
machines are shared; the published figures were measured on another day.
"""

import argparse
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

import robustgen
from robustgen.evaluation import evaluating
from robustgen.evaluation.models.base import Model
from robustgen.generation import config, runner, tasks
from robustgen.generation.plan import Plan, plan_benchmark
from robustgen.imaging import video
from robustgen.imaging.geometry import resize
from robustgen.sources.photographs import Photographs

# Milliseconds for the five severities together at 224 x 224, by the published functions.
PUBLISHED = {
    "gaussian_noise": 19, "shot_noise": 45, "impulse_noise": 14, "defocus_blur": 16, "glass_blur": 3106,
    "motion_blur": 319, "zoom_blur": 355, "snow": 186, "frost": 12, "fog": 15.5, "brightness": 93,
    "contrast": 7, "elastic_transform": 143, "pixelate": 2, "jpeg_compression": 1, "speckle_noise": 14,
    "gaussian_blur": 12, "spatter": 18, "saturate": 86,
}  # fmt: skip


def photographs(folder: Path, count: int) -> Path:
    """`count` JPEG files of 500 x 375 pixels, the usual size in ImageNet, cut from real photographs."""
    source, rng = Photographs(), np.random.default_rng(0)
    images = list(map(source.load, source.keys()))
    target = folder / "photographs" / "class"
    target.mkdir(parents=True)
    for i in range(count):
        image = images[i % len(images)]
        height = min(image.shape[0], int(rng.integers(280, 420)))
        width = min(image.shape[1], height * 4 // 3)
        top = rng.integers(0, image.shape[0] - height + 1)
        left = rng.integers(0, image.shape[1] - width + 1)
        cut = resize(np.ascontiguousarray(image[top : top + height, left : left + width]), 500, 375)
        Image.fromarray(cut).save(target / f"{i:04d}.JPEG", quality=92)
    return target.parent


def cifar(folder: Path, count: int) -> Path:
    """A CIFAR-10 test batch of `count` real patches."""
    source, rng = Photographs(), np.random.default_rng(0)
    images = list(map(source.load, source.keys()))
    rows = []
    for i in range(count):
        image = images[i % len(images)]
        top, left = rng.integers(0, image.shape[0] - 128), rng.integers(0, image.shape[1] - 128)
        cut = np.ascontiguousarray(image[top : top + 128, left : left + 128])
        rows.append(resize(cut, 32, 32).transpose(2, 0, 1).reshape(-1))
    target = folder / "cifar-10-batches-py"
    target.mkdir()
    batch = {b"data": np.stack(rows), b"labels": [i % 10 for i in range(count)]}
    (target / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    return target


def planned(kind: str, **choices: object) -> Plan:
    return plan_benchmark(config.load(None, choices), kind)


def timed(plan: Plan) -> float:
    return runner.run(plan).seconds


def per_corruption(only: str | None) -> dict[str, list[float]]:
    """Milliseconds of each severity: the least of several runs, which noise cannot lower."""
    image = robustgen.prepare(Photographs().load("chelsea/chelsea.png"))
    tasks.keep_freed_memory()
    times = {}
    for name in [only] if only else robustgen.CORRUPTIONS:
        times[name] = [_least(lambda s=s, n=name: robustgen.corrupt(image, n, s, rng=0)) for s in range(1, 6)]
    return times


def _least(call, repeats: int = 7) -> float:
    call()
    took = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        took.append(time.perf_counter() - started)
    return 1000 * min(took)


def codec_share(plan: Plan) -> float:
    """Seconds to decode and prepare each source once and to encode all that `plan` wrote for it."""
    outputs = [
        [np.asarray(Image.open(plan.output / arm.folder / plan.writer.output_name(key))) for arm in plan.arms]
        for key in plan.keys
    ]
    started = time.perf_counter()
    for key, images in zip(plan.keys, outputs, strict=True):
        robustgen.prepare(plan.source.load(key))
        for pixels in images:
            Image.fromarray(pixels).save(BytesIO(), "JPEG", quality=85, optimize=True)
    return time.perf_counter() - started


def make_c(folder: Path, count: int) -> dict[str, float]:
    source = photographs(folder, count)
    choices = {"edition": "imagenet", "source": str(source), "jobs": 1, "clean": False}
    timed(planned("c", **choices, output=str(folder / "warm"), limit=2))
    ratios, shares, wholes = [], [], []
    for i in range(3):
        plan = planned("c", **choices, output=str(folder / f"c{i}"))
        wholes.append(timed(plan))
        shares.append(codec_share(plan))
        ratios.append(wholes[-1] / shares[-1])
    timed(planned("c", **choices | {"jobs": 2, "limit": 2}, output=str(folder / "warm2")))
    one, two = [], []
    for i in range(3):
        one.append(timed(planned("c", **choices, output=str(folder / f"one{i}"))))
        two.append(timed(planned("c", **choices | {"jobs": 2}, output=str(folder / f"two{i}"))))
    return {
        "codec_ms_per_image": 1000 * float(np.median(shares)) / count,
        "make_c_ms_per_image": 1000 * float(np.median(wholes)) / count,
        "ratio_to_codec": float(np.median(ratios)),
        "two_workers_to_one": float(np.median(np.array(one) / np.array(two))),
    }


# Of the photographs in `photographs`, which lie in one folder.
CLASSES = 1


class FreeModel(Model):
    """A model that costs nothing."""

    name, label, dtype, shape = "free", "free", np.dtype(np.float32), (None, 3, None, None)

    def settings(self) -> dict[str, str]:
        return {"file": "free", "sha256": ""}

    def versions(self) -> dict[str, str]:
        return {}

    def run(self, images: np.ndarray) -> np.ndarray:
        return np.zeros((len(images), CLASSES), np.float32)


def evaluate(folder: Path, count: int) -> dict[str, float]:
    """The time of `evaluate` with a model that costs nothing, by that of `make-c` for the same images."""
    source = photographs(folder / "e", count)
    evaluating.open_model = lambda *_: FreeModel()
    choices = {"edition": "imagenet", "source": str(source), "jobs": 1, "clean": False}
    ratios = []
    for i in range(3):
        whole = timed(planned("c", **choices, output=str(folder / f"ec{i}")))
        source_choices = config.load(None, choices)
        started = time.perf_counter()
        evaluating.evaluate(source_choices, "c", ["free"], folder / f"ev{i}")
        ratios.append((time.perf_counter() - started) / whole)
    return {"evaluate_to_make_c": float(np.median(ratios))}


def make_cifar(folder: Path, count: int) -> dict[str, float]:
    choices = {"edition": "cifar-10", "source": str(cifar(folder, count)), "jobs": 1, "clean": False}
    timed(planned("c", **choices, output=str(folder / "cw"), limit=8))
    seconds = [timed(planned("c", **choices, output=str(folder / f"cc{i}"))) for i in range(3)]
    return {"cifar_ms_per_image": 1000 * min(seconds) / count}


def make_p(folder: Path) -> dict[str, object]:
    """The time of `make-p` for one photograph, and of x264 alone for the same frames."""
    source = photographs(folder / "p", 1)
    plan = planned("p", edition="imagenet", source=str(source), jobs=1, output=str(folder / "pp"))
    (key,) = plan.keys
    image, totals, ratios = plan.recipe.prepare(plan.source.load(key)), np.zeros(2), {}
    for arm in plan.arms:
        frames = plan.recipe.make(arm, key, image)
        encoding = plan.writer.noise_encoding if arm.name in plan.writer.noises else plan.writer.encoding
        alone = _least(lambda f=frames, e=encoding: video.encode(f, e), 2)
        item = tasks.Item(0, key, 0, (arm,))
        task = tasks.Task(plan.recipe, plan.source, plan.writer, plan.output, (item,))
        (plan.output / ".robustgen" / "tmp").mkdir(parents=True, exist_ok=True)
        whole = _least(lambda t=task: tasks.run_task(t), 2)
        totals += whole, alone
        ratios[arm.name] = whole / alone
    return {"ratio_to_x264": float(totals[0] / totals[1]), "ratios_to_x264": ratios}


FORMATS = ("jpeg", "webdataset", "parquet")


def formats(folder: Path, count: int) -> dict[str, float]:
    """Of each format, milliseconds per image of 75, written to a disk and to memory."""
    source, figures = photographs(folder / "f", count), {}
    places = {"disk": folder, "memory": Path("/dev/shm")}
    for place, parent in places.items():
        if not parent.is_dir():
            continue
        least = dict.fromkeys(FORMATS, float("inf"))
        for _ in range(3):
            for name in FORMATS:
                with tempfile.TemporaryDirectory(dir=parent) as output:
                    choices = {"edition": "imagenet", "source": str(source), "jobs": 1, "clean": False}
                    plan = planned("c", **choices, format=name, output=f"{output}/set")
                    least[name] = min(least[name], timed(plan))
        for name, seconds in least.items():
            figures[f"{name}_ms_per_image_in_{place}"] = 1000 * seconds / count
    return figures


# ru_maxrss of a child begins with what its parent held when it was started; this does not.
MEASURED = """
import atexit, re
from robustgen.cli import main
status = lambda: open("/proc/self/status").read()
atexit.register(lambda: print("peak", re.search(r"VmHWM:\\s+(\\d+)", status())[1]))
main()
"""


def peak_memory() -> dict[str, float]:
    """Peak resident megabytes of a whole make-c process with one worker."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["make-c", "--dataset", "demo", "--jobs", "1", "--output", f"{folder}/m"]
        command = [sys.executable, "-c", MEASURED, *arguments]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {"peak_memory_mb": int(said.split()[-1]) / 1000}


def start_up() -> dict[str, float]:
    def seconds(*arguments: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "robustgen", *arguments], check=True, capture_output=True)
        return time.perf_counter() - started

    with tempfile.TemporaryDirectory() as folder:
        one = ["make-c", "--dataset", "demo", "--limit", "1", "--jobs", "1", "--output"]
        return {
            "help_seconds": min(seconds("--help") for _ in range(3)),
            "one_image_seconds": min(seconds(*one, f"{folder}/{i}") for i in range(3)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", metavar="NAME", choices=robustgen.CORRUPTIONS, help="time this corruption and nothing else"
    )
    parser.add_argument("--quick", action="store_true", help="fewer images")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    arguments = parser.parse_args()
    figures: dict[str, object] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "milliseconds": per_corruption(arguments.only),
    }
    print(f"{'ms at severity':20s}      1      2      3      4      5 |    sum  published")
    for name, row in figures["milliseconds"].items():
        published = PUBLISHED.get(name, float("nan"))
        print(f"{name:20s}", " ".join(f"{t:6.2f}" for t in row), f"| {sum(row):6.1f} {published:10.1f}")
    if not arguments.only:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            figures |= make_c(folder, 8 if arguments.quick else 40)
            figures |= evaluate(folder, 4 if arguments.quick else 20)
            figures |= make_cifar(folder, 100 if arguments.quick else 1000)
            figures |= formats(folder, 4 if arguments.quick else 20)
            figures |= make_p(folder) | peak_memory() | start_up()
        for name, value in figures.items():
            if isinstance(value, float):
                print(f"{name:36s} {value:8.2f}")
        print("ratios to x264:", ", ".join(f"{n} {r:.2f}" for n, r in figures["ratios_to_x264"].items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
