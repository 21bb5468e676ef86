#!/usr/bin/env python3
"""Compares the time of other packages for the 75 images of ImageNet-C that one photograph gives.

    python scripts/bench_alternatives.py [--photograph FILE] [--folder DIR] [--passes N] [--json FILE]

Installs the latest release of each package into an environment of its own below DIR; robustgen is that of
the Python that runs this script. All run on one core, on the same image of 224 x 224 pixels, after a first
pass that compiles loops and reads files. Seconds are those of the processor, as machines are shared. The work
is not the same: others draw other random numbers, some write other pixels, and the transforms of
torch-uncertainty take and return floating-point tensors. A corruption that fails is counted and named, and
its time is left out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

SIDE, SEVERITIES = 224, (1, 2, 3, 4, 5)
PACKAGES = {"imagecorruptions": ("imagecorruptions",), "torch-uncertainty": ("torch-uncertainty[image,cpu]",)}

Corruptions = Mapping[str, Callable[[], object]]
"""Name of a corruption and severity to a function that corrupts the photograph."""


# --- in the environment of a package -------------------------------------------------------------


def open_imagecorruptions(photograph: str) -> Corruptions:
    """Return the common corruptions of imagecorruptions."""
    import imagecorruptions
    import numpy as np
    from PIL import Image

    image = np.asarray(Image.open(photograph))
    return {
        f"{name}/{level}": partial(imagecorruptions.corrupt, image, level, name)
        for name in imagecorruptions.get_corruption_names("common")
        for level in SEVERITIES
    }


def open_torch_uncertainty(photograph: str) -> Corruptions:
    """Return the transforms that torch-uncertainty lists for ImageNet-C."""
    import numpy as np
    import torch
    from PIL import Image
    from torch_uncertainty.transforms.corruption import corruption_transforms

    torch.set_num_threads(1)
    pixels = torch.from_numpy(np.array(Image.open(photograph))).permute(2, 0, 1) / 255
    built = {
        f"{each.__name__}/{level}": (each, level) for each in corruption_transforms for level in SEVERITIES
    }
    transforms: dict[str, Any] = {}

    def apply(name: str) -> object:
        if name not in transforms:
            transform, level = built[name]
            transforms[name] = transform(level)
        return transforms[name](pixels.clone())

    return {name: partial(apply, name) for name in built}


def open_robustgen(photograph: str) -> Corruptions:
    """Return the common corruptions of robustgen."""
    import numpy as np
    from PIL import Image

    import robustgen
    from robustgen.pixels.benchmarks.kinds import IMAGENET_C

    image = np.asarray(Image.open(photograph))
    return {
        f"{name}/{level}": partial(robustgen.corrupt, image, name, level, rng=0)
        for name in IMAGENET_C.common
        for level in SEVERITIES
    }


OPENERS = {
    "imagecorruptions": open_imagecorruptions,
    "torch-uncertainty": open_torch_uncertainty,
    "robustgen": open_robustgen,
}


def measure(package: str, photograph: str, passes: int) -> dict[str, Any]:
    """Return the seconds of each corruption in each pass, and the reasons of those that fail."""
    seconds: dict[str, list[float]] = {}
    failures: dict[str, str] = {}
    for name, corrupt in OPENERS[package](photograph).items():
        try:
            corrupt()
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}".splitlines()[0]
            continue
        seconds[name] = []
        for _ in range(passes):
            started = time.process_time()
            corrupt()
            seconds[name].append(time.process_time() - started)
    return {"seconds": seconds, "failures": failures}


# --- everywhere ----------------------------------------------------------------------------------


def install(folder: Path, requirements: tuple[str, ...]) -> str:
    """Return the Python of an environment in `folder` with `requirements`, created if there is none."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
    return str(python)


def run_in(python: str, package: str, photograph: Path, passes: int) -> dict[str, Any]:
    """Return what `measure` returns in a process of `python`."""
    words = [python, __file__, "--photograph", str(photograph), "--passes", str(passes), "--measure", package]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    # Packages print warnings to the standard output, too.
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def write_photograph(source: Path | None, target: Path) -> None:
    """Write the photograph of 224 x 224 pixels; by default, one that scikit-image contains."""
    from PIL import Image

    import robustgen

    if source is None:
        import skimage.data

        photograph = Image.fromarray(skimage.data.astronaut())
    else:
        photograph = Image.open(source)
    Image.fromarray(robustgen.prepare(photograph, "imagenet")).save(target)


def main() -> None:
    """Print a line for each package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photograph", type=Path, help="default: one of scikit-image")
    parser.add_argument(
        "--folder", type=Path, help="parent of the environments (default: a temporary folder)"
    )
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write all seconds and failures to this file")
    parser.add_argument("--measure", choices=OPENERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if options.measure:
        print(json.dumps(measure(options.measure, options.photograph, options.passes)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder, photograph = options.folder or Path(temporary), Path(temporary) / "photograph.png"
        write_photograph(options.photograph, photograph)
        pythons = {name: install(folder / name, needs) for name, needs in PACKAGES.items()}
        pythons["robustgen"] = sys.executable
        found = {name: run_in(python, name, photograph, options.passes) for name, python in pythons.items()}
    for package, figures in found.items():
        seconds, failures = figures["seconds"], figures["failures"]
        totals = [sum(each) for each in zip(*seconds.values(), strict=True)]
        print(
            f"{package}: {min(totals):.3g} to {max(totals):.3g} s for {len(seconds)} of"
            f" {len(seconds) + len(failures)} images"
        )
        for name, reason in failures.items():
            print(f"  {name}: {reason}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
