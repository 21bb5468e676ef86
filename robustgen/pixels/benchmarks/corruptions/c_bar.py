"""The fifteen corruptions of ImageNet-C-bar and CIFAR-10-C-bar, ten in each set.

Definitions: Mintun, Kirillov and Xie 2021, appendix, as the published generation code computes them. Lengths
published as a share of the square's side become that share of the shorter side of other images. The
categories are robustgen's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.pixels.benchmarks.registry import Family, Function, corruption
from robustgen.pixels.imaging.arrays import Rgb, unit
from robustgen.pixels.imaging.blur import gaussian
from robustgen.pixels.imaging.kernels import drawing, exact, fourier, warps, weather
from robustgen.pixels.imaging.noise_fields import draw_blue_noise, draw_brownish_noises, draw_turbulence
from robustgen.pixels.imaging.rng import Rng, integers, normal, spawn
from robustgen.pixels.imaging.warps import Spline, blur_by_turning, enlarge_channel, fit_spline

# --- the family C-bar: its name, its parameter and shared functions --------------------------------

C_BAR = Family(
    "c-bar",
    "ImageNet-C-bar",
    "Eric Mintun, Alexander Kirillov and Saining Xie: On Interaction Between Data Augmentations and "
    "Corruptions in Natural Corruption Robustness. Advances in Neural Information Processing Systems, 2021.",
    qualified=False,
)


@dataclass(frozen=True)
class CBarStrength:
    """The `strength` of a severity, 0.5 to 10."""

    strength: float

    def share(self, most: float) -> float:
        """Return `most`, the value at strength 10, scaled to this strength."""
        return self.strength * most / 10


def _c_bar(category: str, table: Mapping[int, Any], **traits: Any) -> Callable[[Function], Function]:
    return corruption(category, CBarStrength, table, family=C_BAR, **traits)


def side_of(image: Rgb) -> int:
    """Return the side in whose unit lengths are measured: the shorter one; published images are square."""
    return int(min(image.shape[:2]))


def as_lines(image: Rgb) -> Rgb:
    """Return `image` (H, W, 3) with the channels of a row next to each other: (H, 3 W)."""
    return image.reshape(image.shape[0], -1)


# --- blur of C-bar: rotation about the centre, and colour channels of different size ---------------


@_c_bar("blur", {32: (2.8, 3.6, 4.4, 5.2, 6)}, random=False, shares=fit_spline)
def circular_motion_blur(image: Rgb, parameters: CBarStrength, rng: Rng, spline: Spline) -> Rgb:
    """Rotate the camera about its axis."""
    return blur_by_turning(spline, parameters.share(15))


# The first enlargements differ by less than a pixel.
@_c_bar("blur", {32: (1, 2, 5, 9, 10)}, breaks={32: (1,)})
def transverse_chromatic_abberation(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Enlarge the colour channels by different factors."""
    zoom, out = parameters.share(0.5), np.empty_like(image)
    scales = np.array([1, 1 + zoom / 2, 1 + zoom])[rng.permutation(3)]
    for channel, scale in enumerate(scales):
        enlarge_channel(image, channel, scale, out)
    return out


# --- cutouts, lines and displacements of C-bar -----------------------------------------------------


