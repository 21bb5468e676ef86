"""Transmission glitches: shifted rows, a shifted colour channel, black lines.

Computed like the package glitch-this 1.0.3, from Python's random numbers.
"""

import random
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from robustgen.pixels.imaging.pixels import Rgb


@dataclass(frozen=True)
class Glitch:
    """Shifts of a glitch, in pixels.

    Attributes
    ----------
    shifts : tuple of (int, int, int)
        Offset to the right, first row and number of rows of each shift, in order.
    channel, right, down : int
        The shifted colour channel and its shifts, which are not negative.
    """

    shifts: tuple[tuple[int, int, int], ...]
    channel: int
    right: int
    down: int


@lru_cache(maxsize=64)
def plan_glitch(height: int, width: int, amount: float, seed: int) -> Glitch:
    """Draw a glitch for an image of `height` x `width` pixels; `amount` is 0.1 to 10."""
    reach, count, shifts = int(amount**2 / 100 * width), int(2 * amount), []
    for number in range(count):
        draws = random.Random(seed + number)
        offset = draws.randint(-reach, reach)
        if offset:
            top = draws.randint(0, height)
            shifts.append((offset, top, min(draws.randint(1, int(height / 4)), height - top)))
    draws = random.Random(seed)
    channel = draws.randint(0, 2)
    right, down = draws.randint(-count, count), draws.randint(-count, count)
    return Glitch(tuple(shifts), channel, right % width, down % height)


def apply_glitch(image: Rgb, glitch: Glitch) -> Rgb:
    """Return `image` with the shifts of `glitch`, and every second row black."""
    out = image.copy()
    for offset, top, rows in glitch.shifts:
        out[top : top + rows] = np.roll(image[top : top + rows], offset, axis=1)
    source, down = image[:, :, glitch.channel], glitch.down
    moved = np.roll(source, down, axis=0)
    # The published code shifts only the first row sideways.
    moved[down] = np.roll(source[0], glitch.right)
    out[:, :, glitch.channel] = moved
    out[::2] = 0
    return out
