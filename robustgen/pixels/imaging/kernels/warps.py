"""Loops that move pixels: affine and perspective maps, displacements, resizing, and cubic splines."""

import numpy as np

from robustgen.pixels.imaging.kernels.blur import pack
from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import beyond, copy, join_channels, truncated
from robustgen.pixels.imaging.kernels.exact import exp, log, sine_cosine
from robustgen.pixels.imaging.kernels.intrinsics import add_weighed, mix_pixels
from robustgen.pixels.imaging.kernels.weather import bilinear

# --- compiled loops that sample images at given places ---------------------------------------------


@compiled
def gather_squares(words, places, pitch, near):
    """Copy the 2 x 2 `words` (flat, lines of `pitch`) at each of `places` to `near` (4, at least N)."""
    below, beside = np.uint64(pitch), np.uint64(1)
    upper, next_upper, lower, next_lower = near[0], near[1], near[2], near[3]
    for x in range(places.size):
        place = np.uint64(places[x])
        upper[x], next_upper[x] = words[place], words[place + beside]
        lower[x], next_lower[x] = words[place + below], words[place + below + beside]


@inner
def is_within(x, y, width, height):
    """Return True if (x, y) is inside the image."""
    return 0.0 <= x < width and 0.0 <= y < height


@compiled
def sample_affine(words, matrix, places, parts, near, lines, out):
    """Sample an image bilinearly at the places that `matrix` maps pixel centres to, into `out` (uint8).

    (x, y) maps to (a x + b y + c, d x + e y + f). Beyond the border, `out` is unchanged. Values are
    truncated, as in Pillow.
    `words` (uint32, (H' + 2, W' + 2)) are the pixels, with the edge repeated. `places` (int32, W), `parts`
    (float64, (6, W)), `near` (uint32, (4, W)) and `lines` (uint8, (3, W)) are buffers.
    """
    a, b, c, d, e, f = matrix
    pitch, flat = words.shape[1], words.reshape(-1)
    height, width = words.shape[0] - 2, pitch - 2
    across, down, xs, ys, part_x, part_y = parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]
    upper_left, upper_right, lower_left, lower_right = near[0], near[1], near[2], near[3]
    for column in range(out.shape[1]):
        across[column], down[column] = a * (column + 0.5), d * (column + 0.5)
    for row in range(out.shape[0]):
        right, below = b * (row + 0.5), e * (row + 0.5)
        for column in range(out.shape[1]):
            xs[column], ys[column] = across[column] + right + c, down[column] + below + f
        first, last = 0, out.shape[1]
        while first < last and not is_within(xs[first], ys[first], width, height):
            first += 1
        while first < last and not is_within(xs[last - 1], ys[last - 1], width, height):
            last -= 1
        # The columns inside, in loops that the compiler vectorises.
        from_x, from_y = xs[first:last], ys[first:last]
        for m in range(from_x.size):
            x, y = from_x[m] - 0.5, from_y[m] - 0.5
            left, top = np.floor(x), np.floor(y)
            part_x[m], part_y[m] = x - left, y - top
            places[m] = (np.int32(top) + 1) * pitch + np.int32(left) + 1
        gather_squares(flat, places[: from_x.size], pitch, near)
        for k in range(3):
            target, shift = lines[k], np.uint32(8 * k)
            for m in range(from_x.size):
                start, end = np.int32(upper_left[m] >> shift & 255), np.int32(lower_left[m] >> shift & 255)
                upper_step = np.int32(upper_right[m] >> shift & 255) - start
                lower_step = np.int32(lower_right[m] >> shift & 255) - end
                upper = start + np.float64(upper_step) * part_x[m]
                lower = end + np.float64(lower_step) * part_x[m]
                target[m] = np.uint8(np.int32(upper + (lower - upper) * part_y[m]))
        join_channels(lines, out[row, first:last])


@inner
def mark_outside(rows, columns, height, width, outside):
    """Set `outside` where neighbours of (rows, columns) are outside the image; return the count."""
    bottom, right = height - 1, width - 1
    for x in range(rows.size):
        outside[x] = (rows[x] < 0) | (rows[x] >= bottom) | (columns[x] < 0) | (columns[x] >= right)
    count = 0
    for x in range(rows.size):
        count += outside[x]
    return count


@inner
def place_corners(top, left, width, corners):
    """Write the flat indices of the four neighbours at (`top`, `left`)."""
    for x in range(top.size):
        corners[0, x] = np.int64(top[x]) * width + np.int64(left[x])
    for x in range(top.size):
        corners[1, x] = corners[0, x] + 1
    for x in range(top.size):
        corners[2, x] = corners[0, x] + width
    for x in range(top.size):
        corners[3, x] = corners[2, x] + 1


