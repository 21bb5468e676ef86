"""Camera effects of 3DCC, which need only the image."""

from dataclasses import dataclass

import numpy as np

from robustgen.pixels.benchmarks.corruptions.three_d_cc.family import THREE_D_CC
from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging.arrays import UNITS
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.sensor_noise import darken, expose

_LIGHT = tuple(UNITS.tolist())


@dataclass(frozen=True)
class Bits:
    """Number of highest `bits` of each value that are kept."""

    bits: int


@corruption("digital", Bits, {224: (5, 4, 3, 2, 1)}, family=THREE_D_CC, random=False)
def color_quant(image: Rgb, parameters: Bits, rng: Rng) -> Rgb:
    """Keep the highest bits of each value."""
    return image & np.uint8(0xFF00 >> min(parameters.bits, 8) & 0xFF)


@dataclass(frozen=True)
class SensorNoise:
    """Number of `photons` at full brightness, and `sigma` of the circuit noise."""

    photons: float = within(0.1, 1e5)
    sigma: float = within(0, 100)


@corruption(
    "noise",
    SensorNoise,
    {224: tuple((25, 0.7 * strength) for strength in (0.08, 0.12, 0.18, 0.26, 0.38))},
    family=THREE_D_CC,
)
def iso_noise(image: Rgb, parameters: SensorNoise, rng: Rng) -> Rgb:
    """Raise the sensitivity of the camera: photon noise and circuit noise."""
    return expose(image, _LIGHT, parameters.photons, parameters.sigma, rng)


@dataclass(frozen=True)
class LowLight:
    """Brightest value `left`, and the noise: `photons` at full brightness, `sigma` of the circuit."""

    left: float
    photons: float = within(0.1, 1e5)
    sigma: float = within(0, 100)


@corruption(
    "noise",
    LowLight,
    # The noise is that of the third severity at all severities.
    {224: tuple((left, 120, 0.018) for left in (0.6, 0.5, 0.4, 0.3, 0.2))},
    family=THREE_D_CC,
)
def low_light(image: Rgb, parameters: LowLight, rng: Rng) -> Rgb:
    """Darken the image, and keep the noise of the sensor."""
    return expose(image, darken(image, parameters.left), parameters.photons, parameters.sigma, rng)
