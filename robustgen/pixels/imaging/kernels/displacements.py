"""Compiled loops that move pixels: twirls and ripples."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import truncated
from robustgen.pixels.imaging.kernels.exact import exp, log, sine_cosine
from robustgen.pixels.imaging.kernels.refraction import bilinear


@compiled
def twirl_offsets(side, angle, amount, pixels, offsets):
    """Compute the origins of a cell's pixels, pinched and twirled about its centre; return their number.

    `pixels` (`side` ** 2, 2) are their rows and columns in the cell, `offsets` are measured from its centre.
    """
    radius, count = side // 2, 0
    for y in range(side):
        for x in range(side):
            dy, dx = np.float64(y - radius), np.float64(x - radius)
            distance = np.sqrt(dy * dy + dx * dx)
            if distance > radius or np.rint(distance * 1000.0) == 0.0:
                continue
            part = distance / radius
            t = exp(-amount * log(sine_cosine(np.pi * 0.5 * part)[0]))
            sine, cosine = sine_cosine(angle * (1.0 - part) * (1.0 - part))
            dy, dx = dy * t, dx * t
            pixels[count, 0], pixels[count, 1] = y, x
            offsets[count, 0] = dy * cosine - dx * sine
            offsets[count, 1] = dy * sine + dx * cosine
            count += 1
    return count


@compiled
def twirl(values, side, backwards, pixels, forward, backward):
    """Pinch and twirl the square cells of `values` (float32, (H, W, 3)) one by one, in place.

    Their `pixels` (N, 2) are taken from the offsets `backward` (N, 2) where `backwards` (columns, rows) is 1,
    else from those of `forward`.
    """
    radius, sample, moved = side // 2, np.empty(3), np.empty((pixels.shape[0], 3), np.float32)
    for column in range(backwards.shape[0]):
        for row in range(backwards.shape[1]):
            top, left = row * side, column * side
            offsets = backward if backwards[column, row] else forward
            # Read all before writing any.
            for i in range(pixels.shape[0]):
                y, x = top + radius + offsets[i, 0], left + radius + offsets[i, 1]
                bilinear(values, y, x, sample)
                moved[i, 0], moved[i, 1], moved[i, 2] = sample[0], sample[1], sample[2]
            for i in range(pixels.shape[0]):
                y, x = top + pixels[i, 0], left + pixels[i, 1]
                values[y, x, 0], values[y, x, 1], values[y, x, 2] = moved[i, 0], moved[i, 1], moved[i, 2]


@compiled
def sample_places(image, rows, columns, out):
    """Sample `image` (uint8, (H, W, 3)) bilinearly at `rows` (H) and `columns` (W), in float64, into `out`.

    The outside is black.
    """
    lefts, rights, b, c = _neighbours(columns)
    tops, bottoms, e, g = _neighbours(rows)
    for y in range(image.shape[0]):
        upper, lower = image[tops[y]], image[bottoms[y]]
        for x in range(image.shape[1]):
            left, right = lefts[x], rights[x]
            for k in range(3):
                above = upper[left, k] * b[x] + upper[right, k] * c[x]
                below = lower[left, k] * b[x] + lower[right, k] * c[x]
                out[y, x, k] = truncated(above * e[y] + below * g[y])


@inner
def _neighbours(places):
    """Return both neighbours of each of `places` on a line of this length, and their weights, 0 outside."""
    size = places.size
    before, after = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
    near, far = np.zeros(size), np.zeros(size)
    for i in range(size):
        first = np.int64(np.floor(places[i]))
        if 0 <= first < size:
            before[i], near[i] = first, (1.0 - places[i]) + first
        if 0 <= first + 1 < size:
            after[i], far[i] = first + 1, (1.0 - (first + 1)) + places[i]
    return before, after, near, far
