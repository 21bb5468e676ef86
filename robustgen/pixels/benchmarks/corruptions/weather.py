"""Weather: snow, frost, fog, brightness, and the extra corruption spatter."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from robustgen.pixels.benchmarks.ingredients import InstalledFiles
from robustgen.pixels.benchmarks.registry import SCALES, corruption
from robustgen.pixels.imaging.arrays import Rgb, to_uint8, unit
from robustgen.pixels.imaging.blur import blur_along_line
from robustgen.pixels.imaging.colour import raise_value
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.weather_effects import (
    add_haze,
    add_snow,
    blend,
    check_frost,
    draw_drops,
    draw_flakes,
    draw_plasma,
    frost_crop,
    luma_of,
    splash_mud,
    splash_water,
)


@dataclass(frozen=True)
class Snow:
    """Flakes from N(`loc`, `scale`), enlarged by `zoom`, cut off below `threshold`, blown along a line.

    `radius` and `sigma` (pixels) are the motion blur's; `mix` is the weight of the unwhitened image.
    """

    loc: float
    scale: float
    zoom: float
    threshold: float
    radius: float
    sigma: float
    mix: float


def _let_fall(
    frames: Iterable[tuple[Rgb, npt.NDArray[np.float32]]], parameters: Snow, rng: Rng
) -> Iterator[Rgb]:
    """Yield frames, given with their luma, with new flakes in each and the wind of the first."""
    p, wind = parameters, None
    for frame, luma in frames:
        flakes = draw_flakes(frame.shape[:2], p.loc, p.scale, p.zoom, p.threshold, rng)
        wind = rng.uniform(-135, -45) if wind is None else wind
        yield add_snow(frame, luma, p.mix, blur_along_line(flakes, p.radius, p.sigma, wind))


@corruption(
    "weather",
    Snow,
    {
        224: (
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
        299: 224,
        64: (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ),
        32: (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    },
    shares=luma_of,
    # From single-pixel flakes to enlarged ones.
    breaks={64: (2,), 32: (2,)},
    over_time=lambda frames, *rest: _let_fall(((frame, luma_of(frame)) for frame in frames), *rest),
)
def snow(image: Rgb, parameters: Snow, rng: Rng, luma: npt.NDArray[np.float32]) -> Rgb:
    """Let wind-blown snow fall on a whitened image."""
    return next(_let_fall([(image, luma)], parameters, rng))


class FrostPhotographs(InstalledFiles):
    """The photographs of frost."""

    name = "frost"
    sentence = "the published photographs of frost, in a folder"
    licence = "Windows of frost derive from the photographs in the package imagecorruptions."

    def check(self, folder: str | None, parameters: object) -> None:
        """Read all photographs."""
        check_frost(folder)


FROST = FrostPhotographs()


@dataclass(frozen=True)
class Frost:
    """Weights of the image and of the frost; the photograph is first shrunk by `shrink`."""

    image_weight: float
    frost_weight: float
    shrink: float = 1.0


@corruption(
    "weather",
    Frost,
    {
        224: ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
        299: 224,
        64: ((1, 0.3, 0.3), (0.9, 0.4, 0.3), (0.8, 0.45, 0.3), (0.75, 0.5, 0.3), (0.7, 0.55, 0.3)),
        32: ((1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
    },
    needs=FROST,
)
def frost(image: Rgb, parameters: Frost, rng: Rng, folder: str | None) -> Rgb:
    """Add a window of a frost photograph."""
    p = parameters
    crop = frost_crop(image.shape[:2], p.shrink, folder, rng)
    return blend(image, p.image_weight, crop, p.frost_weight)


@dataclass(frozen=True)
class Fog:
    """`strength` of the fog, `decay` of its roughness from coarse to fine."""

    strength: float
    decay: float


@corruption(
    "weather",
    Fog,
    {
        224: ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
        299: ((1.5, 2), (2, 2), (2.5, 1.8), (2.5, 1.6), (3, 1.5)),
        64: ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
        32: ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    },
)
def fog(image: Rgb, parameters: Fog, rng: Rng) -> Rgb:
    """Add a plasma fractal and scale back to the image's original maximum."""
    haze = draw_plasma(image.shape[:2], parameters.decay, rng)
    return add_haze(image, haze, parameters.strength)


@dataclass(frozen=True)
class Brightness:
    """Amount `added` to the HSV value."""

    added: float


@corruption(
    "weather",
    Brightness,
    {224: (0.1, 0.2, 0.3, 0.4, 0.5), 299: 224, 64: 224, 32: (0.05, 0.1, 0.15, 0.2, 0.3)},
    random=False,
)
def brightness(image: Rgb, parameters: Brightness, rng: Rng) -> Rgb:
    """Raise the HSV value."""
    return raise_value(image, parameters.added)


@dataclass(frozen=True)
class Spatter:
    """Drops where Gaussian-smoothed N(`loc`, `scale`) exceeds `threshold`; of `mud` or of water."""

    loc: float
    scale: float
    sigma: float
    threshold: float
    strength: float
    mud: int


@corruption(
    "weather",
    Spatter,
    {
        224: (
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
        ),
        299: (
            (0.65, 0.3, 4, 0.69, 0.9, 0),
            (0.65, 0.3, 3.5, 0.68, 0.9, 0),
            (0.65, 0.3, 3, 0.68, 0.8, 0),
            (0.65, 0.3, 1.2, 0.65, 1.8, 1),
            (0.67, 0.4, 1.2, 0.65, 1.8, 1),
        ),
        64: (
            (0.62, 0.1, 0.7, 0.7, 0.6, 0),
            (0.65, 0.1, 0.8, 0.7, 0.6, 0),
            (0.65, 0.3, 1, 0.69, 0.6, 0),
            (0.65, 0.1, 0.7, 0.68, 0.6, 1),
            (0.65, 0.1, 0.5, 0.67, 0.6, 1),
        ),
        32: (
            (0.62, 0.1, 0.7, 0.7, 0.5, 0),
            (0.65, 0.1, 0.8, 0.7, 0.5, 0),
            (0.65, 0.3, 1, 0.69, 0.5, 0),
            (0.65, 0.1, 0.7, 0.69, 0.6, 1),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ),
    },
    common=False,
    # From water to mud.
    breaks=dict.fromkeys(SCALES, (3,)),
)
def spatter(image: Rgb, parameters: Spatter, rng: Rng) -> Rgb:
    """Splash water or mud on the lens."""
    p = parameters
    layer = draw_drops(image.shape[:2], p.loc, p.scale, p.sigma, p.threshold, rng)
    if p.mud:
        return splash_mud(image, layer > p.threshold, p.strength)
    splashed = splash_water(image, layer, p.strength)
    # Without drops the scripts would give a black image; with the published constants there always are some.
    return to_uint8(unit(image, np.float32)) if splashed is None else splashed
