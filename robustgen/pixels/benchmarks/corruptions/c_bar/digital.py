"""Cutouts, lines and displacements of C-bar."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.benchmarks.corruptions.c_bar.family import C_BAR, CBarStrength, side_of
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging.kernels import displacements, drawing, exact
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng, integers, spawn


@corruption(
    "digital",
    CBarStrength,
    {224: (2, 3, 4, 5, 6), 32: (1, 2, 3, 4, 5)},
    family=C_BAR,
)
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


@corruption("digital", CBarStrength, {32: (0.5, 1, 1.5, 2, 2.5)}, family=C_BAR)
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


@corruption("digital", CBarStrength, {32: (5.5, 6, 6.5, 8.5, 10)}, family=C_BAR, displaces=True)
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
    displacements.twirl(values, cell, backwards, pixels, forward, backward)
    return values.astype(np.uint8)


@corruption("digital", CBarStrength, {32: (5.5, 6, 6.5, 7.5, 8)}, family=C_BAR, displaces=True)
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
    displacements.sample_places(image, rows, columns, out)
    return out


@lru_cache(maxsize=64)
def _plan_twirl(
    side: int, angle: float, amount: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the moving pixels (N, 2) of a cell of `side` and their origins (N, 2), from its centre."""
    pixels, offsets = np.empty((side * side, 2), np.int64), np.empty((side * side, 2))
    count = displacements.twirl_offsets(side, angle, amount, pixels, offsets)
    return pixels[:count].copy(), offsets[:count].copy()
