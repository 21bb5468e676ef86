"""Compiled loops of noise with a given power at each frequency."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementary import fill_sines
from robustgen.pixels.imaging.kernels.lanes import LANES, empty_lanes, load, store


@inner
def _unfold(left, upper, centre, y, line):
    """Write line `y` of a field that is symmetric under rotation by 180 degrees; `left` is (H, W // 2).

    If W is odd, its middle column is `upper` (H // 2), the `centre` if H is odd, and `upper` reversed.
    """
    half, turned = left.shape[1], left.shape[0] - 1 - y
    for x in range(half):
        line[x] = left[y, x]
    for x in range(half):
        line[line.size - half + x] = left[turned, half - 1 - x]
    if line.size % 2:
        line[half] = upper[min(y, turned)] if y != turned else centre


@compiled
def half_spectrum(left, upper, power):
    """Return the half spectrum of the real part of a noise, two planes, for `fourier.invert_columns`.

    The phases, `left` and `upper` as in `_unfold`, and `power` (H, W) are those of the frequency H // 2 and
    W // 2 further on.
    """
    sines, cosines = np.empty(left.shape), np.empty(left.shape)
    fill_sines(left.reshape(-1), sines.reshape(-1), cosines.reshape(-1))
    upper_sines, upper_cosines = np.empty(upper.size), np.empty(upper.size)
    fill_sines(upper, upper_sines, upper_cosines)
    height, width = power.shape
    padded = (width // (2 * LANES) + 1) * LANES
    out = empty_lanes(2 * height * padded // LANES).reshape(2, height, padded)
    out[:, :, width // 2 + 1 :] = 0.0
    columns, mirrored = np.empty(width // 2 + 1, np.uint64), np.empty(width // 2 + 1, np.uint64)
    for x in range(columns.size):
        columns[x] = (x - width // 2) % width
        mirrored[x] = ((width - x) % width - width // 2) % width
    c, s, opposite_c, opposite_s = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    # Two lines of opposite frequencies depend on the same two lines.
    for y in range(height // 2 + 1):
        opposite = (height - y) % height
        there, back = (y - height // 2) % height, (opposite - height // 2) % height
        _unfold(cosines, upper_cosines, 1.0, there, c)
        _unfold(sines, upper_sines, 0.0, there, s)
        _unfold(cosines, upper_cosines, 1.0, back, opposite_c)
        _unfold(sines, upper_sines, 0.0, back, opposite_s)
        here, other = power[there], power[back]
        _spectrum_line(columns, mirrored, here, c, s, other, opposite_c, opposite_s, out[0, y], out[1, y])
        _spectrum_line(
            columns, mirrored, other, opposite_c, opposite_s, here, c, s, out[0, opposite], out[1, opposite]
        )
    return out


@inner
def _spectrum_line(columns, mirrored, power, c, s, opposite, opposite_c, opposite_s, real, imaginary):
    """Write half the sum of each frequency and the conjugate of its opposite."""
    for x in range(columns.size):
        i, j = columns[x], mirrored[x]
        real[x] = 0.5 * (power[i] * c[i] + opposite[j] * opposite_c[j])
        imaginary[x] = 0.5 * (power[i] * s[i] - opposite[j] * opposite_s[j])


@inner
def _total(values):
    """Return the sum of `values` (flat), in an order independent of NumPy's release."""
    sums, whole = np.zeros(LANES), values.size // LANES * LANES
    lanes = load(sums, 0)
    for i in range(0, whole, LANES):
        lanes = lanes + load(values, i)
    store(lanes, sums, 0)
    total = 0.0
    for each in sums:
        total += each
    for i in range(whole, values.size):
        total += values[i]
    return total


@compiled
def standardise(values):
    """Divide `values` (float64, (H, W)) by their standard deviation, in place."""
    flat = values.reshape(-1)
    mean, squares = _total(flat) / flat.size, np.empty(flat.size)
    for i in range(flat.size):
        centred = flat[i] - mean
        squares[i] = centred * centred
    deviation = np.sqrt(_total(squares) / flat.size)
    for i in range(flat.size):
        flat[i] /= deviation
