"""AugMix: chains of simple operations, mixed with each other and with the image.

Hendrycks, Mu, Cubuk, Zoph, Gilmer and Lakshminarayanan (ICLR 2020), section 3. `draw` draws all random
values, `mix` applies them. Ranges and the order of the draws are those of the published code; the operations
give the pixels of Pillow, which it used.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from numbers import Integral
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageEnhance

from robustgen.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from robustgen.pixels.benchmarks.parameters import ALPHAS, LEVELS, MOST_STEPS
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.colour import apply_table
from robustgen.pixels.imaging.kernels import elementwise, exact
from robustgen.pixels.imaging.rng import Rng, beta, dirichlet, integers
from robustgen.pixels.imaging.warps import sample_affine

ValueTable = npt.NDArray[np.uint8]

# The published ranges belong to level 10.
TOP_LEVEL = 10

_RAMP = np.arange(256)


# --- tone ----------------------------------------------------------------------------------------


def autocontrast(image: Rgb, level: float) -> Rgb:
    """Stretch each channel to the full range."""
    rows = image.reshape(len(image), -1)
    darkest = rows.min(axis=0).reshape(-1, 3).min(axis=0).astype(np.float64)
    brightest = rows.max(axis=0).reshape(-1, 3).max(axis=0).astype(np.float64)
    even = darkest == brightest
    if np.all(even | (brightest - darkest == 255)):
        return image
    scale = 255.0 / np.where(even, 255.0, brightest - darkest)
    stretched = _RAMP[:, None] * scale - np.where(even, 0.0, darkest) * scale
    return apply_table(image, np.clip(stretched, 0, 255).astype(np.uint8))


def equalize(image: Rgb, level: float) -> Rgb:
    """Flatten the histogram of each channel."""
    counts = np.zeros((256, 3), np.int64)
    elementwise.count_values(image.reshape(-1, 3), counts)
    before = counts.cumsum(axis=0) - counts
    brightest = 255 - (counts[::-1] > 0).argmax(axis=0)
    step = before[brightest, [0, 1, 2]] // 255
    flat = np.minimum((before + step // 2) // np.maximum(step, 1), 255)
    return apply_table(image, np.where(step > 0, flat, _RAMP[:, None]).astype(np.uint8))


def posterize(image: Rgb, level: float) -> Rgb:
    """Keep the four highest bits of each value, or fewer."""
    bits = 4 - int(level * 4 / TOP_LEVEL)
    return image & np.uint8(256 - 2 ** (8 - bits))


def solarize(image: Rgb, level: float) -> Rgb:
    """Invert the values from a threshold on."""
    threshold = 256 - int(level * 256 / TOP_LEVEL)
    return image ^ ((image >= threshold) * np.uint8(255))


def brightness(image: Rgb, level: float) -> Rgb:
    """Blend with black, or extrapolate away from it."""
    return apply_table(image, _tabulate_blend(0, _factor(level)))


def contrast(image: Rgb, level: float) -> Rgb:
    """Blend with the mean grey, or extrapolate away from it."""
    grey = np.asarray(Image.fromarray(image).convert("L"))
    return apply_table(image, _tabulate_blend(int(grey.mean() + 0.5), _factor(level)))


def color(image: Rgb, level: float) -> Rgb:
    """Blend with the grey image, or extrapolate away from it."""
    return np.asarray(ImageEnhance.Color(Image.fromarray(image)).enhance(_factor(level)))


def sharpness(image: Rgb, level: float) -> Rgb:
    """Blend with the smoothed image, or extrapolate away from it."""
    return np.asarray(ImageEnhance.Sharpness(Image.fromarray(image)).enhance(_factor(level)))


def _factor(level: float) -> float:
    return level * 1.8 / TOP_LEVEL + 0.1


def _tabulate_blend(grey: int, factor: float) -> ValueTable:
    """Return Pillow's result for each value blended with `grey`."""
    ramp = Image.fromarray(_RAMP.astype(np.uint8)[None])
    blended = Image.blend(Image.new("L", ramp.size, grey), ramp, factor)
    return np.repeat(np.asarray(blended).reshape(256, 1), 3, axis=1)


# --- geometry ------------------------------------------------------------------------------------


def rotate(image: Rgb, level: float) -> Rgb:
    """Rotate by up to 30 degrees, in whole degrees, about the centre."""
    height, width = image.shape[:2]
    # Reduced and rounded as in Pillow, for the same pixels.
    angle = -math.radians(int(level * 30 / TOP_LEVEL) % 360)
    sine, cosine = (round(each, 15) for each in exact.sine_cosine(angle))
    x, y = width / 2, height / 2
    to_x, to_y = cosine * -x + sine * -y + x, -sine * -x + cosine * -y + y
    return sample_affine(image, (cosine, sine, to_x, -sine, cosine, to_y))


def shear_x(image: Rgb, level: float) -> Rgb:
    """Shift each row by up to 0.3 times its number."""
    return sample_affine(image, (1.0, level * 0.3 / TOP_LEVEL, 0.0, 0.0, 1.0, 0.0))


def shear_y(image: Rgb, level: float) -> Rgb:
    """Shift each column by up to 0.3 times its number."""
    return sample_affine(image, (1.0, 0.0, 0.0, level * 0.3 / TOP_LEVEL, 1.0, 0.0))


def translate_x(image: Rgb, level: float) -> Rgb:
    """Shift sideways by up to a third of the width, whole pixels."""
    shift = int(level * (image.shape[1] / 3) / TOP_LEVEL)
    out = np.zeros_like(image)
    out[:, max(-shift, 0) : out.shape[1] - max(shift, 0)] = image[
        :, max(shift, 0) : out.shape[1] - max(-shift, 0)
    ]
    return out


