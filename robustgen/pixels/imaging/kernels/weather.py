"""Compiled loops of fog, snow, drops, and plasma."""

import numpy as np

from robustgen.pixels.imaging.kernels.colour import join_channels, split_channels
from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import copy, largest_byte, repeat_thrice, widen


@compiled
def add_haze(image, units, haze, lowest, span, strength, out):
    """Write (x + strength * h) * brightest / (brightest + strength) of `image` (uint8, flat), `haze` (N).

    x is the entry in `units` (256) of each value, `brightest` that of the largest, h (haze - lowest) / span.
    The result is clipped and truncated into `out` (uint8, flat).
    """
    brightest = units[largest_byte(image)]
    whole = brightest + strength
    lift, shrink = strength / span, 255.0 * (brightest / whole)
    # In stretches of pixels, channels side by side, for vectorisation.
    values, scaled, added = np.empty(1536), np.empty(512), np.empty(1536)
    for start in range(0, haze.size, 512):
        part = haze[start : start + 512]
        for i in range(part.size):
            scaled[i] = (part[i] - lowest) * lift
        repeat_thrice(scaled[: part.size], added)
        stretch, target = image[3 * start : 3 * (start + part.size)], out[3 * start :]
        unsure = 0
        for m in range(stretch.size):
            x = (np.float64(stretch[m]) * (1.0 / 255.0) + added[m]) * shrink
            target[m] = np.uint8(np.int32(min(max(x, 0.0), 255.0)))
            unsure += not abs(x - np.rint(x)) >= 1e-9
        if unsure:
            # In the published order, whose rounding errors affect truncation.
            for i in range(part.size):
                scaled[i] = (part[i] - lowest) / span
            repeat_thrice(scaled[: part.size], added)
            widen(stretch, units, values)
            for m in range(stretch.size):
                x = (values[m] + strength * added[m]) * brightest / whole
                target[m] = np.uint8(np.int32(min(max(x, 0.0), 1.0) * 255.0))


@compiled
def fill_luma(image, out):
    """Write (g K1 + b K2) + r K0 of `image` / 255 (uint8, (H, W, 3)), in single precision, to `out` (H, W).

    The last W % 8 columns are (r K0 + g K1) + b K2, because OpenCV computes eight columns at once.
    """
    reds, greens, blues = np.empty(256, np.float32), np.empty(256, np.float32), np.empty(256, np.float32)
    for level in range(256):
        value = np.float32(level) / np.float32(255)
        reds[level], greens[level] = value * np.float32(0.299), value * np.float32(0.587)
        blues[level] = value * np.float32(0.114)
    whole = out.shape[1] // 8 * 8
    for y in range(out.shape[0]):
        row, line = image[y], out[y]
        for x in range(whole):
            line[x] = (greens[row[x, 1]] + blues[row[x, 2]]) + reds[row[x, 0]]
        for x in range(whole, line.size):
            line[x] = (reds[row[x, 0]] + greens[row[x, 1]]) + blues[row[x, 2]]


@compiled
def snowfall(image, grey, weights, layer, units, out):
    """Whiten `image` (uint8, flat) by its `grey` (N) and add `layer` (uint8, N) and its reverse.

    `weights` (2) are those of image / 255 and of the lighter of it and grey, and determine the precision;
    `units` (256) are the values of the layer. The result is clipped and truncated into `out` (uint8).
    """
    half, more, top = np.float32(0.5), np.float32(1.5), weights.dtype.type(255)
    mix, rest, last = weights[0], weights[1], layer.size - 1
    # As in `add_haze`.
    greys, first, second = np.empty(1536, np.float32), np.empty(1536), np.empty(1536)
    snow, turned = np.empty(512), np.empty(512)
    for start in range(0, layer.size, 512):
        part = layer[start : start + 512]
        for i in range(part.size):
            snow[i], turned[i] = units[part[i]], units[layer[last - start - i]]
        repeat_thrice(grey[start : start + part.size], greys)
        repeat_thrice(snow[: part.size], first)
        repeat_thrice(turned[: part.size], second)
        stretch, target = image[3 * start : 3 * (start + part.size)], out[3 * start :]
        for m in range(stretch.size):
            value = weights.dtype.type(stretch[m]) / top
            white = mix * value + rest * max(value, greys[m] * more + half)
            target[m] = np.uint8(np.int32(min(max(white + first[m] + second[m], 0.0), 1.0) * 255.0))


