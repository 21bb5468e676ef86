"""Camera sequences: translate, rotate, tilt, scale, and the extra perturbation shear."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from robustgen.pixels.benchmarks.registry import Stage, perturbation
from robustgen.pixels.imaging.geometry import affine, perspective, shift_right
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng

FRAMES = 31

_EARLY: dict[int, Stage] = {224: "resized", 299: "raw", 64: "resized"}


def _affine_sequence(image: Rgb, settings: Sequence[dict[str, Any]]) -> Iterator[Rgb]:
    return (affine(image, **setting) for setting in settings)


@dataclass(frozen=True)
class Translate:
    """Shift of i - `origin` pixels to the right in each of `frames` frames."""

    origin: int
    frames: int


@perturbation(
    "digital",
    Translate,
    {224: ((20, 41),), 299: 224, 64: ((15, 31),), 32: ((7, 16),)},
    stage=_EARLY,
    random=False,
)
def translate(image: Rgb, parameters: Translate, rng: Rng) -> Iterator[Rgb]:
    """Move the image from left to right, one pixel per frame."""
    return (shift_right(image, i - parameters.origin) for i in range(parameters.frames))


@dataclass(frozen=True)
class Turn:
    """Angle of `step` * (i - 15) degrees in frame i."""

    step: float

    @property
    def angles(self) -> list[float]:
        """Return the angle of every frame."""
        return [self.step * (i - 15) for i in range(FRAMES)]


_ONE_DEGREE = {224: (1,), 299: 224, 64: 224, 32: 224}


@perturbation("digital", Turn, _ONE_DEGREE, stage=_EARLY, random=False)
def rotate(image: Rgb, parameters: Turn, rng: Rng) -> Iterator[Rgb]:
    """Rotate the image clockwise."""
    return _affine_sequence(image, [{"angle": angle} for angle in parameters.angles])


@perturbation("digital", Turn, _ONE_DEGREE | {32: (0.75,)}, stage=_EARLY, random=False)
def tilt(image: Rgb, parameters: Turn, rng: Rng) -> Iterator[Rgb]:
    """Tilt the plane of the image about its horizontal and vertical axis together."""
    return (perspective(image, angle, angle) for angle in parameters.angles)


@dataclass(frozen=True)
class Scale:
    """Magnification of (`start` + `step` * i) / 100 in frame i."""

    start: float
    step: float


@perturbation(
    "digital",
    Scale,
    {224: ((40, 2.5),), 299: 224, 64: 224, 32: ((70, 2),)},
    stage={224: "resized", 64: "resized"},
    random=False,
)
def scale(image: Rgb, parameters: Scale, rng: Rng) -> Iterator[Rgb]:
    """Enlarge the image from less than half to more than its original size."""
    factors = [(parameters.start + parameters.step * i) / 100 for i in range(FRAMES)]
    return _affine_sequence(image, [{"scale": factor} for factor in factors])


@perturbation("digital", Turn, _ONE_DEGREE, common=False, stage=_EARLY, random=False)
def shear(image: Rgb, parameters: Turn, rng: Rng) -> Iterator[Rgb]:
    """Shear the image sideways."""
    return _affine_sequence(image, [{"shear": angle} for angle in parameters.angles])
