"""The fourteen perturbation sequences: ten of the benchmark, four extra ones for validation.

To add one, write its function, its parameter dataclass and its table of constants into the module of its
category, and register it with the decorator. The function gets the image at the stage in its table row and
returns all frames, uint8 (T, H, W, 3). Constants and definitions: Hendrycks & Dietterich 2019, section 4 and
appendix, and the published ``make_imagenet_p.py``, ``make_imagenet_p_inception.py``,
``make_imagenet_64_p.py``, ``make_tinyimagenet_p.py`` and ``make_cifar_p.py``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustgen.pixels.benchmarks.corruptions.noise import (
    Noise,
    ShotNoise,
    gaussian_alias_table,
    shot_alias_table,
    speckle_alias_table,
)
from robustgen.pixels.benchmarks.registry import Stage, perturbation, registered_perturbations
from robustgen.pixels.imaging.arrays import Rgb, cut_strips, to_uint8, unit
from robustgen.pixels.imaging.blur import blur_along_line, gaussian_bytes, take_in
from robustgen.pixels.imaging.colour import Hsv
from robustgen.pixels.imaging.geometry import affine, perspective, shift_right
from robustgen.pixels.imaging.kernels import weather
from robustgen.pixels.imaging.rng import AliasTable, Rng, resample
from robustgen.pixels.imaging.weather_effects import add_snow, draw_drops, draw_flakes, luma_of, splash_water

# --- noise sequences -------------------------------------------------------------------------------

FRAMES = 31


def _sequence(image: Rgb, draw: Callable[[], Rgb]) -> Iterator[Rgb]:
    """Yield the clean image, then 30 draws."""
    yield image
    for _ in range(FRAMES - 1):
        yield draw()


def _draw_resampled(image: Rgb, table: AliasTable, rng: np.random.Generator) -> Iterator[Rgb]:
    return _sequence(image, lambda: resample(image, table, rng))


@perturbation(
    "noise",
    Noise,
    {
        224: (0.03, 0.05, 0.08),
        299: (0.035, 0.055, 0.085),
        64: (0.025, 0.05, 0.075),
        32: (0.02, 0.04, 0.06),
    },
    temporal=False,
)
def gaussian_noise(image: Rgb, parameters: Noise, rng: Rng) -> Iterator[Rgb]:
    """Add normal noise: x + N(0, sigma)."""
    if isinstance(rng, np.random.Generator):
        return _draw_resampled(image, gaussian_alias_table(parameters.sigma), rng)
    x = unit(image, np.float32)
    sigma = np.float32(parameters.sigma)
    return _sequence(image, lambda: to_uint8(x + sigma * rng.normal(size=x.shape).astype(np.float32)))


@perturbation(
    "noise",
    ShotNoise,
    {224: (300, 120, 60), 299: (250, 100, 50), 64: (500, 250, 125), 32: (700, 400, 200)},
    temporal=False,
)
def shot_noise(image: Rgb, parameters: ShotNoise, rng: Rng) -> Iterator[Rgb]:
    """Count photons: Poisson(x * photons) / photons."""
    if isinstance(rng, np.random.Generator):
        return _draw_resampled(image, shot_alias_table(parameters.photons), rng)
    expected = unit(image) * parameters.photons
    return _sequence(image, lambda: to_uint8(rng.poisson(expected) / float(parameters.photons)))


@perturbation(
    "noise",
    Noise,
    {224: (0.05, 0.10, 0.15), 299: (0.06, 0.11, 0.16), 64: (0.05, 0.10, 0.15), 32: (0.05, 0.07, 0.10)},
    common=False,
    temporal=False,
)
def speckle_noise(image: Rgb, parameters: Noise, rng: Rng) -> Iterator[Rgb]:
    """Add noise in proportion to brightness: x + x * N(0, sigma)."""
    if isinstance(rng, np.random.Generator):
        return _draw_resampled(image, speckle_alias_table(parameters.sigma), rng)
    x = unit(image)
    return _sequence(image, lambda: to_uint8(x + x * rng.normal(size=x.shape, scale=parameters.sigma)))


# --- blur sequences --------------------------------------------------------------------------------


@dataclass(frozen=True)
class MotionBlur:
    """Trail (as in the corruption) at `step` * (i - `origin`) degrees in each of `frames` frames."""

    radius: float
    sigma: float
    step: float
    origin: int = 30
    frames: int = 31


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
    return (blur_along_line(image, p.radius, p.sigma, angle) for angle in angles)


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


# --- weather sequences -----------------------------------------------------------------------------


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
        blown = blur_along_line(flakes, p.radius, p.sigma, angle)
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


# --- camera sequences: translate, rotate, tilt, scale, and the extra perturbation shear ------------


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


PERTURBATIONS = registered_perturbations()
"""The perturbations of ImageNet-P, by name."""