@compiled
def add_light(image, light, brightest, strength, colour, out):
    """Add `light` (float32, N) / brightest * strength of a `colour` (3) to `image` / 255 (uint8, (N, 3)).

    Computed in single precision; clipped and truncated into `out` (uint8).
    """
    zero, one, most = np.float32(0), np.float32(1), np.float32(255)
    values, results, share = (
        np.empty((3, 512), np.float32),
        np.empty((3, 512), np.uint8),
        np.empty(512, np.float32),
    )
    for start in range(0, light.size, 512):
        part = light[start : start + 512]
        split_channels(image[start : start + part.size], values)
        for i in range(part.size):
            share[i] = part[i] / brightest * strength
        for c in range(3):
            value, result, tint = values[c], results[c], colour[c]
            for i in range(part.size):
                result[i] = np.uint8(np.int32(min(max(value[i] / most + share[i] * tint, zero), one) * most))
        join_channels(results, out[start : start + part.size])


@compiled
def cover(image, shares, colour, out):
    """Cover `image` / 255 (uint8, (N, 3)) by `shares` (float64, N) with a `colour` (float32, 3).

    Both products are computed in double precision and rounded to single, the precision of the rest; the
    result is clipped and truncated into `out` (uint8).
    """
    zero, one, most = np.float32(0), np.float32(1), np.float32(255)
    # Values from a table need not be widened.
    units, values, results = np.empty(256), np.empty((3, 512)), np.empty((3, 512), np.uint8)
    for level in range(256):
        units[level] = np.float64(np.float32(level) / most)
    for start in range(0, shares.size, 512):
        share = shares[start : start + 512]
        for i in range(share.size):
            for c in range(3):
                values[c, i] = units[image[start + i, c]]
        for c in range(3):
            value, result, tint = values[c], results[c], np.float64(colour[c])
            for i in range(share.size):
                mixed = np.float32(value[i] * (1.0 - share[i])) + np.float32(tint * share[i])
                result[i] = np.uint8(np.int32(min(max(mixed, zero), one) * most))
        join_channels(results, out[start : start + share.size])


@inner
def close_ring(line, ring):
    """Copy `line` to `ring`, which is one longer and repeats its first value at the end."""
    for x in range(line.size):
        ring[x] = line[x]
    ring[line.size] = line[0]


@inner
def place_centres(row, below, wobble, uniforms, centres):
    """Write the centres of the squares between two rings from centres[1] on; centres[0] is the last."""
    for x in range(uniforms.size):
        total = (row[x] + below[x]) + (row[x + 1] + below[x + 1])
        centres[x + 1] = total / 4 + wobble * (-wobble + (wobble - -wobble) * uniforms[x])
    centres[0] = centres[uniforms.size]


@compiled
def refine(field, wobble, uniforms, lines, finer):
    """Do one step of diamond-square on the torus: double the points, with 3 n * n draws, into `finer`.

    `field` is (n, n), `finer` the top left part of (2 n, 2 n). The first two of `lines` (8, at least 2 n)
    become the least and the largest value of each column, the others are buffers. One pass, row by row.
    """
    side = field.shape[0]
    area, low, spread = side * side, -wobble, wobble - -wobble
    least, most, even, odd = lines[0], lines[1], lines[2, : 2 * side], lines[3, : 2 * side]
    # Rows whose ends are repeated: two rows of points, the centres between them, and the centres above.
    row, below, centres, above = lines[4], lines[5], lines[6], lines[7]
    close_ring(field[side - 1], row)
    close_ring(field[0], below)
    place_centres(row, below, wobble, uniforms[area - side : area], centres)
    for y in range(side):
        row, below, above, centres = below, row, centres, above
        close_ring(field[(y + 1) & (side - 1)], below)
        first = y * side
        place_centres(row, below, wobble, uniforms[first : first + side], centres)
        to_right, downwards = uniforms[area + first :], uniforms[2 * area + first :]
        for x in range(side):
            across, along = centres[x + 1] + above[x + 1], row[x] + row[x + 1]
            even[2 * x] = row[x]
            even[2 * x + 1] = (across + along) / 4 + wobble * (low + spread * to_right[x])
        for x in range(side):
            across, along = centres[x + 1] + centres[x], row[x] + below[x]
            odd[2 * x] = (across + along) / 4 + wobble * (low + spread * downwards[x])
            odd[2 * x + 1] = centres[x + 1]
        for x in range(2 * side):
            least[x] = min(min(least[x], even[x]), odd[x])
            most[x] = max(max(most[x], even[x]), odd[x])
        if 2 * y < finer.shape[0]:
            copy(even, finer[2 * y])
        if 2 * y + 1 < finer.shape[0]:
            copy(odd, finer[2 * y + 1])


