"""Blur sequences: rotating motion blur, growing zoom blur, and as the extra one growing Gaussian blur."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robustgen.pixels.benchmarks.registry import perturbation
from robustgen.pixels.imaging.arrays import unit
from robustgen.pixels.imaging.gaussian import gaussian_bytes
from robustgen.pixels.imaging.geometry import affine
from robustgen.pixels.imaging.motion import MotionEngine, blur_along_line
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.zoom import take_in

FRAMES = 31


@dataclass(frozen=True)
class MotionBlur:
    """Trail (as in the corruption) at `step` * (i - `origin`) degrees in each of `frames` frames."""

    radius: float
    sigma: float
    step: float
    origin: int = 30
    frames: int = 31
    engine: MotionEngine = "exact"


@perturbation(
    "blur",
    MotionBlur,
    {224: ((10, 3, 4),), 299: ((13, 3, 4),), 64: ((14, 3, 5),), 32: ((6, 1.8, 9, 20, 21),)},
    # At 64 pixels the scripts blurred the original photograph and then shrank it.
    stage={64: "raw"},
    random=False,
)
def motion_blur(image: Rgb, parameters: MotionBlur, rng: Rng) -> Iterator[Rgb]:
    """Rotate the direction in which the camera moves."""
    p = parameters
    angles = [p.step * (i - p.origin) for i in range(p.frames)]
    return (blur_along_line(image, p.radius, p.sigma, angle, p.engine) for angle in angles)


@dataclass(frozen=True)
class ZoomBlur:
    """Zoom factor 1 + `step` * i."""

    step: float = 0.004


@perturbation(
    "blur",
    ZoomBlur,
    {224: (0.004,), 299: 224, 64: 224, 32: 224},
    stage={224: "resized", 64: "resized"},
    random=False,
)
def zoom_blur(image: Rgb, parameters: ZoomBlur, rng: Rng) -> Iterator[Rgb]:
    """Move the camera towards the scene: the running mean of growing zooms."""
    total = unit(image, np.float32)
    yield image
    for i in range(1, FRAMES):
        yield take_in(affine(image, scale=1 + parameters.step * i), total, i + 1)


@dataclass(frozen=True)
class GaussianBlur:
    """Standard deviation `start` + `step` * i pixels; the kernel is cut at `truncate` of them."""

    start: float
    step: float
    truncate: float


@perturbation(
    "blur",
    GaussianBlur,
    {
        224: ((0.25, 0.035, 6),),
        299: ((0.35, 0.035, 6),),
        64: ((0.35, 0.014, 7),),
        32: ((0.3, 0.015, 7),),
    },
    common=False,
    random=False,
)
def gaussian_blur(image: Rgb, parameters: GaussianBlur, rng: Rng) -> Iterator[Rgb]:
    """Blur with a wider Gaussian in every frame."""
    p = parameters
    sigmas = [p.start + p.step * i for i in range(FRAMES)]
    return (gaussian_bytes(image, sigma, p.truncate) for sigma in sigmas)
