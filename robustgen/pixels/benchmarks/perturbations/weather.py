"""Weather sequences: snow in a rotating wind, rising brightness, and the extra perturbation spatter."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robustgen.pixels.benchmarks.registry import perturbation
from robustgen.pixels.imaging.arrays import cut_strips
from robustgen.pixels.imaging.colour import Hsv
from robustgen.pixels.imaging.kernels import weather
from robustgen.pixels.imaging.motion import MotionEngine, blur_along_line
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.snow import add_snow, draw_flakes, luma_of
from robustgen.pixels.imaging.spatter import draw_drops, splash_water

FRAMES = 31


@dataclass(frozen=True)
class Snow:
    """Flakes as in the corruption, blown at `4 i - 150` degrees in frame i."""

    loc: float
    scale: float
    zoom: float
    threshold: float
    radius: float
    sigma: float
    mix: float = 0.85
    engine: MotionEngine = "exact"


@perturbation(
    "weather",
    Snow,
    {
        224: ((0.05, 0.3, 3, 0.5, 14, 4),),
        299: 224,
        64: ((0.05, 0.28, 2, 0.5, 10, 2.5),),
        32: ((0.05, 0.3, 2, 0.5, 10, 2),),
    },
)
def snow(image: Rgb, parameters: Snow, rng: Rng) -> Iterator[Rgb]:
    """Rotate the wind in which the same flakes fall."""
    p = parameters
    # For a large photograph it would need four bytes per pixel while frames are encoded.
    kept = luma_of(image) if len(cut_strips(image)) == 1 else None
    flakes = draw_flakes(image.shape[:2], p.loc, p.scale, p.zoom, p.threshold, rng)

    def frame(angle: float) -> Rgb:
        blown = blur_along_line(flakes, p.radius, p.sigma, angle, p.engine)
        luma = luma_of(image) if kept is None else kept
        return add_snow(image, luma, p.mix, blown, np.float64)

    return (frame(4 * i - 150) for i in range(FRAMES))


@dataclass(frozen=True)
class Brightness:
    """HSV value plus `percent` * (i - 15) hundredths in frame i."""

    percent: float


@perturbation("weather", Brightness, {224: (2,), 299: 224, 64: 224, 32: (1.5,)}, random=False)
def brightness(image: Rgb, parameters: Brightness, rng: Rng) -> Iterator[Rgb]:
    """Raise the HSV value from dark to bright."""
    hsv = Hsv(image)
    steps = [(i - 15) * parameters.percent / 100 for i in range(FRAMES)]
    return (hsv.change(value_offset=step) for step in steps)


@dataclass(frozen=True)
class Spatter:
    """Water drops as in the corruption; in each frame every column is convolved with the kernel `drip`."""

    loc: float
    scale: float
    sigma: float
    threshold: float
    drip: tuple[float, ...]
    strength: float = 0.6


_SLOW, _FAST = (0.05, 0.1, 0.15, 0.7), (0.2, 0.8)


@perturbation(
    "weather",
    Spatter,
    {
        224: ((0.65, 0.27, 3.7, 0.69, _SLOW),),
        299: ((0.65, 0.3, 4, 0.69, _SLOW),),
        64: ((0.6, 0.25, 1.75, 0.7, _FAST),),
        32: ((0.6, 0.265, 1.75, 0.7, _FAST),),
    },
    common=False,
)
def spatter(image: Rgb, parameters: Spatter, rng: Rng) -> Iterator[Rgb]:
    """Let drops of water run down the lens."""
    p = parameters
    layer = draw_drops(image.shape[:2], p.loc, p.scale, p.sigma, p.threshold, rng)
    for _ in range(FRAMES):
        splashed = splash_water(image, layer, p.strength)
        # Frames without any remaining drop are black, because the scripts divided 0 by 0.
        yield np.zeros_like(image) if splashed is None else splashed
        weather.drip(layer, np.array(p.drip))
