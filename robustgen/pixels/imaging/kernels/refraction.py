"""Compiled loops of moving water: light on the ground, and refraction of an image."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementary import fill_sines, raise_to, sine_and_cosine


@compiled
def caustics(time, size, out):
    """Write the light on the ground of moving water, 0 to 1, to `out` (H, W); the period is `size` pixels."""
    width = out.shape[1]
    across, total = np.empty(width), np.empty(width)
    # Sines and cosines of both coordinates: the addition theorems add a time to the coordinate.
    first_s, first_c, second_s, second_c = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    rise, run = np.empty(width), np.empty(width)
    for x in range(width):
        way = x / size
        across[x] = (way - np.floor(way)) * 6.28318530718 - 250.0
    for y in range(out.shape[0]):
        way = y / size
        down = (way - np.floor(way)) * 6.28318530718 - 250.0
        total[:] = 1.0
        first_s[:], first_c[:] = sine_and_cosine(down)
        fill_sines(across, second_s, second_c)
        for n in range(5):
            t = time * (1.0 - 3.5 / (n + 1))
            s, c = sine_and_cosine(t)
            # Displacements: sums and differences of the products.
            for x in range(width):
                one, other = c * first_c[x], s * first_s[x]
                first_c[x], first_s[x] = one + other, one - other
            for x in range(width):
                one, other = s * second_c[x], c * second_s[x]
                second_s[x], second_c[x] = one + other, one - other
            for x in range(width):
                rise[x] = down + first_c[x] + second_s[x]
            for x in range(width):
                run[x] = across[x] + (second_c[x] + first_s[x])
            fill_sines(rise, first_s, first_c)
            fill_sines(run, second_s, second_c)
            for x in range(width):
                rise[x] = first_s[x] * c + first_c[x] * s
            for x in range(width):
                run[x] = second_c[x] * c - second_s[x] * s
            for x in range(width):
                a, b = down * run[x], across[x] * rise[x]
                total[x] += abs(rise[x] * run[x]) / (0.005 * np.sqrt(a * a + b * b))
        line = out[y]
        for x in range(width):
            line[x] = total[x] / 5.0
        raise_to(line, 1.4)
        for x in range(width):
            c = abs(1.17 - line[x])
            c = c * c
            c = c * c
            line[x] = min(c * c, 1.0)


@compiled
def refract_places(height, lens, down, right, south, east):
    """Compute the apparent place of each pixel through water of `height`, and the slope of its surface.

    `height` (H + 2, W + 2) has a border of zeros; the others are (H, W). Rays are displaced by up to `lens`
    pixels.
    """
    for y in range(down.shape[0]):
        above, here, below = height[y], height[y + 1], height[y + 2]
        for x in range(down.shape[1]):
            south[y, x] = here[x] - here[x + 2]
            east[y, x] = below[x + 1] - above[x + 1]
        for x in range(down.shape[1]):
            ns, ew = south[y, x], east[y, x]
            norm = np.sqrt(ew * ew + ns * ns + 1.0)
            n0, n1, n2 = ew / norm, -ns / norm, 1.0 / norm
            # The sine of the refracted ray is a quarter of that of the ray.
            bend = (np.sqrt(1.0 - (n0 * n0 + n1 * n1) / 16.0) - n2 / 4.0) * lens
            bend = 0.0 if n2 >= 0.999 else bend
            down[y, x] = y + np.rint(n0 * bend * 1000.0) / 1000.0
            right[y, x] = x + np.rint(n1 * bend * 1000.0) / 1000.0


@compiled
def refract(image, down, right, south, east, light, out):
    """Sample the unit `image` (float32, (H, W, 3)) at (`down`, `right`), lit by the slopes, into `out`.

    `light` is the brightness that a slope of 1 adds.
    """
    rows, columns = down.shape
    # If any neighbour is beyond the border, the scripts compute the full image in float64.
    outside = _leave(down, rows - 1) or _leave(right, columns - 1)
    sample = np.empty(3)
    for y in range(rows):
        for x in range(columns):
            at_edge = bilinear(image, down[y, x], right[y, x], sample)
            ns, ew = south[y, x] * light, east[y, x] * light
            for c in range(3):
                narrow = (np.float32(sample[c]) + np.float32(ns)) + np.float32(ew)
                lit = (sample[c] + ns) + ew if at_edge else np.float64(narrow)
                lit = min(max(lit, 0.0), 1.0)
                scaled = lit * 255.0 if outside else np.float64(np.float32(lit) * np.float32(255))
                out[y, x, c] = np.uint8(np.int32(scaled))


@inner
def _leave(places, last):
    """Return True if any of `places` (H, W) is less than 0 or not less than `last`."""
    count = 0
    for y in range(places.shape[0]):
        line = places[y]
        for x in range(line.size):
            count += (line[x] < 0.0) | (line[x] >= last)
    return count > 0


@compiled
def bilinear(image, row, column, out):
    """Sample `image` (float32, (H, W, 3)) at (row, column), into `out` (3).

    Computed in float32 if all four neighbours are inside, as in NumPy 1; a neighbour outside is a float64
    zero and makes sums float64. Return whether there is one.
    """
    height, width = image.shape[0], image.shape[1]
    floor_y, floor_x = np.floor(row), np.floor(column)
    b, c = (1.0 - column) + floor_x, (1.0 - (floor_x + 1.0)) + column
    e, g = (1.0 - row) + floor_y, (1.0 - (floor_y + 1.0)) + row
    top, left = np.int64(floor_y), np.int64(floor_x)
    if top >= 0 and top + 1 < height and left >= 0 and left + 1 < width:
        b32, c32, e32, g32 = np.float32(b), np.float32(c), np.float32(e), np.float32(g)
        # Unsigned places need no check of their sign.
        t, m = np.uint64(top), np.uint64(top + 1)
        f, r = np.uint64(left), np.uint64(left + 1)
        for k in range(3):
            above = image[t, f, k] * b32 + image[t, r, k] * c32
            below = image[m, f, k] * b32 + image[m, r, k] * c32
            out[k] = np.float64(above * e32 + below * g32)
        return False
    upper, lower = 0 <= top < height, 0 <= top + 1 < height
    near, far = 0 <= left < width, 0 <= left + 1 < width
    for k in range(3):
        above = _part_of_row(image, top, left, k, upper, near, far, b, c, e)
        below = _part_of_row(image, top + 1, left, k, lower, near, far, b, c, g)
        out[k] = above + below
    return True


@inner
def _part_of_row(image, row, left, channel, inside, near, far, b, c, share):
    """Return one row's part of a sample with a neighbour outside: float64 from that neighbour on."""
    if not inside:
        return 0.0
    first = image[row, left, channel] * np.float32(b) if near else np.float32(0)
    second = image[row, left + 1, channel] * np.float32(c) if far else np.float32(0)
    if near and far:
        return np.float64((first + second) * np.float32(share))
    return (np.float64(first) + np.float64(second)) * share