@inner
def find_corners(place, size, mirrored, x, corners):
    """Write the flat indices of the four neighbours of one place, repeated or `mirrored` at the border."""
    top, bottom = (
        size[1] * beyond(place[0], size[0], mirrored),
        size[1] * beyond(place[0] + 1, size[0], mirrored),
    )
    left, right = beyond(place[1], size[1], mirrored), beyond(place[1] + 1, size[1], mirrored)
    corners[0, x], corners[1, x] = top + left, top + right
    corners[2, x], corners[3, x] = bottom + left, bottom + right


@inner
def gather(pixels, corners, near):
    """Copy the `pixels`, each one word, at `corners` (4, W) to `near` (4, W)."""
    for corner in range(4):
        place, target = corners[corner], near[corner]
        for x in range(place.size):
            target[x] = pixels[np.uint64(place[x])]


@compiled
def warp_affine(image, matrix, out):
    """Sample `image` (uint8, (H, W, 3)) / 255 bilinearly at the places that `matrix` maps to, into `out`.

    (x, y) maps to (a x + b y + c, d x + e y + f), rounded to 1/32 of a pixel; borders are mirrored about
    the edge pixels. `out` is float32 (H, W, 4), whose fourth values are not written. Equals warpAffine of
    OpenCV 3 and 4 for a float32 image.
    """
    height, width, _ = image.shape
    a, b, c, d, e, f = matrix
    one, steps, most = np.float32(1), np.float32(32), np.float32(255)
    pixels = np.empty(height * width, np.uint32)
    pack(image.reshape(-1, 3), pixels)
    across, down = np.empty(width, np.int64), np.empty(width, np.int64)
    for x in range(width):
        across[x], down[x] = np.int64(np.rint(a * x * 1024)), np.int64(np.rint(d * x * 1024))
    # Per line: positions, then neighbours, then sums, in loops that the compiler vectorises.
    top, left, corners = np.empty(width, np.int64), np.empty(width, np.int64), np.empty((4, width), np.int64)
    part_x, part_y, outside = (
        np.empty(width, np.float32),
        np.empty(width, np.float32),
        np.empty(width, np.uint8),
    )
    near, line = np.empty((4, width), np.uint32), np.empty((3, width), np.float32)
    for y in range(height):
        from_x, from_y = (
            np.int64(np.rint((b * y + c) * 1024)) + 16,
            np.int64(np.rint((e * y + f) * 1024)) + 16,
        )
        for x in range(width):
            left[x] = (from_x + across[x]) >> 5
            part_x[x] = np.float32(left[x] & 31) / steps
            left[x] >>= 5
        for x in range(width):
            top[x] = (from_y + down[x]) >> 5
            part_y[x] = np.float32(top[x] & 31) / steps
            top[x] >>= 5
        place_corners(top, left, width, corners)
        if mark_outside(top, left, height, width, outside):
            for x in range(width):
                if outside[x]:
                    find_corners((top[x], left[x]), (height, width), True, x, corners)
        gather(pixels, corners, near)
        upper, next_upper, lower, next_lower = near[0], near[1], near[2], near[3]
        for k in range(3):
            target, shift = line[k], np.uint32(8 * k)
            for x in range(width):
                px, py = part_x[x], part_y[x]
                target[x] = (
                    np.float32((upper[x] >> shift) & np.uint32(255)) / most * ((one - py) * (one - px))
                    + np.float32((next_upper[x] >> shift) & np.uint32(255)) / most * ((one - py) * px)
                    + np.float32((lower[x] >> shift) & np.uint32(255)) / most * (py * (one - px))
                    + np.float32((next_lower[x] >> shift) & np.uint32(255)) / most * (py * px)
                )
        red, green, blue, target = line[0], line[1], line[2], out[y]
        for x in range(width):
            target[x, 0], target[x, 1], target[x, 2], target[x, 3] = red[x], green[x], blue[x], 0


