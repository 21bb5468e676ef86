"""Compiled loops of box means."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import copy


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
