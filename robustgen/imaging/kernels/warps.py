"""Images sampled at other places."""

import numpy as np

from robustgen.imaging.kernels.compiler import compiled, inner
from robustgen.imaging.kernels.glass import pack


@compiled
def sample_affine(image, matrix, out):
    """Bilinear samples of `image` (H, W, 3), where `matrix` takes the centre of each pixel, into `out`.

    (x, y) goes to (a x + b y + c, d x + e y + f). Black beyond the border, truncated: Pillow's arithmetic.
    """
    height, width, _ = image.shape
    a, b, c, d, e, f = matrix
    flat = image.reshape(-1)
    line_size = 3 * out.shape[1]
    # Gathered first, so that the arithmetic runs over whole lines at once.
    upper_left, upper_right = np.empty(line_size, np.uint8), np.empty(line_size, np.uint8)
    lower_left, lower_right = np.empty(line_size, np.uint8), np.empty(line_size, np.uint8)
    across, down = np.zeros(line_size), np.zeros(line_size)
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            x = a * (column + 0.5) + b * (row + 0.5) + c
            y = d * (column + 0.5) + e * (row + 0.5) + f
            to = 3 * column
            if not (0.0 <= x < width and 0.0 <= y < height):
                for k in range(to, to + 3):
                    upper_left[k], upper_right[k], lower_left[k], lower_right[k] = 0, 0, 0, 0
                continue
            left, top = np.int64(np.floor(x - 0.5)), np.int64(np.floor(y - 0.5))
            part_x, part_y = x - 0.5 - left, y - 0.5 - top
            first, second = max(3 * left, 0), min(3 * left + 3, 3 * width - 3)
            above, below = 3 * width * max(top, 0), 3 * width * min(top + 1, height - 1)
            for k in range(3):
                upper_left[to + k] = flat[np.uint64(above + first + k)]
                upper_right[to + k] = flat[np.uint64(above + second + k)]
                lower_left[to + k] = flat[np.uint64(below + first + k)]
                lower_right[to + k] = flat[np.uint64(below + second + k)]
                across[to + k], down[to + k] = part_x, part_y
        target = out[row].reshape(-1)
        for m in range(line_size):
            start, end = np.int32(upper_left[m]), np.int32(lower_left[m])
            upper = start + np.float64(np.int32(upper_right[m]) - start) * across[m]
            lower = end + np.float64(np.int32(lower_right[m]) - end) * across[m]
            target[m] = np.uint8(np.int32(upper + (lower - upper) * down[m]))


@compiled
def mirrored(index, size):
    """`index` folded back into 0 .. size - 1 about the edge samples (d c b | a b c d | c b a)."""
    if 0 <= index < size:
        return index
    index = abs(index) % (2 * size - 2)
    return index if index < size else 2 * size - 2 - index


@inner
def mark_outside(rows, columns, height, width, outside):
    """Set `outside` where the neighbours of (rows, columns) are not all in the image; returns how many."""
    bottom, right = height - 1, width - 1
    for x in range(rows.size):
        outside[x] = (rows[x] < 0) | (rows[x] >= bottom) | (columns[x] < 0) | (columns[x] >= right)
    count = 0
    for x in range(rows.size):
        count += outside[x]
    return count


@inner
def place_corners(top, left, width, corners):
    """Write which pixels, counted flat, the four neighbours from (`top`, `left`) are."""
    for x in range(top.size):
        corners[0, x] = np.int64(top[x]) * width + np.int64(left[x])
    for x in range(top.size):
        corners[1, x] = corners[0, x] + 1
    for x in range(top.size):
        corners[2, x] = corners[0, x] + width
    for x in range(top.size):
        corners[3, x] = corners[2, x] + 1


