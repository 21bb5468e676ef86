"""Loops that resize images."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import copy

# --- compiled loops that resize by cubic interpolation with a fixed order of sums ------------------


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


# --- compiled loops of box means -------------------------------------------------------------------


@inner
def average_columns(image, firsts, counts, shares, out):
    """Write the mean of counts[x] pixels from firsts[x] on to pixel x of every row of `out` (H, W', 3).

    shares[x] is 2**22 / counts[x], rounded: Pillow's fixed point.
    """
    half, field = np.uint64(1 << 21), np.uint64((1 << 21) - 1)
    # Channels are packed, 21 bits each, so that one sum adds all three.
    words = np.empty(image.shape[1], np.uint64)
    for row in range(image.shape[0]):
        source, target = image[row], out[row]
        for x in range(words.size):
            words[x] = (
                source[x, 0]
                | np.uint64(source[x, 1]) << np.uint64(21)
                | np.uint64(source[x, 2]) << np.uint64(42)
            )
        for x in range(firsts.size):
            # Unsigned indices, as in `glass_shuffle`.
            first, share = np.uint64(firsts[x]), np.uint64(shares[x])
            total = words[first]
            for i in range(1, counts[x]):
                total += words[first + np.uint64(i)]
            red, green, blue = total & field, (total >> np.uint64(21)) & field, total >> np.uint64(42)
            target[x, 0] = np.uint8((red * share + half) >> np.uint64(22))
            target[x, 1] = np.uint8((green * share + half) >> np.uint64(22))
            target[x, 2] = np.uint8((blue * share + half) >> np.uint64(22))


@inner
def average_rows(image, firsts, counts, shares, out):
    """Average rows (H, M) like `average_columns` averages columns."""
    half = np.uint64(1 << 21)
    total = np.empty(image.shape[1], np.uint32)
    for row in range(firsts.size):
        first, count, share = firsts[row], counts[row], np.uint64(shares[row])
        if count == 1:
            copy(image[first], out[row])
            continue
        copy(image[first], total)
        for y in range(first + 1, first + count):
            source = image[y]
            for m in range(total.size):
                total[m] += source[m]
        target = out[row]
        for m in range(total.size):
            target[m] = np.uint8((total[m] * share + half) >> np.uint64(22))


@compiled
def average_boxes(image, across, down, out):
    """Write box means of `image` (uint8, (H, W, 3)) to `out`: first `across`, then `down`.

    Both are firsts, counts and shares of `average_columns`.
    """
    lines = np.empty((image.shape[0], out.shape[1], 3), np.uint8)
    average_columns(image, across[0], across[1], across[2], lines)
    average_rows(lines.reshape(image.shape[0], -1), down[0], down[1], down[2], out.reshape(out.shape[0], -1))
