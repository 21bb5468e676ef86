"""The eight corruptions of nuScenes-C by RoboBEV, each with three severities: easy, mid and hard.

Definitions: Xie et al. 2023. Six are known corruptions at severities of their own. All are computed on the
channels in the order blue, green, red, on which only the pixels of `snow` and `brightness` depend. The
categories are robustgen's.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.corruptions import imagecorruptions, robodepth, three_d_cc, weather
from robustgen.pixels.benchmarks.corruptions.imagecorruptions import IMAGECORRUPTIONS
from robustgen.pixels.benchmarks.corruptions.robodepth import ROBODEPTH
from robustgen.pixels.benchmarks.ingredients import Ingredient
from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.benchmarks.registry import Family, corruption
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.rng import Rng, integers

# --- the family RoboBEV, and its six known corruptions ---------------------------------------------

FAMILY = Family(
    "robobev",
    "RoboBEV (nuScenes-C)",
    "Shaoyuan Xie, Lingdong Kong, Wenwei Zhang, Jiawei Ren, Liang Pan, Kai Chen and Ziwei Liu: RoboBEV: "
    "Towards Robust Bird's Eye View Perception under Corruptions. arXiv:2304.06719, 2023.",
    licence="CC BY-NC-SA 4.0 (formulas and constants alone are used)",
    severities=(1, 2, 3),
)
"""The corruptions of the cameras in nuScenes-C by RoboBEV."""


def _take(known: str, family: Family, *severities: int, **traits: Any) -> Callable[[Any], Any]:
    """Register the decorated function with the constants of the corruption `known` at these `severities`."""
    entry = family.corruptions[family.full_name(known)]
    rows = tuple(dataclasses.astuple(entry.table[224][severity - 1]) for severity in severities)
    own = {"random": entry.random, **traits}
    return corruption(entry.category, type(entry.table[224][0]), {224: rows}, family=FAMILY, **own)


def _flip(image: Rgb) -> Rgb:
    return np.ascontiguousarray(image[:, :, ::-1])


_take("motion_blur", IMAGECORRUPTIONS, 2, 4, 5)(imagecorruptions.motion_blur)
_take("fog", IMAGECORRUPTIONS, 2, 4, 5)(weather.fog)
_take("color_quant", ROBODEPTH, 2, 3, 4)(three_d_cc.color_quant)


@_take("dark", ROBODEPTH, 3, 4, 5)
def low_light(image: Rgb, parameters: Any, rng: Rng) -> Rgb:
    """Darken the image; the sensor noise grows with the severity, as in robodepth:dark."""
    return robodepth.dark(image, parameters, rng)


@_take("brightness", IMAGECORRUPTIONS, 2, 4, 5)
def brightness(image: Rgb, parameters: Any, rng: Rng) -> Rgb:
    """Raise the HSV value, with red and blue exchanged."""
    return _flip(weather.brightness(_flip(image), parameters, rng))


@_take(
    "snow",
    IMAGECORRUPTIONS,
    *(1, 2, 3),
    over_time=lambda frames, *rest: map(_flip, imagecorruptions.let_fall(map(_flip, frames), *rest)),
)
def snow(image: Rgb, parameters: Any, rng: Rng) -> Rgb:
    """Let wind-blown snow fall, with red and blue exchanged, which weigh differently in the luma."""
    return _flip(imagecorruptions.snow(_flip(image), parameters, rng))


# --- cameras that fail -----------------------------------------------------------------------------


class Camera(Ingredient):
    """The number of the image's camera, from 0, and the count of cameras."""

    name = "camera"
    sentence = "the number of its camera, from 0, and the count of cameras, such as (0, 6)"
    default = "own"
    key = "rig"

    def validate(self, value: Any, image: Any, corruption: str) -> tuple[int, int]:
        """Return number and count of cameras."""
        number, count = super().validate(value, image, corruption)
        if not 0 <= number < count:
            raise ArgumentError(f"camera must be {self.sentence}, not {value!r}")
        return number, count


@dataclass(frozen=True)
class Crash:
    """Number of `draws` of a camera that crashes; a camera may be drawn again."""

    draws: int = within(1, 1000)


@corruption("digital", Crash, {224: (2, 4, 5)}, family=FAMILY, needs=Camera(), once_per_run=True)
def camera_crash(image: Rgb, parameters: Crash, rng: Rng, camera: tuple[int, int]) -> Rgb:
    """Blacken all images of the cameras that are drawn, once for all images of a run."""
    number, count = camera
    return image * np.uint8(number not in integers(rng, 0, count, (parameters.draws,)))


@dataclass(frozen=True)
class Loss:
    """The `share` of images that are lost."""

    share: float = within(0, 1)


@corruption("digital", Loss, {224: (2 / 6, 4 / 6, 5 / 6)}, family=FAMILY, over_time="frame")
def frame_lost(image: Rgb, parameters: Loss, rng: Rng) -> Rgb:
    """Blacken some images; each is lost with the same probability."""
    return image * np.uint8(rng.uniform() >= parameters.share)