@inner
def mirror_corners(top, left, height, width, x, corners):
    """Write which pixels the four neighbours of one place are, mirrored about the edge pixels."""
    top, bottom = width * mirrored(top, height), width * mirrored(top + 1, height)
    left, right = mirrored(left, width), mirrored(left + 1, width)
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
    """Bilinear samples of `image` (uint8, (H, W, 3)) / 255 where `matrix` takes each pixel, into `out`.

    (x, y) goes to (a x + b y + c, d x + e y + f), rounded to 1/32 of a pixel; borders are mirrored about the
    edge pixels. `out` is float32 (H, W, 4), of which the fourth is left alone. This is OpenCV 3's and 4's
    warpAffine of a float32 image.
    """
    height, width, _ = image.shape
    a, b, c, d, e, f = matrix
    one, steps, most = np.float32(1), np.float32(32), np.float32(255)
    pixels = np.empty(height * width, np.uint32)
    pack(image.reshape(-1, 3), pixels)
    across, down = np.empty(width, np.int64), np.empty(width, np.int64)
    for x in range(width):
        across[x], down[x] = np.int64(np.rint(a * x * 1024)), np.int64(np.rint(d * x * 1024))
    # Whole lines at once: positions, then neighbours, then sums, each of which the compiler vectorises.
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
                    mirror_corners(top[x], left[x], height, width, x, corners)
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
def warp_perspective(image, matrix, out):
    """Bilinear samples of `image` (uint8, (H, W, 3)) where `matrix` (9) takes each pixel, into `out`.

    (x, y) goes to the first two of `matrix` (x, y, 1), divided by the third, rounded to 1/32 of a pixel;
    black beyond the border. This is OpenCV 3's and 4's warpPerspective, whose blocks decide the rounding.
    """
    height, width, _ = image.shape
    a, b, c, d, e, f, g, h, i = matrix
    rows = min(16, height)
    columns = min(1024 // rows, width)
    least, most = -2147483648.0, 2147483647.0
    for y in range(height):
        for start in range(0, width, columns):
            from_x, from_y, from_w = a * start + b * y + c, d * start + e * y + f, g * start + h * y + i
            for x in range(start, min(start + columns, width)):
                w = from_w + g * (x - start)
                w = 32.0 / w if w != 0.0 else 0.0
                at_x = np.int64(np.rint(min(max((from_x + a * (x - start)) * w, least), most)))
                at_y = np.int64(np.rint(min(max((from_y + d * (x - start)) * w, least), most)))
                left, top, part_x, part_y = at_x >> 5, at_y >> 5, at_x & 31, at_y & 31
                weight_a, weight_b = (32 - part_y) * (32 - part_x) * 32, (32 - part_y) * part_x * 32
                weight_c, weight_d = part_y * (32 - part_x) * 32, part_y * part_x * 32
                for k in range(3):
                    total = np.int64(16384)
                    if 0 <= top < height:
                        if 0 <= left < width:
                            total += weight_a * image[top, left, k]
                        if -1 <= left < width - 1:
                            total += weight_b * image[top, left + 1, k]
                    if -1 <= top < height - 1:
                        if 0 <= left < width:
                            total += weight_c * image[top + 1, left, k]
                        if -1 <= left < width - 1:
                            total += weight_d * image[top + 1, left + 1, k]
                    out[y, x, k] = np.uint8(total >> 15)


@inner
def folded(place, size):
    """`place` reflected into the line of `size` samples as SciPy did before 1.6: -0.3 becomes -0.7."""
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
def displace(image, dx, dy, out):
    """Bilinear samples of unit `image` (float32, (H, W, 4)) at (row + dy, column + dx) into `out` (uint8).

    The fourth value of a pixel counts for nothing. Samples are summed in double and rounded to single
    precision, clipped to [0, 1] and truncated. Borders are those of SciPy before 1.6: the place is folded,
    its neighbours are mirrored about the edge pixels.
    """
    zero, one, most = np.float32(0), np.float32(1), np.float32(255)
    height, width, _ = image.shape
    # A pixel is moved as one word of 16 bytes.
    pixels = image.reshape(-1).view(np.complex128)
    near, line = np.empty((4, width), np.complex128), np.empty((3, width), np.uint8)
    values = near.view(np.float32)
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
                    mirror_corners(np.int64(top[x]), np.int64(left[x]), height, width, x, corners)
        gather(pixels, corners, near)
        upper, next_upper, lower, next_lower = values[0], values[1], values[2], values[3]
        for k in range(3):
            target = line[k]
            for x in range(width):
                part_y, part_x = rows[x] - top[x], columns[x] - left[x]
                value = np.float32(
                    upper[4 * x + k] * ((1.0 - part_y) * (1.0 - part_x))
                    + next_upper[4 * x + k] * ((1.0 - part_y) * part_x)
                    + lower[4 * x + k] * (part_y * (1.0 - part_x))
                    + next_lower[4 * x + k] * (part_y * part_x)
                )
                target[x] = np.uint8(np.int32(min(max(value, zero), one) * most))
        red, green, blue, target = line[0], line[1], line[2], out[y]
        for x in range(width):
            target[x, 0], target[x, 1], target[x, 2] = red[x], green[x], blue[x]
