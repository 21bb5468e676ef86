"""Compiled loops that resize by cubic interpolation with a fixed order of sums."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled


@compiled
def cubic_weights(size, new_size, firsts, weights):
    """Write the first of the four samples of each place of a line, and their `weights` (float32, (N, 4))."""
    one, sharpness = np.float32(1), np.float32(-0.75)
    ratio = np.float64(size) / np.float64(new_size)
    for index in range(new_size):
        at = (index + 0.5) * ratio - 0.5
        before = np.floor(at)
        firsts[index] = np.int64(before) - 1
        x = np.float32(at - before)
        far, rest = x + one, one - x
        a = ((sharpness * far - np.float32(5) * sharpness) * far + np.float32(8) * sharpness) * far
        a -= np.float32(4) * sharpness
        b = ((sharpness + np.float32(2)) * x - (sharpness + np.float32(3))) * x * x + one
        c = ((sharpness + np.float32(2)) * rest - (sharpness + np.float32(3))) * rest * rest + one
        weights[index, 0], weights[index, 1], weights[index, 2] = a, b, c
        weights[index, 3] = ((one - a) - b) - c


@compiled
def resize_cubic(image, out):
    """Resize `image` (uint8, (H, W, 3)) to `out` (uint8) in single precision, rounded to nearest even."""
    height, width = image.shape[0], image.shape[1]
    new_height, new_width = out.shape[0], out.shape[1]
    lefts, across = np.empty(new_width, np.int64), np.empty((new_width, 4), np.float32)
    tops, down = np.empty(new_height, np.int64), np.empty((new_height, 4), np.float32)
    cubic_weights(width, new_width, lefts, across)
    cubic_weights(height, new_height, tops, down)
    lines = np.empty((height, 3 * new_width), np.float32)
    for y in range(height):
        source, target = image[y], lines[y]
        for x in range(new_width):
            a = min(max(lefts[x], 0), width - 1)
            b = min(max(lefts[x] + 1, 0), width - 1)
            c = min(max(lefts[x] + 2, 0), width - 1)
            d = min(max(lefts[x] + 3, 0), width - 1)
            for k in range(3):
                total = np.float32(source[a, k]) * across[x, 0] + np.float32(source[b, k]) * across[x, 1]
                total = total + np.float32(source[c, k]) * across[x, 2]
                target[3 * x + k] = total + np.float32(source[d, k]) * across[x, 3]
    for y in range(new_height):
        target = out[y].reshape(-1)
        a, b = lines[min(max(tops[y], 0), height - 1)], lines[min(max(tops[y] + 1, 0), height - 1)]
        c, d = lines[min(max(tops[y] + 2, 0), height - 1)], lines[min(max(tops[y] + 3, 0), height - 1)]
        of_a, of_b, of_c, of_d = down[y, 0], down[y, 1], down[y, 2], down[y, 3]
        for m in range(target.size):
            total = ((a[m] * of_a + b[m] * of_b) + c[m] * of_c) + d[m] * of_d
            target[m] = np.uint8(np.int32(min(max(np.rint(total), np.float32(0)), np.float32(255))))
