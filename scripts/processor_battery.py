#!/usr/bin/env python3
"""Prints the digests of some thousand outputs, which must be the same on every processor.

    python scripts/processor_battery.py [--quick]

tests/pixels/imaging/test_processors.py runs it with features of the processor switched off,
scripts/test_aarch64.sh on another architecture. Inputs are made from whole numbers only. Some are flat or
white, because there the last bit of a weight decides whether 255 becomes 254.
"""

import argparse
from hashlib import sha256
from typing import Any

import numpy as np
from PIL import Image

import robustgen
from robustgen.compat import imagecorruptions
from robustgen.pixels.benchmarks.corruptions import FAMILIES, get_corruption
from robustgen.pixels.benchmarks.registry import MEDMNIST
from robustgen.pixels.imaging.augmix import OPERATIONS, AugMix, augmix
from robustgen.pixels.imaging.cleaning import Clahe, clahe
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.pixels.imaging.laion_c_effects import TileBank
from robustgen.pixels.imaging.rng import beta, dirichlet
from robustgen.pixels.imaging.similarity import Alignment, Reference
from robustgen.related.streams import ccc

LATER = ("laion-c", "3dcc", "robodepth", "ccc", "medmnist-c")


def make_images(height, width):
    """Return name to uint8 (H, W, 3)."""
    y, x = np.mgrid[:height, :width].astype(np.int64)
    waves = (x * x * 3 + y * y * 5 + x * y * 7) // (height + width) % 256
    ramps = np.stack(
        [x * 255 // (width - 1), y * 255 // (height - 1), (x + y) * 255 // (height + width - 2)], -1
    )
    # Marsaglia's xorshift, because the generators themselves are tested.
    noise, state = np.empty(3 * height * width, np.int64), 2463534242
    for i in range(noise.size):
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        noise[i] = state & 255
    every = {
        "ramps": ramps,
        "grey waves": np.repeat(waves[..., None], 3, axis=2),
        "noise": noise.reshape(height, width, 3),
        "white": np.full((height, width, 3), 255),
        "half white": np.where((x > width // 2)[..., None], 255, ramps),
    }
    return {name: image.astype(np.uint8) for name, image in every.items()}


def rngs():
    return {"generator": np.random.default_rng(5), "legacy": np.random.RandomState(5)}


def corruptions(edition, shape, severities, labels):
    for label, image in make_images(*shape).items():
        if label in labels:
            for name in [*robustgen.CORRUPTIONS, *FAMILIES["c-bar"].names(min(shape))]:
                for severity in severities:
                    for generator, rng in rngs().items():
                        made = robustgen.corrupt(image, name, severity, edition=edition, rng=rng)
                        yield f"{edition} {label} {name}/{severity} {generator}", made


def perturbations(edition, shape, labels):
    for label, image in make_images(*shape).items():
        if label in labels:
            for name in robustgen.PERTURBATIONS:
                yield f"{edition} {label} P {name}", robustgen.perturb(image, name, edition=edition, rng=5)


def implementation(shape, severities):
    for label, image in make_images(*shape).items():
        for name in imagecorruptions.get_corruption_names("all"):
            for severity in severities:
                for generator, rng in rngs().items():
                    made = imagecorruptions.corrupt(image, severity, name, rng=rng)
                    yield f"imagecorruptions {label} {name}/{severity} {generator}", made


def others(shape):
    for label, image in make_images(*shape).items():
        for name, operation in OPERATIONS.items():
            for level in (0.3, 1.7, 10):
                yield f"augmix {label} {name} {level}", operation(image, level)
        for alpha in (1.0, 0.3):
            for generator, rng in rngs().items():
                made = augmix(image, AugMix(alpha=alpha, operations="all"), rng)
                yield f"augmix {label} alpha {alpha} {generator}", made
        for limit, tiles in ((2.0, 8), (4.0, 3)):
            yield f"clahe {label} {limit} {tiles}", clahe(image, Clahe(limit, tiles))
        yield f"prepare {label}", robustgen.prepare(Image.fromarray(image), "imagenet@48")
        yield f"jpeg {label}", np.frombuffer(encode_jpeg(image, 85, optimise=True), np.uint8)
        moved = np.ascontiguousarray(image[::-1])
        likeness = Reference(image).similarity(moved)
        yield f"similarity {label}", np.array([likeness.psnr, likeness.ssim, likeness.ms_ssim])
        yield f"displacement {label}", np.array(Alignment(image).displacement(np.roll(image, 1, axis=1)))


def weights():
    for shape in (0.01, 0.1, 0.7, 1.0, 3.0):
        yield f"dirichlet {shape}", dirichlet(np.random.default_rng(5), shape, 200)
        rng = np.random.default_rng(5)
        yield f"beta {shape}", np.array([beta(rng, shape, 0.5 * shape) for _ in range(200)])


def families():
    """Yield outputs of the later families, with tiles and depth from whole numbers, and the crops of CCC."""
    pictures = make_images(224, 224)
    depth = (np.arange(224 * 224, dtype=np.float32) % 1000 + 20).reshape(224, 224) / 2048
    beside = {"tiles": TileBank.from_images([*pictures.values()], sides=(4, 6, 8, 16, 28)), "depth": depth}
    editions = {name: MEDMNIST if name == "medmnist-c" else ("imagenet",) for name in LATER}
    for family, edition in ((name, each) for name, those in editions.items() for each in those):
        for name in FAMILIES[family].names(edition if family == "medmnist-c" else None):
            operation = get_corruption(name)
            needs = operation.needs.name if operation.needs else ""
            more: dict[str, Any] = {"parameters": {needs: beside[needs]}} if needs in beside else {}
            for severity in (0.25, 2.75, 4.5) if family == "ccc" else (1, 5):
                for label in ("half white", "noise"):
                    for generator, rng in rngs().items():
                        image = pictures[label]
                        made = robustgen.corrupt(image, name, severity, edition=edition, rng=rng, **more)
                        yield f"{edition} {label} {name}/{severity} {generator}", made
    for label, image in make_images(28, 28).items():
        for name in FAMILIES["mnist-c"].names():
            for generator, rng in rngs().items():
                yield (
                    f"mnist {label} {name} {generator}",
                    robustgen.corrupt(image, name, 1, edition="mnist", rng=rng),
                )
    for seed in range(200):
        step = ccc.CccStep(0, ccc.StreamCell("fog", 1, "snow", 1), (seed,))
        yield f"crop {seed}", np.array(ccc.draw_geometry(step, 500, 375)[0].box)


def battery(quick):
    flat = ("grey waves", "white", "half white")
    every = (*flat, "ramps", "noise")
    yield from corruptions("cifar-10", (32, 32), (1, 3, 5), every)
    yield from perturbations("cifar-10", (32, 32), ("half white", "grey waves"))
    yield from implementation((40, 51), (2, 5))
    yield from others((83, 61))
    yield from weights()
    if not quick:
        yield from families()
        yield from corruptions("imagenet-64", (64, 64), (1, 2, 3, 4, 5), flat)
    yield from corruptions(
        "imagenet", (224, 224), (2, 4), ("white",) if quick else ("grey waves", "half white")
    )
    yield from corruptions("folder", (90, 200), (1, 5), ("half white",))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="half of them")
    for what, made in battery(parser.parse_args().quick):
        values = np.ascontiguousarray(made)
        print(
            what,
            sha256(f"{values.shape} {values.dtype}".encode() + values.tobytes()).hexdigest()[:16],
            sep="\t",
        )


if __name__ == "__main__":
    main()
