"""Loops over depth maps and reliefs."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.exact import exponential

# --- compiled loops for depth maps, in float32: fog, and blur outside the plane of focus -----------


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


# --- compiled loops of reliefs: columns of an image as lines bent by its brightness ----------------


@inner
def mark(row, column, red, green, blue, out):
    """Paint one pixel of `out` (uint8, (H, W, 3)), if it is inside."""
    if 0 <= row < out.shape[0] and 0 <= column < out.shape[1]:
        out[row, column, 0] = red
        out[row, column, 1] = green
        out[row, column, 2] = blue


@inner
def draw_line(x, y, end_x, end_y, red, green, blue, out):
    """Draw a line one pixel wide between two pixels, both included, like Pillow."""
    across, down = abs(end_x - x), abs(end_y - y)
    step_x, step_y = 1 if end_x >= x else -1, 1 if end_y >= y else -1
    flat = across > down
    long, short = (across, down) if flat else (down, across)
    error = 2 * short - long
    for _ in range(long + 1):
        mark(y, x, red, green, blue, out)
        aside = error >= 0 and short > 0
        error += 2 * short - (2 * long if aside else 0)
        if flat or aside:
            x += step_x
        if not flat or aside:
            y += step_y


@compiled
def bend_columns(image, luma, columns, step, reach, out):
    """Draw `columns` lines, bent to the left by up to `reach` pixels where `luma` (uint8, (H, W)) is dark.

    Lines connect cells of `step` rows, in the mean colour of each. `out` must be black.
    """
    height, width = luma.shape
    for i in range(columns):
        x = (i / columns) * width
        first, last = np.int64(x), min(np.int64(x + width / columns), width)
        before_x, before_y = np.int64(x), 0
        for top in range(0, height, step):
            bottom = min(top + step, height)
            red = green = blue = light = np.int64(0)
            for row in range(top, bottom):
                for column in range(first, last):
                    red += np.int64(image[row, column, 0])
                    green += np.int64(image[row, column, 1])
                    blue += np.int64(image[row, column, 2])
                    light += np.int64(luma[row, column])
            pixels = max((bottom - top) * (last - first), 1)
            bend = -reach * (1 - (light // pixels) / 255)
            to_x = np.int64(x + bend)
            draw_line(
                before_x,
                before_y,
                to_x,
                top,
                np.uint8(red // pixels),
                np.uint8(green // pixels),
                np.uint8(blue // pixels),
                out,
            )
            before_x, before_y = to_x, top
