"""Loops that blur, along lines, by zooming, by swapping pixels, and by depth; fog by depth."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import average, copy, extend, quantise, widen
from robustgen.pixels.imaging.kernels.exact import exp, exponential
from robustgen.pixels.imaging.kernels.intrinsics import BLOCK, copy_block

# --- Gaussian filters along rows and columns -------------------------------------------------------


@inner
def blur_across_rows(lines, weights, source, row, line):
    """Correlate one row along axis 0 with the symmetric kernel of right half `weights`, into `line`.

    `weights` (r + 1, r even) end in a zero if the kernel is shorter. `source` (H + 2 r) is the index in
    `lines` (N, M) of each row of the image extended by r on both sides.
    """
    radius = weights.size - 1
    centre = lines[source[row + radius]]
    for m in range(line.size):
        line[m] = centre[m] * weights[0]
    for j in range(radius, 0, -2):
        # Two at a time, to load and store `line` less often; the order of sums is kept.
        above, below = row + radius - j, row + radius + j
        a, b, of_ab = lines[source[above]], lines[source[below]], weights[j]
        c, d, of_cd = lines[source[above + 1]], lines[source[below - 1]], weights[j - 1]
        for m in range(line.size):
            total = line[m] + (np.float64(a[m]) + np.float64(b[m])) * of_ab
            line[m] = total + (np.float64(c[m]) + np.float64(d[m])) * of_cd


@inner
def blur_along_row(values, channels, weights, source, extended, line):
    """Correlate `values` (W * channels) with the symmetric kernel of right half `weights`, into `line`.

    `weights` and `source` are as in `blur_across_rows`, for columns; `extended` ((W + 2 r) * channels) is a
    buffer.
    """
    radius = weights.size - 1
    margin = radius * channels
    centre = extended[margin : margin + line.size]
    copy(values, centre)
    for x in range(radius):
        left, right = source[x] * channels, source[source.size - 1 - x] * channels
        for c in range(channels):
            extended[x * channels + c] = values[left + c]
            extended[extended.size - (x + 1) * channels + c] = values[right + c]
    for m in range(line.size):
        line[m] = centre[m] * weights[0]
    for j in range(radius, 0, -2):
        left, right = margin - j * channels, margin + j * channels
        a, b, of_ab = extended[left:], extended[right:], weights[j]
        c, d, of_cd = extended[left + channels :], extended[right - channels :], weights[j - 1]
        for m in range(line.size):
            line[m] = line[m] + (a[m] + b[m]) * of_ab + (c[m] + d[m]) * of_cd


@compiled
def blur(image, channels, down, rows, across, columns, out):
    """Filter `image` (H, W * channels) along both axes, rounded to the type of `out` in between.

    `down` and `across` are the weights, `rows` and `columns` the `source` of `blur_across_rows` and
    `blur_along_row`.
    """
    width = image.shape[1]
    line, between = np.empty(width), np.empty(width, out.dtype)
    extended = np.empty(width + 2 * (across.size - 1) * channels)
    for row in range(image.shape[0]):
        blur_across_rows(image, down, rows, row, line)
        copy(line, between)
        blur_along_row(between, channels, across, columns, extended, line)
        copy(line, out[row])


@compiled
def blur_bytes(image, channels, units, weights, rows, columns, out):
    """Blur the entries in `units` (float64, 256) of a uint8 image; clip, and truncate to uint8.

    Only the rows under the kernel are converted to floats at a time, so that they stay in the cache.
    """
    height, width = image.shape
    radius = weights.size - 1
    line, result = np.empty(width), np.empty(width)
    extended = np.empty(width + 2 * radius * channels)
    lines = np.empty((min(2 * radius + 1, height), width))
    places = np.empty(rows.size, rows.dtype)
    for i in range(rows.size):
        places[i] = rows[i] % lines.shape[0]
    there = 0
    for row in range(height):
        while there < min(row + radius + 1, height):
            widen(image[there], units, lines[there % lines.shape[0]])
            there += 1
        blur_across_rows(lines, weights, places, row, line)
        blur_along_row(line, channels, weights, columns, extended, result)
        quantise(result, out[row])


# --- sums over a disk ------------------------------------------------------------------------------


@compiled
def add_up_columns(padded, sums):
    """Write the sum of the values above each value of `padded` (uint16, (H, W * C)) in its column.

    Sums overflow, but differences below 65536 are correct. `sums` has one more row.
    """
    sums[0, :] = 0
    for row in range(padded.shape[0]):
        source, above, target = padded[row], sums[row], sums[row + 1]
        for m in range(source.size):
            target[m] = above[m] + source[m]


@compiled
def weigh_groups(padded, sums, weights, ends, taps, run_ends, runs, out):
    """Correlate with a kernel of few distinct weights: add up the values under each, exactly, then weigh.

    Group g has the weight weights[g], the taps up to ends[g] and the runs of taps up to run_ends[g], together
    no more than 257 places, or 16 bits overflow. A tap is (row, flat column) in `padded` (uint16,
    (H', W' * C)), a run (flat column, row, the row after it) in `sums`, its `add_up_columns`. Writes uint8
    (H, W * C).
    """
    line, total = np.empty(out.shape[1]), np.empty(out.shape[1], np.uint16)
    for row in range(out.shape[0]):
        line[:] = 0.0
        tap = run = 0
        for group in range(weights.size):
            total[:] = 0
            end, weight = ends[group], weights[group]
            while tap + 4 <= end:
                # Four at a time, to load and store `total` less often.
                a = padded[row + taps[tap, 0], taps[tap, 1] :]
                b = padded[row + taps[tap + 1, 0], taps[tap + 1, 1] :]
                c = padded[row + taps[tap + 2, 0], taps[tap + 2, 1] :]
                d = padded[row + taps[tap + 3, 0], taps[tap + 3, 1] :]
                for m in range(total.size):
                    total[m] += np.uint16(a[m] + b[m]) + np.uint16(c[m] + d[m])
                tap += 4
            while tap < end:
                window = padded[row + taps[tap, 0], taps[tap, 1] :]
                for m in range(total.size):
                    total[m] += window[m]
                tap += 1
            while run < run_ends[group]:
                before = sums[row + runs[run, 1], runs[run, 0] :]
                after = sums[row + runs[run, 2], runs[run, 0] :]
                for m in range(total.size):
                    total[m] += np.uint16(after[m] - before[m])
                run += 1
            for m in range(total.size):
                line[m] += weight * np.float64(total[m])
        for m in range(line.size):
            out[row, m] = np.uint8(np.int32(min(line[m], 255.0)))


# --- compiled loops of blurs along a line ----------------------------------------------------------


@inner
def motion_rows(padded, weights, tops, lefts, out):
    """Add shifted windows of `padded` (16-bit values as float32, (H', W' * C)) into `out` (uint8 (H, W * C)).

    Window i starts at row tops[i], flat column lefts[i] and has weights[i]; sums are rounded half up to 16
    bits and divided by 257, like the conversion to 8 bits in ImageMagick's Q16 build.

    Sums are computed in single precision, and again in double if rounding errors could change the result.
    """
    line, narrow = np.empty(out.shape[1], np.float32), np.empty(weights.size, np.float32)
    copy(weights, narrow)
    half, step, share = np.float32(0.5), np.float32(257), np.float32(1 / 257)
    # Each rounding is off by at most 2^-24 of the sum.
    least = np.float32((weights.size + 3) * 65536.0 * 2.0**-24)
    most = step - least
    fours = weights.size // 4 * 4
    for row in range(out.shape[0]):
        for m in range(line.size):
            line[m] = half
        for i in range(0, fours, 4):
            # Four at a time, to load and store `line` less often.
            a, b = padded[row + tops[i], lefts[i] :], padded[row + tops[i + 1], lefts[i + 1] :]
            c, d = padded[row + tops[i + 2], lefts[i + 2] :], padded[row + tops[i + 3], lefts[i + 3] :]
            of_a, of_b, of_c, of_d = narrow[i], narrow[i + 1], narrow[i + 2], narrow[i + 3]
            for m in range(line.size):
                line[m] += (of_a * a[m] + of_b * b[m]) + (of_c * c[m] + of_d * d[m])
        for i in range(fours, weights.size):
            window, weight = padded[row + tops[i], lefts[i] :], narrow[i]
            for m in range(line.size):
                line[m] += weight * window[m]
        target, unsure = out[row], 0
        for m in range(line.size):
            level = np.int32(line[m] * share)
            above = line[m] - np.float32(level) * step
            target[m] = np.uint8(level)
            unsure += (above < least) | (above > most)
        if unsure:
            for m in range(line.size):
                above = line[m] - np.float32(target[m]) * step
                if above < least or above > most:
                    total = 0.0
                    for i in range(weights.size):
                        total += weights[i] * np.float64(padded[row + tops[i], lefts[i] + m])
                    target[m] = np.uint8(np.int32(total + 0.5) // 257)


@compiled
def fading_weights(width, sigma):
    """Return exp(-x^2 / (2 sigma^2)) for x from 0 to `width` - 1; for sigma 0, 1 only at x = 0."""
    weights, divisor = np.empty(width), 2.0 * sigma * sigma
    for x in range(width):
        weights[x] = exp(-np.float64(x * x) / divisor) if divisor > 0.0 else np.float64(x == 0)
    return weights


@compiled
def place_samples(direction_x, direction_y, length, rows, columns):
    """Write the row and column offsets of `rows.size` samples along a direction vector of `length`."""
    for i in range(rows.size):
        columns[i] = np.int64(np.ceil(i * direction_y / length - 0.5))
        rows[i] = np.int64(np.ceil(i * direction_x / length - 0.5))


@compiled
def blur_along_line(image, channels, weights, direction_x, direction_y, length, out):
    """Blur `image` (uint8, (H, W * C)) by `weights` along the line of `place_samples`, into `out`."""
    rows, columns = np.empty(weights.size, np.int64), np.empty(weights.size, np.int64)
    place_samples(direction_x, direction_y, length, rows, columns)
    # Both offsets are monotonic from 0.
    down, right = rows[-1], columns[-1]
    above, left = max(-down, 0), max(-right, 0)
    padded = np.empty((image.shape[0] + abs(down), image.shape[1] + abs(right) * channels), np.float32)
    extend(image, channels, above, left, False, np.float32(257), padded)
    for i in range(weights.size):
        rows[i], columns[i] = rows[i] + above, (columns[i] + left) * channels
    motion_rows(padded, weights, rows, columns, out)


@compiled
def sum_rows(padded, weights, tops, lefts, out):
    """Add shifted windows of `padded` (float64, (H', W' * C)), weighted, into `out` (float64, (H, W * C)).

    Windows are as in `motion_rows`.
    """
    for row in range(out.shape[0]):
        line = out[row]
        line[:] = 0.0
        for i in range(weights.size):
            window, weight = padded[row + tops[i], lefts[i] :], weights[i]
            for m in range(line.size):
                line[m] += weight * window[m]


# --- compiled loops that sum zoomed images ---------------------------------------------------------


@inner
def mix_columns(row, channels, blocks, parts, extended, near, out):
    """Write linear samples of `row` to `out`, from a value and the one a pixel further, weighted by `parts`.

    `blocks` (N, 2) are the starts of blocks of the first values in `row`, and their places in `out`; the next
    block overwrites excess values. The last pixel is repeated beyond the edge. `extended` (a pixel and a
    block longer than `row`) and `near` (2, a block longer than `out`) are buffers.
    """
    copy(row, extended[: row.size])
    copy(row[row.size - channels :], extended[row.size : row.size + channels])
    left, right = near[0], near[1]
    for i in range(blocks.shape[0]):
        copy_block(extended, blocks[i, 0], left, blocks[i, 1])
        copy_block(extended, blocks[i, 0] + channels, right, blocks[i, 1])
    for m in range(out.size):
        out[m] = left[m] * (1.0 - parts[m]) + right[m] * parts[m]


@compiled
def add_zoomed(
    image, channels, crops, inside, rows, row_parts, blocks, ends, parts, left, total, begun, count, out
):
    """Add bilinear samples of Z parts of `image` (H, W * C), each rounded to its precision, to `total`.

    Part z begins at row crops[z, 0] and flat column crops[z, 1]; its last row is crops[z, 2], its width
    crops[z, 3]. Its first inside[z] rows and flat columns are added. Row y is sampled at rows[z, y] +
    row_parts[z, y] within it; columns are sampled by `mix_columns`, with the blocks up to ends[z] and with
    parts[z] (W'), for the W' columns of `total` from `left` on.

    Unless `begun`, `total` starts at zero, or at `image` if there is an `out` (uint8), which receives the
    mean of `count`: the sum of `image` and `total`, divided. One pass, row by row.
    """
    zooms, width = parts.shape
    # The two rows of each zoom around the current one, even ones first.
    lines = np.empty((2 * zooms, width))
    extended = np.empty(image.shape[1] + channels + BLOCK, image.dtype)
    near = np.empty((2, width + BLOCK), image.dtype)
    for y in range(total.shape[0]):
        target = total[y, left : left + width]
        if not begun:
            if out is None:
                for m in range(target.size):
                    target[m] = 0.0
            else:
                copy(image[y, left:], target)
        for zoom in range(zooms):
            if y >= inside[zoom, 0]:
                continue
            first, start = rows[zoom, y], ends[zoom - 1] if zoom else 0
            reached = rows[zoom, y - 1] + 1 if y else -1
            for row in range(max(first, reached + 1), first + 2):
                source = image[crops[zoom, 0] + min(row, crops[zoom, 2]), crops[zoom, 1] :]
                mix_columns(
                    source[: crops[zoom, 3]],
                    channels,
                    blocks[start : ends[zoom]],
                    parts[zoom],
                    extended,
                    near,
                    lines[2 * zoom + row % 2],
                )
            above, below = lines[2 * zoom + first % 2], lines[2 * zoom + (first + 1) % 2]
            part = row_parts[zoom, y]
            reached = target[: inside[zoom, 1]]
            for m in range(reached.size):
                reached[m] += image.dtype.type(above[m] * (1.0 - part) + below[m] * part)
        if out is not None:
            average(image[y, left : left + width], target, count, out[y, left : left + width])


@compiled
def take_in(image, total, count):
    """Replace `image` (uint8, flat) by the mean of it and the `count` - 1 images with the sum `total`.

    `image` is also added to `total` (float32), in single precision in [0, 1]; clipped and truncated.
    """
    zero, one, top = np.float32(0), np.float32(1), np.float32(255)
    for i in range(image.size):
        value, before = np.float32(image[i]) / top, total[i]
        total[i] = before + value
        image[i] = np.uint8(np.int32(min(max((value + before) / count, zero), one) * top))


# --- compiled loops that move neighbouring pixels --------------------------------------------------


@inner
def pack(image, words):
    """Write the pixels of `image` (uint8, (N, 3)) as `words` (uint32, N), red lowest."""
    for i in range(words.size):
        words[i] = (
            image[i, 0] | np.uint32(image[i, 1]) << np.uint32(8) | np.uint32(image[i, 2]) << np.uint32(16)
        )


@inner
def unpack(words, image):
    """Write the pixels of `words` from `pack` to `image`."""
    for i in range(words.size):
        image[i, 0] = np.uint8(words[i])
        image[i, 1] = np.uint8(words[i] >> np.uint32(8))
        image[i, 2] = np.uint8(words[i] >> np.uint32(16))


@compiled
def glass_shuffle(image, moves, reach, iterations):
    """Move pixels of `image` (H, W, 3) in place.

    `moves` contains (dx + reach) * 2 * reach + (dy + reach) for each visit, with the source offsets dx, dy.
    """
    height, width, _ = image.shape
    # A pixel is moved as one word.
    pixels = np.empty(height * width, np.uint32)
    pack(image.reshape(-1, 3), pixels)
    offsets = np.empty(4 * reach * reach, np.int64)
    for move in range(offsets.size):
        dx, dy = move // (2 * reach) - reach, move % (2 * reach) - reach
        offsets[move] = dy * width + dx
    visit = 0
    for _ in range(iterations):
        for row in range(height - reach, reach, -1):
            for to in range((row + 1) * width - reach, row * width + reach, -1):
                # The scripts' swap is a one-way copy because of NumPy views; the published data has it.
                # For unsigned indices, numba omits the check for negative values.
                pixels[np.uint64(to)] = pixels[np.uint64(to + offsets[np.uint64(moves[visit])])]
                visit += 1
    unpack(pixels, image.reshape(-1, 3))


# --- depth maps, in float32: fog, and blur outside the plane of focus ------------------------------


@inner
def truncate(value):
    """Clip `value` (float32) to [0, 1], multiply by 255, and truncate."""
    return np.uint8(np.int32(min(max(value, np.float32(0)), np.float32(1)) * np.float32(255)))


@compiled
def add_fog(image, units, depth, density, light, out):
    """Mix `image` (uint8, (N, 3)) with `light`, increasing with `depth` (float32, N)."""
    one = np.float32(1)
    for i in range(depth.size):
        clear = np.float32(exponential(np.float64(-density * depth[i])))
        veil = light * (one - clear)
        for c in range(3):
            out[i, c] = truncate(clear * units[image[i, c]] + veil)


@compiled
def find_cells(depth, edges, cells, shares, spans):
    """Find the two `edges` (float32, ascending) around each value of `depth` (float32, (H, W)).

    `cells` (H, W) gets the number of the upper edge, `shares` (H, W, 2) the weights of the two.
    `spans` (K, H, 2) gets, for each edge and row, the first column that uses it, and the one after the last.
    """
    height, width = depth.shape
    one = np.float32(1)
    spans[:, :, 0], spans[:, :, 1] = width, 0
    for row in range(height):
        for column in range(width):
            here, upper = depth[row, column], 1
            while upper < edges.size - 1 and edges[upper] < here:
                upper += 1
            cells[row, column] = upper
            for edge in range(upper - 1, upper + 1):
                spans[edge, row, 0] = min(spans[edge, row, 0], column)
                spans[edge, row, 1] = column + 1
            span = edges[upper] - edges[upper - 1]
            # Large numbers may coincide.
            span = span if span > 0 else one
            below, above = (here - edges[upper - 1]) / span, (edges[upper] - here) / span
            low, high = one - below * below, one - above * above
            both = low + high
            shares[row, column, 0], shares[row, column, 1] = low / both, high / both


@inner
def add_neighbours(before, after, weight, further_before, further_after, further_weight, line):
    """Add two pairs of neighbours to `line`, each pair times its weight."""
    for m in range(line.size):
        pair = weight * (before[m] + after[m])
        line[m] += pair + further_weight * (further_before[m] + further_after[m])


@inner
def finish_line(first, last, channels, tail, total, line):
    """Add `tail` times the pixels of both ends to `line`, and divide it by `total`."""
    if tail > 0:
        for m in range(line.size):
            line[m] += tail * (first[m % channels] + last[m % channels])
    for m in range(line.size):
        line[m] = line[m] / total


@compiled
def blur_by_depth(image, channels, weights, tails, total, spans, between, out):
    """Filter `image` (float32, (H, W * channels)) along rows, then columns, with repeated borders.

    Only the columns in `spans` (H, 2) of each row are written. `weights` is the right half of the kernel, an
    odd number, `total` the sum of the kernel, `tails` the sums on one side beyond a width and a height.
    `between` is a buffer of the shape of `image`.
    """
    height, width = image.shape[0], image.shape[1] // channels
    reach = min(weights.size - 1, width + width % 2)
    down = min(weights.size - 1, height + height % 2)
    extended = np.empty((width + 2 * reach) * channels, np.float32)
    for row in range(height):
        start, end = width, 0
        for near in range(max(row - down, 0), min(row + down + 1, height)):
            start, end = min(start, spans[near, 0]), max(end, spans[near, 1])
        # Places beyond the image repeat these rows.
        if tails[1] > 0 and (row == 0 or row == height - 1):
            start, end = 0, width
        if start >= end:
            continue
        extended[reach * channels : (reach + width) * channels] = image[row]
        for x in range(reach):
            for c in range(channels):
                extended[x * channels + c] = image[row, c]
                extended[(reach + width + x) * channels + c] = image[row, (width - 1) * channels + c]
        line, centre = between[row, start * channels : end * channels], (reach + start) * channels
        for m in range(line.size):
            line[m] = extended[centre + m] * weights[0]
        for n in range(1, reach, 2):
            add_neighbours(
                extended[centre - n * channels :],
                extended[centre + n * channels :],
                weights[n],
                extended[centre - (n + 1) * channels :],
                extended[centre + (n + 1) * channels :],
                weights[n + 1],
                line,
            )
        finish_line(extended, extended[extended.size - channels :], channels, tails[0], total, line)
    for row in range(height):
        start, end = spans[row, 0] * channels, spans[row, 1] * channels
        if start >= end:
            continue
        line, middle = out[row, start:end], between[row, start:end]
        for m in range(line.size):
            line[m] = middle[m] * weights[0]
        for n in range(1, down, 2):
            add_neighbours(
                between[max(row - n, 0), start:end],
                between[min(row + n, height - 1), start:end],
                weights[n],
                between[max(row - n - 1, 0), start:end],
                between[min(row + n + 1, height - 1), start:end],
                weights[n + 1],
                line,
            )
        finish_line(between[0, start:end], between[height - 1, start:end], line.size, tails[1], total, line)


@compiled
def add_plane(number, plane, cells, shares, spans, sums, out):
    """Add the weighted `plane` (float32, (H, W, 3)) of edge `number` to the pixels in `sums`.

    Planes must come in order. The second plane completes a pixel, which is truncated into `out` (uint8).
    """
    for row in range(cells.shape[0]):
        for column in range(spans[row, 0], spans[row, 1]):
            if cells[row, column] == number + 1:
                for c in range(3):
                    sums[row, column, c] = shares[row, column, 0] * plane[row, column, c]
            elif cells[row, column] == number:
                for c in range(3):
                    part = shares[row, column, 1] * plane[row, column, c]
                    out[row, column, c] = truncate(sums[row, column, c] + part)
