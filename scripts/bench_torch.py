"""Measures the loop of docs/use/pytorch.md over all variants of ImageNet-C, as data sets deliver them.

    python scripts/bench_torch.py [--photographs 4] [--passes 3]

Prints milliseconds of processor time per image, the least of some passes: with a data set for each variant,
which prepares a photograph for each of them; with `VariantsDataset`, also without the JPEG round trip; and
with torchvision's `ImageFolder` of the set that `make-c` writes. The photographs have 500 x 375 pixels; the
items are normalised tensors, without workers.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from bench_waits import put_photographs  # type: ignore[import-not-found]
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from robustgen import IMAGENET_C, make_c
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
    """Print a row for each kind of data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=int, default=4)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    as_tensor, scale = v2.ToImage(), v2.ToDtype(torch.float32, scale=True)
    normalise = v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    transform = v2.Compose([as_tensor, scale, normalise])
    choices: dict[str, Any] = {"edition": "imagenet", "transform": transform}
    with tempfile.TemporaryDirectory() as name:
        folder, written = Path(name) / "photographs", Path(name) / "set"
        put_photographs(folder, options.photographs)
        make_c(source=str(folder), edition="imagenet", output=str(written), jobs=1, quiet=True)
        base = SourceDataset(folder)
        kinds: dict[str, Sequence[MapStyle]] = {
            "a data set for each variant": [
                CorruptedDataset(base, each.name, each.level, **choices) for each in VARIANTS
            ],
            "`VariantsDataset`": [VariantsDataset(base, VARIANTS, **choices)],
            "`VariantsDataset`, `jpeg=None`": [VariantsDataset(base, VARIANTS, jpeg=None, **choices)],
            "`ImageFolder` of the written set": [
                ImageFolder(str(written / each.folder), transform) for each in VARIANTS
            ],
        }
        # Each kind in turn, so that all see the same neighbours.
        passes = [
            [sum(map(measure, datasets)) / sum(map(len, datasets)) for datasets in kinds.values()]
            for _ in range(options.passes + 1)
        ]
    for kind, least in zip(kinds, map(min, zip(*passes[1:], strict=True)), strict=True):
        print(f"| {kind} | {least:.2f} ms |")


if __name__ == "__main__":
    main()
