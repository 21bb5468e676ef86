"""Means in the Gaussian window of SSIM, and sums over images, in a fixed order."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled


@compiled
def window_means(plane, channels, weights, out):
    """Write weighted means of `plane` (float32, (H, W * C)) to `out`, where the window fits inside.

    The window is symmetric; `weights` (float32) are its right half, centre first. It is applied along the
    columns, then along the rows.
    """
    reach = weights.size - 1
    line = np.empty(plane.shape[1], np.float32)
    for y in range(out.shape[0]):
        centre, target = plane[y + reach], out[y]
        for m in range(line.size):
            line[m] = centre[m] * weights[0]
        for j in range(1, reach + 1):
            above, below, weight = plane[y + reach - j], plane[y + reach + j], weights[j]
            for m in range(line.size):
                line[m] += (above[m] + below[m]) * weight
        middle = line[reach * channels :]
        for m in range(target.size):
            target[m] = middle[m] * weights[0]
        for j in range(1, reach + 1):
            left, right, weight = line[(reach - j) * channels :], line[(reach + j) * channels :], weights[j]
            for m in range(target.size):
                target[m] += (left[m] + right[m]) * weight


@compiled
def channel_means(plane):
    """Return the mean of each channel of `plane` (float32, (H, W, 3)): sums of columns, then of these."""
    flat = plane.reshape(plane.shape[0], -1)
    totals, means = np.zeros(flat.shape[1]), np.zeros(3)
    for y in range(flat.shape[0]):
        line = flat[y]
        for m in range(totals.size):
            totals[m] += line[m]
    for m in range(totals.size):
        means[m % 3] += totals[m]
    return means / (plane.shape[0] * plane.shape[1])


@compiled
def inner_product(a, b):
    """Return the sum of a * b (float64, flat), accumulated in order in eight sums."""
    totals = np.zeros(8)
    whole = a.size // 8 * 8
    for i in range(0, whole, 8):
        for j in range(8):
            totals[j] += a[i + j] * b[i + j]
    for i in range(whole, a.size):
        totals[0] += a[i] * b[i]
    left, right = (
        (totals[0] + totals[1]) + (totals[2] + totals[3]),
        (totals[4] + totals[5]) + (totals[6] + totals[7]),
    )
    return left + right


@compiled
def solve(matrix, values):
    """Solve a symmetric least-squares system (N, N) in place; undetermined unknowns are 0.

    Rows are eliminated in order; vanishing pivots are skipped.
    """
    size, found = values.size, np.zeros(values.size)
    scale = np.empty(size)
    for i in range(size):
        scale[i] = matrix[i, i]
    for i in range(size):
        usable = matrix[i, i] > 1e-10 * scale[i]
        for j in range(i + 1, size):
            share = matrix[j, i] / matrix[i, i] if usable else 0.0
            for k in range(i, size):
                matrix[j, k] -= share * matrix[i, k]
            values[j] -= share * values[i]
        scale[i] = 1.0 if usable else 0.0
    for i in range(size - 1, -1, -1):
        total = values[i]
        for k in range(i + 1, size):
            total -= matrix[i, k] * found[k]
        found[i] = total / matrix[i, i] if scale[i] > 0.0 else 0.0
    return found


@compiled
def square_distance(a, b):
    """Return the sum of squares of the differences of two images (uint8, flat)."""
    total = np.int64(0)
    for start in range(0, a.size, 4096):
        # The sum of this number of values fits into 32 bits.
        part, first, second = np.int32(0), a[start : start + 4096], b[start : start + 4096]
        for i in range(first.size):
            difference = np.int32(first[i]) - np.int32(second[i])
            part += np.int32(difference * difference)
        total += part
    return total
