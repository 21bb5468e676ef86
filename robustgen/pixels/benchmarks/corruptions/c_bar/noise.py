"""Noise of C-bar: in the frequency domain, on a lattice, and in waves."""

import numpy as np
import numpy.typing as npt

from robustgen.pixels.benchmarks.corruptions.c_bar.family import C_BAR, CBarStrength, as_lines, side_of
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging.kernels import fields as kernels
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng, integers, spawn
from robustgen.pixels.imaging.spectral import draw_blue_noise, draw_brownish_noises
from robustgen.pixels.imaging.turbulence import draw_turbulence


@corruption(
    "noise",
    CBarStrength,
    {224: (0.8, 1.6, 2.4, 4, 5.6), 32: (0.7, 1.4, 2.1, 3.5, 4.2)},
    family=C_BAR,
)
def blue_noise_sample(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Keep only the pixels where blue noise is high."""
    noise = draw_blue_noise(image.shape[:2], spawn(rng))
    out = np.empty_like(image)
    threshold = parameters.share(3) - 2.5
    kernels.cut_below(image.reshape(-1, 3), noise.reshape(-1), threshold, out.reshape(-1, 3))
    return out


@corruption(
    "noise",
    CBarStrength,
    {224: (1, 2, 3, 4, 5), 32: (2.5, 4, 5.5, 6.5, 7)},
    family=C_BAR,
)
def brownish_noise(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Add noise whose power is inversely proportional to the square of its frequency."""
    noises = draw_brownish_noises(image.shape[:2], 3, spawn(rng)).reshape(3, -1)
    out = np.empty_like(image)
    kernels.add_fields(image.reshape(-1, 3), noises, parameters.share(64), out.reshape(-1, 3))
    return out


@corruption("noise", CBarStrength, {224: (4.6, 5.2, 5.8, 7.6, 8.8)}, family=C_BAR)
def perlin_noise(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Mix with gradient noise in five octaves."""
    clouds = draw_turbulence(image.shape[:2], 32 * side_of(image) / 224, spawn(rng))
    out = np.empty_like(image)
    kernels.mix_turbulence(as_lines(image), clouds, parameters.share(0.5), as_lines(out))
    return out


@corruption("noise", CBarStrength, {224: (4.75, 7, 8.5, 9.25, 10)}, family=C_BAR)
def plasma_noise(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Blend with a colour pattern that waves distort."""
    time, rounds = rng.uniform(0, 6 * np.pi), integers(rng, 4, 7)
    sharpness, scale = rng.uniform(0.5, 1), rng.uniform(0.075, 0.2) * side_of(image)
    out = np.empty_like(image)
    kernels.plasma_waves(image, time, rounds, sharpness, scale, parameters.share(64), out)
    return out


@corruption("noise", CBarStrength, {224: (1, 1.5, 2, 4.5, 5)}, family=C_BAR)
def single_frequency_greyscale(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Add one plane wave."""
    first = rng.uniform(-np.pi, np.pi)
    second = rng.uniform(-abs(first), abs(first))
    order, phase = rng.permutation(2), rng.uniform(0, 2 * np.pi)
    wave = np.empty(image.shape[:2])
    kernels.plane_wave((first, second)[order[0]], (first, second)[order[1]], phase, wave)
    return _add_field(image, wave, parameters.share(196))


@corruption("noise", CBarStrength, {224: (3, 5, 8, 9, 10)}, family=C_BAR)
def cocentric_sine_waves(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Add wavy rings around a centre."""
    height, width = image.shape[:2]
    centre_x, centre_y = rng.uniform(0, (width, height))
    frequency = rng.uniform(0, 10)
    amplitude, spacing = rng.uniform(0, side_of(image) / 10), rng.uniform(0, side_of(image) / 10)
    rings = np.empty((height, width))
    kernels.ring_wave(centre_x, centre_y, frequency, amplitude, spacing, rings)
    return _add_field(image, rings, parameters.share(128))


def _add_field(image: Rgb, field: npt.NDArray[np.float64], amount: float) -> Rgb:
    out = np.empty_like(image)
    kernels.add_field(as_lines(image), field, amount, as_lines(out))
    return out
