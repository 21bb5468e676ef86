"""The compiled loops of ImageNet-C-bar and CIFAR-10-C-bar.

Everything per pixel stands in loops without branches over a line, so that the compiler takes many pixels at
once; what has to be looked up stands in loops of its own.
"""

import numpy as np

from robustgen.imaging.kernels.compiler import compiled, inner
from robustgen.imaging.kernels.elementary import angle_of, cosine, raise_to, sine, sine_and_cosine
from robustgen.imaging.kernels.elementwise import repeat_thrice
from robustgen.imaging.kernels.intrinsics import add_weighed


@compiled
def truncated(value):
    """`value` clipped to [0, 255] and truncated."""
    return np.uint8(np.int32(min(max(value, 0.0), 255.0)))


# --- fields added to an image --------------------------------------------------------------------


@compiled
def add_field(image, field, amount, out):
    """`image` (uint8, (H, 3 W)) plus `amount` times `field` (H, W), the same in all channels, into `out`."""
    added = np.empty(image.shape[1])
    for y in range(image.shape[0]):
        repeat_thrice(field[y], added)
        values, target = image[y], out[y]
        for i in range(added.size):
            target[i] = truncated(values[i] + amount * added[i])


@compiled
def add_fields(image, fields, amount, out):
    """Each channel of `image` (uint8, (N, 3)) plus `amount` times its own of `fields` (3, N), into `out`."""
    red, green, blue = fields[0], fields[1], fields[2]
    for i in range(red.size):
        out[i, 0] = truncated(image[i, 0] + amount * red[i])
        out[i, 1] = truncated(image[i, 1] + amount * green[i])
        out[i, 2] = truncated(image[i, 2] + amount * blue[i])


@compiled
def cut_below(image, field, threshold, out):
    """`image` (uint8, (N, 3)) where `field` (N) exceeds `threshold`, else black, into `out`."""
    for i in range(field.size):
        keep = field[i] > threshold
        for c in range(3):
            out[i, c] = image[i, c] if keep else np.uint8(0)


@compiled
def plane_wave(along_x, along_y, phase, out):
    """sin(x `along_x` + y `along_y` + `phase`) of each place (y, x), into `out` (H, W)."""
    for y in range(out.shape[0]):
        line, rise = out[y], y * along_y
        for x in range(line.size):
            line[x] = sine(x * along_x + rise + phase)


@compiled
def ring_wave(centre_x, centre_y, frequency, amplitude, width, out):
    """Rings around a centre, `width` apart and bent by a sine, into `out` (H, W): -1/2 to 1/2."""
    for y in range(out.shape[0]):
        line, dy = out[y], y - centre_y
        for x in range(line.size):
            dx = x - centre_x
            bend = sine(angle_of(dx, dy) * frequency) * amplitude
            way = np.sqrt(dx * dx + dy * dy) + bend
            # Python's remainder, which has the sign of the divisor.
            rest = way - np.floor(way / width) * width
            line[x] = rest / width - 0.5


@compiled
def plasma_waves(image, time, rounds, sharpness, scale, amount, out):
    """Blend `image` (uint8, (H, W, 3)) with colours that `rounds` of waves stir, into `out`.

    `time` is the phase of all waves, `sharpness` how little the finer ones fade, `scale` the size in pixels.
    """
    width = image.shape[1]
    across, down, first, second = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    blue, green, red = np.empty(width), np.empty(width), np.empty(width)
    rest = 1.0 - amount / 255.0
    for y in range(image.shape[0]):
        for x in range(width):
            across[x], down[x] = x / scale, y / scale
        fine, slow, fade = 1.0, 1.0, 1.0
        for _ in range(rounds):
            shift = time / slow
            for x in range(width):
                first[x] = cosine(down[x] * fine + shift) / fade
            for x in range(width):
                second[x] = sine(across[x] * fine + shift) / fade
            for x in range(width):
                across[x] += first[x] - 0.3 * second[x]
                down[x] += second[x] + 0.3 * first[x]
            fine, slow, fade = fine * 1.93, slow * 1.15, (2.25 - sharpness) * fade
        middle = sine(time)
        for x in range(width):
            red[x] = sine(across[x] - time)
        for x in range(width):
            green[x] = sine((across[x] + down[x] + middle) / 2)
        for x in range(width):
            blue[x] = sine(down[x] + time)
        for x in range(width):
            out[y, x, 0] = truncated(rest * image[y, x, 0] + amount * red[x])
            out[y, x, 1] = truncated(rest * image[y, x, 1] + amount * green[x])
            out[y, x, 2] = truncated(rest * image[y, x, 2] + amount * blue[x])