@compiled
def plasma(uniforms, wobble, decay, lines, out):
    """Return the top left part of a diamond-square fractal on a torus, n points wide, from n * n - 1 draws.

    n is a power of two, `lines` (8, n + 1) are buffers for `refine`. Return the least and the largest value
    of the full fractal.
    """
    least, most = lines[0, :-1], lines[1, :-1]
    # The first point is zero.
    for x in range(least.size):
        least[x], most[x] = 0.0, 0.0
    field, side, used = np.zeros((1, 1)), 1, 0
    while 2 * side < least.size:
        finer = np.empty((2 * side, 2 * side))
        refine(field, wobble, uniforms[used:], lines, finer)
        used += 3 * side * side
        field, side, wobble = finer, 2 * side, wobble / decay
    refine(field, wobble, uniforms[used:], lines, out)
    # `min` and `max` of an array take a second to compile.
    for x in range(1, least.size):
        least[0], most[0] = min(least[0], least[x]), max(most[0], most[x])
    return least[0], most[0]


@compiled
def place_all_centres(field, wobble, centres):
    """Do the first third of `refine` alone: replace the draws in `centres` (n, n) by the values."""
    side = field.shape[0]
    row, below, line = np.empty(side + 1), np.empty(side + 1), np.empty(side + 1)
    close_ring(field[0], below)
    for y in range(side):
        row, below = below, row
        close_ring(field[(y + 1) & (side - 1)], below)
        place_centres(row, below, wobble, centres[y], line)
        copy(line[1:], centres[y])


@compiled
def refine_rows(field, centres, wobble, uniforms, first, is_odd, finer, ends):
    """Do the second or last third of `refine` for the draws `uniforms` (k, n) of rows from `first` on.

    `ends` (2) are the least and the largest value so far.
    """
    side = field.shape[0]
    low, spread, line = -wobble, wobble - -wobble, np.empty(2 * side)
    for y in range(first, first + uniforms.shape[0]):
        row, centre, draws = field[y], centres[y], uniforms[y - first]
        below, above = field[(y + 1) & (side - 1)], centres[(y - 1) & (side - 1)]
        for x in range(side):
            if is_odd:
                across, along = centre[x] + centre[(x - 1) & (side - 1)], row[x] + below[x]
                point, other = 2 * x, centre[x]
            else:
                across, along = centre[x] + above[x], row[x] + row[(x + 1) & (side - 1)]
                point, other = 2 * x + 1, row[x]
            line[point] = (across + along) / 4 + wobble * (low + spread * draws[x])
            line[point ^ 1] = other
        for x in range(2 * side):
            ends[0], ends[1] = min(ends[0], line[x]), max(ends[1], line[x])
        if 2 * y + is_odd < finer.shape[0]:
            copy(line, finer[2 * y + is_odd])


@compiled
def drip(layer, kernel):
    """Convolve every column of `layer` (H, W) in place with a short `kernel`, like NumPy's mode "same"."""
    height, size = layer.shape[0], kernel.size
    ahead = (size - 1) // 2
    # Copies of the original rows above, as there is only one layer of a large photograph.
    lines = np.zeros((size, layer.shape[1]))
    for y in range(-ahead, height):
        if y + ahead < height:
            copy(layer[y + ahead], lines[(y + ahead) % size])
        else:
            lines[(y + ahead) % size] = 0.0
        if y < 0:
            continue
        target = layer[y]
        for x in range(target.size):
            target[x] = 0.0
        # From the oldest row on, in NumPy's order of sums.
        for j in range(size - 1, -1, -1):
            row, weight = y + ahead - j, kernel[j]
            if 0 <= row < height:
                line = lines[row % size]
                for x in range(target.size):
                    target[x] += line[x] * weight
