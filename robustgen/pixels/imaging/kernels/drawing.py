"""Compiled loops that draw chessboards and lines on an image."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner


@compiled
def cut_out(image, along, across, cell, grid, out):
    """Grey every second square of side `cell` that `grid` (K, K) marks.

    `along` and `across` are cosine and sine of the rotation; `image` and `out` are uint8 (H, W, 3).
    """
    size = grid.shape[0]
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            u = (along * y + across * x) / cell
            v = (-across * y + along * x) / cell
            same = np.int64(u - 2.0 * np.floor(u / 2.0)) == np.int64(v - 2.0 * np.floor(v / 2.0))
            # Truncated towards zero, and negative places counted from the end, as NumPy does.
            i, j = np.int64(u), np.int64(v)
            hit = same and grid[i if i >= 0 else i + size, j if j >= 0 else j + size]
            for c in range(3):
                out[y, x, c] = np.uint8(128) if hit else image[y, x, c]


@inner
def line_points(start_row, start_column, end_row, end_column, points, distances):
    """Write the points of an antialiased line and their distances from it; return their number.

    Bresenham's line in Zingl's version; `points` (N, 2) are rows and columns.
    """
    width, rise = abs(start_column - end_column), abs(start_row - end_row)
    error = width - rise
    step = 1 if start_column < end_column else -1
    climb = 1 if start_row < end_row else -1
    span = np.float32(np.sqrt(np.float64(width * width + rise * rise)))
    length = 1.0 if width + rise == 0 else np.float64(span)
    column, row, count = start_column, start_row, 0
    while True:
        points[count, 0], points[count, 1] = row, column
        distances[count] = abs(error - width + rise) / length
        count += 1
        before, at = error, column
        if 2 * before >= -width:
            if column == end_column:
                return count
            if before + rise < length:
                points[count, 0], points[count, 1] = row + climb, column
                distances[count] = abs(before + rise) / length
                count += 1
            error -= rise
            column += step
        if 2 * before <= rise:
            if row == end_row:
                return count
            if width - before < length:
                points[count, 0], points[count, 1] = row, at + step
                distances[count] = abs(width - before) / length
                count += 1
            error += width
            row += climb


@compiled
def draw_lines(ends, out):
    """Draw grey antialiased lines onto `out` (uint8, (H, W, 3)); a row of `ends` is two (row, column)."""
    height, width = out.shape[0], out.shape[1]
    for n in range(ends.shape[0]):
        reach = abs(ends[n, 0] - ends[n, 2]) + abs(ends[n, 1] - ends[n, 3]) + 1
        points, distances = np.empty((3 * reach, 2), np.int64), np.empty(3 * reach)
        count = line_points(ends[n, 0], ends[n, 1], ends[n, 2], ends[n, 3], points, distances)
        colours = np.empty((count, 3), np.uint8)
        # Read all before writing any; a repeated point keeps the last value.
        for i in range(count):
            y, x = points[i, 0], points[i, 1]
            if 0 <= y < height and 0 <= x < width:
                cover = 1.0 - distances[i]
                for c in range(3):
                    colours[i, c] = np.uint8(np.int32((1.0 - cover) * out[y, x, c] + 128.0 * cover))
        for i in range(count):
            y, x = points[i, 0], points[i, 1]
            if 0 <= y < height and 0 <= x < width:
                out[y, x] = colours[i]
