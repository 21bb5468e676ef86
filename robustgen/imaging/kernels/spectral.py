"""Compiled loops of noise of a given power at each frequency."""

import numpy as np

from robustgen.imaging.kernels.compiler import compiled, inner
from robustgen.imaging.kernels.elementary import fill_sines


@inner
def mirror_phases(left, upper, phases):
    """Write `phases` (H, W): `left` (H, W // 2), and beside it the same turned by 180 degrees.

    Where W is odd, a middle column goes between them: `upper` (H // 2), a 0 if H is odd, and `upper` turned.
    """
    height, width = phases.shape
    for y in range(height):
        line, source, turned = phases[y], left[y], left[height - 1 - y]
        for x in range(source.size):
            line[x], line[width - 1 - x] = source[x], turned[x]
        if width % 2:
            line[width // 2] = 0.0
    for y in range(upper.size):
        phases[y, width // 2], phases[height - 1 - y, width // 2] = upper[y], upper[y]


@compiled
def half_spectrum(left, upper, power, out):
    """Write the half spectrum of the real part of a noise into `out` (2, H, W // 2 + 1 or more): two planes.

    The phases, `left` and `upper` as `mirror_phases` takes them, and `power` (H, W) belong to the frequency
    that stands H // 2 and W // 2 further on.
    """
    phases = np.empty(power.shape)
    mirror_phases(left, upper, phases)
    height, width = power.shape
    columns, mirrored = np.empty(width // 2 + 1, np.uint64), np.empty(width // 2 + 1, np.uint64)
    for x in range(columns.size):
        columns[x] = (x - width // 2) % width
        mirrored[x] = ((width - x) % width - width // 2) % width
    c, s, opposite_c, opposite_s = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    # Two lines of opposite frequencies come of the same two lines.
    for y in range(height // 2 + 1):
        opposite = (height - y) % height
        there, back = (y - height // 2) % height, (opposite - height // 2) % height
        fill_sines(phases[there], s, c)
        fill_sines(phases[back], opposite_s, opposite_c)
        here, other = power[there], power[back]
        _spectrum_line(columns, mirrored, here, c, s, other, opposite_c, opposite_s, out[0, y], out[1, y])
        _spectrum_line(
            columns, mirrored, other, opposite_c, opposite_s, here, c, s, out[0, opposite], out[1, opposite]
        )


@inner
def _spectrum_line(columns, mirrored, power, c, s, opposite, opposite_c, opposite_s, real, imaginary):
    """Half the sum of each frequency and the conjugate of its opposite one."""
    for x in range(columns.size):
        i, j = columns[x], mirrored[x]
        real[x] = 0.5 * (power[i] * c[i] + opposite[j] * opposite_c[j])
        imaginary[x] = 0.5 * (power[i] * s[i] - opposite[j] * opposite_s[j])