def translate_y(image: Rgb, level: float) -> Rgb:
    """Shift up or down by up to a third of the height, whole pixels."""
    shift = int(level * (image.shape[0] / 3) / TOP_LEVEL)
    out = np.zeros_like(image)
    out[max(-shift, 0) : len(out) - max(shift, 0)] = image[max(shift, 0) : len(out) - max(-shift, 0)]
    return out


# --- drawing and mixing --------------------------------------------------------------------------

_Function = Callable[[Rgb, float], Rgb]


def _map_by_name(*functions: _Function) -> dict[str, _Function]:
    return {function.__name__: function for function in functions}


# The published order, which decides the result of a seed.
_PUBLISHED = _map_by_name(
    autocontrast, equalize, posterize, rotate, solarize, shear_x, shear_y, translate_x, translate_y
)
_CORRUPTING = _map_by_name(color, contrast, brightness, sharpness)
OPERATIONS: Mapping[str, _Function] = MappingProxyType(_PUBLISHED | _CORRUPTING)
OPERATION_SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"augmix": tuple(_PUBLISHED), "all": tuple(OPERATIONS)}
)
WITHOUT_LEVEL = frozenset({"autocontrast", "equalize"})
WITH_SIGN = frozenset({"rotate", "shear_x", "shear_y", "translate_x", "translate_y"})


@dataclass(frozen=True)
class AugMix:
    """Settings of AugMix.

    Attributes
    ----------
    severity : float
        0.1 to 10; the levels of the operations are uniform between 0.1 and this value.
    width : int
        Number of chains.
    depth : int
        Operations in each chain; -1 draws 1, 2 or 3 for each.
    alpha : float
        Parameter of the Dirichlet distribution of the weights, and of the Beta distribution of the mix's
        share.
    operations : {"augmix", "all"}
        ``"all"`` adds four operations that are similar to corruptions of ImageNet-C.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is out of range or of the wrong type.
    """

    severity: float = 3
    width: int = 3
    depth: int = -1
    alpha: float = 1.0
    operations: str = "augmix"

    def __post_init__(self) -> None:
        _check_number("severity", self.severity, *LEVELS)
        _check_number("alpha", self.alpha, *ALPHAS)
        _check_count("width", self.width)
        if self.depth != -1 or isinstance(self.depth, float):
            _check_count("depth", self.depth, "-1 or ")
        if not isinstance(self.operations, str):
            raise ArgumentTypeError(f"operations must be a string, not {type(self.operations).__name__}")
        if self.operations not in OPERATION_SETS:
            raise UnknownNameError("set of operations", self.operations, OPERATION_SETS)


def _check_number(name: str, value: Any, low: float, high: float) -> None:
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be a number, not {type(value).__name__}")
    if not low <= value <= high:
        raise ArgumentError(f"{name} must be from {low:g} to {high:g}, not {value}")


def _check_count(name: str, value: Any, otherwise: str = "") -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 1 <= int(value) <= MOST_STEPS:
        raise ArgumentError(f"{name} must be {otherwise}1 to {MOST_STEPS}, not {value}")


class MixStep(NamedTuple):
    """One operation of a chain; `level` is 0 if it takes none, and negative for the other direction."""

    operation: str
    level: float = 0.0


@dataclass(frozen=True)
class Mixture:
    """All random values of one mix.

    Attributes
    ----------
    weights : tuple of float
        Weights of the chains; they sum to 1.
    share : float
        Share of the chains' mix in the result (m in the paper); the image has the rest.
    chains : tuple of tuple of MixStep
    """

    weights: tuple[float, ...]
    share: float
    chains: tuple[tuple[MixStep, ...], ...]


def draw(parameters: AugMix, rng: Rng) -> Mixture:
    """Draw a mixture, in the order of the published code."""
    alpha = parameters.alpha
    weights = tuple(dirichlet(rng, alpha, parameters.width).tolist())
    share = beta(rng, alpha, alpha)
    return Mixture(weights, share, tuple(_draw_chain(parameters, rng) for _ in weights))


def _draw_chain(parameters: AugMix, rng: Rng) -> tuple[MixStep, ...]:
    names = OPERATION_SETS[parameters.operations]
    depth = parameters.depth if parameters.depth > 0 else int(integers(rng, 1, 4))
    return tuple(_draw_step(names[int(integers(rng, 0, len(names)))], parameters, rng) for _ in range(depth))


def _draw_step(name: str, parameters: AugMix, rng: Rng) -> MixStep:
    if name in WITHOUT_LEVEL:
        return MixStep(name)
    level = float(rng.uniform(LEVELS[0], parameters.severity))
    return MixStep(name, -level if name in WITH_SIGN and rng.uniform() > 0.5 else level)


def mix(image: Rgb, mixture: Mixture) -> Rgb:
    """Apply a `mixture` to uint8 `image` (H, W, 3), C-contiguous, which is not modified."""
    images = [image]
    for chain in mixture.chains:
        images.append(reduce(lambda made, step: OPERATIONS[step.operation](made, step.level), chain, image))
    weights = [1.0 - mixture.share, *(mixture.share * weight for weight in mixture.weights)]
    out = np.empty_like(image)
    # Rounded to nearest: the published mix stays in floating point, and truncation would darken it.
    elementwise.weighted_mean(
        np.stack(images).reshape(len(images), -1), np.array(weights, np.float32), out.reshape(-1)
    )
    return out


def augmix(image: Rgb, parameters: AugMix, rng: Rng) -> Rgb:
    """Draw a mixture and apply it to uint8 `image` (H, W, 3), C-contiguous, which is not modified."""
    return mix(image, draw(parameters, rng))
