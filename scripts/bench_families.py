#!/usr/bin/env python3
"""Measures the speed of all families of corruptions relative to ImageNet-C, and of the stream of CCC.

    python scripts/bench_families.py [--rounds N]

Prints the table of docs/background/performance.md: processor time for all images made from one source image
of 224 x 224 pixels (28 x 28 for MNIST-C), without decoding and encoding, and the ratio to the common
corruptions of ImageNet-C.
Figures are the least of several rounds; each round has all families, so that a busy minute affects all of
them.
"""

import argparse
import io
import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

import robustgen
from robustgen.files.storage.host import keep_freed_memory
from robustgen.pixels.benchmarks.corruptions import FAMILIES, get_corruption
from robustgen.pixels.benchmarks.corruptions.laion_c import published_preparation
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.pixels.benchmarks.registry import MEDMNIST
from robustgen.pixels.imaging.geometry import resize
from robustgen.pixels.imaging.laion_c_effects import TileBank
from robustgen.related.streams.ccc import CccRun, list_corruptions
from robustgen.sets.sources.folder import Photographs
from robustgen.torch import CccDataset

Call = tuple[str, float, dict[str, Any]]


def list_sets() -> dict[str, list[Call]]:
    """Return each set with its corruptions, their whole severities, and the arguments of `corrupt`."""
    photographs = Photographs()
    keys = photographs.keys()
    pictures = [photographs.load(key) for key in keys]
    image = robustgen.prepare(pictures[0], "imagenet")
    depth = np.linspace(0.02, 0.5, 224 * 224, dtype=np.float32).reshape(224, 224)
    beside = {"tiles": TileBank.from_images(pictures, sides=(4, 6, 8, 16, 28)), "depth": depth}
    digit = np.asarray(Image.fromarray(image).convert("L").resize((28, 28)))

    def calls(names: tuple[str, ...], edition: str = "imagenet", seen: Any = image) -> Iterator[Call]:
        for name in names:
            operation = get_corruption(name)
            for level in filter(None, operation.levels):
                more: dict[str, Any] = {"image": seen, "edition": edition}
                if operation.needs and operation.needs.name in beside:
                    more["parameters"] = {operation.needs.name: beside[operation.needs.name]}
                if name == "laion-c:mosaic":
                    more["image"] = published_preparation(name, level).prepare(pictures[0])
                yield name, level, more

    three_d = FAMILIES["3dcc"].corruptions
    flat = tuple(name for name in three_d if not three_d[name].needs)
    sets = {
        "ImageNet-C, common corruptions": calls(IMAGENET_C.common),
        "ImageNet-C-bar": calls(FAMILIES["c-bar"].names(224)),
        "LAION-C": calls(FAMILIES["laion-c"].names()),
        "3DCC without depth": calls(flat),
        "3DCC with depth": calls(tuple(three_d)),
        "RoboDepth": calls(FAMILIES["robodepth"].names()),
        "CCC": calls(FAMILIES["ccc"].names()),
        "MNIST-C": calls(FAMILIES["mnist-c"].names(), "mnist", digit),
    }
    for edition in MEDMNIST:
        sets[f"MedMNIST-C, {edition}"] = calls(FAMILIES["medmnist-c"].names(edition), edition)
    return {name: [*each] for name, each in sets.items()}


def time_sets(sets: dict[str, list[Call]], rounds: int) -> dict[str, float]:
    """Return the milliseconds of each set."""
    least: dict[tuple[str, str, float], float] = {}
    for number in range(rounds + 1):
        for title, calls in sets.items():
            for name, level, more in calls:
                started = time.process_time()
                robustgen.corrupt(corruption=name, severity=level, rng=0, **more)
                took = time.process_time() - started
                # The first round compiles loops.
                if number:
                    place = title, name, level
                    least[place] = min(took, least.get(place, took))
    return {title: 1000 * sum(took for place, took in least.items() if place[0] == title) for title in sets}


class Base:
    """Fifty JPEG files of 500 x 375 pixels, decoded when needed."""

    def __init__(self) -> None:
        photographs = Photographs()
        self._files = []
        for key in photographs.keys()[:5]:
            file = io.BytesIO()
            Image.fromarray(resize(photographs.load(key), 500, 375)).save(file, "JPEG", quality=92)
            self._files.append(file.getvalue())

    def __len__(self) -> int:
        return 50

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        image = Image.open(io.BytesIO(self._files[index % len(self._files)]))
        image.load()
        return image, index


def time_stream(baseline: int, images: int) -> float:
    """Return the images that one core generates in a second, with decoding and JPEG, from all cells."""
    strength = np.arange(21)
    accuracies = np.clip(76 - 3.2 * (strength[:, None] + strength), 1, 100)
    table = dict.fromkeys(itertools.permutations(list_corruptions(baseline), 2), accuracies)
    dataset = CccDataset(Base(), table, baseline=baseline, images=CccRun(table, 50, baseline).images // 10)
    wanted = np.random.default_rng(0).integers(0, len(dataset), images).tolist()
    for index in wanted[: images // 4]:
        dataset[index]
    started = time.process_time()
    for index in wanted:
        dataset[index]
    return images / (time.process_time() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds, default 5")
    rounds = parser.parse_args().rounds
    keep_freed_memory()
    sets = list_sets()
    times = time_sets(sets, rounds)
    base = next(iter(times.values()))
    print("| set | images | ms | relative to ImageNet-C | images/s |\n|---|---|---|---|---|")
    for title, took in times.items():
        count = len(sets[title])
        print(f"| {title} | {count} | {took:.1f} | {took / base:.2f} | {1000 * count / took:.0f} |")
    print("\n| CCC | images/s |\n|---|---|")
    for baseline in (40, 20, 0):
        print(f"| baseline {baseline} | {time_stream(baseline, 400):.0f} |")


if __name__ == "__main__":
    main()