@_c_bar("digital", {224: (2, 3, 4, 5, 6), 32: (1, 2, 3, 4, 5)})
def checkerboard_cutout(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Grey some squares of a rotated checkerboard."""
    angle = rng.uniform(0, 2 * np.pi)
    cell = max(rng.uniform(0.1, 0.25) * side_of(image), 1)
    count = int(4 * max(image.shape[:2]) // cell)
    grid = spawn(rng).uniform(size=(count, count)) < parameters.share(1)
    out = np.empty_like(image)
    sine, cosine = exact.sine_cosine(angle)
    drawing.cut_out(image, cosine, sine, cell, grid, out)
    return out


@_c_bar("digital", {32: (0.5, 1, 1.5, 2, 2.5)})
def lines(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Draw thin grey lines of similar direction."""
    height, width = image.shape[:2]
    side = side_of(image)
    angle, variation = rng.uniform(0, 2 * np.pi), rng.uniform(0.1, 1)
    # The centre and the rotation of each line.
    draws = spawn(rng).uniform(size=(int(parameters.share(1) * side), 3))
    down, across = height * draws[:, 0], width * draws[:, 1]
    turns = angle + 2 * np.pi * variation * (draws[:, 2] - 0.5)
    sines, cosines = exact.sine_cosine_each(turns) * side
    ends = np.stack([down - cosines, across - sines, down + cosines, across + sines], axis=1)
    out = image.copy()
    drawing.draw_lines(ends.astype(np.int64), out)
    return out


@_c_bar("digital", {32: (5.5, 6, 6.5, 8.5, 10)}, displaces=True)
def pinch_and_twirl(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Pinch and twirl every cell of a grid: three cells on a side below 128 pixels, otherwise five."""
    height, width = image.shape[:2]
    cell = side_of(image) // (3 if side_of(image) < 128 else 5)
    rows, columns = height // cell, width // cell
    # Drawn as `choice([1, -1])` in the scripts.
    backwards = integers(rng, 0, 2, (columns, rows))
    angle, amount = parameters.share(np.pi / 2), parameters.share(0.4) + 0.1
    (pixels, forward), (_, backward) = (_plan_twirl(cell, turn, amount) for turn in (angle, -angle))
    values = image.astype(np.float32)
    warps.twirl(values, cell, backwards, pixels, forward, backward)
    return values.astype(np.uint8)


@_c_bar("digital", {32: (5.5, 6, 6.5, 7.5, 8)}, displaces=True)
def ripple(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Displace rows and columns by one sine each."""
    side = side_of(image)
    wavelengths, phases = rng.uniform(0.1, 0.3, 2) * side, rng.uniform(0, 2 * np.pi, 2)
    reach = parameters.share(0.025) * side
    rows, columns = (
        np.arange(size) + reach * exact.sine_cosine_each(2 * np.pi * np.arange(size) / wavelength + phase)[0]
        for size, wavelength, phase in zip(image.shape, wavelengths, phases, strict=False)
    )
    out = np.empty_like(image)
    warps.sample_places(image, rows, columns, out)
    return out


@lru_cache(maxsize=64)
def _plan_twirl(
    side: int, angle: float, amount: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the moving pixels (N, 2) of a cell of `side` and their origins (N, 2), from its centre."""
    pixels, offsets = np.empty((side * side, 2), np.int64), np.empty((side * side, 2))
    count = warps.twirl_offsets(side, angle, amount, pixels, offsets)
    return pixels[:count].copy(), offsets[:count].copy()


# --- noise of C-bar: in the frequency domain, on a lattice, and in waves ---------------------------


@_c_bar("noise", {224: (0.8, 1.6, 2.4, 4, 5.6), 32: (0.7, 1.4, 2.1, 3.5, 4.2)})
def blue_noise_sample(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Keep only the pixels where blue noise is high."""
    noise = draw_blue_noise(image.shape[:2], spawn(rng))
    out = np.empty_like(image)
    threshold = parameters.share(3) - 2.5
    fourier.cut_below(image.reshape(-1, 3), noise.reshape(-1), threshold, out.reshape(-1, 3))
    return out


@_c_bar("noise", {224: (1, 2, 3, 4, 5), 32: (2.5, 4, 5.5, 6.5, 7)})
def brownish_noise(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Add noise whose power is inversely proportional to the square of its frequency."""
    noises = draw_brownish_noises(image.shape[:2], 3, spawn(rng)).reshape(3, -1)
    out = np.empty_like(image)
    fourier.add_fields(image.reshape(-1, 3), noises, parameters.share(64), out.reshape(-1, 3))
    return out


@_c_bar("noise", {224: (4.6, 5.2, 5.8, 7.6, 8.8)})
def perlin_noise(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Mix with gradient noise in five octaves."""
    clouds = draw_turbulence(image.shape[:2], 32 * side_of(image) / 224, spawn(rng))
    out = np.empty_like(image)
    fourier.mix_turbulence(as_lines(image), clouds, parameters.share(0.5), as_lines(out))
    return out


@_c_bar("noise", {224: (4.75, 7, 8.5, 9.25, 10)})
def plasma_noise(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Blend with a colour pattern that waves distort."""
    time, rounds = rng.uniform(0, 6 * np.pi), integers(rng, 4, 7)
    sharpness, scale = rng.uniform(0.5, 1), rng.uniform(0.075, 0.2) * side_of(image)
    out = np.empty_like(image)
    fourier.plasma_waves(image, time, rounds, sharpness, scale, parameters.share(64), out)
    return out


@_c_bar("noise", {224: (1, 1.5, 2, 4.5, 5)})
def single_frequency_greyscale(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Add one plane wave."""
    first = rng.uniform(-np.pi, np.pi)
    second = rng.uniform(-abs(first), abs(first))
    order, phase = rng.permutation(2), rng.uniform(0, 2 * np.pi)
    wave = np.empty(image.shape[:2])
    fourier.plane_wave((first, second)[order[0]], (first, second)[order[1]], phase, wave)
    return _add_field(image, wave, parameters.share(196))


@_c_bar("noise", {224: (3, 5, 8, 9, 10)})
def cocentric_sine_waves(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Add wavy rings around a centre."""
    height, width = image.shape[:2]
    centre_x, centre_y = rng.uniform(0, (width, height))
    frequency = rng.uniform(0, 10)
    amplitude, spacing = rng.uniform(0, side_of(image) / 10), rng.uniform(0, side_of(image) / 10)
    rings = np.empty((height, width))
    fourier.ring_wave(centre_x, centre_y, frequency, amplitude, spacing, rings)
    return _add_field(image, rings, parameters.share(128))


def _add_field(image: Rgb, field: npt.NDArray[np.float64], amount: float) -> Rgb:
    out = np.empty_like(image)
    fourier.add_field(as_lines(image), field, amount, as_lines(out))
    return out


# --- light of C-bar: sparkles, and the floor under moving water ------------------------------------


@_c_bar("weather", {224: (1, 2, 3, 5, 6), 32: (0.7, 3.5, 5.6, 6.3, 7)})
def sparkles(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Add five bright stars."""
    centres = rng.uniform(0, 1, (5, 2)) * image.shape[:2]
    source, rays = spawn(rng), integers(rng, 50, 200, (5,))
    radius, ends = parameters.share(0.1) * side_of(image), np.zeros(6, np.int64)
    np.cumsum(rays, out=ends[1:])
    lengths = np.maximum(1, radius + 0.25 * radius * normal(source, 0.0, 1.0, (int(ends[-1]),)))
    out = np.empty_like(image)
    weather.light_stars(as_lines(image), centres, lengths, ends, as_lines(out))
    return out


@_c_bar("weather", {224: (1, 2, 4, 9, 10), 32: (1, 1.5, 2.5, 4.5, 5)})
def inverse_sparkles(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Bleach everything except the surroundings of one star."""
    height, width = image.shape[:2]
    row, column = rng.uniform(0.25, 0.75, 2) * (height, width)
    source, count = spawn(rng), integers(rng, 50, 200)
    radius = 0.25 * side_of(image)
    lengths = radius + 0.25 * radius * normal(source, 0.0, 1.0, (int(count),))
    light, out = np.empty((height, width)), np.empty_like(image)
    weather.flare(row, column, lengths, (100 - (100 - parameters.share(65))) / 50, light)
    weather.light_up(as_lines(image), light, as_lines(out))
    return out


@_c_bar("weather", {224: (2.35, 3.2, 4.9, 6.6, 9.15)}, displaces=True)
def caustic_refraction(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Look through moving water, with its light patterns on the floor."""
    side = side_of(image)
    time, size = rng.uniform(0.5, 2), rng.uniform(0.75, 1.25) * side
    light, out = np.empty(image.shape[:2]), np.empty_like(image)
    weather.caustics(time, size, light)
    surface = np.pad(gaussian(light, 1.0, 4.0, "reflect"), 1)
    down, right, south, east = np.empty((4, *image.shape[:2]))
    weather.refract_places(surface, parameters.share(0.5 * side), down, right, south, east)
    weather.refract(unit(image, np.float32), down, right, south, east, parameters.share(2), out)
    return out
