#!/usr/bin/env python3
"""Compares the speed of robustgen.augmix and timm's AugMix on the same images, on one core.

    pip install --no-deps timm
    python scripts/bench_augmix.py [--timm FOLDER] [--images N] [--json FILE]

Both apply the nine operations of the paper at severity 3, in three chains of depth 1 to 3. timm runs in
both of its modes (the published mixing, and its faster blending), bilinear and with its own choice of
filters. They take turns with each image, and the medians per image are compared. Only one file of timm is
imported, so PyTorch is not needed.
"""

import argparse
import importlib.util
import json
import random
import time
from collections.abc import Callable
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from PIL import Image

import robustgen
from robustgen.sets.sources.folder import Photographs

OPERATIONS = (
    *("AutoContrast", "Equalize", "PosterizeIncreasing", "Rotate", "SolarizeIncreasing"),
    *("ShearX", "ShearY", "TranslateXRel", "TranslateYRel"),
)
# As in the published code; with inf, levels are uniform.
PUBLISHED = {
    "magnitude_std": float("inf"),
    "interpolation": Image.Resampling.BILINEAR,
    "img_mean": (0, 0, 0),
    "translate_pct": 1 / 3,
}
OWN_FILTERS = {"magnitude_std": float("inf"), "img_mean": (128, 128, 128)}

Contender = Callable[[Image.Image, Any], object]


def timm_module(folder: Path | None) -> ModuleType:
    """Return timm's module auto_augment, without importing its package."""
    if folder is None:
        package = importlib.util.find_spec("timm")
        folder = Path(package.origin).parent if package and package.origin else Path("timm")
    file = folder / "data" / "auto_augment.py"
    if not file.is_file():
        raise SystemExit(f"{file} is missing: pip install --no-deps timm, or name its folder with --timm")
    module = ModuleType("auto_augment")
    SourceFileLoader(module.__name__, str(file)).exec_module(module)
    return module


def call_timm(transform: Callable[[Image.Image], object], picture: Image.Image, pixels: Any) -> object:
    return transform(picture)


def contenders(timm: ModuleType) -> dict[str, Contender]:
    rng = np.random.default_rng(0)
    chosen: dict[str, Contender] = {
        "robustgen": lambda picture, pixels: robustgen.augmix(pixels, rng=rng),
        # timm takes and returns Pillow images.
        "robustgen, Pillow": lambda picture, pixels: Image.fromarray(robustgen.augmix(picture, rng=rng)),
    }
    for filters, settings in (("bilinear", PUBLISHED), ("own filters", OWN_FILTERS)):
        for mode, blended in (("published", False), ("blended", True)):
            transform = timm.AugMixAugment(timm.augmix_ops(3, settings, list(OPERATIONS)), blended=blended)
            chosen[f"timm {mode}, {filters}"] = partial(call_timm, transform)
    return chosen


def medians(chosen: dict[str, Contender], side: int, images: int) -> dict[str, float]:
    """Return the milliseconds for an image of `side` x `side` pixels; taking turns evens out noise."""
    source = Photographs()
    pictures = [Image.fromarray(image).resize((side, side)) for image in map(source.load, source.keys())]
    pairs = [(picture, np.array(picture)) for picture in pictures]
    for contender in chosen.values():
        for _ in range(20):  # compiles, and fills caches
            contender(*pairs[0])
    took: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(images):
        for name, contender in chosen.items():
            started = time.perf_counter()
            # The time depends on the random draws; the mean of eight varies less.
            for picture, pixels in pairs:
                contender(picture, pixels)
            took[name].append((time.perf_counter() - started) / len(pairs))
    return {name: 1000 * float(np.median(each)) for name, each in took.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timm", type=Path, help="folder of the installed package timm")
    parser.add_argument("--images", type=int, default=100, help="rounds over the eight photographs")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    random.seed(0)
    np.random.seed(0)
    chosen = contenders(timm_module(arguments.timm))
    figures = {side: medians(chosen, side, arguments.images) for side in (224, 32)}
    print(f"{'milliseconds per image':28s} {'224 x 224':>10s}  ratio {'32 x 32':>10s}  ratio")
    for name in chosen:
        row = [(figures[side][name], figures[side][name] / figures[side]["robustgen"]) for side in figures]
        print(f"{name:28s}", " ".join(f"{value:10.3f} {ratio:6.2f}" for value, ratio in row))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
