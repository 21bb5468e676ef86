"""Light of C-bar: sparkles, and the floor under moving water."""

import numpy as np

from robustgen.pixels.benchmarks.corruptions.c_bar.family import C_BAR, CBarStrength, as_lines, side_of
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging.arrays import unit
from robustgen.pixels.imaging.gaussian import gaussian
from robustgen.pixels.imaging.kernels import flares, refraction
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng, integers, spawn
from robustgen.pixels.imaging.ziggurat import normal


@corruption(
    "weather",
    CBarStrength,
    {224: (1, 2, 3, 5, 6), 32: (0.7, 3.5, 5.6, 6.3, 7)},
    family=C_BAR,
)
def sparkles(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Add five bright stars."""
    centres = rng.uniform(0, 1, (5, 2)) * image.shape[:2]
    source, rays = spawn(rng), integers(rng, 50, 200, (5,))
    radius, ends = parameters.share(0.1) * side_of(image), np.zeros(6, np.int64)
    np.cumsum(rays, out=ends[1:])
    lengths = np.maximum(1, radius + 0.25 * radius * normal(source, 0.0, 1.0, (int(ends[-1]),)))
    out = np.empty_like(image)
    flares.light_stars(as_lines(image), centres, lengths, ends, as_lines(out))
    return out


@corruption(
    "weather",
    CBarStrength,
    {224: (1, 2, 4, 9, 10), 32: (1, 1.5, 2.5, 4.5, 5)},
    family=C_BAR,
)
def inverse_sparkles(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Bleach everything except the surroundings of one star."""
    height, width = image.shape[:2]
    row, column = rng.uniform(0.25, 0.75, 2) * (height, width)
    source, count = spawn(rng), integers(rng, 50, 200)
    radius = 0.25 * side_of(image)
    lengths = radius + 0.25 * radius * normal(source, 0.0, 1.0, (int(count),))
    light, out = np.empty((height, width)), np.empty_like(image)
    flares.flare(row, column, lengths, (100 - (100 - parameters.share(65))) / 50, light)
    flares.light_up(as_lines(image), light, as_lines(out))
    return out


@corruption("weather", CBarStrength, {224: (2.35, 3.2, 4.9, 6.6, 9.15)}, family=C_BAR, displaces=True)
def caustic_refraction(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Look through moving water, with its light patterns on the floor."""
    side = side_of(image)
    time, size = rng.uniform(0.5, 2), rng.uniform(0.75, 1.25) * side
    light, out = np.empty(image.shape[:2]), np.empty_like(image)
    refraction.caustics(time, size, light)
    surface = np.pad(gaussian(light, 1.0, 4.0, "reflect"), 1)
    down, right, south, east = np.empty((4, *image.shape[:2]))
    refraction.refract_places(surface, parameters.share(0.5 * side), down, right, south, east)
    refraction.refract(unit(image, np.float32), down, right, south, east, parameters.share(2), out)
    return out
