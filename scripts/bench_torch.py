"""Measures the loop of docs/use/pytorch.md over all variants of ImageNet-C, as data sets deliver them.

    python scripts/bench_torch.py [--photographs 4] [--passes 3]

Prints milliseconds of processor time per image, the least of some passes: with a data set for each variant,
which prepares a photograph for each of them, and with `VariantsDataset`. The photographs have 500 x 375
pixels; the items are normalised tensors, without workers.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from bench_waits import put_photographs  # type: ignore[import-not-found]
from torchvision.transforms import v2

from robustgen import IMAGENET_C
from robustgen.torch import CorruptedDataset, SourceDataset, VariantsDataset
from robustgen.torch.items import MapStyle

VARIANTS = IMAGENET_C.variants(IMAGENET_C.common, IMAGENET_C.levels, clean=True)


def measure(dataset: MapStyle) -> float:
    """Return the milliseconds of processor time for all items."""
    started = time.process_time()
    for index in range(len(dataset)):
        dataset[index]
    return 1000 * (time.process_time() - started)


def main() -> None:
    """Print the two figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=int, default=4)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    as_tensor, scale = v2.ToImage(), v2.ToDtype(torch.float32, scale=True)
    normalise = v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    choices: dict[str, Any] = {"edition": "imagenet", "transform": v2.Compose([as_tensor, scale, normalise])}
    with tempfile.TemporaryDirectory() as folder:
        put_photographs(Path(folder), options.photographs)
        base = SourceDataset(folder)
        single = [CorruptedDataset(base, each.name, each.level, **choices) for each in VARIANTS]
        whole, times = VariantsDataset(base, VARIANTS, **choices), list[tuple[float, float]]()
        for _ in range(options.passes + 1):
            times.append((sum(map(measure, single)) / len(whole), measure(whole) / len(whole)))
    before, after = map(min, zip(*times[1:], strict=True))
    print(f"| a data set for each variant | {before:.2f} ms |\n| `VariantsDataset` | {after:.2f} ms |")


if __name__ == "__main__":
    main()
