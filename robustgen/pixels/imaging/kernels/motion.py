"""Compiled loops of blurs along a line."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import copy, extend
from robustgen.pixels.imaging.kernels.exact import exp


@inner
def motion_rows(padded, weights, tops, lefts, out):
    """Add shifted windows of `padded` (16-bit values as float32, (H', W' * C)) into `out` (uint8 (H, W * C)).

    Window i starts at row tops[i], flat column lefts[i] and has weights[i]; sums are rounded half up to 16
    bits and divided by 257, like the conversion to 8 bits in ImageMagick's Q16 build.

    Sums are computed in single precision, and again in double if rounding errors could change the result.
    """
    line, narrow = np.empty(out.shape[1], np.float32), np.empty(weights.size, np.float32)
    copy(weights, narrow)
    half, step, share = np.float32(0.5), np.float32(257), np.float32(1 / 257)
    # Each rounding is off by at most 2^-24 of the sum.
    least = np.float32((weights.size + 3) * 65536.0 * 2.0**-24)
    most = step - least
    fours = weights.size // 4 * 4
    for row in range(out.shape[0]):
        for m in range(line.size):
            line[m] = half
        for i in range(0, fours, 4):
            # Four at a time, to load and store `line` less often.
            a, b = padded[row + tops[i], lefts[i] :], padded[row + tops[i + 1], lefts[i + 1] :]
            c, d = padded[row + tops[i + 2], lefts[i + 2] :], padded[row + tops[i + 3], lefts[i + 3] :]
            of_a, of_b, of_c, of_d = narrow[i], narrow[i + 1], narrow[i + 2], narrow[i + 3]
            for m in range(line.size):
                line[m] += (of_a * a[m] + of_b * b[m]) + (of_c * c[m] + of_d * d[m])
        for i in range(fours, weights.size):
            window, weight = padded[row + tops[i], lefts[i] :], narrow[i]
            for m in range(line.size):
                line[m] += weight * window[m]
        target, unsure = out[row], 0
        for m in range(line.size):
            level = np.int32(line[m] * share)
            above = line[m] - np.float32(level) * step
            target[m] = np.uint8(level)
            unsure += (above < least) | (above > most)
        if unsure:
            for m in range(line.size):
                above = line[m] - np.float32(target[m]) * step
                if above < least or above > most:
                    total = 0.0
                    for i in range(weights.size):
                        total += weights[i] * np.float64(padded[row + tops[i], lefts[i] + m])
                    target[m] = np.uint8(np.int32(total + 0.5) // 257)


@compiled
def fading_weights(width, sigma):
    """Return exp(-x^2 / (2 sigma^2)) for x from 0 to `width` - 1; for sigma 0, 1 only at x = 0."""
    weights, divisor = np.empty(width), 2.0 * sigma * sigma
    for x in range(width):
        weights[x] = exp(-np.float64(x * x) / divisor) if divisor > 0.0 else np.float64(x == 0)
    return weights


@compiled
def place_samples(direction_x, direction_y, length, rows, columns):
    """Write the row and column offsets of `rows.size` samples along a direction vector of `length`."""
    for i in range(rows.size):
        columns[i] = np.int64(np.ceil(i * direction_y / length - 0.5))
        rows[i] = np.int64(np.ceil(i * direction_x / length - 0.5))


@compiled
def blur_along_line(image, channels, weights, direction_x, direction_y, length, out):
    """Blur `image` (uint8, (H, W * C)) by `weights` along the line of `place_samples`, into `out`."""
    rows, columns = np.empty(weights.size, np.int64), np.empty(weights.size, np.int64)
    place_samples(direction_x, direction_y, length, rows, columns)
    # Both offsets are monotonic from 0.
    down, right = rows[-1], columns[-1]
    above, left = max(-down, 0), max(-right, 0)
    padded = np.empty((image.shape[0] + abs(down), image.shape[1] + abs(right) * channels), np.float32)
    extend(image, channels, above, left, False, np.float32(257), padded)
    for i in range(weights.size):
        rows[i], columns[i] = rows[i] + above, (columns[i] + left) * channels
    motion_rows(padded, weights, rows, columns, out)


@compiled
def sum_rows(padded, weights, tops, lefts, out):
    """Add shifted windows of `padded` (float64, (H', W' * C)), weighted, into `out` (float64, (H, W * C)).

    Windows are as in `motion_rows`.
    """
    for row in range(out.shape[0]):
        line = out[row]
        line[:] = 0.0
        for i in range(weights.size):
            window, weight = padded[row + tops[i], lefts[i] :], weights[i]
            for m in range(line.size):
                line[m] += weight * window[m]
