"""Fog, snow, drops, and the plasma they are made of."""

import numpy as np

from robustgen.imaging.kernels.colour import join_channels, split_channels
from robustgen.imaging.kernels.compiler import compiled
from robustgen.imaging.kernels.elementwise import largest_byte, repeat_thrice, widen


@compiled
def add_haze(image, units, haze, strength, out):
    """(x + strength * haze) * brightest / (brightest + strength) of `image` (uint8, flat), `haze` (N).

    x is the entry in `units` (256) of each value, `brightest` that of the largest. Clipped and truncated into
    `out` (uint8, flat).
    """
    brightest = units[largest_byte(image)]
    whole = brightest + strength
    # A stretch of pixels at a time, channels side by side, so that the compiler takes many values at once.
    values, added = np.empty(1536), np.empty(1536)
    for start in range(0, haze.size, 512):
        part = haze[start : start + 512]
        repeat_thrice(part, added)
        stretch, target = image[3 * start : 3 * (start + part.size)], out[3 * start :]
        widen(stretch, units, values)
        for m in range(stretch.size):
            x = (values[m] + strength * added[m]) * brightest / whole
            target[m] = np.uint8(np.int32(min(max(x, 0.0), 1.0) * 255.0))


@compiled
def snowfall(image, grey, weights, layer, units, out):
    """Whiten `image` (uint8, flat) by its `grey` (N) and add `layer` (uint8, N) and its reverse.

    `weights` (2) are those of image / 255 and of the lighter of it and grey, in whose precision it is done;
    `units` (256) are the values of the layer. Clipped and truncated into `out` (uint8).
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

    All in single precision; clipped and truncated into `out` (uint8).
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
    """Cover `image` / 255 (uint8, (N, 3)) by `shares` (float32, N) with a `colour` (3).

    All in single precision; clipped and truncated into `out` (uint8).
    """
    zero, one, most = np.float32(0), np.float32(1), np.float32(255)
    values, results = np.empty((3, 512), np.float32), np.empty((3, 512), np.uint8)
    for start in range(0, shares.size, 512):
        share = shares[start : start + 512]
        split_channels(image[start : start + share.size], values)
        for c in range(3):
            value, result, tint = values[c], results[c], colour[c]
            for i in range(share.size):
                mixed = value[i] / most * (one - share[i]) + tint * share[i]
                result[i] = np.uint8(np.int32(min(max(mixed, zero), one) * most))
        join_channels(results, out[start : start + share.size])


@compiled
def plasma(uniforms, wobble, decay, field):
    """Diamond-square fractal on the torus `field` (n, n), n a power of two, from n * n - 1 draws."""
    side = field.shape[0]
    # What is left over when an index is divided by the side is its lower bits.
    bits = side - 1
    field[0, 0] = 0.0
    used = 0
    step = side
    while step >= 2:
        half = step // 2
        low, spread = -wobble, wobble - -wobble
        for y in range(0, side, step):
            row, middle, below = field[y], field[y + half], field[(y + step) & bits]
            for x in range(0, side, step):
                right = (x + step) & bits
                total = (row[x] + below[x]) + (row[right] + below[right])
                middle[x + half] = total / 4 + wobble * (low + spread * uniforms[used])
                used += 1
        for y in range(0, side, step):
            row, middle, above = field[y], field[y + half], field[(y - half) & bits]
            for x in range(0, side, step):
                across = middle[x + half] + above[x + half]
                along = row[x] + row[(x + step) & bits]
                row[x + half] = (across + along) / 4 + wobble * (low + spread * uniforms[used])
                used += 1
        for y in range(0, side, step):
            row, middle, below = field[y], field[y + half], field[(y + step) & bits]
            for x in range(0, side, step):
                across = middle[x + half] + middle[(x - half) & bits]
                along = row[x] + below[x]
                middle[x] = (across + along) / 4 + wobble * (low + spread * uniforms[used])
                used += 1
        step = half
        wobble /= decay


@compiled
def unit_plasma(uniforms, wobble, decay, out):
    """The top left part of a `plasma`, scaled to [0, 1] by the least and the largest value of the whole."""
    side = np.int64(np.sqrt(uniforms.size + 1))
    field = np.empty((side, side))
    plasma(uniforms, wobble, decay, field)
    least, most = field[0].copy(), field[0].copy()
    for y in range(1, side):
        # Line by line, so that the compiler can compare many values at once.
        for x in range(side):
            least[x], most[x] = min(least[x], field[y, x]), max(most[x], field[y, x])
    # Not `min` and `max` of an array, which take a second to compile.
    for x in range(1, side):
        least[0], most[0] = min(least[0], least[x]), max(most[0], most[x])
    lowest, span = least[0], most[0] - least[0]
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x] = (field[y, x] - lowest) / span
