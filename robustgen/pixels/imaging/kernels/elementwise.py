"""Loops over single values: bytes and units, edges, colour spaces, windows and sums of images."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner


@compiled
def quantise(values, out):
    """Clip `values` (float, flat) to [0, 1], multiply by 255, and truncate into `out` (uint8, flat)."""
    zero, one, top = values.dtype.type(0), values.dtype.type(1), values.dtype.type(255)
    for i in range(values.size):
        out[i] = np.uint8(np.int32(min(max(values[i], zero), one) * top))


@compiled
def widen(values, units, out):
    """Look up each of `values` (uint8, flat) in `units` (float64, 256), into `out` (float64)."""
    for i in range(values.size):
        out[i] = units[values[i]]


@compiled
def copy(values, target):
    """Copy `values` to `target` (both flat), which compiles in a fifth of the time of a slice assignment."""
    for i in range(target.size):
        target[i] = values[i]


@compiled
def beyond(index, size, mirrored):
    """Return the sample at `index` of a line of `size`: beyond the border, the edge or a mirrored one."""
    if 0 <= index < size:
        return index
    if not mirrored:
        return 0 if index < 0 else size - 1
    index = abs(index) % (2 * size - 2)
    return index if index < size else 2 * size - 2 - index


@compiled
def extend(image, channels, above, left, mirrored, scale, out):
    """Copy `image` (H, W * channels) times `scale` into `out`, `above` and `left` pixels from its corner.

    Beyond the border, the edge is repeated, or the image is `mirrored` about its edge pixels.
    """
    height, width = image.shape[0], image.shape[1] // channels
    columns = out.shape[1] // channels
    for row in range(out.shape[0]):
        source = image[beyond(row - above, height, mirrored)]
        target = out[row]
        middle = target[left * channels : (left + width) * channels]
        for m in range(middle.size):
            middle[m] = source[m] * scale
        for side in range(columns - width):
            column = side if side < left else side + width
            x = beyond(column - left, width, mirrored)
            for c in range(channels):
                target[column * channels + c] = source[x * channels + c] * scale


@compiled
def average(image, total, count, out):
    """Write (image + total) / count (float32, flat), clipped to [0, 1], to `out` (uint8), truncated."""
    zero, one, top = np.float32(0), np.float32(1), np.float32(255)
    for i in range(image.size):
        out[i] = np.uint8(np.int32(min(max((image[i] + total[i]) / count, zero), one) * top))


@compiled
def truncated(value):
    """Return `value` clipped to [0, 255] and truncated."""
    return np.uint8(np.int32(min(max(value, 0.0), 255.0)))


@compiled
def blend(image, weight, other, other_weight, out):
    """Write weight * image + other_weight * other (uint8, flat), clipped and truncated, to `out`."""
    for i in range(image.size):
        out[i] = truncated(weight * np.float64(image[i]) + other_weight * np.float64(other[i]))


@inner
def repeat_thrice(line, out):
    """Repeat each value of `line` (N) for each channel, into `out` (at least 3 N)."""
    for x in range(line.size):
        out[3 * x], out[3 * x + 1], out[3 * x + 2] = line[x], line[x], line[x]


@inner
def largest_byte(values):
    """Return the largest of `values` (uint8, flat)."""
    largest = np.uint8(0)
    for i in range(values.size):
        largest = max(largest, values[i])
    return largest


@compiled
def quantise_above(values, threshold, out):
    """Quantise like `quantise`, but set `values` below `threshold` to 0."""
    for i in range(values.size):
        value = values[i] if values[i] >= threshold else 0.0
        out[i] = np.uint8(np.int32(min(max(value, 0.0), 1.0) * 255.0))


@compiled
def channel_sums(image, units, sums):
    """Sum the `units` (256) of `image` (uint8, (N, 3)) into `sums` (3), row by row like NumPy."""
    r, g, b = 0.0, 0.0, 0.0
    for i in range(image.shape[0]):
        r += units[image[i, 0]]
        g += units[image[i, 1]]
        b += units[image[i, 2]]
    sums[0], sums[1], sums[2] = r, g, b


@inner
def look_up(image, table, out):
    """Replace each value of channel c of `image` (uint8, (N, 3)) by its entry in column c of `table`."""
    for i in range(image.shape[0]):
        for c in range(3):
            out[i, c] = table[image[i, c], c]


@compiled
def look_up_planes(image, tables, out):
    """Write entry v of `tables` (3, 256) for each value v of `image` (uint8, (N, 3)) to `out` (3, N)."""
    red, green, blue = tables[0], tables[1], tables[2]
    for i in range(image.shape[0]):
        out[0, i], out[1, i], out[2, i] = red[image[i, 0]], green[image[i, 1]], blue[image[i, 2]]


@compiled
def scale_about(image, units, centres, factor, out):
    """Multiply the distance of each value of `image` (uint8, (N, 3)) from its channel's centre by `factor`.

    `units` (256) are the values, `centres` (3) in the same unit; clipped and truncated into `out` (uint8).
    """
    table = np.empty((256, 3), np.uint8)
    for value in range(256):
        for c in range(3):
            scaled = (units[value] - centres[c]) * factor + centres[c]
            table[value, c] = np.uint8(np.int32(min(max(scaled, 0.0), 1.0) * 255.0))
    look_up(image, table, out)


@compiled
def count_values(image, counts):
    """Add the histogram of each channel of `image` (uint8, (N, 3)) to `counts` (256, 3)."""
    for i in range(image.shape[0]):
        for c in range(3):
            counts[image[i, c], c] += 1


@compiled
def weighted_mean(images, weights, out):
    """Write the sum of `images` (uint8, (M, N)) times `weights` (float32), rounded half up, to `out`."""
    half, top = np.float32(0.5), np.float32(255)
    line = np.empty(2048, np.float32)
    for start in range(0, out.size, line.size):
        target = out[start : start + line.size]
        line[:] = half
        for m in range(weights.size):
            part, weight = images[m, start:], weights[m]
            for i in range(target.size):
                line[i] += weight * np.float32(part[i])
        for i in range(target.size):
            target[i] = np.uint8(np.int32(min(line[i], top)))


# --- conversions to HSV and back -------------------------------------------------------------------


@inner
def split_channels(pixels, lines):
    """Write `pixels` (N, 3) as `lines` (3, at least N), one per channel, for vectorisation."""
    red, green, blue = lines[0], lines[1], lines[2]
    for i in range(pixels.shape[0]):
        red[i], green[i], blue[i] = pixels[i, 0], pixels[i, 1], pixels[i, 2]


@inner
def join_channels(lines, pixels):
    """Write `lines` (3, at least N) as `pixels` (N, 3)."""
    red, green, blue = lines[0], lines[1], lines[2]
    for i in range(pixels.shape[0]):
        pixels[i, 0], pixels[i, 1], pixels[i, 2] = red[i], green[i], blue[i]


@compiled
def split_hsv(image, hues, saturations, values):
    """Write HSV of `image` (uint8, (N, 3)) like scikit-image's rgb2hsv, except for hues from 0 to 6.

    Selections use no branches, which would be unpredictable; each channel has its own line.
    """
    channels = np.empty((3, 512))
    for start in range(0, hues.size, 512):
        pixels = image[start : start + 512]
        red, green, blue = channels[0, : pixels.shape[0]], channels[1], channels[2]
        split_channels(pixels, channels)
        hue, saturation, value = hues[start:], saturations[start:], values[start:]
        for i in range(red.size):
            r, g, b = red[i] / 255.0, green[i] / 255.0, blue[i] / 255.0
            v = max(max(r, g), b)
            delta = v - min(min(r, g), b)
            difference = r - g if b == v else (b - r if g == v else g - b)
            offset = 4.0 if b == v else (2.0 if g == v else 0.0)
            grey = delta == 0.0
            h = 0.0 if grey else (offset + difference / (1.0 if grey else delta)) / 6.0
            hue[i] = (h + 1.0 if h < 0.0 else h) * 6.0
            saturation[i] = 0.0 if grey else delta / (1.0 if grey else v)
            value[i] = v


@compiled
def join_hsv(hues, saturations, values, gain, saturation_offset, value_offset, out):
    """Convert the result of `split_hsv`, saturation and value changed and clipped, to `out` (uint8, (N, 3)).

    Operations have the order of scikit-image's hsv2rgb; the result is multiplied by 255 and truncated.
    """
    lines = np.empty((3, 512), np.uint8)
    for start in range(0, hues.size, 512):
        hue, saturation, value = hues[start : start + 512], saturations[start:], values[start:]
        red, green, blue, target = lines[0], lines[1], lines[2], out[start:]
        for i in range(hue.size):
            s = min(max(saturation[i] * gain + saturation_offset, 0.0), 1.0)
            v = min(max(value[i] + value_offset, 0.0), 1.0)
            sector = np.floor(hue[i])
            f = hue[i] - sector
            # Each channel is one of these four values in [0, 1], by sector; the seventh equals the first.
            most, least = np.int32(v * 255.0), np.int32(v * (1.0 - s) * 255.0)
            rising = np.int32(v * (1.0 - (1.0 - f) * s) * 255.0)
            falling = np.int32(v * (1.0 - f * s) * 255.0)
            r = rising if sector == 4.0 else least
            r = falling if sector == 1.0 else r
            r = most if sector >= 5.0 else r
            red[i] = np.uint8(most if sector == 0.0 else r)
            g = falling if sector == 3.0 else least
            g = rising if sector == 0.0 else g
            g = rising if sector == 6.0 else g
            g = most if sector == 1.0 else g
            green[i] = np.uint8(most if sector == 2.0 else g)
            b = falling if sector == 5.0 else least
            b = rising if sector == 2.0 else b
            b = most if sector == 3.0 else b
            blue[i] = np.uint8(most if sector == 4.0 else b)
        join_channels(lines, target[: hue.size])


@compiled
def raise_value(image, table, offset, out):
    """Add `offset` to the value of `image` (uint8, (N, 3)), with the result of `split_hsv` and `join_hsv`.

    `table` (uint16, (256, 256)) contains the result for the greatest channel and another one. A flag of 256
    marks doubt if two channels are the greatest, 2048 any doubt: these pixels are converted through HSV.
    """
    rows, channels = np.empty(4096, np.int64), np.empty((4096, 3), np.uint8)
    for start in range(0, image.shape[0], 4096):
        pixels, target, count = image[start : start + 4096], out[start : start + 4096], 0
        for i in range(pixels.shape[0]):
            r, g, b = pixels[i, 0], pixels[i, 1], pixels[i, 2]
            row = table[max(max(r, g), b)]
            x, y, z = row[r], row[g], row[b]
            target[i, 0], target[i, 1], target[i, 2] = x & 255, y & 255, z & 255
            doubts = (x >> 8) + (y >> 8) + (z >> 8)
            rows[count] = i
            # The flags add up to 2 if two channels are the greatest, and to 8 or more at any other doubt.
            count += (doubts == 2) | (doubts > 3)
        for i in range(count):
            for c in range(3):
                channels[i, c] = pixels[rows[i], c]
        planes = np.empty((3, count))
        split_hsv(channels[:count], planes[0], planes[1], planes[2])
        join_hsv(planes[0], planes[1], planes[2], 1.0, 0.0, offset, channels[:count])
        for i in range(count):
            for c in range(3):
                target[rows[i], c] = channels[i, c]


# --- contrast limited adaptive histogram equalisation ----------------------------------------------


@inner
def _fill_table(counts, limit, share, table):
    """Clip `counts` (256), spread the excess, and write the cumulative sum times `share` to `table`."""
    excess = np.int64(0)
    for level in range(256):
        if counts[level] > limit:
            excess += counts[level] - limit
            counts[level] = limit
    each, left = excess // 256, excess % 256
    for level in range(256):
        counts[level] += each
    for i in range(left):
        counts[i * (256 // left)] += 1
    total = np.int64(0)
    for level in range(256):
        total += counts[level]
        table[level] = np.float32(np.rint(min(np.float32(total) * share, np.float32(255))))


@inner
def _neighbours(size, side, tiles, nearest, after, weights):
    """Write the tiles before and after each of `size` places, and the weight of the latter."""
    share = np.float32(1) / np.float32(side)
    for index in range(size):
        at = np.float32(index) * share - np.float32(0.5)
        before = np.floor(at)
        weights[index] = at - before
        nearest[index] = before if before > 0.0 else 0.0
        after[index] = min(before + 1.0, tiles - 1.0)


@compiled
def equalise(plane, tiles, columns, rows, limit, out):
    """Equalise `plane` (uint8, (H, W)) by `tiles` x `tiles` tables, interpolated bilinearly, into `out`.

    `rows` and `columns` are the line of the plane at each place of the tiles together, which may be larger;
    counts of a level in a tile are limited to `limit`. Computed in single precision, as in OpenCV.
    """
    height, width = plane.shape
    tile_height, tile_width = rows.size // tiles, columns.size // tiles
    tables, counts = np.empty((tiles, tiles, 256), np.float32), np.empty(256, np.int64)
    share = np.float32(255) / np.float32(tile_height * tile_width)
    for i in range(tiles):
        for j in range(tiles):
            for level in range(256):
                counts[level] = 0
            for y in range(i * tile_height, (i + 1) * tile_height):
                line = plane[rows[y]]
                for x in range(j * tile_width, (j + 1) * tile_width):
                    counts[line[columns[x]]] += 1
            _fill_table(counts, limit, share, tables[i, j])
    lefts, rights, across = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width, np.float32)
    tops, bottoms, down = np.empty(height, np.int64), np.empty(height, np.int64), np.empty(height, np.float32)
    _neighbours(width, tile_width, tiles, lefts, rights, across)
    _neighbours(height, tile_height, tiles, tops, bottoms, down)
    one = np.float32(1)
    for y in range(height):
        source, target, part = plane[y], out[y], down[y]
        above, below = tables[tops[y]], tables[bottoms[y]]
        for x in range(width):
            left, right, level, weight = lefts[x], rights[x], source[x], across[x]
            upper = above[left, level] * (one - weight) + above[right, level] * weight
            lower = below[left, level] * (one - weight) + below[right, level] * weight
            target[x] = np.uint8(np.int32(np.rint(upper * (one - part) + lower * part)))


# --- similarity: means in the Gaussian window of SSIM, and sums over images, in a fixed order ------


@compiled
def window_means(plane, channels, weights, out):
    """Write weighted means of `plane` (float32, (H, W * C)) to `out`, where the window fits inside.

    The window is symmetric; `weights` (float32) are its right half, centre first. It is applied along the
    columns, then along the rows.
    """
    reach = weights.size - 1
    line = np.empty(plane.shape[1], np.float32)
    for y in range(out.shape[0]):
        centre, target = plane[y + reach], out[y]
        for m in range(line.size):
            line[m] = centre[m] * weights[0]
        for j in range(1, reach + 1):
            above, below, weight = plane[y + reach - j], plane[y + reach + j], weights[j]
            for m in range(line.size):
                line[m] += (above[m] + below[m]) * weight
        middle = line[reach * channels :]
        for m in range(target.size):
            target[m] = middle[m] * weights[0]
        for j in range(1, reach + 1):
            left, right, weight = line[(reach - j) * channels :], line[(reach + j) * channels :], weights[j]
            for m in range(target.size):
                target[m] += (left[m] + right[m]) * weight


@compiled
def channel_means(plane):
    """Return the mean of each channel of `plane` (float32, (H, W, 3)): sums of columns, then of these."""
    flat = plane.reshape(plane.shape[0], -1)
    totals, means = np.zeros(flat.shape[1]), np.zeros(3)
    for y in range(flat.shape[0]):
        line = flat[y]
        for m in range(totals.size):
            totals[m] += line[m]
    for m in range(totals.size):
        means[m % 3] += totals[m]
    return means / (plane.shape[0] * plane.shape[1])


@compiled
def inner_product(a, b):
    """Return the sum of a * b (float64, flat), accumulated in order in eight sums."""
    totals = np.zeros(8)
    whole = a.size // 8 * 8
    for i in range(0, whole, 8):
        for j in range(8):
            totals[j] += a[i + j] * b[i + j]
    for i in range(whole, a.size):
        totals[0] += a[i] * b[i]
    left, right = (
        (totals[0] + totals[1]) + (totals[2] + totals[3]),
        (totals[4] + totals[5]) + (totals[6] + totals[7]),
    )
    return left + right


@compiled
def solve(matrix, values):
    """Solve a symmetric least-squares system (N, N) in place; undetermined unknowns are 0.

    Rows are eliminated in order; vanishing pivots are skipped.
    """
    size, found = values.size, np.zeros(values.size)
    scale = np.empty(size)
    for i in range(size):
        scale[i] = matrix[i, i]
    for i in range(size):
        usable = matrix[i, i] > 1e-10 * scale[i]
        for j in range(i + 1, size):
            share = matrix[j, i] / matrix[i, i] if usable else 0.0
            for k in range(i, size):
                matrix[j, k] -= share * matrix[i, k]
            values[j] -= share * values[i]
        scale[i] = 1.0 if usable else 0.0
    for i in range(size - 1, -1, -1):
        total = values[i]
        for k in range(i + 1, size):
            total -= matrix[i, k] * found[k]
        found[i] = total / matrix[i, i] if scale[i] > 0.0 else 0.0
    return found


@compiled
def square_distance(a, b):
    """Return the sum of squares of the differences of two images (uint8, flat)."""
    total = np.int64(0)
    for start in range(0, a.size, 4096):
        # The sum of this number of values fits into 32 bits.
        part, first, second = np.int32(0), a[start : start + 4096], b[start : start + 4096]
        for i in range(first.size):
            difference = np.int32(first[i]) - np.int32(second[i])
            part += np.int32(difference * difference)
        total += part
    return total
