"""The compiled loops, and nothing else.

Each is a plain loop over arrays that NumPy cannot express in one pass. They are
compiled by numba on first use and cached on disk. Floating-point operations
stand in the order in which the published functions take them, so that results
agree to the last bit; numba neither reorders nor fuses them.
"""

import numpy as np
from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def quantise(values, out):
    """Write `values` (float, flat) clipped to [0, 1], times 255, truncated, into `out` (uint8, flat)."""
    zero, one, top = values.dtype.type(0), values.dtype.type(1), values.dtype.type(255)
    for i in range(values.size):
        out[i] = np.uint8(np.int32(min(max(values[i], zero), one) * top))


@compiled
def resample(image, table, bits, out):
    """Replace each value v of `image` (uint8, flat) by an outcome drawn from row v of an alias table.

    `table` (256, 256) holds in its upper 24 bits the chance to stay on the column that the lower 8 of
    `bits` (uint32, flat) choose, and in its lower 8 the alias taken otherwise.
    """
    for i in range(image.size):
        column = bits[i] & np.uint32(255)
        entry = table[image[i], column]
        stays = (bits[i] >> np.uint32(8)) < (entry >> np.uint32(8))
        out[i] = np.uint8(column) if stays else np.uint8(entry & np.uint32(255))


@compiled
def blur_rows(image, weights, source, out):
    """Correlate along axis 0 of `image` (H, M) with the symmetric kernel whose right half is `weights`.

    `source` (H + 2 r) names the input row that stands at each row of the image extended by r on both sides.
    """
    radius = weights.size - 1
    line = np.empty(image.shape[1])
    for row in range(out.shape[0]):
        centre = image[source[row + radius]]
        for m in range(line.size):
            line[m] = centre[m] * weights[0]
        for j in range(radius, 0, -1):
            above, below = image[source[row + radius - j]], image[source[row + radius + j]]
            weight = weights[j]
            for m in range(line.size):
                line[m] += (np.float64(above[m]) + np.float64(below[m])) * weight
        out[row] = line


@compiled
def blur_columns(image, channels, weights, source, out):
    """Correlate along the columns of `image` (H, W * channels); `source` as in `blur_rows`."""
    radius = weights.size - 1
    margin, width = radius * channels, image.shape[1]
    extended = np.empty(width + 2 * margin)
    line = np.empty(width)
    for row in range(image.shape[0]):
        extended[margin : margin + width] = image[row]
        for x in range(radius):
            left, right = source[x] * channels, source[source.size - 1 - x] * channels
            for c in range(channels):
                extended[x * channels + c] = image[row, left + c]
                extended[extended.size - (x + 1) * channels + c] = image[row, right + c]
        centre = extended[margin : margin + width]
        for m in range(width):
            line[m] = centre[m] * weights[0]
        for j in range(radius, 0, -1):
            left, right = extended[margin - j * channels :], extended[margin + j * channels :]
            weight = weights[j]
            for m in range(width):
                line[m] += (left[m] + right[m]) * weight
        out[row] = line


