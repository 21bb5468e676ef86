"""Measures what x264's preset costs for the sequences of ImageNet-P, and what it changes.

    python scripts/bench_video.py [--photographs 8] [--presets veryslow,medium]

Prints a table: for each perturbation the processor time of the frames of a sequence, and for each preset the
processor time, the bytes and the PSNR of its video. The photographs are those of `demo`, as ImageNet's. Then
prints the processor time of `evaluate` for each of them, with a model that takes no time.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

import robustgen
from robustgen.pixels.benchmarks.kinds import IMAGENET_P
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.dataset.recipes import PerturbationRecipe
from robustgen.sets.formats.videos import Mp4Encoder
from robustgen.sets.sources.opening import open_source

Made = TypeVar("Made")


def measure(work: Callable[..., Made], *arguments: object) -> tuple[Made, float]:
    """Return what `work` returns, and the milliseconds of processor time that it takes."""
    started = time.process_time()
    return work(*arguments), 1000 * (time.process_time() - started)


def compute_psnr(frames: Rgb, others: Rgb) -> float:
    """Return the PSNR of all frames in decibels."""
    error = np.mean((frames.astype(np.int16) - others) ** 2.0)
    return float(10 * np.log10(255**2 / error))


def answer_nothing(pixels: Rgb) -> "np.ndarray[Any, Any]":
    """Return scores of eight classes for images (n, H, W, 3), without looking at them."""
    return np.zeros((len(pixels), 8), np.float32)


def print_evaluations(photographs: int) -> None:
    """Print a row for ImageNet-C and for ImageNet-P, uncompressed and as published."""
    cases: dict[str, dict[str, Any]] = {
        "ImageNet-C, 76 images": {},
        "ImageNet-P, 10 sequences, `--uncompressed`": {"perturbations": "common", "uncompressed": True},
        "ImageNet-P, 10 sequences": {"perturbations": "common"},
    }
    own: dict[str, Any] = {"limit": photographs, "jobs": 1, "quiet": True, "name": "free"}
    print("| `evaluate` | ms per photograph |\n|---|---|")
    for name, choices in cases.items():
        spent = list[float]()
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                work = partial(robustgen.evaluate, answer_nothing, "demo", output=folder, **own, **choices)
                _, whole = measure(work)
            spent.append(whole / photographs)
        print(f"| {name} | {min(spent):.0f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=int, default=8)
    parser.add_argument("--presets", default="veryslow,medium")
    options = parser.parse_args()
    encoder = Mp4Encoder(frozenset(IMAGENET_P.noises))
    encoders = {name: encoder.with_preset(name) for name in options.presets.split(",")}
    recipe, source = PerturbationRecipe("imagenet"), open_source("", source_kind="demo")
    prepared = {key: recipe.prepare(source.open(key)) for key in source.keys()[: options.photographs]}
    heads = [f"{name}, {what}" for what in ("ms", "kB", "dB") for name in encoders]
    print(f"| perturbation | frames, ms | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 2)}")
    rows = list[np.ndarray[Any, Any]]()
    for variant in IMAGENET_P.variants(IMAGENET_P.common, (1,)):
        found = list[list[float]]()
        for key, image in prepared.items():
            recipe.make(variant, key, image)
            frames, making = measure(recipe.make, variant, key, image)
            times, sizes, quality = list[float](), list[float](), list[float]()
            for each in encoders.values():
                (file,), spent = measure(each.encode, variant, key, frames)
                times.append(spent)
                sizes.append(len(file.data) / 1000)
                quality.append(compute_psnr(frames, each.as_read(variant, key, frames)))
            found.append([making, *times, *sizes, *quality])
        rows.append(np.mean(found, axis=0))
        print_row(variant.name, rows[-1], len(encoders))
    count = len(encoders)
    total = np.concatenate([np.sum(rows, axis=0)[: 1 + 2 * count], np.mean(rows, axis=0)[1 + 2 * count :]])
    print_row("all ten (PSNR: mean)", total, count)
    print()
    print_evaluations(options.photographs)


def print_row(name: str, values: "np.ndarray[Any, Any]", presets: int) -> None:
    """Print a row of the table."""
    whole = [f"{value:.0f}" for value in values[: 1 + 2 * presets]]
    print(
        f"| {name} | {' | '.join([*whole, *(f'{value:.2f}' for value in values[1 + 2 * presets :])])} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
