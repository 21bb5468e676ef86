#!/usr/bin/env python3
"""Tries what docs/start/alternatives.md says of other packages, with the releases that it names.

    python scripts/try_alternatives.py [--folder DIR] [PACKAGE ...]

Installs each package from the index of pip into an environment of its own below DIR, and prints RIGHT or
WRONG for each claim; ends with status 1 if one is wrong. kornia brings PyTorch, up to 5 GB.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

# Computed from the image alone by imagecorruptions.
FIXED = {
    "brightness", "contrast", "defocus_blur", "gaussian_blur", "jpeg_compression", "pixelate", "saturate",
    "zoom_blur",
}  # fmt: skip
OURS = "ours.npz"


def put_ours(path: Path) -> None:
    """Write an image, and what robustgen makes of it, for comparison."""
    from robustgen.compat.imagecorruptions import corrupt

    ramp = np.add.outer(np.arange(96) * 2, np.arange(128))[..., None] + np.array([0, 20, 40])
    image = np.clip(ramp * 0.6 + np.random.default_rng(0).normal(0, 20, ramp.shape), 0, 255).astype(np.uint8)
    made: dict[str, Any] = {name: corrupt(image, 3, name) for name in FIXED}
    np.savez(path, image=image, **made)


# --- in the environment of a package: claims, and whether they hold ------------------------------------


def _corrupt_all(ours: dict[str, np.ndarray]) -> tuple[set[str], set[str]]:
    """Return the corruptions of the package `imagecorruptions` that fail, and those with our pixels."""
    from imagecorruptions import corrupt, get_corruption_names

    failing, equal = set(), set()
    for name in get_corruption_names("all"):
        try:
            made = corrupt(ours["image"], 3, name)
        except Exception:
            failing.add(name)
        else:
            equal |= {name} if name in ours and np.array_equal(made, ours[name]) else set()
    return failing, equal


def try_imagecorruptions(ours: dict[str, np.ndarray]) -> Iterator[tuple[str, bool]]:
    failing, _ = _corrupt_all(ours)
    yield "fails at fog, gaussian_blur and glass_blur", failing == {"fog", "gaussian_blur", "glass_blur"}


def try_imagecorruptions_imaug(ours: dict[str, np.ndarray]) -> Iterator[tuple[str, bool]]:
    failing, equal = _corrupt_all(ours)
    yield "all 19 run", not failing
    yield "the eight without random numbers have robustgen's pixels", equal == FIXED


def try_albumentations(ours: dict[str, np.ndarray]) -> Iterator[tuple[str, bool]]:
    import albumentations

    def noise(**given: np.ndarray) -> np.ndarray:
        (made,) = albumentations.Compose([albumentations.GaussNoise(p=1)], seed=5)(**given).values()
        return np.asarray(made)

    frames = noise(images=np.stack([ours["image"]] * 3))
    yield "one draw for all of `images=`", bool((frames == frames[0]).all())
    once, again = (noise(image=ours["image"]) for _ in range(2))
    yield "a seed repeats an image", np.array_equal(once, again)


def try_albumentationsx(ours: dict[str, np.ndarray]) -> Iterator[tuple[str, bool]]:
    yield "its licence is AGPL-3.0", "AGPL" in str(metadata.metadata("albumentationsx"))


def try_nrtk(ours: dict[str, np.ndarray]) -> Iterator[tuple[str, bool]]:
    distribution = metadata.distribution("nrtk")
    files = " ".join(map(str, distribution.files or ()))
    yield "its licence is Apache-2.0", "apache" in str(distribution.metadata).lower()
    for what in (
        "pybsm",
        "turbulence",
        "water_droplet",
        "radial_distortion",
        "codec_macroblock",
        "maite",
        "_cli",
    ):
        yield f"it has modules named {what}", what in files
    from nrtk.impls.perturb_image.geometric.random import RandomTranslationPerturber
    from smqtk_image_io.bbox import AxisAlignedBoundingBox

    image = np.zeros((64, 64, 3), np.uint8)
    image[10:20, 30:40] = 255
    box = AxisAlignedBoundingBox((30, 10), (40, 20)), {"car": 1.0}
    moved, ((found, _),) = RandomTranslationPerturber(seed=1)(image=image, boxes=[box])
    rows, columns = np.nonzero(moved[..., 0])
    yield "it moves boxes with the image", (columns.min(), rows.min()) == tuple(found.min_vertex) != (30, 10)


def try_kornia(ours: dict[str, np.ndarray]) -> Iterator[tuple[str, bool]]:
    import torch
    from kornia.augmentation import RandomBrightness, RandomGaussianNoise, VideoSequential

    clip = torch.full((1, 3, 4, 8, 8), 0.5, requires_grad=True)
    arguments = {"data_format": "BCTHW", "same_on_frame": True}
    frames = VideoSequential(RandomBrightness((0.6, 1.4), p=1), **arguments)(clip)
    yield "one draw for all frames of a clip", bool(torch.allclose(frames, frames[:, :, :1]))
    RandomGaussianNoise(p=1)(clip[:, :, 0]).sum().backward()
    yield "gradients flow through", clip.grad is not None and bool(clip.grad.any())


PACKAGES = {
    "imagecorruptions": (try_imagecorruptions, "imagecorruptions==1.1.2 setuptools<81"),
    "imagecorruptions-imaug": (try_imagecorruptions_imaug, "imagecorruptions-imaug==1.1.5"),
    "albumentations": (try_albumentations, "albumentations==2.0.8"),
    "albumentationsx": (try_albumentationsx, "albumentationsx"),
    "nrtk": (try_nrtk, "nrtk==1.1.0"),
    "kornia": (try_kornia, "kornia==0.9.0"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(PACKAGES))
    parser.add_argument("--folder", type=Path, help="folder for the environments; default a temporary one")
    parser.add_argument("--here", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        (name,) = arguments.packages
        with np.load(arguments.here) as ours:
            claims = [*PACKAGES[name][0](dict(ours))]
        for claim, holds in claims:
            print(f"{'RIGHT' if holds else 'WRONG'} {name}: {claim}", flush=True)
        sys.exit(not all(holds for _, holds in claims))
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        put_ours(folder / OURS)
        failed = 0
        for name in arguments.packages or PACKAGES:
            python = folder / name / "bin" / "python"
            if not python.exists():
                venv.create(folder / name, with_pip=True)
                subprocess.run(
                    [python, "-m", "pip", "--quiet", "install", *PACKAGES[name][1].split()], check=True
                )
            failed |= subprocess.run(
                [python, __file__, name, "--here", folder / OURS], check=False
            ).returncode
    sys.exit(failed)


if __name__ == "__main__":
    main()
