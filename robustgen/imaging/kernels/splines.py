"""Compiled loops of cubic splines: images turned and enlarged."""

import numpy as np

from robustgen.imaging.kernels.compiler import compiled, inner
from robustgen.imaging.kernels.intrinsics import add_weighed


@compiled
def spline_weights(part):
    """The four weights of a cubic B-spline `part` of the way between its middle samples."""
    rest = 1.0 - part
    first = rest * rest * rest / 6.0
    second = (part * part * (part - 2.0) * 3.0 + 4.0) / 6.0
    third = (rest * rest * (rest - 2.0) * 3.0 + 4.0) / 6.0
    return first, second, third, 1.0 - first - second - third


@inner
def add_turned(spline, cosine_of, sine_of, weight, total):
    """Add `weight` times the image, turned as ``scipy.ndimage.rotate`` does it, to `total` (float32).

    `spline` (H + 3, W + 3, 4) holds the B-spline coefficients, mirrored by one before and two after; the
    fourth of a pixel counts for nothing, in `total` (H, W, 4) neither.
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
    """Mean of an image turned by each of `turns` (N, 3): cosine, sine and weight; into `out` (uint8).

    `spline` as in `add_turned`; `whole` is the sum of the weights. All in single precision.
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
    """`spline_weights` of each of `places` (N), into `weights` (4, N)."""
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    for x in range(places.size):
        w0[x], w1[x], w2[x], w3[x] = spline_weights(places[x] - np.floor(places[x]))


@compiled
def zoom_channel(image, channel, tops, row_weights, lefts, column_weights, out):
    """Weigh four rows and four columns of `channel` of `image` (uint8) for each place, rounded half up.

    `tops` (4, H) and `lefts` (4, W) name them, `row_weights` and `column_weights` weigh them.
    """
    width, first, last = out.shape[1], tops.min(), tops.max()
    # Each line as it stands under the four columns, once for all places that weigh it.
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
