#!/usr/bin/env python3
"""Cuts the full golden outputs down to the files in tests/golden.

    python scripts/golden.py FOLDER        (the folder with c_imagenet.npz ..., seeds.json and 2018/)

Where 2018/ holds another output of a case, that of the libraries of 2018, it is the one kept; the outputs of
a photograph made grey (luma), and of white and black images are found there only.
"""

import json
import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).resolve().parents[1] / "tests" / "golden"
# Every n-th pixel in both directions is kept; 1 keeps them all.
STEPS = {
    "c_imagenet": 11,
    "c_imagenet-inception": 12,
    "c_imagenet-64": 1,
    "c_cifar-10": 1,
    "p_imagenet": 11,
    "p_imagenet-inception": 12,
    "p_imagenet-64": 7,
    "p_tiny-imagenet": 7,
    "p_cifar-10": 1,
}
INPUTS = ("input", "source")


# Of the families, each n-th pixel, and the inputs and severities that are left out.
FAMILIES = {
    "cbar_imagenet": (11, ()),
    "cbar_cifar-10": (1, ()),
    "imagecorruptions": (7, ("chelsea-224", "astronaut-320x240")),
}


def cut_families(full: Path) -> None:
    seeds = json.loads((full / "families.json").read_text())["seeds"]
    cases = []
    for stem, (step, left_out) in FAMILIES.items():
        data = np.load(full / f"{stem}.npz")
        keys = [key for key in data.files if not key.removeprefix("input/").startswith(left_out or "\0")]
        inputs = {key: data[key] for key in keys if key.startswith("input/")}
        outputs = {key: data[key][::step, ::step] for key in keys if key not in inputs}
        np.savez_compressed(TARGET / f"{stem}.npz", **inputs, **outputs)
        prefix = stem.removeprefix("cbar_")
        cases += [
            {"file": stem, "key": key, "step": step, "seed": seeds[f"{prefix}/{key}"]} for key in outputs
        ]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (TARGET / "families.json").write_text(f"[\n{lines}\n]\n")


# Of LAION-C, MedMNIST-C and CCC's elastic; the inputs are those of `c_imagenet`. MNIST-C is kept whole.
LATER_STEP = 9


def cut_later_families(full: Path) -> None:
    """Keep the outputs, what is undecided of them, the bank of tiles and one input of 252 pixels."""
    data, kept = np.load(full / "families2.npz"), {}
    for key in data.files:
        family = key.partition("/")[0]
        if key in ("bank/photographs", "input/grey@252") or key.startswith("input/mnist-"):
            kept[key] = data[key]
        elif family == "mnist-c":
            shape, ups = data[key].shape, f"rounds-up/{key}"
            bits = np.unpackbits(data[ups])[: data[key].size].reshape(shape) if ups in data.files else 0
            kept[key] = data[key] + bits
        elif key.startswith("ccc/elastic/"):
            kept[key] = data[key]
        elif family in ("laion-c", "medmnist-c"):
            kept[key] = data[key][::LATER_STEP, ::LATER_STEP]
            if f"undecided/{key}" in data.files:
                shape = data[key].shape
                bits = np.unpackbits(data[f"undecided/{key}"])[: data[key].size].reshape(shape)
                kept[f"undecided/{key}"] = bits[::LATER_STEP, ::LATER_STEP]
    np.savez_compressed(TARGET / "families2.npz", **kept)


def main(full: Path) -> None:
    seeds = json.loads((full / "seeds.json").read_text())
    more = json.loads((full / "2018" / "index.json").read_text())["seeds"]
    cases = []
    for stem, step in STEPS.items():
        kind, edition = stem.split("_", 1)
        data, earlier = np.load(full / f"{stem}.npz"), full / "2018" / f"{stem}.npz"
        of_2018 = dict(np.load(earlier)) if earlier.exists() else {}
        added = full / "2018" / f"more_{stem}.npz"
        outputs = dict(data) | of_2018 | (dict(np.load(added)) if added.exists() else {})
        # The published jpeg_compression is that of IJG libjpeg.
        for key in [key for key in outputs if key.startswith("ijg/")]:
            outputs[key.removeprefix("ijg/")] = outputs.pop(key)
        kept = {
            key: data if key.endswith(INPUTS) else data[..., ::step, ::step, :]
            for key, data in outputs.items()
        }
        np.savez_compressed(TARGET / f"{stem}.npz", **kept)
        for key in outputs:
            if not key.endswith(INPUTS):
                # Of sequences, the seed of another source, and the frames of the published one.
                name = key.rsplit("/", 1)[-1] if kind == "p" else key
                case = seeds[kind].get(f"{edition}/{name}", 0)  # JPEG draws nothing
                case = case if kind == "p" else {"seed": case}
                case = case | ({"seed": more[f"{edition}/{key}"]} if f"{edition}/{key}" in more else {})
                cases.append({"file": stem, "key": key, "step": step, **case})
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (TARGET / "cases.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    cut_families(Path(sys.argv[1]))
    cut_later_families(Path(sys.argv[1]))