# --- gradient noise ------------------------------------------------------------------------------


@compiled
def add_turbulence(total, gradients, order, rows, row_parts, columns, column_parts, share):
    """Add one octave of gradient noise, its size times `share`, to `total` (H, W).

    `gradients` (514, 2) are found through `order` (514); `rows` and `columns` are the lattice cells of the
    lines and columns, and the parts how far within them.
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


@compiled
def mix_turbulence(image, turbulence, alpha, out):
    """Mix `image` (uint8, (H, 3 W)) with clip(turbulence / 2 + 1/2), 255 times `alpha`, into `out`."""
    rest, light = np.float32(1.0 - alpha), 255.0 * alpha
    clouds, added = np.empty(turbulence.shape[1]), np.empty(image.shape[1])
    for y in range(image.shape[0]):
        line, values, target = turbulence[y], image[y], out[y]
        for x in range(line.size):
            t = min(max(0.5 * line[x] + 0.5, 0.0), 1.0) * light
            # One gradient in 65536 has no direction, which is 0/0 in the scripts: black.
            clouds[x] = -np.inf if line[x] != line[x] else t
        repeat_thrice(clouds, added)
        for i in range(added.size):
            target[i] = truncated(np.float64(np.float32(values[i]) * rest) + added[i])


# --- spectral noise ------------------------------------------------------------------------------


@inner
def fill_sines(angles, sines, cosines):
    """Sines and cosines of `angles`, all flat."""
    for x in range(angles.size):
        sines[x], cosines[x] = sine_and_cosine(angles[x])


@inner
def mirror_phases(left, upper, phases):
    """Write `phases` (H, W): `left` (H, W // 2), and beside it the same turned by 180 degrees.

    Where W is odd, a middle column goes between them: `upper` (H // 2), a 0 if H is odd, and `upper` turned.
    """
    height, width = phases.shape
    for y in range(height):
        line, source, turned = phases[y], left[y], left[height - 1 - y]
        for x in range(source.size):
            line[x], line[width - 1 - x] = source[x], turned[x]
        if width % 2:
            line[width // 2] = 0.0
    for y in range(upper.size):
        phases[y, width // 2], phases[height - 1 - y, width // 2] = upper[y], upper[y]


@compiled
def half_spectrum(left, upper, power, out):
    """The half spectrum `out` (H, W // 2 + 1) of the real part of a noise.

    The phases, `left` and `upper` as `mirror_phases` takes them, and `power` (H, W) belong to the frequency
    that stands H // 2 and W // 2 further on.
    """
    phases = np.empty(power.shape)
    mirror_phases(left, upper, phases)
    height, width = power.shape
    columns, mirrored = np.empty(out.shape[1], np.uint64), np.empty(out.shape[1], np.uint64)
    for x in range(out.shape[1]):
        columns[x] = (x - width // 2) % width
        mirrored[x] = ((width - x) % width - width // 2) % width
    c, s, opposite_c, opposite_s = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    # Two lines of opposite frequencies come of the same two lines.
    for y in range(height // 2 + 1):
        opposite = (height - y) % height
        there, back = (y - height // 2) % height, (opposite - height // 2) % height
        fill_sines(phases[there], s, c)
        fill_sines(phases[back], opposite_s, opposite_c)
        here, other = power[there], power[back]
        _spectrum_line(columns, mirrored, here, c, s, other, opposite_c, opposite_s, out[y])
        _spectrum_line(columns, mirrored, other, opposite_c, opposite_s, here, c, s, out[opposite])


@inner
def _spectrum_line(columns, mirrored, power, c, s, opposite, opposite_c, opposite_s, out):
    """Half the sum of each frequency and the conjugate of its opposite one."""
    for x in range(out.size):
        i, j = columns[x], mirrored[x]
        real = power[i] * c[i] + opposite[j] * opposite_c[j]
        imaginary = power[i] * s[i] - opposite[j] * opposite_s[j]
        out[x] = complex(0.5 * real, 0.5 * imaginary)


# --- flares --------------------------------------------------------------------------------------


@compiled
def flare(centre_row, centre_column, lengths, exponent, out):
    """Light of the rays of `lengths` around a centre, 0 to 1, into `out` (H, W)."""
    count, width = lengths.size, out.shape[1]
    turn = count / (2.0 * np.pi)
    # The first two once more at the end, for the angle of a whole turn.
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
    """Move `image` (uint8, (H, 3 W)) towards 255 by one flare after the other, into `out` (uint8).

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
    """White away from the `light` (H, W): 255 + light * (`image` - 255), into `out` (uint8, (H, 3 W))."""
    shares = np.empty(image.shape[1])
    for y in range(image.shape[0]):
        repeat_thrice(light[y], shares)
        line, target = image[y], out[y]
        for i in range(shares.size):
            target[i] = truncated(255.0 + shares[i] * (line[i] - 255.0))


# --- refraction ----------------------------------------------------------------------------------


@compiled
def caustics(time, size, out):
    """Light on the ground of moving water, 0 to 1, into `out` (H, W); a wave repeats after `size` pixels."""
    width = out.shape[1]
    across, total = np.empty(width), np.empty(width)
    # Sines and cosines of both coordinates, from which follow those of their sums with a time.
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
            # What the places are moved by: sums and differences of the products.
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
    """Where each pixel is seen through water of `height`, and how its surface leans.

    `height` (H + 2, W + 2) has a border of zeros; the others are (H, W). A ray is displaced by a share of
    `lens` pixels.
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

    `light` is how much a slope of 1 adds.
    """
    rows, columns = down.shape
    # One neighbour beyond the border anywhere makes the scripts' whole image float64.
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
    """Whether any of `places` (H, W) lies before 0 or not before `last`."""
    count = 0
    for y in range(places.shape[0]):
        line = places[y]
        for x in range(line.size):
            count += (line[x] < 0.0) | (line[x] >= last)
    return count > 0


@compiled
def bilinear(image, row, column, out):
    """Sample `image` (float32, (H, W, 3)) at (row, column), into `out` (3).

    In float32 where all four neighbours lie inside, as NumPy 1 did; a neighbour outside is a float64 zero,
    and what it enters is float64. Gives whether there is one.
    """
    height, width = image.shape[0], image.shape[1]
    floor_y, floor_x = np.floor(row), np.floor(column)
    b, c = (1.0 - column) + floor_x, (1.0 - (floor_x + 1.0)) + column
    e, g = (1.0 - row) + floor_y, (1.0 - (floor_y + 1.0)) + row
    top, left = np.int64(floor_y), np.int64(floor_x)
    if top >= 0 and top + 1 < height and left >= 0 and left + 1 < width:
        b32, c32, e32, g32 = np.float32(b), np.float32(c), np.float32(e), np.float32(g)
        # Unsigned places need no look at their sign.
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
    """What one row adds to a sample with a neighbour outside: float64 from the first such neighbour on."""
    if not inside:
        return 0.0
    first = image[row, left, channel] * np.float32(b) if near else np.float32(0)
    second = image[row, left + 1, channel] * np.float32(c) if far else np.float32(0)
    if near and far:
        return np.float64((first + second) * np.float32(share))
    return (np.float64(first) + np.float64(second)) * share


# --- cutouts and lines ---------------------------------------------------------------------------


@compiled
def cut_out(image, along, across, cell, grid, out):
    """Grey every second of the squares of side `cell` that `grid` (K, K) names.

    `along` and `across` are the cosine and the sine of the turn; `image` and `out` are uint8 (H, W, 3).
    """
    size = grid.shape[0]
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            u = (along * y + across * x) / cell
            v = (-across * y + along * x) / cell
            same = np.int64(u - 2.0 * np.floor(u / 2.0)) == np.int64(v - 2.0 * np.floor(v / 2.0))
            # Truncated towards zero, and negative places counted from the end, as NumPy does.
            i, j = np.int64(u), np.int64(v)
            hit = same and grid[i if i >= 0 else i + size, j if j >= 0 else j + size]
            for c in range(3):
                out[y, x, c] = np.uint8(128) if hit else image[y, x, c]


@inner
def line_points(start_row, start_column, end_row, end_column, points, distances):
    """The points of an antialiased line and their distances from it; gives how many there are.

    Bresenham's line as Zingl draws it: `points` (N, 2) holds rows and columns.
    """
    width, rise = abs(start_column - end_column), abs(start_row - end_row)
    error = width - rise
    step = 1 if start_column < end_column else -1
    climb = 1 if start_row < end_row else -1
    span = np.float32(np.sqrt(np.float64(width * width + rise * rise)))
    length = 1.0 if width + rise == 0 else np.float64(span)
    column, row, count = start_column, start_row, 0
    while True:
        points[count, 0], points[count, 1] = row, column
        distances[count] = abs(error - width + rise) / length
        count += 1
        before, at = error, column
        if 2 * before >= -width:
            if column == end_column:
                return count
            if before + rise < length:
                points[count, 0], points[count, 1] = row + climb, column
                distances[count] = abs(before + rise) / length
                count += 1
            error -= rise
            column += step
        if 2 * before <= rise:
            if row == end_row:
                return count
            if width - before < length:
                points[count, 0], points[count, 1] = row, at + step
                distances[count] = abs(width - before) / length
                count += 1
            error += width
            row += climb


@compiled
def draw_lines(ends, out):
    """Draw grey antialiased lines onto `out` (uint8, (H, W, 3)); a row of `ends` is two (row, column)."""
    height, width = out.shape[0], out.shape[1]
    for n in range(ends.shape[0]):
        reach = abs(ends[n, 0] - ends[n, 2]) + abs(ends[n, 1] - ends[n, 3]) + 1
        points, distances = np.empty((3 * reach, 2), np.int64), np.empty(3 * reach)
        count = line_points(ends[n, 0], ends[n, 1], ends[n, 2], ends[n, 3], points, distances)
        colours = np.empty((count, 3), np.uint8)
        # All are read before any is written; a point that occurs twice keeps what comes last.
        for i in range(count):
            y, x = points[i, 0], points[i, 1]
            if 0 <= y < height and 0 <= x < width:
                cover = 1.0 - distances[i]
                for c in range(3):
                    colours[i, c] = np.uint8(np.int32((1.0 - cover) * out[y, x, c] + 128.0 * cover))
        for i in range(count):
            y, x = points[i, 0], points[i, 1]
            if 0 <= y < height and 0 <= x < width:
                out[y, x] = colours[i]


# --- displacements -------------------------------------------------------------------------------


@compiled
def twirl_offsets(side, angle, amount, pixels, offsets):
    """Where the pixels of a cell are taken from, pinched and twirled about its centre; gives how many move.

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
            t = np.sin(np.pi * 0.5 * part) ** (-amount)
            turn = angle * (1.0 - part) * (1.0 - part)
            dy, dx = dy * t, dx * t
            pixels[count, 0], pixels[count, 1] = y, x
            offsets[count, 0] = dy * np.cos(turn) - dx * np.sin(turn)
            offsets[count, 1] = dy * np.sin(turn) + dx * np.cos(turn)
            count += 1
    return count


@compiled
def twirl(values, side, backwards, pixels, forward, backward):
    """Pinch and twirl the square cells of `values` (float32, (H, W, 3)), one after the other, in place.

    Their `pixels` (N, 2) are taken from the offsets `backward` (N, 2) where `backwards` (columns, rows) is 1,
    else from those of `forward`.
    """
    radius, sample, moved = side // 2, np.empty(3), np.empty((pixels.shape[0], 3), np.float32)
    for column in range(backwards.shape[0]):
        for row in range(backwards.shape[1]):
            top, left = row * side, column * side
            offsets = backward if backwards[column, row] else forward
            # All are read before any is written.
            for i in range(pixels.shape[0]):
                y, x = top + radius + offsets[i, 0], left + radius + offsets[i, 1]
                bilinear(values, y, x, sample)
                moved[i, 0], moved[i, 1], moved[i, 2] = sample[0], sample[1], sample[2]
            for i in range(pixels.shape[0]):
                y, x = top + pixels[i, 0], left + pixels[i, 1]
                values[y, x, 0], values[y, x, 1], values[y, x, 2] = moved[i, 0], moved[i, 1], moved[i, 2]


@compiled
def sample_places(image, rows, columns, out):
    """Bilinear samples of `image` (uint8, (H, W, 3)) at `rows` (H) and `columns` (W), in float64, into `out`.

    Black beyond the border.
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
    """Both neighbours of each of `places` on a line as long, and their weights: 0 beyond its ends."""
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


# --- cubic splines -------------------------------------------------------------------------------


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
