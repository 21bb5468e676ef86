"""Compiled loops of cubic splines: rotation and enlargement of images."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import beyond
from robustgen.pixels.imaging.kernels.intrinsics import add_weighed

# Pole of the recursive filter for coefficients of cubic B-splines.
POLE = -0.2679491924311228
_GAIN = (1.0 - POLE) * (1.0 - 1.0 / POLE)


@compiled
def fit_spline(image, down, across, spline):
    """Write the B-spline coefficients of `image` (float32, (H, W, 3)) into `spline` (H + 3, W + 3, 4).

    `down` (H) and `across` (W) are powers of `POLE` from 0 on. Borders are mirrored about the edge pixels,
    by one sample before and two after.
    """
    height, width = down.size, across.size
    lines = np.empty((height, 3 * width))
    for y in range(height):
        source, line = image[y].reshape(-1), lines[y]
        for m in range(line.size):
            line[m] = source[m] * _GAIN
    _filter_rows(lines, down)
    for y in range(height):
        line = lines[y]
        for m in range(line.size):
            line[m] *= _GAIN
        _filter_row(line, across)
    for y in range(height + 3):
        line, target = lines[beyond(y - 1, height, True)], spline[y]
        for x in range(width + 3):
            index = 3 * beyond(x - 1, width, True)
            target[x, 0], target[x, 1], target[x, 2] = line[index], line[index + 1], line[index + 2]


@inner
def _filter_rows(lines, powers):
    """Filter along axis 0 of `lines` (N, M), in place, forwards and backwards."""
    last = powers.size - 1
    edge = powers[last]
    first, end = lines[0], lines[last]
    for m in range(first.size):
        first[m] = first[m] + edge * end[m]
    for i in range(1, last):
        line, opposite, power = lines[i], lines[last - i], powers[i]
        for m in range(first.size):
            first[m] += power * (line[m] + edge * opposite[m])
    for m in range(first.size):
        first[m] /= 1.0 - edge * edge
    for i in range(1, last + 1):
        before, line = lines[i - 1], lines[i]
        for m in range(first.size):
            line[m] += POLE * before[m]
    before = lines[last - 1]
    for m in range(first.size):
        end[m] = (POLE * before[m] + end[m]) * POLE / (POLE * POLE - 1.0)
    for i in range(last - 1, -1, -1):
        after, line = lines[i + 1], lines[i]
        for m in range(first.size):
            line[m] = POLE * (after[m] - line[m])


@inner
def _filter_row(line, powers):
    """Filter one line of pixels with three values, (3 W), in place, like `_filter_rows`."""
    last = powers.size - 1
    edge = powers[last]
    for c in range(3):
        first = line[c] + edge * line[3 * last + c]
        for i in range(1, last):
            first += powers[i] * (line[3 * i + c] + edge * line[3 * (last - i) + c])
        line[c] = first / (1.0 - edge * edge)
    # Channels are interleaved, because each sum waits for the one before.
    for m in range(3, line.size):
        line[m] += POLE * line[m - 3]
    for m in range(3 * last, line.size):
        line[m] = (POLE * line[m - 3] + line[m]) * POLE / (POLE * POLE - 1.0)
    for m in range(3 * last - 1, -1, -1):
        line[m] = POLE * (line[m + 3] - line[m])


@compiled
def spline_weights(part):
    """Return the four weights of a cubic B-spline at fraction `part` between its middle samples."""
    rest = 1.0 - part
    first = rest * rest * rest / 6.0
    second = (part * part * (part - 2.0) * 3.0 + 4.0) / 6.0
    third = (rest * rest * (rest - 2.0) * 3.0 + 4.0) / 6.0
    return first, second, third, 1.0 - first - second - third


@inner
def add_turned(spline, cosine_of, sine_of, weight, total):
    """Add `weight` times the image, rotated like ``scipy.ndimage.rotate``, to `total` (float32).

    `spline` (H + 3, W + 3, 4) are the B-spline coefficients, mirrored by one before and two after; the
    fourth of each pixel is unused, also in `total` (H, W, 4).
    """
    height, width = total.shape[0], total.shape[1]
    middle_y, middle_x = (height - 1) / 2.0, (width - 1) / 2.0
    start_y = middle_y - (cosine_of * middle_y + sine_of * middle_x)
    start_x = middle_x - (-sine_of * middle_y + cosine_of * middle_x)
    pixels, sums, pitch = spline.reshape(-1), total.reshape(-1), 4 * spline.shape[1]
    rows, columns, first = np.empty(width), np.empty(width), np.empty(width, np.int64)
    down, across = np.empty((4, width)), np.empty((4, width))
    for y in range(height):
        for x in range(width):
            rows[x] = (start_y + y * cosine_of) + x * sine_of
            columns[x] = (start_x + y * -sine_of) + x * cosine_of
        for x in range(width):
            first[x] = np.int64(np.floor(rows[x])) * pitch + 4 * np.int64(np.floor(columns[x]))
        _fill_weights(rows, down)
        _fill_weights(columns, across)
        for x in range(width):
            if rows[x] < 0.0 or rows[x] > height - 1 or columns[x] < 0.0 or columns[x] > width - 1:
                continue
            of_columns = across[0, x], across[1, x], across[2, x], across[3, x]
            of_rows = down[0, x], down[1, x], down[2, x], down[3, x]
            add_weighed(pixels, first[x], pitch, of_columns, of_rows, weight, sums, 4 * (y * width + x))


@compiled
def blur_by_turning(spline, turns, whole, out):
    """Write the mean of an image rotated by `turns` (N, 3), cosine, sine and weight, to `out` (uint8).

    `spline` is as in `add_turned`; `whole` is the sum of the weights. Precision is single.
    """
    height, width = out.shape[0], out.shape[1]
    total = np.zeros((height, width, 4), np.float32)
    for i in range(turns.shape[0]):
        add_turned(spline, turns[i, 0], turns[i, 1], np.float32(turns[i, 2]), total)
    nothing, most = np.float32(0), np.float32(255)
    for y in range(height):
        for x in range(width):
            for k in range(3):
                out[y, x, k] = np.uint8(np.int32(min(max(total[y, x, k] / whole * most, nothing), most)))


@inner
def _fill_weights(places, weights):
    """Write the `spline_weights` of each of `places` (N) to `weights` (4, N)."""
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    for x in range(places.size):
        w0[x], w1[x], w2[x], w3[x] = spline_weights(places[x] - np.floor(places[x]))


@compiled
def zoom_channel(image, channel, tops, row_weights, lefts, column_weights, out):
    """Write the weighted sum of 4 x 4 values of `channel` of `image` (uint8), rounded half up, to `out`.

    `tops` (4, H) and `lefts` (4, W) are their rows and columns.
    """
    width, first, last = out.shape[1], tops.min(), tops.max()
    # Each line is gathered for the four columns once, for all places that use it.
    near, total = np.empty((last + 1 - first, 4, width)), np.empty(width)
    for row in range(first, last + 1):
        line = image[row]
        for j in range(4):
            target, places = near[row - first, j], lefts[j]
            for x in range(width):
                target[x] = line[np.uint64(places[x]), channel]
    w0, w1, w2, w3 = column_weights[0], column_weights[1], column_weights[2], column_weights[3]
    for y in range(out.shape[0]):
        total[:] = 0.0
        for i in range(4):
            four, w = near[tops[i, y] - first], row_weights[i, y]
            v0, v1, v2, v3 = four[0], four[1], four[2], four[3]
            for x in range(width):
                half = (total[x] + v0[x] * w * w0[x]) + v1[x] * w * w1[x]
                total[x] = (half + v2[x] * w * w2[x]) + v3[x] * w * w3[x]
        for x in range(width):
            out[y, x, channel] = np.uint8(np.int32(min(max(total[x] + 0.5, 0.0), 255.0)))
