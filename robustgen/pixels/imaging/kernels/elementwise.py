"""Loops over single values, edges and sums of images."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner


@compiled
def quantise(values, out):
    """Clip `values` (float, flat) to [0, 1], multiply by 255, and truncate into `out` (uint8, flat)."""
    zero, one, top = values.dtype.type(0), values.dtype.type(1), values.dtype.type(255)
    for i in range(values.size):
        out[i] = np.uint8(np.int32(min(max(values[i], zero), one) * top))


@compiled
def widen(values, units, out):
    """Look up each of `values` (uint8, flat) in `units` (float64, 256), into `out` (float64)."""
    for i in range(values.size):
        out[i] = units[values[i]]


@compiled
def copy(values, target):
    """Copy `values` to `target` (both flat), which compiles in a fifth of the time of a slice assignment."""
    for i in range(target.size):
        target[i] = values[i]


@compiled
def beyond(index, size, mirrored):
    """Return the sample at `index` of a line of `size`: beyond the border, the edge or a mirrored one."""
    if 0 <= index < size:
        return index
    if not mirrored:
        return 0 if index < 0 else size - 1
    index = abs(index) % (2 * size - 2)
    return index if index < size else 2 * size - 2 - index


@compiled
def extend(image, channels, above, left, mirrored, scale, out):
    """Copy `image` (H, W * channels) times `scale` into `out`, `above` and `left` pixels from its corner.

    Beyond the border, the edge is repeated, or the image is `mirrored` about its edge pixels.
    """
    height, width = image.shape[0], image.shape[1] // channels
    columns = out.shape[1] // channels
    for row in range(out.shape[0]):
        source = image[beyond(row - above, height, mirrored)]
        target = out[row]
        middle = target[left * channels : (left + width) * channels]
        for m in range(middle.size):
            middle[m] = source[m] * scale
        for side in range(columns - width):
            column = side if side < left else side + width
            x = beyond(column - left, width, mirrored)
            for c in range(channels):
                target[column * channels + c] = source[x * channels + c] * scale


@compiled
def average(image, total, count, out):
    """Write (image + total) / count (float32, flat), clipped to [0, 1], to `out` (uint8), truncated."""
    zero, one, top = np.float32(0), np.float32(1), np.float32(255)
    for i in range(image.size):
        out[i] = np.uint8(np.int32(min(max((image[i] + total[i]) / count, zero), one) * top))


@compiled
def truncated(value):
    """Return `value` clipped to [0, 255] and truncated."""
    return np.uint8(np.int32(min(max(value, 0.0), 255.0)))


@compiled
def blend(image, weight, other, other_weight, out):
    """Write weight * image + other_weight * other (uint8, flat), clipped and truncated, to `out`."""
    for i in range(image.size):
        out[i] = truncated(weight * np.float64(image[i]) + other_weight * np.float64(other[i]))


@inner
def repeat_thrice(line, out):
    """Repeat each value of `line` (N) for each channel, into `out` (at least 3 N)."""
    for x in range(line.size):
        out[3 * x], out[3 * x + 1], out[3 * x + 2] = line[x], line[x], line[x]


@inner
def largest_byte(values):
    """Return the largest of `values` (uint8, flat)."""
    largest = np.uint8(0)
    for i in range(values.size):
        largest = max(largest, values[i])
    return largest


@compiled
def quantise_above(values, threshold, out):
    """Quantise like `quantise`, but set `values` below `threshold` to 0."""
    for i in range(values.size):
        value = values[i] if values[i] >= threshold else 0.0
        out[i] = np.uint8(np.int32(min(max(value, 0.0), 1.0) * 255.0))


@compiled
def channel_sums(image, units, sums):
    """Sum the `units` (256) of `image` (uint8, (N, 3)) into `sums` (3), row by row like NumPy."""
    r, g, b = 0.0, 0.0, 0.0
    for i in range(image.shape[0]):
        r += units[image[i, 0]]
        g += units[image[i, 1]]
        b += units[image[i, 2]]
    sums[0], sums[1], sums[2] = r, g, b


@inner
def look_up(image, table, out):
    """Replace each value of channel c of `image` (uint8, (N, 3)) by its entry in column c of `table`."""
    for i in range(image.shape[0]):
        for c in range(3):
            out[i, c] = table[image[i, c], c]


@compiled
def scale_about(image, units, centres, factor, out):
    """Multiply the distance of each value of `image` (uint8, (N, 3)) from its channel's centre by `factor`.

    `units` (256) are the values, `centres` (3) in the same unit; clipped and truncated into `out` (uint8).
    """
    table = np.empty((256, 3), np.uint8)
    for value in range(256):
        for c in range(3):
            scaled = (units[value] - centres[c]) * factor + centres[c]
            table[value, c] = np.uint8(np.int32(min(max(scaled, 0.0), 1.0) * 255.0))
    look_up(image, table, out)


@compiled
def count_values(image, counts):
    """Add the histogram of each channel of `image` (uint8, (N, 3)) to `counts` (256, 3)."""
    for i in range(image.shape[0]):
        for c in range(3):
            counts[image[i, c], c] += 1


@compiled
def weighted_mean(images, weights, out):
    """Write the sum of `images` (uint8, (M, N)) times `weights` (float32), rounded half up, to `out`."""
    half, top = np.float32(0.5), np.float32(255)
    line = np.empty(2048, np.float32)
    for start in range(0, out.size, line.size):
        target = out[start : start + line.size]
        line[:] = half
        for m in range(weights.size):
            part, weight = images[m, start:], weights[m]
            for i in range(target.size):
                line[i] += weight * np.float32(part[i])
        for i in range(target.size):
            target[i] = np.uint8(np.int32(min(line[i], top)))
