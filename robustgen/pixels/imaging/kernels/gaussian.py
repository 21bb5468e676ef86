"""Gaussian filters along rows and columns."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import copy, quantise, widen


@inner
def blur_across_rows(lines, weights, source, row, line):
    """Correlate one row along axis 0 with the symmetric kernel of right half `weights`, into `line`.

    `weights` (r + 1, r even) end in a zero if the kernel is shorter. `source` (H + 2 r) is the index in
    `lines` (N, M) of each row of the image extended by r on both sides.
    """
    radius = weights.size - 1
    centre = lines[source[row + radius]]
    for m in range(line.size):
        line[m] = centre[m] * weights[0]
    for j in range(radius, 0, -2):
        # Two at a time, to load and store `line` less often; the order of sums is kept.
        above, below = row + radius - j, row + radius + j
        a, b, of_ab = lines[source[above]], lines[source[below]], weights[j]
        c, d, of_cd = lines[source[above + 1]], lines[source[below - 1]], weights[j - 1]
        for m in range(line.size):
            total = line[m] + (np.float64(a[m]) + np.float64(b[m])) * of_ab
            line[m] = total + (np.float64(c[m]) + np.float64(d[m])) * of_cd


@inner
def blur_along_row(values, channels, weights, source, extended, line):
    """Correlate `values` (W * channels) with the symmetric kernel of right half `weights`, into `line`.

    `weights` and `source` are as in `blur_across_rows`, for columns; `extended` ((W + 2 r) * channels) is a
    buffer.
    """
    radius = weights.size - 1
    margin = radius * channels
    centre = extended[margin : margin + line.size]
    copy(values, centre)
    for x in range(radius):
        left, right = source[x] * channels, source[source.size - 1 - x] * channels
        for c in range(channels):
            extended[x * channels + c] = values[left + c]
            extended[extended.size - (x + 1) * channels + c] = values[right + c]
    for m in range(line.size):
        line[m] = centre[m] * weights[0]
    for j in range(radius, 0, -2):
        left, right = margin - j * channels, margin + j * channels
        a, b, of_ab = extended[left:], extended[right:], weights[j]
        c, d, of_cd = extended[left + channels :], extended[right - channels :], weights[j - 1]
        for m in range(line.size):
            line[m] = line[m] + (a[m] + b[m]) * of_ab + (c[m] + d[m]) * of_cd


@compiled
def blur(image, channels, down, rows, across, columns, out):
    """Filter `image` (H, W * channels) along both axes, rounded to the type of `out` in between.

    `down` and `across` are the weights, `rows` and `columns` the `source` of `blur_across_rows` and
    `blur_along_row`.
    """
    width = image.shape[1]
    line, between = np.empty(width), np.empty(width, out.dtype)
    extended = np.empty(width + 2 * (across.size - 1) * channels)
    for row in range(image.shape[0]):
        blur_across_rows(image, down, rows, row, line)
        copy(line, between)
        blur_along_row(between, channels, across, columns, extended, line)
        copy(line, out[row])


@compiled
def blur_bytes(image, channels, units, weights, rows, columns, out):
    """Blur the entries in `units` (float64, 256) of a uint8 image; clip, and truncate to uint8.

    Only the rows under the kernel are converted to floats at a time, so that they stay in the cache.
    """
    height, width = image.shape
    radius = weights.size - 1
    line, result = np.empty(width), np.empty(width)
    extended = np.empty(width + 2 * radius * channels)
    lines = np.empty((min(2 * radius + 1, height), width))
    places = np.empty(rows.size, rows.dtype)
    for i in range(rows.size):
        places[i] = rows[i] % lines.shape[0]
    there = 0
    for row in range(height):
        while there < min(row + radius + 1, height):
            widen(image[there], units, lines[there % lines.shape[0]])
            there += 1
        blur_across_rows(lines, weights, places, row, line)
        blur_along_row(line, channels, weights, columns, extended, result)
        quantise(result, out[row])
