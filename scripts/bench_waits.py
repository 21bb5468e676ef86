"""Measures commands that users wait for: on clusters, over CIFAR's arrays, for many models, with a network.

    python scripts/bench_waits.py [--only executors,arrays,scores,network] [--photographs 60]

Prints one line for each command: seconds, processor seconds of its own processes, and the peak memory of one.
Dask's and Ray's workers run on this machine, one for each core; starting them does not count.
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from bench_many import measure  # type: ignore[import-not-found]
from PIL import Image

import robustgen

CORES = len(os.sched_getaffinity(0))


def put_photographs(root: Path, count: int) -> None:
    """Write `count` JPEG files of 500 x 375 pixels, cut from built-in photographs."""
    from skimage import data

    pictures = [data.astronaut(), data.chelsea(), data.coffee(), data.rocket()]
    draws = np.random.default_rng(0)
    for number in range(count):
        picture = Image.fromarray(pictures[number % len(pictures)]).resize((640, 480))
        left, top = (int(draws.integers(0, most)) for most in (140, 105))
        place = root / f"class{number % 10}" / f"{number:04d}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        picture.crop((left, top, left + 500, top + 375)).save(place, quality=95)


@contextlib.contextmanager
def start_dask() -> Iterator[str]:
    """Run a scheduler and a worker for each core; yield the argument of ``--on``."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"

    def start(name: str, *words: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", name, *map(str, words), "--no-dashboard"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    processes = [
        start("scheduler", "--port", port),
        start("worker", address, "--nthreads", 1, "--nworkers", CORES),
    ]
    try:
        time.sleep(10)
        yield f"dask:{address}"
    finally:
        for each in reversed(processes):
            each.terminate()
            each.wait()


@contextlib.contextmanager
def start_ray() -> Iterator[str]:
    """Run a node with as many workers as cores; yield the argument of ``--on``."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": CORES})
    try:
        yield f"ray:{cluster.address}"
    finally:
        cluster.shutdown()


def tell(name: str, *arguments: object) -> None:
    """Run a command and print its row of the table."""
    found = measure(*arguments)
    print(
        f"| {name} | {found['seconds']} | {found['processor_seconds']} | {found['memory_mb']} MB |",
        flush=True,
    )


def compare_executors(home: Path, chosen: argparse.Namespace) -> None:
    """Write the same set with processes, Dask and Ray."""
    put_photographs(home / "photographs", photographs := chosen.photographs)
    make = ("make-c", "--dataset", "folder", "--source", home / "photographs", "--quiet", "--output")
    tell("warm up", *make, home / "warm")
    tell(
        f"`make-c` of {photographs} photographs, {CORES} processes",
        *make,
        home / "processes",
        "--jobs",
        CORES,
    )
    for start in (start_dask, start_ray):
        with start() as place:
            executor = place.partition(":")[0]
            tell(
                f"{executor}: first run, which starts its workers",
                *make,
                home / f"{executor}-first",
                "--on",
                place,
            )
            tell(f"the same on {executor.title()}", *make, home / executor, "--on", place)


def make_arrays(home: Path, _: argparse.Namespace) -> None:
    """Write three corruptions of 50,000 random images of CIFAR's size as arrays, and verify them."""
    draws = np.random.default_rng(0)
    np.savez(
        home / "cifar.npz",
        images=draws.integers(0, 256, (50_000, 32, 32, 3), np.uint8),
        labels=draws.integers(0, 10, 50_000),
    )
    make = ("make-c", "--source", home / "cifar.npz", "--edition", "cifar-10", "--format", "npy", "--quiet")
    few = ("--corruptions", "gaussian_noise,fog,contrast")
    tell("`make-c` of 50,000 images of 32 x 32, 15 variants", *make, *few, "--output", home / "arrays")
    tell("`verify` of these arrays", "verify", home / "arrays")


def score_models(home: Path, chosen: argparse.Namespace, images: int = 1000) -> None:
    """Score models with predictions for 76 variants of `images` images."""
    draws, labels = np.random.default_rng(0), np.arange(images) % 10
    keys = np.array([f"class{label}/{number}.jpg" for number, label in enumerate(labels)])
    variants = [
        "clean",
        *(f"{name}/{level}" for name in [*robustgen.CORRUPTIONS][:15] for level in range(1, 6)),
    ]
    for model in range(chosen.models):
        for variant in variants:
            place = home / "scores" / f"model{model:03d}" / f"{variant}.npz"
            place.parent.mkdir(parents=True, exist_ok=True)
            top1 = np.where(draws.random(images) < 0.6, labels, 0)
            np.savez(place, top1=top1, labels=labels, keys=keys, classes=10)
    tell(
        f"`score` of {chosen.models} models, {len(variants)} variants of {images:,} images",
        "score",
        home / "scores",
    )


def build_network() -> Any:
    """Return ResNet-18 with random weights for the ten classes of `put_photographs`."""
    return import_module("torchvision.models").resnet18(weights=None, num_classes=10)


def evaluate_network(home: Path, _: argparse.Namespace) -> None:
    """Evaluate ResNet-18 with random weights on the CPU."""
    put_photographs(home / "few", 20)
    arguments = (
        "--model",
        "bench_waits:build_network",
        "--source",
        home / "few",
        "--corruptions",
        "common",
        "--quiet",
        "--output",
        home / "predictions",
    )
    tell("`evaluate` of ResNet-18, 20 photographs, 76 variants", "evaluate", *arguments)


CASES = {
    "executors": compare_executors,
    "arrays": make_arrays,
    "scores": score_models,
    "network": evaluate_network,
}


def main() -> None:
    """Print the rows of the chosen cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--photographs", type=int, default=60)
    parser.add_argument("--models", type=int, default=300)
    chosen = parser.parse_args()
    print("| command | seconds | processor seconds | memory |\n|---|---|---|---|")
    for name in chosen.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            CASES[name](Path(folder), chosen)


if __name__ == "__main__":
    main()
