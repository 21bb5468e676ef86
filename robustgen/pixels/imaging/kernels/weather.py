"""Loops of fog, snow, frost and spatter, of turbulence, flares and refraction."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import (
    copy,
    join_channels,
    largest_byte,
    repeat_thrice,
    split_channels,
    truncated,
    widen,
)
from robustgen.pixels.imaging.kernels.exact import angle_of, fill_sines, raise_to, sine_and_cosine

# --- compiled loops of fog, snow, drops, and plasma ------------------------------------------------


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


# --- compiled loops of gradient noise --------------------------------------------------------------


@compiled
def add_turbulence(total, gradients, order, rows, row_parts, columns, column_parts, share):
    """Add one octave of gradient noise, its size times `share`, to `total` (H, W).

    `order` (514) indexes `gradients` (514, 2); `rows` and `columns` are the lattice cells of the lines and
    columns, and the parts are the positions within them.
    """
    first, last = columns.min(), columns.max()
    offsets, slopes = np.empty(last - first + 2), np.empty(last - first + 2)
    nodes, eased = np.empty(columns.size, np.uint64), np.empty(columns.size)
    for x in range(columns.size):
        part = column_parts[x]
        nodes[x], eased[x] = columns[x] - first, part * part * (3.0 - 2.0 * part)
    for y in range(total.shape[0]):
        near = row_parts[y]
        far = near - 1.0
        ease = near * near * (3.0 - 2.0 * near)
        above, below = order[rows[y] & 255], order[(rows[y] + 1) & 255]
        for node in range(offsets.size):
            a = np.uint64(order[np.uint64(above + ((first + node) & 255))])
            b = np.uint64(order[np.uint64(below + ((first + node) & 255))])
            start = near * gradients[a, 0]
            offsets[node] = start + ease * (far * gradients[b, 0] - start)
            slopes[node] = gradients[a, 1] + ease * (gradients[b, 1] - gradients[a, 1])
        line = total[y]
        for x in range(line.size):
            node, part = nodes[x], column_parts[x]
            after = node + np.uint64(1)
            left = offsets[node] + slopes[node] * part
            right = offsets[after] + slopes[after] * (part - 1.0)
            line[x] += abs(1.5 * (left + eased[x] * (right - left))) * share


# --- compiled loops of light flares ----------------------------------------------------------------


@compiled
def flare(centre_row, centre_column, lengths, exponent, out):
    """Write the light of rays of `lengths` around a centre, 0 to 1, to `out` (H, W)."""
    count, width = lengths.size, out.shape[1]
    turn = count / (2.0 * np.pi)
    # The first two are repeated at the end, for the angle of a full turn.
    rays = np.concatenate((lengths, lengths[:2]))
    places, nearness = np.empty(width), np.empty(width)
    for y in range(out.shape[0]):
        dy = y - centre_row
        for x in range(width):
            places[x] = (angle_of(x - centre_column, dy) + np.pi) * turn
        for x in range(width):
            dx = x - centre_column
            nearness[x] = 1.0 / (dx * dx + dy * dy + 0.0001)
        line = out[y]
        for x in range(width):
            ray = np.uint64(np.int64(places[x]))
            part = places[x] - np.float64(np.int64(places[x]))
            length = rays[ray] + part * (rays[ray + np.uint64(1)] - rays[ray])
            nearness[x] *= length * length
            line[x] = 1.0 - (part - 0.5) * (part - 0.5)
        if exponent != 1.0:
            raise_to(nearness, exponent)
        for x in range(width):
            line[x] = min(max(line[x] * nearness[x], 0.0), 1.0)


@compiled
def light_stars(image, centres, lengths, ends, out):
    """Lighten `image` (uint8, (H, 3 W)) by one flare after the other, into `out` (uint8).

    Flare i has its centre (row, column) at centres[i], and the rays lengths[ends[i] : ends[i + 1]].
    """
    values, light = image.astype(np.float32), np.empty((image.shape[0], image.shape[1] // 3))
    shares = np.empty(image.shape[1])
    for i in range(centres.shape[0]):
        flare(centres[i, 0], centres[i, 1], lengths[ends[i] : ends[i + 1]], 1.0, light)
        last = i == centres.shape[0] - 1
        for y in range(values.shape[0]):
            repeat_thrice(light[y], shares)
            line, target = values[y], out[y]
            for m in range(shares.size):
                value = np.float64(line[m])
                shares[m] = value + shares[m] * (255.0 - value)
            if last:
                for m in range(shares.size):
                    target[m] = truncated(shares[m])
            else:
                for m in range(shares.size):
                    line[m] = np.float32(shares[m])


@compiled
def light_up(image, light, out):
    """Write 255 + light * (`image` - 255), with `light` (H, W), to `out` (uint8, (H, 3 W))."""
    shares = np.empty(image.shape[1])
    for y in range(image.shape[0]):
        repeat_thrice(light[y], shares)
        line, target = image[y], out[y]
        for i in range(shares.size):
            target[i] = truncated(255.0 + shares[i] * (line[i] - 255.0))


# --- compiled loops of moving water: light on the ground, and refraction of an image ---------------


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
