"""Loops over colours and histograms."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner

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