@compiled
def motion_rows(padded, weights, tops, lefts, out):
    """Add shifted windows of `padded` (16-bit values as float32, (H', W' * C)) into `out` (uint8 (H, W * C)).

    Window i starts at row tops[i], flat column lefts[i] and weighs weights[i]; sums are rounded half up to
    16 bit and divided by 257, which is how ImageMagick's Q16 build comes back to 8 bit.
    """
    line = np.empty(out.shape[1])
    for row in range(out.shape[0]):
        line[:] = 0.0
        for i in range(weights.size):
            window, weight = padded[row + tops[i], lefts[i] :], weights[i]
            for m in range(line.size):
                line[m] += weight * np.float64(window[m])
        for m in range(line.size):
            out[row, m] = np.uint8(np.int32(line[m] + 0.5) // 257)


@compiled
def glass_shuffle(image, moves, reach, iterations):
    """Move pixels of `image` (H, W, 3) in place.

    `moves` holds for each visit (dx + reach) * 2 * reach + (dy + reach), dx and dy being where to take from.
    """
    height, width, _ = image.shape
    flat = image.reshape(-1)
    offsets = np.empty(4 * reach * reach, np.int64)
    for move in range(offsets.size):
        dx, dy = move // (2 * reach) - reach, move % (2 * reach) - reach
        offsets[move] = 3 * (dy * width + dx)
    visit = 0
    for _ in range(iterations):
        for row in range(height - reach, reach, -1):
            for column in range(width - reach, reach, -1):
                to = 3 * (row * width + column)
                taken = to + offsets[moves[visit]]
                # The scripts wrote a swap; NumPy views made it this one-way copy, and the data carries it.
                flat[to], flat[to + 1], flat[to + 2] = flat[taken], flat[taken + 1], flat[taken + 2]
                visit += 1


@compiled
def zoom_into(image, rows, row_parts, columns, column_parts, mixed, out):
    """Bilinear samples of `image` (H, W) at rows + row_parts, columns + column_parts, into `out`.

    Channels lie side by side: `columns` (2, W') names the left and the right sample of each flat column.
    `mixed` (H, W') is scratch for the horizontally interpolated rows.
    """
    last_row = image.shape[0] - 1
    lefts, rights = columns[0], columns[1]
    for y in range(rows[0], min(rows[-1] + 1, last_row) + 1):
        row, target = image[y], mixed[y]
        for m in range(lefts.size):
            part = column_parts[m]
            target[m] = row[lefts[m]] * (1.0 - part) + row[rights[m]] * part
    for y in range(rows.size):
        above, below, part, target = mixed[rows[y]], mixed[min(rows[y] + 1, last_row)], row_parts[y], out[y]
        for m in range(lefts.size):
            target[m] = above[m] * (1.0 - part) + below[m] * part


@compiled
def reflected(index, size):
    """`index` folded back into 0 .. size - 1 by half-sample reflection (d c b a | a b c d | d c b a)."""
    if 0 <= index < size:
        return index
    index %= 2 * size
    return 2 * size - 1 - index if index >= size else index


@compiled
def displace(image, dx, dy, out):
    """Bilinear samples of `image` (H, W, 3) at (row + dy, column + dx), borders reflected, into `out`."""
    height, width, _ = image.shape
    for y in range(height):
        for x in range(width):
            at_y, at_x = y + np.float64(dy[y, x]), x + np.float64(dx[y, x])
            floor_y, floor_x = np.floor(at_y), np.floor(at_x)
            part_y, part_x = at_y - floor_y, at_x - floor_x
            top, bottom = reflected(np.int64(floor_y), height), reflected(np.int64(floor_y) + 1, height)
            left, right = reflected(np.int64(floor_x), width), reflected(np.int64(floor_x) + 1, width)
            for c in range(3):
                above = image[top, left, c] * (1.0 - part_x) + image[top, right, c] * part_x
                below = image[bottom, left, c] * (1.0 - part_x) + image[bottom, right, c] * part_x
                out[y, x, c] = above * (1.0 - part_y) + below * part_y


@compiled
def snowfall(image, grey, mix, rest, layer, out):
    """Whiten `image` (N, 3) by its `grey` (N) and add `layer` (uint8, N) and its reverse, into `out` (uint8).

    `mix` and `rest` weigh the image and the lighter of image and grey, in the image's own precision.
    """
    half, more = np.float32(0.5), np.float32(1.5)
    last = layer.size - 1
    for i in range(layer.size):
        light = grey[i] * more + half
        snow, turned = layer[i] / 255.0, layer[last - i] / 255.0
        for c in range(3):
            white = mix * image[i, c] + rest * max(image[i, c], light)
            out[i, c] = np.uint8(np.int32(min(max(white + snow + turned, 0.0), 1.0) * 255.0))


@compiled
def look_up(image, table, out):
    """Replace each value of channel c of `image` (uint8, (N, 3)) by its entry in column c of `table`."""
    for i in range(image.shape[0]):
        for c in range(3):
            out[i, c] = table[image[i, c], c]


@compiled
def plasma(uniforms, wobble, decay, field):
    """Diamond-square fractal on the torus `field` (n, n), n a power of two, from n * n - 1 draws."""
    side = field.shape[0]
    field[0, 0] = 0.0
    used = 0
    step = side
    while step >= 2:
        half = step // 2
        low, spread = -wobble, wobble - -wobble
        for y in range(0, side, step):
            for x in range(0, side, step):
                down, right = (y + step) % side, (x + step) % side
                total = (field[y, x] + field[down, x]) + (field[y, right] + field[down, right])
                field[y + half, x + half] = total / 4 + wobble * (low + spread * uniforms[used])
                used += 1
        for y in range(0, side, step):
            for x in range(0, side, step):
                across = field[y + half, x + half] + field[y - half, x + half]
                along = field[y, x] + field[y, (x + step) % side]
                field[y, x + half] = (across + along) / 4 + wobble * (low + spread * uniforms[used])
                used += 1
        for y in range(0, side, step):
            for x in range(0, side, step):
                across = field[y + half, x + half] + field[y + half, x - half]
                along = field[y, x] + field[(y + step) % side, x]
                field[y + half, x] = (across + along) / 4 + wobble * (low + spread * uniforms[used])
                used += 1
        step = half
        wobble /= decay


@compiled
def change_hsv(image, saturation_gain, saturation_offset, value_offset, out):
    """RGB `image` (N, 3) in [0, 1] with HSV saturation and value changed and clipped, into `out` (N, 3).

    Hue, saturation and value as in scikit-image's rgb2hsv and hsv2rgb, in the same order of operations.
    """
    for i in range(image.shape[0]):
        r, g, b = image[i, 0], image[i, 1], image[i, 2]
        v = max(r, g, b)
        delta = v - min(r, g, b)
        s, h = 0.0, 0.0
        if delta != 0.0:
            s = delta / v
            if b == v:
                h = 4.0 + (r - g) / delta
            elif g == v:
                h = 2.0 + (b - r) / delta
            else:
                h = (g - b) / delta
            h = (h / 6.0) % 1.0
        s = min(max(s * saturation_gain + saturation_offset, 0.0), 1.0)
        v = min(max(v + value_offset, 0.0), 1.0)
        sector = np.floor(h * 6.0)
        f = h * 6.0 - sector
        p, q, t = v * (1.0 - s), v * (1.0 - f * s), v * (1.0 - (1.0 - f) * s)
        turn = np.int64(sector) % 6
        if turn == 0:
            out[i, 0], out[i, 1], out[i, 2] = v, t, p
        elif turn == 1:
            out[i, 0], out[i, 1], out[i, 2] = q, v, p
        elif turn == 2:
            out[i, 0], out[i, 1], out[i, 2] = p, v, t
        elif turn == 3:
            out[i, 0], out[i, 1], out[i, 2] = p, q, v
        elif turn == 4:
            out[i, 0], out[i, 1], out[i, 2] = t, p, v
        else:
            out[i, 0], out[i, 1], out[i, 2] = v, p, q
