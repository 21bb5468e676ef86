"""Contrast limited adaptive histogram equalisation."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner


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
