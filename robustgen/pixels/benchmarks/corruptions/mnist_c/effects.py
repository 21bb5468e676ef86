"""Noise, blur and weather of MNIST-C."""

from dataclasses import dataclass

import numpy as np

from robustgen.pixels.benchmarks.corruptions import noise as common
from robustgen.pixels.benchmarks.corruptions.blur import MotionBlur
from robustgen.pixels.benchmarks.corruptions.mnist_c.family import Fixed, digit
from robustgen.pixels.benchmarks.corruptions.noise import ImpulseNoise, ShotNoise
from robustgen.pixels.benchmarks.corruptions.weather import Brightness, Fog, Spatter
from robustgen.pixels.imaging.arrays import to_uint8, unit
from robustgen.pixels.imaging.gaussian import gaussian
from robustgen.pixels.imaging.haze import draw_plasma
from robustgen.pixels.imaging.mnist_c_effects import round_to_uint8, swap_pixels
from robustgen.pixels.imaging.motion import blur_along_line
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.spatter import draw_cover, draw_drops

# Side of the plasma, whose upper left corner is used.
_PLASMA_SIDE = 256


@digit("digital", random=False, common=False)
def identity(image: Rgb, parameters: Fixed, rng: Rng) -> Rgb:
    """Return the image unchanged."""
    return image


@digit("noise", ShotNoise, (3,))
def shot_noise(image: Rgb, parameters: ShotNoise, rng: Rng) -> Rgb:
    """Count photons: Poisson(x * photons) / photons."""
    return common.shot_noise(image, parameters, rng)


@digit("noise", ImpulseNoise, (0.17,))
def impulse_noise(image: Rgb, parameters: ImpulseNoise, rng: Rng) -> Rgb:
    """Set pixels to 0 or 255 (salt and pepper)."""
    return common.impulse_noise(image, parameters, rng)


@dataclass(frozen=True)
class GlassBlur:
    """Gaussian `sigma` before and after `iterations` of swapping pixels with neighbours."""

    sigma: float
    iterations: int


@digit("blur", GlassBlur, (0.7, 2))
def glass_blur(image: Rgb, parameters: GlassBlur, rng: Rng) -> Rgb:
    """Look through frosted glass: swap pixels with random neighbours."""
    # The published code blurs down the columns only: scikit-image took the rows' axis for channels.
    sigma = parameters.sigma, 0.0
    smooth = to_uint8(gaussian(unit(image), sigma))
    return round_to_uint8(gaussian(unit(swap_pixels(smooth, parameters.iterations, rng)), sigma))


@digit("blur", MotionBlur, (10, 3))
def motion_blur(image: Rgb, parameters: MotionBlur, rng: Rng) -> Rgb:
    """Move the camera in a straight line within 45 degrees of the horizontal."""
    p = parameters
    return blur_along_line(image, p.radius, p.sigma, rng.uniform(-45, 45), p.engine)


@digit("weather", Brightness, (0.5,), random=False)
def brightness(image: Rgb, parameters: Brightness, rng: Rng) -> Rgb:
    """Raise all values."""
    return round_to_uint8(unit(image) + parameters.added)


@digit("weather", Fog, (3, 1.4))
def fog(image: Rgb, parameters: Fog, rng: Rng) -> Rgb:
    """Add a plasma fractal and scale back to the image's original maximum."""
    field, lowest, span = draw_plasma(image.shape[:2], parameters.decay, rng, _PLASMA_SIDE)
    x, strength = unit(image), parameters.strength
    brightest = x.max()
    return round_to_uint8((x + strength * ((field - lowest) / span)) * brightest / (brightest + strength))


@digit("weather", Spatter, (0.65, 0.3, 1, 0.65, 1.5, 1))
def spatter(image: Rgb, parameters: Spatter, rng: Rng) -> Rgb:
    """Splash mud on the lens."""
    p = parameters
    layer = draw_drops(image.shape[:2], p.loc, p.scale, p.sigma, p.threshold, rng)
    cover = draw_cover(layer > p.threshold, p.strength, "float32")[:, :, 0]
    return round_to_uint8(unit(image, np.float32) * (1 - cover) + np.float32(63 / 255) * cover)