@compiled
def warp_perspective(words, matrix, places, near, lines, out):
    """Sample an image bilinearly at the places that `matrix` (9) maps to, into `out` (uint8).

    (x, y) maps to the first two of `matrix` (x, y, 1), divided by the third, rounded to 1/32 of a pixel;
    the outside is black. Equals warpPerspective of OpenCV 3 and 4, whose blocks determine the rounding.
    `words` (uint32, (H + 4, W + 4)) are the pixels, with two black ones around. `places` (int32, (3, W)),
    `near` (uint32, (4, W)) and `lines` (uint8, (3, W)) are buffers.
    """
    height, width, _ = out.shape
    a, b, c, d, e, f, g, h, i = matrix
    pitch, flat = words.shape[1], words.reshape(-1)
    columns = min(1024 // min(16, height), width)
    # From these places on, all neighbours are black.
    least, last_x, last_y, whole = -64.0, 32.0 * width, 32.0 * height, np.uint32(32)
    at_x, at_y, corners = places[0], places[1], places[2]
    upper_left, upper_right, lower_left, lower_right = near[0], near[1], near[2], near[3]
    for y in range(height):
        # 1. The places of this row, in 1/32 of a pixel; OpenCV begins anew in each block of columns.
        for start in range(0, width, columns):
            from_x, from_y, from_w = a * start + b * y + c, d * start + e * y + f, g * start + h * y + i
            for x in range(start, min(start + columns, width)):
                w = from_w + g * (x - start)
                w = 32.0 / w if w != 0.0 else 0.0
                at_x[x] = np.int32(np.rint(min(max((from_x + a * (x - start)) * w, least), last_x)))
                at_y[x] = np.int32(np.rint(min(max((from_y + d * (x - start)) * w, least), last_y)))
        # 2. The four neighbours of each place.
        for x in range(width):
            corners[x] = ((at_y[x] >> 5) + 2) * pitch + (at_x[x] >> 5) + 2
        gather_squares(flat, corners, pitch, near)
        # 3. Their mean in each channel, weighted by the distances and rounded.
        for k in range(3):
            target, shift = lines[k], np.uint32(8 * k)
            for x in range(width):
                part_x, part_y = np.uint32(at_x[x] & 31), np.uint32(at_y[x] & 31)
                rest_x, rest_y = whole - part_x, whole - part_y
                upper = rest_x * (upper_left[x] >> shift & 255) + part_x * (upper_right[x] >> shift & 255)
                lower = rest_x * (lower_left[x] >> shift & 255) + part_x * (lower_right[x] >> shift & 255)
                target[x] = np.uint8((rest_y * upper + part_y * lower + 512) >> 10)
        join_channels(lines, out[y])


@inner
def folded(place, size):
    """Return `place` reflected into a line of `size` samples like SciPy before 1.6: -0.3 becomes -0.7."""
    if place < 0:
        if place < -2 * size:
            place += 2 * size * np.trunc(-place / (2 * size))
        return place + 2 * size if place < -size else -place - 1
    if place > size - 1:
        place -= 2 * size * np.trunc(place / (2 * size))
        if place >= size:
            return 2 * size - place - 1
    return place


@compiled
def displace(image, dx, dy, mended, out):
    """Sample unit `image` (float32, (H, W, 4)) bilinearly at (row + dy, column + dx), into `out` (uint8).

    The fourth value of each pixel is unused. Samples are summed in double and rounded to single precision,
    clipped to [0, 1] and truncated. Borders are those of SciPy before 1.6: places are folded, and their
    neighbours are mirrored about the edge pixels. If `mended`, they are those of later releases.
    """
    zero, one, most = np.float32(0), np.float32(1), np.float32(255)
    height, width, _ = image.shape
    pixels, line, levels = image.reshape(-1), np.empty(4 * width, np.float32), np.empty(4 * width, np.uint8)
    rows, columns, corners = np.empty(width), np.empty(width), np.empty((4, width), np.int64)
    top, left, outside = np.empty(width), np.empty(width), np.empty(width, np.uint8)
    for y in range(height):
        for x in range(width):
            rows[x] = y + np.float64(dy[y, x])
            top[x] = np.floor(rows[x])
        for x in range(width):
            columns[x] = x + np.float64(dx[y, x])
            left[x] = np.floor(columns[x])
        place_corners(top, left, width, corners)
        if mark_outside(rows, columns, height, width, outside):
            for x in range(width):
                if outside[x]:
                    rows[x], columns[x] = folded(rows[x], height), folded(columns[x], width)
                    top[x], left[x] = np.floor(rows[x]), np.floor(columns[x])
                    here, size = (np.int64(top[x]), np.int64(left[x])), (height, width)
                    find_corners(here, size, not mended, x, corners)
        for x in range(width):
            part_y, part_x = rows[x] - top[x], columns[x] - left[x]
            rest_y, rest_x = 1.0 - part_y, 1.0 - part_x
            places = 4 * corners[0, x], 4 * corners[1, x], 4 * corners[2, x], 4 * corners[3, x]
            weights = rest_y * rest_x, rest_y * part_x, part_y * rest_x, part_y * part_x
            mix_pixels(pixels, places, weights, line, 4 * x)
        for m in range(line.size):
            levels[m] = np.uint8(np.int32(min(max(line[m], zero), one) * most))
        target = out[y]
        for x in range(width):
            target[x, 0], target[x, 1], target[x, 2] = levels[4 * x], levels[4 * x + 1], levels[4 * x + 2]


# --- compiled loops that move pixels: twirls and ripples -------------------------------------------


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


# --- cubic splines: rotation and enlargement of images ---------------------------------------------

# Pole of the recursive filter for coefficients of cubic B-splines.
POLE = -0.2679491924311228
_GAIN = (1.0 - POLE) * (1.0 - 1.0 / POLE)


@compiled
def fit_spline(image, down, across, spline):
    """Write the B-spline coefficients of `image` (float32, (H, W, 3)) into `spline` (H + 3, W + 3, 4).

    `down` (H) and `across` (W) are powers of `POLE` from 0 on. Borders are mirrored about the edge pixels,
    by one sample before and two after.
    """
    height, width = down.size, across.size
    lines = np.empty((height, 3 * width))
    for y in range(height):
        source, line = image[y].reshape(-1), lines[y]
        for m in range(line.size):
            line[m] = source[m] * _GAIN
    _filter_rows(lines, down)
    for y in range(height):
        line = lines[y]
        for m in range(line.size):
            line[m] *= _GAIN
        _filter_row(line, across)
    for y in range(height + 3):
        line, target = lines[beyond(y - 1, height, True)], spline[y]
        for x in range(width + 3):
            index = 3 * beyond(x - 1, width, True)
            target[x, 0], target[x, 1], target[x, 2] = line[index], line[index + 1], line[index + 2]


@inner
def _filter_rows(lines, powers):
    """Filter along axis 0 of `lines` (N, M), in place, forwards and backwards."""
    last = powers.size - 1
    edge = powers[last]
    first, end = lines[0], lines[last]
    for m in range(first.size):
        first[m] = first[m] + edge * end[m]
    for i in range(1, last):
        line, opposite, power = lines[i], lines[last - i], powers[i]
        for m in range(first.size):
            first[m] += power * (line[m] + edge * opposite[m])
    for m in range(first.size):
        first[m] /= 1.0 - edge * edge
    for i in range(1, last + 1):
        before, line = lines[i - 1], lines[i]
        for m in range(first.size):
            line[m] += POLE * before[m]
    before = lines[last - 1]
    for m in range(first.size):
        end[m] = (POLE * before[m] + end[m]) * POLE / (POLE * POLE - 1.0)
    for i in range(last - 1, -1, -1):
        after, line = lines[i + 1], lines[i]
        for m in range(first.size):
            line[m] = POLE * (after[m] - line[m])


@inner
def _filter_row(line, powers):
    """Filter one line of pixels with three values, (3 W), in place, like `_filter_rows`."""
    last = powers.size - 1
    edge = powers[last]
    for c in range(3):
        first = line[c] + edge * line[3 * last + c]
        for i in range(1, last):
            first += powers[i] * (line[3 * i + c] + edge * line[3 * (last - i) + c])
        line[c] = first / (1.0 - edge * edge)
    # Channels are interleaved, because each sum waits for the one before.
    for m in range(3, line.size):
        line[m] += POLE * line[m - 3]
    for m in range(3 * last, line.size):
        line[m] = (POLE * line[m - 3] + line[m]) * POLE / (POLE * POLE - 1.0)
    for m in range(3 * last - 1, -1, -1):
        line[m] = POLE * (line[m + 3] - line[m])


@compiled
def spline_weights(part):
    """Return the four weights of a cubic B-spline at fraction `part` between its middle samples."""
    rest = 1.0 - part
    first = rest * rest * rest / 6.0
    second = (part * part * (part - 2.0) * 3.0 + 4.0) / 6.0
    third = (rest * rest * (rest - 2.0) * 3.0 + 4.0) / 6.0
    return first, second, third, 1.0 - first - second - third


@inner
def add_turned(spline, cosine_of, sine_of, weight, total):
    """Add `weight` times the image, rotated like ``scipy.ndimage.rotate``, to `total` (float32).

    `spline` (H + 3, W + 3, 4) are the B-spline coefficients, mirrored by one before and two after; the
    fourth of each pixel is unused, also in `total` (H, W, 4).
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
    """Write the mean of an image rotated by `turns` (N, 3), cosine, sine and weight, to `out` (uint8).

    `spline` is as in `add_turned`; `whole` is the sum of the weights. Precision is single.
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
    """Write the `spline_weights` of each of `places` (N) to `weights` (4, N)."""
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    for x in range(places.size):
        w0[x], w1[x], w2[x], w3[x] = spline_weights(places[x] - np.floor(places[x]))


@compiled
def zoom_channel(image, channel, tops, row_weights, lefts, column_weights, out):
    """Write the weighted sum of 4 x 4 values of `channel` of `image` (uint8), rounded half up, to `out`.

    `tops` (4, H) and `lefts` (4, W) are their rows and columns.
    """
    width, first, last = out.shape[1], tops.min(), tops.max()
    # Each line is gathered for the four columns once, for all places that use it.
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
