"""Compiled loops for depth maps, in float32: fog, and blur outside the plane of focus."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementary import exponential


@inner
def truncate(value):
    """Clip `value` (float32) to [0, 1], multiply by 255, and truncate."""
    return np.uint8(np.int32(min(max(value, np.float32(0)), np.float32(1)) * np.float32(255)))


@compiled
def add_fog(image, units, depth, density, light, out):
    """Mix `image` (uint8, (N, 3)) with `light`, increasing with `depth` (float32, N)."""
    one = np.float32(1)
    for i in range(depth.size):
        clear = np.float32(exponential(np.float64(-density * depth[i])))
        veil = light * (one - clear)
        for c in range(3):
            out[i, c] = truncate(clear * units[image[i, c]] + veil)


@compiled
def find_cells(depth, edges, cells, shares, spans):
    """Find the two `edges` (float32, ascending) around each value of `depth` (float32, (H, W)).

    `cells` (H, W) gets the number of the upper edge, `shares` (H, W, 2) the weights of the two.
    `spans` (K, H, 2) gets, for each edge and row, the first column that uses it, and the one after the last.
    """
    height, width = depth.shape
    one = np.float32(1)
    spans[:, :, 0], spans[:, :, 1] = width, 0
    for row in range(height):
        for column in range(width):
            here, upper = depth[row, column], 1
            while upper < edges.size - 1 and edges[upper] < here:
                upper += 1
            cells[row, column] = upper
            for edge in range(upper - 1, upper + 1):
                spans[edge, row, 0] = min(spans[edge, row, 0], column)
                spans[edge, row, 1] = column + 1
            span = edges[upper] - edges[upper - 1]
            # Large numbers may coincide.
            span = span if span > 0 else one
            below, above = (here - edges[upper - 1]) / span, (edges[upper] - here) / span
            low, high = one - below * below, one - above * above
            both = low + high
            shares[row, column, 0], shares[row, column, 1] = low / both, high / both


@inner
def add_neighbours(before, after, weight, further_before, further_after, further_weight, line):
    """Add two pairs of neighbours to `line`, each pair times its weight."""
    for m in range(line.size):
        pair = weight * (before[m] + after[m])
        line[m] += pair + further_weight * (further_before[m] + further_after[m])


@inner
def finish_line(first, last, channels, tail, total, line):
    """Add `tail` times the pixels of both ends to `line`, and divide it by `total`."""
    if tail > 0:
        for m in range(line.size):
            line[m] += tail * (first[m % channels] + last[m % channels])
    for m in range(line.size):
        line[m] = line[m] / total


@compiled
def blur(image, channels, weights, tails, total, spans, between, out):
    """Filter `image` (float32, (H, W * channels)) along rows, then columns, with repeated borders.

    Only the columns in `spans` (H, 2) of each row are written. `weights` is the right half of the kernel, an
    odd number, `total` the sum of the kernel, `tails` the sums on one side beyond a width and a height.
    `between` is a buffer of the shape of `image`.
    """
    height, width = image.shape[0], image.shape[1] // channels
    reach = min(weights.size - 1, width + width % 2)
    down = min(weights.size - 1, height + height % 2)
    extended = np.empty((width + 2 * reach) * channels, np.float32)
    for row in range(height):
        start, end = width, 0
        for near in range(max(row - down, 0), min(row + down + 1, height)):
            start, end = min(start, spans[near, 0]), max(end, spans[near, 1])
        # Places beyond the image repeat these rows.
        if tails[1] > 0 and (row == 0 or row == height - 1):
            start, end = 0, width
        if start >= end:
            continue
        extended[reach * channels : (reach + width) * channels] = image[row]
        for x in range(reach):
            for c in range(channels):
                extended[x * channels + c] = image[row, c]
                extended[(reach + width + x) * channels + c] = image[row, (width - 1) * channels + c]
        line, centre = between[row, start * channels : end * channels], (reach + start) * channels
        for m in range(line.size):
            line[m] = extended[centre + m] * weights[0]
        for n in range(1, reach, 2):
            add_neighbours(
                extended[centre - n * channels :],
                extended[centre + n * channels :],
                weights[n],
                extended[centre - (n + 1) * channels :],
                extended[centre + (n + 1) * channels :],
                weights[n + 1],
                line,
            )
        finish_line(extended, extended[extended.size - channels :], channels, tails[0], total, line)
    for row in range(height):
        start, end = spans[row, 0] * channels, spans[row, 1] * channels
        if start >= end:
            continue
        line, middle = out[row, start:end], between[row, start:end]
        for m in range(line.size):
            line[m] = middle[m] * weights[0]
        for n in range(1, down, 2):
            add_neighbours(
                between[max(row - n, 0), start:end],
                between[min(row + n, height - 1), start:end],
                weights[n],
                between[max(row - n - 1, 0), start:end],
                between[min(row + n + 1, height - 1), start:end],
                weights[n + 1],
                line,
            )
        finish_line(between[0, start:end], between[height - 1, start:end], line.size, tails[1], total, line)


@compiled
def add_plane(number, plane, cells, shares, spans, sums, out):
    """Add the weighted `plane` (float32, (H, W, 3)) of edge `number` to the pixels in `sums`.

    Planes must come in order. The second plane completes a pixel, which is truncated into `out` (uint8).
    """
    for row in range(cells.shape[0]):
        for column in range(spans[row, 0], spans[row, 1]):
            if cells[row, column] == number + 1:
                for c in range(3):
                    sums[row, column, c] = shares[row, column, 0] * plane[row, column, c]
            elif cells[row, column] == number:
                for c in range(3):
                    part = shares[row, column, 1] * plane[row, column, c]
                    out[row, column, c] = truncate(sums[row, column, c] + part)
